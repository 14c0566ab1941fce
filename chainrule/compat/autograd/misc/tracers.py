"""Constant graphs."""

from __future__ import annotations

from functools import partial

from chainrule._src.arrays.types import AnyFunction


def const_graph(fun: AnyFunction, *args: object, **kwargs: object) -> AnyFunction:
    """Return the function with its first arguments given. It is called each time: ``chainrule.compile`` is what saves calls."""
    return partial(fun, *args, **kwargs)
