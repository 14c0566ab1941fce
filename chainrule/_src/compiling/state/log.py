"""What was read and changed of Python's objects, until it is known which of them the function made itself."""

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
from chainrule._src.compiling.state.classes import ClassContent
from chainrule._src.compiling.state.frames import Stack
from chainrule._src.compiling.state.guards import (
    MISSING,
    Guard,
    GuardKind,
    array_state,
    attributes_of,
    bases_of,
    cell_content,
    elements,
    lookup,
)
from chainrule._src.compiling.state.known import (
    BY_C,
    CONTAINERS,
    FLAGS,
    is_constant_module,
    is_fixed,
    is_library,
    is_library_class,
    module_of_code,
)
from chainrule._src.compiling.state.objects import OURS, VALUES, attribute_or_missing, is_python, isa
from chainrule._src.compiling.state.undo import (
    items,
    put_array,
    put_attribute,
    put_cell,
    put_dict,
    put_item,
    put_list,
    put_set,
)
from chainrule._src.interpreters.recorded import ByValue, Unrecordable, Var
from chainrule._src.interpreters.recorder import Recorder
from chainrule._src.messages.places import Where
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import owner

ndarray = np.ndarray
_REFUSALS = 64
_COPIED = 1 << 24  # bytes up to which an array that plain code writes is kept, to be put back
INSTEAD = "pass what it gives as an argument, or leave it out of the compiled function"
#: stands for the thing itself in guards that are not final yet: a reference would keep it
_Of: Any = object()


class Refused(BaseException):
    """Stops a recording, right before what it cannot repeat; no ``except Exception`` of the function's catches it."""


class Thing:
    """A container, object, cell, function or array whose state was read or changed.

    Attributes:
        guards: what was read of it, by kind and key.
        undo: what puts back, last first, what was there before the function changed it.
        what, where: what was changed, for a message.
    """

    __slots__ = ("guards", "thing", "undo", "what", "where")

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        self.guards: dict[Any, Guard] = {}
        self.undo: list[Callable[[Any], None]] = []
        self.what = ""
        self.where: Where | None = None


class Log:
    """What a function read and changed.

    Args:
        recorder: of the arrays.

    Attributes:
        reason: why the function is not recorded; None: nothing spoke against it. ``later``: it may be in a later call;
            ``by_value``: it may be with the numbers among its arguments as they are.
        now: the stack of the instruction that runs.
        takers: by the id of its frame, the stack of each instruction in which C takes what Python functions return.
        made: iterators, generators of random numbers and classes that the function made.
        given: the containers among its arguments, by identity: copies, so that what is put into them is lost.
        unwatched: whether it called a library, other than NumPy and ours, whose own calls are not seen.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.reason: str | None = None
        self.later = self.by_value = self.unwatched = False
        self._things: dict[int, Thing] = {}
        self.made: dict[int, Any] = {}
        self._order: list[Thing] = []  # that it changed
        self.given: set[int] = set()
        self.now: Stack | None = None
        self._refusals = 0
        self._classes: dict[int, tuple[type, ClassContent]] = {}  # that it depends on, by identity
        self.receivers: dict[int, Stack] = {}
        self.handled: BaseException | None = None  # where the function is called
        self.texts = False  # whether C code makes texts of what Python functions return
        self.classes: set[type] = set()  # those whose special methods in C are noted

    def refuse(self, what: str, *, later: bool = False, by_value: bool = False) -> None:
        """Stop: the function does, or is about to do, what no recording repeats.

        Again, if it does more of it while it ends (``finally``): nothing is done twice.
        """
        if self.reason is None:
            where = self._where()
            self.reason = f"{what} ({where.quoted})" if where else what
            self.later, self.by_value = later, by_value
        self._refusals += 1
        if self._refusals <= _REFUSALS:  # else it tries until it is let
            raise Refused(self.reason)

    def check_type(self, x: object, same: Callable[[type], bool]) -> None:
        """Stop if something about a value's type is not so for that of what it stands for in plain code.

        A number among the arguments is then recorded as itself.
        """
        stands_for = self.recorder.stands_for(x._tensor._raw) if type(x) is Array else None
        if stands_for is not None and not same(stands_for):
            self.refuse(
                f"it asks for the type of what is a {stands_for.__name__}, and stands for one here: use isinstance()",
                by_value=True,
            )

    def check_holder(self, x: object, does: str) -> None:
        """Stop at an array of objects that holds what numbers are in plain code, where its dtype matters."""
        if (
            type(x) is ndarray
            and x.dtype.kind == "O"
            and self.recorder.plain
            and any([type(e) is Array for e in x.flat])
        ):
            self.refuse(f"it {does} np.array([...]) of its values: np.stack([...]) has them in one array")

    def _where(self) -> Where | None:
        frame: Any = None if self.now is None else self.now.frame
        while frame is not None and is_constant_module(module_of_code(frame.f_code, frame.f_globals)):
            frame = frame.f_back  # in a module of ours, or Python's: the user's line is further out
        where = None if frame is None else Where(frame.f_code, frame.f_lasti)
        return where if where else None

    def undo(self) -> None:
        """Have everything as it was before."""
        for thing in reversed(self._order):
            for put_back in reversed(thing.undo):
                put_back(thing.thing)
        self._order.clear()
        for thing in self._things.values():
            if not thing.undo and isa(thing.thing, CONTAINERS):
                self._put_elements_back(thing)

    @staticmethod
    def _put_elements_back(thing: Thing) -> None:
        """Put back what C code changed in a container that was read as a whole."""
        guard = thing.guards.get((GuardKind.ELEMENTS, None))
        now = elements(thing.thing)
        if guard is None or (len(now) == len(guard.value) and all(map(operator.is_, now, guard.value))):
            return
        if isa(thing.thing, (list, collections.deque)):
            put_list(thing.thing, list(guard.value))
        elif isa(thing.thing, dict):
            put_dict(thing.thing, list(zip(guard.value[::2], guard.value[1::2], strict=True)))
        elif isa(thing.thing, set):
            put_set(thing.thing, guard.value)

    def check(self) -> None:
        """Raise if the function refused, though something caught that."""
        if self.reason is not None:
            refusal = (ByValue if self.by_value else Unrecordable)(self.reason)
            refusal.perhaps_later = self.later
            raise refusal

    def arrays(self) -> list[Any]:
        """The arrays that it refers to, once the function has returned, and what else it made itself is forgotten."""
        self.made.clear()
        self.now = None
        for x in self.recorder.met.values():
            self.guard_array(x)
        self.recorder.met.clear()
        self.drop_unreferenced()
        return [thing.thing for thing in self._things.values() if isa(thing.thing, ndarray)]

    def forget_views(self, own: set[int]) -> None:
        """Forget arrays whose layout alone matters and that only the recording refers to (by ids): it cannot change."""
        for key in own & self._things.keys():
            if all([guard.key is False for guard in self._things[key].guards.values()]):
                del self._things[key]

    def guards(self, constants: list[Var]) -> list[Guard]:
        """What is to be looked at again: nothing that the function made itself.

        Args:
            constants: arrays that nobody but the recording has.

        Raises:
            Unrecordable: it changes what others have.
        """
        self.check()
        own = {id(owner(var.array)) for var in constants}
        for key in [key for key, t in self._things.items() if isa(t.thing, ndarray) and id(owner(t.thing)) in own]:
            del self._things[key]
        # The dtype that tensors of Python's floats get.
        self.guard(GuardKind.ITEM, vars(dtypes), "_default", dtypes.default_dtype())
        if any(thing.undo for thing in self._things.values()):
            gc.collect()  # what the function made may refer to itself: a hook to its list, and a tensor to its hook
            self.drop_unreferenced()
        things = self._things.values()
        for thing in things:
            if thing.undo:
                here = f" ({thing.where.quoted})" if thing.where else ""
                refusal = Unrecordable(
                    f"it changes {thing.what}, which is Python's{here}: what is to last from call to call can be a tensor that "
                    "is written in place (t.add_(1), w.copy_(...)), or an argument and a result"
                )
                refusal.perhaps_later = True
                raise refusal
        found = [guard._replace(thing=thing.thing) for thing in things for guard in thing.guards.values()]
        values = [x for g in found for x in (g.value if type(g.value) is tuple else (g.value,)) if isa(x, VALUES)]
        found += [Guard(GuardKind.CLASS, x, None, type(x)) for x in {id(x): x for x in values}.values()]
        found += [Guard(GuardKind.VERSION, cls, content, content.version) for cls, content in self._classes.values()]
        found = [g._replace(value=array_state(g.thing, g.key)) if g.kind == GuardKind.ARRAY else g for g in found]
        for guard in found:
            if not _still_holds(guard):
                raise Unrecordable(f"{_named(guard)} changes while it runs, and nothing shows why: {INSTEAD}")
        return found

    def drop_unreferenced(self) -> None:
        """Forget what nobody else has: the function made it."""
        things = self._things
        settled = False
        while not settled:
            settled = True
            known: collections.Counter[int] = collections.Counter()  # references to arrays: ours, and our own views'
            for thing in things.values():
                if isa(thing.thing, ndarray):
                    known.update([id(thing.thing), id(thing.thing.base)] if _is_ours(thing) else [id(thing.thing)])
            for key in list(things):
                if _is_alone(things[key], known):
                    self._order = [thing for thing in self._order if thing is not things[key]]
                    del things[key]
                    settled = False

    def thing_of(self, x: object) -> Thing:
        found = self._things.get(id(x))
        if found is None:
            found = self._things[id(x)] = Thing(x)
        return found

    def guard(self, kind: int, x: object, key: object, value: object, name: object = None) -> None:
        guards = self.thing_of(x).guards
        name = (kind, key) if name is None else name
        if name not in guards:
            guards[name] = Guard(kind, _Of, key, value)

    def guard_array(self, x: object, with_numbers: bool = False) -> bool:
        """Guard the layout of an array, or its numbers, too; return whether the guard is new."""
        guards = self.thing_of(x).guards
        known = guards.get(GuardKind.ARRAY)
        if known is not None and known.key >= with_numbers:
            return False
        guards[GuardKind.ARRAY] = Guard(GuardKind.ARRAY, _Of, with_numbers, None)
        return True

    def guard_type(self, x: object) -> list[ClassContent]:
        """The function depends on the class of an object, and on what that class defines."""
        kind = type(x)
        if is_fixed(kind) or (isa(x, OURS) and is_library_class(kind)):
            return []
        self.guard(GuardKind.CLASS, x, None, kind)
        return self.guard_class(kind)

    def guard_class(self, cls: type) -> list[ClassContent]:
        """The function depends on what a class defines: on its content, or on that of the bases of a class that it made itself."""
        if is_fixed(cls):
            return []
        if id(cls) in self.made:
            return [content for base in bases_of(cls) for content in self.guard_class(base)]
        known = self._classes.get(id(cls))
        if known is None:
            known = self._classes[id(cls)] = cls, ClassContent(cls)
            self.guard_type(cls)
        return [known[1]]

    def note_made(self, x: Any) -> None:
        """The function has made an iterator, a generator of random numbers or a class, which is its own."""
        self.made[id(x)] = x
        _, known = self._classes.pop(id(x), (x, None))
        if known is not None:  # what was read of the class while it was made is that of its bases
            for content in self.guard_class(x):
                content.add(known)

    def note_change(self, x: object, what: str, put_back: Callable[[Any], None]) -> None:
        """Something is about to be changed."""
        thing = self.thing_of(x)
        if not thing.undo:
            thing.what, thing.where = what, self._where()
            self._order.append(thing)
        thing.undo.append(put_back)

    def note_container_change(self, x: Any) -> None:
        """Elements are about to be put into something, or taken out."""
        self.guard_type(x)
        self.check_holder(x, "writes into")
        self.check_type(x, lambda stands_for: hasattr(stands_for, "__setitem__"))
        if id(x) in self.given:
            self.refuse(f"it changes a {type(x).__name__} among its arguments: return what is new")
        if id(x) in self._things and self._things[id(x)].undo and isa(x, (ndarray, *CONTAINERS)):
            return
        if type(x) is ndarray:
            if x.nbytes > _COPIED:
                self.refuse("it writes a large array of NumPy's in place, which no recording repeats: use a tensor")
            what = "a plain array, where none of its own values takes part"
            self.note_change(x, what, functools.partial(put_array, values=x.copy()))
        elif isa(x, (list, collections.deque)):
            self.note_change(x, "a list or dictionary", functools.partial(put_list, values=list(elements(x))))
        elif isa(x, dict):
            self.note_change(x, "a list or dictionary", functools.partial(put_dict, values=items(x)))
        elif isa(x, set):
            self.note_change(x, "a set", functools.partial(put_set, values=elements(x)))
        elif not isa(x, OURS) and not is_python(x, "__setitem__"):
            self.refuse(f"it writes into a {type(x).__name__}, which no recording repeats")

    def note_attribute_change(self, x: object, name: str) -> None:
        """An attribute is about to be set or deleted, by no function of its class."""
        kind = type(x)
        self.guard_type(x)
        if isa(x, ModuleType):
            self.note_change(vars(x), name, functools.partial(put_item, key=name, value=vars(x).get(name, MISSING)))
        elif isa(x, type):
            by_c = isa(vars(type).get(name), BY_C)  # __bases__, __name__
            now = attribute_or_missing(x, name) if by_c else x.__dict__.get(name, MISSING)
            self.note_change(x, name, functools.partial(put_attribute, name=name, value=now))
        elif isa(x, Tensor) and not hasattr(type(lookup(kind, name)), "__set__"):
            self.refuse(f"it sets an attribute of its own, {name}, on a tensor, which no recording repeats")
        elif not isa(x, OURS) and not (
            kind.__module__.partition(".")[0] == "chainrule" and is_library(kind.__module__)
        ):
            found = lookup(kind, name)
            self.guard_type(found)
            if isa(x, FLAGS):
                self.refuse("it sets a flag of an array, which no recording repeats")
            if isa(x, ndarray) and name in ("real", "imag", "flat"):
                self.note_container_change(x)
                return
            inside = attributes_of(x)
            if isa(x, ndarray) and lookup(kind, "__setattr__") is not object.__setattr__:
                self.refuse(f"it writes into a {kind.__name__}, which no recording repeats")
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
    """How many references there are to what a list holds, apart from the list's."""
    x = holder.pop()
    count = sys.getrefcount(x)
    holder.append(x)
    return count - _OWN


_OWN = 0
_OWN = _references([object()])  # those of ``_references`` itself, which differ between versions of Python


def _is_ours(thing: Thing) -> bool:
    """Whether nothing refers to an object but its record."""
    holder = [thing.thing]
    thing.thing = None
    count = _references(holder)
    (thing.thing,) = holder
    return count == 0


def _is_alone(thing: Thing, known: collections.Counter[int]) -> bool:
    """Whether nobody has something but its record, and an array's memory but its record and those of its views."""
    alone = _is_ours(thing)
    if alone and isa(thing.thing, ndarray) and thing.thing.base is not None:
        base = [thing.thing.base]
        alone = type(base[0]) is ndarray and _references(base) <= known[id(base[0])]
    return alone


def _still_holds(guard: Guard) -> bool:
    try:
        return guard.holds()
    except Exception:
        return False


def _named(guard: Guard) -> str:
    """What a guard looks at, in words."""
    if isa(guard.thing, type):
        return f"the class {guard.thing.__name__}"
    name = guard.key if type(guard.key) is str else ""
    return name or f"a {type(guard.thing).__name__} that it reads"
