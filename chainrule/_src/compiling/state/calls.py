"""What a call is about to do, as far as it can be known."""

from __future__ import annotations

import _string
import abc
import codecs
import collections
import contextlib
import contextvars
import datetime
import functools
import importlib
import operator
import re
import sys
import types
import weakref
from collections.abc import Iterable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.compiling.state.frames import Stack
from chainrule._src.compiling.state.guards import IMMUTABLE, MISSING, elements, lookup
from chainrule._src.compiling.state.implicit import is_named, is_watched
from chainrule._src.compiling.state.known import (
    BUFFERS,
    BY_C,
    CONSTANT,
    CONTAINERS,
    FUNCTIONS,
    HEAP_TYPE,
    ITERATOR_MAKERS,
    KEY_WRAPPER,
    MAKERS,
    OF_CLASSES,
    ORDERED_VIEWS,
    READING,
    VIEWS,
    WRITERS,
    WRITTEN,
    called_by,
    changes,
    has_numbers,
    is_impure,
    is_library,
    is_library_class,
    is_lock,
    is_pure,
    module_of_code,
    puts,
    reads_contents,
    takes_in_c,
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
    makes_classes,
    module_of,
    random_types,
    value_by,
)
from chainrule._src.compiling.state.reads import Reads
from chainrule._src.compiling.state.settings import errors_of_special_functions, is_special
from chainrule._src.tape.numbers import ASKED, number

ndarray = np.ndarray
SHARING = (np.shares_memory, np.may_share_memory)
# Functions of NumPy's.
_STATELESS = frozenset({"_ArrayFunctionDispatcher", "cython_function_or_method", "fused_cython_function"})


_HANDING_ON = frozenset({"append", "appendleft", "insert", "__setitem__", "setdefault", "pop", "sort"})
_APPLYING = frozenset({"reduce", "bisect", "bisect_left", "bisect_right"})
_OF_TEXTS = frozenset({"__repr__", "__str__", "__format__"})
_OF_ALL_OBJECTS = frozenset({"__eq__", "__ne__", "__hash__"}) | _OF_TEXTS
_EXCEPTION_INFO = (sys.exc_info, getattr(sys, "exception", None))
_SETTINGS = (
    sys.getrecursionlimit,
    sys.get_int_max_str_digits,
    sys.getdefaultencoding,
)  # that are read again in each call
_LOCAL_PARTS = re.compile("%[-#]?[aAbBcpxX]")  # of a date
_OF_LOCAL_TIME = frozenset({"timestamp", "astimezone"})
_OF_CLOCKS = frozenset({"now", "today"})
DRAW = (
    "it draws random numbers from a generator of NumPy's or Python's: draw with chainrule (rand, randn ...), or pass the numbers as "
    "an argument"
)


def _asked(holder: object, function: AnyFunction, args: tuple[int | str, ...]) -> Any:
    return function(holder, *args)


def _makes_text(function: Any) -> bool:
    """Whether a function makes texts of what it is given."""
    if isa(getattr(function, "__self__", None), str):
        return function.__name__ in ("format", "format_map", "__mod__")
    return any(function is each for each in (str, repr, format, ascii))


def text_method(text: str) -> str:
    """The method that gives the texts which are put into another one."""
    return "__repr__" if any(part in text for part in ("%r", "%a", "!r", "!a")) else "__str__"


def _is_of_library(function: Any) -> bool:
    if isa(function, FunctionType):
        return is_library(module_of_code(function.__code__, function.__globals__))
    return is_library(module_of(function)) and not isa(function, type)


def _writes(function: Any) -> bool:
    """Whether a function of a library's writes into what it is given."""
    return any(function is writer for writer in WRITERS) or getattr(function, "__name__", "") in ("at", "shuffle")


def _gone_through(x: Any) -> Sequence[object]:
    """The elements of a container, of a dictionary the keys."""
    return (
        list(x)
        if isa(x, (*VIEWS, *ORDERED_VIEWS))
        else elements(x)[:: 2 if isa(x, (dict, types.MappingProxyType)) else 1]
    )


def _is_gone(reference: Any) -> bool:
    return reference() is None


def _parts(function: Any) -> tuple[Any, ...]:
    """What a partial function is made of."""
    return (function.func, *function.args, *[part for item in function.keywords.items() for part in item])


def _consists_of(function: object, parts: tuple[object, ...]) -> bool:
    now = _parts(function)
    return len(now) == len(parts) and all([x is y for x, y in zip(now, parts, strict=True)])


def _tells_apart(stack: Stack) -> bool:
    """Whether code runs that only tells objects apart by ``id``."""
    module = module_of_code(stack.frame.f_code, stack.frame.f_globals)
    return module.startswith("chainrule.") or module in ("copy", "inspect")


#: objects of which C calls no Python code
_WITHOUT_CODE = (*CONSTANT, *OURS, *BUFFERS, ndarray)


def _runs_code(x: object) -> bool:
    """Whether C may call Python code of an object that it computes with."""
    return not isa(x, _WITHOUT_CODE) or (isa(x, ndarray) and x.dtype.hasobject)  # type: ignore[attr-defined]


class Calls(Reads):
    """A log of reads that knows what functions do."""

    def computes(self, stack: Stack, operands: Sequence[object], each: Any = None) -> None:
        """An instruction is about to compute with these."""
        if are_plain(operands):
            return
        arrays: list[Any] = []
        each = self.operand if each is None else each
        for x in operands:
            if type(x) not in IMMUTABLE:
                each(x, arrays)
        takes = any([_runs_code(x) for x in operands])
        if arrays or takes:
            mixed = any(isa(x, VALUES) for x in flat(operands))
            taken = self.used_up if each == self.held else self.taken
            self.expect(arrays, mixed=mixed, takes=taken if takes else None)

    def calls(self, stack: Stack, function: Any, args: list[Any], keywords: Params) -> None:
        """A call is about to happen."""
        kind = type(function)
        if kind is np.ufunc:
            for each in called_by(function):
                self.may_call(each)
            if is_special(function) and not any(isa(x, OURS) for x in args):
                self.looked_up(function, errors_of_special_functions, "errors")
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
                if function.__name__ in ("__setitem__", "__delitem__") and args:
                    self.changed_container(args[0])
                self.computes(stack, [*args, *keywords.values()], each=self.handed)
            else:
                self.expect(makes=bool(function.__code__.co_flags & 0x20))
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
        elif isa(function, weakref.ref):
            self.drop_what_is_alone()  # an object that only the log keeps is gone
            self.looked_up(function, _is_gone, "referent")  # a guard that held it would keep it
        elif is_python(function, "__call__"):
            self.attribute(function, "__call__")
        elif isa(lookup(kind, "__call__"), FunctionType):
            self.computes(stack, [function, *args, *keywords.values()], each=self.handed)
        elif kind in (operator.itemgetter, operator.attrgetter, operator.methodcaller):
            self._by_getter(stack, function, args)
        elif isa(function, staticmethod):
            self.calls(stack, function.__func__, args, keywords)
        elif not keywords and self.special(function, "__call__", *args):
            return
        elif not is_lock(function):
            self.refuse(f"it calls {_called(function)}, of which it is not known what it depends on")

    def _check_pure(self, function: object) -> None:
        """Refuse functions of libraries that read files, write them, or change settings."""
        self.unwatched = self.unwatched or module_of(function).partition(".")[0] not in ("numpy", "chainrule")
        name = getattr(function, "__name__", "")
        if is_impure(module_of(function), name) and function is not importlib.import_module:
            self.refuse(f"it calls {_called(function)}, which reads or changes what is outside of it: {INSTEAD}")

    def _by_getter(self, stack: Stack, function: Any, args: Sequence[Any]) -> None:
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
            for key in function.__reduce__()[1] if isa(args[0], dict) else ():
                self.element(args[0], key)
            self.computes(stack, args)

    def _make(self, stack: Stack, cls: type, args: Sequence[Any], keywords: Params) -> None:
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
            self._applied(given)
            self.expect(makes=True, takes=self.used_up)
        elif cls.__module__ == "numpy.random" or issubclass(cls, random_types()):
            self._random(stack, given)
        elif cls in MAKERS or cls.__module__ in ("builtins", "collections", "functools", "operator", "types"):
            if cls is type and len(args) == 1:
                self.check_type(args[0], lambda stands_for: False)
                return
            if cls is str:
                self.formats(given)
            if cls is int:
                self.converts(max([len(x) for x in args if isa(x, (str, bytes))], default=0))
            if cls in (str, bytes, bytearray):
                self._codec(args[1:], keywords)
            self.computes(stack, given, each=self.held if cls in (*CONTAINERS, collections.OrderedDict) else None)
        elif issubclass(cls, BaseException):
            return
        elif cls.__module__.partition(".")[0] in ("numpy", "scipy", "pandas", "chainrule"):
            self.computes(stack, given, each=self.handed)
        elif not cls.__flags__ & HEAP_TYPE:
            self.refuse(f"it makes a {cls.__name__}, of which it is not known what it depends on")
        elif not is_library_class(cls):
            if lookup(cls, "__del__") is not MISSING:
                self.refuse(f"it makes a {cls.__name__}, whose __del__ runs when no recording sees it")
            if issubclass(cls, type):
                self.expect(makes=makes_classes(cls))
            if not keywords and self.special(cls, "__call__", *args):
                return
            for name in ("__new__", "__init__"):
                found = self.of_class(cls, name)
                if is_named(cls, name) and getattr(found, "__objclass__", None) not in cls.__mro__:
                    self.may_call(found)
            if takes_in_c(cls):
                self.computes(stack, given, each=self.held if issubclass(cls, CONTAINERS) else None)
        elif issubclass(cls, type):
            self.expect(makes=makes_classes(cls))

    def _applied(self, given: Sequence[object]) -> None:
        """Note the functions among what a function in C is given, which it calls with the rest, or with elements of the rest."""
        functions = [x for x in given if callable(x) and not is_watched(x)]
        for x in functions:
            self.may_call(x)
            if _makes_text(x):
                self.texts = True
                self.formats(given, "__str__" if x is str else "__repr__")
        if functions and self.now is not None:
            self.computes(self.now, [x for x in given if not callable(x) and not is_iterator(x)])

    def _applied_at_once(self, function: Any, each: object) -> None:
        """Note a function that a function in C calls with each element of something, before anything else happens."""
        self.iterated(each)
        if type(each) is types.GeneratorType:
            self.expect(takes=functools.partial(self._taken_by, function))
        else:
            known = isa(each, (*CONTAINERS, *VIEWS, *ORDERED_VIEWS))
            self.may_call(function, [[x] for x in _gone_through(each)] if known else None)
        if _makes_text(function):
            self.formats([each])

    def _taken_by(self, function: object, x: object, arrays: list[Any]) -> None:
        """Something that a generator gives to a function in C, which calls another one with it."""
        self.taken(x, arrays)
        self.may_call(function, [[x]])

    def may_call(self, function: Any, calls: Iterable[Sequence[object]] | None = None) -> None:
        if function is None or is_watched(function):
            return
        assert self.now is not None
        receiver: Any = getattr(function, "__self__", None) if isa(function, FUNCTIONS) else None
        if isa(function, (np.ufunc, KEY_WRAPPER)):
            for each in called_by(function):
                self.may_call(each)
        elif calls is not None and not reads_contents(function):
            for args in calls:
                self.implied(function, *args)
        elif reads_contents(function):
            self.converts(sys.maxsize if function is int else 0)
            self._holds_on_to([] if receiver is None or isa(receiver, (ModuleType, type)) else [receiver])
        elif isa(function, functools.partial):
            self.looked_up(function, functools.partial(_consists_of, parts=_parts(function)), "parts")
            self._written([function.keywords.get("out")])
            self._passes_on(function.func, [*function.args, *function.keywords.values()])
        elif isa(function, MethodType):
            self._passes_on(function.__func__, [receiver])
        elif isa(function, (staticmethod, classmethod)):
            self.may_call(function.__func__)
        elif isa(function, types.MethodWrapperType) and function.__name__ == "__call__":
            self.may_call(receiver)
        elif isa(receiver, (list, dict, set, collections.deque)) and changes(receiver, function.__name__):
            self.whole(receiver)
            self.changed_container(receiver)
        elif isa(receiver, str) and _makes_text(function):
            self._format(receiver, function.__name__)
            self.formats([()])
        elif isa(function, type) and function.__flags__ & HEAP_TYPE and not is_library_class(function):
            self._make(self.now, function, [], {})
        elif _is_of_library(function) and not _writes(function):
            self._call_library(self.now, function, [], {})
        elif is_named(type(function), "__call__"):
            self.may_call(lookup(type(function), "__call__"))
        else:
            self.refuse(
                f"it has C code call {_called(function)}, of which no recording sees what it reads: write a loop"
            )

    def _passes_on(self, function: object, args: Sequence[object]) -> None:
        """Note a function that C code calls with these arguments, and others."""
        self.may_call(function)
        if not is_watched(function):
            self._holds_on_to(args)

    def _holds_on_to(self, objects: Sequence[object]) -> None:
        arrays: list[Any] = []
        for x in objects:
            self.handed(x, arrays)
        self.expect(arrays)

    def _random(self, stack: Stack, given: Sequence[object]) -> None:
        if not given or not all(isa(x, (int, np.integer)) for x in flat(given)):
            self.refuse(DRAW)  # it starts from the system's entropy
        self.expect(makes=True)

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
            for x in args:
                for each in x.flat if type(x) is ndarray and x.dtype.hasobject else ():
                    self.special(each, function.__name__)  # that NumPy calls
        if _writes(function):
            targets.append(args[0] if args else keywords.get("a"))
        self._written(targets)
        inner = [] if receiver is None or isa(receiver, (ModuleType, type)) else [receiver]
        kind = type(function)
        ours = kind.__module__.partition(".")[0] == "chainrule" and not has_numbers(kind)
        if not ours and kind.__name__ not in _STATELESS and not isa(function, FUNCTIONS):
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
        name = getattr(function, "__name__", "")
        always = module_of(function) != "_operator" or name.endswith("item")
        if name == "setitem" and len(args) == 3:
            self.sets_item(*args)
        elif module_of(function) == "_operator" and self.special(x, f"__{name}__", *args[1:]):
            return
        elif not isa(x, OURS) and (always or (isa(x, (*WRITTEN, ndarray)) and not isa(args[-1], OURS))):
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
        if function in _EXCEPTION_INFO:
            self._exception_info(function)
            return
        if function in _SETTINGS:
            self.looked_up(function, operator.call, "setting")
            return
        if not is_pure(function) and not (function is id and _tells_apart(stack)):
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
            self.sets_attribute(*args)
        elif builtin and name == "vars" and args:
            self.attribute(args[0], "__dict__")
        elif builtin and name == "len" and args:
            x = args[0].mapping if isa(args[0], (*VIEWS, *ORDERED_VIEWS)) else args[0]
            self.length(x)
        elif builtin and name == "iter" and len(args) == 2:
            self.may_call(args[0], [()])
            self.expect(makes=True)
        elif builtin and name in ("iter", "next"):
            for x in args[:1]:
                self.iterated(x)
                if not is_iterator(x):
                    self.expect(makes=name == "iter", takes=self.used_up)
        elif builtin and name in ("sorted", "min", "max"):
            self.computes(stack, args)
            if name != "sorted" and stack.pending is not None:
                for x in stack.pending.arrays:  # which compare also the array that they return
                    self.consumed(x)
            self._applied_at_once(keywords.get("key"), args[0] if len(args) == 1 else tuple(args))
        elif name == "from_iterable" or module_of(function) == "itertools":
            self.expect(makes=True)
            self.computes(stack, args)
        elif name == "call" and module_of(function) == "_operator" and args:
            self.calls(stack, args[0], args[1:], keywords)
        elif name == "getitem" and module_of(function) == "_operator" and args and isa(args[0], dict):
            self.element(*args)
        elif builtin and name in ("isinstance", "issubclass") and len(args) == 2:
            x, cls = args
            if name == "issubclass":
                if isa(x, type):
                    self.is_subclass(x, cls)
                return
            self.is_instance(x, cls)
            self.check_type(x, lambda stands_for: not issubclass(type(x), cls) or issubclass(stands_for, cls))
        elif (builtin and name in ("globals", "locals", "eval", "exec")) or module_of(function) == "_abc":
            return
        elif builtin and name == "__build_class__":
            for base in args[2:]:
                if isa(base, type):
                    self.special(None, "__init_subclass__", owner=base)
            self.expect(makes=all(map(makes_classes, [keywords.get("metaclass", type), *map(type, args[2:])])))
        else:
            if name in ("repr", "format", "ascii", "mod"):
                self.formats(args, "__str__" if name == "format" else "__repr__")
            if builtin and name == "format" and len(args) > 1 and isa(args[1], str):
                self.spec(args[1])
            if name in _APPLYING:
                self._applied([*args, *keywords.values()])
            self.computes(stack, [*args, *keywords.values()])

    def _exception_info(self, function: Any) -> None:
        """The exception that is handled is asked for: the function's own, or that of who called it."""
        now = sys.exc_info()[1]
        if now is None:
            self.looked_up(function, operator.call, "setting")
        elif now is self.handled:
            self.refuse("it asks which exception is handled where it is called")

    def _codec(self, args: Sequence[object], keywords: Params) -> None:
        """Bytes are made a text, or a text bytes, by an encoding and an error handler, which programs register by name."""
        names: Params = dict(zip(("encoding", "errors"), args, strict=False)) | keywords
        for find, name in ((codecs.lookup, "encoding"), (codecs.lookup_error, "errors")):
            if isa(names.get(name), str):
                with contextlib.suppress(LookupError):  # which Python says itself
                    again = functools.partial(called_again, args=(names[name],), keywords={})
                    self.looked_up(find, again, names[name])
                    found = find(names[name])
                    if (
                        not isa(found, (codecs.CodecInfo, BuiltinFunctionType))
                        or getattr(found, "__self__", None) is not None
                    ):
                        self.may_call(found)

    def _method(self, stack: Stack, function: Any, x: Any, name: str, args: list[Any], keywords: Params) -> None:
        """A method of C's is about to be called."""
        if name == "__call__":
            self.calls(stack, x, args, keywords)
        elif type(x) is ndarray:
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
            if not self.sets(lookup(type(x), args[0]), x, *args[1:]):
                self.changed_attribute(x, args[0])
        elif name in ("__get__", "__set__", "__delete__") and args:
            self._descriptor(x, name, args)
        elif name in ("__init__", "__init_subclass__", "__new__", "__class_getitem__", "__subclasshook__", "mro"):
            if isa(x, CONTAINERS) and (args or keywords):
                self.changed_container(x)
            self.computes(stack, [*args, *keywords.values()])
        elif name in ("__reduce_ex__", "__getstate__"):
            if isa(x, CONTAINERS):
                self.handed(x, [])
            else:
                self.whole_object(x)
            self.expect(makes=True)
        elif isa(x, (list, dict, set, collections.deque)):
            self._method_of_container(stack, x, name, args, keywords)
        elif isa(x, BUFFERS):
            if name not in READING:
                self.refuse(
                    f"it may write into a {type(x).__name__} ({name}), which no recording repeats: use an array of NumPy's"
                )
            self.changed_in_place(x)
        elif isa(x, (*CONSTANT, *CONTAINERS, *VIEWS, *ORDERED_VIEWS)):
            if isa(x, datetime.datetime) and name in _OF_LOCAL_TIME and (x.tzinfo is None or not args):
                self.refuse(f"it asks for the local time ({name}), which no recording sees")
            if isa(x, datetime.date) and (name == "strftime" or (name == "__format__" and any(args))):
                self.spec(str(args[0]) if args else "")
            if isa(x, str) and name in ("format", "format_map", "__mod__"):
                self._format(x, name)
                self.formats([*args, *keywords.values()], text_method(x))
            if name in ("encode", "decode"):
                self._codec(args, keywords)
            if isa(x, type) and name not in OF_CLASSES and name not in _OF_ALL_OBJECTS:
                self.refuse(f"it calls {_called(function)}, which depends on more than its arguments: {INSTEAD}")
            if name in _OF_TEXTS:
                self.formats([x], name)
            if name in ("__iter__", "__reversed__"):
                self.expect(makes=True)
            self.computes(stack, [x, *args, *keywords.values()])
        elif is_iterator(x):
            self.iterator(x)
        elif isa(x, contextvars.ContextVar):
            if name != "get":
                self.refuse("it sets a ContextVar, which no recording repeats")
            self.looked_up(x, context_value, "value")
        elif name in _OF_TEXTS:
            self.formats([x], name)
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
        """A number, or a date, is about to be written as this says."""
        if spec.endswith("n") or _LOCAL_PARTS.search(spec):
            self.refuse("it formats a number, or a date, as the locale has it, which no recording sees")

    def _descriptor(self, x: Any, name: str, args: Sequence[Any]) -> None:
        """A descriptor of Python's in C is asked for the value of an attribute, or sets it."""
        if name != "__get__":
            if not self.sets(x, *args):
                self.changed_attribute(args[0], x.__name__)
        elif isa(x, BY_C):
            if x.__name__ == "__dict__":
                self.attribute(args[0], "__dict__")
            elif args[0] is not None:
                self.looked_up(args[0], functools.partial(value_by, descriptor=x), f"{x.__objclass__} {x.__name__}")
        else:
            self.gets(x, args[0], args[1] if len(args) > 1 else type(args[0]))

    def _method_of_container(self, stack: Stack, x: Any, name: str, args: Sequence[object], keywords: Params) -> None:
        if changes(x, name):
            if name in ("pop", "setdefault", "popitem", "popleft", "remove"):
                self.whole(x)
                if isa(x, set) and name == "pop":
                    self.refuse("it takes any element out of a set (pop), and no recording could put it back as it was")
            elif name == "sort":
                self.computes(stack, [x])
                self._applied_at_once(keywords.get("key"), x)
            if name == "__setitem__" and len(args) == 2:
                self.sets_item(x, *args)
            self.changed_container(x)
            if name not in _HANDING_ON:
                self.computes(stack, [*args, *keywords.values()], each=self.held)
            return
        if isa(x, dict) and name in ("get", "__contains__") and args:
            self.class_functions(x)
            self.key(x, args[0])
        elif isa(x, (dict, list)) and name == "__getitem__" and args:
            self.element(x, args[0])
        elif isa(x, collections.defaultdict) and name == "__missing__":
            self.changed_container(x)
            self.implied(x.default_factory)
        elif name == "__len__":
            self.length(x)
        else:
            self.whole(x)
            if name in ("__iter__", "__reversed__"):
                self.expect(makes=True)
            elif name not in ("keys", "values", "items", "copy"):
                self.computes(stack, [x, *args])


def _called(function: object) -> str:
    module = module_of(function)
    return f"{module + '.' if module and module != 'builtins' else ''}{getattr(function, '__name__', type(function).__name__)}"
