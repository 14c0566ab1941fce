"""Build the template of one call.

``lowering`` makes a ``CallLoops`` from the operands and results of a call. The functions that lower calls (in ``data_movement``,
``reductions``, ``products`` and others) append inner loops to its ``template``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyDType, Shape
from chainrule._src.compiling.iteration import (
    ArrayLayout,
    LoopAxis,
    broadcast_strides,
    dense_strides,
    is_run,
    merged_axes,
    one_run,
    size_of_shape,
    sorted_axes,
)
from chainrule._src.compiling.layout import BufferView
from chainrule._src.compiling.loops import READ, WRITE, InnerLoop, Operand, Template, Unlowered, own_loop
from chainrule._src.interpreters.trace_types import Var

#: the maximum length of a short row, and the maximum bytes between elements of the longer row that replaces it
SHORT, CACHED = 8, 1 << 19


class CallLoops:
    """The operands of a call, and its template under construction.

    Args:
        operands, results: the BufferViews of operands and results.

    Attributes:
        template: the template; reads, writes: the operands and results as operands of loops.
    """

    def __init__(self, operands: list[BufferView], results: list[BufferView]) -> None:
        self.template = Template()
        self.reads = [Operand((READ, i), v.shape, v.strides, v.dtype) for i, v in enumerate(operands)]
        self.writes = [Operand((WRITE, i), v.shape, v.strides, v.dtype) for i, v in enumerate(results)]

    def arguments(self, args: tuple[object, ...]) -> list[Any]:
        """Return arguments with Operands in place of Vars."""
        reads = iter(self.reads)
        return [next(reads) if type(x) is Var else x for x in args]

    def converted(self, x: object, dtype: NumpyDType) -> Operand:
        """Return an argument in the dtype of a loop, converted into a temporary if necessary."""
        if not isinstance(x, Operand):
            try:
                number = np.asarray(x, dtype)
            except (OverflowError, TypeError, ValueError):
                raise Unlowered from None
            if number.shape:
                raise Unlowered
            return Operand(self.template.number(number), (), (), dtype)
        if x.dtype == dtype:
            return x
        shape = x.layout.shape
        order = sorted_axes([list(x.layout.strides)], len(shape))
        strides = dense_strides(shape, order, dtype.itemsize)
        cast = Operand(self.template.temporary(size_of_shape(shape) * dtype.itemsize), shape, strides, dtype)
        self.copy(x, cast)
        return cast

    def copy(self, x: Operand, out: Operand) -> None:
        """Copy, broadcast and cast an array into another one."""
        if x.dtype == out.dtype:
            name = f"copy{x.dtype.itemsize}"
        else:
            name = f"cast_{x.dtype.str[1:]}_{out.dtype.str[1:]}"
        self.elementwise(name, own_loop(name), [x], [out], exact=True)

    def elementwise(
        self, name: str, found: tuple[int, int], inputs: list[Operand], outputs: list[Operand], exact: bool
    ) -> None:
        """Add a loop over the broadcast elements of operands.

        NumPy's iterator copies operands that need more than one stride, to call the loop for more elements at once. The template
        makes the same copies, except for an exact loop, whose results do not depend on them.
        """
        shape = outputs[0].layout.shape
        if size_of_shape(shape) == 0:
            return
        every = inputs + outputs
        run = one_run([x.layout for x in every], len(inputs), shape)
        if run is not None:
            axes = [run]
        else:
            axes, order = merged_iteration([x.layout for x in inputs], [x.layout for x in every], shape)
            if len(axes) > 1 and not exact:
                inputs = [self._as_run(x, shape, order) for x in inputs]
                every = inputs + outputs
                axes, _ = merged_iteration([x.layout for x in inputs], [x.layout for x in every], shape)
                if len(axes) > 1:
                    raise Unlowered
            if exact:
                axes = _with_longer_rows(axes)
        args = [(x.slot, x.offset) for x in every]
        itemsizes = [x.dtype.itemsize for x in every]
        self.template.loops.append(InnerLoop(name, found, axes, args, itemsizes, len(outputs), True, exact))

    def _as_run(self, x: Operand, shape: Shape, order: list[int]) -> Operand:
        """Return a copy of an operand, broadcast, in the order of the iteration. Single numbers are not copied."""
        if size_of_shape(x.layout.shape) == 1:
            return x
        strides = dense_strides(shape, order, x.dtype.itemsize)
        copy = Operand(self.template.temporary(size_of_shape(shape) * x.dtype.itemsize), shape, strides, x.dtype)
        if tuple(broadcast_strides(x.layout, shape)) == strides:
            return x
        self.copy(x, copy)
        return copy


def in_one_line(x: Operand) -> Operand:
    """Return an array in C order as a 1-D operand."""
    if not is_run(x.layout, reversed(range(len(x.layout.shape)))):
        raise Unlowered
    return Operand(x.slot, (size_of_shape(x.layout.shape),), (x.dtype.itemsize,), x.dtype, x.offset)


def _with_longer_rows(axes: list[LoopAxis]) -> list[LoopAxis]:
    """Return the axes with the longest one innermost, if rows are so short that loop calls dominate the time."""
    if len(axes) < 2 or axes[0].length >= SHORT:
        return axes
    k = max(range(len(axes)), key=lambda k: axes[k].length)
    if axes[k].length * max(map(abs, axes[k].strides)) > CACHED:
        return axes
    return [axes[k], *axes[:k], *axes[k + 1 :]]


def merged_iteration(
    deciding: list[ArrayLayout], every: list[ArrayLayout], shape: Shape
) -> tuple[list[LoopAxis], list[int]]:
    """Return the merged axes of an iteration, and the order of the axes of the shape."""
    strides = [broadcast_strides(layout, shape) for layout in every]
    order = sorted_axes(strides[: len(deciding)], len(shape))
    return merged_axes(list(shape), strides, order), order
