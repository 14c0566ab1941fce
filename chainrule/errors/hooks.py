"""Hooks, on tensors, nodes and saved values."""

from __future__ import annotations

from typing import Any

# -- hooks --------------------------------------------------------------------------------------------------------------


def hook_name(hook: Any) -> str:
    return repr(getattr(hook, "__name__", type(hook).__name__))


def hook_shape(hook: Any, want: Any, got: Any) -> RuntimeError:
    return RuntimeError(
        f"hook {hook_name(hook)} has changed the size of value: the gradient has shape {tuple(want)}, the hook "
        f"returned {tuple(got)}"
    )


def hook_dtype(hook: Any, want: Any, got: Any) -> RuntimeError:
    return RuntimeError(
        f"hook {hook_name(hook)} has changed the type of value (was {want} got {got}): return g.to({want})"
    )


def hook_count(hook: Any, got: int, want: int) -> RuntimeError:
    return RuntimeError(
        f"hook {hook_name(hook)} has returned an incorrect number of values (got {got}, but expected {want})"
    )


def hook_type(expected: str, got: Any) -> TypeError:
    return TypeError(
        f"expected {expected}, but hook returned '{type(got).__name__}': a tensor's hook returns a tensor or None, a "
        "node's hook a tuple of them or None"
    )


def hook_returned(hook: Any) -> RuntimeError:
    return RuntimeError(
        f"Tensor post accumulate grad hooks should return None.\n{hook_name(hook)} returned something, but the gradient is in "
        ".grad already: change that (t.grad.mul_(2)), and return nothing."
    )


def hook_fills_none() -> RuntimeError:
    return RuntimeError(
        "can't replace a None gradient with a non-None value: this operand of the node needs no gradient"
    )


# -- hooks on saved values ----------------------------------------------------------------------------------------------


def saved_has_hooks() -> RuntimeError:
    return RuntimeError(
        "Calling register_hooks on a saved tensor whose hooks have already been set: it can have one pair of hooks. Inside "
        "saved_tensors_hooks() every value has that context's."
    )


def saved_is_none() -> RuntimeError:
    return RuntimeError(
        "Calling register_hooks on a saved tensor with value None is forbidden: there is nothing to pack here (or a plain "
        "number, which needs no memory)."
    )


def saved_was_freed() -> RuntimeError:
    return RuntimeError(
        "Calling register_hooks on a saved tensor after it has been freed. Saved values are freed when backward() or grad() "
        "has used them: pass retain_graph=True there to keep them."
    )


def unpacked_no_tensor(value: Any) -> TypeError:
    return TypeError(
        f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(value).__name__}: "
        "unpack_hook must give back a tensor with the values that pack_hook was handed"
    )
