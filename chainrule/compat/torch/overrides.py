"""``torch.overrides``: dispatch of user functions on ``__torch_function__`` of their arguments."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from chainrule._src.tape.overriding import call_override, overriding_arguments
from chainrule._src.tape.tensor import Tensor

__all__ = [
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "is_tensor_like", "wrap_torch_function",
]  # fmt: skip


def has_torch_function(relevant_args: Iterable[object]) -> bool:
    """Return whether an argument overrides ``__torch_function__``."""
    return bool(overriding_arguments(relevant_args))


def has_torch_function_unary(relevant_arg: object) -> bool:
    return bool(overriding_arguments((relevant_arg,)))


def has_torch_function_variadic(*relevant_args: object) -> bool:
    return bool(overriding_arguments(relevant_args))


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[object], *args: object, **kwargs: object
) -> Any:
    """Call ``__torch_function__`` of the relevant arguments until one returns a result.

    Raises:
        TypeError: all return NotImplemented.
    """
    return call_override(public_api, overriding_arguments(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that dispatches on the arguments that ``dispatcher`` returns."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            overriding_args = overriding_arguments(dispatcher(*args, **kwargs))
            return call_override(call, overriding_args, args, kwargs) if overriding_args else function(*args, **kwargs)

        return call

    return decorate


def is_tensor_like(inp: object) -> bool:
    """Return whether an object is a tensor, or has ``__torch_function__``."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")
