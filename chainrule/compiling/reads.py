"""What a function reads of Python's state while it is recorded, seen instruction by instruction.

Each read is one of three. It can be *looked at again*: it becomes a :class:`~chainrule.compiling.guards.Guard`. It *cannot
change*: numbers, code, what a library defines. Or it is *not known to be either*, and then the function is not recorded.

What the function itself makes, and nobody else has when it ends, is looked at by nobody: it is made again in each call. That is
told by counting references once the function has returned.

The Python of NumPy, SciPy and of ours is not looked into. What it is handed is looked at as a whole instead.
"""

from __future__ import annotations

import builtins
import collections
import contextvars
import functools
import operator
import random
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CellType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from chainrule.api.array import Array
from chainrule.autograd.context import FunctionCtx
from chainrule.compiling import frames
from chainrule.compiling.frames import Instruction, Stack
from chainrule.compiling.guards import IMMUTABLE, MISSING, Guard, Kind, content, elements, function_parts, lookup
from chainrule.compiling.known import (
    BUFFERS,
    CONSTANT,
    CONTAINERS,
    ITERATOR_MAKERS,
    MAKERS,
    ORDERED_VIEWS,
    READING,
    VIEWS,
    WRITERS,
    changes,
    is_constant_module,
    is_library,
    is_library_class,
    is_lock,
    is_pure,
)
from chainrule.core.node import Node
from chainrule.core.protocol import ArrayLike
from chainrule.core.tensor import Tensor
from chainrule.errors.places import Where
from chainrule.interpreters.traced import Recorder, Unrecordable, Whole
from chainrule.types import dtypes

ndarray = np.ndarray
_COPIED = 1 << 24  # bytes up to which an array that plain code writes is kept, to be put back
_PARTS = 4096  # of an object that a library is handed, beyond which it is not looked at
_ELEMENTS = 64  # of one array that are looked at one by one; beyond, all of it is
_VALUES = (Tensor, Array, ArrayLike)
_OURS = (*_VALUES, Node, FunctionCtx)
_ASIDE = frozenset({("warnings", "_showwarnmsg"), ("importlib._bootstrap", "_find_and_load"), ("_frozen_importlib", "_find_and_load")})
#: what a plan calls again in each call
_STEPS = frozenset({Whole.__call__.__code__})
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_HEAP_TYPE = 1 << 9  # of classes that are made by Python
_STATELESS = frozenset({"_ArrayFunctionDispatcher", "cython_function_or_method", "fused_cython_function"})  # functions of NumPy's
_IN_PLACE = 13  # the first number of BINARY_OP that is an in-place operator


def _isa(x: Any, kinds: Any) -> bool:
    """Whether an object's class is one of these: ``isinstance`` may run code of the object's."""
    return issubclass(type(x), kinds)


def _inside(x: Any) -> Any:
    """The attributes of an object itself, without running code of its class; None if it has none."""
    try:
        return object.__getattribute__(x, "__dict__")
    except AttributeError:
        return None


class Refused(BaseException):
    """Stops a recording, right before what it cannot repeat; no ``except Exception`` of the function's catches it."""


class _Thing:
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


class Reads:
    """Sees what a function does with Python's objects, from its call on until it ends.

    Args:
        recorder: of the arrays.

    Attributes:
        reason: why the function is not recorded; None: nothing spoke against it. ``later``: it may be in a later call.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.reason: str | None = None
        self.later = False
        self._things: dict[int, _Thing] = {}
        self._made: dict[int, Any] = {}  # iterators and generators of random numbers that the function made
        self._order: list[_Thing] = []  # that it changed
        self._given: set[int] = set()  # the containers among its arguments: copies, so that what is put into them is lost
        self._now: Stack | None = None
        self._aside: FrameType | None = None  # of Python's, that shows a warning, loads a module, or is a step

    def call(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function, and see what it does."""
        self._given = {id(x) for x in _containers((*args, kwargs))}
        return frames.watched(functools.partial(function, *args, **kwargs), self._enter, self._look, self._leave)

    # -- refusing, undoing -------------------------------------------------------------------------------------------

    def refuse(self, what: str) -> None:
        """Stop: the function does, or is about to do, what no recording repeats."""
        where = self._where()
        self.reason = f"{what} ({where.quoted})" if where else what
        raise Refused(self.reason)

    def _where(self) -> Where | None:
        frame: Any = None if self._now is None else self._now.frame
        while frame is not None and is_constant_module(frame.f_globals.get("__name__")):
            frame = frame.f_back  # in a module of ours, or Python's: the user's line is further out
        where = None if frame is None else Where(frame.f_code, frame.f_lasti)
        return where if where else None

    def undo(self) -> None:
        """Have everything as it was before."""
        for thing in reversed(self._order):
            for put_back in reversed(thing.undo):
                put_back(thing.thing)
        self._order.clear()

    def check(self) -> None:
        """Raise if the function refused, though something caught that."""
        if self.reason is not None:
            refusal = Unrecordable(self.reason)
            refusal.perhaps_later = self.later
            raise refusal

    def guards(self) -> list[Guard]:
        """What is to be looked at again, once all that the function made itself is gone.

        Raises:
            Unrecordable: it changes what others have.
        """
        self.check()
        self.item(vars(dtypes), "_default")  # which tensors of Python's floats get
        self._made.clear()
        self._now = None
        self._drop_what_is_alone()
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
        found = [g._replace(value=content(g.thing)) if g.kind == Kind.CONTENT else g for g in found]
        for guard in found:
            if not _still_holds(guard):
                raise Unrecordable(f"{_named(guard)} changes while it runs, and nothing shows why: {_INSTEAD}")
        return found

    def _drop_what_is_alone(self) -> None:
        """Forget what nobody else has: the function made it."""
        things = self._things
        settled = False
        while not settled:
            settled = True
            known: collections.Counter[int] = collections.Counter()  # references to arrays that are ours, or our arrays'
            for thing in things.values():
                if _isa(thing.thing, ndarray):
                    known.update([id(thing.thing), id(thing.thing.base)])
            for key in list(things):
                if _is_alone(things[key], known):
                    self._order = [thing for thing in self._order if thing is not things[key]]
                    del things[key]
                    settled = False

    # -- what is read ------------------------------------------------------------------------------------------------

    def _thing(self, x: Any) -> _Thing:
        found = self._things.get(id(x))
        if found is None:
            found = self._things[id(x)] = _Thing(x)
        return found

    def _guard(self, kind: int, x: Any, key: Any, value: Any, name: Any = None) -> None:
        guards = self._thing(x).guards
        name = (kind, key) if name is None else name
        if name not in guards:
            guards[name] = Guard(kind, _Of, key, value)

    def item(self, x: dict[Any, Any], key: Any) -> Any:
        """What a dictionary has under a key."""
        found = dict.get(x, key, MISSING)
        self._guard(Kind.ITEM, x, key, found, (Kind.ITEM, type(key), key))
        return found

    def whole(self, x: Any) -> None:
        """All elements of a container."""
        if type(x) is not tuple:
            self._guard(Kind.ELEMENTS, x, None, elements(x))

    def length(self, x: Any) -> None:
        if _isa(x, CONTAINERS) and not _isa(x, (tuple, frozenset)):
            self._guard(Kind.LENGTH, x, None, len(x))

    def of_class(self, cls: type, name: str) -> Any:
        """What a class, or one of its bases, has under a name."""
        found = lookup(cls, name)
        if not is_library_class(cls):
            self._guard(Kind.TYPE, cls, name, found)
        return found

    def looked_up(self, x: Any, key: Callable[[Any], Any], name: str) -> None:
        """What a function without effects says of an object."""
        self._guard(Kind.CHECK, x, key, key(x), (Kind.CHECK, name))

    def attribute(self, x: Any, name: str) -> None:
        """An attribute that code asks for."""
        kind = type(x)
        if _isa(x, ModuleType):
            found = vars(x).get(name, MISSING)
            constant = is_constant_module(x.__name__) and (found is MISSING or _isa(found, CONSTANT) or callable(found))
            if not constant:
                self.item(vars(x), name)
        elif _isa(x, type):
            self._of_type(x, name)
        elif kind is MethodType:
            self.attribute(x.__func__, name)
        elif _isa(x, super):
            self._of_super(x, name)
        elif _isa(x, _VALUES):
            inside = _inside(x)
            if type(inside) is dict and name in inside:
                self._guard(Kind.INSTANCE, x, name, inside[name])
        elif _isa(x, ndarray) and not (inside := _inside(x)):
            if name in ("shape", "size", "ndim", "dtype", "strides", "flags", "nbytes", "itemsize"):
                self.looked_up(x, _layout, "layout")
        elif not _isa(x, _OURS) and not (_isa(x, CONSTANT) and kind.__dictoffset__ == 0):
            self._of_instance(x, kind, name)

    def _of_type(self, x: type, name: str) -> None:
        meta = type(x)
        if meta is not type and not is_library_class(meta):
            self.of_class(meta, name)
        self.of_class(x, name)

    def _of_super(self, x: Any, name: str) -> None:
        mro = list(x.__self_class__.__mro__)
        for cls in mro[mro.index(x.__thisclass__) + 1 :]:
            if name in cls.__dict__:
                self.of_class(cls, name)
                return
            if not is_library_class(cls):
                self.looked_up(cls, functools.partial(_has_itself, name), name)

    def _of_instance(self, x: Any, kind: type, name: str) -> None:
        if kind.__module__.partition(".")[0] == "chainrule" and is_library(kind.__module__):
            return  # contexts of backward functions, handles
        found = self.of_class(kind, name)
        if not is_library_class(kind):
            self._guard(Kind.CLASS, x, None, kind)
        if is_library_class(kind) and _isa(found, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return
        if lookup(kind, "__getattribute__") is not object.__getattribute__ and not _isa(
            x, (FunctionType, BuiltinFunctionType, functools.partial, *CONTAINERS)
        ):
            if _is_python(x, "__getattribute__"):
                return  # whose instructions are looked at
            self._by_asking(x, name)
            return
        if _isa(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            if name != "__dict__":
                self._by_asking(x, name)
        elif found is MISSING or not hasattr(type(found), "__set__"):
            inside = _inside(x)
            if type(inside) is dict:
                value = inside.get(name, MISSING)
                self._guard(Kind.INSTANCE, x, name, value)
                if value is MISSING and found is MISSING:
                    self.of_class(kind, "__getattr__")
        elif not _isa(found, property) and is_library_class(type(found)) and not _is_python(found, "__get__"):
            self._by_asking(x, name)

    def _by_asking(self, x: Any, name: str) -> None:
        """An attribute that C computes: it is asked for again, if that has a meaning."""
        self._guard(Kind.CHECK, x, functools.partial(_attribute_or_missing, name=name), _attribute_or_missing(x, name), name)

    # -- what is handed on, computed with, changed ---------------------------------------------------------------------

    def operand(self, x: Any, arrays: list[Any], seen: set[int] | None = None) -> None:
        """Something that an operator or function of Python's computes with: containers as a whole, plain arrays noted."""
        if _isa(x, ndarray) and type(x) is ndarray:
            arrays.append(x)
        elif _isa(x, CONTAINERS):
            self._deep(x, arrays, self.operand, seen)
        elif _isa(x, (*VIEWS, *ORDERED_VIEWS)):
            self._deep(x.mapping, arrays, self.operand, seen)
        elif _isa(x, BUFFERS):
            self.looked_up(x, bytes, "whole")
        elif type(x).__module__ != "builtins" and not _isa(x, (*CONSTANT, *_OURS)) and is_library_class(type(x)):
            self.handed(x, arrays, seen)

    def handed(self, x: Any, arrays: list[Any], seen: set[int] | None = None) -> None:
        """Something that code is given which is not looked into."""
        if type(x) is ndarray:
            arrays.append(x)
        elif _isa(x, BUFFERS):
            self.looked_up(x, bytes, "whole")
        elif _isa(x, functools.partial):
            for part in (*x.args, *x.keywords.values()):
                self.handed(part, arrays, seen)
        elif _isa(x, CONTAINERS):
            self._deep(x, arrays, self.handed, seen)
        elif _isa(x, (*VIEWS, *ORDERED_VIEWS)):
            self._deep(x.mapping, arrays, self.handed, seen)
        elif _isa(x, (*CONSTANT, *_OURS, FunctionType, MethodType)) or _is_library_context(x):
            return
        elif _is_iterator(x):
            self.iterator(x)
        elif not _is_called(x):
            try:
                self._guard(Kind.CHECK, x, snapshot, snapshot(x), "whole")
            except Unknown as unknown:
                self.refuse(f"it uses a {unknown}, whose state is not known: pass what it needs as arrays and numbers")

    def _deep(self, x: Any, arrays: list[Any], each: Callable[..., None], seen: set[int] | None) -> None:
        seen = set() if seen is None else seen
        if id(x) not in seen:
            seen.add(id(x))
            self.whole(x)
            for part in elements(x):
                if type(part) not in IMMUTABLE:
                    each(part, arrays, seen)

    def iterator(self, x: Any) -> None:
        """Something that is used up."""
        if id(x) not in self._made and not _isa(x, _OURS):
            self.refuse("it goes on with an iterator that was made outside of it: pass a list, or make the iterator inside")

    def consumed(self, x: Any) -> None:
        """A plain array whose numbers code computed with, unrecorded."""
        self._check_not_written(x)
        self._guard(Kind.CONTENT, x, None, None)

    def _check_not_written(self, x: Any) -> None:
        for _, var in self.recorder.written.values():
            if np.may_share_memory(var.array, x):
                self.refuse("it writes memory, and reads it as an array that is none of its values: use one name for both")

    def changed(self, x: Any, what: str, put_back: Callable[[Any], None]) -> None:
        """Something is about to be changed."""
        thing = self._thing(x)
        if not thing.undo:
            thing.what, thing.where = what, self._where()
            self._order.append(thing)
        thing.undo.append(put_back)

    def changed_container(self, x: Any) -> None:
        """Elements are about to be put into something, or taken out."""
        if id(x) in self._given:
            self.refuse(f"it changes a {type(x).__name__} among its arguments: return what is new")
        if id(x) in self._things and self._things[id(x)].undo and _isa(x, (ndarray, *CONTAINERS)):
            return
        if type(x) is ndarray:
            if x.nbytes > _COPIED:
                self.refuse("it writes a large array of NumPy's in place, which no recording repeats: use a tensor")
            what = "a plain array, where none of its own values takes part"
            self.changed(x, what, functools.partial(_put_array, values=x.copy()))
        elif _isa(x, (list, collections.deque)):
            self.changed(x, "a list or dictionary", functools.partial(_put_list, values=list(elements(x))))
        elif _isa(x, dict):
            self.changed(x, "a list or dictionary", functools.partial(_put_dict, values=list(dict.items(x))))
        elif _isa(x, set):
            self.changed(x, "a set", functools.partial(_put_set, values=elements(x)))
        elif not _isa(x, _OURS) and not _isa(lookup(type(x), "__setitem__"), FunctionType):
            self.refuse(f"it writes into a {type(x).__name__}, which no recording repeats")

    def changed_attribute(self, x: Any, name: str) -> None:
        """An attribute is about to be set or deleted."""
        kind = type(x)
        if _isa(x, ModuleType):
            self.changed(vars(x), name, functools.partial(_put_item, key=name, value=vars(x).get(name, MISSING)))
        elif _isa(x, type):
            self.changed(x, name, functools.partial(_put_attribute, name=name, value=x.__dict__.get(name, MISSING)))
        elif not _isa(x, _OURS) and not (kind.__module__.startswith("chainrule.") and is_library(kind.__module__)):
            found = lookup(kind, name)
            if _is_python(x, "__setattr__") or _isa(found, property) or _is_python(found, "__set__"):
                return  # whose instructions are looked at
            inside = _inside(x)
            now = inside.get(name, MISSING) if type(inside) is dict else MISSING
            if _isa(found, types.MemberDescriptorType):
                now = _attribute_or_missing(x, name)
            self.changed(x, name, functools.partial(_put_attribute, name=name, value=now))

    def changed_name(self, names: dict[str, Any], name: str) -> None:
        self.changed(names, name, functools.partial(_put_item, key=name, value=names.get(name, MISSING)))

    def changed_cell(self, cell: CellType) -> None:
        self.changed(cell, "a variable of the enclosing function", functools.partial(_put_cell, value=_cell_content(cell)))

    # -- frames ------------------------------------------------------------------------------------------------------

    def _enter(self, frame: FrameType) -> bool:
        code = frame.f_code
        module = frame.f_globals.get("__name__", "")
        module = module if _isa(module, str) else ""
        if self._is_aside(frame):
            return False
        if (module, code.co_name) in _ASIDE or code in _STEPS:
            self._aside = frame
        if is_library(module):
            return False
        if self.reason is not None or (is_constant_module(module) and self._within_library(frame)):
            return False
        if code.co_name in _COMPREHENSIONS:
            return True
        function = frames.function_of(frame)
        if type(function) is FunctionType and not is_constant_module(module):
            self._guard(Kind.FUNCTION, function, None, function_parts(function))
            if function.__kwdefaults__:
                self.whole(function.__kwdefaults__)
            if code.co_argcount:
                receiver = frame.f_locals.get(code.co_varnames[0])
                self._method_runs(receiver if _isa(receiver, type) else type(receiver), code)
        return True

    def _method_runs(self, cls: type, code: types.CodeType) -> None:
        """A function has begun whose first argument is of this class, or this class: it may be what an operator found there."""
        if is_library_class(cls):
            return
        for base in cls.__mro__:
            for name, found in base.__dict__.items():
                if getattr(getattr(found, "__func__", found), "__code__", None) is code and type(name) is str:
                    self.of_class(cls, name)

    def _is_aside(self, frame: FrameType | None) -> bool:
        """Whether a frame belongs to what shows a warning, loads a module, or is called again in each call."""
        while self._aside is not None and frame is not None:
            if frame is self._aside:
                return True
            frame = frame.f_back
        self._aside = None
        return False

    @staticmethod
    def _within_library(frame: FrameType) -> bool:
        """Whether Python's own code works for a library."""
        outer = frame.f_back
        while outer is not None:
            module = outer.f_globals.get("__name__", "")
            if is_library(module) or not is_constant_module(module):
                return is_library(module)
            outer = outer.f_back
        return False

    def _leave(self, stack: Stack) -> None:
        self._settle(stack, None)
        self._now = None

    def _look(self, stack: Stack, i: Instruction) -> None:
        if self.reason is not None:
            return
        self._now = stack
        if stack.pending is not None and not (_CALLS_TWICE and i.name == "CALL"):
            self._settle(stack, stack.top() if i.height else None)
        handler = _HANDLERS.get(i.name, _unknown)
        if handler is not None:
            handler(self, stack, i)

    def _settle(self, stack: Stack, result: Any) -> None:
        """What became of the last instruction's plain arrays: what gave a view of them was not computed with."""
        pending, stack.pending = stack.pending, None
        if pending is None:
            return
        arrays, mixed, makes = pending
        if makes and result is not None:
            self._made[id(result)] = result
        for x in arrays:
            if type(result) is ndarray and np.may_share_memory(result, x):
                continue
            if mixed and any(np.may_share_memory(var.array, x) for var in self.recorder.roots()):
                continue  # an operand of what is recorded, which reads it where it lies
            self.consumed(x)

    def computes(self, stack: Stack, operands: list[Any], makes: bool = False, each: Any = None) -> None:
        """An instruction is about to compute with these."""
        arrays: list[Any] = []
        each = self.operand if each is None else each
        for x in operands:
            if type(x) not in IMMUTABLE:
                each(x, arrays)
        if arrays or makes:
            mixed = any(_isa(x, _VALUES) for x in _flat(operands))
            stack.pending = arrays, mixed, makes

    # -- calls -------------------------------------------------------------------------------------------------------

    def calls(self, stack: Stack, function: Any, args: list[Any], keywords: dict[str, Any]) -> None:
        """A call is about to happen."""
        kind = type(function)
        if kind is MethodType:
            self.calls(stack, function.__func__, [function.__self__, *args], keywords)
        elif kind is FunctionType:
            module = function.__globals__.get("__name__", "")
            if is_library(module if _isa(module, str) else ""):
                self.computes(stack, [*args, *keywords.values()], each=self.handed)
            else:
                stack.pending = [], False, bool(function.__code__.co_flags & 0x20)
        elif _isa(function, functools.partial):
            self.calls(stack, function.func, [*function.args, *args], {**function.keywords, **keywords})
        elif _isa(function, type):
            self._make(stack, function, args, keywords)
        elif _isa(function, np.ufunc) or _module_of(function).partition(".")[0] in ("numpy", "scipy", "pandas", "chainrule"):
            self._call_library(stack, function, args, keywords)
        elif _isa(function, BuiltinFunctionType) or kind in (types.MethodWrapperType, functools._lru_cache_wrapper):
            self._call_builtin(stack, function, args, keywords)
        elif _isa(function, (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)):
            if args:
                self._method(stack, function, args[0], function.__name__, args[1:], keywords)
        elif kind is weakref.ref:
            self.looked_up(function, operator.call, "referent")
        elif _is_python(function, "__call__"):
            self.attribute(function, "__call__")
        elif _isa(lookup(kind, "__call__"), FunctionType):
            self.computes(stack, [function, *args, *keywords.values()], each=self.handed)
        elif kind in (operator.itemgetter, operator.attrgetter, operator.methodcaller):
            self._by_getter(stack, function, args)
        elif not is_lock(function):
            self.refuse(f"it calls {_called(function)}, of which it is not known what it depends on")

    def _by_getter(self, stack: Stack, function: Any, args: list[Any]) -> None:
        if _isa(function, operator.attrgetter) and args:
            at = args[0]
            for name in function.__reduce__()[1]:
                for part in name.split("."):
                    self.attribute(at, part)
                    at = getattr(at, part, None)
        else:
            self.computes(stack, args)

    def _make(self, stack: Stack, cls: type, args: list[Any], keywords: dict[str, Any]) -> None:
        given = [*args, *keywords.values()]
        if cls in ITERATOR_MAKERS or cls.__module__ == "itertools":
            for x in given:
                self._iterated(x)
            stack.pending = [], False, True
        elif _isa(cls, type) and cls.__module__ == "numpy.random" or issubclass(cls, _random_types()):
            self._random(stack, cls, given)
        elif cls in MAKERS or cls.__module__ in ("builtins", "collections", "functools", "operator", "types"):
            if cls is type and len(args) == 1:
                return
            self.computes(stack, given)
        elif issubclass(cls, BaseException):
            return
        elif cls.__module__.partition(".")[0] in ("numpy", "scipy", "pandas", "chainrule"):
            self.computes(stack, given, each=self.handed)
        elif not cls.__flags__ & _HEAP_TYPE:
            self.refuse(f"it makes a {cls.__name__}, of which it is not known what it depends on")
        elif not is_library_class(cls):
            self.of_class(cls, "__init__")
            self.of_class(cls, "__new__")

    def _random(self, stack: Stack, made: Any, given: list[Any]) -> None:
        if not given or not all(_isa(x, (int, np.integer)) for x in _flat(given)):
            self.refuse(_DRAW)  # it starts from the system's entropy
        stack.pending = [], False, True

    def _iterated(self, x: Any) -> None:
        """Something whose elements code goes through."""
        if _isa(x, (*VIEWS, *ORDERED_VIEWS)):
            x = x.mapping
        if _isa(x, CONTAINERS):
            self.whole(x)
        elif type(x) is ndarray:
            self.consumed(x)
        elif _is_iterator(x):
            self.iterator(x)
        elif not _isa(x, (*CONSTANT, *_OURS)) and is_library_class(type(x)) and type(x).__module__ != "builtins":
            self.handed(x, [])

    def _call_library(self, stack: Stack, function: Any, args: list[Any], keywords: dict[str, Any]) -> None:
        receiver = getattr(function, "__self__", None)
        if args and _isa(args[0], _random_types()):  # a method of Cython's, which is not bound
            receiver = args[0]
        if _isa(receiver, _random_types()) or _module_of(function).startswith("numpy.random"):
            if getattr(function, "__name__", "") == "default_rng":
                self._random(stack, function, [*args, *keywords.values()])
            elif receiver is None or id(receiver) not in self._made:
                self.refuse(_DRAW)
            return
        if _isa(receiver, ndarray):
            self._method(stack, function, receiver, function.__name__, args, keywords)
            return
        outs = keywords.get("out")
        targets = list(outs) if _isa(outs, tuple) else [outs]
        if _isa(function, np.ufunc):
            targets += args[function.nin :]
        if any(function is writer for writer in WRITERS) or getattr(function, "__name__", "") in ("at", "shuffle"):
            targets.append(args[0] if args else keywords.get("a"))
        self._written(targets, [*args, *keywords.values()])
        inner = [] if receiver is None or _isa(receiver, (ModuleType, type)) else [receiver]
        if type(function).__name__ not in _STATELESS and not _isa(function, (np.ufunc, BuiltinFunctionType)):
            inner.append(function)
        self.computes(stack, [*inner, *args, *keywords.values()], each=self.handed)

    def _written(self, targets: list[Any], given: list[Any]) -> None:
        for x in targets:
            if type(x) is ndarray:
                self.changed_container(x)

    def _call_builtin(self, stack: Stack, function: Any, args: list[Any], keywords: dict[str, Any]) -> None:
        receiver, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        if _isa(function, functools._lru_cache_wrapper):
            if not any(_isa(x, _OURS) for x in _flat([*args, *keywords.values()])):
                again = functools.partial(_called_again, args=tuple(args), keywords=keywords)
                self.looked_up(function, again, repr((args, keywords)))  # which finds it there, as the function would
            return
        if receiver is not None and not _isa(receiver, (ModuleType, type)):
            self._method(stack, function, receiver, name, args, keywords)
            return
        if not is_pure(function):
            if _module_of(function) in ("_heapq", "_bisect") and args:
                self.changed_container(args[0])
                return
            self.refuse(f"it calls {_called(function)}, which depends on, or changes, more than its arguments: {_INSTEAD}")
        builtin = _module_of(function) == "builtins"
        if builtin and name in ("getattr", "hasattr") and len(args) > 1 and _isa(args[1], str):
            self.attribute(args[0], args[1])
        elif builtin and name in ("setattr", "delattr") and len(args) > 1:
            self.changed_attribute(args[0], args[1])
        elif builtin and name == "vars" and args:
            return  # what is read of it is seen
        elif builtin and name == "len" and args:
            x = args[0].mapping if _isa(args[0], (*VIEWS, *ORDERED_VIEWS)) else args[0]
            if type(x) is ndarray:
                self.looked_up(x, _layout, "layout")
            self.length(x)
        elif builtin and name in ("iter", "next", "sorted", "list"):
            for x in args[:1]:
                self._iterated(x)
            makes = name == "iter" and bool(args) and not _is_iterator(args[0])
            stack.pending = [], False, makes
        elif builtin and name in ("isinstance", "issubclass", "callable", "globals", "locals", "iter", "eval", "exec", "dir", "__build_class__"):
            return
        else:
            self.computes(stack, [*args, *keywords.values()])

    def _method(self, stack: Stack, function: Any, x: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> None:
        """A method of C's is about to be called."""
        if _isa(x, ndarray) and type(x) is ndarray:
            if changes(x, name):
                self._written([x], [])
            self._written([keywords.get("out")], [])
            self.computes(stack, [x, *args, *keywords.values()], each=self.handed)
        elif _isa(x, _OURS):
            self.computes(stack, [*args, *keywords.values()], each=self.handed)
        elif name in ("__getattribute__", "__getattr__") and args:
            self.attribute(x, args[0])
        elif name in ("__setattr__", "__delattr__") and args:
            self.changed_attribute(x, args[0])
        elif name in ("__init__", "__init_subclass__", "__new__", "__class_getitem__", "__subclasshook__", "mro"):
            if _isa(x, CONTAINERS) and (args or keywords):
                self.changed_container(x)
            self.computes(stack, [*args, *keywords.values()])
        elif _isa(x, (list, dict, set, collections.deque)):
            self._method_of_container(stack, x, name, args, keywords)
        elif _isa(x, type) and not is_pure(function) and not is_library_class(x):
            self.computes(stack, [*args, *keywords.values()])
        elif _isa(x, (*CONSTANT, *CONTAINERS, *VIEWS, *ORDERED_VIEWS)):
            if _isa(x, type) and not is_pure(function) and _isa(function, BuiltinFunctionType):
                self.refuse(f"it calls {_called(function)}, which depends on more than its arguments: {_INSTEAD}")
            self.computes(stack, [x, *args, *keywords.values()])
        elif _is_iterator(x):
            self.iterator(x)
        elif _isa(x, contextvars.ContextVar):
            if name != "get":
                self.refuse("it sets a ContextVar, which no recording repeats")
            self.looked_up(x, _context_value, "value")
        elif is_lock(x) or name in ("__eq__", "__ne__", "__hash__", "__repr__", "__str__", "__format__", "__dir__", "__sizeof__", "__reduce_ex__"):
            return
        elif _isa(x, BUFFERS):
            if name not in READING:
                self.refuse(f"it may write into a {type(x).__name__} ({name}), which no recording repeats: use an array of NumPy's")
            self.looked_up(x, bytes, "whole")
        elif _isa(x, _random_types()):
            if id(x) not in self._made:
                self.refuse(_DRAW)
        else:
            self.refuse(f"it calls {type(x).__name__}.{name}, which depends on, or changes, what no recording sees: {_INSTEAD}")

    def _method_of_container(self, stack: Stack, x: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> None:
        if changes(x, name):
            if name in ("pop", "setdefault", "popitem", "popleft", "remove"):
                self.whole(x)
            self.changed_container(x)
            for each in args:
                if _isa(each, CONTAINERS) and name in ("extend", "update", "extendleft", "__ior__", "__iadd__"):
                    self.whole(each)
                elif _is_iterator(each) and name in ("extend", "update", "extendleft"):
                    self.iterator(each)
            return
        if _isa(x, dict) and name in ("get", "__getitem__", "__contains__", "__missing__") and args:
            self._subscript(x, args[0])
        elif _isa(x, list) and name == "__getitem__" and args:
            self._subscript(x, args[0])
        elif name == "__len__":
            self.length(x)
        else:
            self.whole(x)
            if name in ("index", "count", "__contains__", "__eq__"):
                self.computes(stack, [x, *args])
            elif name == "__iter__" or name == "__reversed__":
                stack.pending = [], False, True

    def _subscript(self, x: Any, key: Any) -> None:
        """An element is read."""
        if _isa(x, dict):
            try:
                hash(key)
            except TypeError:  # which Python says itself
                return
            found = self.item(x, key)
            if found is MISSING and _isa(x, collections.defaultdict):
                self.changed_container(x)
        elif _isa(x, types.MappingProxyType):
            self.looked_up(x, functools.partial(_get, key=key), repr(key))
        elif _isa(x, (list, collections.deque)):
            if type(key) is int and len(x) > 64:
                self._guard(Kind.CHECK, x, functools.partial(_element, key=key), _element(x, key), key)
            else:
                self.whole(x)


def _flat(x: Any, depth: int = 3) -> Iterator[Any]:
    for each in x:
        if _isa(each, dict):
            each = list(each.values())
        if _isa(each, (list, tuple)) and depth:
            yield from _flat(each, depth - 1)
        else:
            yield each


#: stands for the thing itself in guards that are not final yet: a reference would keep it
_Of: Any = object()
_INSTEAD = "pass what it gives as an argument, or leave it out of the compiled function"
_DRAW = (
    "it draws random numbers from a generator of NumPy's or Python's: draw with chainrule (rand, randn ...), or pass the numbers as "
    "an argument"
)


def _containers(x: Any) -> Iterator[Any]:
    """The containers in a container."""
    for part in elements(x):
        if _isa(part, CONTAINERS):
            yield part
            yield from _containers(part)


def _is_alone(thing: _Thing, known: collections.Counter[int]) -> bool:
    """Whether nobody has something but its record, and an array's memory but its record and those of its views."""
    x, thing.thing = thing.thing, None
    alone = sys.getrefcount(x) == 2  # x, and the argument
    if alone and _isa(x, ndarray) and x.base is not None:
        base = x.base
        alone = type(base) is ndarray and sys.getrefcount(base) - 2 <= known[id(base)]
        del base
    thing.thing = x
    return alone


def _still_holds(guard: Guard) -> bool:
    try:
        return guard.holds()
    except Exception:
        return False


def _named(guard: Guard) -> str:
    """What a guard looks at, in words."""
    name = guard.key if type(guard.key) is str else ""
    return name or f"a {type(guard.thing).__name__} that it reads"


def _is_iterator(x: Any) -> bool:
    kind = type(x)
    return hasattr(kind, "__next__") and not _isa(lookup(kind, "__next__"), FunctionType)


def _is_library_context(x: Any) -> bool:
    """Whether something is a context manager of a library's: ``np.errstate``, ``cr.no_grad``."""
    return hasattr(type(x), "__enter__") and type(x).__module__.partition(".")[0] in ("numpy", "chainrule")


def _is_called(x: Any) -> bool:
    """Whether something is there to be called, in Python that is looked at, or of ours."""
    function = lookup(type(x), "__call__")
    if not _isa(function, FunctionType):
        return False
    module = str(function.__globals__.get("__name__", ""))
    return not is_library(module) or module.startswith("chainrule.")


def _is_python(x: Any, method: str) -> bool:
    """Whether a method of an object's class is Python that is looked at."""
    function = lookup(type(x), method)
    return _isa(function, FunctionType) and not is_library(str(function.__globals__.get("__name__", "")))


def _module_of(function: Any) -> str:
    module = getattr(function, "__module__", None) or getattr(type(function), "__module__", None)
    return module if _isa(module, str) else ""


def _called(function: Any) -> str:
    module = _module_of(function)
    return f"{module + '.' if module and module != 'builtins' else ''}{getattr(function, '__name__', type(function).__name__)}"


def _random_types() -> tuple[type, ...]:
    """Generators of random numbers; NumPy's once they are loaded."""
    loaded = sys.modules.get("numpy.random")
    if loaded is None:
        return (random.Random,)
    return random.Random, loaded.Generator, loaded.RandomState, loaded.BitGenerator, loaded.SeedSequence


# -- what guards ask -----------------------------------------------------------------------------------------------------


def _layout(x: Any) -> Any:
    return x.shape, x.dtype, x.strides


def _attribute_or_missing(x: Any, name: str) -> Any:
    try:
        return getattr(x, name)
    except AttributeError:
        return MISSING


def _has_itself(name: str, cls: type) -> bool:
    return name in cls.__dict__


def _called_again(function: Any, args: Any, keywords: Any) -> Any:
    return function(*args, **keywords)


def _context_value(x: contextvars.ContextVar[Any]) -> Any:
    return x.get(MISSING)


def _get(x: Any, key: Any) -> Any:
    return x.get(key, MISSING)


def _element(x: Any, key: int) -> Any:
    return x[key] if -len(x) <= key < len(x) else MISSING


def _cell_content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


# -- putting back --------------------------------------------------------------------------------------------------------


def _put_array(x: Any, values: Any) -> None:
    if x.flags.writeable:
        x[...] = values


def _put_list(x: Any, values: list[Any]) -> None:
    x.clear()
    x.extend(values)


def _put_dict(x: dict[Any, Any], values: list[Any]) -> None:
    dict.clear(x)
    for key, value in values:
        dict.__setitem__(x, key, value)


def _put_set(x: set[Any], values: Any) -> None:
    x.clear()
    x.update(values)


def _put_item(x: dict[Any, Any], key: Any, value: Any) -> None:
    if value is MISSING:
        x.pop(key, None)
    else:
        x[key] = value


def _put_attribute(x: Any, name: str, value: Any) -> None:
    if value is not MISSING:
        (type if _isa(x, type) else object).__setattr__(x, name, value)
    elif _attribute_or_missing(x, name) is not MISSING:
        (type if _isa(x, type) else object).__delattr__(x, name)


def _put_cell(cell: CellType, value: Any) -> None:
    if value is MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = value


# -- objects as a whole --------------------------------------------------------------------------------------------------


class Unknown(Exception):
    """An object has a part of which it is not known what it is made of."""


def snapshot(x: Any) -> Any:
    """All that an object is made of, to be compared: numbers, the bytes of arrays, and which functions, classes, tensors.

    Raises:
        Unknown: it has parts that only C knows.
    """
    if hasattr(type(x), "__pandas_priority__"):
        return _Table(x)
    seen: dict[int, Any] = {}
    found = _parts_of(x, seen)
    return found


def _parts_of(x: Any, seen: dict[int, Any]) -> Any:
    if id(x) in seen:
        return ("again", list(seen).index(id(x)))
    if _isa(x, (*CONSTANT, *_OURS, FunctionType, MethodType)) or _is_called(x):
        return x
    seen[id(x)] = x
    if len(seen) > _PARTS:
        raise Unknown(f"{type(x).__name__} of very many parts")
    state: tuple[Any, ...] = (type(x),)
    known = False
    if _isa(x, ndarray):
        plain = np.asarray(x)
        if plain.dtype.hasobject:
            raise Unknown("array of objects")
        state += content(plain)
        known = True
    elif _isa(x, BUFFERS):
        state += (bytes(x),)
        known = True
    elif _isa(x, CONTAINERS):
        state += tuple([_parts_of(part, seen) for part in elements(x)])
        known = True
    elif _isa(x, functools.partial):
        return (functools.partial, *[_parts_of(part, seen) for part in (x.func, x.args, x.keywords)])
    inside = _inside(x)
    if type(inside) is dict:
        state += tuple([(name, _parts_of(inside[name], seen)) for name in inside])
        known = known or bool(type(x).__flags__ & _HEAP_TYPE)
    members = [name for cls in type(x).__mro__ for name, m in cls.__dict__.items() if _isa(m, types.MemberDescriptorType)]
    if members and type(x).__flags__ & _HEAP_TYPE:
        state += tuple([(name, _parts_of(_attribute_or_missing(x, name), seen)) for name in members])
        known = True
    if not known and x is not MISSING:
        raise Unknown(type(x).__name__)
    return state


class _Table:
    """A copy of one of pandas' objects: equal to another while labels and values are the same."""

    def __init__(self, x: Any) -> None:
        self.copy = x.copy()

    def __eq__(self, other: object) -> bool:
        return _isa(other, _Table) and bool(self.copy.equals(other.copy)) and _labels(self.copy) == _labels(other.copy)

    __hash__ = None  # type: ignore[assignment]


def _labels(x: Any) -> Any:
    return [list(axis) for axis in getattr(x, "axes", ())]


# -- instructions --------------------------------------------------------------------------------------------------------


def _global(reads: Reads, stack: Stack, i: Instruction) -> None:
    names = stack.frame.f_globals
    if not is_constant_module(names.get("__name__")) and (i.value in names or not hasattr(builtins, i.value)):
        reads.item(names, i.value)
    elif i.value not in names and not is_constant_module(names.get("__name__")):
        reads.item(names, i.value)


def _name(reads: Reads, stack: Stack, i: Instruction) -> None:
    if stack.frame.f_locals is stack.frame.f_globals or i.value not in stack.frame.f_locals:
        _global(reads, stack, i)


def _free(stack: Stack, i: Instruction) -> Any:
    """The cell of a variable of an enclosing function; None for one of this function's."""
    code = stack.frame.f_code
    if i.value not in code.co_freevars:
        return None
    return stack.cell(code.co_freevars.index(i.value))


def _deref(reads: Reads, stack: Stack, i: Instruction) -> None:
    cell = _free(stack, i)
    if cell is not None and not is_constant_module(stack.frame.f_globals.get("__name__")):
        reads._guard(Kind.CELL, cell, None, _cell_content(cell))


def _attribute(reads: Reads, stack: Stack, i: Instruction) -> None:
    reads.attribute(stack.top(), i.value)


def _subscript(reads: Reads, stack: Stack, i: Instruction) -> None:
    x, key = stack.top(2), stack.top()
    if type(x) is ndarray:
        if not _isa(key, _OURS):
            _array_element(reads, stack, x, key)
    elif _isa(x, (dict, list, collections.deque, types.MappingProxyType)):
        if type(key) in IMMUTABLE or not _isa(x, (list, collections.deque)):
            reads._subscript(x, key)
        else:
            reads.computes(stack, [x, key])
    elif not _isa(x, (*CONSTANT, tuple)):
        reads.computes(stack, [x, key])


def _array_element(reads: Reads, stack: Stack, x: Any, key: Any) -> None:
    whole = key if type(key) is tuple else (key,)
    if x.ndim == len(whole) and all(type(k) is int for k in whole):
        guards = reads._thing(x).guards
        if sum(type(name) is tuple and name[0] == "element" for name in guards) < _ELEMENTS:
            at = functools.partial(_array_value, key=whole)
            with_value = at(x)
            if with_value is not MISSING:
                reads._check_not_written(x)
                reads._guard(Kind.CHECK, x, at, with_value, ("element", whole))
            return
    reads.computes(stack, [x, key])


def _array_value(x: Any, key: Any) -> Any:
    try:
        return x[key]
    except IndexError:
        return MISSING


def _operands(count: int) -> Callable[[Reads, Stack, Instruction], None]:
    def look(reads: Reads, stack: Stack, i: Instruction) -> None:
        reads.computes(stack, [stack.top(k) for k in range(count, 0, -1)])

    return look


def _binary(reads: Reads, stack: Stack, i: Instruction) -> None:
    x, y = stack.top(2), stack.top()
    if i.arg >= _IN_PLACE and _isa(x, (ndarray, list, set, dict, collections.deque)) and not _isa(x, _OURS):
        if not _isa(y, _OURS) or not _isa(x, ndarray):
            reads.changed_container(x)
    reads.computes(stack, [x, y])


def _truth(reads: Reads, stack: Stack, i: Instruction) -> None:
    x = stack.top()
    if _isa(x, CONTAINERS):
        reads.length(x)
    elif type(x) is ndarray:
        reads.consumed(x)


def _goes_through(reads: Reads, stack: Stack, i: Instruction) -> None:
    x = stack.top()
    reads._iterated(x)
    if i.name == "GET_ITER" and not _is_iterator(x):
        stack.pending = [], False, True


def _stores_attribute(reads: Reads, stack: Stack, i: Instruction) -> None:
    reads.changed_attribute(stack.top(), i.value)


def _stores_item(depth: int) -> Callable[[Reads, Stack, Instruction], None]:
    def look(reads: Reads, stack: Stack, i: Instruction) -> None:
        reads.changed_container(stack.top(depth))

    return look


def _stores_global(reads: Reads, stack: Stack, i: Instruction) -> None:
    if i.name.endswith("GLOBAL") or stack.frame.f_locals is stack.frame.f_globals:
        reads.changed_name(stack.frame.f_globals, i.value)


def _stores_free(reads: Reads, stack: Stack, i: Instruction) -> None:
    cell = _free(stack, i)
    if cell is not None:
        reads.changed_cell(cell)


def _call(reads: Reads, stack: Stack, i: Instruction) -> None:
    if i.name == "CALL" and _CALLS_TWICE:
        return
    extra = i.name == "CALL_KW"
    count = i.arg + extra
    names = stack.top() if extra else i.keywords
    below = [stack.top(count + 2), stack.top(count + 1)]
    args = [stack.top(k) for k in range(count, int(extra), -1)]
    if _CALLABLE_FIRST:
        function, receiver = below
    else:
        function, receiver = below if not Stack.is_null(below[0]) else below[::-1]
    if not Stack.is_null(receiver):
        args = [receiver, *args]
    positional = args[: len(args) - len(names)]
    reads.calls(stack, function, positional, dict(zip(names, args[len(positional) :], strict=True)))


def _call_unpacked(reads: Reads, stack: Stack, i: Instruction) -> None:
    keywords = stack.top() if i.arg & 1 else {}
    depth = 1 + (i.arg & 1)
    given = stack.top(depth)
    function = stack.top(depth + (2 if _CALLABLE_FIRST else 1))
    if _isa(given, CONTAINERS):
        reads.whole(given)
    else:
        reads._iterated(given)
    if _isa(keywords, dict) and keywords:
        reads.whole(keywords)
    reads.calls(stack, function, list(given) if _isa(given, CONTAINERS) else [], dict(keywords))


def _formatted(reads: Reads, stack: Stack, i: Instruction) -> None:
    deeper = i.name == "FORMAT_WITH_SPEC" or (i.name == "FORMAT_VALUE" and i.arg & 4)
    reads.computes(stack, [stack.top(2 if deeper else 1)])


def _imports(reads: Reads, stack: Stack, i: Instruction) -> None:
    if i.value.partition(".")[0] not in sys.modules and not i.value.startswith("."):
        refusal = "it imports a module that is not loaded yet"
        reads.later = True
        reads.refuse(refusal)


def _enters(reads: Reads, stack: Stack, i: Instruction) -> None:
    x = stack.top()
    if not (is_lock(x) or _isa(lookup(type(x), "__enter__"), FunctionType) or type(x).__module__.startswith(("numpy", "chainrule"))):
        reads.refuse(f"it enters a {type(x).__name__}, of which it is not known what it changes")


def _super_attribute(reads: Reads, stack: Stack, i: Instruction) -> None:
    reads.attribute(super(stack.top(2), stack.top()), i.value)


def _unknown(reads: Reads, stack: Stack, i: Instruction) -> None:
    reads.refuse(f"it runs the instruction {i.name}, of which it is not known what it reads")


_CALLS_TWICE = sys.version_info < (3, 12)  # PRECALL comes before CALL, and has all operands
_CALLABLE_FIRST = sys.version_info >= (3, 13)
_HARMLESS = """
    NOP RESUME CACHE EXTENDED_ARG POP_TOP PUSH_NULL COPY SWAP LOAD_CONST LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR
    LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW LOAD_SMALL_INT LOAD_COMMON_CONSTANT
    STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_FAST_MAYBE_NULL DELETE_FAST LOAD_CLOSURE MAKE_CELL COPY_FREE_VARS
    MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP BUILD_SLICE BUILD_STRING
    LIST_APPEND SET_ADD MAP_ADD LIST_TO_TUPLE FOR_ITER END_FOR POP_ITER IS_OP KW_NAMES
    RETURN_VALUE RETURN_CONST RETURN_GENERATOR YIELD_VALUE GEN_START SEND END_SEND GET_YIELD_FROM_ITER ASYNC_GEN_WRAP
    JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
    POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
    PUSH_EXC_INFO POP_EXCEPT RERAISE RAISE_VARARGS CHECK_EXC_MATCH WITH_EXCEPT_START LOAD_ASSERTION_ERROR CLEANUP_THROW
    LOAD_BUILD_CLASS LOAD_LOCALS SETUP_ANNOTATIONS CALL_INTRINSIC_1 CALL_INTRINSIC_2 MATCH_SEQUENCE MATCH_MAPPING
    NOT_TAKEN EXIT_INIT_CHECK INTERPRETER_EXIT
"""
_JUMPS = """
    POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_BACKWARD_IF_TRUE
    POP_JUMP_BACKWARD_IF_FALSE JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP TO_BOOL UNARY_NOT
"""
#: what is done before an instruction; None: nothing
_HANDLERS: dict[str, Callable[[Reads, Stack, Instruction], None] | None] = {
    **dict.fromkeys(_HARMLESS.split()),
    **dict.fromkeys(_JUMPS.split(), _truth),
    "LOAD_GLOBAL": _global, "LOAD_NAME": _name, "LOAD_DEREF": _deref, "LOAD_CLASSDEREF": _deref, "LOAD_FROM_DICT_OR_DEREF": _deref,
    "LOAD_FROM_DICT_OR_GLOBALS": _name, "LOAD_ATTR": _attribute, "LOAD_METHOD": _attribute, "IMPORT_FROM": _attribute,
    "LOAD_SUPER_ATTR": _super_attribute, "BINARY_SUBSCR": _subscript, "BINARY_SLICE": _operands(3), "BINARY_OP": _binary,
    "COMPARE_OP": _operands(2), "CONTAINS_OP": _operands(2), "UNARY_NEGATIVE": _operands(1), "UNARY_INVERT": _operands(1),
    "UNARY_POSITIVE": _operands(1), "GET_ITER": _goes_through, "UNPACK_SEQUENCE": _goes_through, "UNPACK_EX": _goes_through,
    "LIST_EXTEND": _goes_through, "SET_UPDATE": _goes_through, "DICT_UPDATE": _goes_through, "DICT_MERGE": _goes_through,
    "GET_LEN": _truth, "MATCH_KEYS": _operands(2), "MATCH_CLASS": _operands(3), "STORE_ATTR": _stores_attribute,
    "DELETE_ATTR": _stores_attribute, "STORE_SUBSCR": _stores_item(2), "DELETE_SUBSCR": _stores_item(2),
    "STORE_SLICE": _stores_item(3), "STORE_GLOBAL": _stores_global, "STORE_NAME": _stores_global, "DELETE_GLOBAL": _stores_global,
    "DELETE_NAME": _stores_global, "STORE_DEREF": _stores_free, "DELETE_DEREF": _stores_free, "PRECALL": _call, "CALL": _call,
    "CALL_KW": _call, "CALL_FUNCTION_EX": _call_unpacked, "FORMAT_VALUE": _formatted, "FORMAT_SIMPLE": _formatted,
    "FORMAT_WITH_SPEC": _formatted, "CONVERT_VALUE": _formatted, "IMPORT_NAME": _imports, "BEFORE_WITH": _enters,
}  # fmt: skip
