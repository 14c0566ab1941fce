"""The content of a class: what is compared where the number of its version is another one.

Any assignment to an attribute of a class, or of one of its bases, changes the number. Most of these change nothing for a trace: a
counter of instances, a cache. Such a guard is renewed, so the content is compared once for each change.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.compiling.state.guards import MISSING, bases_of, mro_of, namespace_of, same_value, version_of
from chainrule._src.compiling.state.known import is_fixed, is_library_class


class ClassContent:
    """The attributes of a class and its bases, as they were when a trace first depended on the class.

    Special methods, functions and descriptors always count: operators and functions in C look them up without a trace seeing it.
    Plain values count if they were read. In the classes of libraries, other attributes than special methods count if they were read.

    Attributes:
        version: the version of the class.
        names: the attributes that were read.
        whole: whether code that is not looked into may have read any attribute.
    """

    __slots__ = ("_bases", "_mro", "_namespaces", "names", "version", "whole")

    def __init__(self, cls: type) -> None:
        self.version = version_of(cls)
        self._mro, self._bases = mro_of(cls), bases_of(cls)
        self._namespaces: list[dict[str, Any]] = []
        self.names: set[str] = set()
        self.whole = False
        for base in self._mro:
            library, namespace = is_library_class(base), namespace_of(base)
            kept = {} if is_fixed(base) else {k: v for k, v in namespace.items() if not library or _is_special(k)}
            self._namespaces.append(kept)

    def read(self, name: str) -> None:
        """An attribute is read."""
        if name not in self.names:
            self.names.add(name)
            for base, kept in zip(self._mro, self._namespaces, strict=True):
                kept.setdefault(name, namespace_of(base).get(name, MISSING))

    def covers(self, other: ClassContent) -> bool:
        """Whether all that another one compares is compared here."""
        return self.version == other.version and self.names >= other.names and self.whole >= other.whole

    def is_same(self, cls: type) -> bool:
        """Whether a class has this content."""
        if self.version[1:] != version_of(cls)[1:] or not same_value(self._bases, bases_of(cls)):
            return False
        return same_value(self._mro, mro_of(cls)) and all(map(self._is_base, self._mro, self._namespaces))

    def _is_base(self, base: type, kept: dict[str, Any]) -> bool:
        if is_fixed(base):
            return True
        library, now = is_library_class(base), namespace_of(base)
        for name in (*kept, *[name for name in now if name not in kept]):
            x, y = kept.get(name, MISSING), now.get(name, MISSING)
            if x is y or not (
                name in self.names
                or _is_special(name)
                or (not library and (self.whole or _is_method(x) or _is_method(y)))
            ):
                continue
            if not same_value(x, y):
                return False
        return True


def _is_special(name: str) -> bool:
    return name[:2] == "__" == name[-2:]


def _is_method(x: object) -> bool:
    """Whether the value of an attribute of a class is called, or asked for what it stands for."""
    return callable(x) or hasattr(type(x), "__get__")
