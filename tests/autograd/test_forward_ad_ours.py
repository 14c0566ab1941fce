"""Extensions of forward_ad beyond PyTorch, and the storage of dual tensors: primitives, threads, memory, nesting."""

import gc
import threading
import weakref

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.interpreters.dual import FORWARD
from chainrule._src.tape.levels import STACK
from chainrule._src.transforms.differences import directional_derivative
from chainrule.autograd import forward_ad as fw

X = np.array([[1.2, -0.4, 0.7], [0.3, 2.0, -1.1], [0.5, 0.1, 1.9]])
V = np.array([[0.2, 1.0, -0.3], [0.7, -0.1, 0.4], [1.0, 0.6, -0.8]])

FUNCTIONS = {
    "ufuncs": lambda x: np.exp(np.sin(x)) / (1 + x * x),
    "reductions": lambda x: np.var(x, axis=0) + np.prod(x, axis=1),
    "products": lambda x: x @ x.T + np.einsum("ij,kj->ik", x, x),
    "linear algebra": lambda x: np.linalg.solve(x, x[0]) * np.linalg.det(x),
    "indexing": lambda x: np.concatenate([x[::2].ravel(), x[[0, 2, 0], 1]]),
    "sorting": lambda x: np.cumsum(np.sort(x.ravel())),
    "where": lambda x: np.where(x > 0.6, x**2, 3 * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_agree_with_differences(name):
    f = FUNCTIONS[name]
    with fw.dual_level():
        y = f(fw.make_dual(cr.from_numpy(X), cr.from_numpy(V)))
        primal, tangent = fw.unpack_dual(y)
    np.testing.assert_allclose(primal.numpy(), f(X), rtol=1e-12)
    np.testing.assert_allclose(tangent.numpy(), directional_derivative(f, X, V), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "sorting"])
def test_forward_over_reverse_agrees_with_reverse_over_forward(name):
    f = FUNCTIONS[name]
    x = cr.from_numpy(X).requires_grad_()
    with fw.dual_level():
        y = np.sum(np.sin(f(fw.make_dual(x, cr.from_numpy(V)))))
        tangent = fw.unpack_dual(y).tangent
        (g,) = cr.autograd.grad(y, x, retain_graph=True)
        first = fw.unpack_dual(g).tangent
        (second,) = cr.autograd.grad(tangent, x)
    np.testing.assert_allclose(first.numpy(), second.numpy(), rtol=1e-10, atol=1e-12)
    gradient = cr.func.grad(lambda x: np.sum(np.sin(f(x))))
    np.testing.assert_allclose(first.numpy(), directional_derivative(gradient, X, V), rtol=1e-6, atol=1e-8)


def test_the_tangent_takes_the_dtype_of_its_primal():
    with fw.dual_level():
        x = fw.make_dual(cr.ones(2), cr.ones(2).double())
        assert fw.unpack_dual(x).tangent.dtype == cr.float32


def test_levels_belong_to_their_thread():
    found = []

    def work():
        found.append(fw.unpack_dual(cr.ones(2)).tangent)
        with fw.dual_level():
            found.append(fw.unpack_dual(fw.make_dual(cr.ones(2), cr.ones(2)) * 3).tangent.tolist())

    with fw.dual_level():
        x = fw.make_dual(cr.ones(2), cr.ones(2))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert fw.unpack_dual(x * 2).tangent.tolist() == [2.0, 2.0]
    assert found == [None, [3.0, 3.0]]


def test_nothing_is_left_behind():
    def step():
        with fw.dual_level():
            x = fw.make_dual(cr.ones(100), cr.ones(100))
            y = (x.exp() * x).sum()
            alive = weakref.ref(y)
        return alive

    gc.collect()
    gc.disable()
    try:
        assert step()() is None
    finally:
        gc.enable()
    assert not FORWARD.tensors and not FORWARD.level and not STACK.levels


def test_dead_tensors_are_forgotten_during_a_long_level():
    with fw.dual_level():
        x = fw.make_dual(cr.ones(2), cr.ones(2))
        for _ in range(2000):
            x = x * 1.0
        assert len(FORWARD.tensors) < 200


def test_a_level_opened_inside_a_transformation_closes_first():
    def f(x):
        fw.enter_dual_level()
        return x

    with pytest.raises(RuntimeError, match="not the last"):
        cr.func.jvp(lambda x: cr.func.vmap(lambda z: _close(f(z)))(x), (cr.ones(2),), (cr.ones(2),))
    while FORWARD.level:
        fw.exit_dual_level()
    assert not STACK.levels


def _close(x):
    with cr.no_grad():
        return cr.func.jvp(lambda z: (fw.exit_dual_level(), z)[1], (x,), (x,))[0]


def test_weights_can_become_leaves_inside():
    with fw.dual_level():
        x = fw.make_dual(cr.tensor([1.0, 2.0]), cr.ones(2))
        w = cr.tensor([3.0, 4.0], requires_grad=True)
        u = cr.ones(2).requires_grad_()
        y = (w * u * x**2).sum()
        y.backward()
        tangent = fw.unpack_dual(y).tangent
        (g,) = cr.autograd.grad((w * x**2).sum(), w)
    assert w.grad.tolist() == [1.0, 4.0] and u.grad.tolist() == [3.0, 16.0]
    assert tangent.item() == 22.0
    assert g.tolist() == [1.0, 4.0]


def test_functional_of_dual_tensors():
    with fw.dual_level():
        x = fw.make_dual(cr.tensor([1.0, 2.0]), cr.tensor([1.0, 10.0]))
        j = fw.unpack_dual(cr.autograd.functional.jacobian(lambda a: a**3, x))
    assert j.primal.tolist() == [[3.0, 0.0], [0.0, 12.0]]
    assert j.tangent.tolist() == [[6.0, 0.0], [0.0, 120.0]]


def test_numpy_with_force_is_the_primal():
    with fw.dual_level():
        x = fw.make_dual(cr.tensor([1.0, 2.0]), cr.ones(2))
        assert x.numpy(force=True).tolist() == [1.0, 2.0]
        with pytest.raises(RuntimeError, match="detach"):
            np.asarray(x)
