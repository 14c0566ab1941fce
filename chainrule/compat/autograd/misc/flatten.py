"""Flatten nested tuples, lists and dicts of arrays to one vector."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.tree import tree_flatten, tree_map, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction

__all__ = [
    "flatten",
    "flatten_func",
]


def flatten(value: object) -> tuple[Any, AnyFunction]:
    """Return all elements of nested containers as one vector, and the function that converts such a vector back.

    >>> from chainrule.compat.autograd.misc import flatten
    >>> vector, unflatten = flatten({"b": [1.0, 2.0], "a": 3.0})
    >>> vector
    array([3., 1., 2.])
    >>> unflatten(vector + 1)
    {'b': [np.float64(2.0), np.float64(3.0)], 'a': np.float64(4.0)}
    """
    leaves, spec = tree_flatten(_sorted(value))
    shapes = [np.shape(x) for x in leaves]
    order = tree_unflatten(range(len(leaves)), spec)
    cuts = list(accumulate(map(int, map(np.size, leaves)), initial=0))

    def unflatten(vector: AnyArray) -> object:
        parts = [np.reshape(vector[a:b], shape) for a, b, shape in zip(cuts, cuts[1:], shapes)]
        return tree_map(lambda i: parts[i][()] if isinstance(parts[i], np.ndarray) else parts[i], _like(value, order))

    return (np.concatenate([np.ravel(x) for x in leaves]) if leaves else np.zeros(0)), unflatten


def _sorted(value: Any) -> Any:
    """Return the containers with dicts sorted by key."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return type(value)(map(_sorted, value)) if type(value) in (tuple, list) else value


def _like(value: Any, ordered: Any) -> Any:
    """Return sorted containers with dicts in the order of ``value``."""
    if isinstance(value, dict):
        return {key: _like(value[key], ordered[key]) for key in value}
    return type(value)(map(_like, value, ordered)) if type(value) in (tuple, list) else ordered


def flatten_func(func: AnyFunction, example: object) -> tuple[AnyFunction, Callable[[Any], Any], Any]:
    """Convert a function of nested arrays to one of vectors; also return ``unflatten`` and the example's vector."""
    vector, unflatten = flatten(example)
    return lambda x, *args: flatten(func(unflatten(x), *args))[0], unflatten, vector


show(globals())
