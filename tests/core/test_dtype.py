"""The dtype objects that users see: PyTorch's attributes, compatible with NumPy's dtypes."""

import copy
import pickle
import warnings
from operator import eq, ne

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.arrays.dtype import DTYPE_OF

ALL = list(DTYPE_OF.items())
IDS = [numpys.name for numpys, _ in ALL]


def both(compare, x, y):
    """Compare in both orders, which must agree."""
    result = compare(x, y)
    assert type(result) is bool and compare(y, x) is result
    return result


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("numpys, ours", ALL, ids=IDS)
def test_each_exists_once_and_is_everywhere(numpys, ours):
    t = cr.zeros(2, dtype=ours)
    assert t.dtype is ours is getattr(cr, numpys.name)
    assert t.numpy().dtype is ours.dtype is numpys
    for spelling in (ours, numpys, numpys.type, numpys.name, f"torch.{numpys.name}"):
        assert cr.dtype(spelling) is ours
        assert cr.ones(1, dtype=spelling).dtype is ours
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(ours, protocol)) is ours
    assert copy.copy(ours) is copy.deepcopy(ours) is ours
    assert isinstance(ours, cr.dtype) and type(ours) is cr.dtype
    assert isinstance(ours, np.dtype)
    assert repr(ours) == str(ours) == f"{ours}" == f"torch.{numpys.name}"


@pytest.mark.parametrize("numpys, ours", ALL, ids=IDS)
def test_equals_what_numpys_equals_and_has_its_hash(numpys, ours):
    for other in (numpys, numpys.type, numpys.name, numpys.str, ours):
        assert both(eq, ours, other) and not both(ne, ours, other), other
    assert {ours: 1}[numpys] == {numpys: 1}[ours] == 1 and ours in {numpys} and len({ours, numpys}) == 1
    for other, its in ALL:
        assert (ours == other) is (other == ours) is (its == ours) is (numpys is other)
        assert (ours == other.type) is (ours == other.name) is (numpys is other)
    for other in (None, 3, "nonsense", "torch.float32", object, object(), [1], (), cr.Tensor, np.dtype(object)):
        assert both(ne, ours, other) and not both(eq, ours, other), other


def test_pythons_types_mean_what_they_mean_to_dtype():
    for python in (bool, int, float, complex):
        assert [d for d in DTYPE_OF.values() if d == python] == [cr.dtype(python)] == [cr.ones(1, dtype=python).dtype]
    assert both(ne, cr.float, float) and both(eq, cr.float64, float)


@pytest.mark.parametrize("numpys, ours", ALL, ids=IDS)
def test_numpys_attributes(numpys, ours):
    names = [name for name in dir(numpys) if name[0] != "_"]
    assert set(names) <= set(dir(ours))
    for name in names:
        theirs = getattr(numpys, name)
        if not callable(theirs) or isinstance(theirs, type):
            assert getattr(ours, name) == theirs, name
    assert ours.newbyteorder("S") == numpys.newbyteorder("S")


def test_attributes_that_do_not_exist_or_cannot_be_set():
    with pytest.raises(AttributeError, match=r"'torch.dtype' object has no attribute 'foo'"):
        _ = cr.float32.foo
    with pytest.raises(AttributeError, match="cannot be set"):
        cr.float32.kind = "i"
    with pytest.raises(TypeError, match="PyTorch has no dtype for NumPy's object"):
        cr.dtype(np.dtype(object))


@pytest.mark.parametrize(
    "call",
    [
        lambda d: np.dtype(d),
        lambda d: np.zeros(3, d).dtype,
        lambda d: np.zeros(3, dtype=d).dtype,
        lambda d: np.ones(3).astype(d).dtype,
        lambda d: np.asarray([1, 0], d).dtype,
        lambda d: np.array([1, 0], dtype=d).dtype,
        lambda d: np.full(2, 1, d).dtype,
        lambda d: np.eye(2, dtype=d).dtype,
        lambda d: np.arange(2, dtype=d).dtype,
        lambda d: np.linspace(0, 1, 2, dtype=d).dtype,
        lambda d: np.empty_like(np.ones(2), dtype=d).dtype,
        lambda d: np.sum(np.ones(2), dtype=d).dtype,
        lambda d: np.frombuffer(bytes(32), d).dtype,
        lambda d: np.result_type(d),
        lambda d: np.result_type(d, np.float32),
        lambda d: np.result_type(d, np.ones(2, np.int8)),
        lambda d: np.promote_types(d, "int16"),
        lambda d: np.promote_types("int16", d),
        lambda d: np.can_cast(d, np.float32),
        lambda d: np.can_cast("int16", d),
        lambda d: np.issubdtype(d, np.floating),
        lambda d: np.issubdtype(d, np.number),
        lambda d: np.isdtype(d, "real floating"),
        lambda d: np.isdtype(d, ("signed integer", "bool")),
        lambda d: np.isdtype(np.dtype("float32"), d),
        lambda d: np.dtype([("a", d), ("b", d, (2,))]),
        lambda d: np.finfo(d).eps if d.kind in "fc" else np.iinfo(d).max if d.kind in "iu" else None,
        lambda d: np.ma.masked_array([1, 0], dtype=d).dtype,
        lambda d: cr.finfo(d) if d.kind in "fc" else cr.iinfo(d) if d.kind in "iu" else None,
        lambda d: cr.can_cast(d, "float32"),
        lambda d: cr.is_floating_point(d),
        lambda d: cr.tensor([1, 0], dtype=d).dtype,
        lambda d: cr.ones(2).to(d).dtype,
        lambda d: cr.ones(2).type(d).dtype,
        lambda d: cr.ones(2, dtype=cr.int64).sum(dtype=d).dtype,
        lambda d: np.astype(cr.ones(2), d).dtype if hasattr(np, "astype") else None,
        lambda d: np.sum(cr.ones(2), dtype=d).dtype,
        lambda d: np.zeros_like(cr.ones(2), dtype=d).dtype,
        lambda d: np.result_type(cr.ones(2), d),
        lambda d: np.asarray(cr.ones(2), d).dtype,
    ],
)
def test_taken_wherever_numpys_is(call):
    for numpys, ours in ALL:
        assert call(ours) == call(numpys)


def test_numpy_asks_a_tensor_for_its_dtype():
    t = cr.ones(2)
    if hasattr(np.dtype("f8"), "__numpy_dtype__") or np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        assert np.dtype(t) == np.dtype("float32")
        assert np.finfo(t).bits == 32
    assert np.result_type(t, np.float64) == np.dtype("float64")


def test_promotion_gives_them():
    assert cr.promote_types(cr.int64, "float32") is cr.result_type(cr.ones(2), 1) is cr.float32
    assert cr.get_default_dtype() is cr.float32
    cr.set_default_dtype(cr.float64)
    try:
        assert cr.get_default_dtype() is cr.float64 is cr.tensor(1.0).dtype
    finally:
        cr.set_default_dtype(np.float32)


def test_real_and_complex_partners():
    assert cr.float64.to_complex() is cr.complex128 and cr.complex64.to_real() is cr.float32
    assert cr.int32.to_real() is cr.int32 and cr.float16.to_complex() is cr.complex64
    with pytest.raises(TypeError, match="expected a floating or complex dtype"):
        cr.int32.to_complex()


def test_rules_that_run_on_tensors_meet_both_kinds():
    """Under create_graph a rule's cotangent is a tensor; its saved values are arrays."""
    for dtype in (cr.float32, cr.float64):
        x = cr.tensor([0.5, 2.0], dtype=dtype, requires_grad=True)
        y = cr.tensor([1.5], dtype=cr.float64, requires_grad=True)
        (g,) = cr.autograd.grad((x**3 * y).sum(), x, create_graph=True)
        (h,) = cr.autograd.grad(g.sum(), y)
        assert g.dtype is dtype and h.dtype is cr.float64
        np.testing.assert_allclose(h.numpy(), [3 * (0.25 + 4.0)])


def test_old_pickles_hold_numpys():
    """Pickles of tensors always contained arrays and NumPy dtypes."""
    assert pickle.loads(pickle.dumps(np.dtype("float32"))) == cr.float32
    t = pickle.loads(pickle.dumps(cr.ones(2, dtype=cr.float64, requires_grad=True)))
    assert t.dtype is cr.float64 and t.requires_grad
