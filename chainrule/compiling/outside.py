"""What a function uses of the program around it: names that may be bound anew, and NumPy's generators of random numbers.

A recording has what these names stood for. Arrays are read where they lie, so what is written into them is seen; that a name
stands for something else cannot be seen there, and is looked up in every call.
"""

from __future__ import annotations

import dis
import functools
import operator
import random
import sys
from collections.abc import Callable, Iterable
from types import CellType, CodeType, FunctionType, MappingProxyType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from chainrule.core.tensor import Tensor
from chainrule.core.versions import digest, samples

ndarray = np.ndarray
_DEEPEST, _WIDEST = 5, 64
_LIBRARIES = frozenset({"numpy", "scipy", "chainrule", *sys.stdlib_module_names})
_FREE = 3  # changes of an array's content without consequence, after which it is free to change
_COPIED = 1 << 24  # bytes up to which the content of an array can be put back
_SMALL = 1024  # bytes up to which an array is compared as a whole; of others, some elements are
_bytes = operator.methodcaller("tobytes")
_content = operator.attrgetter("cell_contents")
_is, _getitem = operator.is_, operator.getitem


class Outside:
    """What a function and its arguments refer to, as far as their code says.

    Attributes:
        names: (container, key, what was there) of globals, attributes, and elements of lists and dictionaries.
        cells: (cell, what was in it) of variables of enclosing functions.
        containers: (list or dictionary, a copy of it, or its length where it is long).
        arrays: plain arrays.
        tables: (table, a copy) of pandas' objects, and of sparse matrices that are lists or dictionaries.
        generators: NumPy's generators of random numbers.
    """

    def __init__(self, function: Callable[..., Any], arguments: Iterable[Any] = ()) -> None:
        self.names: list[tuple[Any, Any, Any]] = []
        self.cells: list[tuple[CellType, Any]] = []
        self.containers: list[tuple[Any, Any]] = []
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.tables: list[tuple[Any, Any]] = []
        self.generators: list[Any] = []
        self._attributes = {"__call__"}  # what code asks of objects
        known = 0
        while known < len(self._attributes):
            known = len(self._attributes)
            for found in (self.names, self.cells, self.containers, self.arrays, self.tables, self.generators):
                found.clear()  # type: ignore[attr-defined]
            self._walk(function, arguments)

    def _walk(self, function: Callable[..., Any], arguments: Iterable[Any]) -> None:
        seen: set[int] = set()
        later = [(function, 0), *[(x, 1) for x in arguments]]
        for x, depth in later:  # which grows
            if id(x) not in seen and depth <= _DEEPEST:
                seen.add(id(x))
                later += [(part, depth + 1) for part in self._parts(x)]

    def _parts(self, x: Any) -> list[Any]:
        """What something refers to and a function may use."""
        kind = type(x)
        if kind is FunctionType:
            return self._of_function(x)
        if kind is MethodType:
            return [x.__func__, x.__self__]
        if kind is list or kind is dict:
            return self._of_container(x)
        if kind is tuple:
            return list(x[:_WIDEST])
        if kind is ndarray:
            self.arrays.append(x)
            return []
        if kind in _PLAIN or isinstance(x, (Tensor, ndarray)):
            return []
        if isinstance(x, type):
            return [] if _is_library(x.__module__) else self._of_names(vars(x), self._attributes)
        if "numpy.random" in sys.modules and isinstance(x, (np.random.Generator, np.random.RandomState)):
            self.generators.append(x.bit_generator if isinstance(x, np.random.Generator) else x._bit_generator)
            return []
        if hasattr(kind, "__pandas_priority__") or kind.__name__.startswith(("lil_", "dok_")):
            self.tables.append((x, x.copy()))
            return []
        if kind.__module__.startswith("scipy.sparse.") and type(inside := getattr(x, "__dict__", None)) is dict:
            return self._of_names(inside, inside)
        if _is_library(x.__name__ if kind is ModuleType else kind.__module__) and kind.__name__ not in _NAMESPACES:
            return [x.func, *x.args] if hasattr(x, "func") and hasattr(x, "args") else []  # a partial
        inside = getattr(x, "__dict__", None)
        parts = []
        if type(inside) is dict:
            parts = self._of_names(inside, self._attributes)
            self.containers.append((inside, inside.copy() if len(inside) <= _WIDEST else len(inside)))
        slots = _Slots(x)
        if slots.names:
            parts += self._of_names(slots, self._attributes)
        return [*parts, *[f for cls in kind.__mro__ for name, f in vars(cls).items() if name in self._attributes]]

    def keep_contents(self) -> None:
        """Remember what is in the plain arrays."""
        self._copies = [x.copy() if x.nbytes <= _COPIED else digest(x) for x in self.arrays]

    def _written(self) -> list[int]:
        """The positions of the arrays that have other contents now."""
        pairs = enumerate(zip(self.arrays, self._copies, strict=True))
        return [i for i, (x, before) in pairs if not _has_content(x, before)]

    # -- what became of it -------------------------------------------------------------------------------------------

    def changed(self) -> str:
        """The name of something that stands for something else now; "" if there is none."""
        for names, key, found in self.names:
            now = names.get(key, names) if type(names) is not list else names[key] if key < len(names) else names
            if now is not found:
                return str(key) if type(key) is str else "an element of a list or dictionary"
        for cell, content in self.cells:
            if cell.cell_contents is not content:
                return "a variable of the enclosing function"
        for x, before in self.containers:
            if len(x) != (before if type(before) is int else len(before)):
                return "a list or dictionary"
        for table, copy in self.tables:
            if not _same_table(table, copy):
                return "a table"
        return "a plain array, where none of its own values takes part" if self._written() else ""

    def restore(self) -> None:
        """Have names stand for what they stood for."""
        for i in self._written():
            if type(self._copies[i]) is not int and self.arrays[i].flags.writeable:
                self.arrays[i][...] = self._copies[i]
        for x, before in self.containers:
            if type(before) is int:
                if type(x) is list:
                    del x[before:]
            elif len(x) != len(before):
                x.clear()
                x.extend(before) if type(x) is list else x.update(before)
        for names, key, found in self.names:
            if type(names) is not MappingProxyType:
                names[key] = found
        for cell, content in self.cells:
            cell.cell_contents = content

    def _of_function(self, function: FunctionType) -> list[Any]:
        if hasattr(function, "takes_arrays"):  # an operation: what a row of the user's does, it does in every call
            return []
        parts: list[Any] = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        library = str(function.__globals__.get("__name__", "")).partition(".")[0] in _LIBRARIES
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            parts.append(content)
            if not library:
                self.cells.append((cell, content))
        if not library:
            used, attributes = _names(function.__code__)
            self._attributes |= attributes
            parts += self._of_names(function.__globals__, used)
        if hasattr(function, "__wrapped__"):
            parts.append(function.__wrapped__)
        return parts

    def _of_names(self, names: Any, asked: Iterable[str]) -> list[Any]:
        """What a namespace has under names that are asked for."""
        used = [name for name in asked if name in names]
        self.names += [(names, name, names[name]) for name in used if type(names[name]) is not ModuleType]
        return [names[name] for name in used]

    def _of_container(self, x: Any) -> list[Any]:
        if len(x) > _WIDEST:
            self.containers.append((x, len(x)))
            return []
        self.containers.append((x, x.copy()))
        keys = list(x) if type(x) is dict else list(range(len(x)))
        self.names += [(x, key, x[key]) for key in keys]
        return [x[key] for key in keys]


class _Slots:
    """The attributes of an object that are slots, as a dictionary has them."""

    def __init__(self, x: Any) -> None:
        self.of = x
        members = [vars(cls).items() for cls in type(x).__mro__]
        self.names = {name for each in members for name, member in each if type(member) is MemberDescriptorType}

    def __contains__(self, name: str) -> bool:
        return name in self.names and hasattr(self.of, name)

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self.of, name)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.of, name, value)

    def get(self, name: str, default: Any) -> Any:
        return getattr(self.of, name, default)


_NAMESPACES = frozenset({"SimpleNamespace", "Namespace"})
_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None), CodeType})


@functools.lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The global names that code looks up, and the attributes that it asks for; those of functions within it as well."""
    used: set[str] = set()
    attributes: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL"):
            used.add(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "STORE_ATTR"):
            attributes.add(instruction.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more = _names(inner)
            used |= more[0]
            attributes |= more[1]
    return frozenset(used), frozenset(attributes)


def _is_library(module: str) -> bool:
    return module.partition(".")[0] in _LIBRARIES


def _same_table(x: Any, copy: Any) -> bool:
    if hasattr(x, "equals"):
        return bool(x.equals(copy))
    return dict(x.items()) == dict(copy.items()) if hasattr(x, "items") else np.array_equal(x.data, copy.data)


class References:
    """What names stood for when a function was recorded: a recording holds while they stand for the same.

    Plain arrays have to have their content, too: code may have computed with them alone, unseen.
    """

    __slots__ = (
        "_arrays", "_cells", "_changes", "_containers", "_contents", "_keys", "_objects", "_probed", "_probes", "_tables",
    )  # fmt: skip

    def __init__(self, outside: Outside) -> None:
        self._containers = [container for container, _, _ in outside.names]
        self._keys = [key for _, key, _ in outside.names]
        self._objects = [found for _, _, found in outside.names]
        self._cells = [cell for cell, _ in outside.cells]
        self._contents = [content for _, content in outside.cells]
        self._arrays = outside.arrays
        self._tables = outside.tables
        self._changes: dict[int, int] = {}  # how often one had other content, and the recording was the same
        self._probes = [x if x.nbytes <= _SMALL else samples(x) for x in outside.arrays]
        self._probed = [probe.tobytes() for probe in self._probes]

    @property
    def arrays(self) -> list[np.ndarray[Any, Any]]:
        """The plain arrays that code may compute with, unseen."""
        return self._arrays

    def hold(self) -> bool:
        """Whether all names stand for what they stood for."""
        try:
            if self._keys and False in map(_is, map(_getitem, self._containers, self._keys), self._objects):
                return False
            if self._cells and False in map(_is, map(_content, self._cells), self._contents):
                return False
        except (LookupError, ValueError):  # one is gone
            return False
        if not all([_same_table(table, copy) for table, copy in self._tables]):
            return False
        return not self._probes or list(map(_bytes, self._probes)) == self._probed

    def adopt(self, new: References, met: set[int]) -> None:
        """Take over what names stand for now, where that led to the same recording.

        An array that a recording meets (``met``, by identity) and that was free to change again and again is not looked at
        any more: it is read where it lies.
        """
        self._containers, self._keys, self._objects = new._containers, new._keys, new._objects
        self._cells, self._contents, self._tables = new._cells, new._contents, new._tables
        for array, before in zip(new._arrays, new._probed, strict=True):
            if id(array) in met and self._changes.get(id(array), 0) < _FREE:
                known = next((b for a, b in zip(self._arrays, self._probed, strict=True) if a is array), before)
                self._changes[id(array)] = self._changes.get(id(array), 0) + (known != before)
        kept = [k for k, array in enumerate(new._arrays) if self._changes.get(id(array), 0) < _FREE]
        self._arrays = [new._arrays[k] for k in kept]
        self._probes = [new._probes[k] for k in kept]
        self._probed = [new._probed[k] for k in kept]


def _has_content(x: np.ndarray[Any, Any], before: Any) -> bool:
    """Whether an array is like its copy, or has its digest."""
    return bool(digest(x) == before if type(before) is int else x.tobytes() == before.tobytes())


class Generators:
    """The generators of random numbers that code may draw from unseen, and their states when it was looked at.

    Their numbers are plain, so they would be recorded as constants.
    """

    def __init__(self, outside: Outside) -> None:
        self._states: list[tuple[Any, Any]] = []
        self._python = random.getstate()
        if "numpy.random" in sys.modules:
            sources = [*outside.generators, np.random.get_bit_generator()]  # type: ignore[attr-defined]
            self._states = [(source, source.state) for source in sources]

    def changed(self) -> bool:
        """Whether one of them was drawn from since."""
        drawn = any(not _same(source.state, state) for source, state in self._states)
        return drawn or random.getstate() != self._python

    def rewind(self) -> None:
        random.setstate(self._python)
        for source, state in self._states:
            source.state = state


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, dict):
        return all(_same(x[key], y[key]) for key in x)
    return bool(np.array_equal(x, y)) if isinstance(x, ndarray) else bool(x == y)
