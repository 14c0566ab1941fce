"""LU factors that several functions share: results have the bits of NumPy's, and changed matrices are factored again."""

import gc
import threading
import weakref

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.native.blas import blas_function
from chainrule._src.table import gufuncs, recent_factors
from chainrule._src.table.recent_factors import LARGEST, SMALLEST, factors_of, inverse_for_rules

R = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def one_thread():
    """Use one thread of OpenBLAS, and forget earlier factors."""
    if blas_function("openblas_set_num_threads") is None:
        pytest.skip("the BLAS is not OpenBLAS")
    import ctypes

    threads = recent_factors._threads()
    set_threads = ctypes.CFUNCTYPE(None, ctypes.c_int)(blas_function("openblas_set_num_threads").address)
    set_threads(1)
    recent_factors._are_available.cache_clear()
    recent_factors._RECENT.factors = recent_factors._RECENT.owner = None
    yield
    set_threads(threads)
    recent_factors._are_available.cache_clear()


@pytest.fixture
def factored(monkeypatch):
    """Return a list with the size of each matrix that is factored."""
    sizes = []
    original = recent_factors._factored

    def counted(x):
        sizes.append(len(x))
        return original(x)

    recent_factors._are_available()
    monkeypatch.setattr(recent_factors, "_factored", counted)
    return sizes


def assert_numpys(x):
    """Check the bits of all functions of a matrix."""
    n = len(x)
    for y in (R.standard_normal((n, 1)), R.standard_normal((3, n)).T, R.standard_normal((n, n))):
        np.testing.assert_array_equal(gufuncs.solve(x, y), np.linalg.solve(x, y))
    np.testing.assert_array_equal(gufuncs.inv(x), np.linalg.inv(x))
    assert tuple(gufuncs.slogdet(x)) == tuple(np.linalg.slogdet(x))


@pytest.mark.parametrize("n", [SMALLEST - 1, SMALLEST, SMALLEST + 1, 100, 127, 200, 301])
def test_bits(n, factored):
    x = R.standard_normal((n, n))
    symmetric = x @ x.T + np.eye(n)
    for matrix in (
        x,
        x.T,
        -x[::-1],
        symmetric,
        symmetric.T,
        np.asfortranarray(x),
        R.standard_normal((2 * n, 2 * n))[::2, ::2],
    ):
        assert_numpys(matrix)
    assert bool(factored) == (n >= SMALLEST)


def test_one_factorization_for_value_and_gradient(factored):
    x = R.standard_normal((80, 80))
    x, y = x @ x.T + np.eye(80), R.standard_normal(80)

    def loss(x):
        return y @ np.linalg.solve(x, y) + np.linalg.slogdet(x)[1]

    found = cr.grad(loss)(x)
    inverse = np.linalg.inv(x)
    np.testing.assert_allclose(found, inverse.T - np.outer(inverse.T @ y, inverse @ y), rtol=1e-9, atol=1e-9)
    assert factored == [80]
    np.testing.assert_array_equal(cr.compile(cr.grad(loss))(x), found)


@pytest.mark.parametrize("n", [SMALLEST, 130])
def test_inverses_for_rules(n):
    x = R.standard_normal((n, n))
    np.testing.assert_allclose(inverse_for_rules(x) @ x, np.eye(n), atol=1e-9)
    np.testing.assert_allclose(inverse_for_rules(x.T) @ x.T, np.eye(n), atol=1e-9)
    with pytest.raises(np.linalg.LinAlgError):
        inverse_for_rules(np.zeros((n, n)))


def test_a_matrix_that_is_written(factored):
    x = R.standard_normal((70, 70))
    for k in range(3):
        assert_numpys(x)
        x[k, 0] += 1.0
        assert_numpys(x)
    assert factored == [70] * 4


def test_bits_that_compare_equal_are_different_matrices(factored):
    x = np.eye(SMALLEST)
    x[0, 1] = 0.0
    assert_numpys(x)
    negative = x.copy()
    negative[0, 1] = -0.0
    assert_numpys(negative)
    assert len(factored) == 2


def test_singular_and_infinite_matrices():
    n = 66
    singular = R.standard_normal((n, n))
    singular[:, 3] = 0.0
    assert factors_of(singular) is None
    with pytest.raises(cr.linalg.LinAlgError, match="singular"):
        cr.linalg.inv(cr.tensor(singular))
    assert tuple(gufuncs.slogdet(singular)) == (0.0, -np.inf)
    for bad in (np.nan, np.inf):
        x = R.standard_normal((n, n))
        x[2, 3] = bad
        y = R.standard_normal((n, 2))
        with np.errstate(all="ignore"):
            for call in (lambda m, x=x, y=y: m.solve(x, y), lambda m, x=x: m.inv(x), lambda m, x=x: m.slogdet(x)):
                np.testing.assert_array_equal(np.array(call(gufuncs)), np.array(call(np.linalg)))


def test_factors_are_freed_with_their_matrix():
    x = R.standard_normal((64, 64))
    assert factors_of(x.T) is factors_of(x.T)
    kept = weakref.ref(recent_factors._RECENT.factors.matrix)
    del x
    gc.collect()
    assert kept() is None


def test_sizes_dtypes_and_threads_without_shared_factors(monkeypatch):
    assert factors_of(np.eye(SMALLEST - 1)) is None
    assert factors_of(np.eye(LARGEST + 1)) is None
    assert not recent_factors.has_shared_factors(np.eye(100, dtype=np.float32))
    assert not recent_factors.has_shared_factors(np.ones((2, 100, 100)))
    monkeypatch.setattr(recent_factors, "_threads", lambda: 2)
    assert factors_of(R.standard_normal((100, 100))) is None


def test_threads_of_python():
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(10):
                x, y = rng.standard_normal((70, 70)), rng.standard_normal((70, 1))
                assert np.array_equal(gufuncs.solve(x, y), np.linalg.solve(x, y))
                assert np.array_equal(gufuncs.inv(x), np.linalg.inv(x))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
