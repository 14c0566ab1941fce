"""The entries of the local Jacobians of convolutions. ``propagation`` calls ``entry_positions`` and ``convolution_entries``.

A convolution and its two derivatives are one trilinear form, Σ output · weight · input, summed over window taps, windows, channels
and examples. So the Jacobian of one of the three with respect to another has the elements of the third as its entries.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.interpreters.jac import JacStep
from chainrule._src.jacobians.gather_scatter import Entries
from chainrule._src.jacobians.terms import IndexArray
from chainrule._src.table.convolution import _windows

#: The roles of the first operand, the second operand and the result of each primitive.
_PARTS = {
    "convolution": ("input", "weight", "output"),
    "convolution_input": ("output", "weight", "input"),
    "convolution_weight": ("output", "input", "weight"),
}


class EntryPositions(NamedTuple):
    """The entries of a local Jacobian, as positions that broadcast against each other.

    The axes are examples, groups, channels of the output, channels of the input, taps of a window, windows. Positions of the
    input are −1 in the padding, which has no entries.

    Attributes:
        operand: the position of each entry in the operand.
        result: its position in the result.
        factor: the position of its value in the other operand.
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


def entry_positions(step: JacStep, i: int) -> EntryPositions:
    """Return the positions of the entries of a convolution's local Jacobian, for operand i."""
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
    taps, positions = math.prod(kernel), math.prod(counts)
    at = {
        "input": windows.reshape(n, groups, 1, channels, taps, positions) - 1,
        "weight": np.arange(out * channels * taps).reshape(1, groups, out // groups, channels, taps, 1),
        "output": np.arange(n * out * positions).reshape(n, groups, out // groups, 1, 1, positions),
    }
    return EntryPositions(at[parts[i]], at[parts[2]], at[parts[1 - i]])


def convolution_entries(step: JacStep, i: int, met: EntryPositions) -> Entries:
    """Return the entries of a convolution's local Jacobian."""
    shape = met.shape
    inside = np.flatnonzero(np.broadcast_to((met.operand >= 0) & (met.result >= 0) & (met.factor >= 0), shape))
    at, to, factor = (np.broadcast_to(part, shape).reshape(-1)[inside] for part in met)
    return Entries(shape_of(step.operands[i]), at, to, np.reshape(step.operands[1 - i], (-1,))[factor][None])
