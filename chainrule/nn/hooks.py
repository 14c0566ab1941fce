"""Run a module's backward hooks, with the gradients of a call's outputs and of its inputs.

A call's tensors pass through two identity functions, one before ``forward`` and one after it, whose VJP rules call the
hooks. :class:`~chainrule.nn.module.Module` creates a :class:`BackwardHooks` for each call with hooks.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.api.grad_mode import is_grad_enabled
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.interpreters.trace_types import Unrecordable
from chainrule._src.messages import errors
from chainrule._src.ops.creation import zeros_like
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.function import Function

Gradients = tuple[Tensor | None, ...]


class BackwardHookFunction(Function):
    """The identity, with a backward pass that calls ``run_hooks`` with the gradients of all tensors."""

    @staticmethod
    def forward(ctx: Any, run_hooks: AnyFunction, materialize: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.run_hooks = run_hooks
        ctx.set_materialize_grads(materialize)
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: object) -> tuple[object, ...]:
        return (None, None, *ctx.run_hooks(gradients))


def _wrap_tensors(
    values: tuple[object, ...], run_hooks: AnyFunction, materialize: bool
) -> tuple[tuple[object, ...], list[int] | None]:
    """Return the values with the differentiable ones passed through the identity, and the positions of these.

    The positions are None if nothing is recorded.
    """
    positions = [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]
    if not positions or not is_grad_enabled():
        return values, None
    wrapped = dict(
        zip(positions, BackwardHookFunction.apply(run_hooks, materialize, *[values[i] for i in positions]), strict=True)
    )
    return tuple([wrapped.get(i, x) for i, x in enumerate(values)]), positions


class BackwardHooks:
    """The backward hooks of one call. Pre-hooks get the output gradients; hooks get the input and output gradients."""

    def __init__(self, module: object, pre_hooks: list[AnyFunction], hooks: list[AnyFunction]) -> None:
        if trace_hooks.is_tracing():
            raise Unrecordable("a module that it calls has backward hooks: remove the hooks, or leave the module out")
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.grad_outputs: Gradients | None = None

    def wrap_inputs(self, args: tuple[object, ...]) -> tuple[object, ...]:
        """Return the arguments to call ``forward`` with."""
        self.size, positions = len(args), None
        self.constants = {i: x for i, x in enumerate(args) if isinstance(x, Tensor) and not x.requires_grad}
        if self.hooks:
            args, positions = _wrap_tensors(args, self._run_input_hooks, True)
        self.inputs = positions
        return args

    def wrap_outputs(self, out: object) -> object:
        """Return the output of the call, from the output of ``forward``."""
        if not isinstance(out, (Tensor, tuple)):
            errors.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(out)}"
            )
            return out
        values = out if isinstance(out, tuple) else (out,)
        wrapped, self.outputs = _wrap_tensors(
            values, lambda gradients: self._run_output_hooks(gradients, len(values)), False
        )
        if self.outputs is None or not isinstance(out, tuple):
            return out if self.outputs is None else wrapped[0]
        return getattr(out, "_make", tuple)(wrapped)  # keeps named tuples

    def _run_output_hooks(self, gradients: Gradients, size: int) -> Gradients:
        positions: list[int] = self.outputs or []
        grads = _fill_positions(positions, gradients, size)
        for hook in self.pre_hooks:
            changed = hook(self.module, grads)
            grads = grads if changed is None else _checked("pre hook", "grad_output", changed, size)
        self.grad_outputs = grads
        if self.inputs is None and self.hooks:
            self.grad_outputs = None
            errors.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                "require gradients"
            )
            for hook in self.hooks:
                found = hook(self.module, (None,) * self.size, grads)
                if found is not None and not (isinstance(found, tuple) and all([g is None for g in found])):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None for "
                        "all gradients."
                    )
        return tuple([grads[i] for i in positions])

    def _run_input_hooks(self, gradients: Gradients) -> Gradients:
        grad_outputs, self.grad_outputs = self.grad_outputs, None
        if grad_outputs is None:  # these gradients did not flow through the outputs
            return gradients
        positions: list[int] = self.inputs or []
        grads = _fill_positions(positions, gradients, self.size, {i: zeros_like(x) for i, x in self.constants.items()})
        for hook in self.hooks:
            changed = hook(self.module, grads, grad_outputs)
            grads = grads if changed is None else _checked("hook", "grad_input", changed, self.size)
        return tuple([grads[i] for i in positions])


def _fill_positions(
    positions: list[int], gradients: Gradients, size: int, others: dict[int, Tensor] | None = None
) -> Gradients:
    """Return a tuple with a gradient for each value, None for values that are not tensors."""
    at = {**dict(zip(positions, gradients, strict=True)), **(others or {})}
    return tuple([at.get(i) for i in range(size)])


def _checked(hook: str, what: str, changed: object, size: int) -> Gradients:
    changed = changed if isinstance(changed, tuple) else (changed,)
    if len(changed) != size:
        raise RuntimeError(
            f"Backward {hook} returned an invalid number of {what}, got {len(changed)}, but expected {size}"
        )
    return changed
