"""The content of a class, which a guard compares when the version number of the class has changed.

Any assignment to an attribute of a class or its bases changes the version number. Most assignments do not affect a trace, such as
those to a counter of instances or a cache. The guard is then renewed, so the content is compared once per change. ``log`` makes a
``ClassContent`` for each class that a trace depends on.
"""

from __future__ import annotations

import operator

from chainrule._src.compiling.guards.effect_tables import CONTAINERS, has_fixed_attributes, is_library_class
from chainrule._src.compiling.guards.guards import MISSING, bases_of, mro_of, namespace_of, same_value, version_of


class ClassContent:
    """The attributes of a class and its bases at the time when a trace first depended on the class.

    Special methods, functions and descriptors are always compared: operators and C functions look them up without being seen.
    Plain values are compared if they were read. In library classes, only special methods and attributes that were read are compared.

    Attributes:
        version: the version of the class.
        names: the names of the attributes that were read.
        whole: whether code that is not watched may have read any attribute.
    """

    __slots__ = ("_bases", "_mro", "_namespaces", "names", "version", "whole")

    def __init__(self, cls: type) -> None:
        self.version = version_of(cls)
        self._mro, self._bases = mro_of(cls), bases_of(cls)
        self._namespaces = [_Namespace(base) for base in self._mro if not has_fixed_attributes(base)]
        self.names: set[str] = set()
        self.whole = False

    def read(self, name: str) -> None:
        """Note that an attribute is read."""
        if name not in self.names:
            self.names.add(name)
            for namespace in self._namespaces:
                namespace.kept.setdefault(name, namespace.now.get(name, MISSING))

    def add(self, other: ClassContent) -> None:
        """Note all reads of a class derived from this one."""
        self.whole |= other.whole
        for name in other.names:
            self.read(name)

    def covers(self, other: ClassContent) -> bool:
        """Return whether this content compares all attributes that another one compares."""
        return self.version == other.version and self.names >= other.names and self.whole >= other.whole

    def is_same(self, cls: type) -> bool:
        """Return whether a class has this content now."""
        if self.version[1:] != version_of(cls)[1:] or not same_value(self._bases, bases_of(cls)):
            return False
        return same_value(self._mro, mro_of(cls)) and all([x.is_same(self.names, self.whole) for x in self._namespaces])


class _Namespace:
    """The attributes in the namespace of one class of a hierarchy.

    Attributes:
        now: the current attributes.
        names, values: all attributes at the time of the trace.
        kept: values by name. Of a library class only special methods and attributes that were read.
    """

    __slots__ = ("kept", "library", "names", "now", "values")

    def __init__(self, cls: type) -> None:
        self.library = is_library_class(cls)
        self.now = namespace_of(cls)
        self.names, self.values = tuple(self.now), tuple(self.now.values())
        self.kept = {k: v for k, v in self.now.items() if not self.library or _is_special(k)}

    def is_same(self, read: set[str], whole: bool) -> bool:
        """Return whether all attributes that are compared have the values that they had."""
        if tuple(self.now) == self.names and all(map(operator.is_, self.now.values(), self.values)):
            return True
        for name in (*self.kept, *[name for name in self.now if name not in self.kept]):
            was, found = self.kept.get(name, MISSING), self.now.get(name, MISSING)
            if was is not found and not same_value(was, found):
                counts = name in read or (whole and not self.library)
                if counts or any([_is_looked_up(name, x, self.library) for x in (was, found)]):
                    return False
        return True


def _is_special(name: str) -> bool:
    """Return whether Python itself looks up attributes of this name. Annotations are excluded: they are filled in lazily."""
    return name[:2] == "__" == name[-2:] and not name.startswith("__annot")


def _is_looked_up(name: str, x: object, library: bool) -> bool:
    """Return whether operators or C code may have looked up an attribute of a class."""
    if _is_special(name) and (name == "__abstractmethods__" or not isinstance(x, CONTAINERS)):
        return True
    return not library and (callable(x) or hasattr(type(x), "__get__"))
