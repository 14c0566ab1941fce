"""Traced bodies of ``scan`` and ``fori_loop``: one plan runs all iterations, another one runs the backward pass through them.

``control_flow`` calls ``record_body`` and ``run_body``. A :class:`Body` is a trace of ``(carry, x) -> (carry, y)`` without value reads
and writes. Captured arrays and tensors are operands of the loop, like ``init`` and ``xs``. A loop is one operation (``iterated``). Its
results are the last carry, the ys, and the saved values of all iterations. The backward pass is one operation, too (``pulled_back``).

Within ``compile`` these operations are traced, so a trace has the body once for any number of iterations.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import array_of
from chainrule._src.arrays.tree import TreeSpec
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, Params, TensorLike
from chainrule._src.compiling.differentiable import start_of, starting_at
from chainrule._src.compiling.encoding import operand_vars
from chainrule._src.compiling.floating_point import NeedsEagerRun, exception_reporter
from chainrule._src.compiling.function_trace import (
    Argument,
    Backward,
    FunctionTrace,
    GradOf,
    rewind_generators,
    trace_function,
)
from chainrule._src.compiling.layout import BufferView, same_memory
from chainrule._src.compiling.python_executor import NativeLoopFailed
from chainrule._src.compiling.scan_lowering import LoopOrder, ProgramLoop
from chainrule._src.compiling.steps import VIEWS
from chainrule._src.interpreters.captured_arrays import Lifted
from chainrule._src.interpreters.recorder import Recorder
from chainrule._src.interpreters.trace_types import Program, TracedCall, Unrecordable, Var, new_call
from chainrule._src.interpreters.traced import Traced
from chainrule._src.rules.batching import each_example
from chainrule._src.rules.kinds import discrete
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.modes import LOCAL, grad_mode
from chainrule._src.tape.modes import is_recording as records
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.backward import grad
from chainrule._src.transforms.function import Function
from chainrule._src.transforms.function_rule import in_graph

ndarray = np.ndarray


#: exceptions of native code; an eager run raises the error with its message and location
NATIVE_ERRORS = NeedsEagerRun, NativeLoopFailed


class BodyRecorder(Recorder):
    """Records the body of a loop. Within a trace, traced values of that trace are captured arrays of the body.

    The body does not write captured tensors, so each of them is an operand of its own, even if it is a view of another one.

    Attributes:
        outer: the recorder of the trace around the loop, or None.
    """

    def __init__(self, outer: Recorder | None) -> None:
        super().__init__()
        self.outer = outer

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        LOCAL.recorder = self.outer

    def lift(self, tensor: Tensor) -> None:
        raw = tensor._raw
        if getattr(raw, "level", None) is self.level:
            return
        if type(raw) is Traced and isinstance(self.outer, BodyRecorder):  # a value of an outer trace
            self.outer.lift(tensor)
            raw = tensor._raw
        if type(raw) is Traced and self.outer is not None and raw.level is self.outer.level:
            raw = raw.var.array
        if type(raw) is not ndarray:
            raise Unrecordable("its body uses a value of another transformation")
        var = self.var_of(raw)
        self.cells[id(tensor)] = (weakref.ref(tensor), var)
        entry = self.lifted[id(tensor)] = Lifted(tensor, var)
        tensor._raw = Traced(var, self.level)
        tensor._edge = entry.trace_edge = self.start(tensor)

    def note_new_data(self, tensor: Tensor, data: AnyArray) -> Any:
        base = tensor if tensor._view is None else tensor._view.base
        cell = self.cells.get(id(base))
        own = getattr(base._raw, "level", None) is self.level
        if not own or (cell is not None and cell[0]() is base):
            raise Unrecordable("its body writes into an array that it did not make")
        return super().note_new_data(tensor, data)


class Body:
    """The traced body of a loop.

    Attributes:
        carried, count: the number of carried leaves, and of all results: these and the leaves of y.
        outside: the captured tensors and arrays.
        results: the trace's record of each result; spec: the structure of ``(carry, y)``.
        iteration: the shape and dtype of each result of an iteration.
        differentiable: whether gradients flow through the body; live: the results that gradients flow from.
        reached: the operands that gradients flow to: carried, captured, then mapped ones.
        lean: whether the backward pass recomputes iterations. Then each iteration saves only its carry and its operands.
    """

    def __init__(self, trace: FunctionTrace, carried: int, mapped: int, lean: bool) -> None:
        if trace.guards:
            raise Unrecordable("Python reads values in its body")
        if trace.writes or trace.effects or trace.generator_states or trace.handled:
            raise Unrecordable("its body writes arrays, draws random numbers or handles floating-point exceptions")
        self.carried, self._mapped, self._first = carried, mapped, carried + mapped
        self.results, self.spec, self.count = trace.results, trace.spec, len(trace.results)
        self.lean = lean
        self.ignored = trace.ignored
        self.differentiable = trace.backward is not None
        sources = [(var, source) for var, source in trace.sources.items() if type(source) is not Argument]
        if any(type(source) is GradOf for _, source in sources):
            raise Unrecordable("its body uses the .grad of a tensor")
        given = [var for var, source in trace.sources.items() if type(source) is Argument]
        self.outside = [
            source.array((), ()) if not hasattr(source, "tensor") else source.tensor for _, source in sources
        ]
        self._operands = [*given, *[var for var, _ in sources]]
        constants = [*trace.constants]
        results = [r.var or _constant(r.content, constants) for r in trace.results]
        self.iteration = [(var.shape, var.dtype) for var in results]
        self.live: list[int] = []
        self.reached: list[int] = []
        self._kept: list[Var] = []
        self._kept_carries: list[int] = []  # the carried leaves that are saved at the begin of each iteration
        back = None if trace.backward is None else self._backward_program(trace, trace.backward)
        program = Program(self._operands, constants, trace.calls, results + self._kept, [])
        self._forward = ProgramLoop(program, carried, mapped)
        if back is not None:
            self._back = ProgramLoop(*back)
        for var in (*self._operands, *[var for call in trace.calls for var in call.results]):
            var.drop_array()

    def _backward_program(self, trace: FunctionTrace, backward: Backward) -> tuple[Program, int, int]:
        """Return the program of one iteration of the backward pass, and its numbers of carried and mapped inputs.

        Its carried inputs are the cotangents of carried results, and the gradients of captured operands, which it accumulates. Its
        mapped inputs are the cotangents of ys, the saved values and the mapped operands. Its fixed inputs are captured operands.
        The method also chooses the values that every iteration saves (``_kept``, ``_kept_carries``).
        """
        carried, first = self.carried, self._first
        numbers = {id(x): i for i, x in enumerate(self.outside)}
        places = [leaf.at if leaf.captured is None else first + numbers[id(leaf.captured)] for leaf in backward.leaves]
        grads = {at: g for at, g in zip(places, backward.grads, strict=True) if g is not None}
        self.live = list(backward.results)
        position = {var: i for i, var in enumerate(self._operands)}
        calls, needed = (trace.calls, self._operands) if self.lean else _residuals_of_body(trace, position, first)
        self._kept = [var for var in needed if var not in position]
        self._kept_carries = sorted({position[var] for var in needed if position.get(var, carried) < carried})
        self._wanted = sorted({*[k for k in self.live if k < carried], *[at for at in places if at < carried]})
        self._outer = sorted([at for at in grads if at >= first])
        self._stacked = sorted([at for at in grads if carried <= at < first])
        self.reached = [*[at for at in self._wanted if at in places], *self._outer, *self._stacked]
        self._xs = [at for at in range(carried, first) if self._operands[at] in needed]
        self._fixed = [at for at in range(first, len(self._operands)) if self._operands[at] in needed]

        constants, calls = [*trace.constants], [*calls, *backward.calls]
        seeds = dict(zip(backward.results, backward.cotangents, strict=True))
        unused = [Var(-1, np.zeros(*self.iteration[k])) for k in self._wanted]
        inputs = [seeds.get(k, other) for k, other in zip(self._wanted, unused, strict=True)]
        outputs = [grads.get(k) or _constant(np.zeros(*self.iteration[k]), constants) for k in self._wanted]
        for at in self._outer:
            operand, g = self._operands[at], grads[at]
            total = Var(-1, np.zeros(operand.shape, operand.dtype))
            inputs.append(total)
            outputs.append(_sum(total, g, calls))
        summed = len(inputs)
        inputs += [seeds[k] for k in self.live if k >= carried]
        inputs += [*self._kept, *[self._operands[at] for at in (*self._kept_carries, *self._xs)]]
        mapped = len(inputs) - summed
        inputs += [self._operands[at] for at in self._fixed]
        return Program(inputs, constants, calls, outputs + [grads[at] for at in self._stacked], []), summed, mapped

    # -- forward -----------------------------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """The number of arrays of saved values, which a loop returns after its results."""
        return len(self._kept) + len(self._kept_carries)

    def _forward_order(self, length: int, reverse: bool) -> LoopOrder:
        return LoopOrder(
            length,
            reverse,
            tuple(range(len(self._operands))),
            tuple(range(self.carried)),
            tuple(range(self.carried, self.count + len(self._kept))),
            tuple(self._kept_carries),
        )

    def run(self, operands: Sequence[object], length: int, reverse: bool) -> list[Any]:
        """Run the loop on arrays, and return the last carry, the ys and the saved values."""
        return self._forward.run(
            operands, self._forward_order(length, reverse), exception_reporter("scan", self.ignored)
        )

    # -- backward ----------------------------------------------------------------------------------------------------

    def _backward_order(self, present: tuple[bool, ...], length: int, reverse: bool) -> LoopOrder:
        """Return the order of the backward pass, whose operands are the cotangents that are present, saved values and operands."""
        at = iter(range(len(present)))
        gs = {k: next(at) for k, there in enumerate(present) if there}
        kept = len(gs)
        begun = kept + len(self._kept)
        operands = begun + len(self._kept_carries)
        given: list[int | None] = [gs.get(k) if k in self.live else None for k in self._wanted]
        given += [None] * len(self._outer)
        given += [gs.get(k) for k in self.live if k >= self.carried]
        given += range(kept, operands)
        given += [operands + at for at in (*self._xs, *self._fixed)]
        carried = [k for k, at in enumerate(self._wanted) if at in self.reached]
        finals = [*carried, *range(len(self._wanted), len(self._wanted) + len(self._outer))]
        stacks = range(len(self._wanted) + len(self._outer), len(self._wanted) + len(self._outer) + len(self._stacked))
        return LoopOrder(length, not reverse, tuple(given), tuple(finals), tuple(stacks), ())

    def back(self, given: tuple[object, ...], present: tuple[bool, ...], length: int, reverse: bool) -> list[Any]:
        """Run the backward pass on arrays, and return the gradients of the operands in ``reached``.

        Args:
            given: the cotangents that are present, the saved values, and the operands of the loop.
            present: for each result, whether it has a cotangent.
        """
        return self._back.run(
            given, self._backward_order(present, length, reverse), exception_reporter("scan", self.ignored)
        )

    # -- within a plan -----------------------------------------------------------------------------------------------

    def lowered(self, params: Params, reads: list[BufferView], results: list[Any]) -> Any:
        """Return the template of the loop or of its backward pass, as a step of a plan; None if it cannot be lowered."""
        length, reverse = params["length"], params["reverse"]
        if "present" in params:
            return self._back.lowered(self._backward_order(params["present"], length, reverse), reads, results)
        return self._forward.lowered(self._forward_order(length, reverse), reads, results)


def _constant(content: TensorLike, constants: list[Var]) -> Var:
    """Add a constant to a program."""
    var = Var(-1, np.array(content, order="C"))
    constants.append(var)
    return var


def _sum(x: Var, y: Var, calls: list[TracedCall]) -> Var:
    """Add a call of ``x + y`` to a program."""
    total = Var(-1, np.add(x.array, y.array))
    calls.append(new_call(np.add, "__call__", (x, y), (total,)))
    return total


def _residuals_of_body(
    trace: FunctionTrace, position: dict[Var, int], first: int
) -> tuple[list[TracedCall], list[Var]]:
    """Return the calls that the backward pass repeats, and the saved arrays and operands that it needs.

    It repeats calls that return views, and calls with the same results in all iterations.
    """
    assert trace.backward is not None
    calls = list(trace.calls)
    makers: dict[Var, tuple[TracedCall, list[Var]]] = {}
    same = {var for var, at in position.items() if at >= first} | set(trace.constants)
    for call in calls:
        used = operand_vars(call)
        alike = call.pure and same.issuperset(used)
        if alike:
            same.update(call.results)
        if alike or (call.function in VIEWS and len(used) == 1 and _is_view(call.results, used[0])):
            makers.update(dict.fromkeys(call.results, (call, used)))
    repeated: set[int] = set()
    needed: dict[Var, None] = {}
    todo = list(trace.backward.residuals)
    while todo:
        var = todo.pop()
        if var in makers:
            call, used = makers[var]
            repeated.add(id(call))
            todo += used
        elif var not in trace.constants:
            needed[var] = None
    return [call for call in calls if id(call) in repeated], list(needed)


def _is_view(results: tuple[Var, ...], of: Var) -> bool:
    """Return whether results are views that are not much smaller than their base, so that the base can be saved instead."""
    alike = all([same_memory(var.array, of.array) for var in results])
    return alike and of.array.nbytes <= 2 * sum([var.array.nbytes for var in results])


def record_body(
    function: AnyFunction,
    carry: list[tuple[AnyArray, bool]],
    xs: list[tuple[AnyArray, bool]],
    live: list[bool],
    spec: TreeSpec,
    lean: bool,
) -> tuple[Body, FunctionTrace]:
    """Trace one iteration; return the body and the trace.

    Args:
        function: the body, called with tensors and Arrays.
        carry, xs: (array, whether it is a tensor) for the leaves of the carry and of x.
        live: for each of these, whether gradients flow to it.
        spec: the structure of ``((carry, x), {})``.
        lean: whether the backward pass recomputes iterations.

    Raises:
        Unrecordable: the body cannot be traced.
    """
    outer = LOCAL.recorder
    leaves = []
    for (array, is_tensor), wanted in zip([*carry, *xs], live, strict=True):
        tensor = wrap(array)
        if wanted:
            tensor._edge = Leaf(tensor)
        leaves.append(tensor if is_tensor else array_of(tensor))
    arrays = [array for array, _ in (*carry, *xs)]
    refusal = None if outer is None else outer.refusal
    try:
        trace = trace_function(function, leaves, spec, arrays, "scan", outer is not None, BodyRecorder(outer))
        try:
            body = Body(trace, len(carry), len(xs), lean)
        except Unrecordable:
            rewind_generators(trace.generator_states)
            raise
        if outer is not None:
            outer.ignored |= body.ignored
        return body, trace
    finally:
        if outer is not None:
            outer.refusal = refusal  # if the body cannot be traced, the trace around it runs it eagerly


# -- the two operations ------------------------------------------------------------------------------------------------


@discrete(listed=False, batch=each_example, outputs=("results", "kept"))
def iterated(*operands: object, body: Body, length: int, reverse: bool) -> Any:
    """Run all iterations of a loop."""
    return tuple(body.run(operands, length, reverse))


@discrete(listed=False, batch=each_example, outputs=("first", "others"))
def pulled_back(
    *given: object, body: Body, present: tuple[bool, ...], length: int, reverse: bool
) -> tuple[NumpyArray, ...]:
    """Return the gradients of the operands of a loop."""
    return tuple(body.back(given, present, length, reverse))


class Scan(Function):
    """A loop as one node on the tape."""

    @staticmethod
    def forward(ctx: Any, body: Body, length: int, reverse: bool, run_eagerly: AnyFunction, *operands: Tensor) -> Any:
        results = bind(iterated, operands, {"body": body, "length": length, "reverse": reverse})
        ctx.body, ctx.length, ctx.reverse, ctx.run_eagerly = body, length, reverse, run_eagerly
        constant = [y for k, y in enumerate(results) if k >= body.carried and k not in body.live]
        ctx.mark_non_differentiable(*constant)
        ctx.save_for_backward(*results[body.count :], *operands)
        ctx.set_materialize_grads(False)
        return results

    @staticmethod
    def backward(ctx: Any, *gs: object) -> Any:
        body = ctx.body
        gs = gs[: body.count]
        saved = ctx.saved_tensors
        operands = saved[body.kept :]
        grads: list[Any] = [None] * (4 + len(operands))
        if all([g is None for g in gs]):
            return tuple(grads)
        if not in_graph():
            present = tuple([g is not None for g in gs])
            given = [g for g in gs if g is not None]
            params = {"body": body, "present": present, "length": ctx.length, "reverse": ctx.reverse}
            with contextlib.suppress(*NATIVE_ERRORS):
                gradients = bind(pulled_back, [*given, *saved], params)
                for at, g in zip(body.reached, gradients, strict=True):
                    grads[4 + at] = g
                return tuple(grads)
        with grad_mode(True):  # the gradient has to be differentiable, or native code failed
            starts = [start_of(x) for x in operands]
            with starting_at(body.outside, starts[len(starts) - len(body.outside) :]):
                results = ctx.run_eagerly(starts)
        pairs = [(y, g) for y, g in zip(results, gs, strict=True) if g is not None and y.requires_grad]
        wanted = [k for k, x in enumerate(starts) if x.requires_grad]
        if pairs and wanted:
            outputs, cotangents = zip(*pairs, strict=True)
            inputs = [starts[k] for k in wanted]
            found = grad(outputs, inputs, cotangents, create_graph=in_graph(), allow_unused=True)
            for k, g in zip(wanted, found, strict=True):
                grads[4 + k] = g
        return tuple(grads)


def run_body(
    body: Body, operands: list[Tensor], length: int, reverse: bool, run_eagerly: AnyFunction
) -> tuple[Any, ...]:
    """Run a loop as one operation, and return its results as tensors."""
    if body.differentiable and records():
        results = Scan.apply(body, length, reverse, run_eagerly, *operands)
    else:
        results = bind(iterated, operands, {"body": body, "length": length, "reverse": reverse})
    return results[: body.count]
