"""How results lie in memory, as ``ravel("K")`` and ``ravel("A")`` show it: as NumPy's do."""

import numpy as np
import pytest

import chainrule as cr

X = np.arange(6.0).reshape(2, 3) - 2.2


def added(x):
    y = x.T.copy("K")
    y += 1
    return y


def both(x):
    return np.stack([x, x]).transpose(2, 0, 1)


CALLS = {
    "astype, F": lambda x: x.astype("f4", order="F"),
    "astype, C": lambda x: x.T.astype("f4", order="C"),
    "astype": lambda x: x.T.astype("f4"),
    "astype, A": lambda x: x.T.astype("f4", order="A"),
    "astype, of one dtype": lambda x: x.astype(x.dtype, order="F"),
    "copy": lambda x: x.T.copy(),
    "copy, F": lambda x: x.copy("F"),
    "copy, K": lambda x: x.T.copy("K"),
    "copy, A": lambda x: x.T.copy("A"),
    "copy, of three axes": lambda x: both(x).copy(),
    "copy, of three axes, K": lambda x: both(x).copy("K"),
    "np.copy": lambda x: np.copy(x.T),
    "np.copy, F": lambda x: np.copy(x, order="F"),
    "np.copy, C": lambda x: np.copy(x.T, order="C"),
    "np.array, F": lambda x: np.array(x, order="F", like=x),
    "added in place": added,
    "ufunc": lambda x: np.sin(x.T),
    "product": lambda x: x.T * x.T,
    "sum": lambda x: both(x).sum(0),
    "stack": lambda x: np.stack([x.T, x.T]),
    "flip": lambda x: np.flip(x.T, 0),
    "rot90": np.rot90,
    "delete": lambda x: np.delete(x.T, 0, 0),
    "insert": lambda x: np.insert(x.T, 0, 1.0, 0),
    "select": lambda x: np.select([x.T > 0], [x.T]),
    "choose": lambda x: np.choose((x.T > 0).astype(int), [x.T, -x.T]),
    "flatten, F": lambda x: x.flatten("F"),
    "flatten, K": lambda x: x.T.flatten("K"),
}
VALUES = {
    "vjp": lambda f, x: cr.vjp(f, x)[0],
    "jvp": lambda f, x: cr.jvp(f, (x,), (x,))[0],
    "vmap": lambda f, x: cr.vmap(f)(np.stack([x, x]))[0],
    "vmap, of one": lambda f, x: cr.vmap(f)(x[None])[0],
    "compile": lambda f, x: [call(x) for call in [cr.compile(f)] for _ in range(2)][1],
}


@pytest.mark.parametrize("transformation", VALUES)
@pytest.mark.parametrize("name", CALLS)
def test_elements_lie_as_in_numpy(name, transformation):
    for order in "KA":

        def function(x, order=order):
            return CALLS[name](x).ravel(order)

        np.testing.assert_array_equal(VALUES[transformation](function, X), function(X))


def test_reshape_has_no_order_k():
    with pytest.raises(ValueError, match="not permitted"):
        cr.Array(X).reshape(-1, order="K")
