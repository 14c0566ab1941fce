"""The order in which NumPy goes through the elements of arrays.

A loop has the same bits as NumPy's if it is called on the same elements in the same order. So these functions follow NumPy's
iterator (``nditer``): axes are sorted by strides, those that can be walked with one stride are merged, and arrays of one layout are
one run of elements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from chainrule._src.arrays.types import Shape


class ArrayLayout(NamedTuple):
    """Shape, strides and size of an element."""

    shape: Shape
    strides: Shape
    itemsize: int


class LoopAxis(NamedTuple):
    """One dimension of an iteration: its length and a stride for each operand."""

    length: int
    strides: Shape


def size(shape: Shape) -> int:
    product = 1
    for length in shape:
        product *= length
    return product


def broadcast_strides(layout: ArrayLayout, shape: Shape) -> list[int]:
    """An operand's strides along the axes of the shape it is broadcast to: 0 where it repeats."""
    strides = [0] * (len(shape) - len(layout.shape))
    for length, stride in zip(layout.shape, layout.strides, strict=True):
        strides.append(0 if length == 1 else stride)
    return strides


def one_run(operands: list[ArrayLayout], inputs: int, shape: Shape) -> LoopAxis | None:
    """The iteration as one run that needs no iterator, in NumPy's terms a trivial loop; None if it is not.

    It is one for arrays of one dimension and for those that are all in C or all in Fortran order; single numbers among the
    inputs fit anywhere.
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
            found = contiguity(operand)
            if found == 0 or (order and found != order):
                return None
            order = found
            strides.append(operand.itemsize)
    return LoopAxis(size(shape), tuple(strides))


def contiguity(operand: ArrayLayout) -> int:
    """1: in C order, 2: in Fortran order, 3: both, 0: neither."""
    return is_run(operand, reversed(range(len(operand.shape)))) + 2 * is_run(operand, range(len(operand.shape)))


def is_run(operand: ArrayLayout, axes: Iterable[int]) -> bool:
    """Whether elements lie side by side, the first axis varying fastest."""
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
    """The axes as NumPy's iterator sorts them, innermost first.

    Args:
        strides: those of each operand that has a say: outputs that NumPy allocates have none.
        ndim: how many axes there are.
    """
    order = list(range(ndim - 1, -1, -1))
    for i in range(1, ndim):
        axis, place = order[i], i
        for j in range(i - 1, -1, -1):
            decided, swap = False, False
            for of in strides:
                mine, other = abs(of[axis]), abs(of[order[j]])
                if mine and other:
                    if other <= mine:
                        swap = False
                    elif not decided:
                        swap = True
                    decided = True
            if decided:
                if not swap:
                    break
                place = j
        order.insert(place, order.pop(i))
    return order


def merged_axes(lengths: list[int], strides: list[list[int]], order: list[int]) -> list[LoopAxis]:
    """The axes in an order, where those that one stride goes through are one; innermost first."""
    axes: list[LoopAxis] = []
    for axis in order:
        length, steps = lengths[axis], tuple([of[axis] for of in strides])
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
    """Strides of elements that lie side by side, for axes in an order, innermost first."""
    strides = [0] * len(shape)
    for axis in order:
        strides[axis] = itemsize
        itemsize *= shape[axis]
    return tuple(strides)
