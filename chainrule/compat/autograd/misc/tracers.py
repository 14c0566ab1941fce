"""Constant graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """The function with its first arguments given. It is called each time: ``chainrule.compile`` is what saves calls."""
    return partial(fun, *args, **kwargs)
