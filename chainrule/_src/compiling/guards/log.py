"""A log of the Python state that a function reads and changes during a trace.

``watch`` fills a ``StateLog`` while the function runs. Then ``StateLog.guards`` returns guards on the state that the function has read,
except objects that it made itself, which have no references from outside. ``StateLog.undo`` restores changed objects.
"""

from __future__ import annotations

import collections
import functools
import gc
import operator
import sys
from collections.abc import Callable
from types import CellType, ModuleType
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.arrays import dtypes
from chainrule._src.arrays.types import Params
from chainrule._src.compiling.guards.classes import ClassContent
from chainrule._src.compiling.guards.effect_tables import (
    C_DESCRIPTORS,
    CONTAINERS,
    FLAGS,
    has_fixed_attributes,
    is_constant_module,
    is_library,
    is_library_class,
    module_of_code,
)
from chainrule._src.compiling.guards.frames import Stack, clear_entries
from chainrule._src.compiling.guards.guards import (
    MISSING,
    Guard,
    GuardKind,
    array_state,
    attributes_of,
    bases_of,
    cell_content,
    class_attribute,
    elements_of,
)
from chainrule._src.compiling.guards.objects import CHAINRULE_TYPES, VALUES, attribute_or_missing, has_class, is_python
from chainrule._src.compiling.guards.undo import (
    ordered_items,
    put_array,
    put_attribute,
    put_cell,
    put_dict,
    put_item,
    put_list,
    put_set,
)
from chainrule._src.interpreters.recorder import Recorder
from chainrule._src.interpreters.trace_types import ByValue, Unrecordable, Var
from chainrule._src.messages.source_locations import Where, bracketed_code
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import owner

ndarray = np.ndarray
_REFUSALS = 64
_COPIED = 1 << 24  # maximum bytes of a plain array that is copied, to undo in-place writes
INSTEAD = "pass its result as an argument, or move the call out of the compiled function"
#: stands for the object in guards that are not final yet, since a reference would keep the object alive
_Of: Any = object()


class TraceRefused(BaseException):
    """Stops a trace before an operation that a replay cannot repeat. ``except Exception`` in the function does not catch it."""


class WatchedObject:
    """A container, object, cell, function or array whose state was read or changed.

    Attributes:
        guards: the reads, by kind and key.
        undo: functions that restore the object; they are called last first.
        what, where: a description of the first change and its source location, for messages.
    """

    __slots__ = ("guards", "target", "undo", "what", "where")

    def __init__(self, watched: Any) -> None:
        self.target = watched
        self.guards: dict[Any, Guard] = {}
        self.undo: list[Callable[[Any], None]] = []
        self.what = ""
        self.where: Where | None = None


class StateLog:
    """The Python state that a function has read and changed.

    Args:
        recorder: the recorder of array operations.

    Attributes:
        failed: whether the watch ended before the function.
        reason: why the function cannot be traced, or None. later: a later call may be traced; by_value: it may be traced with
            the floats among its arguments as constants.
        now: the stack of the current instruction.
        receivers: by id of the frame, the stack of each instruction in which C code receives values from Python functions.
        made: iterators, random number generators and classes that the function made, by id.
        given: the ids of the containers among its arguments. These are copies, so changes of them would be lost.
        unwatched: whether it called a library other than NumPy and chainrule, whose own calls are not watched.
        handled: the exception that the caller of the function handles.
        texts: whether C code makes texts of values that Python functions return.
        classes: the classes whose special methods in C are noted.
        caches: the entries of instructions that need not be reported again, by instruction: ``frames._watch_table``.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.reason: str | None = None
        self.later = self.by_value = self.unwatched = self.failed = False
        self._watched_objects: dict[int, WatchedObject] = {}
        self.made: dict[int, Any] = {}
        self._order: list[WatchedObject] = []  # changed objects, in order
        self.given: set[int] = set()
        self.now: Stack | None = None
        self._refusals = 0
        self._classes: dict[int, tuple[type, ClassContent]] = {}  # classes that the function depends on, by id
        self.receivers: dict[int, Stack] = {}
        self.handled: BaseException | None = None
        self.texts = False
        self.classes: set[type] = set()
        self.caches: list[list[Any]] = []

    def refuse(self, what: str, *, later: bool = False, by_value: bool = False) -> None:
        """Stop the trace by raising ``TraceRefused``: the function is about to do something that a replay cannot repeat.

        Calls from ``finally`` blocks raise again, so that no effect happens twice.
        """
        if self.reason is None:
            where = self._where()
            self.reason = f"{what}{bracketed_code(where)}"
            self.later, self.by_value = later, by_value
        self._refusals += 1
        if self._refusals <= _REFUSALS:  # a loop that catches BaseException would retry forever
            raise TraceRefused(self.reason)

    def check_type(self, x: object, same: Callable[[type], bool]) -> None:
        """Refuse if a property of a traced value's type differs from the type that the value has in plain code.

        The call is then traced with the numbers among its arguments as constants.
        """
        eager_type = self.recorder.eager_type(x._tensor._raw) if type(x) is Array else None
        if eager_type is not None and not same(eager_type):
            self.refuse(
                f"it asks for the type of a value that is a {eager_type.__name__} in plain code, and traced here: use isinstance()",
                by_value=True,
            )

    def check_holder(self, x: object, does: str) -> None:
        """Refuse an object array of traced values where its dtype matters: in plain code it is an array of numbers."""
        if (
            type(x) is ndarray
            and x.dtype.kind == "O"
            and self.recorder.plain
            and any([type(e) is Array for e in x.flat])
        ):
            self.refuse(f"it {does} np.array([...]) of its values: use np.stack([...])")

    def _where(self) -> Where | None:
        frame: Any = None if self.now is None else self.now.frame
        while frame is not None and is_constant_module(module_of_code(frame.f_code, frame.f_globals)):
            frame = frame.f_back  # in a library or the standard library: the user's line is further out
        where = None if frame is None else Where(frame.f_code, frame.f_lasti)
        return where if where else None

    def undo(self) -> None:
        """Restore all changed objects."""
        for watched in reversed(self._order):
            for put_back in reversed(watched.undo):
                put_back(watched.target)
        self._order.clear()
        for watched in self._watched_objects.values():
            if not watched.undo and has_class(watched.target, CONTAINERS):
                self._put_elements_back(watched)

    @staticmethod
    def _put_elements_back(watched: WatchedObject) -> None:
        """Restore a container whose elements were read and then changed by C code."""
        guard = watched.guards.get((GuardKind.ELEMENTS, None))
        now = elements_of(watched.target)
        if guard is None or (len(now) == len(guard.value) and all(map(operator.is_, now, guard.value))):
            return
        if has_class(watched.target, (list, collections.deque)):
            put_list(watched.target, list(guard.value))
        elif has_class(watched.target, dict):
            put_dict(watched.target, list(zip(guard.value[::2], guard.value[1::2], strict=True)))
        elif has_class(watched.target, set):
            put_set(watched.target, guard.value)

    def check(self) -> None:
        """Raise if the trace was refused, even if the function caught ``TraceRefused``."""
        if self.reason is None and self.failed:
            self.reason, self.later = "watching it failed in a deep recursion", False
        if self.reason is not None:
            refusal = (ByValue if self.by_value else Unrecordable)(self.reason)
            refusal.perhaps_later = self.later
            raise refusal

    def arrays(self) -> list[Any]:
        """Remove the objects that the function created, after its return, and return the arrays of the log."""
        self.made.clear()
        self.now = None
        for x in self.recorder.plain_arrays.values():
            self.guard_array(x)
        self.recorder.plain_arrays.clear()
        self.drop_unreferenced()
        return [watched.target for watched in self._watched_objects.values() if has_class(watched.target, ndarray)]

    def drop_own_views(self, own: set[int]) -> None:
        """Remove the arrays that only the trace refers to if the function read only their layout, which cannot change.

        Args:
            own: the ids of the arrays that only the trace refers to.
        """
        for key in own & self._watched_objects.keys():
            if all([guard.key is False for guard in self._watched_objects[key].guards.values()]):
                del self._watched_objects[key]

    def guards(self, constants: list[Var]) -> list[Guard]:
        """Return the guards of the trace, without objects that the function made itself.

        Args:
            constants: arrays that only the trace refers to.

        Raises:
            Unrecordable: the function changes objects that are referred to from outside.
        """
        self.check()
        own = {id(owner(var.array)) for var in constants}
        for key in [
            key
            for key, t in self._watched_objects.items()
            if has_class(t.target, ndarray) and id(owner(t.target)) in own
        ]:
            del self._watched_objects[key]
        # the default dtype of tensors made from Python floats
        self.guard(GuardKind.ITEM, vars(dtypes), "_default", dtypes.default_dtype())
        if any(watched.undo for watched in self._watched_objects.values()):
            gc.collect()  # objects made by the function may be in reference cycles: hooks refer to lists, tensors to hooks
            self.drop_unreferenced()
        watched_objects = self._watched_objects.values()
        for watched in watched_objects:
            if watched.undo:
                refusal = Unrecordable(
                    f"it changes {watched.what}, which is Python state{bracketed_code(watched.where)}: keep state between "
                    "calls in a tensor that is written in place (t.add_(1), w.copy_(...)), or pass it as an argument and return it"
                )
                refusal.perhaps_later = True
                raise refusal
        found = [
            Guard(kind, watched.target, key, value)
            for watched in watched_objects
            for kind, _, key, value in watched.guards.values()
        ]
        values = [x for g in found for x in (g.value if type(g.value) is tuple else (g.value,)) if has_class(x, VALUES)]
        found += [Guard(GuardKind.CLASS, x, None, type(x)) for x in {id(x): x for x in values}.values()]
        found += [Guard(GuardKind.VERSION, cls, content, content.version) for cls, content in self._classes.values()]
        found = [
            Guard(g.kind, g.target, g.key, array_state(g.target, g.key)) if g.kind == GuardKind.ARRAY else g
            for g in found
        ]
        for guard in found:
            if not _still_holds(guard):
                raise Unrecordable(
                    f"{_name_of_target(guard)} changes while it runs, and compile cannot see why: {INSTEAD}"
                )
        return found

    def drop_unreferenced(self) -> None:
        """Remove objects without references from outside: the function created them."""
        clear_entries(self.caches)
        while unreferenced := self._unreferenced():
            if self._order:
                self._order = [watched for watched in self._order if id(watched.target) not in unreferenced]
            for key in unreferenced:
                del self._watched_objects[key]

    def _unreferenced(self) -> set[int]:
        """Return the ids of the objects that only the log refers to. To the base of an array, the log's views of it may refer, too."""
        logged = [watched.target for watched in self._watched_objects.values() if _only_logged(watched)]
        views = [x for x in logged if has_class(x, ndarray) and x.base is not None]
        own_references = collections.Counter([id(x.base) for x in views])
        own_references.update(own_references.keys() & self._watched_objects.keys())
        kept = {id(x) for x in views if not _is_base_own(x, own_references)}
        return {id(x) for x in logged} - kept

    def watched_object(self, x: object) -> WatchedObject:
        found = self._watched_objects.get(id(x))
        if found is None:
            found = self._watched_objects[id(x)] = WatchedObject(x)
        return found

    def guard(self, kind: int, x: object, key: object, value: object, name: object = None) -> None:
        guards = self.watched_object(x).guards
        name = (kind, key) if name is None else name
        if name not in guards:
            guards[name] = Guard(kind, _Of, key, value)

    def guard_array(self, x: object, with_numbers: bool = False) -> bool:
        """Guard the layout of an array, and its numbers if asked; return whether the guard is new."""
        guards = self.watched_object(x).guards
        guard = guards.get(GuardKind.ARRAY)
        if guard is not None and guard.key >= with_numbers:
            return False
        guards[GuardKind.ARRAY] = Guard(GuardKind.ARRAY, _Of, with_numbers, None)
        return True

    def guard_type(self, x: object) -> list[ClassContent]:
        """Guard the class of an object, and the content of that class."""
        kind = type(x)
        if has_fixed_attributes(kind) or (has_class(x, CHAINRULE_TYPES) and is_library_class(kind)):
            return []
        self.guard(GuardKind.CLASS, x, None, kind)
        return self.guard_class(kind)

    def guard_class(self, cls: type) -> list[ClassContent]:
        """Guard the content of a class, or of the bases of a class that the function made itself; return these contents."""
        if has_fixed_attributes(cls):
            return []
        if id(cls) in self.made:
            return [content for base in bases_of(cls) for content in self.guard_class(base)]
        entry = self._classes.get(id(cls))
        if entry is None:
            entry = self._classes[id(cls)] = cls, ClassContent(cls)
            self.guard_type(cls)
        return [entry[1]]

    def note_made(self, x: Any) -> None:
        """Note that the function made an iterator, a random number generator or a class."""
        self.made[id(x)] = x
        _, entry = self._classes.pop(id(x), (x, None))
        if entry is not None:  # attributes that were read while the class was made are those of its bases
            for content in self.guard_class(x):
                content.add(entry)

    def note_change(self, x: object, what: str, put_back: Callable[[Any], None]) -> None:
        """Note a change of an object that is about to happen, and the function that undoes it."""
        watched = self.watched_object(x)
        if not watched.undo:
            watched.what, watched.where = what, self._where()
            self._order.append(watched)
        watched.undo.append(put_back)

    def note_container_change(self, x: Any) -> None:
        """Note that elements of a container are about to change; refuse if the change cannot be undone."""
        self.guard_type(x)
        self.check_holder(x, "writes into")
        self.check_type(x, lambda eager_type: hasattr(eager_type, "__setitem__"))
        if id(x) in self.given:
            self.refuse(f"it changes a {type(x).__name__} among its arguments: return the new elements")
        if (
            id(x) in self._watched_objects
            and self._watched_objects[id(x)].undo
            and has_class(x, (ndarray, *CONTAINERS))
        ):
            return
        if type(x) is ndarray:
            if x.nbytes > _COPIED:
                self.refuse("it writes a large NumPy array in place, which a replay cannot repeat: use a tensor")
            what = "a plain array, without its traced values"
            self.note_change(x, what, functools.partial(put_array, values=x.copy()))
        elif has_class(x, (list, collections.deque)):
            self.note_change(x, "a list or dictionary", functools.partial(put_list, values=list(elements_of(x))))
        elif has_class(x, dict):
            self.note_change(x, "a list or dictionary", functools.partial(put_dict, values=ordered_items(x)))
        elif has_class(x, set):
            self.note_change(x, "a set", functools.partial(put_set, values=elements_of(x)))
        elif not has_class(x, CHAINRULE_TYPES) and not is_python(x, "__setitem__"):
            self.refuse(f"it writes into a {type(x).__name__}, which a replay cannot repeat")

    def note_attribute_change(self, x: object, name: str) -> None:
        """Note that an attribute is about to be set or deleted, other than by Python code of the class."""
        kind = type(x)
        self.guard_type(x)
        if has_class(x, ModuleType):
            self.note_change(vars(x), name, functools.partial(put_item, key=name, value=vars(x).get(name, MISSING)))
        elif has_class(x, type):
            by_c = has_class(vars(type).get(name), C_DESCRIPTORS)  # __bases__, __name__
            now = attribute_or_missing(x, name) if by_c else x.__dict__.get(name, MISSING)
            self.note_change(x, name, functools.partial(put_attribute, name=name, value=now))
        elif has_class(x, Tensor) and not hasattr(type(class_attribute(kind, name)), "__set__"):
            self.refuse(f"it sets a new attribute, {name}, on a tensor, which a replay cannot repeat")
        elif not has_class(x, CHAINRULE_TYPES) and not (
            kind.__module__.partition(".")[0] == "chainrule" and is_library(kind.__module__)
        ):
            found = class_attribute(kind, name)
            self.guard_type(found)
            if has_class(x, FLAGS):
                self.refuse("it sets a flag of an array, which a replay cannot repeat")
            if has_class(x, ndarray) and name in ("real", "imag", "flat"):
                self.note_container_change(x)
                return
            inside = attributes_of(x)
            if has_class(x, ndarray) and class_attribute(kind, "__setattr__") is not object.__setattr__:
                self.refuse(f"it writes into a {kind.__name__}, which a replay cannot repeat")
            by_c = type(inside) is not dict or hasattr(type(found), "__set__")
            now = attribute_or_missing(x, name) if by_c else inside.get(name, MISSING)
            self.note_change(x, name, functools.partial(put_attribute, name=name, value=now))

    def note_name_change(self, names: Params, name: str) -> None:
        self.note_change(names, name, functools.partial(put_item, key=name, value=names.get(name, MISSING)))

    def note_cell_change(self, cell: CellType) -> None:
        self.note_change(
            cell, "a variable of the enclosing function", functools.partial(put_cell, value=cell_content(cell))
        )


def _references(holder: list[Any]) -> int:
    """Return the number of references to the only element of a list, without the list's."""
    x = holder.pop()
    count = sys.getrefcount(x)
    holder.append(x)
    return count - _OWN


_OWN = 0
_OWN = _references([object()])  # the references in ``_references`` itself, which depend on the version of Python


def _only_logged(watched: WatchedObject) -> bool:
    """Return whether only the log refers to an object."""
    holder = [watched.target]
    watched.target = None
    count = _references(holder)
    (watched.target,) = holder
    return count == 0


def _is_base_own(view: ndarray, own_references: collections.Counter[int]) -> bool:
    """Return whether only the log and its views refer to the base of a view."""
    base = [view.base]
    return type(base[0]) is ndarray and _references(base) <= own_references[id(base[0])]


def _still_holds(guard: Guard) -> bool:
    try:
        return guard.holds()
    except Exception:
        return False


def _name_of_target(guard: Guard) -> str:
    """Return the name of the object that a guard checks."""
    if has_class(guard.target, type):
        return f"the class {guard.target.__name__}"
    name = guard.key if type(guard.key) is str else ""
    return name or f"a {type(guard.target).__name__} that it reads"
