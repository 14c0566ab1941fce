"""Gradients through compiled functions, for all layouts of the cotangents."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

R = np.random.default_rng(0)
W = cr.tensor(R.standard_normal((5, 4)), requires_grad=True)
b = cr.tensor(R.standard_normal(4), requires_grad=True)


def layer(x):
    return cr.tanh(x @ W + b)


def both(function, x, finish):
    """Return the gradients of a function of the result with respect to x, W and b: eager and compiled."""
    compiled = cr.compile(function)
    found = []
    for f in (function, compiled, compiled, compiled):
        x = cr.tensor(x.detach().numpy().copy(), requires_grad=True)
        found.append(cr.autograd.grad(finish(f(x)), [x, W, b], allow_unused=True))
    return found


ENDS = {
    "sum": lambda y: y.sum(),
    "mean": lambda y: y.mean(),
    "sum of rows": lambda y: (y.sum(0) * cr.arange(y.shape[-1])).sum(),
    "sum of columns": lambda y: (y.sum(-1) ** 2).sum(),
    "transposed": lambda y: (y.mT @ cr.tensor(np.linspace(0, 1, y.shape[-2]))).sum(),
    "every other": lambda y: (y.flip(-1)[..., ::2] ** 2).sum(),
    "transposed squares": lambda y: (y.mT.contiguous() ** 3).mT.sum(),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (layer, (6, 5)),
        (lambda x: x * 2.0, (6, 5)),
        (lambda x: cr.exp(x).mT.mT, (3, 2)),
        (layer, (3, 6, 5)),
        (lambda x: x @ x.mT, (3, 6, 5)),
        (lambda x: (x.sum(-1, keepdim=True) * b).cumsum(-1), (6, 5)),
    ],
    ids=["layer", "product", "turned twice", "layers", "stack of products", "broadcast"],
)
def test_the_bits_of_eager(function, shape, end):
    want, *found = both(function, cr.tensor(R.standard_normal(shape)), ENDS[end])
    for gradients in found:
        for got, expected in zip(gradients, want, strict=True):
            assert (got is None) is (expected is None)
            if got is not None:
                assert got.numpy().tobytes() == expected.numpy().tobytes()


def test_a_sum_sent_backward():
    compiled = cr.compile(lambda x: x * 2)
    for _ in range(3):
        x = cr.ones(2, requires_grad=True)
        compiled(x).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]


def test_a_gradient_that_is_turned():
    """Its calls sum in another order for an array in Fortran order."""
    shifted = lambda x: x[:, :4] + b
    compiled = cr.compile(shifted)
    for _ in range(3):
        x = cr.tensor(R.standard_normal((50, 5)), requires_grad=True)
        g = cr.tensor(np.asfortranarray(R.standard_normal((50, 4)) * 10.0 ** R.integers(-6, 6, (50, 4))))
        want = cr.autograd.grad(shifted(x), [x, b], g)
        got = cr.autograd.grad(compiled(x), [x, b], g)
        assert [v.numpy().tobytes() for v in got] == [v.numpy().tobytes() for v in want]


def test_a_sum_of_many_products():
    """NumPy multiplies broadcast stacks of matrices without BLAS."""
    w = cr.tensor(R.standard_normal((3, 50, 40)))
    product = lambda x: x @ w
    compiled = cr.compile(product)
    for _ in range(3):
        x = cr.tensor(R.standard_normal((3, 30, 50)), requires_grad=True)
        want = cr.autograd.grad(0.1 * product(x).sum(), x)[0]
        assert cr.autograd.grad(0.1 * compiled(x).sum(), x)[0].numpy().tobytes() == want.numpy().tobytes()


def test_saved_arrays_of_other_layouts():
    def inner(x):
        return cr.autograd.grad((x**3).sum(), x, create_graph=True)[0]

    def solve(x):
        return cr.linalg.solve(x @ x.T + cr.eye(4, dtype=cr.float64), b)

    for function in (inner, solve):
        want, *found = both(function, cr.tensor(R.standard_normal((4, 4))), lambda y: (y * y).sum())
        for gradients in found:
            assert gradients[0].numpy().tobytes() == want[0].numpy().tobytes()


def test_gradients_of_gradients_through_random_numbers():
    compiled = cr.compile(lambda x: x**3 * cr.rand(2))
    x = cr.ones(2, requires_grad=True)
    for _ in range(2):
        (g,) = cr.autograd.grad(compiled(x).sum(), x)
    assert g.shape == (2,)
    with pytest.raises(RuntimeError, match="takes the same numbers twice"):
        cr.autograd.grad(compiled(x).sum(), x, create_graph=True)


def test_gradients_of_gradients_count_what_is_captured_once():
    """One captured tensor was computed from another: each is a separate path."""

    def derivatives(make):
        a, x = cr.tensor([1.0, 2.0], requires_grad=True), cr.tensor([0.5, 0.7], requires_grad=True)
        s = a * a
        t = s * 3
        f = make(lambda x: (x * s * t).sum())
        f(x)
        first = cr.autograd.grad(f(x), (x, a), create_graph=True)
        return [*first, *cr.autograd.grad(sum(g.sin().sum() for g in first), (x, a))]

    for found, wanted in zip(derivatives(cr.compile), derivatives(lambda f: f), strict=True):
        assert cr.allclose(found, wanted)
