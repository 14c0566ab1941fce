"""Where NumPy returns a scalar, the result is a value: reshaping it allocates memory."""

import warnings

import numpy as np
import pytest

import chainrule as cr

X = np.array([0.3, 1.2, 0.7])
M = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.1]])
SCALARS = {
    "inner": lambda x, m: np.inner(x, x),
    "dot": lambda x, m: x.dot(x),
    "matmul": lambda x, m: x @ x,
    "vecdot": lambda x, m: np.linalg.vecdot(x, x),
    "einsum": lambda x, m: np.einsum("i,i", x, x),
    "einsum of a diagonal": lambda x, m: np.einsum("ii", m),
    "kron": lambda x, m: np.kron(x[0], x[1]),
    "multi_dot": lambda x, m: np.linalg.multi_dot([x, m, x]),
    "logaddexp.reduce": lambda x, m: np.logaddexp.reduce(x),
    "sum": lambda x, m: x.sum(),
    "median": lambda x, m: np.median(x),
    "nanmedian": lambda x, m: np.nanmedian(x),
    "choose": lambda x, m: np.choose(0, [x[0], x[1]]),
    "norm": lambda x, m: np.linalg.norm(m, 2),
    "element": lambda x, m: m[0, 1],
}
ARRAYS = {
    "tensordot": lambda x, m: np.tensordot(x, x, 1),
    "an index with an ellipsis": lambda x, m: m[..., 0, 1],
    "squeeze": lambda x, m: np.squeeze(x[:1]),
    "reshape": lambda x, m: x[:1].reshape(()),
}
SHOWN = {
    "reshape": lambda v: v.reshape(-1),
    "reshape by columns": lambda v: np.reshape(v, (1, 1), order="F"),
    "ravel": lambda v: np.ravel(v),
    "None": lambda v: v[None],
    "ellipsis": lambda v: v[...],
    "expand_dims": lambda v: np.expand_dims(v, 0),
    "atleast_2d": lambda v: np.atleast_2d(v),
}


def written(make, show):
    def function(x, m):
        x, m = x * 1, m * 1
        for _ in range(3):  # the result is the same after C has cached the call
            v = make(x, m)
            show(v)[...] = 9.0
        return np.sin(v) + x.sum() + m.sum()

    return function


@pytest.mark.parametrize("make", [*SCALARS.values(), *ARRAYS.values()], ids=[*SCALARS, *ARRAYS])
@pytest.mark.parametrize("take", ["plain", "vjp", "jvp", "vmap"])
def test_writing_into_what_is_made_of_it(make, take):
    for show in SHOWN.values():
        f = written(make, show)
        want = f(X, M)
        if take == "plain":
            got = f(cr.Array(X), cr.Array(M))
        elif take == "vmap":
            got = cr.vmap(f)(X[None], M[None])[0]
        else:
            got = cr.jvp(f, (X, M), (X, M))[0] if take == "jvp" else cr.vjp(f, X, M)[0]
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-14)


def test_scalars_and_views_of_one_shape_have_ways_of_their_own():
    x = cr.Array(X, requires_grad=True) * 1
    for _ in range(3):
        np.ravel(x[..., 0])
    total = np.logaddexp.reduce(x)
    before = float(total.detach())
    np.ravel(total)[0] = 9.0
    assert float(total.detach()) == before


@pytest.mark.parametrize("run", ["arrays", "grad", "jvp", "vmap", "compile"])
@pytest.mark.parametrize("index", [0, (0,), np.array(1), (0, ...), slice(0, 1)], ids=str)
@pytest.mark.parametrize("length", [0, 1])
def test_an_array_of_one_number_is_no_element(run, index, length):
    """NumPy rejects ``x[0] = np.ones(1)`` since 2.4, or warns of it, and accepts ``x[0, ...] = np.ones(1)``."""

    def f(y):
        x = y * 2
        x[index] = y[:length] if length else y[0]
        return np.sum(x)

    y = np.array([1.0, 4.0, 9.0])
    ways = {
        "arrays": lambda: f(cr.Array(y)),
        "grad": lambda: cr.value_and_grad(f)(y)[0],
        "jvp": lambda: cr.jvp(f, (y,), (y,))[0],
        "vmap": lambda: cr.vmap(f)(y[None])[0],
        "compile": lambda: [call(y) for call in [cr.compile(f)] for _ in range(2)][1],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            expected = f(y)
        except ValueError:
            with pytest.raises(ValueError, match="setting an array element"):
                ways[run]()
        else:
            assert float(ways[run]()) == expected
