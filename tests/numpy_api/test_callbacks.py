"""Functions that call a user's function: its arguments are Arrays if the caller's are, so NumPy's defaults apply in it."""

import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule.utils.checkpoint import checkpoint

X = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 10.0]])

CALLS = {
    "std": lambda x: np.apply_along_axis(lambda v: v.std(), 1, x),
    "repeat": lambda x: np.apply_along_axis(lambda v: v.repeat(2), 1, x),
    "reversed": lambda x: np.apply_along_axis(lambda v: v[::-1] / v.size, 0, x),
    "an array in a further argument": lambda x: np.apply_along_axis(lambda v, w, k: w.var() * v + k, 1, x, x[0], k=2),
    "a list as the result": lambda x: np.apply_along_axis(lambda v: [v.max(0), v.var()], 1, x),
    "over axes": lambda x: np.apply_over_axes(lambda a, axis: a.std(axis, keepdims=True), x, [0, -1]),
    "pieces": lambda x: np.piecewise(x, [x < 3, x >= 3], [lambda v: v - v.std(), lambda v: v * v.var()]),
    "pieces, with an argument": lambda x: np.piecewise(x, [x < 3], [lambda v, p: v.std() * p, 7.0], x.sum()),
}
RUNS = {
    "Array": lambda f: f(cr.Array(X)),
    "vjp": lambda f: cr.vjp(f, X)[0],
    "jvp": lambda f: cr.jvp(f, (X,), (X,))[0],
    "vmap": lambda f: cr.vmap(f)(np.stack([X, X]))[1],
    "compile": lambda f: cr.compile(f)(X),
    "compiled jvp": lambda f: cr.compile(lambda x: cr.jvp(f, (x,), (x,))[0])(X),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("call", CALLS)
def test_a_callback_computes_as_in_numpy(call, run):
    np.testing.assert_allclose(np.asarray(RUNS[run](CALLS[call])), CALLS[call](X), rtol=1e-12)


def test_with_a_tensor_among_the_arguments_callbacks_have_tensors():
    kinds = []
    for x, other in ((cr.tensor(X), 1.0), (cr.Array(X), 1.0), (cr.Array(X), cr.tensor(1.0))):
        np.apply_along_axis(lambda v, w: kinds.append(type(v)) or v * w, 0, x, other)
    assert kinds == [cr.Tensor] * 3 + [cr.Array] * 3 + [cr.Tensor] * 3


PIECES = {
    "elementwise": lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, np.sqrt]),
    "one where nothing else is defined": lambda x: np.piecewise(x, [x > 0], [np.log, 0.5]),
    "of all that were selected": lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda v: v - v.mean(), np.cumsum]),
    "their number": lambda x: np.piecewise(x, [x > 0.5], [lambda v: v * v.size, lambda v: v * x.sum()]),
    "numbers": lambda x: np.piecewise(x, [x > 0.5], [1, 2.5]),
}


@pytest.mark.parametrize("shape", [(5,), (6, 3), (4, 2, 2)])
@pytest.mark.parametrize("pieces", PIECES)
def test_each_example_of_vmap_has_pieces_of_its_own(pieces, shape):
    f = PIECES[pieces]
    x = np.random.default_rng(3).standard_normal(shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(cr.vmap(f)(x), [f(row) for row in x])
        of_each = [cr.grad(lambda row: np.sum(f(row) ** 2))(row) for row in x]
        np.testing.assert_allclose(cr.grad(lambda x: np.sum(cr.vmap(f)(x) ** 2))(x), of_each)
        np.testing.assert_allclose(cr.vmap(cr.grad(lambda row: np.sum(f(row) ** 2)))(x), of_each)


def test_pieces_of_an_example_of_two_vmaps():
    x = np.random.default_rng(3).standard_normal((4, 3))
    limits = np.array([-0.5, 0.0, 0.5])

    def f(x, limit):
        return np.piecewise(x, [x > limit], [lambda v: v / v.size, 1.0])

    got = cr.vmap(lambda limit: cr.vmap(lambda row: f(row, limit))(x))(limits)
    np.testing.assert_allclose(got, [[f(row, limit) for row in x] for limit in limits])


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpointed_function_has_arrays_as_they_were(reentrant):
    x, w = cr.Array(X[0]), cr.Array([3.0, 4.0, 6.0], requires_grad=True)
    y = checkpoint(lambda x, w: x * w.std(), x, w, use_reentrant=reentrant)
    x *= 10  # continues with its own memory, also for the second run
    y.sum().backward()
    np.testing.assert_allclose(w.grad, cr.grad(lambda w: np.sum(X[0] * w.std()))(w.detach()))
