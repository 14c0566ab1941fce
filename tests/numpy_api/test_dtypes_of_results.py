"""Dtypes of results, and casts that NumPy rejects."""

import numpy as np
import pytest

import chainrule as cr

SINGLE = np.array([1.0, 2.0, 4.0], np.float32)
INTEGERS = np.array([3, 1, 2])
CALLS = {
    "quantile": lambda x: np.quantile(x, 0.3),
    "quantile, of a list": lambda x: np.quantile(x, [0.1, 0.9]),
    "quantile, of float64": lambda x: np.quantile(x, np.float64(0.3)),
    "quantile, of an array": lambda x: np.quantile(x, np.array(0.3)),
    "quantile, of float32": lambda x: np.quantile(x, np.float32([0.1, 0.9])),
    "quantile, of integers": lambda x: np.quantile(x, [0, 1]),
    "percentile": lambda x: np.percentile(x, 30),
    "percentile, of a list": lambda x: np.percentile(x, [10, 90]),
    "quantile, of one float32": lambda x: np.quantile(x, np.float32(0.3)),
    "median": np.median,
    "nanquantile, of float64": lambda x: np.nanquantile(x, np.float64(0.3)),
    "nanquantile, of integers": lambda x: np.nanquantile(x, [0, 1]),
    "nanpercentile, of float32": lambda x: np.nanpercentile(x, np.float32([10, 90])),
    "nanquantile": lambda x: np.nanquantile(x, 0.3),
    "polyval": lambda x: np.polyval([1.0, 2.0], x),
    "polyval, of integers": lambda x: np.polyval([1, 2], x),
    "polyval, of float32": lambda x: np.polyval(np.float32([1, 2]), x),
    "vander": np.vander,
    "concatenate": lambda x: np.concatenate([x, x], dtype=np.float64),
    "std, where": lambda x: np.std(x, where=x > 1),
    "logaddexp.reduce": lambda x: np.logaddexp.reduce(x, where=x > 1, dtype=np.float64),
    "logaddexp.reduce, initial": lambda x: np.logaddexp.reduce(x, initial=2.0),
}


@pytest.mark.parametrize("x", [SINGLE, INTEGERS], ids=["float32", "int64"])
@pytest.mark.parametrize("name", CALLS)
def test_dtypes_and_values(name, x):
    wanted, found = CALLS[name](x), CALLS[name](cr.Array(x))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


TRUTHS = np.array([[True, False], [True, True]])
HALVES = np.array([[1, 2], [3, 4]], np.float16)
COMPLEX = np.array([[1 + 2j, 3 - 1j], [2, 0.5j], [2, 1j]])
OF_OTHER_DTYPES = {
    "inner of booleans": (np.inner, TRUTHS),
    "tensordot of booleans": (np.tensordot, TRUTHS),
    "dot of stacks of booleans": (np.dot, TRUTHS[None, :, ::-1]),
    "multi_dot of booleans": (lambda x, y: np.linalg.multi_dot([x, y, x]), TRUTHS),
    "multi_dot of halves": (lambda x, y: np.linalg.multi_dot([x, y, x]), HALVES),
    "powers of halves": (lambda x, y: np.linalg.matrix_power(x, 3), HALVES),
    "power 0 of halves": (lambda x, y: np.linalg.matrix_power(x, 0), HALVES),
    "median of complex numbers": (lambda x, y: np.median(x), COMPLEX),
    "medians of complex numbers": (lambda x, y: np.median(x, axis=0, keepdims=True), COMPLEX.astype("c8")),
    "median with a complex nan": (lambda x, y: np.median(x, axis=1), COMPLEX * [1, complex(0, np.nan)]),
}


@pytest.mark.parametrize("name", OF_OTHER_DTYPES)
def test_of_other_dtypes(name):
    function, x = OF_OTHER_DTYPES[name]
    wanted, found = function(x, x), function(cr.Array(x), cr.Array(x))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(np.asarray(found), wanted)


def test_the_gradient_of_a_complex_median_goes_to_the_elements_in_the_middle():
    x = cr.Array(COMPLEX[:, 1]).requires_grad_()
    (np.median(x) * (1 - 1j)).real.backward()
    assert x.grad.tolist() == [0, 0, 1 + 1j]


def refused():
    z, i = cr.Array([1 + 5j]), cr.Array(np.array([1, 2]))
    yield lambda: np.concatenate([z, z], dtype=np.float64)
    yield lambda: np.stack([z, z], dtype=np.float64)
    yield lambda: np.vstack([z, z], dtype=np.float64)
    yield lambda: np.exp(i, out=i)
    yield lambda: np.exp(i.tensor, out=i.tensor)
    yield lambda: np.cumsum(i + 0.5, out=i)
    yield lambda: np.add(i, 0.5, out=i)


@pytest.mark.parametrize("call", list(refused()))
def test_casts_that_numpy_refuses(call):
    with pytest.raises(TypeError, match="Cannot cast"):
        call()


def test_casts_that_were_asked_for():
    i = cr.Array(np.array([1, 2]))
    np.add(i, 0.5, out=i, casting="unsafe")
    assert i.tolist() == [1, 2]
    found = np.concatenate([cr.Array([1 + 5j])], dtype=np.float64, casting="unsafe")
    assert found.tolist() == [1.0]


@pytest.mark.parametrize("transform", [lambda f, x: cr.vjp(f, x), lambda f, x: cr.jvp(f, (x,), (x,))])
def test_whole_units_of_time_have_no_derivative(transform):
    dt = np.timedelta64(36, "h")
    for f in (lambda x: x * dt, lambda x: np.multiply(dt, x), lambda x: np.sum(x * dt) / np.timedelta64(1, "h")):
        with pytest.raises(TypeError, match="an integer number of time units"):
            transform(f, np.array([1.0, 2.0]))
    value = transform(lambda x: x * (dt / np.timedelta64(1, "h")), np.array([1.0, 2.0]))[0]
    assert value.tolist() == [36.0, 72.0]


SMALL = [np.array([[2, 1], [3, 1]], dtype) for dtype in (np.int8, np.uint8, np.int32, bool)]
OF_INTEGERS = {
    "angle": np.angle,
    "matrix_power": lambda x: np.linalg.matrix_power(x, 3),
    "vdot": lambda x: np.vdot(x, x),
    "vecdot": lambda x: np.vecdot(x, x),
    "correlate": lambda x: np.correlate(x[0], x[1], "same"),
    "isclose": lambda x: np.isclose(x, x[::-1]),
    "modf": lambda x: np.modf(x)[0],
}


@pytest.mark.parametrize("x", SMALL, ids=lambda x: x.dtype.name)
@pytest.mark.parametrize("name", OF_INTEGERS)
def test_integers_and_booleans(name, x):
    wanted, found = OF_INTEGERS[name](x), OF_INTEGERS[name](cr.Array(x))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(np.asarray(found), wanted)
