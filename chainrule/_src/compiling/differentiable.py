"""Put a replayed call on the tape as one node, whose VJP replays the recorded backward pass.

``compiled`` applies ``CompiledFunction`` if gradients can flow through a call. ``loop_body`` uses ``start_of`` and ``starting_at``, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from chainrule._src.api.grad_mode import enable_grad
from chainrule._src.arrays.any_array import ensure_strides
from chainrule._src.arrays.tree import tree_leaves
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.compiling.function_trace import LOCK, Backward, FunctionTrace
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.interpreters.trace_types import Program
from chainrule._src.table.shape import alias
from chainrule._src.tape.modes import is_recording as records
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.backward import grad
from chainrule._src.transforms.function import Function


class Replay:
    """A replayed call with its arrays.

    Attributes:
        trace: the trace.
        results: the arrays of the results that have gradients.
        residuals: the arrays of the forward pass that the backward pass reads.
        eager_call: runs the function eagerly; its results are tensors with a history.
    """

    def __init__(
        self,
        trace: FunctionTrace,
        results: Sequence[object],
        residuals: list[NumpyArray],
        eager_call: Callable[[], Any],
    ) -> None:
        self.trace = trace
        self.results = results
        self.residuals = residuals
        self.eager_call = eager_call

    @property
    def backward(self) -> Backward:
        assert self.trace.backward is not None
        return self.trace.backward

    def tensors(self, leaves: list[Any]) -> tuple[Tensor, ...]:
        """Return the tensors that gradients flow to."""
        return tuple([leaf.tensor(leaves) for leaf in self.backward.leaves])

    def gradients(self, cotangents: list[NumpyArray], residuals: list[NumpyArray]) -> list[Any]:
        """Return the gradients of the tensors, or None for tensors that get none."""
        backward = self.backward
        with LOCK:
            if backward.plan is None:
                backward.set_plan(plan_of(self.trace))
        given = zip([*cotangents, *residuals], backward.plan.inputs, strict=True)
        found = iter(backward.plan.run([ensure_strides(array, value.strides) for array, value in given]))
        return [None if var is None else next(found) for var in backward.grads]

    def same_in_order(self, cotangents: list[NumpyArray]) -> bool:
        """Return whether gradients have eager bits if cotangents are copied to C order, in which they were recorded."""
        trace = self.trace
        if all([g.flags.c_contiguous for g in cotangents]) or trace.generator_states or trace.effects or trace.writes:
            return True  # for effects: the function cannot be run again
        return all(map(_is_repeated, cotangents)) and self.backward.takes_repeated


def _is_repeated(array: NumpyArray) -> bool:
    """Return whether an array is a broadcast array in C order, as the gradient of a sum is."""
    part = array[tuple([slice(None) if stride else slice(1) for stride in array.strides])]
    return bool(part.flags.c_contiguous)


def plan_of(trace: FunctionTrace) -> ExecutionPlan:
    """Return the plan of the backward pass. Its inputs are the cotangents, then the residuals."""
    backward = trace.backward
    assert backward is not None
    grads = [var for var in backward.grads if var is not None]
    inputs = [*backward.cotangents, *backward.residuals]
    return ExecutionPlan(Program(inputs, trace.constants, backward.calls, grads, []), encoded=backward.encoded)


def start_of(x: Tensor) -> Tensor:
    """Return an alias with an edge of its own for an operand, since one operand may have been computed from another."""
    if not x.requires_grad:
        return x
    start: Tensor = alias(x)
    start._view = None
    return start


@contextmanager
def starting_at(tensors: list[AnyArray] | tuple[Tensor, ...], starts: list[Tensor]) -> Iterator[None]:
    """Give captured tensors the edges of other tensors within the block."""
    before = [(x, x._edge) for x in tensors if isinstance(x, Tensor)]
    try:
        for x, start in zip(tensors, starts, strict=True):
            if isinstance(x, Tensor):
                x._edge = start._edge
        yield
    finally:
        for x, edge in before:
            x._edge = edge


class CompiledFunction(Function):
    """The node of a replayed call, from the tensors that gradients flow to."""

    @staticmethod
    def forward(ctx: Any, replay: Replay, *tensors: Tensor) -> Any:
        ctx.replay, ctx.tensors = replay, tensors
        ctx.save_for_backward(*[wrap(array) for array in replay.residuals], *tensors)
        replay.residuals = []
        return tuple([wrap(array) for array in replay.results])

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        replay = ctx.replay
        saved = ctx.saved_tensors
        count = len(replay.backward.residuals)
        tensors = saved[count:]
        if not records():
            arrays = [g.numpy() for g in cotangents]
            if replay.same_in_order(arrays):
                found = replay.gradients(arrays, [t.numpy() for t in saved[:count]])
                return None, *[None if g is None else wrap(g) for g in found]
        if replay.trace.generator_states:
            raise RuntimeError(
                "compile: the gradient of a gradient through a function that draws random numbers takes the same numbers twice. "
                "Compile the function that takes the gradients instead"
            )
        create_graph = records()
        with enable_grad():
            starts = [start_of(x) for x in tensors]
            with starting_at(ctx.tensors, starts):
                results = tree_leaves(replay.eager_call())
        outputs = [results[i] for i in replay.backward.results]
        return None, *grad(outputs, starts, cotangents, create_graph=create_graph, allow_unused=True)
