"""Queries about objects that run none of the objects' code, and the functions that guards of kind CHECK call again.

All modules of ``guards`` that handle reads and calls use them.
"""

from __future__ import annotations

import contextvars
import gc
import itertools
import random
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, GeneratorType, MappingProxyType, UnionType
from typing import Any

import numpy as np
from numpy import ndarray

from chainrule._src.api.array import Array
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, Params
from chainrule._src.compiling.guards.effect_tables import (
    CONTAINERS,
    FLAGS,
    ORDERED_VIEWS,
    VIEWS,
    has_numbers,
    is_library,
    is_library_class,
    module_of_code,
)
from chainrule._src.compiling.guards.guards import (
    IMMUTABLE,
    MISSING,
    as_tuples,
    class_attribute,
    elements_of,
    field_names,
    mro_of,
    namespace_of,
)
from chainrule._src.ops.random import Generator
from chainrule._src.tape.node import Node
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.context import FunctionCtx

_COMPUTING = (
    map, filter, itertools.accumulate, itertools.starmap, itertools.filterfalse, itertools.takewhile, itertools.dropwhile,
    itertools.groupby,
)  # fmt: skip
#: types of values that the trace records
VALUES = (Tensor, Array, ArrayLike)
#: classes of chainrule whose objects need no guards
CHAINRULE_TYPES = (*VALUES, Node, FunctionCtx, Generator)


#: types of operands that need no guards
PLAIN = IMMUTABLE | {Tensor, Array} | {np.dtype(code).type for code in "?bBhHiIlLqQefdgFDG"}


def are_plain(operands: Iterable[object]) -> bool:
    """Return whether operands need no guards: they are tensors, Arrays and immutable values."""
    return PLAIN.issuperset(map(type, operands))


def has_class(x: object, kinds: Any) -> bool:
    """Return whether an object's class is a subclass of ``kinds``. ``isinstance`` may run code of the object."""
    return issubclass(type(x), kinds)


def is_python(x: object, method: str) -> bool:
    """Return whether a method of an object's class is a watched Python function."""
    function = class_attribute(type(x), method)
    return has_class(function, FunctionType) and not is_library(module_of_code(function.__code__, function.__globals__))


def is_iterator(x: object) -> bool:
    kind = type(x)
    return hasattr(kind, "__next__") and not has_class(class_attribute(kind, "__next__"), FunctionType)


def given_by(x: Any, computed: bool = False) -> list[NumpyArray]:
    """Return the plain arrays that a C iterator iterates over.

    Values that come from Python code (generators, functions in ``map``) are noted when that code runs.

    Args:
        computed: return only arrays from which the iterator computes other values.
    """
    if type(x) is GeneratorType or (type(x) is map and type(gc.get_referents(x)[-1]) is FunctionType):
        return []
    computed = computed and not has_class(x, _COMPUTING)
    found, todo = [], [x]
    while todo:
        for part in gc.get_referents(todo.pop()):
            if is_iterator(part):
                found += given_by(part, computed)
            elif not computed and type(part) is ndarray:
                found.append(part)
            elif not computed and has_class(part, CONTAINERS):
                todo.append(part)
    return found


def is_called(x: object) -> bool:
    """Return whether an object is callable by a watched ``__call__``, or one of chainrule."""
    function = class_attribute(type(x), "__call__")
    if not has_class(function, FunctionType):
        return False
    module = module_of_code(function.__code__, function.__globals__)
    return not is_library(module) or (module.startswith("chainrule.") and not has_numbers(type(x)))


def is_library_context(x: object) -> bool:
    """Return whether an object is a context manager of NumPy or chainrule: ``np.errstate``, ``cr.no_grad``."""
    return hasattr(type(x), "__enter__") and type(x).__module__.partition(".")[0] in ("numpy", "chainrule")


def module_of(function: object) -> str:
    module: Any = getattr(function, "__module__", None) or getattr(type(function), "__module__", None)
    return module if has_class(module, str) else ""


def random_types() -> tuple[type, ...]:
    """Return the types of random number generators of Python and, if loaded, of NumPy."""
    loaded = sys.modules.get("numpy.random")
    if loaded is None:
        return (random.Random,)
    return random.Random, loaded.Generator, loaded.RandomState, loaded.BitGenerator, loaded.SeedSequence


def flat_items(x: Any, depth: int = 3) -> Iterator[Any]:
    for each in x:
        if has_class(each, dict):
            each = list(each.values())
        if has_class(each, (list, tuple)) and depth:
            yield from flat_items(each, depth - 1)
        else:
            yield each


def shown_by(x: object) -> object:
    """Return the dictionary behind a view or a mapping proxy; return other objects unchanged."""
    if has_class(x, (*VIEWS, *ORDERED_VIEWS, MappingProxyType)):
        (x,) = gc.get_referents(x)
    return x


def containers_in(x: object) -> Iterator[Any]:
    """Yield the containers in a container, at any depth."""
    for part in elements_of(x):
        if has_class(part, CONTAINERS):
            yield part
            yield from containers_in(part)


def makes_classes(meta: Any) -> bool:
    """Return whether calling a metaclass makes a new class: no ``__new__`` or ``__call__`` of it may return an existing one."""
    if not has_class(meta, type):
        return False
    own = [namespace_of(base) for base in mro_of(meta) if not is_library_class(base)]
    return not any(["__new__" in namespace or "__call__" in namespace for namespace in own])


def classes_in(x: Any) -> Iterator[Any]:
    """Yield the classes, and the objects of ``typing`` that act as classes, in the second argument of ``isinstance``."""
    if has_class(x, (tuple, UnionType)):
        for each in x if has_class(x, tuple) else x.__args__:
            yield from classes_in(each)
    else:
        yield x


# -- functions that guards call ------------------------------------------------------------------------------------------


def content_in_place(x: Any) -> Any:
    """Return the content of a buffer, the field names of a dtype, the flags of an array."""
    if has_class(x, FLAGS):
        return x.num
    if has_class(x, np.dtype):
        return field_names(x)
    if has_class(x, np.void):
        return as_tuples(x.tolist()) if x.dtype.hasobject else x.tobytes(), field_names(x.dtype)
    return bytes(x)


def attribute_or_missing(x: object, name: str) -> object:
    try:
        return getattr(x, name)
    except AttributeError:
        return MISSING


def value_by(x: object, descriptor: Any) -> object:
    try:
        return descriptor.__get__(x, type(x))
    except (AttributeError, TypeError):  # the instruction raises it, too
        return MISSING


def called_again(function: AnyFunction, args: tuple[object, ...], keywords: Params) -> Any:
    return function(*args, **keywords)


def context_value(x: contextvars.ContextVar[Any]) -> Any:
    return x.get(MISSING)


def get_or_missing(x: Any, key: object) -> Any:
    return x.get(key, MISSING)


def element_or_missing(x: Any, key: int) -> Any:
    return x[key] if -len(x) <= key < len(x) else MISSING


def array_value(x: AnyArray, key: tuple[int, ...]) -> object:
    try:
        return x[key]
    except IndexError:
        return MISSING
