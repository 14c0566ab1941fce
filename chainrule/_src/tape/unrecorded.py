"""Results of operations that are not recorded: tensors without an edge, whose ``_cut`` records the reason.

``dispatch.record`` calls ``unrecorded_tensors`` with the value of such an operation. It also calls the checks, for recorded operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule._src.arrays.types import AnyArray, Params, Saved, TensorLike
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import LOCAL, is_recording
from chainrule._src.tape.tensor import InferenceTensor, Tensor, wrap
from chainrule._src.tape.view import register_if_view


def unrecorded_tensors(
    prim: Primitive, operands: Sequence[TensorLike], out: object, needs: bool, params: Params
) -> Any:
    """Return tensors without an edge, whose ``_cut`` records where the path to a tensor that requires grad was cut."""
    cut = None
    if LOCAL.mode.silent:
        pass
    elif needs:
        kind = "no_grad" if not is_recording() else prim.name
        cut = errors.Cut(kind, errors.user_line(), tuple(x for x in operands if isinstance(x, Tensor) and x._edge))
    else:
        for x in operands:
            if isinstance(x, Tensor) and x._edge is None and x._cut is not None:
                cut = x._cut
                break
    if isinstance(out, tuple):
        results = tuple(wrap(o) for o in out)
        for tensor in results:
            tensor._cut = cut
        return results
    tensor = wrap(out)
    tensor._cut = cut
    if prim.view:
        register_if_view(tensor, operands[0], prim, params)
    return tensor


def check_inference(prim: Primitive, operands: Sequence[object], saved: Saved) -> None:
    """Raise if an inference tensor would be saved: it has no version, so an overwrite could not be detected."""
    for x in operands:
        if type(x) is InferenceTensor and any(value is x._raw for value in saved):
            raise errors.inference_saved(prim.name)


def check_has_derivative(prim: Primitive, out: AnyArray) -> None:
    """Raise for a datetime64 or timedelta64 result, through which no derivative flows."""
    if out.dtype.kind in "mM":
        raise errors.time_in_derivative(prim.name, out.dtype)
