"""``torch.types``: aliases for annotations."""

import builtins
from collections.abc import Sequence
from typing import Any, TypeAlias

from chainrule._src.arrays.device import device as _device
from chainrule._src.arrays.dtype import dtype as _dtype  # noqa: F401
from chainrule._src.arrays.size import Size
from chainrule._src.ops.memory import Storage
from chainrule._src.tape.tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

_bool: TypeAlias = builtins.bool
_float: TypeAlias = builtins.float
_int: TypeAlias = builtins.int
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_size: TypeAlias = Size | list[int] | tuple[int, ...]
Device: TypeAlias = _device | str | int | None
Number: TypeAlias = _int | _float | _bool
FileLike: TypeAlias = Any
