"""Which public functions there are, which rows they belong to, and what NumPy calls them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule
from chainrule import fft, linalg, special
from chainrule.core.protocol import FUNCTIONS, UFUNCS, load
from chainrule.core.tensor import Tensor
from chainrule.nn import functional  # which puts its rows in the table
from chainrule.rows.primitive import TABLE, Primitive

#: Where users find operations.
_MODULES = {"": chainrule, "linalg.": linalg, "fft.": fft, "special.": special, "nn.functional.": functional}
_PREFIXES = ("chainrule.", "torch.", "cr.", "np.", "numpy.", "Tensor.")
_OPERATIONS = ("chainrule.ops.", "chainrule.linalg", "chainrule.fft", "chainrule.special", "chainrule.nn.")
_NO_OPERATIONS = ("chainrule.ops.creation", "chainrule.ops.queries", "chainrule.ops.arguments")


@functools.cache
def functions() -> dict[str, Callable[..., Any]]:
    """The public functions that compute something from tensors, by dotted name: ``exp``, ``linalg.inv`` ..."""
    found: dict[str, Callable[..., Any]] = {}
    for prefix, module in _MODULES.items():
        for attribute in getattr(module, "__all__", dir(module)):
            function = vars(module).get(attribute)  # what loads lazily is no operation
            if not attribute.startswith("_") and inspect.isfunction(function) and _is_operation(attribute, function):
                found[prefix + attribute] = function
    return found


def _is_operation(name: str, function: Any) -> bool:
    where = inspect.unwrap(function).__code__.co_filename.replace("\\", "/")
    home = "chainrule." + where.rpartition("/chainrule/")[2].removesuffix(".py").replace("/", ".")
    if home == "chainrule.api.functions" or name in TABLE:
        return True
    return home.startswith(_OPERATIONS) and home not in _NO_OPERATIONS


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
