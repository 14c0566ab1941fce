"""The smoke test: one line per feature, in a second. Run it first, and after every change."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr


def test_backward() -> None:
    x = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x * x).sum().backward()
    assert repr(x.grad) == "tensor([2., 4., 6.])"


def test_gradients_add_up() -> None:
    x = cr.tensor(3.0, requires_grad=True)
    for _ in range(2):
        (x * x).backward()
    assert x.grad.item() == 12.0


def test_fan_out_and_broadcasting() -> None:
    w, b = cr.ones(3, 2, requires_grad=True), cr.zeros(2, requires_grad=True)
    y = cr.tanh(cr.ones(4, 3) @ w + b)
    (y + y * y).sum().backward()
    assert w.grad.shape == (3, 2) and b.grad.shape == (2,)


def test_numpy_functions_are_recorded() -> None:
    x = cr.tensor(np.array([0.0, np.pi]), requires_grad=True)
    np.sum(np.sin(x)).backward()
    assert x.grad.dtype == np.float64 and x.grad.tolist() == [1.0, -1.0]


def test_higher_order() -> None:
    cube = lambda x: x**3
    assert cr.func.grad(cr.func.grad(cr.func.grad(cube)))(np.float64(2.0)) == 6.0


def test_transformations_nest() -> None:
    x = np.array([1.0, 2.0, 3.0])
    assert cr.vmap(cr.func.grad(lambda x: x**2))(x).tolist() == [2.0, 4.0, 6.0]
    _, tangent = cr.func.jvp(cr.func.grad(lambda x: np.sum(x**3)), (x,), (np.ones(3),))
    assert tangent.tolist() == [6.0, 12.0, 18.0]


def test_in_place_through_a_view() -> None:
    x = cr.ones(3, requires_grad=True)
    y = x * 2
    y[1] *= 5
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 10.0, 2.0]


def test_one_training_step() -> None:
    cr.manual_seed(0)
    x, target, w = cr.randn(8, 3), cr.randn(8), cr.zeros(3, requires_grad=True)
    before = ((x @ w - target) ** 2).mean()
    before.backward()
    with cr.no_grad():
        w -= 0.1 * w.grad
    assert ((x @ w - target) ** 2).mean() < before


def test_errors_say_what_to_do() -> None:
    c = cr.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match=r"only for scalar outputs[^$]*c\.sum\(\)\.backward\(\)"):
        c.backward()
