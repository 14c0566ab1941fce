"""Dtypes: names, promotion and limits. The tables were recorded from PyTorch 2.13."""

import builtins
import itertools
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from chainrule._src.arrays import dtypes, promotion
from chainrule._src.arrays.device import check_device, device

# A letter for the kind, and the size in bytes; -- if PyTorch raises.
CODES = {f"{d.kind}{d.itemsize}": d for d in dtypes.DTYPES}

PROMOTE = """
        b1  u1  i1  i2  i4  i8  u2  u4  u8  f2  f4  f8  c8  c16
    b1  b1  u1  i1  i2  i4  i8  --  --  --  f2  f4  f8  c8  c16
    u1  u1  u1  i2  i2  i4  i8  --  --  --  f2  f4  f8  c8  c16
    i1  i1  i2  i1  i2  i4  i8  --  --  --  f2  f4  f8  c8  c16
    i2  i2  i2  i2  i2  i4  i8  --  --  --  f2  f4  f8  c8  c16
    i4  i4  i4  i4  i4  i4  i8  --  --  --  f2  f4  f8  c8  c16
    i8  i8  i8  i8  i8  i8  i8  --  --  --  f2  f4  f8  c8  c16
    u2  --  --  --  --  --  --  u2  --  --  f2  f4  f8  --  --
    u4  --  --  --  --  --  --  --  u4  --  f2  f4  f8  --  --
    u8  --  --  --  --  --  --  --  --  u8  f2  f4  f8  --  --
    f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  f4  f8  c8  c16
    f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16
    f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16
    c8  c8  c8  c8  c8  c8  c8  --  --  --  c8  c8  c16 c8  c16
    c16 c16 c16 c16 c16 c16 c16 --  --  --  c16 c16 c16 c16 c16
"""

# Each row is an array with dimensions, each column a 0-d array. Where PyTorch returns complex32, which NumPy
# does not have, the table contains c8.
WITH_ZERO_DIM = """
        b1  u1  i1  i2  i4  i8  u2  u4  u8  f2  f4  f8  c8  c16
    b1  b1  u1  i1  i2  i4  i8  --  --  --  f2  f4  f8  c8  c16
    u1  u1  u1  u1  u1  u1  u1  u1  u1  u1  f2  f4  f8  c8  c16
    i1  i1  i1  i1  i1  i1  i1  i1  i1  i1  f2  f4  f8  c8  c16
    i2  i2  i2  i2  i2  i2  i2  i2  i2  i2  f2  f4  f8  c8  c16
    i4  i4  i4  i4  i4  i4  i4  i4  i4  i4  f2  f4  f8  c8  c16
    i8  i8  i8  i8  i8  i8  i8  i8  i8  i8  f2  f4  f8  c8  c16
    u2  u2  u2  u2  u2  u2  u2  u2  u2  u2  f2  f4  f8  c8  c16
    u4  u4  u4  u4  u4  u4  u4  u4  u4  u4  f2  f4  f8  c8  c16
    u8  u8  u8  u8  u8  u8  u8  u8  u8  u8  f2  f4  f8  c8  c16
    f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  c8  c8
    f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  c8  c8
    f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16
    c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
"""

WITH_SCALAR = """
        bool int float complex
    b1  b1  i8  f4  c8
    u1  u1  u1  f4  c8
    i1  i1  i1  f4  c8
    i2  i2  i2  f4  c8
    i4  i4  i4  f4  c8
    i8  i8  i8  f4  c8
    u2  u2  u2  f4  c8
    u4  u4  u4  f4  c8
    u8  u8  u8  f4  c8
    f2  f2  f2  f2  c8
    f4  f4  f4  f4  c8
    f8  f8  f8  f8  c16
    c8  c8  c8  c8  c8
    c16 c16 c16 c16 c16
"""

WITH_SCALAR_DEFAULT_FLOAT64 = """
        bool int float complex
    b1  b1  i8  f8  c16
    u1  u1  u1  f8  c16
    i1  i1  i1  f8  c16
    i2  i2  i2  f8  c16
    i4  i4  i4  f8  c16
    i8  i8  i8  f8  c16
    u2  u2  u2  f8  c16
    u4  u4  u4  f8  c16
    u8  u8  u8  f8  c16
    f2  f2  f2  f2  c8
    f4  f4  f4  f4  c8
    f8  f8  f8  f8  c16
    c8  c8  c8  c8  c8
    c16 c16 c16 c16 c16
"""

# Columns in the order of the rows.
CAN_CAST = """
    b1  11111111111111
    u1  01111111111111
    i1  01111111111111
    i2  01111111111111
    i4  01111111111111
    i8  01111111111111
    u2  01111111111111
    u4  01111111111111
    u8  01111111111111
    f2  00000000011111
    f4  00000000011111
    f8  00000000011111
    c8  00000000000011
    c16 00000000000011
"""

SCALARS = {"bool": True, "int": 3, "float": 2.5, "complex": 1j}


def cells(table: str) -> list[tuple[str, str, str]]:
    head, *rows = table.strip().splitlines()
    columns = head.split()
    return [
        (cells[0], column, cell)
        for cells in map(str.split, rows)
        for column, cell in zip(columns, cells[1:], strict=True)
    ]


@pytest.fixture(autouse=True)
def default_dtype_is_put_back() -> Iterator[None]:
    yield
    dtypes.set_default_dtype(dtypes.float32)


def zeros(code: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.zeros(shape, CODES[code])


# Names


def test_dtypes_are_numpys() -> None:
    assert all(type(d) is type(np.dtype(d.name)) and d is np.dtype(d.name) for d in dtypes.DTYPES)
    assert len(CODES) == len(dtypes.DTYPES) == 14


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        ("cfloat", "complex64"),
        ("cdouble", "complex128"),
        ("short", "int16"),
        ("int", "int32"),
        ("long", "int64"),
        ("bool", "bool"),
    ],
)
def test_aliases(alias: str, name: str) -> None:
    assert getattr(dtypes, alias) is dtypes.NAMES[alias] is np.dtype(name)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        (builtins.float, "float64"),
        (builtins.int, "int64"),
        (builtins.bool, "bool"),
        (builtins.complex, "complex128"),
        (np.float32, "float32"),
        (np.bool_, "bool"),
        (np.longlong, "int64"),
        (np.intc, "int32"),
        (np.dtype("longlong"), "int64"),
        (np.dtype("=f4"), "float32"),
        ("float32", "float32"),
        ("torch.float32", "float32"),
        ("torch.float", "float32"),
        ("torch.int", "int32"),
        ("half", "float16"),
        ("f8", "float64"),
        *[(d, d.name) for d in dtypes.DTYPES],
    ],
)
def test_as_dtype(spelling: object, name: str) -> None:
    assert dtypes.as_dtype(spelling) is np.dtype(name)
    assert dtypes.torch_name(spelling) == f"torch.{name}"


@pytest.mark.parametrize(
    ("spelling", "words"),
    [
        (None, "must be torch.dtype.*not NoneType None"),
        (3, "not int 3"),
        (object, "not object"),
        (str, "not str"),
        ([1], r"not list \[1\]"),
        (np.float32(1), "not float32"),
        ("abc", "not 'abc'"),
        ("float", "float32 to PyTorch and float64 to NumPy"),
        ("int", "int32 to PyTorch and int64 to NumPy"),
        ("torch.bfloat16", "NumPy carries no bfloat16; use float32"),
        ("O", "no dtype for NumPy's object"),
        (np.dtype(object), "no dtype for NumPy's object"),
        (np.dtype("U3"), "no dtype for NumPy's str"),
        (np.dtype("datetime64[s]"), r"no dtype for NumPy's datetime64\[s\]"),
        (np.dtype("f4").newbyteorder("S"), "byte-swapped.*np.float32"),
        (np.floating, "no dtype for NumPy's floating"),
        (np.longdouble, "no dtype for NumPy's longdouble"),
    ],
)
def test_as_dtype_refuses(spelling: object, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        dtypes.as_dtype(spelling)


# Promotion


@pytest.mark.parametrize("a", CODES)
def test_promote_types(a: str) -> None:
    for b, expected in [(b, expected) for first, b, expected in cells(PROMOTE) if first == a]:
        promotes(a, b, expected)


def promotes(a: str, b: str, expected: str) -> None:
    x, y = CODES[a], CODES[b]
    if expected == "--":
        with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported"):
            promotion.promote_types(x, y)
        return
    assert promotion.promote_types(x, y).dtype is CODES[expected]
    # Two arrays of one category promote just so.
    for zero_dim in (False, True):
        shape = () if zero_dim else (2,)
        assert promotion.result_type(zeros(a, shape), zeros(b, shape)).dtype is CODES[expected]
        for _ in range(2):  # computed, then from the cache
            assert promotion.result_dtype(x, zero_dim, y, zero_dim) is CODES[expected]


def test_promote_types_takes_any_spelling() -> None:
    assert promotion.promote_types("int64", np.float32).dtype is dtypes.float32
    assert promotion.promote_types(builtins.float, builtins.int).dtype is dtypes.float64


@pytest.mark.parametrize("a", CODES)
def test_zero_dim_arrays_are_weak(a: str) -> None:
    for b, expected in [(b, expected) for first, b, expected in cells(WITH_ZERO_DIM) if first == a]:
        zero_dim_is_weak(a, b, expected)


def zero_dim_is_weak(a: str, b: str, expected: str) -> None:
    x, y = zeros(a, (2,)), zeros(b, ())
    if expected == "--":
        with pytest.raises(RuntimeError, match="Promotion for uint16"):
            promotion.result_type(x, y)
        with pytest.raises(RuntimeError, match="Promotion for uint16"):
            promotion.result_dtype(x.dtype, False, y.dtype, True)
        return
    assert promotion.result_type(x, y).dtype is promotion.result_type(y, x).dtype is CODES[expected]
    assert promotion.result_dtype(x.dtype, False, y.dtype, True) is CODES[expected]
    assert promotion.result_dtype(y.dtype, True, x.dtype, False) is CODES[expected]


@pytest.mark.parametrize(("default", "table"), [("float32", WITH_SCALAR), ("float64", WITH_SCALAR_DEFAULT_FLOAT64)])
def test_python_scalars_are_weakest(default: str, table: str) -> None:
    dtypes.set_default_dtype(default)
    for a, b, expected in cells(table):
        for shape in ((2,), ()):
            x = zeros(a, shape)
            assert promotion.result_type(x, SCALARS[b]).dtype is CODES[expected], (a, b)
            assert promotion.result_type(SCALARS[b], x).dtype is CODES[expected], (a, b)
        for _ in range(2):
            assert promotion.scalar_dtype(CODES[a], SCALARS[b]) is CODES[expected], (a, b)


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((1, 2), "int64"),
        ((1, 2.0), "float32"),
        ((True, False), "bool"),
        ((1, 2j), "complex64"),
        ((1,), "int64"),
        ((np.float64(1), zeros("i8", (1,))), "float32"),
        ((np.float32(1), zeros("i8", (1,))), "float32"),
        ((np.int32(1), zeros("i1", (1,))), "int8"),
        ((np.int8(1), zeros("b1", (1,))), "int64"),
        ((zeros("i8", (2,)), zeros("f8", ()), 1j), "complex128"),
        ((zeros("f4", (2,)), zeros("f8", ()), 1j), "complex64"),
        ((zeros("f4", (2,)), zeros("i8", (3,)), zeros("f8", (1,)), 2), "float64"),
        ((zeros("b1", (2,)), zeros("i4", ()), 2), "int32"),
        ((zeros("b1", (2,)), zeros("b1", ()), 2.0), "float32"),
    ],
)
def test_result_type(operands: tuple[Any, ...], expected: str) -> None:
    assert promotion.result_type(*operands).dtype is np.dtype(expected)


def test_result_type_refuses() -> None:
    with pytest.raises(TypeError, match="at least one operand"):
        promotion.result_type()
    with pytest.raises(TypeError, match="expected an array or a number, got str 'a'"):
        promotion.result_type(np.ones(1), "a")
    with pytest.raises(TypeError, match="promote_types"):
        promotion.result_type(dtypes.float32, 1)
    with pytest.raises(TypeError, match="got NoneType None"):
        promotion.scalar_dtype(dtypes.float32, None)


def test_can_cast() -> None:
    for row in CAN_CAST.strip().splitlines():
        code, bits = row.split()
        for to, bit in zip(dtypes.DTYPES, bits, strict=True):
            assert promotion.can_cast(CODES[code], to) is (bit == "1"), (code, to)


def test_kinds() -> None:
    floating = [d for d in dtypes.DTYPES if dtypes.is_floating_point(d)]
    assert floating == [dtypes.float16, dtypes.float32, dtypes.float64]
    assert [d for d in dtypes.DTYPES if dtypes.is_complex(d)] == [dtypes.complex64, dtypes.complex128]


def test_real_and_complex_partners() -> None:
    assert dtypes.to_complex(dtypes.float16) is dtypes.to_complex(dtypes.complex64) is dtypes.complex64
    assert dtypes.to_complex(dtypes.float64) is dtypes.complex128
    assert dtypes.to_real(dtypes.complex128) is dtypes.to_real(dtypes.float64) is dtypes.float64
    assert dtypes.to_real(dtypes.complex64) is dtypes.float32
    for convert in (dtypes.to_real, dtypes.to_complex):
        with pytest.raises(TypeError, match=r"expected a floating or complex dtype, got torch\.int64"):
            convert(dtypes.int64)


# The default


@pytest.mark.parametrize(
    ("spelling", "name", "complex_name"),
    [
        (np.float64, "float64", "complex128"),
        (builtins.float, "float64", "complex128"),
        ("float64", "float64", "complex128"),
        (np.dtype("float16"), "float16", "complex64"),
        ("torch.float32", "float32", "complex64"),
    ],
)
def test_set_default_dtype(spelling: object, name: str, complex_name: str) -> None:
    # Fill the caches, so that stale entries are detected.
    assert (
        promotion.scalar_dtype(dtypes.int64, 1.0)
        is promotion.result_type(zeros("i8", (1,)), 1.0).dtype
        is dtypes.float32
    )
    dtypes.set_default_dtype(spelling)
    assert dtypes.default_dtype() is np.dtype(name)
    assert dtypes.get_default_complex_dtype() is np.dtype(complex_name)
    assert promotion.scalar_dtype(dtypes.int64, 1.0) is np.dtype(name)
    assert promotion.result_type(zeros("i8", (1,)), 1.0).dtype is np.dtype(name)
    assert promotion.result_type(zeros("i8", (1,)), 1j).dtype is np.dtype(complex_name)
    assert dtypes.finfo().dtype == name


@pytest.mark.parametrize("spelling", [dtypes.int32, "complex64", builtins.int, np.bool_, None, "abc", 3, object])
def test_set_default_dtype_refuses(spelling: object) -> None:
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        dtypes.set_default_dtype(spelling)
    assert dtypes.default_dtype() is dtypes.float32


# Limits


@pytest.mark.parametrize(
    ("dtype", "bits", "eps", "largest", "smallest_normal", "resolution", "text"),
    [
        (
            dtypes.float16, 16, 2.0**-10, 65504.0, 2.0**-14, 1e-3,
            "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, "
            "tiny=6.10352e-05, dtype=float16)",
        ),
        (
            dtypes.float32, 32, 2.0**-23, 3.4028234663852886e38, 2.0**-126, 1e-6,
            "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
            "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)",
        ),
        (
            dtypes.float64, 64, 2.0**-52, 1.7976931348623157e308, 2.0**-1022, 1e-15,
            "finfo(resolution=1e-15, min=-1.79769e+308, max=1.79769e+308, eps=2.22045e-16, "
            "smallest_normal=2.22507e-308, tiny=2.22507e-308, dtype=float64)",
        ),
    ],
)  # fmt: skip
def test_finfo(
    dtype: np.dtype[Any],
    bits: int,
    eps: float,
    largest: float,
    smallest_normal: float,
    resolution: float,
    text: str,
) -> None:
    info = dtypes.finfo(dtype)
    assert (info.bits, info.eps, info.max, info.min) == (bits, eps, largest, -largest)
    assert info.tiny == info.smallest_normal == smallest_normal
    assert info.resolution == resolution
    assert info.dtype == dtype.name
    assert {type(getattr(info, name)) for name in ("eps", "max", "min", "tiny", "resolution")} == {builtins.float}
    assert repr(info) == str(info) == text
    if bits > 16:
        assert dtypes.finfo(dtypes.to_complex(dtype)) == info


@pytest.mark.parametrize(
    ("dtype", "bits", "low", "high", "text"),
    [
        (dtypes.int8, 8, -128, 127, "iinfo(min=-128, max=127, dtype=int8)"),
        (dtypes.uint8, 8, 0, 255, "iinfo(min=0, max=255, dtype=uint8)"),
        (dtypes.int32, 32, -(2**31), 2**31 - 1, "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"),
        (dtypes.int64, 64, -(2**63), 2**63 - 1, "iinfo(min=-9.22337e+18, max=9.22337e+18, dtype=int64)"),
        (dtypes.uint64, 64, 0, 2**64 - 1, "iinfo(min=0, max=1.84467e+19, dtype=uint64)"),
    ],
)
def test_iinfo(dtype: np.dtype[Any], bits: int, low: int, high: int, text: str) -> None:
    info = dtypes.iinfo(dtype)
    assert (info.bits, info.min, info.max, info.dtype) == (bits, low, high, dtype.name)
    assert repr(info) == str(info) == text


def test_limits_compare() -> None:
    assert dtypes.finfo() == dtypes.finfo("float32") != dtypes.finfo(builtins.float)
    assert dtypes.iinfo(builtins.int) == dtypes.iinfo("int64") != dtypes.iinfo("int32")
    assert dtypes.finfo() != dtypes.iinfo("int32")
    assert hash(dtypes.finfo()) == hash(dtypes.finfo("float32"))
    assert hash(dtypes.iinfo("int8")) != hash(dtypes.iinfo("int16"))


def test_limits_refuse() -> None:
    with pytest.raises(TypeError, match=r"requires a floating point input type, got torch\.int32; use torch\.iinfo"):
        dtypes.finfo("int32")
    with pytest.raises(TypeError, match=r"requires an integer input type, got torch\.float32; use torch\.finfo"):
        dtypes.iinfo(dtypes.float32)
    with pytest.raises(TypeError, match=r"torch\.bool is not supported by torch\.iinfo"):
        dtypes.iinfo(builtins.bool)


# The device


@pytest.mark.parametrize(
    ("arguments", "text", "name"),
    [
        (("cpu",), "device(type='cpu')", "cpu"),
        (("cpu:0",), "device(type='cpu', index=0)", "cpu:0"),
        (("cpu", 1), "device(type='cpu', index=1)", "cpu:1"),
        ((device("cpu"),), "device(type='cpu')", "cpu"),
        ((device("cpu:2"),), "device(type='cpu', index=2)", "cpu:2"),
    ],
)
def test_device(arguments: tuple[Any, ...], text: str, name: str) -> None:
    cpu = device(*arguments)
    assert (repr(cpu), str(cpu), cpu.type) == (text, name, "cpu")
    assert cpu == pickle.loads(pickle.dumps(cpu)) == device(name)
    assert hash(cpu) == hash(device(name))


def test_device_compares_type_and_index() -> None:
    for a, b in itertools.combinations([device("cpu"), device("cpu", 0), device("cpu", 1), "cpu"], 2):
        assert a != b
    assert device(type="cpu", index=0) == device("cpu:0")


def test_device_is_immutable_and_a_context() -> None:
    cpu = device("cpu")
    with pytest.raises(AttributeError, match="immutable"):
        cpu.type = "cuda"
    with cpu as entered:
        assert entered is cpu


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("foo",), "Expected one of cpu, cuda, .*: foo"),
        (("CPU",), "Expected one of cpu"),
        (("",), "Expected one of cpu"),
        ((0,), "device '0'"),
        (("cpu:x",), "Invalid device string: 'cpu:x'"),
        (("cpu:",), "Invalid device string"),
        (("cpu:-1",), "Invalid device string"),
        (("cpu", -1), "must not be negative"),
        (("cpu:0", 0), "must not include an index"),
    ],
)
def test_device_refuses(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        device(*arguments)


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "mps", "meta"])
def test_other_devices_have_names_only(name: str) -> None:
    assert str(device(name)) == name
    with pytest.raises(RuntimeError, match=f"device '{name}' is not available: .* with NumPy; use device 'cpu'"):
        check_device(device(name))


@pytest.mark.parametrize("argument", [None, 1.5, True])
def test_device_refuses_types(argument: Any) -> None:
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        device(argument)
