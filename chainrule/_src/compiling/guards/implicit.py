"""Implicit calls: of special methods, property getters, default factories, key functions.

A Python function that is called implicitly is watched when it runs. A C function is handled like an explicit call of it. If its
arguments are not known, it may read only the contents of its operands and of the object that it is bound to. Traces with other C
functions are refused. ``Reads`` derives from ``ImplicitCalls``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any

from chainrule._src.arrays.types import Params
from chainrule._src.compiling.guards.effect_tables import (
    HEAP_TYPE,
    is_library,
    is_library_class,
    module_of_code,
    names_in,
)
from chainrule._src.compiling.guards.frames import Stack
from chainrule._src.compiling.guards.guards import MISSING, class_attribute
from chainrule._src.compiling.guards.log import StateLog
from chainrule._src.compiling.guards.objects import has_class, is_python

#: notes an object that C code gets, and appends plain arrays in it to a list
Each = Callable[[Any, list[Any]], None]
#: special methods that are noted with their arguments where they are called
_NOTED_AT_CALL = names_in(
    "__new__ __init__ __init_subclass__ __class_getitem__ __call__ __enter__ __exit__ __get__ __set__ __delete__ __setattr__ "
    "__delattr__ __setitem__ __delitem__ __iadd__ __iand__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__ __ior__ "
    "__ipow__ __irshift__ __isub__ __itruediv__ __ixor__ __instancecheck__ __subclasscheck__ __del__"
)


class PendingInstruction:
    """An instruction that is being executed.

    Attributes:
        arrays: the plain arrays that it reads, unless its result is a view of them.
        mixed: whether tensors or Arrays are among its operands.
        result_is_new: whether its result is a new iterator, generator or class.
        receive: notes the values that Python functions return to the C code of the instruction. None: the C code passes them on.
    """

    __slots__ = ("arrays", "mixed", "receive", "result_is_new")

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.mixed = self.result_is_new = False
        self.receive: Each | None = None


class ImplicitCalls(StateLog):
    """A log with implicit calls."""

    def note_call(self, stack: Stack, function: Any, args: list[Any], keywords: Params) -> None:
        """Note a call that is about to happen."""
        raise NotImplementedError

    def note_possible_call(self, function: Any, calls: Iterable[Sequence[object]] | None = None) -> None:
        """Note that C code may call a function, any number of times.

        Args:
            calls: the arguments of each call. None: they are among the operands of the current instruction.
        """
        raise NotImplementedError

    def expect(
        self,
        arrays: Sequence[object] = (),
        *,
        mixed: bool = False,
        result_is_new: bool = False,
        receive: Each | None = None,
    ) -> None:
        """Add to the expected effects of the current instruction."""
        stack = self.now
        assert stack is not None
        if stack.pending is None:
            stack.pending = PendingInstruction()
        pending: PendingInstruction = stack.pending
        pending.arrays += arrays
        pending.mixed |= mixed
        pending.result_is_new |= result_is_new
        if receive is not None:
            pending.receive = receive
            self.receivers[id(stack.frame)] = stack

    def note_implicit_call(self, function: Any, *args: object) -> None:
        """Note an implicit call with these arguments."""
        if not is_watched(function):
            assert self.now is not None
            self.note_call(self.now, function, list(args), {})

    def note_special_method(self, x: object, name: str, *args: object, owner: type | None = None) -> bool:
        """Note a call of a special method with these arguments; return whether it is a C function that the class defines.

        Args:
            owner: the class, if it is not that of ``x``.
        """
        owner = type(x) if owner is None else owner
        if not is_named(owner, name):
            return False
        found = class_attribute(owner, name)
        if found is None or is_watched(found):
            return False
        self.note_implicit_call(self._bound(found, x, owner), *args)
        return True

    def _bound(self, found: Any, x: object, owner: type) -> Any:
        """Bind the attribute of a class that is a special method."""
        if has_class(found, staticmethod):
            return found.__func__
        if has_class(found, classmethod):
            return MethodType(found.__func__, owner)
        get = class_attribute(type(found), "__get__")
        if get is MISSING:
            return found
        if has_class(found, property) or has_class(get, FunctionType):
            self.refuse(f"a special method of its {owner.__name__} is a {type(found).__name__}: use a function instead")
        return get(found, x, owner)

    def note_descriptor_get(self, found: Any, instance: object, owner: type) -> None:
        """Note the call of the property or other descriptor that computes an attribute."""
        if has_class(found, classmethod):  # around a property, up to Python 3.12
            found, instance = found.__func__, owner
        if not has_class(found, property):
            self.note_special_method(found, "__get__", instance, owner)
        elif found.fget is not None and instance is not None:
            self.note_implicit_call(found.fget, instance)

    def note_descriptor_set(self, found: Any, *args: object) -> bool:
        """Note the call of the descriptor that sets an attribute, or deletes it if there is no value.

        Returns:
            Whether there is such a descriptor.
        """
        setter, name = ("fset", "__set__") if len(args) == 2 else ("fdel", "__delete__")
        if has_class(found, property):
            if getattr(found, setter) is not None:
                self.note_implicit_call(getattr(found, setter), *args)
            return True
        return is_python(found, name) or self.note_special_method(found, name, *args)

    def note_special_functions(self, x: object) -> None:
        """Note that C code gets an object, and may call the special methods of its class."""
        cls = type(x)
        if cls.__flags__ & HEAP_TYPE and cls not in self.classes:
            self.classes.add(cls)
            for found in special_functions(cls):
                self.note_possible_call(found)


def is_watched(function: Any) -> bool:
    """Return whether the instructions of a function are watched when it runs."""
    if has_class(function, FunctionType):
        return not is_library(module_of_code(function.__code__, function.__globals__))
    return is_python(function, "__call__")


def is_named(cls: type, name: str) -> bool:
    """Return whether a Python class defines a special method, other than by naming one inherited from C again."""
    for base in cls.__mro__ if cls.__flags__ & HEAP_TYPE else ():
        if name in base.__dict__:
            return not is_library_class(base) and not _is_inherited(cls, name, base.__dict__[name])
    return False


def _is_inherited(cls: type, name: str, found: Any) -> bool:
    return getattr(found, "__objclass__", None) in cls.__mro__ and found.__name__ == name


def special_functions(cls: type) -> Iterator[Any]:
    """Yield the special methods and ``keys`` that a class defines as unwatched functions, and that are not noted where called."""
    for base in cls.__mro__:
        for name, found in () if is_library_class(base) else list(base.__dict__.items()):
            special = name == "keys" or name[:2] == name[-2:] == "__"
            if (
                not special
                or name in _NOTED_AT_CALL
                or class_attribute(cls, name) is not found
                or has_class(found, type)
            ):
                continue
            is_function = (
                has_class(found, (classmethod, property)) or class_attribute(type(found), "__call__") is not MISSING
            )
            watched = is_watched(found.fget if has_class(found, property) else found)
            if is_function and not watched and not _is_inherited(cls, name, found):
                yield found
