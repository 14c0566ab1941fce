"""``torch.overrides``: functions of the user's that ask their arguments for ``__torch_function__``."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from chainrule._src.tape.overriding import hand_over, overriding
from chainrule._src.tape.tensor import Tensor

__all__ = [
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "is_tensor_like", "wrap_torch_function",
]  # fmt: skip


def has_torch_function(relevant_args: Iterable[object]) -> bool:
    """Return whether one of the arguments is asked."""
    return bool(overriding(relevant_args))


def has_torch_function_unary(relevant_arg: object) -> bool:
    return bool(overriding((relevant_arg,)))


def has_torch_function_variadic(*relevant_args: object) -> bool:
    return bool(overriding(relevant_args))


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[object], *args: object, **kwargs: object
) -> Any:
    """What the first of the relevant arguments says that a function gives for the arguments.

    Raises:
        TypeError: none says anything but NotImplemented.
    """
    return hand_over(public_api, overriding(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of functions that ask what ``dispatcher`` gives of their arguments."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            asked = overriding(dispatcher(*args, **kwargs))
            return hand_over(call, asked, args, kwargs) if asked else function(*args, **kwargs)

        return call

    return decorate


def is_tensor_like(inp: object) -> bool:
    """Return whether it is a tensor, or of a class with ``__torch_function__``."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")
