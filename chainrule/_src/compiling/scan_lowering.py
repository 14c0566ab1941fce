"""Loops with a traced body (``scan``) as native code.

``loop_body`` runs a :class:`ProgramLoop`: a program of one iteration, with a :class:`LoopOrder` of iterations and operands. The program is
lowered to an :class:`Iteration`, whose inputs and outputs are *carried* from one iteration to the next, *mapped* (a slice of an array
per iteration, stacked results), or *fixed*. A loop can be a step of a plan: its template has a :class:`ScanLoop` in place of an
inner loop, which ``kernel_loops`` expands to a :class:`~chainrule._src.compiling.kernel_loops.KernelLoop`. Loop-invariant kernel
calls are hoisted. Python loops in the body are detected as in any program, and become inner loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.any_array import ensure_strides
from chainrule._src.arrays.types import AnyArray, NumpyArray, Shape
from chainrule._src.compiling.factors import Memories
from chainrule._src.compiling.grouping import KernelCall
from chainrule._src.compiling.iteration import dense_strides
from chainrule._src.compiling.kernel_loops import BodyCall, Item, RepeatedCalls, arranged, within_loops
from chainrule._src.compiling.layout import (
    ARENA,
    CONSTANT,
    OUTPUT,
    Buffer,
    BufferView,
    MovingBuffer,
    memory_span,
    root_of,
    slot_nbytes,
)
from chainrule._src.compiling.looped_lowering import LoopedLowering, kernel_calls_of, lower_with_loops
from chainrule._src.compiling.loops import READ, WRITE, Template, Unlowered
from chainrule._src.compiling.lowering import LoopLowerer
from chainrule._src.compiling.native_executor import Native, NativePlan
from chainrule._src.compiling.plan import LOWERER, ExecutionPlan
from chainrule._src.compiling.simplify import Simplified
from chainrule._src.compiling.steps import Lowering, ResultLayout
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.interpreters.trace_types import Program, TracedCall, Var, new_call
from chainrule._src.native import AVAILABLE

#: the maximum number of cached runners of a loop, for different lengths and layouts
MOST = 8


class _LoweredIteration(Lowering):
    """The lowering of one iteration, in which every output has a buffer of its own, in C order."""

    def _take_outputs(self, values: list[BufferView]) -> list[BufferView]:
        outputs: list[BufferView] = []
        for value in values:
            own, buffer = value, value.buffer
            whole = (
                not value.offset and buffer.nbytes == memory_span(value.shape, value.strides, value.dtype.itemsize)[1]
            )
            if not (buffer.kind == ARENA and whole and is_c_order(value)):
                own = self._new(OUTPUT, value.shape, c_strides(value), value.dtype)
                self._copy(value, own)
            self._make_output(own)
            outputs.append(own)
        return outputs


class _LoopedIteration(_LoweredIteration, LoopedLowering):
    """The lowering of one iteration with loops."""


class Iteration:
    """The kernel calls of one iteration of a loop.

    Args:
        program: a program from (carried, mapped, fixed) arrays to (carried, stacked) ones. Its Vars have their recorded arrays.
        carried, mapped: the numbers of carried and mapped inputs.
        lowerer: finds the templates of calls.

    Attributes:
        inputs, outputs: the BufferViews of inputs and outputs.
        before: the kernel calls and loops that depend only on fixed inputs; calls: the others.

    Raises:
        Unlowered: a call cannot be lowered.
    """

    def __init__(self, program: Program, carried: int, mapped: int, lowerer: LoopLowerer) -> None:
        self.carried, self.mapped = carried, mapped
        lowering = lower_with_loops(
            program, Simplified(program), lowerer, _LoweredIteration, _LoopedIteration, program.outputs
        )
        numbers = [k for k, step in enumerate(lowering.steps) if not step.view]
        steps = [lowering.steps[k] for k in numbers]
        if any([step.template is None for step in steps]):
            raise Unlowered
        calls = kernel_calls_of(numbers, lowering.steps, lowering.loops, Memories(steps))
        self.inputs, self.outputs = lowering.inputs, lowering.outputs
        self.may_fail = any([step.template.may_fail for step in steps])
        for x, y in zip(self.inputs[:carried], self.outputs, strict=False):
            if x.shape != y.shape or x.dtype != y.dtype or not is_c_order(x):
                raise Unlowered
        self.before, self.calls = self._hoisted(calls)

    def _hoisted(self, calls: list[BodyCall]) -> tuple[list[BodyCall], list[BodyCall]]:
        """Split kernel calls and loops into loop-invariant ones and the others."""
        changing = {value.buffer for value in (*self.inputs[: self.carried + self.mapped], *self.outputs)}
        touched = [call.touched for call in calls]
        count = -1
        while count != len(changing):
            count = len(changing)
            for call, used in zip(calls, touched, strict=True):
                if not changing.isdisjoint(used):
                    changing.update(call.writes)
        once = [changing.isdisjoint(used) for used in touched]
        return [*compress(calls, once)], [*compress(calls, [not first for first in once])]


class LoopOrder(NamedTuple):
    """The iterations of a loop, and the mapping of its operands and results to inputs and outputs of an iteration.

    Attributes:
        length, reverse: the number of iterations, and whether the last element comes first.
        operand_indices: for each input of an iteration the index of its operand, or None for zeros.
        finals, stacks, saved: the indices of results: carried outputs of the last iteration, outputs stacked over all iterations,
            carried inputs stacked over all iterations.
    """

    length: int
    reverse: bool
    operand_indices: tuple[int | None, ...]
    finals: tuple[int, ...]
    stacks: tuple[int, ...]
    saved: tuple[int, ...]


class ScanLoop:
    """A whole loop in place of an inner loop of a template: see :class:`~chainrule._src.compiling.loops.InnerLoop`.

    Args:
        iteration, order: the loop.
        reads, writes: BufferViews with the layouts of its operands and results.

    Attributes:
        args: the slot of each argument.
    """

    name = "scan"
    elementwise = in_place = False
    total = row = 0
    shared = None

    def __init__(
        self, iteration: Iteration, order: LoopOrder, reads: list[BufferView], writes: list[BufferView]
    ) -> None:
        self._iteration, self._order = iteration, order
        self._reads, self._writes = reads, writes
        self.args = [((READ, i), 0) for i in range(len(reads))] + [((WRITE, i), 0) for i in range(len(writes))]
        self.outputs = len(writes)
        self.checked = iteration.may_fail

    def items(self, args: list[Any], depth: int) -> list[Item]:
        """Return the kernel calls before the loop, the loop, and copies of the last carry to the results.

        Args:
            args: the locations of operands and results.
            depth: the number of loops around it.
        """
        like = [*self._reads, *self._writes]
        values = [_view_at(location, offset, x) for (location, offset, _), x in zip(args, like, strict=True)]
        count = len(self._reads)
        return _Expansion(self._iteration, self._order, values[:count], values[count:], depth).items


class _Expansion:
    """A loop of a plan, with its operands and results, and buffers of an iteration in these or in the arena."""

    def __init__(
        self, iteration: Iteration, order: LoopOrder, reads: list[BufferView], writes: list[BufferView], depth: int
    ) -> None:
        self._iteration, self._order, self._depth = iteration, order, depth
        self._locations: dict[Buffer, tuple[Any, int]] = {}
        self._before: list[BodyCall] = []
        self._body: list[BodyCall] = []
        first, mapped = iteration.carried, iteration.carried + iteration.mapped
        given = [None if k is None else reads[k] for k in order.operand_indices]
        results = iter(writes)
        rings = [self._double_buffer(k, x) for k, x in enumerate(given[:first])]
        per_iteration: set[Buffer] = set()
        for k, x in enumerate(given[first:], first):
            per_iteration |= self._bind_input(iteration.inputs[k], x, k < mapped)
        after = [copy_kernel_calls(rings[k], next(results)) for k in order.finals]
        for k in order.stacks:
            stack = self._slice(next(results), iteration.outputs[k])
            self._locations[iteration.outputs[k].buffer] = stack.buffer, stack.offset
        for k in order.saved:
            value = iteration.inputs[k]
            self._body += copy_kernel_calls(
                _view_at(*self._locations[value.buffer], value), self._slice(next(results), value)
            )
        self._before += [self._relocated(call, depth, set()) for call in iteration.before]
        self._body += [self._relocated(call, depth + 1, per_iteration) for call in iteration.calls]
        self.items = [
            *arranged([*self._before, RepeatedCalls(self._body, order.length, per_iteration)], depth),
            *[kernel_call for kernel_calls in after for kernel_call in kernel_calls],
        ]

    def _double_buffer(self, k: int, first: BufferView | None) -> BufferView:
        """Double-buffer a carried array; return the view of the buffer that holds the final value."""
        before, after = self._iteration.inputs[k], self._iteration.outputs[k]
        stride = slot_nbytes(before.buffer.nbytes)
        ring = Buffer(ARENA, 2 * stride)
        self._before += copy_kernel_calls(_zero_buffer(before) if first is None else first, _view_at(ring, 0, before))
        self._locations[before.buffer] = within_loops(ring, self._depth, ((stride, 2, 0),)), 0
        self._locations[after.buffer] = within_loops(ring, self._depth, ((stride, 2, 1),)), 0
        return _view_at(ring, (self._order.length % 2) * stride, before)

    def _bind_input(self, value: BufferView, given: BufferView | None, mapped: bool) -> set[Buffer]:
        """Bind an input to the memory of its operand, or to a copy if the strides differ; return the buffers of copies per iteration."""
        source = _zero_buffer(value) if given is None else self._slice(given, value) if mapped else given
        if _same_strides(value.shape, source.strides, value.strides):
            self._locations[value.buffer] = source.buffer, source.offset
            return set()
        start, nbytes = memory_span(value.shape, value.strides, value.dtype.itemsize)
        buffer = Buffer(ARENA, nbytes)
        (self._body if mapped else self._before).extend(copy_kernel_calls(source, _view_at(buffer, start, value)))
        self._locations[value.buffer] = buffer, start
        return {buffer} if mapped else set()

    def _slice(self, stack: BufferView, value: BufferView) -> BufferView:
        """Return the view of one element along the first axis of an array, which moves by one element per iteration."""
        step, start = stack.strides[0], stack.offset
        if self._order.reverse:
            start, step = start + (self._order.length - 1) * step, -step
        location = within_loops(stack.buffer, self._depth, ((step, 0, 0) if step else None,))
        return BufferView(0, location, start, value.shape, stack.strides[1:], value.dtype)

    def _relocated(self, call: BodyCall, depth: int, new_buffers: set[Buffer]) -> Any:
        """Return a kernel call or loop of the iteration with the locations of this loop.

        Args:
            depth: the number of loops around it.
            new_buffers: gets its new buffers.
        """
        if isinstance(call, RepeatedCalls):
            calls = [self._relocated(inner, depth, new_buffers) for inner in call.calls]
            local = {root_of(self._locations[buffer][0]) for buffer in call.local if buffer in self._locations}
            return RepeatedCalls(calls, call.count, local)
        args = []
        for location, offset, number in call.args:
            if location is None or location.kind == CONSTANT:
                args.append((location, offset, number))
                continue
            root, moves = (location.root, location.moves) if type(location) is MovingBuffer else (location, ())
            if root.kind == CONSTANT:
                self._locations[root] = root, 0
            elif root not in self._locations:
                self._locations[root] = Buffer(ARENA, root.nbytes), 0
                new_buffers.add(self._locations[root][0])
            new_location, start = self._locations[root]
            args.append((within_loops(new_location, depth, moves), start + offset, None))
        return KernelCall(call.loop, args)


def _view_at(location: Any, offset: int, like: BufferView) -> BufferView:
    return BufferView(0, location, offset, like.shape, like.strides, like.dtype)


def _zero_buffer(like: BufferView) -> BufferView:
    """Return a constant of zeros."""
    array = np.zeros(like.shape, like.dtype)
    buffer = Buffer(CONSTANT, array.nbytes)
    value = buffer.root = BufferView(0, buffer, 0, like.shape, c_strides(like), like.dtype)
    value.array = array
    return value


def copy_kernel_calls(value: BufferView, target: BufferView) -> list[KernelCall]:
    """Return the kernel calls of a copy.

    Raises:
        Unlowered: the copy cannot be lowered.
    """
    template = LOWERER.copy(value, target)
    if template is None:
        raise Unlowered
    kernel_calls = []
    for loop in template.loops:
        ends = [(value if kind == READ else target, offset) for (kind, _), offset in loop.args]
        kernel_calls.append(KernelCall(loop, [(end.buffer, end.offset + offset, None) for end, offset in ends]))
    return kernel_calls


def c_strides(value: BufferView | AnyArray | Var) -> Shape:
    """Return the strides of an array of this shape and dtype in C order."""
    return dense_strides(value.shape, list(range(len(value.shape) - 1, -1, -1)), value.dtype.itemsize)


def is_c_order(value: BufferView | NumpyArray) -> bool:
    return _same_strides(value.shape, value.strides, c_strides(value))


def _same_strides(shape: Shape, strides: Shape, others: Shape) -> bool:
    """Return whether strides are equal along all axes with more than one element."""
    return all([n < 2 or a == b for n, a, b in zip(shape, strides, others, strict=True)])


# -- loops of programs -------------------------------------------------------------------------------------------------


class ProgramLoop:
    """A loop whose body is a program. It runs as native code, or one plan runs each iteration.

    Args:
        program: one iteration, from (carried, mapped, fixed) arrays to (carried, stacked) ones.
        carried, mapped: the numbers of carried and mapped inputs.
    """

    def __init__(self, program: Program, carried: int, mapped: int) -> None:
        self._carried, self._mapped = carried, carried + mapped
        self._inputs = [_ArraySpec(x.shape, x.array.strides, x.dtype) for x in program.inputs]
        self._outputs = [_ArraySpec(x.shape, c_strides(x), x.dtype) for x in program.outputs]
        self._runners: dict[Any, Any] = {}
        self._iteration: Iteration | None = None
        try:
            self._iteration = Iteration(program, carried, mapped, LOWERER) if AVAILABLE else None
        except Unlowered:
            pass
        if self._iteration is None or not self._gives_recorded_bits(program):
            self._iteration, self._plan = None, ExecutionPlan(program)

    def _gives_recorded_bits(self, program: Program) -> bool:
        """Return whether one iteration from the recorded inputs gives the recorded bits."""
        arrays = [var.array for var in program.inputs]
        arrays[self._carried : self._mapped] = [x[None] for x in arrays[self._carried : self._mapped]]
        count, total = self._carried, len(self._outputs)
        order = LoopOrder(1, False, tuple(range(len(arrays))), tuple(range(count)), tuple(range(count, total)), ())
        try:
            found = self.run(arrays, order, None)
        except (Unlowered, np.linalg.LinAlgError):
            return False
        return all([same_bits(x.reshape(y.shape), y.array) for x, y in zip(found, program.outputs, strict=True)])

    @property
    def is_native(self) -> bool:
        return self._iteration is not None

    def run(self, operands: Sequence[Any], order: LoopOrder, report: Any) -> list[Any]:
        """Run the loop, and return its results in C order."""
        arrays = list(operands)
        for k, like in zip(order.operand_indices, self._inputs, strict=True):
            if k is not None and (arrays[k].dtype != like.dtype or not arrays[k].flags.aligned):
                arrays[k] = arrays[k].astype(like.dtype)
        if self._iteration is None:
            return self._run_plan(arrays, order, report)
        key = order, *[(x.shape, x.strides) for x in arrays]
        run = self._runners.get(key)
        if run is None:
            if len(self._runners) >= MOST:
                del self._runners[next(iter(self._runners))]
            run = self._runners[key] = self._compiled_runner(arrays, order)
        return run(arrays, report)

    def _empty_results(self, order: LoopOrder) -> list[Any]:
        """Return new arrays for the results."""
        finals = [np.empty(self._outputs[k].shape, self._outputs[k].dtype) for k in order.finals]
        stacked = [*[self._outputs[k] for k in order.stacks], *[self._inputs[k] for k in order.saved]]
        return finals + [np.empty((order.length, *x.shape), x.dtype) for x in stacked]

    def _run_plan(self, arrays: list[Any], order: LoopOrder, report: Any) -> list[Any]:
        """Run the loop with the plan of an iteration."""
        carried, mapped, like = self._carried, self._mapped, self._inputs
        given = [
            np.zeros(x.shape, x.dtype) if k is None else arrays[k]
            for k, x in zip(order.operand_indices, like, strict=True)
        ]
        slices = [k is not None and carried <= at < mapped for at, k in enumerate(order.operand_indices)]
        given = [x if moves else ensure_strides(x, y.strides) for x, y, moves in zip(given, like, slices, strict=True)]
        results = self._empty_results(order)
        stacks = results[len(order.finals) :]
        for i in range(order.length - 1, -1, -1) if order.reverse else range(order.length):
            now = [
                ensure_strides(x[i, ...], y.strides) if moves else x
                for x, y, moves in zip(given, like, slices, strict=True)
            ]
            outputs = self._plan.run(now, report)
            for stack, array in zip(
                stacks, [*[outputs[k] for k in order.stacks], *[given[k] for k in order.saved]], strict=True
            ):
                stack[i] = array
            given[:carried] = [ensure_strides(x, y.strides) for x, y in zip(outputs[:carried], like, strict=False)]
        for result, k in zip(results, order.finals, strict=False):
            result[...] = given[k]
        return results

    def _compiled_runner(self, arrays: Sequence[NumpyArray], order: LoopOrder) -> Any:
        """Compile the loop to native code for arrays of these layouts."""
        inputs = [Var(-1, x) for x in arrays]
        results = [Var(-1, x) for x in self._empty_results(order)]
        call = new_call(scan_in_c, "", tuple(inputs), tuple(results))
        program = Program(inputs, [], [call], results, [])
        lowering = Lowering(program, Simplified(program), _SingleLoopLowerer(self, order))
        if lowering.steps[0].template is None:
            raise Unlowered
        return NativePlan(Native(lowering), lowering).run

    def lowered(
        self, order: LoopOrder, reads: list[BufferView], results: list[Any]
    ) -> tuple[Template, list[ResultLayout]] | None:
        """Return the template of the loop as a step of a plan, and the layouts of its results; None if it cannot be lowered."""
        iteration = self._iteration
        if iteration is None or not all(map(is_c_order, results)):
            return None
        if any(
            [
                k is not None and reads[k].dtype != x.dtype
                for k, x in zip(order.operand_indices, self._inputs, strict=True)
            ]
        ):
            return None
        nowhere = Buffer(ARENA, 0)
        reads = [_view_at(nowhere, 0, x) for x in reads]
        writes = [BufferView(0, nowhere, 0, x.shape, x.strides, x.dtype) for x in results]
        template, loop = Template(), ScanLoop(iteration, order, reads, writes)
        try:
            loop.items([(nowhere, 0, None)] * len(loop.args), 0)  # raises if a copy cannot be lowered
        except Unlowered:
            return None
        template.loops.append(loop)  # type: ignore[arg-type]
        return template, [ResultLayout(x.shape, x.strides, x.dtype, 0) for x in writes]


class _ArraySpec(NamedTuple):
    """The shape, strides and dtype of an array."""

    shape: Shape
    strides: Shape
    dtype: np.dtype[Any]


class _SingleLoopLowerer:
    """The lowerer of a program that consists of one loop."""

    def __init__(self, loop: ProgramLoop, order: LoopOrder) -> None:
        self._loop, self._order = loop, order

    def template_of(self, call: TracedCall, reads: list[BufferView]) -> tuple[Any, list[ResultLayout]] | None:
        return self._loop.lowered(self._order, reads, [var.array for var in call.results])

    copy = LOWERER.copy


def scan_in_c(*operands: object) -> Any:
    raise AssertionError("Python called a loop of native code")
