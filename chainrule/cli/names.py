"""Which public functions there are, which rows they belong to, and what NumPy calls them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule.fft
import chainrule.nn.functional  # noqa: F401 -- their operations are declared when they load
from chainrule.api.declare import OPERATIONS
from chainrule.core.protocol import FUNCTIONS, UFUNCS, load
from chainrule.core.tensor import Tensor
from chainrule.rows.primitive import TABLE, Primitive

_PREFIXES = ("chainrule.", "torch.", "cr.", "np.", "numpy.", "Tensor.")
_NO_OPERATIONS = ("chainrule.ops.creation", "chainrule.ops.queries")


@functools.cache
def functions() -> dict[str, Callable[..., Any]]:
    """The public functions that compute something from tensors, by dotted name: ``exp``, ``linalg.inv`` ..."""
    return {
        name: operation.public
        for name, operation in OPERATIONS.items()
        if not name.startswith("Tensor.") and operation.function.__module__ not in _NO_OPERATIONS
    }


def bare(name: str) -> str:
    """The name without the module that every name has: ``torch.exp``, ``np.exp`` and ``Tensor.exp`` are ``exp``."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def short(name: str) -> str:
    """The last part of a dotted name."""
    return name.rpartition(".")[2]


def names_of(name: str) -> list[str]:
    """All public names of the function that has this (dotted or last) name, that one first."""
    known = functions()
    first = [n for n in known if n == name] or [n for n in known if short(n) == name]
    if not first:
        return []
    same = [n for n, function in known.items() if function is known[first[0]] or short(n) == short(first[0])]
    return list(dict.fromkeys(first + same))


def row_named(name: str) -> Primitive | None:
    """The row of that name, or the one whose function has that name for an alias."""
    if name in TABLE:
        return TABLE[name]
    aliases = {short(alias) for alias in names_of(name)}
    return next((TABLE[alias] for alias in sorted(aliases) if alias in TABLE), None)


def numpy_names(row_name: str, aliases: list[str]) -> list[str]:
    """What NumPy calls an operation, where its function works on tensors."""
    load("numpy")
    row = TABLE.get(row_name)
    found = [f"np.{ufunc.__name__}" for ufunc, ours in UFUNCS.items() if ours is row and hasattr(np, ufunc.__name__)]
    for name in dict.fromkeys([row_name, *map(short, aliases)]):
        for module, prefix in ((np, "np."), (np.linalg, "np.linalg.")):
            function = getattr(module, name, None)
            if callable(function) and (function in FUNCTIONS or function in UFUNCS):
                found.append(prefix + name)
    return list(dict.fromkeys(found))


def methods(aliases: list[str]) -> list[str]:
    """The tensor methods of these names."""
    return [f"x.{name}" for name in dict.fromkeys(map(short, aliases)) if callable(getattr(Tensor, name, None))]
