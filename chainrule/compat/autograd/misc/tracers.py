"""``const_graph``, without caching."""

from __future__ import annotations

from functools import partial

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyFunction

__all__ = [
    "const_graph",
]


def const_graph(fun: AnyFunction, *args: object, **kwargs: object) -> AnyFunction:
    """Bind a function's first arguments. The function runs in every call; use ``chainrule.compile`` to cache its graph."""
    return partial(fun, *args, **kwargs)


show(globals())
