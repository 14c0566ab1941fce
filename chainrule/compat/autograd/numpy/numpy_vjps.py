"""What programs use in rules of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, TensorLike


def unbroadcast(x: TensorLike, target: TensorLike) -> object:
    """Return a gradient, summed over the axes along which ``target`` was broadcast, and real if that is."""
    shape = np.shape(target)
    x = np.sum(x, axis=tuple(range(np.ndim(x) - len(shape))))
    x = np.sum(x, axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)
    return np.real(x) if np.iscomplexobj(x) and not np.iscomplexobj(target) else x


def unbroadcast_f(target: TensorLike, f: Callable[[AnyArray], AnyArray]) -> Callable[[Any], Any]:
    return lambda g: unbroadcast(f(g), target)
