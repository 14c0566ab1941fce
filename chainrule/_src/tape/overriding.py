"""``__torch_function__``: operands that say themselves what a function of PyTorch's face gives for them.

A class answers for all functions and methods that are given one of its objects: subclasses of Tensor, whose results are of the
subclass unless they say otherwise, and classes that are no tensors. What is not exactly a Tensor never takes the path in C,
so ordinary calls pay nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from chainrule._src.arrays.dtype import dtype
from chainrule._src.arrays.size import Size
from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.tensor import InferenceTensor, Tensor, attach, refused

#: types that have nothing to say
PLAIN = frozenset({Tensor, InferenceTensor, np.ndarray, int, float, bool, complex, str, type(None), Size, dtype, slice})


class DisableTorchFunctionSubclass:
    """A context in which ``__torch_function__`` is not asked."""

    def __enter__(self) -> None:
        self.before = LOCAL.overriding
        LOCAL.overriding = False

    def __exit__(self, *error: object) -> None:
        LOCAL.overriding = self.before


def says(x: object) -> bool:
    """Whether functions ask x."""
    if type(x) in PLAIN or not LOCAL.overriding:
        return False
    asked = getattr(type(x), "__torch_function__", None)
    return asked is not None and asked is not refused


def overriding(args: Iterable[object]) -> list[Any]:
    """One argument of each type that is asked, in the order in which they are: subclasses before their bases."""
    found: list[Any] = []
    for x in args:
        if says(x) and type(x) not in map(type, found):
            at = next((i for i, y in enumerate(found) if issubclass(type(x), type(y))), len(found))
            found.insert(at, x)
    return found


def operands(args: Iterable[Any]) -> Iterable[object]:
    """The arguments of a call, those in lists among them."""
    for x in args:
        if type(x) in (list, tuple):
            yield from x
        else:
            yield x


def hand_over(function: AnyFunction, asked: list[Any], args: tuple[object, ...], kwargs: Params) -> Any:
    """What the first argument gives that does not answer NotImplemented.

    Raises:
        TypeError: none does.
    """
    types = tuple(map(type, asked))
    for x in asked:
        result = x.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"Multiple dispatch failed for '{getattr(function, '__name__', function)}'; all __torch_function__ handlers returned "
        f"NotImplemented: {', '.join(kind.__qualname__ for kind in types)}"
    )


def operator_of(symbol: str, x: object, other: object) -> Any:
    """What ``x * other`` gives (symbol "mul"; "rmul": ``other * x``) where one of them is asked; NotImplemented where none is."""
    if not says(x) and not says(other):
        return NotImplemented
    name = _METHODS.get(symbol, symbol)
    function = getattr(Tensor, name, None) or getattr(Tensor, f"__{symbol}__")
    return hand_over(function, overriding((x, other)), (x, other), {})


#: operators whose methods have other names
_METHODS = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip


def overridable(function: AnyFunction, public: Callable[[], AnyFunction]) -> AnyFunction:
    """The function, which asks its operands first. ``public`` gives what they are told that was called."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        for x in args:
            if type(x) not in PLAIN:
                break
        else:
            if not kwargs:
                return function(*args)
        asked = overriding(operands((*args, *kwargs.values())))
        return hand_over(public(), asked, args, kwargs) if asked else function(*args, **kwargs)

    return call


def _as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """The same elements and history in a tensor of a subclass."""
    out: Tensor = TABLE["alias"](self)
    out.__class__ = cls
    return out


def _default(
    cls: type[Tensor],
    func: AnyFunction,
    types: Iterable[type],
    args: tuple[object, ...] = (),
    kwargs: Params | None = None,
) -> Any:
    """Call the function on the tensors; what comes out is of the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        return _converted(func(*args, **(kwargs or {})), cls)


def _converted(x: object, cls: type[Tensor]) -> Any:
    if isinstance(x, Tensor):
        return x if cls is Tensor or isinstance(x, cls) else _as_subclass(x, cls)
    if isinstance(x, (list, tuple)) and type(x) is not Size:
        parts = [_converted(part, cls) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return x


def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Tensor:
    """A leaf of a subclass around a tensor's elements."""
    return _as_subclass(data.detach(), cls).requires_grad_(require_grad)


attach(__torch_function__=classmethod(_default), as_subclass=_as_subclass, _make_subclass=staticmethod(_make_subclass))
