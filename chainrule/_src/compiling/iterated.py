"""A loop whose body is known once, as native code: one iteration's inner loops, done again and again.

An :class:`Iteration` is one time round, lowered like any program, whose inputs and outputs are *carried* from one time to the next,
*mapped* (a slice of an array each time, a stack of what is made), or *fixed*. An :class:`IteratedLoop` takes the place of an inner loop
where such a loop is a step of a plan: its operands are those of the whole loop, and when a plan is arranged it becomes a
:class:`~chainrule._src.compiling.rolling.Rolled`. What depends on nothing that changes is done once, before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress, groupby
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.any_array import laid_by
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, Shape
from chainrule._src.compiling.factors import Memories
from chainrule._src.compiling.grouping import Work, grouped
from chainrule._src.compiling.iteration import dense_strides
from chainrule._src.compiling.layout import (
    ARENA,
    CONSTANT,
    OUTPUT,
    Buffer,
    BufferView,
    MovingBuffer,
    packed,
    root_of,
    span,
)
from chainrule._src.compiling.looped_lowering import add_works
from chainrule._src.compiling.loops import READ, WRITE, Template, Unlowered
from chainrule._src.compiling.native_executor import Native, NativePlan
from chainrule._src.compiling.plan import LOWERER, ExecutionPlan
from chainrule._src.compiling.rolling import Item, Rolled, moved
from chainrule._src.compiling.simplify import Simplified
from chainrule._src.compiling.steps import Lowerer, Lowering, ResultLayout
from chainrule._src.interpreters.recorded import Program, TracedCall, Var
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.native import AVAILABLE

#: loops of other lengths or layouts that are remembered
MOST = 8


class _LoweredIteration(Lowering):
    """One iteration: every output has a buffer of its own, in C order."""

    def _take_outputs(self, values: list[BufferView]) -> list[BufferView]:
        made: list[BufferView] = []
        for value in values:
            own, buffer = value, value.buffer
            whole = not value.offset and buffer.nbytes == span(value.shape, value.strides, value.dtype.itemsize)[1]
            if not (buffer.kind == ARENA and whole and lies_in_order(value)):
                own = self._new(OUTPUT, value.shape, in_c_order(value), value.dtype)
                self._copy(value, own)
            self._make_output(own)
            made.append(own)
        return made


class Iteration:
    """One time round a loop.

    Args:
        program: from (carried, mapped, fixed) arrays to (carried, stacked) ones. Its Vars have their recorded arrays.
        carried, mapped: how many there are.
        lowerer: what knows the inner loops of calls.

    Attributes:
        inputs, outputs: the Values that are given and made.
        works: the inner loops, without ``before``: those that depend on fixed inputs alone.

    Raises:
        Unlowered: something in it has no inner loops.
    """

    def __init__(self, program: Program, carried: int, mapped: int, lowerer: Lowerer) -> None:
        self.carried, self.mapped = carried, mapped
        lowering = _LoweredIteration(program, Simplified(program), lowerer)
        steps = [step for step in lowering.steps if not step.view]
        if any([step.template is None for step in steps]):
            raise Unlowered
        memories = Memories(steps)
        works: list[Work] = []
        for step in steps:
            add_works(works, step, memories)
        self.inputs, self.outputs = lowering.inputs, lowering.outputs
        self.may_fail = any([step.template.may_fail for step in steps])
        for x, y in zip(self.inputs[:carried], self.outputs, strict=False):
            if x.shape != y.shape or x.dtype != y.dtype or not lies_in_order(x):
                raise Unlowered
        self.before, self.works = self._hoisted(works)

    def _hoisted(self, works: list[Work]) -> tuple[list[Work], list[Work]]:
        """What is the same each time round, and the rest."""
        changing = {value.buffer for value in (*self.inputs[: self.carried + self.mapped], *self.outputs)}
        touched = [work.touched for work in works]
        count = -1
        while count != len(changing):
            count = len(changing)
            for work, used in zip(works, touched, strict=True):
                if not changing.isdisjoint(used):
                    changing.update(work.writes)
        once = [changing.isdisjoint(used) for used in touched]
        return [*compress(works, once)], [*compress(works, [not first for first in once])]


class Order(NamedTuple):
    """How a loop goes, and where its operands and results are.

    Attributes:
        length, reverse: how many iterations there are, and whether the last comes first.
        given: for each input of an iteration the operand that it is of; None: zeros.
        finals, stacks, saved: what the results are: carried outputs, of the last iteration; outputs of all of them, one after the
            other; carried inputs likewise.
    """

    length: int
    reverse: bool
    given: tuple[int | None, ...]
    finals: tuple[int, ...]
    stacks: tuple[int, ...]
    saved: tuple[int, ...]


class IteratedLoop:
    """A whole loop, in the place of an inner one: see :class:`~chainrule._src.compiling.loops.Loop`.

    Args:
        reads, writes: Values like its operands and results.

    Attributes:
        args: which operand or result each argument is.
    """

    name = "scan"
    elementwise = in_place = False
    total = row = 0
    shared = None

    def __init__(self, iteration: Iteration, order: Order, reads: list[BufferView], writes: list[BufferView]) -> None:
        self._iteration, self._order = iteration, order
        self._reads, self._writes = reads, writes
        self.args = [((READ, i), 0) for i in range(len(reads))] + [((WRITE, i), 0) for i in range(len(writes))]
        self.outputs = len(writes)
        self.checked = iteration.may_fail

    def items(self, args: list[Any], depth: int) -> list[Item]:
        """What is done for it: what comes before, the loop, and what brings the last values to their places.

        Args:
            depth: how many loops are around it.
        """
        like = [*self._reads, *self._writes]
        values = [_at(location, offset, x) for (location, offset, _), x in zip(args, like, strict=True)]
        count = len(self._reads)
        return _Expansion(self._iteration, self._order, values[:count], values[count:], depth).items


class _Expansion:
    """A loop at its place in a plan: its operands and results, with the buffers of an iteration among them or in the arena."""

    def __init__(
        self, iteration: Iteration, order: Order, reads: list[BufferView], writes: list[BufferView], depth: int
    ) -> None:
        self._iteration, self._order, self._depth = iteration, order, depth
        self._locations: dict[Buffer, tuple[Any, int]] = {}
        self._before: list[Work] = []
        self._body: list[Work] = []
        first, mapped = iteration.carried, iteration.carried + iteration.mapped
        given = [None if k is None else reads[k] for k in order.given]
        results = iter(writes)
        rings = [self._carry(k, x) for k, x in enumerate(given[:first])]
        again: set[Buffer] = set()
        for k, x in enumerate(given[first:], first):
            again |= self._take(iteration.inputs[k], x, k < mapped)
        after = [copied(rings[k], next(results)) for k in order.finals]
        for k in order.stacks:
            stack = self._slice(next(results), iteration.outputs[k])
            self._locations[iteration.outputs[k].buffer] = stack.buffer, stack.offset
        for k in order.saved:
            value = iteration.inputs[k]
            self._body += copied(_at(*self._locations[value.buffer], value), self._slice(next(results), value))
        once: set[Buffer] = set()
        self._before += [self._renamed(work, once) for work in iteration.before]
        self._body += [self._renamed(work, again) for work in iteration.works]
        self.items = [
            *_done(self._before, depth),
            Rolled(self._body, order.length, depth, again),
            *[work for works in after for work in works],
        ]

    def _carry(self, k: int, first: BufferView | None) -> BufferView:
        """Give a carried array two places, in which old and new take turns; where the last one is."""
        before, after = self._iteration.inputs[k], self._iteration.outputs[k]
        stride = packed(before.buffer.nbytes)
        ring = Buffer(ARENA, 2 * stride)
        self._before += copied(_zeros(before) if first is None else first, _at(ring, 0, before))
        self._locations[before.buffer] = moved(ring, (), (stride, 2, 0), self._depth), 0
        self._locations[after.buffer] = moved(ring, (), (stride, 2, 1), self._depth), 0
        return _at(ring, (self._order.length % 2) * stride, before)

    def _take(self, value: BufferView, given: BufferView | None, mapped: bool) -> set[Buffer]:
        """Let an input be where its operand is, or, where it has to lie otherwise, a copy of that, which is made each time."""
        source = _zeros(value) if given is None else self._slice(given, value) if mapped else given
        if _same_steps(value.shape, source.strides, value.strides):
            self._locations[value.buffer] = source.buffer, source.offset
            return set()
        start, nbytes = span(value.shape, value.strides, value.dtype.itemsize)
        buffer = Buffer(ARENA, nbytes)
        (self._body if mapped else self._before).extend(copied(source, _at(buffer, start, value)))
        self._locations[value.buffer] = buffer, start
        return {buffer} if mapped else set()

    def _slice(self, stack: BufferView, value: BufferView) -> BufferView:
        """One element of a stack, which moves along it."""
        step, start = stack.strides[0], stack.offset
        if self._order.reverse:
            start, step = start + (self._order.length - 1) * step, -step
        location: Any = stack.buffer
        moves = location.moves if type(location) is MovingBuffer else ()
        location = moved(root_of(location), moves, (step, 0, 0) if step else None, self._depth)
        return BufferView(0, location, start, value.shape, stack.strides[1:], value.dtype)

    def _renamed(self, work: Work, made: set[Buffer]) -> Work:
        """An inner loop of the iteration, at its place here; buffers that have none are made."""
        args = []
        for location, offset, number in work.args:
            if location is None or location.kind == CONSTANT:
                args.append((location, offset, number))
                continue
            if location not in self._locations:
                self._locations[location] = Buffer(ARENA, location.nbytes), 0
                made.add(self._locations[location][0])
            known, start = self._locations[location]
            args.append((known, start + offset, None))
        return Work(work.loop, args)


def _done(works: list[Work], depth: int) -> list[Item]:
    """What is done once, loops among it."""
    items: list[Item] = []
    for whole, part in groupby(works, lambda work: type(work.loop) is IteratedLoop):
        found = [*part]
        items += chain(*[work.loop.items(work.args, depth) for work in found]) if whole else grouped(found)
    return items


def _at(location: Any, offset: int, like: BufferView) -> BufferView:
    return BufferView(0, location, offset, like.shape, like.strides, like.dtype)


def _zeros(like: BufferView) -> BufferView:
    """Zeros, as a constant."""
    array = np.zeros(like.shape, like.dtype)
    buffer = Buffer(CONSTANT, array.nbytes)
    value = buffer.root = BufferView(0, buffer, 0, like.shape, in_c_order(like), like.dtype)
    value.array = array
    return value


def copied(value: BufferView, target: BufferView) -> list[Work]:
    """The loops of a copy.

    Raises:
        Unlowered: there are none.
    """
    template = LOWERER.copy(value, target)
    if template is None:
        raise Unlowered
    works = []
    for loop in template.loops:
        ends = [(value if kind == READ else target, offset) for (kind, _), offset in loop.args]
        works.append(Work(loop, [(end.buffer, end.offset + offset, None) for end, offset in ends]))
    return works


def in_c_order(value: BufferView | AnyArray | Var) -> Shape:
    """The strides of an array like this one in C order."""
    return dense_strides(value.shape, list(range(len(value.shape) - 1, -1, -1)), value.dtype.itemsize)


def lies_in_order(value: BufferView | NumpyArray) -> bool:
    return _same_steps(value.shape, value.strides, in_c_order(value))


def _same_steps(shape: Shape, strides: Shape, others: Shape) -> bool:
    """Whether strides lead from element to element of a shape as others do."""
    return all([n < 2 or a == b for n, a, b in zip(shape, strides, others, strict=True)])


# -- loops of programs -------------------------------------------------------------------------------------------------


class LoopOfProgram:
    """A loop whose body is a program: native code, or a plan that is run again and again.

    Args:
        program: one iteration, from (carried, mapped, fixed) arrays to (carried, stacked) ones.
        carried, mapped: how many there are.
    """

    def __init__(self, program: Program, carried: int, mapped: int) -> None:
        self._carried, self._mapped = carried, carried + mapped
        self._inputs = [_Like(x.shape, x.array.strides, x.dtype) for x in program.inputs]
        self._outputs = [_Like(x.shape, in_c_order(x), x.dtype) for x in program.outputs]
        self._alone: dict[Any, Any] = {}
        self._iteration: Iteration | None = None
        try:
            self._iteration = Iteration(program, carried, mapped, LOWERER) if AVAILABLE else None
        except Unlowered:
            pass
        if self._iteration is None or not self._gives(program):
            self._iteration, self._plan = None, ExecutionPlan(program)

    def _gives(self, program: Program) -> bool:
        """Whether one iteration from the recorded arrays gives the bits that were recorded."""
        arrays = [var.array for var in program.inputs]
        arrays[self._carried : self._mapped] = [x[None] for x in arrays[self._carried : self._mapped]]
        count, total = self._carried, len(self._outputs)
        order = Order(1, False, tuple(range(len(arrays))), tuple(range(count)), tuple(range(count, total)), ())
        try:
            found = self.run(arrays, order, None)
        except (Unlowered, np.linalg.LinAlgError):
            return False
        return all([same_bits(x.reshape(y.shape), y.array) for x, y in zip(found, program.outputs, strict=True)])

    @property
    def is_native(self) -> bool:
        return self._iteration is not None

    def run(self, operands: Sequence[Any], order: Order, report: Any) -> list[Any]:
        """The results, in C order."""
        arrays = list(operands)
        for k, like in zip(order.given, self._inputs, strict=True):
            if k is not None and (arrays[k].dtype != like.dtype or not arrays[k].flags.aligned):
                arrays[k] = arrays[k].astype(like.dtype)
        if self._iteration is None:
            return self._planned(arrays, order, report)
        key = order, *[(x.shape, x.strides) for x in arrays]
        run = self._alone.get(key)
        if run is None:
            if len(self._alone) >= MOST:
                del self._alone[next(iter(self._alone))]
            run = self._alone[key] = self._standalone(arrays, order)
        return run(arrays, report)

    def _made(self, order: Order) -> list[Any]:
        """Arrays for the results."""
        made = [np.empty(self._outputs[k].shape, self._outputs[k].dtype) for k in order.finals]
        stacked = [*[self._outputs[k] for k in order.stacks], *[self._inputs[k] for k in order.saved]]
        return made + [np.empty((order.length, *x.shape), x.dtype) for x in stacked]

    def _planned(self, arrays: list[Any], order: Order, report: Any) -> list[Any]:
        """The results by the plan of an iteration."""
        carried, mapped, like = self._carried, self._mapped, self._inputs
        given = [np.zeros(x.shape, x.dtype) if k is None else arrays[k] for k, x in zip(order.given, like, strict=True)]
        slices = [k is not None and carried <= at < mapped for at, k in enumerate(order.given)]
        given = [x if moves else laid_by(x, y.strides) for x, y, moves in zip(given, like, slices, strict=True)]
        results = self._made(order)
        stacks = results[len(order.finals) :]
        for i in range(order.length - 1, -1, -1) if order.reverse else range(order.length):
            now = [
                laid_by(x[i, ...], y.strides) if moves else x for x, y, moves in zip(given, like, slices, strict=True)
            ]
            made = self._plan.run(now, report)
            for stack, array in zip(
                stacks, [*[made[k] for k in order.stacks], *[given[k] for k in order.saved]], strict=True
            ):
                stack[i] = array
            given[:carried] = [laid_by(x, y.strides) for x, y in zip(made[:carried], like, strict=False)]
        for result, k in zip(results, order.finals, strict=False):
            result[...] = given[k]
        return results

    def _standalone(self, arrays: Sequence[NumpyArray], order: Order) -> Any:
        """The loop as native code, for arrays that lie like these."""
        inputs = [Var(-1, x) for x in arrays]
        made = [Var(-1, x) for x in self._made(order)]
        call = new_call(scan_in_c, "", tuple(inputs), tuple(made))
        program = Program(inputs, [], [call], made, [])
        lowering = Lowering(program, Simplified(program), _Knows(self, order))
        if lowering.steps[0].template is None:
            raise Unlowered
        return NativePlan(Native(lowering), lowering).run

    def lowered(
        self, order: Order, reads: list[BufferView], results: list[Any]
    ) -> tuple[Template, list[ResultLayout]] | None:
        """The loop as a step of a plan; None if it can't be one."""
        iteration = self._iteration
        if iteration is None or not all(map(lies_in_order, results)):
            return None
        if any([k is not None and reads[k].dtype != x.dtype for k, x in zip(order.given, self._inputs, strict=True)]):
            return None
        nowhere = Buffer(ARENA, 0)
        reads = [_at(nowhere, 0, x) for x in reads]
        writes = [BufferView(0, nowhere, 0, x.shape, x.strides, x.dtype) for x in results]
        template, loop = Template(), IteratedLoop(iteration, order, reads, writes)
        try:
            loop.items([(nowhere, 0, None)] * len(loop.args), 0)  # whether all copies have loops
        except Unlowered:
            return None
        template.loops.append(loop)  # type: ignore[arg-type]
        return template, [ResultLayout(x.shape, x.strides, x.dtype, 0) for x in writes]


class _Like(NamedTuple):
    """What an array is like."""

    shape: Shape
    strides: Shape
    dtype: np.dtype[Any]


class _Knows:
    """Knows one loop, as the one call of a plan."""

    def __init__(self, loop: LoopOfProgram, order: Order) -> None:
        self._loop, self._order = loop, order

    def template_of(self, call: TracedCall, reads: list[BufferView]) -> tuple[Any, list[ResultLayout]] | None:
        return self._loop.lowered(self._order, reads, [var.array for var in call.results])

    copy = LOWERER.copy


def scan_in_c(*operands: object) -> Any:
    raise AssertionError("a loop that is native code was called by Python")


def new_call(function: AnyFunction, method: str, args: tuple[Var, ...], results: tuple[Var, ...]) -> TracedCall:
    """A call that is in no user's program."""
    call = TracedCall()
    call.function, call.method, call.args, call.kwargs, call.results = function, method, args, {}, results
    call.row, call.code, call.lasti, call.pure, call.kept = "", None, -1, True, False
    return call
