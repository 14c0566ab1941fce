"""What messages are made of: types, shapes, why a path was cut, and names that are not there."""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from chainrule._src.messages.names import name_of
from chainrule._src.messages.places import Where, without_source


class Cut:
    """Why a tensor does not require grad though something it was computed from does.

    ``sources`` are the tensors that the path led to. They are held weakly, and named only when the message is printed.
    """

    __slots__ = ("kind", "leaf", "sources", "where")

    def __init__(self, kind: str, where: Where | None, sources: Sequence[object] = ()) -> None:
        self.kind = kind
        self.where = where
        self.sources = [weakref.ref(source) for source in sources]

    @property
    def of_gradient(self) -> bool:
        """Whether it says why a gradient has no graph."""
        return self.kind in _GRADIENTS or self.kind.endswith(".backward")

    @property
    def names(self) -> list[str]:
        """The user's names of the sources that are still there."""
        alive = [source() for source in self.sources]
        return [name for name in map(name_of, alive) if name]

    def __str__(self) -> str:
        if self.kind in _GRADIENTS:
            return _GRADIENTS[self.kind]
        if self.of_gradient:
            return (
                f"{self.kind} returned it, computed from nothing that is recorded, so it counts as constant. That is right "
                "for a linear function. Otherwise let forward hand what backward reads (inputs or outputs) to "
                "ctx.save_for_backward, and take it from ctx.saved_tensors: other tensors, numbers and arrays on ctx have "
                "no history"
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
        """What to say of an update that made a new tensor: ``w = w - lr * w.grad`` without recording."""
        update = re.match(r"(\w+) = .*\b\1\b", self.where.text) if self.where and self.kind == "no_grad" else None
        if update is None:
            return None
        w, what = update[1], _CUTS["no_grad"][0]
        return what, f"{w} is a new tensor there. Write into the old one, as in {w} -= step"


#: why gradients, and what is computed from them, may have no graph
_GRADIENTS = {
    "gradient": "it is made of gradients, and those are recorded only with create_graph=True: "
    "g, = grad(y, x, create_graph=True), or y.backward(create_graph=True)",
    "linear": "it is the gradient of a linear function, so it is constant, and its derivative is zero everywhere",
}
#: the cut of gradients that were not recorded, of recorded ones that are constant, and of ``tensor.data``. There is one
#: of each, so that making them costs nothing
GRADIENT = Cut("gradient", None)
LINEAR = Cut("linear", None)
DATA = Cut("data", None)

_STEP = "a comparison has no derivative. where(condition, a, b) keeps those of a and b; sigmoid is a smooth step"
_CUTS = {
    "detach": ("was cut by detach()", "leave it out to keep the gradient"),
    "detach_": ("was cut by detach_()", "leave it out to keep the gradient"),
    "data": ("was cut by .data", "leave it out to keep the gradient"),
    "no_grad": ("was cut because gradient mode was off,", "compute it outside of no_grad() to keep the gradient"),
    "tensor()": ("was cut by tensor(...), which copies,", "use clone() to keep the gradient"),
    "cast": ("was cut by the conversion to an integer dtype", "integers have no gradient. Stay with floats"),
    "argmax": (
        "was cut by argmax",
        "an integer position has no derivative. max() has one; softmax is a smooth relative",
    ),
    "argmin": ("was cut by argmin", "an integer position has no derivative. min() has one; softmax(-x) is smooth"),
    "argsort": ("was cut by argsort", "integer positions have no derivative. sort() gives values that have one"),
}
for _name in (
    *("eq", "ne", "lt", "le", "gt", "ge", "isclose", "isnan", "isinf", "isfinite"),
    *("logical_and", "logical_or", "logical_not", "logical_xor", "signbit"),
):
    _CUTS[_name] = (f"was cut by {_name}", _STEP)


class UnknownName(AttributeError):
    """A module or a tensor lacks a name. ``hasattr`` reads no message: what to use instead is looked up when one is read.

    ``hint`` is given the error, whose traceback knows where it was raised.
    """

    def __init__(self, text: str, hint: Callable[[BaseException], str] = lambda error: "") -> None:
        super().__init__(text)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.args[0]}{or_plain(self.hint)(self)}"

    def __reduce__(self) -> tuple[object, ...]:
        return AttributeError, (str(self),)


UnknownName.__name__ = UnknownName.__qualname__ = "AttributeError"
UnknownName.__module__ = "builtins"


def or_plain(message: Callable[..., Any]) -> Callable[..., Any]:
    """A message that never hides the error it is about: where reading the user's program fails, it is made without."""

    @functools.wraps(message)
    def made(*args: object, **kwargs: object) -> object:
        try:
            return message(*args, **kwargs)
        except Exception:
            with without_source():
                return message(*args, **kwargs)

    return made


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
    """What PyTorch calls a dtype in its messages: Long, Float, Double ..."""
    return TYPE_NAMES.get(dtype.name, str(dtype))


def tensor_type(dtype: Any) -> str:
    """The name of PyTorch's old class for tensors of a dtype: LongTensor, FloatTensor ..."""
    return TYPE_NAMES.get(dtype.name, dtype.name.replace("uint", "UInt")) + "Tensor"
