"""Convert operators on functions of one argument to operators on functions of several arguments.

The modules of operators use ``unary_to_nary`` as a decorator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyFunction

__all__ = [
    "get_doc",
    "get_name",
    "subvals",
    "unary_to_nary",
    "wrap_nary_f",
    "wraps",
]


def subvals(x: Iterable[object], pairs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """Return a tuple with the values at some indices replaced."""
    changed = list(x)
    for i, value in pairs:
        changed[i] = value
    return tuple(changed)


def get_name(f: AnyFunction) -> str:
    return getattr(f, "__name__", "[unknown name]")


def get_doc(f: AnyFunction) -> str:
    return getattr(f, "__doc__", "")


def wraps(
    fun: AnyFunction, namestr: str = "{fun}", docstr: str = "{doc}", **names: object
) -> Callable[[AnyFunction], AnyFunction]:
    """Return a decorator that sets a function's name and docstring from another function's, by format strings."""

    def rename(f: AnyFunction) -> AnyFunction:
        f.__name__ = namestr.format(fun=get_name(fun), **names)
        f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **names)
        return f

    return rename


def unary_to_nary(operator: AnyFunction) -> AnyFunction:
    """Convert ``operator(fun, x)`` to ``operator(fun, argnum)(*args)``; several argnums give a tuple x."""

    @wraps(operator)
    def nary_operator(fun: AnyFunction, argnum: Any = 0, *op_args: object, **op_kwargs: object) -> AnyFunction:
        if type(argnum) not in (int, tuple, list):
            raise AssertionError(f"argnum must be an int, or a tuple or list of them, not {argnum!r}")

        @wrap_nary_f(fun, operator, argnum)
        def nary_f(*args: Any, **kwargs: object) -> object:
            @wraps(fun)
            def unary_f(x: Any) -> object:
                pairs = [(argnum, x)] if isinstance(argnum, int) else zip(argnum, x, strict=True)
                return fun(*subvals(args, pairs), **kwargs)

            x = args[argnum] if isinstance(argnum, int) else tuple(args[i] for i in argnum)
            return operator(unary_f, x, *op_args, **op_kwargs)

        return nary_f

    return nary_operator


def wrap_nary_f(fun: AnyFunction, op: AnyFunction, argnum: object) -> Callable[[AnyFunction], AnyFunction]:
    """Return a decorator that sets the name and docstring of an operator's result."""
    return wraps(
        fun,
        "{op}_of_{fun}_wrt_argnum_{argnum}",
        "    {op} of function {fun} with respect to argument number {argnum}. It takes the arguments of {fun}.",
        op=get_name(op),
        argnum=argnum,
    )


show(globals())
