"""Internal dtypes: NumPy's dtype objects under PyTorch's names.

A dtype here *is* an ``np.dtype``: the dtype of an array, which rules compare. Public functions return dtypes of ``arrays.dtype``.
"""

import builtins
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

DType: TypeAlias = np.dtype[Any]

bool = np.dtype("bool")
uint8 = np.dtype("uint8")
int8 = np.dtype("int8")
int16 = short = np.dtype("int16")
int32 = int = np.dtype("int32")
int64 = long = np.dtype("int64")
uint16 = np.dtype("uint16")
uint32 = np.dtype("uint32")
uint64 = np.dtype("uint64")
float16 = half = np.dtype("float16")
float32 = float = np.dtype("float32")
float64 = double = np.dtype("float64")
complex64 = cfloat = np.dtype("complex64")
complex128 = cdouble = np.dtype("complex128")

# From here on `bool`, `int` and `float` are dtypes; the Python types are `builtins.…`.

DTYPES: tuple[DType, ...] = (
    bool, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, float32, float64, complex64, complex128,
)  # fmt: skip

NAMES: dict[str, DType] = {d.name: d for d in DTYPES} | {
    "half": half, "float": float, "double": double, "cfloat": cfloat, "cdouble": cdouble,
    "short": short, "int": int, "long": long,
}  # fmt: skip

_CONCRETE_SCALARS: tuple[type[np.generic], ...] = (
    np.bool_, np.byte, np.ubyte, np.short, np.ushort, np.intc, np.uintc, np.int_, np.uint,
    np.int64, np.uint64, np.longlong, np.ulonglong,
    np.half, np.single, np.double, np.csingle, np.cdouble,
)  # fmt: skip

#: NumPy dtypes that PyTorch does not have: NumPy-style arrays keep them
NUMPYS_OWN: tuple[DType, ...] = (np.dtype("longdouble"), np.dtype("clongdouble"))

SPELLINGS: dict[object, DType] = {
    **{d: d for d in DTYPES},
    **{f"torch.{name}": d for name, d in NAMES.items()},
    **{d.name: d for d in DTYPES},
    builtins.bool: bool,
    builtins.int: int64,
    builtins.float: float64,
    builtins.complex: complex128,
}
SPELLINGS.update({scalar: SPELLINGS[np.dtype(scalar)] for scalar in _CONCRETE_SCALARS})

_AMBIGUOUS = {"float": ("float32", "float64"), "int": ("int32", "int64")}
_MISSING = {"bfloat16": "float32", "complex32": "complex64", "chalf": "complex64"}


# Names


def as_dtype(dtype: object) -> DType:
    """Convert a ``dtype=`` argument to a dtype object.

    Python's types have PyTorch's meaning: ``float`` is float64, ``int`` is int64, ``complex`` is complex128.

    Args:
        dtype: a NumPy dtype, a NumPy scalar type, a name such as ``"float32"`` or
            ``"torch.float32"``, or one of Python's ``float``, ``int``, ``bool``, ``complex``.

    Returns:
        The dtype; equal dtypes are the same object.

    Raises:
        TypeError: if ``dtype`` names no element type that PyTorch and NumPy have in common.

    Example:
        >>> as_dtype(type(2.5)), as_dtype(np.int16), as_dtype("torch.float")
        (dtype('float64'), dtype('int16'), dtype('float32'))
        >>> as_dtype(np.dtype(object))
        Traceback (most recent call last):
            ...
        TypeError: PyTorch has no dtype for NumPy's object; convert the data first, for instance \
with array.astype(np.float64)
    """
    try:
        return SPELLINGS[dtype]
    except (KeyError, TypeError):
        pass
    if isinstance(dtype, str):
        return _from_string(dtype)
    if str(dtype).removeprefix("torch.") in _MISSING:
        return _from_string(str(dtype))
    if isinstance(dtype, np.dtype):
        raise TypeError(_unsupported_dtype(dtype))
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        raise TypeError(_unsupported_dtype(dtype))
    what = dtype.__name__ if isinstance(dtype, type) else f"{type(dtype).__name__} {dtype!r}"
    raise TypeError(
        "dtype must be torch.dtype, such as torch.float32, or its NumPy or Python equivalent "
        f"(np.float32, 'float32', float), not {what}"
    )


def dtype_of_data(dtype: object) -> DType:
    """Return ``as_dtype(dtype)``; also accept ``NUMPYS_OWN``, which only the data of an Array may have."""
    return dtype if dtype in NUMPYS_OWN else as_dtype(dtype)  # type: ignore[return-value]


def _from_string(name: str) -> DType:
    bare = name.removeprefix("torch.")
    if bare in _MISSING:
        raise TypeError(f"NumPy carries no {bare}; use {_MISSING[bare]} instead")
    if name in _AMBIGUOUS:
        ours, numpys = _AMBIGUOUS[name]
        raise TypeError(f"dtype '{name}' is {ours} to PyTorch and {numpys} to NumPy; write '{ours}' or '{numpys}'")
    try:
        dtype = np.dtype(name)
    except TypeError:
        raise TypeError(f"dtype must be torch.dtype or its name, such as 'float32', not '{name}'") from None
    if dtype not in SPELLINGS:
        raise TypeError(_unsupported_dtype(dtype))
    return SPELLINGS[dtype]


def to_native_byte_order(array: Any) -> Any:
    """Return the array in native byte order: itself, or a copy."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _unsupported_dtype(dtype: DType | type[np.generic]) -> str:
    if isinstance(dtype, type):
        return (
            f"PyTorch has no dtype for NumPy's {dtype.__name__}; "
            "pass a type with a fixed size, such as np.float64 or np.int64"
        )
    native = dtype.newbyteorder("=")
    if native in SPELLINGS:
        return (
            f"PyTorch has no byte-swapped dtypes such as '{dtype.str}'; "
            f"convert the data first with array.astype(np.{native.name})"
        )
    return (
        f"PyTorch has no dtype for NumPy's {dtype.name}; "
        "convert the data first, for instance with array.astype(np.float64)"
    )


def torch_name(dtype: object) -> str:
    """Return the name PyTorch prints for a dtype.

    Args:
        dtype: anything ``as_dtype`` accepts.

    Example:
        >>> torch_name(np.float64)
        'torch.float64'
    """
    return f"torch.{as_dtype(dtype).name}"


# The default


_default = float32
#: functions to call when the default dtype changes
on_default_change: list[Callable[[], object]] = []


def default_dtype() -> DType:
    """Return the dtype that Python floats become; float32 unless it was changed."""
    return _default


def set_default_dtype(d: object) -> None:
    """Set the dtype that Python floats become, and that ``repr`` omits.

    Args:
        d: a floating-point dtype, as ``as_dtype`` accepts it.

    Raises:
        TypeError: if ``d`` is not a floating-point dtype.

    Example:
        >>> set_default_dtype("float64")
        >>> default_dtype()
        dtype('float64')
        >>> set_default_dtype(float32)
        >>> set_default_dtype(int64)
        Traceback (most recent call last):
            ...
        TypeError: only floating-point types are supported as the default type, not torch.int64
    """
    global _default
    try:
        dtype = as_dtype(d)
    except TypeError as error:
        raise TypeError(
            f"invalid dtype object: only floating-point types are supported as the default type; {error}"
        ) from None
    if dtype.kind != "f":
        raise TypeError(f"only floating-point types are supported as the default type, not {torch_name(dtype)}")
    _default = dtype
    for clear in on_default_change:
        clear()


def get_default_complex_dtype() -> DType:
    """Return the dtype that Python complex numbers become.

    Example:
        >>> get_default_complex_dtype()
        dtype('complex64')
    """
    return to_complex(_default)


# Properties


def is_floating_point(dtype: object) -> builtins.bool:
    """Return whether a dtype is real floating-point.

    Example:
        >>> is_floating_point(float16), is_floating_point(complex64), is_floating_point(int)
        (True, False, False)
    """
    return as_dtype(dtype).kind == "f"


def is_complex(dtype: object) -> builtins.bool:
    """Return whether a dtype is complex.

    Example:
        >>> is_complex(complex64), is_complex(float64)
        (True, False)
    """
    return as_dtype(dtype).kind == "c"


def to_complex(dtype: object) -> DType:
    """Return the complex dtype with parts of a floating dtype; complex dtypes are returned unchanged.

    NumPy has no half-precision complex numbers, so float16 gives complex64.

    Example:
        >>> to_complex(float64)
        dtype('complex128')
    """
    dtype = dtype_of_data(dtype)
    if dtype.kind == "c":
        return dtype
    if dtype.kind != "f":
        raise TypeError(f"expected a floating or complex dtype, got {torch_name(dtype)}")
    return np.promote_types(dtype, complex64)


def to_real(dtype: object) -> DType:
    """Return the dtype of a complex dtype's parts; floating dtypes are returned unchanged.

    Example:
        >>> to_real(complex64)
        dtype('float32')
    """
    dtype = dtype_of_data(dtype)
    if dtype.kind == "f":
        return dtype
    if dtype.kind != "c":
        raise TypeError(f"expected a floating or complex dtype, got {torch_name(dtype)}")
    return dtype.type(0).real.dtype


# Limits


class finfo:
    """Limits of a floating-point dtype; for a complex dtype, those of its parts.

    Args:
        type: the dtype; by default the default dtype.

    Raises:
        TypeError: if ``type`` is not floating or complex.

    Example:
        >>> finfo(float32).eps
        1.1920928955078125e-07
        >>> finfo(float16)
        finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, \
smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float16)
    """

    __module__ = "chainrule"
    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: object = None) -> None:
        dtype = _default if type is None else as_dtype(type)
        if dtype.kind not in "fc":
            raise TypeError(
                "torch.finfo() requires a floating point input type, "
                f"got {torch_name(dtype)}; use torch.iinfo for integers"
            )
        limits = np.finfo(dtype)
        self.dtype: str = to_real(dtype).name
        self.bits: builtins.int = limits.bits
        self.eps = builtins.float(limits.eps)
        self.max = builtins.float(limits.max)
        self.min = builtins.float(limits.min)
        self.tiny = self.smallest_normal = builtins.float(limits.tiny)
        # The double nearest to the power of ten; NumPy would round it to the dtype first.
        self.resolution = builtins.float(f"1e-{limits.precision}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> builtins.bool:
        return self.dtype == other.dtype if isinstance(other, finfo) else NotImplemented

    def __hash__(self) -> builtins.int:
        return hash((finfo, self.dtype))


class iinfo:
    """Limits of an integer dtype.

    Args:
        type: the dtype.

    Raises:
        TypeError: if ``type`` is not an integer dtype.

    Example:
        >>> iinfo(int16).max
        32767
        >>> import numpy as np
        >>> iinfo(np.uint8)
        iinfo(min=0, max=255, dtype=uint8)
    """

    __module__ = "chainrule"
    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: object) -> None:
        dtype = as_dtype(type)
        if dtype.kind == "b":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if dtype.kind not in "iu":
            raise TypeError(
                "torch.iinfo() requires an integer input type, "
                f"got {torch_name(dtype)}; use torch.finfo for floating point"
            )
        limits = np.iinfo(dtype)
        self.dtype: str = dtype.name
        self.bits = builtins.int(limits.bits)
        self.max = builtins.int(limits.max)
        self.min = builtins.int(limits.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> builtins.bool:
        return self.dtype == other.dtype if isinstance(other, iinfo) else NotImplemented

    def __hash__(self) -> builtins.int:
        return hash((iinfo, self.dtype))
