"""Objects as a whole: what code is handed that is not looked into."""

from __future__ import annotations

import functools
import types
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from chainrule._src.compiling.state.guards import (
    IMMUTABLE,
    MISSING,
    Copy,
    attributes_of,
    content,
    elements,
    same_value,
)
from chainrule._src.compiling.state.known import BUFFERS, CONSTANT, CONTAINERS, HEAP_TYPE, has_numbers, is_opaque
from chainrule._src.compiling.state.objects import OURS, attribute_or_missing, content_in_place, is_called, isa

ndarray = np.ndarray
_OF_TABLES = frozenset({"_mgr", "_item_cache", "_attrs", "_flags", "_cache", "_name"})
_PARTS = 4096  # of an object that a library is handed, beyond which it is not looked at


class Unknown(Exception):
    """An object has a part of which it is not known what it is made of."""


def snapshot(x: object, parts: list[Any] | None = None) -> Any:
    """All that an object is made of, to be compared: numbers, the bytes of arrays, and which functions, classes, tensors.

    Args:
        parts: gets the objects in it.

    Raises:
        Unknown: it has parts that only C knows.
    """
    if hasattr(type(x), "__pandas_priority__"):
        return _Table(x)
    return _parts_of(x, {}, [] if parts is None else parts)


def _parts_of(x: Any, seen: dict[int, Any], parts: list[Any]) -> Any:
    if id(x) in seen:
        return ("again", list(seen).index(id(x)))
    if type(x) not in IMMUTABLE:
        parts.append(x)
    if isa(x, np.dtype):
        return x, content_in_place(x)
    constant = isa(x, (*CONSTANT, *OURS, FunctionType, MethodType)) and not isa(x, BUFFERS)
    if constant or (seen and is_called(x)):
        return x
    seen[id(x)] = x
    if len(seen) > _PARTS:
        raise Unknown(f"{type(x).__name__} of very many parts")
    state: tuple[Any, ...] = (type(x),)
    known = False
    if is_opaque(type(x)) and not has_numbers(type(x)):
        raise Unknown(type(x).__name__)
    if isa(x, ndarray):
        plain = np.asarray(x)
        if plain.dtype.hasobject:
            raise Unknown("array of objects")
        state += content(plain)
        known = True
    elif isa(x, BUFFERS):
        state += (content_in_place(x),)
        known = True
    elif isa(x, CONTAINERS):
        state += tuple([_parts_of(part, seen, parts) for part in elements(x)])
        known = True
    elif isa(x, functools.partial):
        return (functools.partial, *[_parts_of(part, seen, parts) for part in (x.func, x.args, x.keywords)])
    inside = attributes_of(x)
    if type(inside) is dict:
        state += tuple([(name, _parts_of(inside[name], seen, parts)) for name in inside])
        known = known or bool(type(x).__flags__ & HEAP_TYPE)
    members = [
        name for cls in type(x).__mro__ for name, m in cls.__dict__.items() if isa(m, types.MemberDescriptorType)
    ]
    if members and type(x).__flags__ & HEAP_TYPE:
        state += tuple([(name, _parts_of(attribute_or_missing(x, name), seen, parts)) for name in members])
        known = True
    if not known and x is not MISSING:
        raise Unknown(type(x).__name__)
    return state


class _Table(Copy):
    """A copy of one of pandas' objects: equal to another while labels and values are the same."""

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
