"""The order in which NumPy iterates over the elements of arrays.

A loop gives NumPy's bits if it is called on the same elements in the same order. So these functions follow NumPy's iterator
(``nditer``): they sort axes by strides, merge axes that need only one stride, and treat arrays of the same dense layout as one run of
elements. ``call_loops``, ``reductions`` and ``products`` use them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from chainrule._src.arrays.types import Shape


class ArrayLayout(NamedTuple):
    """The shape, strides and itemsize of an array."""

    shape: Shape
    strides: Shape
    itemsize: int


class LoopAxis(NamedTuple):
    """One dimension of an iteration: its length and a stride for each operand."""

    length: int
    strides: Shape


def size_of_shape(shape: Shape) -> int:
    product = 1
    for length in shape:
        product *= length
    return product


def broadcast_strides(layout: ArrayLayout, shape: Shape) -> list[int]:
    """Return the strides of an operand along the axes of the shape that it is broadcast to."""
    strides = [0] * (len(shape) - len(layout.shape))
    for length, stride in zip(layout.shape, layout.strides, strict=True):
        strides.append(0 if length == 1 else stride)
    return strides


def one_run(operands: list[ArrayLayout], inputs: int, shape: Shape) -> LoopAxis | None:
    """Return the iteration as one run of elements (NumPy's trivial loop), or None if it needs an iterator.

    Operands must be 1-D, or all in C order, or all in Fortran order. Inputs may also be 0-d.
    """
    order = 0
    strides = []
    for i, operand in enumerate(operands):
        if not operand.shape:
            strides.append(0 if i < inputs else operand.itemsize)
        elif operand.shape != shape:
            return None
        elif len(shape) == 1:
            strides.append(operand.strides[0])
        else:
            found = contiguous_orders(operand)
            if found == 0 or (order and found != order):
                return None
            order = found
            strides.append(operand.itemsize)
    return LoopAxis(size_of_shape(shape), tuple(strides))


def contiguous_orders(operand: ArrayLayout) -> int:
    """Return 1 for C order, 2 for Fortran order, 3 for both, 0 for neither."""
    return is_run(operand, reversed(range(len(operand.shape)))) + 2 * is_run(operand, range(len(operand.shape)))


def is_run(operand: ArrayLayout, axes: Iterable[int]) -> bool:
    """Return whether elements are contiguous in an order of axes, of which the first varies fastest."""
    expected = operand.itemsize
    if 0 in operand.shape:
        return True
    for axis in axes:
        length = operand.shape[axis]
        if length != 1:
            if operand.strides[axis] != expected:
                return False
            expected *= length
    return True


def sorted_axes(strides: list[list[int]], ndim: int) -> list[int]:
    """Return the axes as NumPy's iterator sorts them, innermost first.

    Args:
        strides: the strides of each operand that decides. Outputs that NumPy allocates do not.
        ndim: the number of axes.
    """
    order = list(range(ndim - 1, -1, -1))
    for i in range(1, ndim):
        axis, position = order[i], i
        for j in range(i - 1, -1, -1):
            decided, swap = False, False
            for operand_strides in strides:
                own_stride, other_stride = abs(operand_strides[axis]), abs(operand_strides[order[j]])
                if own_stride and other_stride:
                    if other_stride <= own_stride:
                        swap = False
                    elif not decided:
                        swap = True
                    decided = True
            if decided:
                if not swap:
                    break
                position = j
        order.insert(position, order.pop(i))
    return order


def merged_axes(lengths: list[int], strides: list[list[int]], order: list[int]) -> list[LoopAxis]:
    """Return the axes in an order, innermost first, with axes merged that one stride can iterate over."""
    axes: list[LoopAxis] = []
    for axis in order:
        length, steps = lengths[axis], tuple([operand_strides[axis] for operand_strides in strides])
        if axes:
            inner = axes[-1]
            if inner.length == 1:
                axes[-1] = LoopAxis(length, steps)
                continue
            if length == 1 or all([a * inner.length == b for a, b in zip(inner.strides, steps, strict=True)]):
                axes[-1] = LoopAxis(inner.length * length, inner.strides)
                continue
        axes.append(LoopAxis(length, steps))
    return axes or [LoopAxis(1, (0,) * len(strides))]


def dense_strides(shape: Shape, order: list[int], itemsize: int) -> Shape:
    """Return the strides of a dense array for axes in an order, innermost first."""
    strides = [0] * len(shape)
    for axis in order:
        strides[axis] = itemsize
        itemsize *= shape[axis]
    return tuple(strides)
