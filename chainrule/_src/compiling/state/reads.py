"""What becomes of each read of an object: a guard, nothing, or a refusal."""

from __future__ import annotations

import collections
import contextlib
import decimal
import functools
import types
import warnings
from abc import ABCMeta, get_cache_token
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from chainrule._src.api.array import has_attribute
from chainrule._src.compiling.state.guards import (
    IMMUTABLE,
    MISSING,
    GuardKind,
    as_tuples,
    attributes_of,
    elements,
    function_parts,
    lookup,
    registration,
)
from chainrule._src.compiling.state.known import (
    CHANGED_IN_PLACE,
    CONSTANT,
    CONTAINERS,
    has_numbers,
    is_constant_module,
    is_fixed,
    is_library,
    is_library_class,
    is_lock,
    is_opaque,
)
from chainrule._src.compiling.state.log import INSTEAD, Log
from chainrule._src.compiling.state.objects import (
    OURS,
    PLAIN,
    VALUES,
    attribute_or_missing,
    classes_in,
    content_in_place,
    element_or_missing,
    flat,
    get_or_missing,
    given_by,
    is_called,
    is_iterator,
    is_library_context,
    is_python,
    isa,
    random_types,
    shown_by,
)
from chainrule._src.compiling.state.settings import digits_of_decimals, printing_of_arrays
from chainrule._src.compiling.state.snapshots import Unknown, snapshot
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray
_HELD_WHILE_RECORDING = frozenset({"filters", "onceregistry", "defaultaction"})


#: attributes of an array that give C its numbers
_SHOWING_NUMBERS = frozenset({"data", "flat", "ctypes", "__array_interface__", "__array_struct__"})
_OF_TENSORS = frozenset({"shape", "size", "dim", "ndim", "numel", "dtype", "requires_grad", "is_leaf", "grad_fn"})


class Reads(Log):
    """A log of reads, by what Python does: attributes, elements, operands, arguments of code that is not looked into."""

    def item(self, x: dict[Any, Any], key: object) -> Any:
        """What a dictionary has under a key."""
        found = dict.get(x, key, MISSING)
        self.guard(GuardKind.ITEM, x, key, found, (GuardKind.ITEM, type(key), key))
        return found

    def whole(self, x: object) -> None:
        """All elements of a container."""
        x = shown_by(x)
        if type(x) is not tuple:
            self.guard(GuardKind.ELEMENTS, x, None, elements(x))

    def length(self, x: Any) -> None:
        x = shown_by(x)
        self.type_of(x)
        if isa(x, ndarray):
            self.array(x)
        elif not self.changed_in_place(x) and isa(x, CONTAINERS) and not isa(x, (tuple, frozenset)):
            self.guard(GuardKind.LENGTH, x, None, len(x))

    def of_class(self, cls: type, name: str) -> Any:
        """What a class, or one of its bases, has under a name."""
        for content in self.contents_of(cls):
            content.read(name)
        return lookup(cls, name)

    def passed(self, x: object) -> None:
        """An operator, or code in C, is about to use an object: what it does depends on the object's class, or on the class itself."""
        if type(x) not in PLAIN:
            self.type_of(x)
            if isa(x, type):
                self.contents_of(x)  # type: ignore[arg-type]

    def is_instance(self, x: object, cls: Any) -> None:
        """Whether something is of a class."""
        self.type_of(x)
        self.is_subclass(type(x), cls)
        if isa(x, OURS):
            return
        for each in classes_in(cls):
            for base in each.__mro__ if getattr(each, "_is_protocol", False) else ():
                for name in (*vars(base), *vars(base).get("__annotations__", ())):
                    self.attribute(x, name)

    def is_subclass(self, kind: type, cls: Any) -> None:
        """Whether a class is one of another's, which that of abstract classes may be later."""
        for each in classes_in(cls):
            if type(each) is not type:
                self.passed(each)
            if not isa(each, type):
                self.registrations()
            if isa(each, ABCMeta) and not (is_fixed(kind) and issubclass(kind, each)):
                found = registration(each, kind)
                self.guard(GuardKind.REGISTERED, each, kind, found, (GuardKind.REGISTERED, id(kind)))

    def formats(self, operands: Sequence[object]) -> None:
        """Something is made a text of: numbers of NumPy's go by its setting, and do not say so."""
        if any(isa(x, np.generic) or isa(x, CONTAINERS) for x in operands):
            self.looked_up(np.get_printoptions, printing_of_arrays, "printing")

    def looked_up(self, x: object, key: Callable[[Any], Any], name: str) -> None:
        """What a function without effects says of an object."""
        self.guard(GuardKind.CHECK, x, key, key(x), (GuardKind.CHECK, name))

    def changed_in_place(self, x: Any) -> bool:
        """Guard what C lets change in place, if `x` is of that kind: the content of a buffer, the field names of a dtype."""
        if not isa(x, CHANGED_IN_PLACE):
            return False
        if content_in_place(x) != ():
            self.looked_up(x, content_in_place, "whole")
        return True

    def attribute(self, x: Any, name: str) -> None:
        """An attribute that code asks for."""
        kind = type(x)
        self.changed_in_place(x)
        if isa(x, ModuleType):
            self._of_module(x, name)
        elif isa(x, type):
            self._of_type(x, name)
        elif kind is MethodType:
            self.attribute(x.__func__, name)
        elif isa(x, super):
            self._of_super(x, name)
        elif isa(x, VALUES):
            if name in ("base", "data_ptr"):
                self.refuse(f"it asks where a value lies ({name}), which has memory of its own here")
            self.check_type(x, lambda stands_for: has_attribute(name) == hasattr(stands_for, name))
            inside = attributes_of(x)
            if type(inside) is dict and name in inside:
                self.guard(GuardKind.INSTANCE, x, name, inside[name])
            self.type_of(x)
            if isa(x, Tensor):
                self.of_class(kind, name)
                if name in _OF_TENSORS:
                    self.recorder.bring(x)  # its layout and history are looked at then
                if name == "_version":
                    self._by_asking(x, name)
        elif isa(x, ndarray):
            if name in ("dtype", "itemsize", "nbytes", "strides", "flags"):
                self.check_holder(x, "asks how numbers are kept in")
            self.array(x, name in _SHOWING_NUMBERS)
            if lookup(kind, name) is vars(ndarray).get(name) and isa(vars(ndarray)[name], types.GetSetDescriptorType):
                self.of_class(kind, name)
            elif attributes_of(x) or not is_library_class(kind):
                self._of_instance(x, kind, name)
        elif not isa(x, OURS) and not (isa(x, CONSTANT) and kind.__dictoffset__ == 0 and is_fixed(kind)):
            self._of_instance(x, kind, name)

    def _of_module(self, x: ModuleType, name: str) -> None:
        """A name in a module: also one of a library's, which tests replace."""
        if x is warnings and name in _HELD_WHILE_RECORDING:
            self.refuse(f"it looks at warnings.{name}, which is another one while a function is recorded: {INSTEAD}")
        if is_constant_module(x.__name__) and name not in vars(x):
            with warnings.catch_warnings(), contextlib.suppress(Exception):
                warnings.simplefilter("ignore")
                getattr(x, name)  # libraries load parts of theirs when they are asked for
        found = self.item(vars(x), name)
        if found is MISSING:
            self.item(vars(x), "__getattr__")
        if not is_constant_module(x.__name__):
            self.guard(GuardKind.CLASS, x, None, type(x))
            self.of_class(type(x), name)

    def _of_type(self, x: type, name: str) -> None:
        self.type_of(x)
        self.type_of(self.of_class(type(x), name))
        if name == "__flags__":
            self._by_asking(x, name)
        self.type_of(self.of_class(x, name))

    def _of_super(self, x: Any, name: str) -> None:
        self.type_of(x.__self__)
        self.of_class(x.__self_class__, name)

    def _of_instance(self, x: object, kind: type, name: str) -> None:
        if isa(x, random_types()):
            if name == "state" and id(x) not in self.made:
                self.refuse("it looks at the state of a generator of random numbers")
            return  # of which every call is looked at
        if has_numbers(kind):
            self.handed(x, [])  # whose attributes come about in code that is not looked into
            return
        if kind.__module__.partition(".")[0] == "chainrule" and is_library(kind.__module__):
            return  # contexts of backward functions, handles
        found = self.of_class(kind, name)
        self.type_of(x)
        self.type_of(found)
        if is_library_class(kind) and isa(found, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return
        if lookup(kind, "__getattribute__") is not object.__getattribute__ and not isa(
            x, (FunctionType, BuiltinFunctionType, functools.partial, *CONTAINERS)
        ):
            if is_python(x, "__getattribute__"):
                return  # whose instructions are looked at
            self._by_asking(x, name)
            return
        if isa(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            if name == "__dict__":
                self.guard(GuardKind.INSTANCE, x, None, attributes_of(x), "__dict__")
            elif name != "__class__":
                self._by_asking(x, name)
        elif found is MISSING or not hasattr(type(found), "__set__"):
            inside = attributes_of(x)
            if type(inside) is dict:
                value = inside.get(name, MISSING)
                self.guard(GuardKind.INSTANCE, x, name, value)
                if value is MISSING and found is MISSING:
                    self.of_class(kind, "__getattr__")
        elif not isa(found, property) and is_library_class(type(found)) and not is_python(found, "__get__"):
            self._by_asking(x, name)

    def _by_asking(self, x: object, name: str) -> None:
        """An attribute that C computes: it is asked for again, if that has a meaning."""
        self.guard(
            GuardKind.CHECK, x, functools.partial(attribute_or_missing, name=name), attribute_or_missing(x, name), name
        )

    def operand(self, x: Any, arrays: list[object], seen: set[int] | None = None) -> None:
        """Something that an operator or function of Python's computes with: containers as a whole, plain arrays noted."""
        x = shown_by(x)
        self.passed(x)
        if type(x) is ndarray:
            arrays.append(x)
        elif isa(x, slice):
            for part in (x.start, x.stop, x.step):
                self.operand(part, arrays)
        elif isa(x, CONTAINERS):
            self._deep(x, arrays, self.operand, seen)
        elif self.changed_in_place(x):
            return
        elif is_iterator(x):
            self.iterator(x)
            arrays += given_by(x)
        elif isa(x, decimal.Decimal):
            self.looked_up(decimal.getcontext, digits_of_decimals, "digits")
        elif isa(x, BaseException):
            self._by_asking(x, "args")
            self.operand(attribute_or_missing(x, "args"), arrays, seen)
        elif isa(x, (*CONSTANT, *OURS)):
            return
        elif isa(x, ndarray) or is_opaque(type(x)) or (type(x).__module__ != "builtins" and is_library_class(type(x))):
            self.handed(x, arrays, seen)

    def held(self, x: object, arrays: list[object]) -> None:
        """Something whose elements are put into a container as they are."""
        if is_iterator(x):
            self.iterator(x)
            arrays += given_by(x, computed=True)
        else:
            self.operand(x, arrays)

    def handed(self, x: Any, arrays: list[object], seen: set[int] | None = None) -> None:
        """Something that code is given which is not looked into."""
        x = shown_by(x)
        self._whole_class(x)
        if type(x) is ndarray:
            arrays.append(x)
        elif self.changed_in_place(x):
            return
        elif isa(x, functools.partial):
            for part in (*x.args, *x.keywords.values()):
                self.handed(part, arrays, seen)
        elif isa(x, CONTAINERS):
            self._deep(x, arrays, self.handed, seen)
        elif isa(x, FunctionType):
            self.guard(GuardKind.FUNCTION, x, None, function_parts(x))
        elif isa(x, (*CONSTANT, *OURS, MethodType)) or is_library_context(x) or is_lock(x):
            return
        elif is_iterator(x):
            self.iterator(x)
        elif not is_called(x):
            self.whole_object(x)

    def whole_object(self, x: object) -> None:
        """All attributes of an object, and of the objects in it."""
        try:
            parts: list[Any] = []
            self.guard(GuardKind.CHECK, x, snapshot, snapshot(x, parts), "whole")
            for part in parts:
                self._whole_class(part)
        except Unknown as unknown:
            a = "an" if str(unknown)[:1] in "aeiou" else "a"
            self.refuse(f"it uses {a} {unknown}, whose state is not known: pass what it needs as arrays and numbers")

    def _whole_class(self, x: object) -> None:
        """Code that is not looked into may read any attribute that an object, or class, has from its class."""
        for content in (*self.type_of(x), *(self.contents_of(x) if isa(x, type) else ())):  # type: ignore[arg-type]
            content.whole = True
            self.registrations()

    def registrations(self) -> None:
        """Code that is not looked into may look whether an object is of an abstract class."""
        self.guard(GuardKind.REGISTERED, get_cache_token, None, registration(object, None))

    def _deep(self, x: object, arrays: Sequence[object], each: Callable[..., None], seen: set[int] | None) -> None:
        seen = set() if seen is None else seen
        if id(x) not in seen:
            seen.add(id(x))
            self.whole(x)
            for part in elements(x):
                if type(part) not in IMMUTABLE:
                    each(part, arrays, seen)

    def iterator(self, x: object) -> None:
        """Something that is used up."""
        if id(x) not in self.made and not isa(x, OURS):
            self.refuse(
                "it goes on with an iterator that was made outside of it: pass a list, or make the iterator inside"
            )

    def consumed(self, x: Any) -> None:
        """A plain array whose numbers code computed with, unrecorded."""
        self.check_not_written(x)
        if self.array(x, with_numbers=True) and x.dtype.hasobject:
            arrays: list[object] = []
            for part in flat((as_tuples(x.tolist()),), depth=x.ndim + 9):
                self.operand(part, arrays)
            for each in arrays:
                self.consumed(each)

    def check_not_written(self, x: object) -> None:
        for _, var in self.recorder.written.values():
            if np.may_share_memory(var.array, x):
                self.refuse(
                    "it writes memory, and reads it as an array that is none of its values: use one name for both"
                )

    def iterated(self, x: object) -> None:
        """Something whose elements code goes through."""
        x = shown_by(x)
        self.passed(x)
        if isa(x, CONTAINERS):
            self.whole(x)
        elif type(x) is ndarray:
            self.check_not_written(x)
            self.array(x, with_numbers=True)
        elif isa(x, ndarray):
            self.handed(x, [])
        elif self.changed_in_place(x):
            return
        elif is_iterator(x):
            self.iterator(x)
            for each in given_by(x, computed=True):
                self.consumed(each)
        elif not isa(x, (*CONSTANT, *OURS)) and is_library_class(type(x)) and type(x).__module__ != "builtins":
            self.handed(x, [])

    def element(self, x: Any, key: object) -> None:
        """An element is read."""
        x = shown_by(x)
        if isa(x, dict):
            try:
                hash(key)
            except TypeError:  # which Python says itself
                return
            found = self.item(x, key)
            if found is MISSING and isa(x, collections.defaultdict):
                self.changed_container(x)
        elif isa(x, types.MappingProxyType):
            self.looked_up(x, functools.partial(get_or_missing, key=key), repr(key))
        elif isa(x, (list, collections.deque)):
            if type(key) is int and len(x) > 64:
                self.guard(
                    GuardKind.CHECK, x, functools.partial(element_or_missing, key=key), element_or_missing(x, key), key
                )
            else:
                self.whole(x)
