"""reduce, accumulate, reduceat, outer and at of all ufuncs: values, dtypes and errors are NumPy's."""

import numpy as np
import pytest

import chainrule as cr

UFUNCS = sorted({u for u in vars(np).values() if isinstance(u, np.ufunc) and not u.signature}, key=lambda u: u.__name__)
DTYPES = ["bool", "int8", "uint64", "float16", "float32", "complex64"]
METHODS = {
    "reduce": lambda u, x, y: u.reduce(x),
    "reduce over all": lambda u, x, y: u.reduce(x, axis=None),
    "reduce and keep": lambda u, x, y: u.reduce(x, axis=0, keepdims=True),
    "reduce from a number": lambda u, x, y: u.reduce(x, axis=0, initial=1),
    "reduce under a mask": lambda u, x, y: u.reduce(x, axis=0, where=np.arange(4)[:, None] > 1, initial=1),
    "reduce in a dtype": lambda u, x, y: u.reduce(x, dtype=np.float64),
    "reduce nothing": lambda u, x, y: u.reduce(x[:0]),
    "accumulate": lambda u, x, y: u.accumulate(x),
    "accumulate nothing": lambda u, x, y: u.accumulate(x[:0]),
    "reduceat": lambda u, x, y: u.reduceat(x, [0, 2, 1]),
    "outer": lambda u, x, y: u.outer(y, x),
    "outer with a number": lambda u, x, y: u.outer(y, 2),
    "at": lambda u, x, y: written(u, x, y),
}
# NumPy's loops for these overlap with their own result when they reduce a row: np.power.reduce([.3, 1.2, .7]) is .3 ** 2
NOT_ROWS = (np.arctan2, np.power)


def written(u, x, y):
    x = x.copy()
    u.at(x, [0, 0, 2], *[y] * (u.nin - 1))
    return x


def sample(dtype, shape):
    rng = np.random.default_rng(3)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    x = rng.uniform(0 if "u" in dtype else -3, 4, shape)
    return (x + 1j * x[::-1] if "c" in dtype else x).astype(dtype)


def outcome(f, *args):
    try:
        return f(*args)
    except (TypeError, ValueError) as error:
        return error


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore")
def test_as_numpy(method, dtype):
    x, y = sample(dtype, (4, 3)), sample(dtype, (3,))
    for u in UFUNCS:
        if (u.nin == 1 and method != "at") or u.nout > 1:
            continue
        want, got = (outcome(METHODS[method], u, *args) for args in ((x, y), (cr.Array(x), cr.Array(y))))
        name = f"{u.__name__} of {dtype}: {got!r} for {want!r}"
        if isinstance(want, Exception):
            kind = TypeError if isinstance(want, TypeError) else type(want)
            assert isinstance(got, kind), name
        elif u not in NOT_ROWS or method not in ("reduce over all", "reduceat"):
            assert got.dtype == want.dtype, name
            assert got.shape == want.shape, name
            tolerance = 2e-3 if want.dtype == np.float16 else 1e-5
            np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance, err_msg=name)


X = np.array([[0.7, 1.3, 0.4], [1.1, 0.6, 0.9], [0.8, 1.7, 0.5]])
SMOOTH = [np.subtract, np.divide, np.power, np.hypot, np.logaddexp2, np.maximum, np.logaddexp, np.multiply]
DERIVATIVES = {
    "reduce": lambda u, x: u.reduce(x),
    "reduce a row": lambda u, x: u.reduce(x, axis=-1, keepdims=True),
    "reduce from a number": lambda u, x: u.reduce(x, axis=0, initial=1.2),
    "reduce under a mask": lambda u, x: u.reduce(x, axis=0, where=np.arange(3)[:, None] != 1, initial=1.2),
    "accumulate": lambda u, x: u.accumulate(x, axis=1),
    "reduceat": lambda u, x: u.reduceat(x, [0, 2, 1]),
    "at": lambda u, x: written(u, x, x[1]),
}


@pytest.mark.parametrize("method", DERIVATIVES)
@pytest.mark.parametrize("u", SMOOTH)
def test_derivatives(u, method):
    if u in NOT_ROWS and "row" in method:
        return

    def f(x):
        return DERIVATIVES[method](u, x)

    push = (f(X + 1e-6 * X) - f(X - 1e-6 * X)) / 2e-6
    assert np.allclose(cr.jvp(f, (X,), (X,))[1], push, atol=1e-7)
    pull = cr.grad(lambda x: (f(x) * np.cos(f(X))).sum())(X)
    assert np.allclose((pull * X).sum(), (push * np.cos(f(X))).sum(), atol=1e-7)
    assert np.allclose(cr.vmap(f)(np.stack([X, X + 0.1]))[1], f(X + 0.1), rtol=1e-13, equal_nan=True)


@pytest.mark.filterwarnings("ignore")
def test_what_has_no_derivative_of_its_own():
    x = np.array([-2.75, 0.3, 5e-324, 1.7e308, np.inf, 0.0])
    for f in (np.frexp, np.modf):
        for got, want in zip(f(cr.Array(x)), f(x), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)
    assert cr.grad(lambda x: np.frexp(x)[0].sum())(np.array([3.0, 0.3])).tolist() == [0.25, 2.0]
    assert cr.grad(lambda x: np.modf(x)[0].sum())(np.array([3.5, -0.3])).tolist() == [1.0, 1.0]
    assert cr.Array(np.spacing(x[:2])).tolist() == np.spacing(x[:2]).tolist()
    assert np.bitwise_count(cr.Array([3, 7])).tolist() == [2, 3]
