"""Writing in place: leaves, views, and values that were saved for the backward pass."""

from __future__ import annotations

from typing import Any

from chainrule.errors.names import name_of
from chainrule.errors.places import user_line, writer
from chainrule.errors.reading import out_of_place


def leaf_in_place(tensor: Any, op: str) -> RuntimeError:
    x, where = name_of(tensor) or "x", user_line()
    fix = out_of_place(where.text if where is not None else "").rstrip(".") or f"Write `{x} = {x} + ...`"
    return RuntimeError(
        "a leaf Variable that requires grad is being used in an in-place operation.\n"
        f"{writer(op, where)} would overwrite {x}, whose gradient you asked for.\n"
        f"To update a parameter: `with no_grad(): {x} -= lr * {x}.grad`. Otherwise: {fix[0].lower()}{fix[1:]}, or work on "
        f"{x}.clone()."
    )


def leaf_view_in_place(op: str) -> RuntimeError:
    where = user_line()
    fix = out_of_place(where.text if where is not None else "") or "Change a clone()."
    return RuntimeError(
        "a view of a leaf Variable that requires grad is being used in an in-place operation.\n"
        f"{writer(op, where)} would overwrite part of a leaf. To update a parameter do it inside `with no_grad():`. To "
        f"compute with the changed value: {fix[0].lower()}{fix[1:]}"
    )


_FORBIDDEN_VIEWS = {
    "no_grad": (
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use "
        "case is ambiguous and error-prone, it is forbidden.",
        "Make the view outside no_grad if {op} is to be recorded, or write inside no_grad if it is not; or change a "
        "clone().",
    ),
    "inference": (
        "A view was created in inference mode and is being modified inplace in normal mode. Given that this use case is "
        "ambiguous and error-prone, it is forbidden.",
        "Make the view outside inference_mode if {op} is to be recorded, or write inside it if it is not; or change a "
        "clone().",
    ),
    "function": (
        "Output of a custom Function is a view and is being modified inplace. This view was created inside a custom "
        "Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would override the "
        "custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden.",
        "Return a clone() from forward, or write {op} out of place.",
    ),
}


def view_in_place(origin: Any, op: str) -> RuntimeError:
    if isinstance(origin, str):
        what, advice = _FORBIDDEN_VIEWS[origin]
    else:
        what = (
            f"Output {origin[0]} of {origin[1]} is a view and is being modified inplace. This view is the output of a "
            "function that returns multiple views. Such functions do not allow the output views to be modified inplace."
        )
        advice = "Write {op} out of place, or take the part with an index (x[i], x[a:b]), which may be written to."
    return RuntimeError(f"{what}\n{advice.format(op=op)}")


def expanded_in_place(op: str) -> RuntimeError:
    return RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        f"{op} got an expanded tensor, or windows that overlap: clone() it first."
    )


def read_only(op: str) -> RuntimeError:
    return RuntimeError(f"{op}: the array behind this tensor is read-only; clone() the tensor first")


def in_place_shape(op: str, want: Any, got: Any) -> RuntimeError:
    return RuntimeError(
        f"output with shape {list(want)} doesn't match the broadcast shape {list(got)}: {op} cannot change a tensor's shape"
    )


def in_place_dtype(op: str, got: Any, want: Any) -> RuntimeError:
    return RuntimeError(
        f"result type {got} can't be cast to the desired output type {want}: {op} cannot change a tensor's dtype"
    )


def out_requires_grad(prim: Any) -> RuntimeError:
    name = f"{prim.name}(): " if prim is not None else ""
    return RuntimeError(
        f"{name}functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad. Use the returned value instead of out=, or work inside no_grad()."
    )
