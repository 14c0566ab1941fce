"""What a module's backward hooks see: the gradients of what a call returned, and of what it was given.

A call's tensors pass through an identity whose rule calls the hooks: one before ``forward``, one behind it.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.api.grad_mode import is_grad_enabled
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.interpreters.recorded import Unrecordable
from chainrule._src.messages import errors
from chainrule._src.ops.creation import zeros_like
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.function import Function

Gradients = tuple[Tensor | None, ...]


class BackwardHookFunction(Function):
    """The tensors themselves; what arrives at all of them goes through a function."""

    @staticmethod
    def forward(ctx: Any, seen: AnyFunction, materialize: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.seen = seen
        ctx.set_materialize_grads(materialize)
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: object) -> tuple[object, ...]:
        return (None, None, *ctx.seen(gradients))


def _through(
    values: tuple[object, ...], seen: AnyFunction, materialize: bool
) -> tuple[tuple[object, ...], list[int] | None]:
    """The values, what has a gradient through the identity, and where that is; None where nothing is recorded."""
    places = [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]
    if not places or not is_grad_enabled():
        return values, None
    passed = dict(zip(places, BackwardHookFunction.apply(seen, materialize, *[values[i] for i in places]), strict=True))
    return tuple([passed.get(i, x) for i, x in enumerate(values)]), places


class BackwardHooks:
    """Those of one call of a module: the hooks before its backward pass get its outputs' gradients, the others also its inputs'."""

    def __init__(self, module: object, pre_hooks: list[AnyFunction], hooks: list[AnyFunction]) -> None:
        if LOCAL.recorder is not None:
            raise Unrecordable(
                "a module that it calls has hooks for the backward pass: take these away, or leave it out"
            )
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.at_outputs: Gradients | None = None

    def around(self, args: tuple[object, ...]) -> tuple[object, ...]:
        """The arguments that ``forward`` gets."""
        self.size, places = len(args), None
        self.constants = {i: x for i, x in enumerate(args) if isinstance(x, Tensor) and not x.requires_grad}
        if self.hooks:
            args, places = _through(args, self._at_inputs, True)
        self.inputs = places
        return args

    def behind(self, out: object) -> object:
        """What the call returns, for what ``forward`` did."""
        if not isinstance(out, (Tensor, tuple)):
            errors.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(out)}"
            )
            return out
        values = out if isinstance(out, tuple) else (out,)
        passed, self.outputs = _through(values, lambda gradients: self._at_outputs(gradients, len(values)), False)
        if self.outputs is None or not isinstance(out, tuple):
            return out if self.outputs is None else passed[0]
        return getattr(out, "_make", tuple)(passed)  # of a named tuple, too

    def _at_outputs(self, gradients: Gradients, size: int) -> Gradients:
        places: list[int] = self.outputs or []
        seen = _spread(places, gradients, size)
        for hook in self.pre_hooks:
            changed = hook(self.module, seen)
            seen = seen if changed is None else _checked("pre hook", "grad_output", changed, size)
        self.at_outputs = seen
        if self.inputs is None and self.hooks:
            self.at_outputs = None
            errors.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                "require gradients"
            )
            for hook in self.hooks:
                found = hook(self.module, (None,) * self.size, seen)
                if found is not None and not (isinstance(found, tuple) and all([g is None for g in found])):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None for "
                        "all gradients."
                    )
        return tuple([seen[i] for i in places])

    def _at_inputs(self, gradients: Gradients) -> Gradients:
        at_outputs, self.at_outputs = self.at_outputs, None
        if at_outputs is None:  # they came by another way than through the outputs
            return gradients
        places: list[int] = self.inputs or []
        seen = _spread(places, gradients, self.size, {i: zeros_like(x) for i, x in self.constants.items()})
        for hook in self.hooks:
            changed = hook(self.module, seen, at_outputs)
            seen = seen if changed is None else _checked("hook", "grad_input", changed, self.size)
        return tuple([seen[i] for i in places])


def _spread(places: list[int], gradients: Gradients, size: int, others: dict[int, Tensor] | None = None) -> Gradients:
    """One for each value, None for those that are no tensors."""
    at = {**dict(zip(places, gradients, strict=True)), **(others or {})}
    return tuple([at.get(i) for i in range(size)])


def _checked(hook: str, what: str, changed: object, size: int) -> Gradients:
    changed = changed if isinstance(changed, tuple) else (changed,)
    if len(changed) != size:
        raise RuntimeError(
            f"Backward {hook} returned an invalid number of {what}, got {len(changed)}, but expected {size}"
        )
    return changed
