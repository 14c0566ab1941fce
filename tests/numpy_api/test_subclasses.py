"""Subclasses of ndarray with tensors: most are used as arrays, matrices and masked arrays raise."""

import operator

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jvp, vmap

BASE = np.array([[1.5, 2.0], [3.0, 5.0]])
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.matmul, operator.eq, operator.lt,
]  # fmt: skip
FUNCTIONS = [
    np.add, np.multiply, np.arctan2, np.maximum, np.matmul, np.dot, np.inner, np.outer, np.kron, np.tensordot,
    np.logaddexp, np.hypot, np.equal, np.allclose, np.append, np.polyadd, np.vecdot if hasattr(np, "vecdot") else np.vdot,
    lambda a, b: np.einsum("ij,jk", a, b),
    lambda a, b: np.concatenate([a, b]),
    lambda a, b: np.stack([a, b], 1),
    lambda a, b: np.where(BASE > 2, a, b),
    lambda a, b: np.linalg.solve(a, b),
    cr.add, cr.mul, cr.matmul, cr.mm, cr.maximum, cr.atan2, cr.isin, cr.dist,
    lambda a, b: cr.einsum("ij,jk", a, b),
    lambda a, b: cr.stack([a, b]),
    lambda a, b: cr.where(cr.tensor(BASE > 2), a, b),
    cr.nn.functional.mse_loss, cr.linalg.solve,
]  # fmt: skip
ON_TENSORS = [
    lambda x, a: x.clone().add_(a),
    lambda x, a: x.clone().copy_(a),
    lambda x, a: x.clone().__setitem__(slice(None), a),
    lambda x, a: x[a > 2],
    lambda x, a: cr.autograd.grad(x * 2, x, a),
    lambda x, a: cr.tensor(a) * x,
    lambda x, a: cr.as_tensor([a, a]) * x,
    lambda x, a: grad(lambda b: (b**2).sum())(a),
    lambda x, a: grad(lambda b: np.sum(b * a))(BASE),
    lambda x, a: jvp(lambda b: b * a, (BASE,), (BASE,)),
    lambda x, a: vmap(lambda b: b * a[0])(BASE),
    lambda x, a: vmap(lambda b: b * 2)(a),
]


class Subclass(np.ndarray):
    pass


@pytest.fixture(params=[Subclass, np.memmap])
def subclass(request, tmp_path):
    """Return BASE as an array of a subclass that computes like arrays."""
    if request.param is Subclass:
        return BASE.copy().view(Subclass)
    mapped = np.memmap(tmp_path / "numbers", float, "w+", shape=BASE.shape)
    mapped[:] = BASE
    return mapped


def leaf():
    return cr.tensor(BASE + 1, requires_grad=True)


def known(result):
    """Return the numbers of a result, and whether it is recorded. Tensors contain ordinary arrays."""
    if isinstance(result, (tuple, list)):
        return [known(part) for part in result]
    if isinstance(result, cr.Tensor):
        assert type(result._raw) is np.ndarray
        return result.tolist(), result.requires_grad
    return np.asarray(result).tolist() if result is not None else None


@pytest.mark.parametrize("f", OPERATORS + FUNCTIONS)
def test_operands(f, subclass):
    assert known(f(leaf(), subclass)) == known(f(leaf(), BASE))
    assert known(f(subclass, leaf())) == known(f(BASE, leaf()))


@pytest.mark.parametrize("f", ON_TENSORS)
def test_data_indices_and_arguments(f, subclass):
    assert known(f(leaf(), subclass)) == known(f(leaf(), BASE))


def test_memory_is_shared_where_an_arrays_would_be(subclass):
    t = cr.as_tensor(subclass)
    assert type(t._raw) is np.ndarray and np.shares_memory(t.numpy(), subclass)
    assert not np.shares_memory(cr.tensor(subclass).numpy(), subclass)


REFUSED = [
    (BASE.view(np.matrix), TypeError, r"an operation of np.matrix and tensor.*np.asarray\(m\)"),
    (np.ma.masked_array(BASE, BASE == 2), (TypeError, RuntimeError), r"(?s)masked array.*m.filled\(0\)"),
]


@pytest.mark.parametrize(("special", "kind", "words"), REFUSED, ids=["matrix", "masked"])
@pytest.mark.parametrize("f", OPERATORS + FUNCTIONS)
def test_matrices_and_masked_arrays_are_refused(f, special, kind, words):
    with pytest.raises(kind, match=words):
        f(leaf(), special)
    with pytest.raises(kind, match="exponent must be" if f is operator.pow and kind is TypeError else words):
        f(special, leaf())


@pytest.mark.parametrize("f", [f for i, f in enumerate(ON_TENSORS) if i not in (2, 5, 6)])
def test_matrices_are_refused_as_operands_of_all_kinds(f):
    with pytest.raises(TypeError, match=r"an operation of np\.matrix and tensor"):
        f(leaf(), BASE.view(np.matrix))


@pytest.mark.parametrize("f", [*ON_TENSORS, lambda x, a: cr.from_numpy(a), lambda x, a: cr.Tensor(a)])
def test_masks_never_get_lost(f):
    with pytest.raises(TypeError, match=r"an operation of masked array and tensor.*m.filled\(0\)"):
        f(leaf(), np.ma.masked_array(BASE, BASE == 2))


def test_data_of_a_matrix_is_data():
    x, m = leaf().detach(), BASE.view(np.matrix)
    x[:] = m
    assert x.tolist() == cr.tensor(m).tolist() == cr.from_numpy(m).tolist() == BASE.tolist()


def test_numbers_of_a_masked_array_may_be_chosen():
    m = np.ma.masked_array([10.0, 20.0, 30.0], [False, True, False])
    np.testing.assert_equal(grad(lambda a: np.sum(m.filled(0) * a) + np.sum(a))(np.ones(3)), [11.0, 1.0, 31.0])
    np.testing.assert_equal(grad(lambda a: np.sum(np.where(m.mask, 0, m.data * a) + a))(np.ones(3)), [11.0, 1.0, 31.0])


def test_where_wants_both_or_neither():
    with pytest.raises(ValueError, match="either both or neither of x and y should be given"):
        np.where(leaf(), BASE)


class Series:
    """An object that can be converted to an array, and has some of its attributes."""

    dtype, shape, ndim, size = BASE.dtype, BASE.shape, BASE.ndim, BASE.size

    def __array__(self, dtype=None, copy=None):
        return BASE.copy()

    def __getitem__(self, index):
        raise TypeError("has an index of its own")


@pytest.mark.parametrize("f", [f for f in FUNCTIONS if not getattr(f, "__module__", "").startswith("chainrule")][:-4])
def test_numpys_functions_take_the_numbers_of_what_can_be_an_array(f):
    assert known(f(leaf(), Series())) == known(f(leaf(), BASE))
    assert known(f(Series(), leaf())) == known(f(BASE, leaf()))
