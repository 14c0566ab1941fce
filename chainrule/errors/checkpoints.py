"""Checkpoints."""

from __future__ import annotations

from typing import Any

from chainrule.errors.words import shape_of, tensor_type


class CheckpointError(RuntimeError):
    """A checkpointed function did something else when it was run again for the backward pass."""


WARN_USE_REENTRANT = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
    "recommended; without it, use_reentrant=True is taken, as in PyTorch."
)


def _operations(frame: Any, run: Any) -> str:
    if not frame.debug:
        return (
            "\nThe function must compute the same when it is run again. Look for what changed between the runs: "
            "a counter, a training flag, data read from elsewhere. debug=True lists the operations of both runs."
        )
    first, second = "\n  ".join(frame.log), "\n  ".join(run.log)
    return (
        "\nYou are seeing this error because you passed `debug=True` to checkpoint (or are inside "
        f"set_checkpoint_debug_enabled): it lists what was computed.\nOperations of the first run:\n  {first}"
        f"\nOperations of the recomputation:\n  {second}"
    )


def checkpoint_saved_more(frame: Any, run: Any) -> CheckpointError:
    return CheckpointError(
        "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward "
        f"pass, which saved {len(frame.about)}.{_operations(frame, run)}"
    )


def checkpoint_saved_fewer(frame: Any, run: Any) -> CheckpointError:
    return CheckpointError(
        "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
        f"Number of tensors saved during forward: {len(frame.about)}\n"
        f"Number of tensors saved during recomputation: {run.count}.{_operations(frame, run)}"
    )


def checkpoint_saved_others(frame: Any, run: Any) -> CheckpointError:
    lines = "".join(
        f"\ntensor at position {i}: saved with shape {tuple(was[0])} and dtype {was[1]}, recomputed with shape "
        f"{tuple(now[0])} and dtype {now[1]}"
        for i, was, now in run.differing[:8]
    )
    return CheckpointError(
        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
        f"forward pass.{lines}{_operations(frame, run)}"
    )


def argument_was_written(tensor: Any, written: Any) -> RuntimeError:
    op, where = written.last
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{tensor_type(tensor.dtype)} {list(tensor.shape)}], which a checkpointed function reads, was overwritten "
        f"by {op}{f' at {where}' if where else ''} after the function ran, so it can't be run again. Write the change "
        "out of place, or run backward() first."
    )


def recomputed_was_written(tensor: Any, written: Any) -> RuntimeError:
    op, where = written.last
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{tensor_type(tensor.dtype)} {list(tensor.shape)}], which an operation in a checkpointed function saved, was "
        f"overwritten by {op}{f' at {where}' if where else ''}. Write the change out of place, or change a clone()."
    )


def kept_was_written(prim: Any, array: Any, written: Any) -> RuntimeError:
    op, where = written.last
    return RuntimeError(
        f"Tensor cached during selective activation checkpoint has been mutated: the result of {prim.name}, of shape "
        f"{shape_of(array)}, was overwritten by {op}{f' at {where}' if where else ''}. allow_cache_entry_mutation=True "
        "computes it again instead."
    )


def reentrant_needs_all_leaves() -> RuntimeError:
    return RuntimeError(
        "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter "
        "to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
        "passing the `inputs` argument. (explain() and jacobian() are like .grad() here.)"
    )
