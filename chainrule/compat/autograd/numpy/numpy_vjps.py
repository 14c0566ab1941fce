"""Helpers for user-defined rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, TensorLike

__all__ = [
    "unbroadcast",
    "unbroadcast_f",
]


def unbroadcast(x: TensorLike, target: TensorLike) -> object:
    """Sum a gradient over the axes along which ``target`` was broadcast; take the real part if ``target`` is real."""
    shape = np.shape(target)
    x = np.sum(x, axis=tuple(range(np.ndim(x) - len(shape))))
    x = np.sum(x, axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)
    return np.real(x) if np.iscomplexobj(x) and not np.iscomplexobj(target) else x


def unbroadcast_f(target: TensorLike, f: Callable[[AnyArray], AnyArray]) -> Callable[[Any], Any]:
    return lambda g: unbroadcast(f(g), target)


show(globals())
