"""Dtype objects: what programs ask of them."""

from __future__ import annotations

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
