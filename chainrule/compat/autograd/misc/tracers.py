"""``const_graph``, without caching."""

from __future__ import annotations

from functools import partial

from chainrule._src.arrays.types import AnyFunction


def const_graph(fun: AnyFunction, *args: object, **kwargs: object) -> AnyFunction:
    """Bind a function's first arguments. The function runs in every call; use ``chainrule.compile`` to cache its graph."""
    return partial(fun, *args, **kwargs)
