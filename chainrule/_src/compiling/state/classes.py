"""The content of a class: what is compared where the number of its version is another one.

Any assignment to an attribute of a class, or of one of its bases, changes the number. Most of these change nothing for a trace: a
counter of instances, a cache. Such a guard is renewed, so the content is compared once for each change.
"""

from __future__ import annotations

import operator

from chainrule._src.compiling.state.guards import MISSING, bases_of, mro_of, namespace_of, same_value, version_of
from chainrule._src.compiling.state.known import CONTAINERS, is_fixed, is_library_class


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
        self._namespaces = [_Namespace(base) for base in self._mro if not is_fixed(base)]
        self.names: set[str] = set()
        self.whole = False

    def read(self, name: str) -> None:
        """An attribute is read."""
        if name not in self.names:
            self.names.add(name)
            for namespace in self._namespaces:
                namespace.kept.setdefault(name, namespace.now.get(name, MISSING))

    def add(self, other: ClassContent) -> None:
        """All that was read of a class derived from this one is read."""
        self.whole |= other.whole
        for name in other.names:
            self.read(name)

    def covers(self, other: ClassContent) -> bool:
        """Whether all that another one compares is compared here."""
        return self.version == other.version and self.names >= other.names and self.whole >= other.whole

    def is_same(self, cls: type) -> bool:
        """Whether a class has this content."""
        if self.version[1:] != version_of(cls)[1:] or not same_value(self._bases, bases_of(cls)):
            return False
        return same_value(self._mro, mro_of(cls)) and all([x.is_same(self.names, self.whole) for x in self._namespaces])


class _Namespace:
    """The attributes that one class of a hierarchy has itself.

    Attributes:
        now: its attributes, as they are now.
        names, values: all that there were.
        kept: the values by name. Of a library's class only those of special methods, and of what was read.
    """

    __slots__ = ("kept", "library", "names", "now", "values")

    def __init__(self, cls: type) -> None:
        self.library = is_library_class(cls)
        self.now = namespace_of(cls)
        self.names, self.values = tuple(self.now), tuple(self.now.values())
        self.kept = {k: v for k, v in self.now.items() if not self.library or _is_special(k)}

    def is_same(self, read: set[str], whole: bool) -> bool:
        """Whether all attributes that count have the values that they had."""
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
    """Whether Python itself looks an attribute up by this name. Annotations are filled in when they are first read."""
    return name[:2] == "__" == name[-2:] and not name.startswith("__annot")


def _is_looked_up(name: str, x: object, library: bool) -> bool:
    """Whether operators, and code in C, may have looked an attribute of a class up."""
    if _is_special(name) and (name == "__abstractmethods__" or not isinstance(x, CONTAINERS)):
        return True
    return not library and (callable(x) or hasattr(type(x), "__get__"))
