"""PyTorch's promotion rules: the dtype that an operation computes in.

``api.operands`` and ``ops`` call these functions; ``chainrule`` exports ``can_cast``, ``promote_types`` and
``result_type``.

PyTorch sorts the participants of an operation into three groups: arrays with dimensions, 0-d arrays, and Python scalars.
A group affects the dtype only if it is of a higher kind (bool < integer < floating < complex) than the groups before it.
Therefore ``int64 array * 2.5`` is float32, and ``float32 array * 0-d float64 array`` is float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays import dtypes
from chainrule._src.arrays.dtype import DTYPE_OF, dtype
from chainrule._src.arrays.dtypes import (
    DType,
    as_dtype,
    default_dtype,
    dtype_of_data,
    get_default_complex_dtype,
    to_complex,
    torch_name,
)
from chainrule._src.arrays.types import TensorLike

_KIND_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_WIDE_UNSIGNED = (dtypes.uint16, dtypes.uint32, dtypes.uint64)


def can_cast(from_: object, to: object) -> bool:
    """Return whether PyTorch would cast one dtype to another inside an operation.

    Casting may lose range or precision, but never the kind: not complex to real,
    not floating to integer, not anything to bool.

    Example:
        >>> can_cast("float64", "float16"), can_cast("float32", "int64"), can_cast("int64", "uint8")
        (True, False, True)
    """
    return _KIND_RANK[as_dtype(from_).kind] <= _KIND_RANK[as_dtype(to).kind]


def promote_types(type1: object, type2: object) -> dtype:
    """Return the smallest dtype, in PyTorch's order, that both dtypes convert to.

    Unlike NumPy, an integer never widens a float: int64 with float32 is float32.

    Args:
        type1: anything ``as_dtype`` accepts.
        type2: anything ``as_dtype`` accepts.

    Raises:
        RuntimeError: for uint16, uint32 and uint64 with anything but themselves and floats.

    Example:
        >>> promote_types("int64", "float32"), promote_types("uint8", "int8")
        (torch.float32, torch.int16)
    """
    return DTYPE_OF[promoted_dtype(as_dtype(type1), as_dtype(type2))]


def promoted_dtype(a: DType, b: DType) -> DType:
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda d: (_KIND_RANK[d.kind], d.itemsize))
    if (a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED) and high.kind != "f":
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {torch_name(a)} and "
            f"{torch_name(b)}; cast one of them first, for instance with .to(torch.int64)"
        )
    if {a, b} == {dtypes.uint8, dtypes.int8}:
        return dtypes.int16
    return np.promote_types(low, high) if high.kind == "c" and low.kind == "f" else high


def _combine_groups(strong: DType | None, weak: DType | None) -> DType | None:
    """Combine two groups. The weaker group affects the dtype only if it is of a higher kind."""
    if strong is None or weak is None:
        return strong if weak is None else weak
    if _KIND_RANK[weak.kind] <= _KIND_RANK[strong.kind]:
        return strong
    if weak.kind == "c":
        return to_complex(strong) if strong.kind == "f" else weak
    return promoted_dtype(strong, weak)


_RESULTS: dict[tuple[object, ...], DType] = {}
_PAIR_RESULTS: dict[tuple[DType, bool, DType, bool], DType] = {}
_SCALAR_RESULTS: dict[tuple[DType, type], DType] = {}
dtypes.on_default_change.extend([_RESULTS.clear, _SCALAR_RESULTS.clear])


def result_dtype(dx: DType, zero_dim_x: bool, dy: DType, zero_dim_y: bool) -> DType:
    """Return the dtype of an operation on two arrays, from a cache.

    Args:
        dx: dtype of the first array.
        zero_dim_x: whether the first array is 0-d, and so weaker than one with dimensions.
        dy: dtype of the second array.
        zero_dim_y: whether the second array is 0-d.

    Example:
        >>> result_dtype(dtypes.float32, False, dtypes.float64, True)
        dtype('float32')
        >>> result_dtype(dtypes.float32, False, dtypes.float64, False)
        dtype('float64')
    """
    if dx is dy:
        return dx
    try:
        return _PAIR_RESULTS[dx, zero_dim_x, dy, zero_dim_y]
    except KeyError:
        pass
    x, y = dtype_of_data(dx), dtype_of_data(dy)
    dtype: DType | None
    if zero_dim_x == zero_dim_y:
        dtype = promoted_dtype(x, y)
    else:
        dtype = _combine_groups(y, x) if zero_dim_x else _combine_groups(x, y)
    assert dtype is not None
    _PAIR_RESULTS[dx, zero_dim_x, dy, zero_dim_y] = dtype
    return dtype


def scalar_dtype(dx: DType, scalar: object) -> DType:
    """Return the dtype of an operation on an array and a Python scalar, from a cache.

    The scalar is weak: it may change the kind, but never the width.

    Args:
        dx: dtype of the array.
        scalar: a Python or NumPy number.

    Raises:
        TypeError: if ``scalar`` is not a number.

    Example:
        >>> scalar_dtype(dtypes.float16, 3.0), scalar_dtype(dtypes.int64, 0.5), scalar_dtype(dtypes.uint8, 300)
        (dtype('float16'), dtype('float32'), dtype('uint8'))
    """
    try:
        return _SCALAR_RESULTS[dx, type(scalar)]
    except KeyError:
        pass
    dtype = _combine_groups(dtype_of_data(dx), _dtype_of_scalar(_scalar_kind(scalar)))
    assert dtype is not None
    _SCALAR_RESULTS[dx, type(scalar)] = dtype
    return dtype


def result_type(*operands: TensorLike) -> dtype:
    """Return the dtype PyTorch would compute an operation on these operands in.

    Args:
        *operands: arrays or tensors (anything with ``dtype`` and ``ndim``) and Python scalars.
            0-d arrays are weaker than arrays with dimensions, scalars weaker still.

    Raises:
        TypeError: if an operand is neither an array nor a number.

    Example:
        >>> result_type(np.ones(3, "float32"), np.array(1.0), 2)
        torch.float32
        >>> result_type(np.ones(3, "int64"), 2.0)
        torch.float32
    """
    return DTYPE_OF[joint_dtype(*operands)]


def joint_dtype(*operands: TensorLike) -> DType:
    """Return ``result_type`` as NumPy's dtype."""
    key = tuple([_promotion_key(operand) for operand in operands])
    try:
        return _RESULTS[key]
    except KeyError:
        pass
    arrays: DType | None = None
    zero_dims: DType | None = None
    scalars: DType | None = None
    for part in key:
        if isinstance(part, tuple):
            dtype, zero_dim = dtype_of_data(part[0]), part[1]
            if zero_dim:
                zero_dims = dtype if zero_dims is None else promoted_dtype(zero_dims, dtype)
            else:
                arrays = dtype if arrays is None else promoted_dtype(arrays, dtype)
        else:
            dtype = _dtype_of_scalar(part)
            scalars = dtype if scalars is None else promoted_dtype(scalars, dtype)
    result = _combine_groups(arrays, _combine_groups(zero_dims, scalars))
    if result is None:
        raise TypeError("result_type() needs at least one operand: an array or a number")
    result = _RESULTS[key] = dtype_of_data(result)
    return result


def _promotion_key(operand: Any) -> tuple[DType, bool] | type:
    """Return the parts of an operand that affect promotion: (dtype, is 0-d), or a Python type."""
    kind = type(operand)
    if kind in _PYTHON_NUMBERS:
        return kind
    if not isinstance(operand, np.generic):
        try:
            return operand.dtype, operand.ndim == 0
        except AttributeError:
            pass
    return _scalar_kind(operand)


_PYTHON_NUMBERS = frozenset({bool, int, float, complex})


def _scalar_kind(scalar: object) -> type:
    if isinstance(scalar, (bool, np.bool_)):
        return bool
    if isinstance(scalar, (int, np.integer)):
        return int
    if isinstance(scalar, (float, np.floating)):
        return float
    if isinstance(scalar, (complex, np.complexfloating)):
        return complex
    raise TypeError(
        f"expected an array or a number, got {type(scalar).__name__} {scalar!r}; "
        "dtypes themselves are combined by promote_types()"
    )


def _dtype_of_scalar(kind: type) -> DType:
    if kind is float:
        return default_dtype()
    if kind is complex:
        return get_default_complex_dtype()
    return dtypes.SPELLINGS[kind]
