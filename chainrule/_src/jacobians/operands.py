"""What is multiplied with a Jacobian: arrays of the shape of x or of y, or with all elements along one axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.types import Shape
from chainrule._src.transforms.arguments import is_array, untracked


def operand(x: object) -> Any:
    """The array-like that something stands for; None for what is no array, list or number."""
    if isinstance(x, (list, tuple)):
        x = np.asarray(x)
    return untracked(x) if is_array(x) or isinstance(x, (int, float, complex)) else None


def matched(have: Shape, want: Shape) -> tuple[bool | None, Shape]:
    """Whether a shape begins with the one that is wanted (False), or with all its elements along one axis (True); the rest.

    None if it does neither.
    """
    have = tuple(have)
    if have[: len(want)] == want:
        return False, have[len(want) :]
    if have and have[0] == math.prod(want):
        return True, have[1:]
    return None, ()
