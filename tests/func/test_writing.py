"""In-place writes in nested transformations: values of one level into arrays of another."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jacfwd, jacrev, jvp, linear_transpose, linearize, vjp, vmap

X = np.array([1.0, 2.0, 3.0])


def _into_outer(a, b):
    y = a * 1
    y[0] = b[0]
    return (y * b).sum()


def _into_outer_view(a, b):
    y = a * 1
    y[:2] *= b[:2]
    return (y * b).sum()


def _into_outer_rows(a, b):
    y = (a * a[:, None]) * 1
    row = y[1]
    row *= b
    return (y * y * b).sum()


def _whole(a, b):
    y = a * 1
    y *= b
    return (y * b).sum()


def _into_inner(a, b):
    y = b * 1
    y[0] = a[0]
    return (y * b).sum()


def _all_of_inner(a, b):
    y = b * 1
    y[...] = a * 2
    return (y * b).sum()


def _indices_of_inner(a, b):
    y = b * 1
    y[[0]] = a[0]
    y[1:2] += a[1:2]
    return (y * b).sum()


WRITES = [_into_outer, _into_outer_view, _into_outer_rows, _whole, _into_inner, _all_of_inner, _indices_of_inner]


def _slopes(f, x):
    return np.array([(f(x + d) - f(x - d)) / 2e-6 for d in 1e-6 * np.eye(len(x))])


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("face", [np.asarray, cr.tensor])
@pytest.mark.parametrize("outer", [grad, jacrev, jacfwd])
def test_both_derivatives_survive_a_write(write, face, outer) -> None:
    ones = face(np.ones(3))
    forward = lambda a: jvp(lambda b: write(a, b), (a,), (ones,))[1]
    reverse = lambda a: (grad(lambda b: write(a, b))(a) * ones).sum()
    mapped = lambda a: vmap(lambda k: write(a, k * a))(a).sum()
    for f in (forward, reverse, mapped):
        values = cr.Array if face is np.asarray else cr.tensor
        by_numbers = _slopes(lambda x, f=f, values=values: float(f(values(x))), X)
        np.testing.assert_allclose(np.asarray(outer(f)(face(X.copy()))), by_numbers, rtol=1e-6)


@pytest.mark.parametrize("make", [lambda a: a * 1, np.zeros_like])
@pytest.mark.parametrize("face", [np.asarray, cr.tensor])
def test_what_a_jvp_wrote_outside_cannot_be_used_as_if_it_were_plain(make, face) -> None:
    def f(a):
        y = make(a)

        def inner(b):
            y[:] = b * 2
            return (y * b).sum()

        jvp(inner, (a,), (a,))
        return (y * y).sum()

    with pytest.raises(RuntimeError, match="escaped from inside a function: it was written or made inside jvp"):
        grad(f)(face(X))


def _summed(f):
    return lambda x: (x.sum(), f(x))


CALLS = {
    "vjp": lambda f, x: vjp(f, x)[0],
    "vjp_fn": lambda f, x: vjp(f, x)[1](f(x))[0],
    "vjp aux": lambda f, x: vjp(_summed(f), x, has_aux=True)[2],
    "jvp": lambda f, x: jvp(f, (x,), (np.ones_like(x),))[0],
    "jvp tangent": lambda f, x: jvp(f, (x,), (x,))[1],
    "jvp aux": lambda f, x: jvp(_summed(f), (x,), (x,), has_aux=True)[2],
    "vmap": lambda f, x: vmap(f)(x),
    "vmap shared": lambda f, x: vmap(lambda i, x: f(x), (0, None))(np.arange(2), x),
    "vmap not mapped": lambda f, x: vmap(lambda i, x: f(i * 0 + 1 * x), (0, None))(np.arange(2.0), x),
    "grad aux": lambda f, x: grad(_summed(f), has_aux=True)(x)[1],
    "jacrev aux": lambda f, x: jacrev(_summed(f), has_aux=True)(x)[1],
    "jacfwd aux": lambda f, x: jacfwd(_summed(f), has_aux=True)(x)[1],
    "linearize": lambda f, x: linearize(f, x)[0],
    "jvp_fn": lambda f, x: linearize(f, x)[1](x),
    "linear_transpose": lambda f, x: linear_transpose(f, x)(f(x))[0],
}
SHARED = {
    "x": lambda x: x,
    "x.T": lambda x: x.T,
    "x[::-1]": lambda x: x[..., ::-1],
    "broadcast": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "diagonal": lambda x: np.diagonal(x) if x.ndim > 1 else x,
    "real": lambda x: x.real,
}


@pytest.mark.parametrize("function", SHARED)
@pytest.mark.parametrize("call", CALLS)
def test_results_are_arrays_of_their_own(call, function) -> None:
    x = np.arange(6.0).reshape(2, 3)
    y = CALLS[call](SHARED[function], x)
    assert type(y) is np.ndarray and y.flags.writeable and not np.shares_memory(x, y)
    y[...] = np.arange(y.size).reshape(y.shape)  # no two elements share memory
    np.testing.assert_array_equal(y.ravel(), np.arange(y.size))


def test_results_that_are_the_same_are_two_arrays() -> None:
    twice = lambda x: {"p": x, "q": x}
    for both in (jvp(twice, (X,), (X,))[1], jacfwd(twice)(X), jacrev(twice)(X), vjp(twice, X)[0], vmap(twice)(X)):
        assert not np.shares_memory(both["p"], both["q"])


@pytest.mark.parametrize("start", [lambda f, x: vjp(f, x), lambda f, x: linearize(f, x)])
def test_writing_into_a_result_leaves_the_derivative_alone(start) -> None:
    y, pull = start(np.exp, X)
    y[:] = 0
    np.testing.assert_allclose(np.ravel(pull(np.ones(3))), np.exp(X))


def test_what_all_examples_share_is_one_array_for_each_afterwards() -> None:
    def f(a):
        y = a * 1
        rows = vmap(lambda b: y)(a)
        rows[0] = 7.0
        return (rows * y).sum()

    np.testing.assert_allclose(grad(f)(X), 7 + 4 * X)


def test_of_an_index_that_comes_twice_the_last_stays_in_every_example() -> None:
    def pivoted(a):
        a = a * 1
        for k in range(2):
            p = np.argmax(np.abs(a[k:, k])) + k
            a[[k, p]] = a[[p, k]]  # for some examples p equals k
            a[k + 1 :] -= np.outer(a[k + 1 :, k] / a[k, k], a[k])
        return np.sum(a * np.cos(np.arange(9.0)).reshape(3, 3))

    matrices = np.random.default_rng(3).uniform(-1, 1, (4, 3, 3)) + np.eye(3)
    for d in (grad, jacfwd):
        np.testing.assert_allclose(vmap(d(pivoted))(matrices), [d(pivoted)(m) for m in matrices], rtol=1e-9)


# -- non-contiguous arguments -----------------------------------------------------------------------------------------

LAYOUTS = {
    "C": lambda: np.ones((2, 2)),
    "F": lambda: np.asfortranarray(np.ones((2, 2))),
    "rows with gaps": lambda: np.ones((4, 2))[::2],
    "columns with gaps": lambda: np.ones((2, 4))[:, ::2],
    "both with gaps": lambda: np.ones((4, 4))[::2, ::2],
    "reversed": lambda: np.ones((2, 2))[::-1],
    "columns reversed": lambda: np.ones((2, 2))[:, ::-1],
    "all reversed": lambda: np.ones((2, 2))[::-1, ::-1],
    "of three axes": lambda: np.ones((2, 3, 2)).transpose(1, 0, 2)[:2, :, 0],
    "of a wide array": lambda: np.ones((2, 30000))[:, :2],
    "large": lambda: np.ones((200, 200))[::2],
}


def writing(through):
    def function(x):
        through(x)[1] = 100.0
        return np.sum(x * x)

    return function


THROUGH = {
    "reshape": lambda x: x.reshape(-1),
    "reshape, F": lambda x: x.reshape(-1, order="F"),
    "ravel": lambda x: x.ravel(),
    "transpose": lambda x: x.T.reshape(-1),
    "part": lambda x: x[:1].reshape(-1),
    "turned": lambda x: x.swapaxes(0, 1)[::-1].reshape(-1),
    "flat": lambda x: x.flat,
}
VALUES = {
    "value_and_grad": lambda f, x: cr.value_and_grad(f)(x)[0],
    "vjp": lambda f, x: cr.vjp(f, x)[0],
    "jvp": lambda f, x: cr.jvp(f, (x,), (np.ones(x.shape),))[0],
    "linearize": lambda f, x: cr.func.linearize(f, x)[0],
    "vmap": lambda f, x: cr.vmap(f)(np.lib.stride_tricks.as_strided(x, (1, *x.shape), (8, *x.strides)))[0],
    "jvp of value_and_grad": lambda f, x: cr.jvp(lambda x: cr.value_and_grad(f)(x)[0], (x,), (np.ones(x.shape),))[0],
}


@pytest.mark.parametrize("transformation", VALUES)
@pytest.mark.parametrize("way", THROUGH)
def test_writing_through_what_numpy_makes_a_view_or_a_copy(way, transformation):
    function = writing(THROUGH[way])
    for layout, make in LAYOUTS.items():
        assert VALUES[transformation](function, make()) == function(make()), layout


@pytest.mark.parametrize("transformation", ["value_and_grad", "vjp", "linearize"])
def test_elements_that_share_their_place_in_memory_are_not_written_apart(transformation):
    for shape, strides in (((2, 2), (0, 8)), ((2, 2), (8, 8))):
        x = np.lib.stride_tricks.as_strided(np.ones(4), shape, strides)
        with pytest.raises((RuntimeError, ValueError), match="read-only"):
            VALUES[transformation](writing(lambda x: x[0]), x)
        assert x.sum() == 4
    x = np.ones((2, 2))
    x.flags.writeable = False
    with pytest.raises((RuntimeError, ValueError), match="read-only"):
        VALUES[transformation](writing(lambda x: x[0]), x)


READ_ONLY = {
    "np.broadcast_to": lambda x: np.broadcast_to(x, (2, 2)),
    "np.broadcast_to, larger": lambda x: np.broadcast_to(x, (3, 2, 2)),
    "a part of it": lambda x: np.broadcast_to(x, (2, 2))[:1].T,
    "np.diagonal": np.diagonal,
    "x.diagonal": lambda x: x.diagonal(),
    "np.diag": np.diag,
    "sliding_window_view": lambda x: np.lib.stride_tricks.sliding_window_view(x, (1, 1)),
}


@pytest.mark.parametrize("transformation", VALUES)
@pytest.mark.parametrize("way", READ_ONLY)
def test_what_numpy_makes_read_only_is_not_written_to(way, transformation):
    def function(x):
        READ_ONLY[way](x)[0] = 9.0
        return np.sum(x)

    with pytest.raises((ValueError, RuntimeError), match="read-only"):
        VALUES[transformation](function, np.ones((2, 2)))


def test_a_block_of_one_array_is_a_copy():
    x = cr.Array(np.ones((2, 2)))
    np.block(x)[0] = np.block([x])[0] = 9.0
    assert np.asarray(x).sum() == 4
    np.broadcast_arrays(x, x[0])[0][0] = 9.0  # which is x itself in NumPy
    assert np.asarray(x).sum() == 20


TWICE = {
    "jvp": lambda f: lambda a: jvp(f, (a,), (cr.ones_like(a),))[1],
    "grad": grad,
    "jacfwd": jacfwd,
    "jacrev": jacrev,
}
WRITES = {
    "product": lambda v, a: v.mul_(a),
    "element": lambda v, a: v.__setitem__(2, v[2].clone() * a),
    "part": lambda v, a: v[1:].mul_(a),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("second", TWICE)
@pytest.mark.parametrize("first", TWICE)
@pytest.mark.parametrize("outer", [jacfwd, jacrev])
def test_second_derivatives_after_a_write_into_what_an_outer_transformation_carries(outer, first, second, write):
    """d²/da² of Σ wᵢ·xᵢ²·a², with w = 1 where v is written to, is 2·Σ wᵢ·xᵢ²."""
    x = cr.tensor([1.0, 2.0, 3.0], dtype=cr.float64)

    def function(x):
        def inner(a):
            v = x * 1
            WRITES[write](v, a)
            return (v * v).sum()

        return TWICE[second](TWICE[first](inner))(cr.tensor(2.0, dtype=cr.float64))

    written = {"product": [1, 1, 1], "element": [0, 0, 1], "part": [0, 1, 1]}[write]
    expected = 4 * x * cr.tensor(written)
    assert cr.allclose(outer(function)(x), expected)


@pytest.mark.parametrize("transform", ["jvp", "vmap", "jacfwd of grad"])
def test_a_write_keeps_the_strides(transform):
    """The diagonal has strides (9, 4), so flatten() copies it, and a write into the copy changes nothing else."""
    strides = []

    def f(x):
        y = grad(lambda x: cr.diag_embed(x).square().sum())(x)
        strides.append(y.stride())
        y[-2].add_(1)
        strides.append(y.stride())
        y.flatten().add_(1)
        return y.sum()

    x = cr.ones(3, 3, dtype=cr.float64)
    if transform == "jvp":
        assert cr.func.jvp(f, (x,), (x,)) == (21, 18)
    elif transform == "vmap":
        assert cr.func.vmap(f)(x[None]) == 21
    else:
        assert not jacfwd(grad(f))(x).any()
    assert strides == [(9, 4), (9, 4)]
