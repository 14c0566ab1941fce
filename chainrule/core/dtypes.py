"""Element types: NumPy's dtype objects under PyTorch's names, promoted by PyTorch's rules.

A dtype here *is* a ``np.dtype``; nothing wraps it, so data moves between the two worlds as it is.
PyTorch sorts the participants of an operation into three groups: arrays with dimensions,
0-d arrays, and Python scalars. A group matters only if it is of a higher kind
(bool < integer < floating < complex) than the groups before it. That is why
``int64 array * 2.5`` is float32 and ``float32 array * 0-d float64 array`` stays float32.
"""

import builtins
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

# Below this line `bool`, `int` and `float` are dtypes; the Python types are `builtins.…`.

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

_SPELLINGS: dict[object, DType] = {
    **{d: d for d in DTYPES},
    **{f"torch.{name}": d for name, d in NAMES.items()},
    **{d.name: d for d in DTYPES},
    builtins.bool: bool,
    builtins.int: int64,
    builtins.float: float64,
    builtins.complex: complex128,
}
_SPELLINGS.update({scalar: _SPELLINGS[np.dtype(scalar)] for scalar in _CONCRETE_SCALARS})

_AMBIGUOUS = {"float": ("float32", "float64"), "int": ("int32", "int64")}
_MISSING = {"bfloat16": "float32", "complex32": "complex64", "chalf": "complex64"}
_KIND_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_WIDE_UNSIGNED = (uint16, uint32, uint64)


# Names


def as_dtype(dtype: object) -> DType:
    """Normalise whatever a user may pass as ``dtype=`` to one dtype object.

    Python's types mean what they mean to PyTorch: ``float`` is float64, ``int`` is int64,
    ``complex`` is complex128.

    Args:
        dtype: a NumPy dtype, a NumPy scalar type, a name such as ``"float32"`` or
            ``"torch.float32"``, or one of Python's ``float``, ``int``, ``bool``, ``complex``.

    Returns:
        The dtype; equal dtypes come back as one and the same object.

    Raises:
        TypeError: if ``dtype`` names no element type that PyTorch and NumPy share.

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
        return _SPELLINGS[dtype]
    except (KeyError, TypeError):
        pass
    if isinstance(dtype, str):
        return _from_string(dtype)
    if isinstance(dtype, np.dtype):
        raise TypeError(_foreign(dtype))
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        raise TypeError(_foreign(dtype))
    what = dtype.__name__ if isinstance(dtype, type) else f"{type(dtype).__name__} {dtype!r}"
    raise TypeError(
        "dtype must be torch.dtype, such as torch.float32, or its NumPy or Python equivalent "
        f"(np.float32, 'float32', float), not {what}"
    )


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
    if dtype not in _SPELLINGS:
        raise TypeError(_foreign(dtype))
    return _SPELLINGS[dtype]


def _foreign(dtype: DType | type[np.generic]) -> str:
    if isinstance(dtype, type):
        return (
            f"PyTorch has no dtype for NumPy's {dtype.__name__}; "
            "pass a type with a fixed size, such as np.float64 or np.int64"
        )
    native = dtype.newbyteorder("=")
    if native in _SPELLINGS:
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
        dtype: anything ``as_dtype`` takes.

    Example:
        >>> torch_name(np.float64)
        'torch.float64'
    """
    return f"torch.{as_dtype(dtype).name}"


# The default


_default = float32


def get_default_dtype() -> DType:
    """Return the dtype that Python floats become; float32 unless it was changed.

    Example:
        >>> get_default_dtype()
        dtype('float32')
    """
    return _default


def set_default_dtype(d: object) -> None:
    """Set the dtype that Python floats become, and the one that ``repr`` leaves out.

    Args:
        d: a floating-point dtype in any spelling ``as_dtype`` takes.

    Raises:
        TypeError: if ``d`` is not a floating-point dtype.

    Example:
        >>> set_default_dtype("float64")
        >>> scalar_dtype(int64, 0.5)
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
    _SCALAR_RESULTS.clear()
    _RESULTS.clear()


def get_default_complex_dtype() -> DType:
    """Return the dtype that Python complex numbers become.

    Example:
        >>> get_default_complex_dtype()
        dtype('complex64')
    """
    return to_complex(_default)


# Properties


def is_floating_point(dtype: object) -> builtins.bool:
    """Say whether a dtype is a real floating-point one.

    Example:
        >>> is_floating_point(float16), is_floating_point(complex64), is_floating_point(int)
        (True, False, False)
    """
    return as_dtype(dtype).kind == "f"


def is_complex(dtype: object) -> builtins.bool:
    """Say whether a dtype is complex.

    Example:
        >>> is_complex(complex64), is_complex(float64)
        (True, False)
    """
    return as_dtype(dtype).kind == "c"


def to_complex(dtype: object) -> DType:
    """Return the complex dtype whose parts have a floating dtype; complex ones are kept.

    NumPy has no half-precision complex numbers, so float16 gives complex64.

    Example:
        >>> to_complex(float64)
        dtype('complex128')
    """
    dtype = as_dtype(dtype)
    if dtype.kind == "c":
        return dtype
    if dtype.kind != "f":
        raise TypeError(f"expected a floating or complex dtype, got {torch_name(dtype)}")
    return complex128 if dtype == float64 else complex64


def to_real(dtype: object) -> DType:
    """Return the dtype of a complex dtype's parts; floating ones are kept.

    Example:
        >>> to_real(complex64)
        dtype('float32')
    """
    dtype = as_dtype(dtype)
    if dtype.kind == "f":
        return dtype
    if dtype.kind != "c":
        raise TypeError(f"expected a floating or complex dtype, got {torch_name(dtype)}")
    return float64 if dtype == complex128 else float32


def can_cast(from_: object, to: object) -> builtins.bool:
    """Say whether PyTorch would cast one dtype to another inside an operation.

    Casting may lose range or precision, but never the kind: not complex to real,
    not floating to integer, not anything to bool.

    Example:
        >>> can_cast(float64, float16), can_cast(float32, int64), can_cast(int64, uint8)
        (True, False, True)
    """
    return _KIND_RANK[as_dtype(from_).kind] <= _KIND_RANK[as_dtype(to).kind]


# Promotion


def promote_types(type1: object, type2: object) -> DType:
    """Return the smallest dtype, in PyTorch's order, that both dtypes convert to.

    Unlike NumPy, an integer never widens a float: int64 with float32 is float32.

    Args:
        type1: anything ``as_dtype`` takes.
        type2: likewise.

    Raises:
        RuntimeError: for uint16, uint32 and uint64 with anything but themselves and floats.

    Example:
        >>> promote_types(int64, float32), promote_types(uint8, int8)
        (dtype('float32'), dtype('int16'))
    """
    a, b = as_dtype(type1), as_dtype(type2)
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda d: (_KIND_RANK[d.kind], d.itemsize))
    if (a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED) and high.kind != "f":
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            f"{torch_name(a)} and {torch_name(b)}; cast one of them first, "
            "for instance with .to(torch.int64)"
        )
    if {a, b} == {uint8, int8}:
        return int16
    if high.kind == "c" and low == float64:
        return complex128
    return high


def _combine(strong: DType | None, weak: DType | None) -> DType | None:
    """Let a lower-priority group speak only where it is of a higher kind."""
    if strong is None or weak is None:
        return strong if weak is None else weak
    if _KIND_RANK[weak.kind] <= _KIND_RANK[strong.kind]:
        return strong
    if weak.kind == "c":
        return to_complex(strong) if strong.kind == "f" else weak
    return promote_types(strong, weak)


_RESULTS: dict[tuple[object, ...], DType] = {}
_PAIR_RESULTS: dict[tuple[DType, builtins.bool, DType, builtins.bool], DType] = {}
_SCALAR_RESULTS: dict[tuple[DType, type], DType] = {}


def result_dtype(dx: DType, zero_dim_x: builtins.bool, dy: DType, zero_dim_y: builtins.bool) -> DType:
    """Return the dtype of an operation on two arrays, from a cache.

    Args:
        dx: dtype of the first array.
        zero_dim_x: whether the first array is 0-d, and so weaker than one with dimensions.
        dy: dtype of the second array.
        zero_dim_y: whether the second array is 0-d.

    Example:
        >>> result_dtype(float32, False, float64, True)
        dtype('float32')
        >>> result_dtype(float32, False, float64, False)
        dtype('float64')
    """
    if dx is dy:
        return dx
    try:
        return _PAIR_RESULTS[dx, zero_dim_x, dy, zero_dim_y]
    except KeyError:
        pass
    x, y = as_dtype(dx), as_dtype(dy)
    dtype: DType | None
    if zero_dim_x == zero_dim_y:
        dtype = promote_types(x, y)
    else:
        dtype = _combine(y, x) if zero_dim_x else _combine(x, y)
    assert dtype is not None
    _PAIR_RESULTS[dx, zero_dim_x, dy, zero_dim_y] = dtype
    return dtype


def scalar_dtype(dx: DType, scalar: object) -> DType:
    """Return the dtype of an operation on an array and a Python scalar, from a cache.

    The scalar is weak: it changes the kind if it must, never the width.

    Args:
        dx: dtype of the array.
        scalar: a Python or NumPy number.

    Raises:
        TypeError: if ``scalar`` is no number.

    Example:
        >>> scalar_dtype(float16, 3.0), scalar_dtype(int64, 0.5), scalar_dtype(uint8, 300)
        (dtype('float16'), dtype('float32'), dtype('uint8'))
    """
    try:
        return _SCALAR_RESULTS[dx, type(scalar)]
    except KeyError:
        pass
    dtype = _combine(as_dtype(dx), _dtype_of_scalar(_scalar_kind(scalar)))
    assert dtype is not None
    _SCALAR_RESULTS[dx, type(scalar)] = dtype
    return dtype


def result_type(*operands: Any) -> DType:
    """Return the dtype PyTorch would compute an operation on these operands in.

    Args:
        *operands: arrays or tensors (anything with ``dtype`` and ``ndim``) and Python scalars.
            0-d arrays are weaker than arrays with dimensions, scalars weaker still.

    Raises:
        TypeError: if an operand is neither an array nor a number.

    Example:
        >>> result_type(np.ones(3, "float32"), np.array(1.0), 2)
        dtype('float32')
        >>> result_type(np.ones(3, "int64"), 2.0)
        dtype('float32')
    """
    key = tuple([_participant(operand) for operand in operands])
    try:
        return _RESULTS[key]
    except KeyError:
        pass
    arrays: DType | None = None
    zero_dims: DType | None = None
    scalars: DType | None = None
    for part in key:
        if isinstance(part, tuple):
            dtype, zero_dim = part
            if zero_dim:
                zero_dims = dtype if zero_dims is None else promote_types(zero_dims, dtype)
            else:
                arrays = dtype if arrays is None else promote_types(arrays, dtype)
        else:
            dtype = _dtype_of_scalar(part)
            scalars = dtype if scalars is None else promote_types(scalars, dtype)
    result = _combine(arrays, _combine(zero_dims, scalars))
    if result is None:
        raise TypeError("result_type() needs at least one operand: an array or a number")
    result = _RESULTS[key] = as_dtype(result)
    return result


def _participant(operand: Any) -> tuple[DType, builtins.bool] | type:
    """Reduce an operand to what promotion depends on: (dtype, is 0-d) or a Python type."""
    kind = type(operand)
    if kind in _PYTHON_NUMBERS:
        return kind
    if not isinstance(operand, np.generic):
        try:
            return operand.dtype, operand.ndim == 0
        except AttributeError:
            pass
    return _scalar_kind(operand)


_PYTHON_NUMBERS = frozenset({builtins.bool, builtins.int, builtins.float, complex})


def _scalar_kind(scalar: object) -> type:
    if isinstance(scalar, (builtins.bool, np.bool_)):
        return builtins.bool
    if isinstance(scalar, (builtins.int, np.integer)):
        return builtins.int
    if isinstance(scalar, (builtins.float, np.floating)):
        return builtins.float
    if isinstance(scalar, (complex, np.complexfloating)):
        return complex
    raise TypeError(
        f"expected an array or a number, got {type(scalar).__name__} {scalar!r}; "
        "dtypes themselves are combined by promote_types()"
    )


def _dtype_of_scalar(kind: type) -> DType:
    if kind is builtins.float:
        return _default
    if kind is complex:
        return get_default_complex_dtype()
    return _SPELLINGS[kind]


# Limits


class finfo:
    """Limits of a floating-point dtype; a complex dtype gives those of its parts.

    Args:
        type: the dtype; the default dtype if left out.

    Raises:
        TypeError: if ``type`` is not floating or complex.

    Example:
        >>> finfo(float32).eps
        1.1920928955078125e-07
        >>> finfo(float16)
        finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, \
smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float16)
    """

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
        # The nearest double to the power of ten; NumPy rounds it to the dtype first.
        self.resolution = builtins.float(f"1e-{limits.precision}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
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
        >>> iinfo(np.uint8)
        iinfo(min=0, max=255, dtype=uint8)
    """

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
