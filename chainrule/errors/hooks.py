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


def hook_fills_none() -> RuntimeError:
    return RuntimeError(
        "can't replace a None gradient with a non-None value: this operand of the node needs no gradient"
    )


# -- hooks on saved values ----------------------------------------------------------------------------------------------


def unpacked_no_tensor(value: Any) -> TypeError:
    return TypeError(
        f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(value).__name__}: "
        "unpack_hook must give back a tensor with the values that pack_hook was handed"
    )
