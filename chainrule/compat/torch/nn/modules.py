"""``torch.nn.modules`` and its submodules (such as ``torch.nn.modules.linear``): each has all layers and base classes."""

from __future__ import annotations

import sys
from itertools import repeat
from types import ModuleType
from typing import Any

from chainrule import nn
from chainrule.nn.stateful import _BatchNorm, _Convolution

__path__: list[str] = []  # makes it a package; the submodules are created below


def _tuples(n: int) -> Any:
    """Return a function that repeats a number n times, and converts iterables to tuples."""
    return lambda x: tuple(x) if hasattr(x, "__iter__") else tuple(repeat(x, n))


_INTERNAL_NAMES = {
    "_BatchNorm": _BatchNorm, "_ConvNd": _Convolution,
    "_single": _tuples(1), "_pair": _tuples(2), "_triple": _tuples(3), "_quadruple": _tuples(4),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    return _INTERNAL_NAMES[name] if name in _INTERNAL_NAMES else getattr(nn, name)


_PARTS = (
    "activation batchnorm container conv distance dropout flatten instancenorm linear loss module normalization padding"
)
_MORE = "pixelshuffle pooling rnn sparse upsampling utils"
for _name in f"{_PARTS} {_MORE}".split():
    _part = ModuleType(f"{__name__}.{_name}", f"``torch.nn.modules.{_name}``.")
    _part.__getattr__ = __getattr__  # type: ignore[method-assign]
    sys.modules[_part.__name__] = globals()[_name] = _part
