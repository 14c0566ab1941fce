"""Check and promote the operands of elementwise operations, with PyTorch's promotion rules.

``functions.general`` calls ``operand`` and ``promote_operands``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.arrays import dtypes, promotion
from chainrule._src.arrays.libraries import is_foreign
from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.versions import saveable_array

ndarray = np.ndarray
generic = np.generic


def operand(function: str, position: int, x: object) -> Any:
    """Check an operand: return tensors and numbers, convert arrays to tensors, raise TypeError for anything else."""
    if isinstance(x, generic) and x.dtype.kind in "fciub":
        return x.item()  # a NumPy scalar promotes weakly, like a Python number
    if isinstance(x, (Tensor, int, float, complex, ArrayLike)):
        return x
    if isinstance(x, (ndarray, generic)) and not is_foreign(type(x)):
        if x.dtype.kind not in "fciub":
            raise errors.wrong_operand(function, position, x)
        return wrap(saveable_array(dtypes.to_native_byte_order(x)))
    if type(x) is Array:
        return x._tensor
    if is_foreign(type(x)):
        return wrap(x)
    raise errors.wrong_operand(function, position, x)


def promote_operands(prim: Primitive, operands: Any) -> list[Any]:
    """Cast operands to the dtype PyTorch would compute in. Python numbers stay numbers: they promote weakly."""
    first = operands[0]
    if len(operands) == 1:
        target = dtype_of(first)
    elif len(operands) == 2:
        x, y = operands
        x_array, y_array = hasattr(x, "dtype"), hasattr(y, "dtype")
        if x_array and y_array:
            dx, dy = dtype_of(x), dtype_of(y)
            target = dx if dx is dy else promotion.result_dtype(dx, not x.ndim, dy, not y.ndim)
        else:
            target = promotion.scalar_dtype(dtype_of(x), y) if x_array else promotion.scalar_dtype(dtype_of(y), x)
    else:
        target = promotion.joint_dtype(
            *[x._raw if isinstance(x, Tensor) and type(x._raw) is ndarray else x for x in operands]
        )
    if prim.promotion == "float" and target.kind in "iub":
        target = dtypes.default_dtype()
    if target.kind in "iu" and prim.promotion != "comparison":  # NumPy compares integers of any dtypes correctly
        operands = [wrap_around(x, target) if type(x) is int else x for x in operands]
    return [cast(x, target) if hasattr(x, "dtype") and dtype_of(x) != target else x for x in operands]


def wrap_around(x: int, dtype: Any) -> int:
    """Wrap a Python integer around to the range of an integer dtype."""
    info = np.iinfo(dtype)
    if dtype.itemsize == 8 or info.min <= x <= info.max:
        return x
    return (x - int(info.min)) % (int(info.max) - int(info.min) + 1) + int(info.min)
