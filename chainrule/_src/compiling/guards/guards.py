"""Guards: the Python state that a trace depends on, checked before each replay.

A :class:`Guard` is one read: of a name, an attribute, an element, the contents of a container or an array. It holds while the read
gives the same object, or a number or text of the same type and value. ``log`` makes the guards of a trace; ``tree`` checks them
through ``GuardSets.hold``, which native code does where it can.
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
from chainrule._src.interpreters.same_bits import number_key

ndarray = np.ndarray
#: the value of a read that finds nothing
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
IMMUTABLE: frozenset[type] = frozenset(
    {bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range}
)
_MOST = 8  # maximum number of sets of guards of one trace


class Copy:
    """Base of copies of an object's content, which compare by content."""


class GuardKind:
    """The kinds of guards. ``guards.c`` uses the same numbers."""

    ITEM, INSTANCE, CELL, VERSION, REGISTERED, CLASS, ELEMENTS, LENGTH, FUNCTION, ARRAY, CHECK = range(11)


class Guard(NamedTuple):
    """One read.

    Attributes:
        kind: of :class:`GuardKind`.
        target: the object that was read: a dictionary, an object, a cell, a class, a list, an array.
        key: the part that was read, or None for all of it. For an array, whether its numbers matter. For the version of a class,
            its ClassContent. For an abstract class, another class.
        value: the result of the read. For a list, the tuple of its elements. For an array, its :func:`array_state`. For a class,
            its :func:`version_of`. For an abstract class, its :func:`abc_registration`.
    """

    kind: int
    target: Any
    key: Any
    value: Any

    def now(self) -> Any:
        """Read again."""
        return _NOW[self.kind](self.target, self.key)

    def holds(self) -> bool:
        """Return whether a new read gives the same value."""
        return self._is_equal(self.now())

    def renewed(self) -> Guard | None:
        """Return the guard with the objects of a new read, if these are equal numbers and texts; None if anything else differs."""
        now = self.now()
        if not self._is_equal(now):
            return None
        unchanged = self.kind in (GuardKind.FUNCTION, GuardKind.CHECK) or now is self.value
        return self if unchanged else self._replace(value=now)

    def _is_equal(self, now: Any) -> bool:
        """Return whether a new read gave the same value. A class may have the same content in another version."""
        if self.kind == GuardKind.VERSION:
            return (now[0] and now == self.value) or self.key.is_same(self.target)
        return now[1] == self.value[1] if self.kind == GuardKind.REGISTERED else same_value(self.value, now)


def elements_of(x: Any) -> tuple[Any, ...]:
    """Return the elements of a container; of a dictionary the keys and values, alternating."""
    if isinstance(x, (dict, MappingProxyType)):
        return tuple([part for item in x.items() for part in item])
    if isinstance(x, (set, frozenset)):
        return tuple(set.__iter__(x) if isinstance(x, set) else frozenset.__iter__(x))
    return tuple(list.__iter__(x) if isinstance(x, list) else deque.__iter__(x) if isinstance(x, deque) else x)


def attributes_of(x: object) -> Any:
    """Return the ``__dict__`` of an object without running code of its class; None if it has none."""
    try:
        return object.__getattribute__(x, "__dict__")
    except AttributeError:
        return None


def _instance_attribute(target: object, key: str | None) -> object:
    inside = attributes_of(target)
    if key is None:
        return inside
    return MISSING if inside is None else inside.get(key, MISSING)


#: the MRO, bases and namespace of a class, without running code of its metaclass
mro_of: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
bases_of: Callable[[type], tuple[type, ...]] = vars(type)["__bases__"].__get__
namespace_of: Callable[[type], MappingProxyType[str, Any]] = vars(type)["__dict__"].__get__


def _version_in_python(cls: type) -> tuple[int, str, str]:
    return 0, vars(type)["__name__"].__get__(cls), vars(type)["__qualname__"].__get__(cls)


#: the version number of a class, its name and its qualified name. Any change of an attribute of the class or its bases changes the
#: number, but not a change of the names. The number is 0 if the interpreter gives none
version_of: Callable[[type], tuple[int, str, str]] = (
    native.LOOPS.class_version if native.AVAILABLE else _version_in_python
)


def abc_registration(cls: Any, kind: type | None) -> tuple[object, object]:
    """Return the number of registrations with abstract classes, and whether ``kind`` is a subclass of ``cls``.

    Without a ``kind``, any new registration changes the result.
    """
    token = get_cache_token()
    return token, token if kind is None else issubclass(kind, cls)


def class_attribute(cls: type, name: str) -> Any:
    """Return an attribute from the namespace of a class or its bases, without binding it, or MISSING."""
    return _find_attribute(cls, name, MISSING)


def _find_attribute_in_python(cls: type, name: str, missing: object) -> Any:
    for base in mro_of(cls):
        found = namespace_of(base).get(name, missing)
        if found is not missing:
            return found
    return missing


_find_attribute: Callable[[type, str, object], Any] = (
    native.LOOPS.class_attribute if native.AVAILABLE else _find_attribute_in_python
)


def cell_content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def function_parts(x: AnyFunction) -> tuple[object, ...]:
    """Return the code and the defaults of a function."""
    return x.__code__, x.__defaults__, x.__kwdefaults__


#: the functions that read again, by kind
_NOW: tuple[Callable[[Any, Any], Any], ...] = (
    lambda target, key: dict.get(target, key, MISSING),
    _instance_attribute,
    lambda target, key: cell_content(target),
    lambda target, key: version_of(target),
    abc_registration,
    lambda target, key: type(target),
    lambda target, key: elements_of(target),
    lambda target, key: len(target),
    lambda target, key: function_parts(target),
    lambda target, key: array_state(target, key),
    lambda target, key: key(target),
)


def same_value(x: Any, y: Any) -> bool:
    """Return whether two objects are identical, or numbers or texts of the same type and value, or tuples of these."""
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
        return False  # `==` ignores metadata of dtypes and fields
    if issubclass(kind, (float, complex, np.generic)):
        return number_key(x) == number_key(y)
    if kind in IMMUTABLE or issubclass(kind, np.dtype):
        return bool((x == y or (x != x and y != y)) and repr(x) == repr(y))  # NaN differs from itself
    return False


def array_content(x: NumpyArray) -> tuple[object, ...]:
    """Return the bytes of an array, its layout and the field names of its dtype."""
    return x.tobytes("A"), x.shape, x.dtype, x.strides, field_names(x.dtype)


def array_state(x: NumpyArray, with_numbers: bool) -> tuple[object, ...]:
    """Return the mutable state of an array: its numbers (or None), its layout, and its dtype with the names in it.

    The layout is the bytes of the integers (address, flags, shape, strides), which native code compares in one step.
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


class GuardSets:
    """The guards of a trace.

    There are several sets if guards have failed and an equal trace was recorded. The trace holds if one of the sets holds.
    """

    __slots__ = ("_sets",)

    def __init__(self, guards: list[Guard]) -> None:
        self._sets = [tuple(guards)]

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The guards of the first set."""
        return self._sets[0]

    @property
    def arrays(self) -> list[ndarray]:
        """The plain arrays whose numbers were read."""
        return [
            guard.target
            for guard in self.guards
            if issubclass(type(guard.target), ndarray) and (guard.kind != GuardKind.ARRAY or guard.key)
        ]

    def hold(self) -> bool:
        """Return whether all guards of one of the sets hold."""
        for k, guards in enumerate(self._sets):
            at = _first_broken(guards, 0, MISSING)
            if at < 0 or self._renewed(k, at):
                return True
        return False

    def _renewed(self, k: int, at: int) -> bool:
        """Check in Python the guards of a set that fail in native code, and renew them; return whether all hold."""
        guards = self._sets[k]
        while at >= 0:
            try:
                guard = guards[at].renewed()
            except Exception:  # the object or attribute is gone
                return False
            if guard is None:
                return False
            if guard is not guards[at]:
                guards = (*guards[:at], guard, *guards[at + 1 :])
            at = _first_broken(guards, at + 1, MISSING)
        self._sets[k] = guards
        return True

    def extend(self, new: GuardSets) -> None:
        """Add the guards of another trace to all sets."""
        self._sets = [
            guards + tuple([g for g in new.guards if not any(_is_same(g, h) for h in guards)]) for guards in self._sets
        ]

    def add_alternatives(self, new: GuardSets) -> None:
        """Add the sets of an equal trace as alternatives."""
        self._sets = [*new._sets, *self._sets][:_MOST]


def _is_same(x: Guard, y: Guard) -> bool:
    if x.kind != y.kind or x.target is not y.target:
        return False
    return x.key is y.key or (x.kind == GuardKind.VERSION and bool(y.key.covers(x.key)))


def _first_broken_in_python(guards: tuple[Guard, ...], begin: int, missing: object) -> int:
    for k in range(begin, len(guards)):
        guard = guards[k]
        try:
            if not guard.holds():
                return k
        except Exception:  # the object or attribute is gone
            return k
    return -1


#: return the position of the first guard from ``begin`` on that does not hold, or -1
_first_broken = native.first_broken if native.AVAILABLE else _first_broken_in_python
