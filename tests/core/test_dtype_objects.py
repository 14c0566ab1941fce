"""The attributes and methods of dtype objects that programs use."""

from __future__ import annotations

import array
import copy
import pickle

import numpy as np
import pytest

from behaviour import differs, torch

INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
NAMES = ["bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("name", NAMES)
def test_attributes(name):
    dtype = getattr(torch, name)
    t = torch.zeros(2, dtype=dtype)
    numpys = np.dtype(name)
    assert t.dtype is dtype and isinstance(dtype, torch.dtype) and type(dtype) is torch.dtype
    assert repr(dtype) == str(dtype) == f"{dtype}" == f"torch.{name}"
    assert dtype.is_floating_point is (numpys.kind == "f") is t.is_floating_point() is torch.is_floating_point(t)
    assert dtype.is_complex is (numpys.kind == "c") is t.is_complex() is torch.is_complex(t)
    assert dtype.is_signed is (numpys.kind in "ifc")
    assert dtype.itemsize == t.itemsize == t.element_size() == numpys.itemsize
    assert dtype.to_real() is (torch.empty(0, dtype=dtype).real.dtype if dtype.is_complex else dtype)
    assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is copy.copy(dtype) is dtype
    assert {dtype: 1}[t.dtype] == 1 and dtype in {dtype} and dtype in [torch.int64, dtype]
    assert [getattr(torch, other) for other in NAMES if getattr(torch, other) == dtype] == [dtype]
    assert dtype != None and dtype != f"torch.{name}"  # noqa: E711
    assert t.to(dtype) is t and t.new_zeros(1).dtype is dtype and torch.zeros_like(t).dtype is dtype


def test_partners_and_promotion():
    assert torch.float32.to_complex() is torch.complex64 and torch.complex128.to_real() is torch.float64
    assert torch.promote_types(torch.int64, torch.float16) is torch.float16
    assert torch.result_type(torch.ones(2, dtype=torch.int8), 1.5) is torch.get_default_dtype() is torch.float32
    assert torch.can_cast(torch.float64, torch.float32) and not torch.can_cast(torch.complex64, torch.float32)
    assert (torch.float, torch.double, torch.long, torch.half) == (
        torch.float32,
        torch.float64,
        torch.int64,
        torch.float16,
    )


def test_aliases_print_as_what_they_are():
    assert repr((torch.half, torch.float, torch.double, torch.short, torch.int, torch.long)) == (
        "(torch.float16, torch.float32, torch.float64, torch.int16, torch.int32, torch.int64)"
    )
    assert repr(torch.ones(1, dtype=torch.float64)) == "tensor([1.], dtype=torch.float64)"


@pytest.mark.parametrize("name", NAMES)
def test_type_strings(name):
    t = torch.zeros(1, dtype=getattr(torch, name))
    words = {"float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int"} | {
        "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat",
        "complex128": "ComplexDouble", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
    }  # fmt: skip
    assert t.type() == f"torch.{words[name]}Tensor"


def test_no_integer_has_a_complex_partner():
    with pytest.raises((RuntimeError, TypeError)):
        torch.int32.to_complex()


@differs("no NumPy or Python type equals a dtype")
def test_numpys_and_pythons_types_equal_them():
    assert torch.float32 == np.float32 and np.dtype("float32") == torch.float32 == "float32"
    assert torch.ones(1, dtype=torch.float64).dtype == float


f8, f4, f2, i1, i4, c16, b1 = np.float64, np.float32, np.float16, np.int8, np.int32, np.complex128, np.bool_
LISTS = [
    ([f8(1)], "float64"),
    ([1.0, f8(1)], "float64"),
    ([1, f8(1)], "float64"),
    ([[f8(1)], [2]], "float64"),
    ([[1.0], [f8(2)]], "float64"),
    ([f4(1), 2.0], "float32"),
    ([f2(1)], "float16"),
    ([f2(1), 2], "float16"),
    ([f2(1), 2.0], "float32"),
    ([i4(1)], "int32"),
    ([i4(1), 2], "int64"),
    ([i1(1), 2.5], "float32"),
    ([i1(1), i4(2)], "int32"),
    ([c16(1)], "complex128"),
    ([c16(1), 1.0], "complex128"),
    ([f8(1), 1j], "complex128"),
    ([b1(True)], "bool"),
    ([[1.0, 2.0], (f8(1), 2)], "float64"),
    ([1, 2.0, True], "float32"),
    ([True, 1], "int64"),
    ([True], "bool"),
    ([1j, 1], "complex64"),
    ([], "float32"),
    (f8(1), "float64"),
    (f2(1), "float16"),
    (range(3), "int64"),
    (bytearray(b"ab"), "int64"),
]


@pytest.mark.parametrize(("data", "dtype"), LISTS, ids=[str(data) for data, _ in LISTS])
def test_numbers_of_numpys_keep_their_dtype_in_lists(data, dtype):
    t = torch.tensor(data)
    assert t.dtype is getattr(torch, dtype)
    assert t.tolist() == np.array(data).tolist()
    assert torch.as_tensor(data).dtype is t.dtype
    assert torch.tensor(data, dtype=torch.complex128).dtype is torch.complex128


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy.ndarrays")
def test_arrays_and_tensors_keep_their_dtype_in_lists():
    double = torch.tensor(1.0, dtype=torch.float64)
    for data in ([np.ones(2), [1.0, 2.0]], [[1, 2], np.ones(2)], [double, 1.0], [1.0, double], [[double], [1]]):
        assert torch.tensor(data).dtype is torch.float64


class Arrays:
    """An object similar to a pandas Series."""

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index]


class WithArray(Arrays):
    def __array__(self, dtype=None, copy=None):
        return self.data.copy() if copy else self.data


class WithInterface(Arrays):
    @property
    def __array_interface__(self):
        return self.data.__array_interface__


class WithDLPack(Arrays):
    def __dlpack__(self, **kwargs):
        return self.data.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


@differs("some become float32")
@pytest.mark.parametrize("kind", [WithArray, WithInterface, WithDLPack])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8", "complex128"])
def test_what_can_be_an_array_keeps_its_dtype(kind, dtype):
    numbers = np.arange(3).astype(dtype)
    for make, shares in ((torch.tensor, False), (torch.as_tensor, True)):
        t = make(kind(numbers))
        assert t.dtype == dtype and t.tolist() == numbers.tolist()
        assert np.shares_memory(t.numpy(), numbers) is shares
    assert torch.tensor(kind(numbers), dtype=torch.complex64).dtype is torch.complex64
    if kind is not WithDLPack:
        assert torch.tensor([kind(numbers), kind(numbers)]).dtype == dtype


@differs("float32 and int64, whatever the memory holds")
def test_typed_memory_keeps_its_precision():
    for code in "dfiB":
        t = torch.tensor(array.array(code, [1, 2]))
        u = torch.tensor(memoryview(array.array(code, [1, 2])))
        assert t.dtype == u.dtype == {"d": "float64", "f": "float32"}.get(code, "int64") and t.tolist() == [1, 2]


def test_bfloat16_is_a_name():
    dtype = torch.bfloat16
    assert repr(dtype) == "torch.bfloat16" and isinstance(dtype, torch.dtype) and {dtype: 1}[torch.bfloat16] == 1
    assert dtype.is_floating_point and not dtype.is_complex and dtype.itemsize == 2
    assert dtype not in (torch.float16, torch.float32) and torch.float16 != dtype and not hasattr(dtype, "__name__")
    assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is dtype


@differs("it has such numbers")
@pytest.mark.parametrize(
    "use",
    [
        lambda d: torch.zeros(2, dtype=d),
        lambda d: torch.ones(2).to(d),
        lambda d: torch.ones(2).to(dtype=d),
        lambda d: torch.ones(2).type(d),
        lambda d: torch.ones(2).sum(dtype=d),
        lambda d: torch.nn.Linear(2, 2).to(d),
        lambda d: torch.finfo(d),
        lambda d: torch.promote_types(d, torch.float32),
        lambda d: np.zeros(2, d),
        lambda d: torch.dtype(d),
    ],
)
def test_making_anything_of_bfloat16_is_refused(use):
    with pytest.raises(TypeError, match="NumPy carries no bfloat16; use float32 instead"):
        use(torch.bfloat16)
