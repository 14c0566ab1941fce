"""The public ``dtype``: it has PyTorch's attributes and name, and otherwise behaves like NumPy's dtype.

``Tensor.dtype`` returns these objects, and ``chainrule`` exports them.

NumPy's dtype objects lack PyTorch's attributes, so ``dtype`` wraps one as ``dtype.dtype`` (the attribute that NumPy
reads). There is one object for each element type. Arrays, rules and all other internals use NumPy's objects, which are in
``arrays.dtypes``. ``DTYPE_OF`` maps NumPy's to public dtypes, and ``as_dtype`` public ones to NumPy's.
"""

from __future__ import annotations

import builtins
from typing import Any, TypeAlias

import numpy as np

from chainrule._src.arrays import dtypes
from chainrule._src.arrays.dtypes import SPELLINGS, as_dtype
from chainrule._src.arrays.types import NumpyDType

_COPIED = ("alignment", "byteorder", "char", "itemsize", "kind", "name", "num", "str", "type")

#: NumPy's dtype -> public dtype
DTYPE_OF: dict[NumpyDType, dtype] = {}


class dtype:
    """An element type, such as ``torch.float32``. There is one object for each; ``dtype("float32")`` returns it.

    NumPy accepts it in place of its own dtypes. It equals NumPy's dtype, with the same hash, and all objects that equal
    NumPy's dtype (``np.float32``, ``"float32"``; Python's ``float`` is float64), except None.

    Args:
        spelling: a NumPy dtype, a NumPy scalar type, a name, or one of Python's ``float``, ``int``, ``bool``, ``complex``.

    Attributes:
        is_floating_point: whether it is a real floating-point dtype.
        is_complex: whether it is a complex dtype.
        is_signed: whether it has negative numbers.
        itemsize: bytes per element.
        dtype: NumPy's dtype.

    Raises:
        TypeError: PyTorch and NumPy have no such element type in common.

    >>> import chainrule as cr, numpy as np
    >>> cr.float32, cr.float32.is_complex, cr.float32 == np.float32
    (torch.float32, False, True)
    >>> np.zeros(2, cr.float32).dtype
    dtype('float32')
    """

    __slots__ = (*_COPIED, "dtype", "is_complex", "is_floating_point", "is_signed")
    __module__ = "chainrule"

    alignment: builtins.int
    byteorder: builtins.str
    char: builtins.str
    itemsize: builtins.int
    kind: builtins.str
    name: builtins.str
    num: builtins.int
    str: builtins.str
    type: builtins.type[Any]
    dtype: NumpyDType
    is_complex: builtins.bool
    is_floating_point: builtins.bool
    is_signed: builtins.bool

    def __new__(cls, spelling: object) -> Dtype:
        return DTYPE_OF[as_dtype(spelling)]

    def to_real(self) -> Dtype:
        """Return the dtype of the real part; real dtypes are returned unchanged."""
        return DTYPE_OF[dtypes.to_real(self.dtype)] if self.is_complex else self

    def to_complex(self) -> Dtype:
        """Return the complex dtype with parts of this dtype. For float16 return complex64, because NumPy has no smaller one.

        Raises:
            TypeError: an integer dtype, or bool.
        """
        return DTYPE_OF[dtypes.to_complex(self.dtype)]

    @property
    def __numpy_dtype__(self) -> NumpyDType:
        return self.dtype

    @property  # type: ignore[misc]
    def __class__(self) -> builtins.type[Any]:
        """NumPy's dtype class, so that ``isinstance(d, np.dtype)`` is true: some NumPy functions would not convert it otherwise."""
        return builtins.type(self.dtype)

    def __getattr__(self, name: builtins.str) -> Any:
        if not name.startswith("_") and hasattr(self.dtype, name):
            return getattr(self.dtype, name)
        raise AttributeError(f"'torch.dtype' object has no attribute '{name}'")

    def __setattr__(self, name: builtins.str, value: object) -> None:
        raise AttributeError("attributes of a torch.dtype cannot be set: each dtype is a single shared object")

    def __dir__(self) -> list[builtins.str]:
        return sorted({*object.__dir__(self), *dir(self.dtype)})

    def __eq__(self, other: object) -> builtins.bool:
        if other is self or other is self.dtype:
            return True
        if builtins.type(other) is dtype:
            return False
        if isinstance(other, (np.dtype, builtins.str)):
            return self.dtype == other
        if isinstance(other, builtins.type):
            return SPELLINGS.get(other) is self.dtype
        return NotImplemented

    def __hash__(self) -> builtins.int:
        return hash(self.dtype)

    def __repr__(self) -> builtins.str:
        return f"torch.{self.name}"

    def __reduce__(self) -> builtins.str:
        return self.name  # the name of this module's global: copies are the object itself


Dtype: TypeAlias = dtype  # within the class, ``dtype`` is an attribute


def _make(numpys: NumpyDType) -> dtype:
    out = object.__new__(dtype)
    attributes = {name: getattr(numpys, name) for name in _COPIED}
    kind = numpys.kind
    attributes |= {"is_floating_point": kind == "f", "is_complex": kind == "c", "is_signed": kind not in "bu"}
    for name, value in {**attributes, "dtype": numpys}.items():
        object.__setattr__(out, name, value)
    return out


DTYPE_OF.update({numpys: _make(numpys) for numpys in dtypes.DTYPES})

bool = dtype("bool")
uint8 = dtype("uint8")
int8 = dtype("int8")
int16 = short = dtype("int16")
int32 = int = dtype("int32")
int64 = long = dtype("int64")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float16 = half = dtype("float16")
float32 = float = dtype("float32")
float64 = double = dtype("float64")
complex64 = cfloat = dtype("complex64")
complex128 = cdouble = dtype("complex128")


class _Named(dtype):
    """A PyTorch dtype that NumPy lacks. It exists as a name only: functions that make tensors raise."""

    __slots__ = ()

    def __getattr__(self, name: builtins.str) -> Any:
        if name == "__numpy_dtype__" or (not name.startswith("__") and hasattr(np.dtype, name)):
            return as_dtype(self.name)  # raises an error that names an alternative
        raise AttributeError(f"'torch.dtype' object has no attribute '{name}'")

    @property  # type: ignore[misc]
    def __class__(self) -> builtins.type[Any]:
        return dtype

    def __eq__(self, other: object) -> builtins.bool:
        return other is self

    def __hash__(self) -> builtins.int:
        return hash(self.name)


bfloat16 = object.__new__(_Named)
for _name, _value in {
    "name": "bfloat16",
    "is_floating_point": True,
    "is_complex": False,
    "is_signed": True,
    "itemsize": 2,
}.items():
    object.__setattr__(bfloat16, _name, _value)


def get_default_dtype() -> dtype:
    """Return the dtype that Python floats become; float32 unless it was changed.

    Example:
        >>> get_default_dtype()
        torch.float32
    """
    return DTYPE_OF[dtypes.default_dtype()]
