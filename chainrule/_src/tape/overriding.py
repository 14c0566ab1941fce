"""``__torch_function__``: operands that override functions of the PyTorch-style API.

``overriding_arguments`` takes the arguments of a call and returns those with an overriding type. ``call_override`` calls their
``__torch_function__`` and returns its result. The functions and methods of the package ``api`` call both on the slow path, and functions
wrapped by ``overridable``. By default, results for a subclass of Tensor are of the subclass. A class need not derive from Tensor. The fast
path in C accepts exact Tensors only, so calls without overriding operands have no overhead.
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
from chainrule._src.tape.tensor import InferenceTensor, Tensor, attach_methods, no_torch_function

#: types that never override functions
PLAIN = frozenset({Tensor, InferenceTensor, np.ndarray, int, float, bool, complex, str, type(None), Size, dtype, slice})


class DisableTorchFunctionSubclass:
    """A context in which ``__torch_function__`` is not called."""

    def __enter__(self) -> None:
        self.before = LOCAL.overriding
        LOCAL.overriding = False

    def __exit__(self, *error: object) -> None:
        LOCAL.overriding = self.before


def overrides_functions(x: object) -> bool:
    """Return whether x overrides functions."""
    if type(x) in PLAIN or not LOCAL.overriding:
        return False
    handler = getattr(type(x), "__torch_function__", None)
    return handler is not None and handler is not no_torch_function


def overriding_arguments(args: Iterable[object]) -> list[Any]:
    """Return one argument of each overriding type, subclasses before their bases."""
    found: list[Any] = []
    for x in args:
        if overrides_functions(x) and type(x) not in map(type, found):
            index = next((i for i, y in enumerate(found) if issubclass(type(x), type(y))), len(found))
            found.insert(index, x)
    return found


def iterate_operands(args: Iterable[Any]) -> Iterable[object]:
    """Iterate over the arguments of a call and over the elements of lists and tuples among them."""
    for x in args:
        if type(x) in (list, tuple):
            yield from x
        else:
            yield x


def call_override(function: AnyFunction, overriders: list[Any], args: tuple[object, ...], kwargs: Params) -> Any:
    """Call ``__torch_function__`` of the ``overriders``. Return the first result that is not NotImplemented.

    Raises:
        TypeError: all results are NotImplemented.
    """
    types = tuple(map(type, overriders))
    for x in overriders:
        result = x.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"Multiple dispatch failed for '{getattr(function, '__name__', function)}'; all __torch_function__ handlers returned "
        f"NotImplemented: {', '.join(kind.__qualname__ for kind in types)}"
    )


def operator_of(symbol: str, x: object, other: object) -> Any:
    """Return the overridden result of ``x * other`` (symbol "mul") or ``other * x`` ("rmul"), or NotImplemented."""
    if not overrides_functions(x) and not overrides_functions(other):
        return NotImplemented
    name = _METHODS.get(symbol, symbol)
    function = getattr(Tensor, name, None) or getattr(Tensor, f"__{symbol}__")
    return call_override(function, overriding_arguments((x, other)), (x, other), {})


#: operators whose methods have other names
_METHODS = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip


def overridable(function: AnyFunction, public: Callable[[], AnyFunction]) -> AnyFunction:
    """Wrap a function so that its operands can override it. ``public`` returns the function to pass to the override."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        for x in args:
            if type(x) not in PLAIN:
                break
        else:
            if not kwargs:
                return function(*args)
        overriders = overriding_arguments(iterate_operands((*args, *kwargs.values())))
        return call_override(public(), overriders, args, kwargs) if overriders else function(*args, **kwargs)

    return call


def _as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """Return a tensor of a subclass with the same elements and history."""
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
    """Call the function and convert its results to the subclass."""
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
    """Return a leaf of a subclass with a tensor's elements."""
    return _as_subclass(data.detach(), cls).requires_grad_(require_grad)


attach_methods(
    __torch_function__=classmethod(_default), as_subclass=_as_subclass, _make_subclass=staticmethod(_make_subclass)
)
