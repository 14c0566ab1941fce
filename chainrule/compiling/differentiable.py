"""A replayed call on the tape: gradients flow through it by the recorded backward computation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.api.grad_mode import enable_grad
from chainrule.autograd.backward import grad
from chainrule.autograd.function import Function
from chainrule.compiling.plan import Plan
from chainrule.compiling.recording import Backward, Recording
from chainrule.core.modes import recording as records
from chainrule.core.tensor import Tensor, wrap
from chainrule.interpreters.traced import Program, Unrecordable
from chainrule.tree import tree_leaves


class Replay:
    """One call, for the tape.

    Attributes:
        recording: what was replayed.
        results: the arrays of the results that have gradients.
        residuals: what the backward computation needs of the forward one.
        again: computes the results as eager does, as tensors with a history.
    """

    def __init__(
        self, recording: Recording, results: list[Any], residuals: list[Any], again: Callable[[], Any]
    ) -> None:
        self.recording = recording
        self.results = results
        self.residuals = residuals
        self.again = again

    @property
    def backward(self) -> Backward:
        assert self.recording.backward is not None
        return self.recording.backward

    def tensors(self, leaves: list[Any]) -> tuple[Tensor, ...]:
        """Those that gradients flow to."""
        return tuple([leaf.tensor(leaves) for leaf in self.backward.leaves])

    def gradients(self, cotangents: list[Any], residuals: list[Any]) -> list[Any]:
        """What arrives at the tensors."""
        backward = self.backward
        if backward.plan is None:
            backward.plan = plan_of(self.recording)
        found = iter(backward.plan.run([*cotangents, *residuals]))
        return [None if var is None else next(found) for var in backward.grads]


def plan_of(recording: Recording) -> Plan:
    """The plan of a backward computation: of cotangents, then residuals."""
    backward = recording.backward
    assert backward is not None
    made = [var for var in backward.grads if var is not None]
    return Plan(Program([*backward.cotangents, *backward.residuals], recording.constants, backward.calls, made, []))


class CompiledFunction(Function):
    """The results of a replayed call as functions of the tensors that gradients flow to."""

    @staticmethod
    def forward(ctx: Any, replay: Replay, *tensors: Tensor) -> Any:
        ctx.replay = replay
        ctx.save_for_backward(*[wrap(array) for array in replay.residuals], *tensors)
        replay.residuals = []
        return tuple([wrap(array) for array in replay.results])

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        replay = ctx.replay
        saved = ctx.saved_tensors
        count = len(replay.backward.residuals)
        tensors = saved[count:]
        if not records():
            found = replay.gradients([g.numpy() for g in cotangents], [t.numpy() for t in saved[:count]])
            return None, *[None if g is None else wrap(g) for g in found]
        if replay.recording.drawn:
            raise Unrecordable(
                "the gradient of a gradient through a compiled function that draws random numbers: compile that"
            )
        with enable_grad():
            results = tree_leaves(replay.again())
        outputs = [results[i] for i in replay.backward.results]
        return None, *grad(outputs, tensors, cotangents, create_graph=True, allow_unused=True)
