"""Which elements of convolutions meet: the three rows of a convolution are one sum of products, read in three ways.

The sum is Σ output · weight · input over all places of a window, all windows, and the channels and examples that go
together. So a Jacobian with respect to one of the three, of another, has the elements of the third as its entries.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.interpreters.jac import JacStep
from chainrule._src.jacobians.places import Entries
from chainrule._src.jacobians.terms import IndexArray
from chainrule._src.table.convolution import _windows

#: For each row what its first operand, its second operand and its result are.
_PARTS = {
    "convolution": ("input", "weight", "output"),
    "convolution_input": ("output", "weight", "input"),
    "convolution_weight": ("output", "input", "weight"),
}


class Meeting(NamedTuple):
    """The entries of a local Jacobian, as positions that broadcast against each other.

    The axes are examples, groups, channels of the output, channels of the input, places in a window, windows.

    Those of the input are −1 in the padding, where nothing meets.

    Attributes:
        operand: where each entry reads the operand.
        result: where it goes in the result.
        factor: which element of the other operand it is.
    """

    operand: IndexArray
    result: IndexArray
    factor: IndexArray

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(*[part.shape for part in self])

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def meeting(step: JacStep, i: int) -> Meeting:
    """Which elements meet in a convolution, for the operand at a position."""
    parts = _PARTS[step.prim.name]
    shapes = dict(zip(parts, [*map(shape_of, step.operands), shape_of(step.outs[0])], strict=True))
    params = step.params
    groups = params["groups"]
    n, out, *counts = shapes["output"]
    kernel = shapes["weight"][2:]
    channels = shapes["weight"][1]
    numbers = np.arange(1, math.prod(shapes["input"]) + 1).reshape(shapes["input"])
    windows = _windows(numbers, kernel, params["stride"], params["padding"], params["dilation"])
    windows = windows[(..., *[slice(count) for count in counts])]
    taps, places = math.prod(kernel), math.prod(counts)
    at = {
        "input": windows.reshape(n, groups, 1, channels, taps, places) - 1,
        "weight": np.arange(out * channels * taps).reshape(1, groups, out // groups, channels, taps, 1),
        "output": np.arange(n * out * places).reshape(n, groups, out // groups, 1, 1, places),
    }
    return Meeting(at[parts[i]], at[parts[2]], at[parts[1 - i]])


def meeting_entries(step: JacStep, i: int, met: Meeting) -> Entries:
    """The entries of a convolution's local Jacobian."""
    shape = met.shape
    inside = np.flatnonzero(np.broadcast_to((met.operand >= 0) & (met.result >= 0) & (met.factor >= 0), shape))
    at, to, factor = (np.broadcast_to(part, shape).reshape(-1)[inside] for part in met)
    return Entries(shape_of(step.operands[i]), at, to, np.reshape(step.operands[1 - i], (-1,))[factor][None])
