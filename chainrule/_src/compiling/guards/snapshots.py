"""Snapshots of objects that are passed to unwatched code, to guard their whole state by comparison.

``reads`` calls ``state_snapshot`` with an object, and adds a guard that compares its nested tuples in each call.
"""

from __future__ import annotations

import functools
import types
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

import numpy as np

from chainrule._src.compiling.guards.effect_tables import (
    BUFFERS,
    CONSTANT,
    CONTAINERS,
    HEAP_TYPE,
    called_by,
    has_numbers,
    is_opaque,
    reads_contents,
)
from chainrule._src.compiling.guards.guards import (
    IMMUTABLE,
    MISSING,
    Copy,
    array_content,
    attributes_of,
    elements_of,
    same_value,
)
from chainrule._src.compiling.guards.implicit import is_named, is_watched, special_functions
from chainrule._src.compiling.guards.objects import (
    CHAINRULE_TYPES,
    attribute_or_missing,
    content_in_place,
    has_class,
    is_called,
)

ndarray = np.ndarray
_OF_TABLES = frozenset({"_mgr", "_item_cache", "_attrs", "_flags", "_cache", "_name"})
_PARTS = 4096  # maximum number of parts of an object that has a snapshot


class Unknown(Exception):
    """An object has a part whose state cannot be read."""


def state_snapshot(x: object, parts: list[Any] | None = None) -> Any:
    """Return the state of an object as nested tuples: numbers, the bytes of arrays, and functions, classes and tensors by identity.

    Args:
        parts: a list that gets the objects in it.

    Raises:
        Unknown: the object has state that only C code can read.
    """
    if hasattr(type(x), "__pandas_priority__"):
        return _Table(x)
    return _parts_of(x, {}, [] if parts is None else parts)


def _parts_of(x: Any, seen: dict[int, Any], parts: list[Any]) -> Any:
    if id(x) in seen:
        return ("again", list(seen).index(id(x)))
    if type(x) not in IMMUTABLE:
        parts.append(x)
    if has_class(x, np.dtype):
        return x, content_in_place(x)
    if has_class(x, (BuiltinFunctionType, MethodWrapperType)) and not has_class(x.__self__, (ModuleType, type)):
        return x.__name__, _parts_of(x.__self__, seen, parts)
    if has_class(x, MethodType) and not is_watched(x.__func__):
        return _parts_of(x.__func__, seen, parts), _parts_of(x.__self__, seen, parts)
    if has_class(x, (staticmethod, classmethod)):
        return _parts_of(x.__func__, seen, parts)
    if has_class(x, functools.partial):
        return (functools.partial, *[_parts_of(part, seen, parts) for part in (x.func, x.args, x.keywords)])
    if has_class(x, np.ufunc) and called_by(x):
        return (np.ufunc, *[_parts_of(part, seen, parts) for part in called_by(x)])
    constant = has_class(x, (*CONSTANT, *CHAINRULE_TYPES, FunctionType, MethodType)) and not has_class(x, BUFFERS)
    if constant or (seen and is_called(x)):
        return x
    seen[id(x)] = x
    if len(seen) > _PARTS:
        raise Unknown(f"{type(x).__name__} with very many parts")
    state: tuple[Any, ...] = (type(x),)
    is_complete = False
    if is_opaque(type(x)) and not has_numbers(type(x)):
        raise Unknown(type(x).__name__)
    if is_named(type(x), "__call__") and not is_called(x):
        raise Unknown(type(x).__name__)
    for function in special_functions(type(x)):
        if not reads_contents(function):
            raise Unknown(type(x).__name__)
        state += (_parts_of(function, seen, parts),)
    if has_class(x, ndarray):
        plain = np.asarray(x)
        if plain.dtype.hasobject:
            raise Unknown("array of objects")
        state += array_content(plain)
        is_complete = True
    elif has_class(x, BUFFERS):
        state += (content_in_place(x),)
        is_complete = True
    elif has_class(x, CONTAINERS):
        state += tuple([_parts_of(part, seen, parts) for part in elements_of(x)])
        is_complete = True
    inside = attributes_of(x)
    if type(inside) is dict:
        state += tuple([(name, _parts_of(inside[name], seen, parts)) for name in inside if not _is_cache(x, name)])
        is_complete = is_complete or bool(type(x).__flags__ & HEAP_TYPE) or has_class(x, types.SimpleNamespace)
    members = [
        name for cls in type(x).__mro__ for name, m in cls.__dict__.items() if has_class(m, types.MemberDescriptorType)
    ]
    if members and type(x).__flags__ & HEAP_TYPE:
        state += tuple([(name, _parts_of(attribute_or_missing(x, name), seen, parts)) for name in members])
        is_complete = True
    if not is_complete and x is not MISSING:
        raise Unknown(type(x).__name__)
    return state


def _is_cache(x: object, name: str) -> bool:
    """Return whether an attribute is a cache that is computed from other attributes."""
    return has_class(x, np.vectorize) and name in ("_ufunc", "_cache")


class _Table(Copy):
    """A copy of a pandas object, which compares labels and values."""

    def __init__(self, x: Any) -> None:
        self.copy = x.copy()
        self.own = tuple([(name, value) for name, value in vars(x).items() if name not in _OF_TABLES])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Table)
            and bool(self.copy.equals(other.copy))
            and _labels(self.copy) == _labels(other.copy)
            and same_value(self.own, other.own)
        )


def _labels(x: object) -> Any:
    return [list(axis) for axis in getattr(x, "axes", ())]
