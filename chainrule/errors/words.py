"""What messages are made of: the user's lines, the names of their variables, shapes, and where a path was cut."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Sequence
from typing import Any

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Where:
    """A line of the user's program, kept as (file, line) and formatted only when printed."""

    __slots__ = ("file", "line")

    def __init__(self, file: str, line: int) -> None:
        self.file = file
        self.line = line

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


class Cut:
    """Why a tensor does not require grad though something it was computed from does.

    ``sources`` are the tensors that the path led to. They are held weakly, and named only when the message is printed.
    """

    __slots__ = ("kind", "sources", "where")

    def __init__(self, kind: str, where: Where | None, sources: Sequence[Any] = ()) -> None:
        self.kind = kind
        self.where = where
        self.sources = [weakref.ref(source) for source in sources]

    @property
    def names(self) -> list[str]:
        """The user's names of the sources that are still there."""
        alive = [source() for source in self.sources]
        return [name for name in map(name_of, alive) if name]

    def __str__(self) -> str:
        at = f" ({self.where})" if self.where else ""
        names = self.names[:2]
        of = f" to {' and '.join(names)}" if names else ""
        if self.kind in ("detach", "detach_"):
            return f"the path{of} was cut by {self.kind}(){at}: leave it out to keep the gradient"
        if self.kind == "no_grad":
            return f"the path{of} was cut because gradient mode was off, as in `with no_grad():`{at}"
        if self.kind == "requires_grad":
            return f"requires_grad was set to False{at}"
        if self.kind == "tensor()":
            return f"tensor(...) made a copy outside the graph{at}: use clone() to keep the gradient"
        if self.kind == "cast":
            return f"the path{of} was cut by the conversion to an integer dtype{at}: integers have no gradient"
        reason = (
            "a comparison has no derivative"
            if self.kind in _COMPARISONS
            else ("its integer or boolean output has no derivative")
        )
        return f"the path{of} was cut by {self.kind}{at}: {reason}"


_COMPARISONS = {
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "isclose",
    "isnan",
    "isinf",
    "isfinite",
    "logical_and",
    "logical_or",
    "logical_not",
    "logical_xor",
    "signbit",
}


def user_line() -> Where | None:
    """The innermost line of the call stack that is not this package's."""
    frame = user_frame()
    return None if frame is None else Where(frame.f_code.co_filename, frame.f_lineno)


def user_frame() -> Any:
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def name_of(thing: Any) -> str:
    """The name of the user's variable that holds ``thing``, or an empty string."""
    if thing is None:
        return ""
    frame = user_frame()
    for _ in range(3):
        if frame is None:
            break
        for name, value in list(frame.f_locals.items()):
            if value is thing and not name.startswith("_"):
                return str(name)
        frame = frame.f_back
    return ""


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(getattr(x, "shape", ()))


def torch_size(shape: Any) -> str:
    return f"torch.Size({list(shape)})"


def made_by(tensor: Any) -> str:
    node = tensor.grad_fn
    return f", the result of {node.prim.name}," if node is not None else ""


TYPE_NAMES = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


def dtype_word(dtype: Any) -> str:
    """What PyTorch calls a dtype in its messages: Long, Float, Double ..."""
    return TYPE_NAMES.get(str(dtype), str(dtype))


def tensor_type(dtype: Any) -> str:
    return {
        "float32": "FloatTensor",
        "float64": "DoubleTensor",
        "complex64": "ComplexFloatTensor",
        "complex128": "ComplexDoubleTensor",
        "float16": "HalfTensor",
        "int64": "LongTensor",
    }.get(str(dtype), "Tensor")
