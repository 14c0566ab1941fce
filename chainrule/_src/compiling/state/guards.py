"""What a recording read of Python's state, looked at again in each call.

A :class:`Guard` is one read: of a name, an attribute, an element, the contents of a container or an array. It holds for as long
as the same object is there, or a number or text of the same type and value.
"""

from __future__ import annotations

from abc import get_cache_token
from collections import deque
from collections.abc import Callable
from types import CellType, MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from chainrule._src import native
from chainrule._src.arrays.types import AnyFunction, NumpyArray, NumpyDType

ndarray = np.ndarray
#: what is read where there is nothing
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
IMMUTABLE = frozenset({bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range})
_MOST = 8  # sets of guards that one recording holds under


class Copy:
    """Base of what stands for the content of an object, and is equal to another of the same content."""


class GuardKind:
    """The kinds of guards, with the numbers that native code knows them by."""

    ITEM, INSTANCE, CELL, VERSION, REGISTERED, CLASS, ELEMENTS, LENGTH, FUNCTION, ARRAY, CHECK = range(11)


class Guard(NamedTuple):
    """One read.

    Attributes:
        kind: of :class:`GuardKind`.
        thing: what was read: a dictionary, an object, a cell, a class, a list, an array.
        key: which part of it; None: the whole. Of an array, whether its numbers matter. Of the version of a class its
            content, of an abstract class another class.
        value: what was there. Of a list the tuple of its elements, of an array its :func:`array_state`, of a class its
            :func:`version_of`, of an abstract class :func:`registration`.
    """

    kind: int
    thing: Any
    key: Any
    value: Any

    def now(self) -> Any:
        """What is there now."""
        return _NOW[self.kind](self.thing, self.key)

    def holds(self) -> bool:
        """Whether the same is there."""
        return self._is(self.now())

    def renewed(self) -> Guard | None:
        """The guard with the equal numbers and texts that are there now, which may be other objects; None if anything else differs."""
        now = self.now()
        if not self._is(now):
            return None
        unchanged = self.kind in (GuardKind.FUNCTION, GuardKind.CHECK) or now is self.value
        return self if unchanged else self._replace(value=now)

    def _is(self, now: Any) -> bool:
        """Whether this is what was there. A class may have the same content in another version."""
        if self.kind == GuardKind.VERSION:
            return (now[0] and now == self.value) or self.key.is_same(self.thing)
        return now[1] == self.value[1] if self.kind == GuardKind.REGISTERED else same_value(self.value, now)


def elements(x: Any) -> tuple[Any, ...]:
    """What is in a container, one after the other: of a dictionary keys and values."""
    if isinstance(x, (dict, MappingProxyType)):
        return tuple([part for item in x.items() for part in item])
    if isinstance(x, (set, frozenset)):
        return tuple(set.__iter__(x) if isinstance(x, set) else frozenset.__iter__(x))
    return tuple(list.__iter__(x) if isinstance(x, list) else deque.__iter__(x) if isinstance(x, deque) else x)


def attributes_of(x: object) -> Any:
    """The attributes of an object itself, without running code of its class; None if it has none."""
    try:
        return object.__getattribute__(x, "__dict__")
    except AttributeError:
        return None


def _instance(thing: object, key: str | None) -> object:
    inside = attributes_of(thing)
    if key is None:
        return inside
    return MISSING if inside is None else inside.get(key, MISSING)


#: of a class, without running code of its metaclass
mro_of: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
bases_of: Callable[[type], tuple[type, ...]] = vars(type)["__bases__"].__get__
namespace_of: Callable[[type], MappingProxyType[str, Any]] = vars(type)["__dict__"].__get__


def _version_in_python(cls: type) -> tuple[int, str, str]:
    return 0, vars(type)["__name__"].__get__(cls), vars(type)["__qualname__"].__get__(cls)


#: the number of the version of a class, which changes with any attribute of it or its bases, and its names, which change without;
#: the number is 0 where there is none
version_of: Callable[[type], tuple[int, str, str]] = (
    native.LOOPS.class_version if native.AVAILABLE else _version_in_python
)


def registration(cls: Any, kind: type | None) -> tuple[object, object]:
    """How many classes have been registered with abstract ones, and whether ``kind`` is a subclass of ``cls`` by now.

    Without a ``kind``, each registration makes a difference.
    """
    token = get_cache_token()
    return token, token if kind is None else issubclass(kind, cls)


def lookup(cls: type, name: str) -> Any:
    """What a class or one of its bases has under a name, as it stands there."""
    for base in mro_of(cls):
        found = namespace_of(base).get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def cell_content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def function_parts(x: AnyFunction) -> tuple[object, ...]:
    """What a function runs, and with which defaults."""
    return x.__code__, x.__defaults__, x.__kwdefaults__


#: by kind, what reads again
_NOW: tuple[Callable[[Any, Any], Any], ...] = (
    lambda thing, key: dict.get(thing, key, MISSING),
    _instance,
    lambda thing, key: cell_content(thing),
    lambda thing, key: version_of(thing),
    registration,
    lambda thing, key: type(thing),
    lambda thing, key: elements(thing),
    lambda thing, key: len(thing),
    lambda thing, key: function_parts(thing),
    lambda thing, key: array_state(thing, key),
    lambda thing, key: key(thing),
)


def same_value(x: Any, y: Any) -> bool:
    """Whether two objects are one, or numbers or texts of one type and value, or tuples of such."""
    if x is y:
        return True
    kind = type(x)
    if kind is not type(y):
        return False
    if kind is tuple:
        return len(x) == len(y) and all(map(same_value, x, y))
    if issubclass(kind, Copy):
        return bool(x == y)
    if kind is bytes:
        return bool(x == y)
    if issubclass(kind, np.dtype) and (x.fields is not None or x.metadata is not None or y.metadata is not None):
        return False  # metadata, also of fields, is no part of `==`
    if kind in IMMUTABLE or issubclass(kind, (np.generic, np.dtype)):
        return bool(x == y and repr(x) == repr(y))
    return False


def content(x: NumpyArray) -> tuple[object, ...]:
    """Return the bytes of an array, its layout and the field names of its dtype."""
    return x.tobytes("A"), x.shape, x.dtype, x.strides, field_names(x.dtype)


def array_state(x: NumpyArray, with_numbers: bool) -> tuple[object, ...]:
    """Return what can be set of an array in place: its numbers (or None), its layout, and its dtype with the names in it.

    The layout is the bytes of the integers (address, flags, shape, strides), which native code compares at once.
    """
    numbers: object = None
    if with_numbers:
        numbers = as_tuples(np.asarray(x).tolist()) if x.dtype.hasobject else x.tobytes("A")
    address = x.__array_interface__["data"][0]
    layout = np.array((address, x.flags.num, *x.shape, *x.strides), np.intp).tobytes()
    return numbers, layout, x.dtype, field_names(x.dtype)


def as_tuples(x: Any) -> Any:
    """Return nested lists as nested tuples."""
    return tuple(map(as_tuples, x)) if type(x) in (list, tuple) else x


def field_names(dtype: NumpyDType) -> tuple[object, ...]:
    """Return each structured dtype within a dtype, followed by its names: ``dtype.names`` can be set in place."""
    if dtype.fields is None:
        return () if dtype.base is dtype else field_names(dtype.base)
    inner = [part for field in dtype.fields.values() for part in field_names(field[0])]
    return (dtype, dtype.names, *inner)


class References:
    """The guards of a recording.

    Several sets of them where the recording was made again, and came to the same, after some had not held.
    """

    __slots__ = ("_sets",)

    def __init__(self, guards: list[Guard]) -> None:
        self._sets = [tuple(guards)]

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Those of the first set."""
        return self._sets[0]

    @property
    def arrays(self) -> list[ndarray]:
        """The plain arrays whose numbers were read."""
        return [
            guard.thing
            for guard in self.guards
            if issubclass(type(guard.thing), ndarray) and (guard.kind != GuardKind.ARRAY or guard.key)
        ]

    def hold(self) -> bool:
        """Whether all that was read is as it was."""
        for k, guards in enumerate(self._sets):
            at = _first_broken(guards, 0, MISSING)
            if at < 0 or self._renewed(k, at):
                return True
        return False

    def _renewed(self, k: int, at: int) -> bool:
        """Renew the guards of a set that native code does not see to hold; False if anything differs from what was read."""
        guards = self._sets[k]
        while at >= 0:
            try:
                guard = guards[at].renewed()
            except Exception:  # what was read is no more
                return False
            if guard is None:
                return False
            if guard is not guards[at]:
                guards = (*guards[:at], guard, *guards[at + 1 :])
            at = _first_broken(guards, at + 1, MISSING)
        self._sets[k] = guards
        return True

    def extend(self, new: References) -> None:
        """Hold only where another recording does, too."""
        self._sets = [
            guards + tuple([g for g in new.guards if not any(_is_same(g, h) for h in guards)]) for guards in self._sets
        ]

    def adopt(self, new: References) -> None:
        """Hold where another recording that came to the same does, too."""
        self._sets = [*new._sets, *self._sets][:_MOST]


def _is_same(x: Guard, y: Guard) -> bool:
    if x.kind != y.kind or x.thing is not y.thing:
        return False
    return x.key is y.key or (x.kind == GuardKind.VERSION and bool(y.key.covers(x.key)))


def _first_broken_in_python(guards: tuple[Guard, ...], begin: int, missing: object) -> int:
    for k in range(begin, len(guards)):
        guard = guards[k]
        try:
            if not guard.holds():
                return k
        except Exception:  # what was read is no more
            return k
    return -1


#: the position of the first guard, from one on, that finds another object than was read; -1 if there is none
_first_broken = native.first_broken if native.AVAILABLE else _first_broken_in_python
