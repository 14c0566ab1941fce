"""What a call is about to do, as far as it can be known."""

from __future__ import annotations

import _string
import abc
import collections
import contextvars
import datetime
import functools
import importlib
import operator
import sys
import types
import weakref
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.compiling.state.frames import Stack
from chainrule._src.compiling.state.guards import IMMUTABLE, lookup
from chainrule._src.compiling.state.known import (
    BUFFERS,
    CONSTANT,
    CONTAINERS,
    HEAP_TYPE,
    IMPURE,
    ITERATOR_MAKERS,
    MAKERS,
    ORDERED_VIEWS,
    READING,
    VIEWS,
    WRITERS,
    WRITTEN,
    changes,
    has_numbers,
    is_library,
    is_library_class,
    is_lock,
    is_pure,
    module_of_code,
    puts,
)
from chainrule._src.compiling.state.log import INSTEAD
from chainrule._src.compiling.state.objects import (
    OURS,
    VALUES,
    are_plain,
    called_again,
    context_value,
    flat,
    is_iterator,
    is_python,
    isa,
    module_of,
    random_types,
)
from chainrule._src.compiling.state.reads import Reads
from chainrule._src.tape.numbers import ASKED, number

ndarray = np.ndarray
_OF_C = (BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType, types.WrapperDescriptorType, type)
SHARING = (np.shares_memory, np.may_share_memory)
_GETTERS = (operator.attrgetter, operator.methodcaller)  # that read what only they know
# Functions of NumPy's.
_STATELESS = frozenset({"_ArrayFunctionDispatcher", "cython_function_or_method", "fused_cython_function"})


_OF_ALL_OBJECTS = frozenset({"__eq__", "__ne__", "__hash__", "__repr__", "__str__", "__format__"})
_OF_LOCAL_TIME = frozenset({"timestamp", "astimezone"})
_OF_CLOCKS = frozenset({"now", "today"})
DRAW = (
    "it draws random numbers from a generator of NumPy's or Python's: draw with chainrule (rand, randn ...), or pass the numbers as "
    "an argument"
)


def _asked(holder: object, function: AnyFunction, args: tuple[int | str, ...]) -> Any:
    return function(holder, *args)


def _is_gone(reference: Any) -> bool:
    return reference() is None


def _parts(function: Any) -> tuple[Any, ...]:
    """What a partial function is made of."""
    return (function.func, *function.args, *[part for item in function.keywords.items() for part in item])


def _consists_of(function: object, parts: tuple[object, ...]) -> bool:
    now = _parts(function)
    return len(now) == len(parts) and all([x is y for x, y in zip(now, parts, strict=True)])


def _is_ours(stack: Stack) -> bool:
    """Whether code of ours runs, which tells parameters apart by ``id``: they are the same in each call."""
    return module_of_code(stack.frame.f_code, stack.frame.f_globals).startswith("chainrule.")


#: objects of which C calls no Python code
_WITHOUT_CODE = (*CONSTANT, *OURS, *BUFFERS, ndarray)


class Calls(Reads):
    """A log of reads that knows what functions do."""

    def computes(self, stack: Stack, operands: Sequence[object], each: Any = None) -> None:
        """An instruction is about to compute with these."""
        arrays: list[Any] = []
        each = self.operand if each is None else each
        for x in operands:
            if type(x) not in IMMUTABLE:
                each(x, arrays)
        takes = not all([isa(x, _WITHOUT_CODE) for x in operands])
        if takes:
            self.taker = stack  # what Python code gives to C from here on is computed with, too
        if arrays or takes:
            before, mixed, makes = stack.pending or ([], False, False)
            mixed = mixed or any(isa(x, VALUES) for x in flat(operands))
            stack.pending = [*before, *arrays], mixed, makes

    def calls(self, stack: Stack, function: Any, args: list[Any], keywords: Params) -> None:
        """A call is about to happen."""
        kind = type(function)
        if kind is np.ufunc and not keywords and len(args) == function.nin and are_plain(args):
            return
        if kind is not MethodType and kind is not FunctionType and function is not weakref.ref:
            for x in (function, *args, *keywords.values()):
                self.passed(x)
        if kind is MethodType:
            self.calls(stack, function.__func__, [function.__self__, *args], keywords)
        elif kind is FunctionType:
            module = module_of_code(function.__code__, function.__globals__)
            if module == "warnings":
                self.refuse("it warns, or changes how warnings are shown, which no recording repeats")
            if function is number:
                return  # which the recording reads in each call
            if function is importlib.import_module and args:
                self.item(sys.modules, args[0])
            if function in ASKED:
                again = functools.partial(_asked, function=function, args=tuple(args[1:]))
                self.looked_up(args[0], again, repr((function.__name__, args[1:])))
                return
            if is_library(module):
                self._check_pure(function)
                self.computes(stack, [*args, *keywords.values()], each=self.handed)
            else:
                stack.pending = [], False, bool(function.__code__.co_flags & 0x20)
        elif isa(function, functools.partial):
            self.looked_up(function, functools.partial(_consists_of, parts=_parts(function)), "parts")
            self.calls(stack, function.func, [*function.args, *args], {**function.keywords, **keywords})
        elif isa(function, type):
            self._make(stack, function, args, keywords)
        elif isa(function, np.ufunc) or module_of(function).partition(".")[0] in (
            "numpy",
            "scipy",
            "pandas",
            "chainrule",
        ):
            self._call_library(stack, function, args, keywords)
        elif isa(function, BuiltinFunctionType) or kind in (types.MethodWrapperType, functools._lru_cache_wrapper):
            self._call_builtin(stack, function, args, keywords)
        elif isa(function, (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)):
            if args:
                self._method(stack, function, args[0], function.__name__, args[1:], keywords)
        elif kind is weakref.ref:
            self.drop_what_is_alone()  # an object that only the log keeps is gone
            self.looked_up(function, _is_gone, "referent")  # a guard that held it would keep it
        elif is_python(function, "__call__"):
            self.attribute(function, "__call__")
        elif isa(lookup(kind, "__call__"), FunctionType):
            self.computes(stack, [function, *args, *keywords.values()], each=self.handed)
        elif kind in (operator.itemgetter, operator.attrgetter, operator.methodcaller):
            self._by_getter(stack, function, args)
        elif not is_lock(function):
            self.refuse(f"it calls {_called(function)}, of which it is not known what it depends on")

    def _check_pure(self, function: object) -> None:
        """Refuse functions of libraries that read files, write them, or change settings."""
        self.unwatched = self.unwatched or module_of(function).partition(".")[0] not in ("numpy", "chainrule")
        name = getattr(function, "__name__", "")
        if name in IMPURE or f"{module_of(function)}.{name}" in IMPURE:
            self.refuse(f"it calls {_called(function)}, which reads or changes what is outside of it: {INSTEAD}")

    def _by_getter(self, stack: Stack, function: object, args: Sequence[object]) -> None:
        if isa(function, operator.methodcaller) and args:
            made: Any = function.__reduce__()
            name, *given = made[1] if made[0] is operator.methodcaller else made[0].args
            keywords = {} if made[0] is operator.methodcaller else made[0].keywords
            self.attribute(args[0], name)
            method = getattr(args[0], name, None)
            if method is not None:
                self.calls(stack, method, given, keywords)
        elif isa(function, operator.attrgetter) and args:
            at = args[0]
            for name in function.__reduce__()[1]:
                for part in name.split("."):
                    self.attribute(at, part)
                    at = getattr(at, part, None)
        else:
            self.computes(stack, args)

    def _make(self, stack: Stack, cls: type, args: Sequence[object], keywords: Params) -> None:
        given = [*args, *keywords.values()]
        if cls.__module__ == "warnings" or (cls is np.datetime64 and not _OF_CLOCKS.isdisjoint(map(str, given))):
            self.refuse(f"it makes a {cls.__name__}, which depends on, or changes, what no recording sees")
        if issubclass(cls, weakref.ref) and len(args) > 1 and args[1] is not None:
            self.refuse("it makes a weak reference that calls something later, when no recording sees it")
        if cls in ITERATOR_MAKERS or cls.__module__ == "itertools":
            for x in given:
                self.iterated(x)
            if cls is filter or cls.__module__ == "itertools":  # which compare, or take apart, what is in there
                self.computes(stack, given[cls is filter :])
            self._applied(stack, given)
            stack.pending = *(stack.pending or ([], False))[:2], True
        elif cls.__module__ == "numpy.random" or issubclass(cls, random_types()):
            self._random(stack, given)
        elif cls in MAKERS or cls.__module__ in ("builtins", "collections", "functools", "operator", "types"):
            if cls is type and len(args) == 1:
                self.check_type(args[0], lambda stands_for: False)
                return
            if cls is str:
                self.formats(given)
            self.computes(stack, given, each=self.held if cls in (*CONTAINERS, collections.OrderedDict) else None)
            if cls in (*CONTAINERS, collections.OrderedDict):
                self.taker = None  # Python sees what becomes of them
        elif issubclass(cls, BaseException):
            return
        elif cls.__module__.partition(".")[0] in ("numpy", "scipy", "pandas", "chainrule"):
            self.computes(stack, given, each=self.handed)
        elif not cls.__flags__ & HEAP_TYPE:
            self.refuse(f"it makes a {cls.__name__}, of which it is not known what it depends on")
        elif not is_library_class(cls) and isa(lookup(cls, "__del__"), FunctionType):
            self.refuse(f"it makes a {cls.__name__}, whose __del__ runs when no recording sees it")
        if issubclass(cls, type):
            stack.pending = [], False, True

    def _applied(self, stack: Stack, given: list[Any]) -> None:
        """Functions of C's among arguments, which C calls with the elements of the others."""
        functions = [x for x in given if isa(x, (*_OF_C, *_GETTERS)) and not isa(x, np.ufunc)]
        if not functions:
            return
        for function in functions:
            receiver = getattr(function, "__self__", None)
            if (
                isa(function, _GETTERS)
                or changes(receiver, function.__name__)
                or any(function is asking for asking in (getattr, setattr, delattr, next))
                or not (is_pure(function) or isa(receiver, (*CONTAINERS, str)) or isa(function, type))
            ):
                self.refuse(
                    f"it has C call {_called(function)}, of which no recording sees what it reads: write a loop"
                )
            self.formats(given if function in (str, repr, format, ascii) else [])
            self.operand(receiver, [])
        self.computes(stack, [x for x in given if not is_iterator(x)])

    def _random(self, stack: Stack, given: Sequence[object]) -> None:
        if not given or not all(isa(x, (int, np.integer)) for x in flat(given)):
            self.refuse(DRAW)  # it starts from the system's entropy
        stack.pending = [], False, True

    def _call_library(self, stack: Stack, function: Any, args: list[Any], keywords: Params) -> None:
        self._check_pure(function)
        if function in SHARING and any(isa(x, VALUES) for x in args):
            self.refuse("it asks whether its values share memory, which they may do in another call")
        if function is np.arange and any(isa(x, VALUES) for x in args):
            self.refuse(
                "it has np.arange take a value of its own, whose type is another one here: use int(n), float(x)"
            )
        receiver = getattr(function, "__self__", None)
        if args and isa(args[0], random_types()):  # a method of Cython's, which is not bound
            receiver = args[0]
        if isa(receiver, random_types()) or module_of(function).startswith("numpy.random"):
            if getattr(function, "__name__", "") == "default_rng":
                self._random(stack, [*args, *keywords.values()])
            elif receiver is None or id(receiver) not in self.made:
                self.refuse(DRAW)
            elif function.__name__ == "shuffle" and args and not isa(args[0], OURS):
                self.changed_container(args[0])
            self._written([keywords.get("out")])
            return
        if isa(receiver, ndarray):
            self._method(stack, function, receiver, function.__name__, args, keywords)
            return
        targets = [keywords.get("out")]
        if isa(function, np.ufunc):
            targets += args[function.nin :]
        if any(function is writer for writer in WRITERS) or getattr(function, "__name__", "") in ("at", "shuffle"):
            targets.append(args[0] if args else keywords.get("a"))
        self._written(targets)
        inner = [] if receiver is None or isa(receiver, (ModuleType, type)) else [receiver]
        kind = type(function)
        ours = kind.__module__.partition(".")[0] == "chainrule" and not has_numbers(kind)
        if not ours and kind.__name__ not in _STATELESS and not isa(function, (np.ufunc, BuiltinFunctionType)):
            inner.append(function)
        self.computes(stack, [*inner, *args, *keywords.values()], each=self.handed)

    def _written(self, targets: Sequence[object]) -> None:
        for x in flat(targets):
            if type(x) is ndarray:
                self.changed_container(x)

    def _put(self, stack: Stack, function: object, args: list[Any]) -> None:
        """A function of C's is about to write into its first argument, or one with a format into its second."""
        x = args[module_of(function) == "_struct"] if len(args) > 1 else args[0] if args else None
        if isa(x, BUFFERS):
            self.refuse(f"it writes into a {type(x).__name__}, which no recording repeats: use an array of NumPy's")
        always = module_of(function) != "_operator" or _called(function).endswith("item")
        if not isa(x, OURS) and (always or (isa(x, (*WRITTEN, ndarray)) and not isa(args[-1], OURS))):
            self.changed_container(x)
        self.computes(stack, args)

    def _call_builtin(self, stack: Stack, function: object, args: list[Any], keywords: Params) -> None:
        receiver, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        if isa(function, functools._lru_cache_wrapper):
            if not any(isa(x, OURS) for x in flat([*args, *keywords.values()])):
                again = functools.partial(called_again, args=tuple(args), keywords=keywords)
                self.looked_up(function, again, repr((args, keywords)))  # which finds it there, as the function would
            return
        if receiver is not None and not isa(receiver, (ModuleType, type)):
            self._method(stack, function, receiver, name, args, keywords)
            return
        if function is abc.get_cache_token:
            self.looked_up(function, operator.call, "token")
            return
        if not is_pure(function) and not (function is id and _is_ours(stack)):
            if puts(function):
                self._put(stack, function, args)
                return
            self.refuse(
                f"it calls {_called(function)}, which depends on, or changes, more than its arguments: {INSTEAD}"
            )
        builtin = module_of(function) == "builtins"
        if builtin and name in ("getattr", "hasattr") and len(args) > 1 and isa(args[1], str):
            self.attribute(args[0], args[1])
        elif builtin and name in ("setattr", "delattr") and len(args) > 1:
            self.changed_attribute(args[0], args[1])
        elif builtin and name == "vars" and args:
            self.attribute(args[0], "__dict__")
        elif builtin and name == "len" and args:
            x = args[0].mapping if isa(args[0], (*VIEWS, *ORDERED_VIEWS)) else args[0]
            self.length(x)
        elif builtin and name in ("iter", "next", "sorted"):
            for x in args[:1]:
                self.iterated(x)
            if name == "sorted":
                self.computes(stack, args)
            self._applied(stack, [*args, *keywords.values()])
            makes = name == "iter" and bool(args) and not is_iterator(args[0])
            stack.pending = *(stack.pending or ([], False))[:2], makes
        elif builtin and name in ("isinstance", "issubclass") and len(args) == 2:
            x, cls = args
            if name == "issubclass":
                if isa(x, type):
                    self.is_subclass(x, cls)
                return
            self.is_instance(x, cls)
            self.check_type(x, lambda stands_for: not issubclass(type(x), cls) or issubclass(stands_for, cls))
        elif builtin and name in ("globals", "locals", "eval", "exec"):
            return
        elif builtin and name == "__build_class__":
            stack.pending = [], False, True
        else:
            if name in ("repr", "format", "ascii", "mod"):
                self.formats(args)
            if builtin and name == "format" and len(args) > 1 and isa(args[1], str):
                self.spec(args[1])
            self._applied(stack, [*args, *keywords.values()])
            self.computes(stack, [*args, *keywords.values()])
            if name in ("min", "max") and stack.pending is not None:
                for x in stack.pending[0]:  # which compare also the array that they return
                    self.consumed(x)

    def _method(self, stack: Stack, function: Any, x: Any, name: str, args: list[Any], keywords: Params) -> None:
        """A method of C's is about to be called."""
        if type(x) is ndarray:
            if changes(x, name):
                self._written([x])
            self._written([keywords.get("out")])
            self.computes(stack, [x, *args, *keywords.values()], each=self.handed)
        elif isa(x, ndarray):
            if changes(x, name):
                self.refuse(f"it writes into a {type(x).__name__}, which no recording repeats")
            self.computes(stack, [x, *args, *keywords.values()], each=self.handed)
        elif isa(x, OURS):
            self.computes(stack, [*args, *keywords.values()], each=self.handed)
        elif isa(x, np.ufunc):
            self._written([keywords.get("out"), *args[(0 if name == "at" else 3) :]])
            self.computes(stack, [*args, *keywords.values()], each=self.handed)
        elif name in ("__getattribute__", "__getattr__") and args:
            self.attribute(x, args[0])
        elif name in ("__setattr__", "__delattr__") and args:
            self.changed_attribute(x, args[0])
        elif name in ("__init__", "__init_subclass__", "__new__", "__class_getitem__", "__subclasshook__", "mro"):
            if isa(x, CONTAINERS) and (args or keywords):
                self.changed_container(x)
            self.computes(stack, [*args, *keywords.values()])
        elif isa(x, (list, dict, set, collections.deque)):
            self._method_of_container(stack, x, name, args, keywords)
        elif isa(x, type) and not is_pure(function) and not is_library_class(x):
            self.computes(stack, [*args, *keywords.values()])
        elif isa(x, BUFFERS):
            if name not in READING:
                self.refuse(
                    f"it may write into a {type(x).__name__} ({name}), which no recording repeats: use an array of NumPy's"
                )
            self.changed_in_place(x)
        elif isa(x, (*CONSTANT, *CONTAINERS, *VIEWS, *ORDERED_VIEWS)):
            if isa(x, datetime.datetime) and name in _OF_LOCAL_TIME and (x.tzinfo is None or not args):
                self.refuse(f"it asks for the local time ({name}), which no recording sees")
            if isa(x, str) and name in ("format", "format_map", "__mod__"):
                self._format(x, name)
                self.formats([*args, *keywords.values()])
            if isa(x, type) and not is_pure(function) and isa(function, BuiltinFunctionType):
                self.refuse(f"it calls {_called(function)}, which depends on more than its arguments: {INSTEAD}")
            self.computes(stack, [x, *args, *keywords.values()])
        elif is_iterator(x):
            self.iterator(x)
        elif isa(x, contextvars.ContextVar):
            if name != "get":
                self.refuse("it sets a ContextVar, which no recording repeats")
            self.looked_up(x, context_value, "value")
        elif name in ("__reduce_ex__", "__getstate__"):
            self.whole_object(x)
        elif (is_lock(x) and name != "locked") or name in _OF_ALL_OBJECTS:
            return
        elif isa(x, random_types()):
            if id(x) not in self.made:
                self.refuse(DRAW)
        else:
            self.refuse(
                f"it calls {type(x).__name__}.{name}, which depends on, or changes, what no recording sees: {INSTEAD}"
            )

    def _format(self, text: str, name: str) -> None:
        """A text with fields is about to be filled."""
        try:
            fields = (
                [] if name == "__mod__" else [part for part in _string.formatter_parser(text) if part[1] is not None]
            )
        except ValueError:  # which Python says itself
            return
        for _, field, spec, _ in fields:
            if any([by_name for by_name, _ in _string.formatter_field_name_split(field)[1]]):
                self.refuse(f"it has str.format read {{{field}}}, which no recording sees: use an f-string")
            self.spec(spec)

    def spec(self, spec: str) -> None:
        """A number is about to be written as this says."""
        if spec.endswith("n"):
            self.refuse("it formats a number as the locale has it, which no recording sees")

    def _method_of_container(
        self, stack: Stack, x: object, name: str, args: Sequence[object], keywords: Params
    ) -> None:
        if changes(x, name):
            if name in ("pop", "setdefault", "popitem", "popleft", "remove"):
                self.whole(x)
                if isa(x, set) and name == "pop":
                    self.refuse("it takes any element out of a set (pop), and no recording could put it back as it was")
            elif name == "sort":
                self._applied(stack, [x, *keywords.values()])
                self.computes(stack, [x, *keywords.values()])
            self.changed_container(x)
            for each in args:
                if isa(each, CONTAINERS) and name in ("extend", "update", "extendleft", "__ior__", "__iadd__"):
                    self.whole(each)
                elif is_iterator(each) and name in ("extend", "update", "extendleft"):
                    self.iterator(each)
            return
        if (isa(x, dict) and name in ("get", "__getitem__", "__contains__", "__missing__") and args) or (
            isa(x, list) and name == "__getitem__" and args
        ):
            self.element(x, args[0])
        elif name == "__len__":
            self.length(x)
        else:
            self.whole(x)
            if name in ("index", "count", "__contains__", "__eq__"):
                self.computes(stack, [x, *args])
            elif name == "__iter__" or name == "__reversed__":
                stack.pending = [], False, True


def _called(function: object) -> str:
    module = module_of(function)
    return f"{module + '.' if module and module != 'builtins' else ''}{getattr(function, '__name__', type(function).__name__)}"
