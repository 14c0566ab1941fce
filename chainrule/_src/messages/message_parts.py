"""Parts of messages: PyTorch's names of dtypes and shapes, the reason why a path was cut, and errors about missing names.

The other modules of ``messages``, ``compiling`` and ``explaining`` call these functions.
"""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from chainrule._src.messages.names import name_of
from chainrule._src.messages.source_locations import Where, without_source


class Cut:
    """The reason why a tensor does not require grad although one of its operands does; ``str()`` is the message.

    ``sources`` are the operands that require grad. They are weak references; their names are looked up in ``str()``.
    """

    __slots__ = ("kind", "leaf", "sources", "where")

    def __init__(self, kind: str, where: Where | None, sources: Sequence[object] = ()) -> None:
        self.kind = kind
        self.where = where
        self.sources = [weakref.ref(source) for source in sources]

    @property
    def of_gradient(self) -> bool:
        """Whether the tensor is a gradient without a graph."""
        return self.kind in _GRADIENTS or self.kind.endswith(".backward")

    @property
    def names(self) -> list[str]:
        """The user's names of the sources that are still alive."""
        alive = [source() for source in self.sources]
        return [name for name in map(name_of, alive) if name]

    def __str__(self) -> str:
        if self.kind in _GRADIENTS:
            return _GRADIENTS[self.kind]
        if self.of_gradient:
            return (
                f"{self.kind} computed it from values that are not recorded, so it is a constant. That is correct for a "
                "linear function. Otherwise pass the inputs or outputs that backward reads to ctx.save_for_backward in "
                "forward, and read them from ctx.saved_tensors: other tensors, numbers and arrays on ctx have no history"
            )
        at = f" ({self.where})" if self.where else ""
        if self.where is not None and self.where.text:
            at = f" in {self.where.quoted}"
        if self.kind == "requires_grad":
            return f"requires_grad was set to False{at}"
        names = self.names[:2]
        of = f" to {' and '.join(names)}" if names else ""
        what, why = (
            self._rebound()
            or _CUTS.get(self.kind)
            or (f"was cut by {self.kind}", "its integer or boolean output has no derivative")
        )
        return f"the path{of} {what}{at}: {why}"

    def _rebound(self) -> tuple[str, str] | None:
        """Return the reason for an update that made a new tensor: ``w = w - lr * w.grad`` without recording."""
        update = re.match(r"(\w+) = .*\b\1\b", self.where.text) if self.where and self.kind == "no_grad" else None
        if update is None:
            return None
        w, what = update[1], _CUTS["no_grad"][0]
        return what, f"the line makes a new tensor {w}. Write into the old tensor, as in {w} -= step"


#: reasons why gradients, and values computed from them, have no graph
_GRADIENTS = {
    "gradient": "it was computed from gradients, which are recorded only with create_graph=True: "
    "g, = grad(y, x, create_graph=True), or y.backward(create_graph=True)",
    "linear": "it is the gradient of a linear function, which is constant: its derivative is zero everywhere",
}
#: shared instances: gradients that were not recorded, recorded gradients that are constant, and ``tensor.data``
GRADIENT = Cut("gradient", None)
LINEAR = Cut("linear", None)
DATA = Cut("data", None)

_STEP = "a comparison has no derivative. where(condition, a, b) has derivatives of a and b; sigmoid is a smooth step"
_CUTS = {
    "detach": ("was cut by detach()", "remove the call to keep the gradient"),
    "detach_": ("was cut by detach_()", "remove the call to keep the gradient"),
    "data": ("was cut by .data", "remove .data to keep the gradient"),
    "no_grad": ("was cut because gradient mode was off,", "compute it outside of no_grad() to keep the gradient"),
    "tensor()": ("was cut by tensor(...), which copies,", "use clone() to keep the gradient"),
    "cast": ("was cut by the conversion to an integer dtype", "integers have no gradient. Use floats"),
    "argmax": (
        "was cut by argmax",
        "an integer index has no derivative. max() has one; softmax is a smooth alternative",
    ),
    "argmin": (
        "was cut by argmin",
        "an integer index has no derivative. min() has one; softmax(-x) is a smooth alternative",
    ),
    "argsort": ("was cut by argsort", "integer indices have no derivative. The values of sort() have one"),
}
for _name in (
    *("eq", "ne", "lt", "le", "gt", "ge", "isclose", "isnan", "isinf", "isfinite"),
    *("logical_and", "logical_or", "logical_not", "logical_xor", "signbit"),
):
    _CUTS[_name] = (f"was cut by {_name}", _STEP)


class UnknownName(AttributeError):
    """An AttributeError of a module or tensor. The hint is computed in ``str()``, because ``hasattr`` never reads it.

    ``hint`` is called with the error, whose traceback contains the frame that raised it.
    """

    def __init__(self, text: str, hint: Callable[[BaseException], str] = lambda error: "") -> None:
        super().__init__(text)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.args[0]}{with_fallback(self.hint)(self)}"

    def __reduce__(self) -> tuple[object, ...]:
        return AttributeError, (str(self),)


UnknownName.__name__ = UnknownName.__qualname__ = "AttributeError"
UnknownName.__module__ = "builtins"


def with_fallback(message: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a message function: if reading the user's program raises, call it again without reading the program."""

    @functools.wraps(message)
    def wrapped(*args: object, **kwargs: object) -> object:
        try:
            return message(*args, **kwargs)
        except Exception:
            with without_source():
                return message(*args, **kwargs)

    return wrapped


def counted(count: int, noun: str) -> str:
    """Return a number and a noun, in the plural unless the number is 1: "1 trace", "2,000 calls"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(getattr(x, "shape", ()))


def torch_size(shape: Any) -> str:
    return f"torch.Size({list(shape)})"


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
    """Return PyTorch's name of a dtype in messages: Long, Float, Double ..."""
    return TYPE_NAMES.get(dtype.name, str(dtype))


def tensor_type(dtype: Any) -> str:
    """Return the name of PyTorch's old class for tensors of a dtype: LongTensor, FloatTensor ..."""
    return TYPE_NAMES.get(dtype.name, dtype.name.replace("uint", "UInt")) + "Tensor"


def function_name(function: object) -> str:
    """Return a function's name, "f" if it has none."""
    return getattr(function, "__name__", "f")


def function_or_class_name(hook: object) -> str:
    """Return the quoted name of a function, or of the class of a callable object."""
    return repr(getattr(hook, "__name__", type(hook).__name__))


def layouts(arrays: Iterable[Any]) -> str:
    """Return dtypes and shapes: ``float64[2, 3], int64[4]``."""
    return ", ".join(f"{x.dtype}{list(x.shape)}" for x in arrays)


def called_at(level: Any) -> str:
    """Return the line on which the transformation of a level was called, as a suffix in brackets."""
    return f" (called at {level.where})" if level.where else ""


def reason_of_cut(tensor: object) -> str:
    """Return the reason why the path to a tensor was cut, as a further sentence; '' if it was not."""
    cut = getattr(tensor, "_cut", None)
    return "" if cut is None else f" {cut}."


def last_write(written: Any) -> str:
    """Return the operation that last wrote into an array, and its line."""
    op, where = written.last
    return op + (f" at {where}" if where else "")
