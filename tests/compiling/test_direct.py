"""Calls that use the fast path, and calls that must not."""

from __future__ import annotations

import gc
import operator

import numpy as np
import pytest

import chainrule as cr


def scaled(x, unused=None):
    """Depends on the layout of an argument that it does not compute with."""
    y = np.tanh(x) * x.shape[0]
    return y if unused is None else y + unused.ndim


def warm(function, *args):
    """Compile a function, and call it often enough that the fast path is used."""
    compiled = cr.compile(function)
    for _ in range(3):
        compiled(*args)
    return compiled


def same(compiled, function, *args, **kwargs):
    got, want = compiled(*args, **kwargs), function(*args, **kwargs)
    assert type(got) is type(want)
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


X = np.linspace(-1, 1, 6)


@pytest.mark.parametrize(
    "other",
    [
        np.linspace(-1, 1, 5),
        X.astype(np.float32),
        X.reshape(2, 3),
        np.linspace(-1, 1, 12)[::2],
        X[::-1],
        X.astype(">f8"),
        np.float64(0.5) * np.ones(()) + np.zeros(6),
        X.view(np.matrix)[0].A,
    ],
)
def test_an_array_of_another_kind_is_computed_as_eager_does(other):
    compiled = warm(lambda x: np.tanh(x) * x.ndim, X)
    same(compiled, lambda x: np.tanh(x) * x.ndim, other)
    same(compiled, lambda x: np.tanh(x) * x.ndim, X)


def test_the_shape_of_an_argument_that_is_not_computed_with():
    compiled = warm(scaled, X, X)
    same(compiled, scaled, X, X)
    same(compiled, scaled, X, X.reshape(2, 3))
    same(compiled, scaled, X, np.ones(()))
    same(compiled, scaled, X)
    same(compiled, scaled, X, unused=X)


def test_tensors_and_arrays_in_turns():
    def double(x):
        return x * 2.0

    compiled = warm(double, X)
    assert isinstance(compiled(cr.tensor([1.0])), cr.Tensor)
    assert type(compiled(X)) is np.ndarray
    t = cr.tensor(X)
    assert isinstance(compiled(t), cr.Tensor)
    assert type(compiled(X)) is np.ndarray
    assert isinstance(compiled(t), cr.Tensor)


def test_results_of_every_structure():
    functions = [
        lambda x: x + 1.0,
        lambda x: (x + 1.0,),
        lambda x: [x + 1.0, x],
        lambda x: (x + 1.0, x, x + 1.0),
        lambda x: {"a": x + 1.0, "b": (x, 3)},
        lambda x: (x, None),
        lambda x: ((x,), x * 2.0),
    ]
    for function in functions:
        compiled = warm(function, X)
        got, want = compiled(X), function(X)
        assert str(got) == str(want) and type(got) is type(want)


def test_what_is_captured_is_read_where_it_lies():
    scale, table = np.array(2.0), np.arange(6.0)
    compiled = warm(lambda x: x * scale + table, X)
    scale[...] = 5.0
    table += 1.0
    np.testing.assert_array_equal(compiled(X), X * 5.0 + table)


def test_captured_tensors_are_read_where_they_are():
    w = cr.tensor([1.0, 2.0])
    compiled = warm(lambda x: x * w, np.ones(2))
    w.mul_(3.0)
    np.testing.assert_array_equal(compiled(np.ones(2)).numpy(), [3.0, 6.0])


def test_results_are_the_callers_own():
    compiled = warm(lambda x: (x, x, np.tanh(x)), X)
    x = X.copy()
    first, _, third = compiled(x)
    first += 1.0
    third += 1.0
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(compiled(x)[2], np.tanh(X))


@pytest.mark.filterwarnings("ignore:compile")
def test_inside_other_transformations():
    compiled = warm(lambda x: np.sum(np.tanh(x)), X)
    np.testing.assert_allclose(cr.func.vjp(compiled, X)[1](np.ones(()))[0], 1 - np.tanh(X) ** 2)
    np.testing.assert_allclose(cr.func.vmap(compiled)(np.stack([X, X])), np.sum(np.tanh(X)) * np.ones(2))
    np.testing.assert_allclose(cr.func.vmap(lambda s: compiled(X) * s)(np.ones(2)), np.sum(np.tanh(X)) * np.ones(2))


def test_modes():
    w = cr.tensor(2.0, requires_grad=True)
    compiled = warm(lambda x: (w.detach() * cr.tensor(x)).numpy(), X)
    with cr.no_grad():
        np.testing.assert_array_equal(compiled(X), 2 * X)
    np.testing.assert_array_equal(compiled(X), 2 * X)


def test_floating_point_exceptions():
    compiled = warm(lambda x: 1.0 / x, X)
    with pytest.warns(RuntimeWarning, match="divide by zero encountered"):
        compiled(np.zeros(6))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        compiled(np.zeros(6))
    with np.errstate(all="ignore"):
        assert np.isinf(compiled(np.zeros(6))).all()


def test_a_value_that_python_reads_is_not_skipped():
    compiled = warm(lambda x: x if x[0] > 0 else -x, X)
    np.testing.assert_array_equal(compiled(X), -X)
    np.testing.assert_array_equal(compiled(-X), -X)
    np.testing.assert_array_equal(compiled(X), -X)


def test_random_numbers_go_on():
    cr.manual_seed(0)
    compiled = cr.compile(lambda x: x + cr.rand(6).numpy())
    got = [compiled(X) for _ in range(4)]
    cr.manual_seed(0)
    want = [X + cr.rand(6).numpy() for _ in range(4)]
    np.testing.assert_array_equal(got, want)


def test_the_collector_is_as_it_was():
    assert gc.isenabled()
    cr.compile(np.tanh)(X)
    assert gc.isenabled()
    gc.disable()
    try:
        cr.compile(np.tanh)(X)
        assert not gc.isenabled()
    finally:
        gc.enable()
    with pytest.raises(ZeroDivisionError):
        cr.compile(lambda x: 1 / 0)(X)
    assert gc.isenabled()


def _turned_product(x, y):
    return x.T @ y


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(8, 16, 1), (8, 1, 16), (1, 16, 5), (1, 16, 1), (8, 1, 1), (1, 1, 16), (1, 1, 1), (3, 2, 4)]
)
def test_products_of_matrices_that_are_vectors(m, k, n, dtype):
    """Signed zeros, infinities and nan show which routine was used."""
    r = np.random.default_rng(0)
    values = np.array([0.0, -0.0, 1.0, -1.5, np.inf, np.nan, 3e-40])

    def bits(x):
        return np.where(np.isnan(x), np.nan, x).tobytes()

    for turned in (False, True):
        multiply = _turned_product if turned else operator.matmul
        compiled = cr.compile(multiply)
        for _ in range(20):
            x, y = r.choice(values, (k, m) if turned else (m, k)), r.choice(values, (k, n))
            x, y = cr.tensor(x.astype(dtype)), cr.tensor(y.astype(dtype))
            with np.errstate(all="ignore"):
                assert bits(compiled(x, y).numpy()) == bits(multiply(x, y).numpy())
