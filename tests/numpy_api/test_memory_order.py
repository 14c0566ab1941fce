"""The memory layout of results, as shown by ``ravel("K")`` and ``ravel("A")``, is NumPy's."""

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
    "delete, of several": lambda x: np.delete(x, [0, 1], 1),
    "delete, by a mask": lambda x: np.delete(x, np.array([True, False, False]), 1),
    "pad": lambda x: np.pad(x.T, 1),
    "pad, edge": lambda x: np.pad(x.T, 1, mode="edge"),
    "apply_along_axis": lambda x: np.apply_along_axis(lambda v: v * 2, 0, x),
    "insert": lambda x: np.insert(x.T, 0, 1.0, 0),
    "select": lambda x: np.select([x.T > 0], [x.T]),
    "choose": lambda x: np.choose((x.T > 0).astype(int), [x.T, -x.T]),
    "flatten, F": lambda x: x.flatten("F"),
    "flatten, K": lambda x: x.T.flatten("K"),
    "integers along the second axis": lambda x: x[:, [0, 2]],
    "integers along the first": lambda x: x.T[[2, 0]],
    "integers, of columns": lambda x: x.T[:, [1, 0]],
    "integers of two axes": lambda x: x[:, np.array([[0, 2], [1, 1]])],
    "integers apart": lambda x: both(x)[[0, 1], :, [1, 0]],
    "integers beside a slice": lambda x: both(x)[::-1, [1, 0]],
    "a mask": lambda x: x[:, np.array([True, False, True])],
    "zeros_like": lambda x: np.zeros_like(x.T) + x.T,
    "ones_like, F": lambda x: np.ones_like(x, order="F") * x,
    "full_like": lambda x: np.full_like(x.T, 2.0) * x.T,
    "where, of zeros_like": lambda x: np.where(x.T > 0, x.T, np.zeros_like(x.T)),
    "ufunc, C": lambda x: np.exp(x.T, order="C"),
    "ufunc, F": lambda x: np.add(x, 1, order="F"),
    "clip, F": lambda x: np.clip(x, 0, 1, order="F"),
    "broadcast_to": lambda x: np.broadcast_to(x.T, (2, 3, 2)),
    "copy of broadcast_to": lambda x: np.broadcast_to(x, (2, 2, 3)).copy("K"),
    "nan_to_num of broadcast_to": lambda x: np.nan_to_num(np.broadcast_to(x, (2, 2, 3))),
    "quantile": lambda x: np.quantile(both(x), 0.5, axis=1),
    "quantiles": lambda x: np.quantile(both(x), [0.5, 0.2], axis=0),
    "median": lambda x: np.median(np.transpose(both(x)), axis=0),
    "median, keepdims": lambda x: np.median(np.transpose(both(x)), axis=1, keepdims=True),
    "cross": lambda x: np.cross(x.T.copy().T, x + 1),
    "piecewise": lambda x: np.piecewise(x.T, [x.T > 0], [lambda v: v, 0.0]),
    "unwrap": lambda x: np.unwrap(x.T, axis=-1),
    "gradient": lambda x: np.gradient(x.T, axis=0),
    "matmul of stacks": lambda x: np.stack([both(x), both(x) + 1]).transpose(1, 0, 2, 3) @ np.ones((2, 2)),
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


LAYOUTS = [
    lambda x: x,
    lambda x: x.copy("F"),
    lambda x: x.transpose(1, 2, 0).copy().transpose(2, 0, 1),
    lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    lambda x: x[:, ::-1],
]
INDICES = [
    np.s_[[1, 0]], np.s_[:, [2, 0]], np.s_[:, :, [3, 1, 1]], np.s_[[0, 1], [2, 0]], np.s_[:, [2, 0], [1, 3]], np.s_[[1, 0], :, [0, 2]],
    np.s_[:, None, [1, 2]], np.s_[..., np.array([[0, 3]])], np.s_[1, :, [0, 1]], np.s_[:, 1:, [0, 1]],
    np.s_[np.arange(24).reshape(2, 3, 4) > 7],
]  # fmt: skip


@pytest.mark.parametrize("layout", range(len(LAYOUTS)))
@pytest.mark.parametrize("transformation", ["vjp", "jvp", "vmap"])
def test_elements_that_integers_pick_lie_as_in_numpy(layout, transformation):
    x = LAYOUTS[layout](np.arange(24.0).reshape(2, 3, 4))
    for index in INDICES:
        for order in "KA":

            def function(x, index=index, order=order):
                return (x[index] * 2).ravel(order)

            np.testing.assert_array_equal(VALUES[transformation](function, x), function(x))


@pytest.mark.parametrize("call", [lambda x: x.ravel("K"), lambda x: x.flatten("A"), lambda x: x.reshape(-1, order="A")])
def test_an_order_in_memory_that_examples_of_a_vmap_leave_open(call):
    x = np.ascontiguousarray(np.stack([X, X], axis=-1))
    with pytest.raises(RuntimeError, match=r"order='[AK]' depends on the memory layout of an array"):
        cr.vmap(call, in_dims=-1)(x.transpose(1, 0, 2))
    np.testing.assert_array_equal(cr.vmap(call, in_dims=-1)(x)[0], call(X))


@pytest.mark.parametrize(
    "call",
    [lambda x: np.pad(x, 1), lambda x: np.delete(x, 0, 0), lambda x: np.insert(x, 0, 1.0, 0)],
    ids=["pad", "delete", "insert"],
)
def test_what_is_made_beside_such_examples_is_open_as_well(call):
    x = np.asfortranarray(np.arange(36.0).reshape(4, 3, 3))
    for order in "KA":
        with pytest.raises(RuntimeError, match=rf"order='{order}' depends on the memory layout of an array"):
            cr.vmap(lambda v, order=order: call(v).ravel(order))(x)
    np.testing.assert_array_equal(cr.vmap(lambda v: call(v).ravel())(x)[1], call(x[1]).ravel())


CAST = {
    "rows": lambda x: x * 1,
    "columns": lambda x: (x * 1).T,
    "every other": lambda x: (x * 1)[:, ::2],
    "backwards": lambda x: (x * 1)[::-1],
    "one row": lambda x: (x * 1)[:1],
    "every other of one axis": lambda x: (x * 1)[0, ::2],
}


@pytest.mark.parametrize("layout", CAST.values(), ids=CAST)
@pytest.mark.parametrize("order", ["C", "F", "A", "K", None])
@pytest.mark.parametrize("copy", [True, False])
def test_casts(layout, order, copy):
    def cast(x):
        y = layout(x)
        other, same = y.astype("f4", order=order, copy=copy), y.astype("f8", order=order, copy=copy)
        same[...] = 7  # which is visible in y if it is the same memory
        return same.strides, other.strides, y, same

    wanted = cast(X)
    found = []
    cr.grad(lambda x: (found.append(cast(x)), np.sum(x))[1])(X)
    for strides, right, length in zip(found[0][:2], wanted[:2], [wanted[3].shape] * 2, strict=True):
        assert [s for s, n in zip(strides, length, strict=True) if n > 1] == [
            s for s, n in zip(right, length, strict=True) if n > 1
        ]
    compiled = cr.compile(lambda x: cast(x)[2:])
    for y, same in (found[0][2:], compiled(X), compiled(X)):
        np.testing.assert_array_equal(y.detach() if hasattr(y, "detach") else y, wanted[2])
        np.testing.assert_array_equal(same.detach() if hasattr(same, "detach") else same, wanted[3])


@pytest.mark.parametrize(
    "call", [np.copy, lambda x, order: x.copy(order), lambda x, order: np.array(x, order=order, like=x)]
)
def test_no_order(call):
    found = []
    cr.grad(lambda x: (found.append(call((x * 1).T, None).strides), np.sum(x))[1])(X)
    assert found == [call((X * 1).T, None).strides]


@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize(
    "subscripts", ["ij,jk->ik", "ij,jk->ki", "ij,kj->ik", "ij,jk", "ijk,kl->ijl", "ij,j->ij", "ij,kl->lj"]
)
def test_einsum(subscripts, orders):
    terms = subscripts.split("->")[0].split(",")
    arrays = [
        np.array(np.arange(3.0 ** len(term)).reshape([3] * len(term)), order=order)
        for term, order in zip(terms, orders, strict=True)
    ]
    expected = np.einsum(subscripts, *arrays)
    assert np.einsum(subscripts, *map(cr.Array, arrays)).strides == expected.strides
    found = []
    cr.grad(lambda x: (found.append(np.einsum(subscripts, x, arrays[1]).strides), np.sum(x))[1])(arrays[0])
    assert found == [expected.strides]
