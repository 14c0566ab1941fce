"""Check the operands of products with Jacobians: arrays of the shape of x or y, or flat, with further axes.

``result`` and ``operator`` call these functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.types import Shape
from chainrule._src.transforms.arguments import data_if_unrecorded, is_array


def as_operand(x: object) -> Any:
    """Convert an array, list or number to an array-like; return None for other objects."""
    if isinstance(x, (list, tuple)):
        x = np.asarray(x)
    return data_if_unrecorded(x) if is_array(x) or isinstance(x, (int, float, complex)) else None


def match_shape(have: Shape, want: Shape) -> tuple[bool | None, Shape]:
    """Return whether a shape starts with ``want`` flattened (True) or unflattened (False), and its further axes.

    Return (None, ()) if it does neither.
    """
    have = tuple(have)
    if have[: len(want)] == want:
        return False, have[len(want) :]
    if have and have[0] == math.prod(want):
        return True, have[1:]
    return None, ()
