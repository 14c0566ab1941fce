"""Convert operands as NumPy does: lists become arrays, as in ``np.dot(t, [1., 2.])``, and dtypes are promoted.

The ``numpy_*`` modules call these functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, IntoArray
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.protocol import ArrayLike, as_plain_array
from chainrule._src.tape.tensor import Tensor


def asarray_or_tensor(x: IntoArray) -> AnyArray:
    """Convert anything ``np.asarray`` accepts to an array; a list that contains tensors becomes a tensor."""
    if hasattr(x, "shape"):
        return as_plain_array(x)
    if isinstance(x, (list, tuple)):
        parts = [asarray_or_tensor(part) for part in x]
        if any(isinstance(part, (Tensor, ArrayLike)) for part in parts):
            return np.stack(parts)
    return np.asarray(x)


def operands(*values: object) -> tuple[AnyArray, ...]:
    """Convert lists among operands to arrays. Python numbers are returned unchanged, because they promote weakly."""
    return tuple([asarray_or_tensor(x) if isinstance(x, (list, tuple)) else as_plain_array(x) for x in values])


def promotion_operand(x: Any) -> Any:
    """Return an operand's contribution to promotion: a Python number, which is weak, or a dtype."""
    return x if type(x) in (int, float, complex) else dtype_of(x)


def promoted(*values: Any) -> list[Any]:
    """Cast operands to the dtype that NumPy computes in: PyTorch's products need one common dtype."""
    arrays = [asarray_or_tensor(x) for x in values]
    dtype = np.result_type(*[x.dtype for x in arrays])
    return [cast(x, dtype) for x in arrays]


def sum_of_products(function: AnyFunction, *values: object) -> AnyArray:
    """Apply one of PyTorch's products to operands in NumPy's dtype; for booleans, return whether any product is true."""
    arrays = promoted(*values)
    if arrays[0].dtype != np.bool_:
        return function(*arrays)
    return function(*[cast(x, np.dtype(np.float64)) for x in arrays]) != 0
