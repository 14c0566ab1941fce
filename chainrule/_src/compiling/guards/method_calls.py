"""Handle calls of C methods that a traced function is about to make: guard the state that they read, note the objects that they change.

``calls`` derives from ``Methods`` and calls ``note_method_call``.
"""

from __future__ import annotations

import _string
import codecs
import collections
import contextlib
import contextvars
import datetime
import functools
import re
import types
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from chainrule._src.arrays.types import Params
from chainrule._src.compiling.guards.effect_tables import (
    BUFFERS,
    C_DESCRIPTORS,
    CONSTANT,
    CONTAINERS,
    OF_CLASSES,
    ORDERED_VIEWS,
    READ_ONLY_METHODS,
    VIEWS,
    is_lock,
    method_changes,
)
from chainrule._src.compiling.guards.frames import Stack
from chainrule._src.compiling.guards.guards import IMMUTABLE, class_attribute, elements_of
from chainrule._src.compiling.guards.log import INSTEAD
from chainrule._src.compiling.guards.objects import (
    CHAINRULE_TYPES,
    VALUES,
    are_plain,
    called_again,
    context_value,
    flat_items,
    has_class,
    is_iterator,
    module_of,
    random_types,
    value_by,
)
from chainrule._src.compiling.guards.reads import Reads

ndarray = np.ndarray
_STORING_METHODS = frozenset({"append", "appendleft", "insert", "__setitem__", "setdefault", "pop", "sort"})
_TEXT_METHODS = frozenset({"__repr__", "__str__", "__format__"})
_OBJECT_METHODS = frozenset({"__eq__", "__ne__", "__hash__"}) | _TEXT_METHODS
_LOCAL_PARTS = re.compile("%[-#]?[aAbBcpxX]")  # of a date
_OF_LOCAL_TIME = frozenset({"timestamp", "astimezone"})
DRAW = (
    "it draws random numbers from a generator of NumPy or Python: draw with chainrule (rand, randn ...), or pass the numbers as "
    "an argument"
)


def function_name(function: object) -> str:
    """Return the name of a function, for a message."""
    module = module_of(function)
    return f"{module + '.' if module and module != 'builtins' else ''}{getattr(function, '__name__', type(function).__name__)}"


def makes_text(function: Any) -> bool:
    """Return whether a function makes texts of its arguments."""
    if has_class(getattr(function, "__self__", None), str):
        return function.__name__ in ("format", "format_map", "__mod__")
    return any(function is each for each in (str, repr, format, ascii))


def text_method(text: str) -> str:
    """Return the special method that makes the texts which a format string contains."""
    return "__repr__" if any(part in text for part in ("%r", "%a", "!r", "!a")) else "__str__"


def _elements_of(x: Any) -> Sequence[object]:
    """Return the elements of a container; of a dictionary the keys."""
    if has_class(x, (*VIEWS, *ORDERED_VIEWS)):
        return list(x)
    return elements_of(x)[:: 2 if has_class(x, (dict, types.MappingProxyType)) else 1]


#: types of objects whose Python code C code does not call
_WITHOUT_CODE = (*CONSTANT, *CHAINRULE_TYPES, *BUFFERS, ndarray)


def _runs_code(x: object) -> bool:
    """Return whether C code that reads an object may call Python code of its class."""
    return not has_class(x, _WITHOUT_CODE) or (has_class(x, ndarray) and x.dtype.hasobject)  # type: ignore[attr-defined]


class Methods(Reads):
    """A log with calls of C methods."""

    def note_operands(self, stack: Stack, operands: Sequence[object], each: Any = None) -> None:
        """Note the operands that an instruction is about to read.

        Args:
            each: notes one operand; ``note_operand`` by default.
        """
        if are_plain(operands):
            return
        arrays: list[Any] = []
        each = self.note_operand if each is None else each
        for x in operands:
            if type(x) not in IMMUTABLE:
                each(x, arrays)
        runs_code = any([_runs_code(x) for x in operands])
        if arrays or runs_code:
            mixed = any(has_class(x, VALUES) for x in flat_items(operands))
            receive = self.note_consumed if each == self.note_stored else self.note_returned_to_c
            self.expect(arrays, mixed=mixed, receive=receive if runs_code else None)

    def note_applied_now(self, function: Any, each: object) -> None:
        """Note a function that a C function calls with each element of an iterable, before it returns."""
        self.note_iteration(each)
        if type(each) is types.GeneratorType:
            self.expect(receive=functools.partial(self._note_generated, function))
        else:
            is_container = has_class(each, (*CONTAINERS, *VIEWS, *ORDERED_VIEWS))
            self.note_possible_call(function, [[x] for x in _elements_of(each)] if is_container else None)
        if makes_text(function):
            self.note_text([each])

    def _note_generated(self, function: object, x: object, arrays: list[Any]) -> None:
        """Note an element of a generator on which a C function calls another function."""
        self.note_returned_to_c(x, arrays)
        self.note_possible_call(function, [[x]])

    def note_written(self, targets: Sequence[object]) -> None:
        """Note the plain arrays that are about to be written."""
        for x in flat_items(targets):
            if type(x) is ndarray:
                self.note_container_change(x)

    def guard_codec(self, args: Sequence[object], keywords: Params) -> None:
        """Guard the encoding and the error handler of a conversion, which programs can register by name."""
        names: Params = dict(zip(("encoding", "errors"), args, strict=False)) | keywords
        for find, name in ((codecs.lookup, "encoding"), (codecs.lookup_error, "errors")):
            if has_class(names.get(name), str):
                with contextlib.suppress(LookupError):  # the instruction raises it, too
                    again = functools.partial(called_again, args=(names[name],), keywords={})
                    self.guard_check(find, again, names[name])
                    handler: Any = find(names[name]) if name == "errors" else None
                    if not (has_class(handler, BuiltinFunctionType) and handler.__self__ is None):  # Python's own
                        self.note_possible_call(handler)

    def note_method_call(
        self, stack: Stack, function: Any, x: Any, name: str, args: list[Any], keywords: Params
    ) -> None:
        """Note a call of a C method that is about to happen, by the type of the object."""
        if name == "__call__":
            self.note_call(stack, x, args, keywords)
        elif has_class(x, ndarray):
            self._note_array_method(stack, x, name, args, keywords)
        elif has_class(x, CHAINRULE_TYPES):
            self.note_operands(stack, [*args, *keywords.values()], each=self.note_passed_to_library)
        elif has_class(x, np.ufunc):
            self.note_written([keywords.get("out"), *args[(0 if name == "at" else 3) :]])
            self.note_operands(stack, [*args, *keywords.values()], each=self.note_passed_to_library)
        elif name in OBJECT_METHODS and OBJECT_METHODS[name](self, stack, x, name, args, keywords):
            return
        elif has_class(x, (list, dict, set, collections.deque)):
            self._note_container_method(stack, x, name, args, keywords)
        elif has_class(x, BUFFERS):
            if name not in READ_ONLY_METHODS:
                self.refuse(
                    f"it may write into a {type(x).__name__} ({name}), which a replay cannot repeat: use a NumPy array"
                )
            self.guard_mutable_content(x)
        elif has_class(x, (*CONSTANT, *CONTAINERS, *VIEWS, *ORDERED_VIEWS)):
            self._note_constant_method(stack, function, x, name, args, keywords)
        else:
            self._note_other_method(x, name)

    def _note_array_method(self, stack: Stack, x: Any, name: str, args: list[Any], keywords: Params) -> None:
        if type(x) is ndarray:
            if method_changes(x, name):
                self.note_written([x])
            self.note_written([keywords.get("out")])
        elif method_changes(x, name):
            self.refuse(f"it writes into a {type(x).__name__}, which a replay cannot repeat")
        self.note_operands(stack, [x, *args, *keywords.values()], each=self.note_passed_to_library)

    def _note_constant_method(
        self, stack: Stack, function: Any, x: Any, name: str, args: list[Any], keywords: Params
    ) -> None:
        """Note a method of an object that cannot change, of a class, or of a view of a container."""
        if has_class(x, datetime.datetime) and name in _OF_LOCAL_TIME and (x.tzinfo is None or not args):
            self.refuse(f"it reads the local time zone ({name}), which compile cannot guard")
        if has_class(x, datetime.date) and (name == "strftime" or (name == "__format__" and any(args))):
            self.check_format_spec(str(args[0]) if args else "")
        if has_class(x, str) and name in ("format", "format_map", "__mod__"):
            self.check_fields(x, name)
            self.note_text([*args, *keywords.values()], text_method(x))
        if name in ("encode", "decode"):
            self.guard_codec(args, keywords)
        if has_class(x, type) and name not in OF_CLASSES and name not in _OBJECT_METHODS:
            self.refuse(f"it calls {function_name(function)}, which depends on more than its arguments: {INSTEAD}")
        if name in _TEXT_METHODS:
            self.note_text([x], name)
        if name in ("__iter__", "__reversed__"):
            self.expect(result_is_new=True)
        self.note_operands(stack, [x, *args, *keywords.values()])

    def _note_other_method(self, x: Any, name: str) -> None:
        if is_iterator(x):
            self.check_iterator(x)
        elif has_class(x, contextvars.ContextVar):
            if name != "get":
                self.refuse("it sets a ContextVar, which a replay cannot repeat")
            self.guard_check(x, context_value, "value")
        elif name in _TEXT_METHODS:
            self.note_text([x], name)
        elif (is_lock(x) and name != "locked") or name in _OBJECT_METHODS:
            return
        elif has_class(x, random_types()):
            if id(x) not in self.made:
                self.refuse(DRAW)
        else:
            self.refuse(
                f"it calls {type(x).__name__}.{name}, which depends on, or changes, state that compile cannot see: {INSTEAD}"
            )

    # The functions in OBJECT_METHODS. They return False for arguments that are noted by the type of the object.

    def _note_getattribute(self, stack: Stack, x: Any, name: str, args: list[Any], keywords: Params) -> bool:
        if args:
            self.guard_attribute(x, args[0])
        return bool(args)

    def _note_setattr_method(self, stack: Stack, x: Any, name: str, args: list[Any], keywords: Params) -> bool:
        if args and not self.note_descriptor_set(class_attribute(type(x), args[0]), x, *args[1:]):
            self.note_attribute_change(x, args[0])
        return bool(args)

    def _note_descriptor_method(self, stack: Stack, x: Any, name: str, args: list[Any], keywords: Params) -> bool:
        if args:
            self._note_descriptor_call(x, name, args)
        return bool(args)

    def _note_construction_method(self, stack: Stack, x: Any, name: str, args: list[Any], keywords: Params) -> bool:
        if has_class(x, CONTAINERS) and (args or keywords):
            self.note_container_change(x)
        self.note_operands(stack, [*args, *keywords.values()])
        return True

    def _note_copy_method(self, stack: Stack, x: Any, name: str, args: list[Any], keywords: Params) -> bool:
        if has_class(x, CONTAINERS):
            self.note_passed_to_library(x, [])
        else:
            self.guard_whole_object(x)
        self.expect(result_is_new=True)
        return True

    def check_fields(self, text: str, name: str) -> None:
        """Refuse a format string that reads attributes or depends on the locale."""
        try:
            fields = (
                [] if name == "__mod__" else [part for part in _string.formatter_parser(text) if part[1] is not None]
            )
        except ValueError:  # the instruction raises it, too
            return
        for _, field, spec, _ in fields:
            if any([by_name for by_name, _ in _string.formatter_field_name_split(field)[1]]):
                self.refuse(f"it has str.format read {{{field}}}, which compile cannot guard: use an f-string")
            self.check_format_spec(spec)

    def check_format_spec(self, spec: str) -> None:
        """Refuse a format specification that depends on the locale."""
        if spec.endswith("n") or _LOCAL_PARTS.search(spec):
            self.refuse("it formats a number or a date by the locale, which compile cannot guard")

    def _note_descriptor_call(self, x: Any, name: str, args: Sequence[Any]) -> None:
        """Note a call of a C descriptor that reads, sets or deletes an attribute."""
        if name != "__get__":
            if not self.note_descriptor_set(x, *args):
                self.note_attribute_change(args[0], x.__name__)
        elif has_class(x, C_DESCRIPTORS):
            if x.__name__ == "__dict__":
                self.guard_attribute(args[0], "__dict__")
            elif args[0] is not None:
                self.guard_check(args[0], functools.partial(value_by, descriptor=x), f"{x.__objclass__} {x.__name__}")
        else:
            self.note_descriptor_get(x, args[0], args[1] if len(args) > 1 else type(args[0]))

    def _note_container_method(self, stack: Stack, x: Any, name: str, args: Sequence[object], keywords: Params) -> None:
        if method_changes(x, name):
            if name in ("pop", "setdefault", "popitem", "popleft", "remove"):
                self.guard_elements(x)
                if has_class(x, set) and name == "pop":
                    self.refuse("it removes an arbitrary element of a set (pop), which compile cannot undo")
            elif name == "sort":
                self.note_operands(stack, [x])
                self.note_applied_now(keywords.get("key"), x)
            if name == "__setitem__" and len(args) == 2:
                self.note_item_write(x, *args)
            self.note_container_change(x)
            if name not in _STORING_METHODS:
                self.note_operands(stack, [*args, *keywords.values()], each=self.note_stored)
            return
        if has_class(x, dict) and name in ("get", "__contains__") and args:
            self.note_special_functions(x)
            self.guard_key(x, args[0])
        elif has_class(x, (dict, list)) and name == "__getitem__" and args:
            self.guard_element(x, args[0])
        elif has_class(x, collections.defaultdict) and name == "__missing__":
            self.note_container_change(x)
            self.note_implicit_call(x.default_factory)
        elif name == "__len__":
            self.guard_length(x)
        else:
            self.guard_elements(x)
            if name in ("__iter__", "__reversed__"):
                self.expect(result_is_new=True)
            elif name not in ("keys", "values", "items", "copy"):
                self.note_operands(stack, [x, *args])


#: the name of a method that objects of all types may have -> the method that notes its calls
OBJECT_METHODS: dict[str, Callable[[Methods, Stack, Any, str, list[Any], Params], bool]] = {
    **dict.fromkeys(("__getattribute__", "__getattr__"), Methods._note_getattribute),
    **dict.fromkeys(("__setattr__", "__delattr__"), Methods._note_setattr_method),
    **dict.fromkeys(("__get__", "__set__", "__delete__"), Methods._note_descriptor_method),
    **dict.fromkeys(
        ("__init__", "__init_subclass__", "__new__", "__class_getitem__", "__subclasshook__", "mro"),
        Methods._note_construction_method,
    ),
    **dict.fromkeys(("__reduce_ex__", "__getstate__"), Methods._note_copy_method),
}
