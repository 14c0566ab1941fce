"""Handle calls that a traced function is about to make: guard the state that the callee reads, or refuse the trace.

``instructions`` calls ``Calls.note_call`` with the callee and its arguments.
"""

from __future__ import annotations

import abc
import collections
import functools
import importlib
import operator
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.compiling.guards.effect_tables import (
    BUFFERS,
    CONSTRUCTORS,
    CONTAINERS,
    FUNCTIONS,
    HEAP_TYPE,
    ITERATOR_CONSTRUCTORS,
    KEY_WRAPPER,
    MUTABLE_CONTAINERS,
    NUMPY_WRITERS,
    ORDERED_VIEWS,
    VIEWS,
    called_by,
    has_numbers,
    is_constructed_in_c,
    is_impure,
    is_library,
    is_library_class,
    is_lock,
    is_pure,
    method_changes,
    module_of_code,
    reads_contents,
    writes_argument,
)
from chainrule._src.compiling.guards.frames import Stack
from chainrule._src.compiling.guards.guards import MISSING, class_attribute
from chainrule._src.compiling.guards.implicit import is_named, is_watched
from chainrule._src.compiling.guards.log import INSTEAD
from chainrule._src.compiling.guards.method_calls import DRAW, Methods, function_name, makes_text
from chainrule._src.compiling.guards.objects import (
    CHAINRULE_TYPES,
    VALUES,
    are_plain,
    called_again,
    flat_items,
    has_class,
    is_iterator,
    is_python,
    makes_classes,
    module_of,
    random_types,
)
from chainrule._src.compiling.guards.settings import errors_of_special_functions, is_special
from chainrule._src.tape.numbers import RECHECKED, number_item

ndarray = np.ndarray
GENERATOR = 0x20  # a flag of the code objects of generator functions
SHARING = (np.shares_memory, np.may_share_memory)
#: names of types of functions that have no state
_STATELESS = frozenset({"_ArrayFunctionDispatcher", "cython_function_or_method", "fused_cython_function"})


_CONSTRUCTOR_MODULES = frozenset({"builtins", "collections", "functools", "operator", "types"})
_CALLING_BUILTINS = frozenset({"reduce", "bisect", "bisect_left", "bisect_right"})
_EXCEPTION_INFO = (sys.exc_info, getattr(sys, "exception", None))
_SETTINGS = (
    sys.getrecursionlimit,
    sys.get_int_max_str_digits,
    sys.getdefaultencoding,
)  # settings that a guard reads again
_ARRAY_LIBRARIES = frozenset({"numpy", "scipy", "pandas", "chainrule"})
_WRAPPERS = (types.MethodWrapperType, functools._lru_cache_wrapper)
_UNBOUND_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
_OF_CLOCKS = frozenset({"now", "today"})


def _call_on_holder(holder: object, function: AnyFunction, args: tuple[int | str, ...]) -> Any:
    return function(holder, *args)


def _is_of_library(function: Any) -> bool:
    if has_class(function, FunctionType):
        return is_library(module_of_code(function.__code__, function.__globals__))
    return is_library(module_of(function)) and not has_class(function, type)


def _library_function_writes(function: Any) -> bool:
    """Return whether a library function writes into its arguments."""
    return any(function is writer for writer in NUMPY_WRITERS) or getattr(function, "__name__", "") in ("at", "shuffle")


def changes_or_shares(function: Any) -> bool:
    """Return whether a library function writes into its arguments, or returns whether they share memory."""
    return _library_function_writes(function) or function in SHARING


def checks_calls(function: Any) -> bool:
    """Return whether each call of a function of chainrule adds a guard, or changes an object."""
    return function in RECHECKED or function.__name__ in ("__setitem__", "__delitem__")


def _is_gone(reference: Any) -> bool:
    return reference() is None


def _partial_parts(function: Any) -> tuple[Any, ...]:
    """Return the function and the arguments of a partial function."""
    return (function.func, *function.args, *[part for item in function.keywords.items() for part in item])


def _has_parts(function: object, parts: tuple[object, ...]) -> bool:
    now = _partial_parts(function)
    return len(now) == len(parts) and all([x is y for x, y in zip(now, parts, strict=True)])


def _compares_ids(stack: Stack) -> bool:
    """Return whether the running code uses ``id`` only to compare objects."""
    module = module_of_code(stack.frame.f_code, stack.frame.f_globals)
    return module.startswith("chainrule.") or module in ("copy", "inspect")


class Calls(Methods):
    """A log with calls of functions and classes."""

    def note_call(self, stack: Stack, function: Any, args: list[Any], keywords: Params) -> None:
        """Note a call that is about to happen, by the type of the callee."""
        kind = type(function)
        if kind is np.ufunc and self._is_plain_ufunc_call(function, args, keywords):
            return
        if kind is not MethodType and kind is not FunctionType and function is not weakref.ref:
            for x in (function, *args, *keywords.values()):
                self.guard_class_use(x)
        if kind is MethodType:
            self.note_call(stack, function.__func__, [function.__self__, *args], keywords)
        elif kind is FunctionType:
            self._note_python_call(stack, function, args, keywords)
        elif has_class(function, functools.partial):
            self.guard_check(function, functools.partial(_has_parts, parts=_partial_parts(function)), "parts")
            self.note_call(stack, function.func, [*function.args, *args], {**function.keywords, **keywords})
        elif has_class(function, type):
            self._note_construction(stack, function, args, keywords)
        elif has_class(function, np.ufunc) or module_of(function).partition(".")[0] in _ARRAY_LIBRARIES:
            self._note_library_call(stack, function, args, keywords)
        elif has_class(function, BuiltinFunctionType) or kind in _WRAPPERS:
            self._note_builtin_call(stack, function, args, keywords)
        elif has_class(function, _UNBOUND_METHODS):
            if args:
                self.note_method_call(stack, function, args[0], function.__name__, args[1:], keywords)
        elif has_class(function, weakref.ref):
            self.drop_unreferenced()  # objects that only the log keeps alive count as gone
            self.guard_check(function, _is_gone, "referent")  # a guard on the referent would keep it alive
        else:
            self._note_object_call(stack, function, args, keywords)

    def _is_plain_ufunc_call(self, ufunc: np.ufunc, args: list[Any], keywords: Params) -> bool:
        """Note the state that a ufunc reads besides its arguments. Return whether the arguments are plain: then they need no guards."""
        for each in called_by(ufunc):
            self.note_possible_call(each)
        if is_special(ufunc) and not any(has_class(x, CHAINRULE_TYPES) for x in args):
            self.guard_check(ufunc, errors_of_special_functions, "errors")
        return not keywords and len(args) == ufunc.nin and are_plain(args)

    def _note_python_call(self, stack: Stack, function: Any, args: list[Any], keywords: Params) -> None:
        """Note a call of a function in Python. The instructions of the program's own functions are watched."""
        module = module_of_code(function.__code__, function.__globals__)
        if module == "warnings":
            self.refuse("it warns, or changes warning filters, which a replay cannot repeat")
        if function is number_item:
            return  # a value read, which the trace has as a branch
        if function is importlib.import_module and args:
            self.guard_item(sys.modules, args[0])
        if function in RECHECKED:
            again = functools.partial(_call_on_holder, function=function, args=tuple(args[1:]))
            self.guard_check(args[0], again, repr((function.__name__, args[1:])))
        elif is_library(module):
            self._check_pure(function)
            if function.__name__ in ("__setitem__", "__delitem__") and args:
                self.note_container_change(args[0])
            self.note_operands(stack, [*args, *keywords.values()], each=self.note_passed_to_library)
        elif function.__code__.co_flags & GENERATOR:
            self.expect(result_is_new=True)

    def _note_object_call(self, stack: Stack, function: Any, args: list[Any], keywords: Params) -> None:
        """Note a call of an object of another type."""
        kind = type(function)
        if is_python(function, "__call__"):
            self.guard_attribute(function, "__call__")
        elif has_class(class_attribute(kind, "__call__"), FunctionType):
            self.note_operands(stack, [function, *args, *keywords.values()], each=self.note_passed_to_library)
        elif kind in (operator.itemgetter, operator.attrgetter, operator.methodcaller):
            self._note_getter_call(stack, function, args)
        elif has_class(function, staticmethod):
            self.note_call(stack, function.__func__, args, keywords)
        elif not keywords and self.note_special_method(function, "__call__", *args):
            return
        elif not is_lock(function):
            self.refuse(f"it calls {function_name(function)}, and compile does not know what that depends on")

    def _check_pure(self, function: object) -> None:
        """Refuse library functions that read or write files, or change settings."""
        self.unwatched = self.unwatched or module_of(function).partition(".")[0] not in ("numpy", "chainrule")
        name = getattr(function, "__name__", "")
        if is_impure(module_of(function), name) and function is not importlib.import_module:
            self.refuse(f"it calls {function_name(function)}, which reads or changes files or settings: {INSTEAD}")

    def _note_getter_call(self, stack: Stack, function: Any, args: Sequence[Any]) -> None:
        if has_class(function, operator.methodcaller) and args:
            reduced: Any = function.__reduce__()
            name, *given = reduced[1] if reduced[0] is operator.methodcaller else reduced[0].args
            keywords = {} if reduced[0] is operator.methodcaller else reduced[0].keywords
            self.guard_attribute(args[0], name)
            method = self.stored_attribute(args[0], name)
            if method is not MISSING:
                self.note_call(stack, method, given, keywords)
        elif has_class(function, operator.attrgetter) and args:
            for name in function.__reduce__()[1]:
                at = args[0]
                *outer, last = name.split(".")
                for part in outer:
                    self.guard_attribute(at, part)
                    at = self.stored_attribute(at, part)
                self.guard_attribute(at, last)
        else:
            for key in function.__reduce__()[1] if has_class(args[0], dict) else ():
                self.guard_element(args[0], key)
            self.note_operands(stack, args)

    def _note_construction(self, stack: Stack, cls: type, args: Sequence[Any], keywords: Params) -> None:
        given = [*args, *keywords.values()]
        if cls.__module__ == "warnings" or (cls is np.datetime64 and not _OF_CLOCKS.isdisjoint(map(str, given))):
            self.refuse(f"it makes a {cls.__name__}, which depends on, or changes, state that compile cannot see")
        if issubclass(cls, weakref.ref) and len(args) > 1 and args[1] is not None:
            self.refuse("it makes a weak reference with a callback, which may run after the trace")
        if cls in ITERATOR_CONSTRUCTORS or cls.__module__ == "itertools":
            for x in given:
                self.note_iteration(x)
            if cls is filter or cls.__module__ == "itertools":  # these compare or unpack the elements
                self.note_operands(stack, given[cls is filter :])
            self._note_applied(given)
            self.expect(result_is_new=True, receive=self.note_consumed)
        elif cls.__module__ == "numpy.random" or issubclass(cls, random_types()):
            self._note_random(stack, given)
        elif cls in CONSTRUCTORS or (is_library_class(cls) and cls.__module__ in _CONSTRUCTOR_MODULES):
            if cls is type and len(args) == 1:
                self.check_type(args[0], lambda eager_type: False)
                return
            if cls is str:
                self.note_text(given)
            if cls is int:
                self.note_int_conversion(max([len(x) for x in args if has_class(x, (str, bytes))], default=0))
            if cls in (str, bytes, bytearray):
                self.guard_codec(args[1:], keywords)
            self.note_operands(
                stack, given, each=self.note_stored if cls in (*CONTAINERS, collections.OrderedDict) else None
            )
        elif issubclass(cls, BaseException):
            return
        elif cls.__module__.partition(".")[0] in ("numpy", "scipy", "pandas", "chainrule"):
            self.note_operands(stack, given, each=self.note_passed_to_library)
        elif not cls.__flags__ & HEAP_TYPE or (
            is_library_class(cls) and is_constructed_in_c(cls) and cls.__module__ != "_thread"  # locks
        ):
            self.refuse(f"it makes a {cls.__name__}, and compile does not know what that depends on")
        elif not is_library_class(cls):
            if class_attribute(cls, "__del__") is not MISSING:
                self.refuse(f"it makes a {cls.__name__}, whose __del__ may run after the trace")
            if issubclass(cls, type):
                self.expect(result_is_new=makes_classes(cls))
            if not keywords and self.note_special_method(cls, "__call__", *args):
                return
            for name in ("__new__", "__init__"):
                found = self.guard_class_attribute(cls, name)
                if is_named(cls, name) and getattr(found, "__objclass__", None) not in cls.__mro__:
                    self.note_possible_call(found)
            if is_constructed_in_c(cls):
                self.note_operands(stack, given, each=self.note_stored if issubclass(cls, CONTAINERS) else None)
        elif issubclass(cls, type):
            self.expect(result_is_new=makes_classes(cls))

    def _note_applied(self, given: Sequence[object]) -> None:
        """Note the functions among the arguments of a C function. It calls them with the other arguments or their elements."""
        functions = [x for x in given if callable(x) and not is_watched(x)]
        for x in functions:
            self.note_possible_call(x)
            if makes_text(x):
                self.texts = True
                self.note_text(given, "__str__" if x is str else "__repr__")
        if functions and self.now is not None:
            self.note_operands(self.now, [x for x in given if not callable(x) and not is_iterator(x)])

    def note_possible_call(self, function: Any, calls: Iterable[Sequence[object]] | None = None) -> None:
        if function is None or is_watched(function):
            return
        assert self.now is not None
        receiver: Any = getattr(function, "__self__", None) if has_class(function, FUNCTIONS) else None
        if has_class(function, (np.ufunc, KEY_WRAPPER)):
            for each in called_by(function):
                self.note_possible_call(each)
        elif calls is not None and not reads_contents(function):
            for args in calls:
                self.note_implicit_call(function, *args)
        elif reads_contents(function):
            self.note_int_conversion(sys.maxsize if function is int else 0)
            self._note_bound([] if receiver is None or has_class(receiver, (ModuleType, type)) else [receiver])
        elif has_class(function, functools.partial):
            self.guard_check(function, functools.partial(_has_parts, parts=_partial_parts(function)), "parts")
            self.note_written([function.keywords.get("out")])
            self._note_forwarded_call(function.func, [*function.args, *function.keywords.values()])
        elif has_class(function, MethodType):
            self._note_forwarded_call(function.__func__, [receiver])
        elif has_class(function, (staticmethod, classmethod)):
            self.note_possible_call(function.__func__)
        elif has_class(function, types.MethodWrapperType) and function.__name__ == "__call__":
            self.note_possible_call(receiver)
        elif has_class(receiver, (list, dict, set, collections.deque)) and method_changes(receiver, function.__name__):
            self.guard_elements(receiver)
            self.note_container_change(receiver)
        elif has_class(receiver, str) and makes_text(function):
            self.check_fields(receiver, function.__name__)
            self.note_text([()])
        elif has_class(function, type) and function.__flags__ & HEAP_TYPE and not is_library_class(function):
            self._note_construction(self.now, function, [], {})
        elif _is_of_library(function) and not _library_function_writes(function):
            self._note_library_call(self.now, function, [], {})
        elif is_named(type(function), "__call__"):
            self.note_possible_call(class_attribute(type(function), "__call__"))
        else:
            self.refuse(
                f"it has C code call {function_name(function)}, and compile cannot see what that reads: write a loop"
            )

    def _note_forwarded_call(self, function: object, args: Sequence[object]) -> None:
        """Note a function that C code calls with these arguments and more."""
        self.note_possible_call(function)
        if not is_watched(function):
            self._note_bound(args)

    def _note_bound(self, objects: Sequence[object]) -> None:
        """Note objects that are bound to a function which C code calls."""
        arrays: list[Any] = []
        for x in objects:
            self.note_passed_to_library(x, arrays)
        self.expect(arrays)

    def _note_random(self, stack: Stack, given: Sequence[object]) -> None:
        if not given or not all(has_class(x, (int, np.integer)) for x in flat_items(given)):
            self.refuse(DRAW)  # seeded by the system's entropy
        self.expect(result_is_new=True)

    def _note_library_call(self, stack: Stack, function: Any, args: list[Any], keywords: Params) -> None:
        self._check_pure(function)
        if function in SHARING and any(has_class(x, VALUES) for x in args):
            self.refuse("it checks whether its values share memory, which may differ in another call")
        if function is np.arange and any(has_class(x, VALUES) for x in args):
            self.refuse("it passes a traced value to np.arange, which reads its type: use int(n), float(x)")
        receiver = getattr(function, "__self__", None)
        if args and has_class(args[0], random_types()):  # an unbound Cython method
            receiver = args[0]
        if has_class(receiver, random_types()) or module_of(function).startswith("numpy.random"):
            if getattr(function, "__name__", "") == "default_rng":
                self._note_random(stack, [*args, *keywords.values()])
            elif receiver is None or id(receiver) not in self.made:
                self.refuse(DRAW)
            elif function.__name__ == "shuffle" and args and not has_class(args[0], CHAINRULE_TYPES):
                self.note_container_change(args[0])
            self.note_written([keywords.get("out")])
            return
        if has_class(receiver, ndarray):
            self.note_method_call(stack, function, receiver, function.__name__, args, keywords)
            return
        targets = [keywords.get("out")]
        if has_class(function, np.ufunc):
            targets += args[function.nin :]
            for x in args:
                for each in x.flat if type(x) is ndarray and x.dtype.hasobject else ():
                    self.note_special_method(each, function.__name__)  # NumPy calls a method of that name
        if _library_function_writes(function):
            targets.append(args[0] if args else keywords.get("a"))
        self.note_written(targets)
        inner = [] if receiver is None or has_class(receiver, (ModuleType, type)) else [receiver]
        kind = type(function)
        is_chainrule = kind.__module__.partition(".")[0] == "chainrule" and not has_numbers(kind)
        if not is_chainrule and kind.__name__ not in _STATELESS and not has_class(function, FUNCTIONS):
            inner.append(function)
        self.note_operands(stack, [*inner, *args, *keywords.values()], each=self.note_passed_to_library)

    def _note_put(self, stack: Stack, function: object, args: list[Any]) -> None:
        """Note a C function that writes into its first argument, or into its second after a format (``struct.pack_into``)."""
        x = args[module_of(function) == "_struct"] if len(args) > 1 else args[0] if args else None
        if has_class(x, BUFFERS):
            self.refuse(f"it writes into a {type(x).__name__}, which a replay cannot repeat: use a NumPy array")
        name = getattr(function, "__name__", "")
        always = module_of(function) != "_operator" or name.endswith("item")
        if name == "setitem" and len(args) == 3:
            self.note_item_write(*args)
        elif module_of(function) == "_operator" and self.note_special_method(x, f"__{name}__", *args[1:]):
            return
        elif not has_class(x, CHAINRULE_TYPES) and (
            always or (has_class(x, (*MUTABLE_CONTAINERS, ndarray)) and not has_class(args[-1], CHAINRULE_TYPES))
        ):
            self.note_container_change(x)
        self.note_operands(stack, args)

    def _note_builtin_call(self, stack: Stack, function: object, args: list[Any], keywords: Params) -> None:
        receiver, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        if has_class(function, functools._lru_cache_wrapper):
            if not any(has_class(x, CHAINRULE_TYPES) for x in flat_items([*args, *keywords.values()])):
                again = functools.partial(called_again, args=tuple(args), keywords=keywords)
                self.guard_check(function, again, repr((args, keywords)))  # a lookup in the cache
        elif receiver is not None and not has_class(receiver, (ModuleType, type)):
            self.note_method_call(stack, function, receiver, name, args, keywords)
        elif function is abc.get_cache_token:
            self.guard_check(function, operator.call, "token")
        elif function in _EXCEPTION_INFO:
            self._note_exception_info(function)
        elif function in _SETTINGS:
            self.guard_check(function, operator.call, "setting")
        elif is_pure(function) or (function is id and _compares_ids(stack)):
            note = BUILTINS.get((module_of(function), name))
            if note is None or not note(self, stack, args, keywords, name):
                self._note_other_builtin_call(stack, function, args, keywords)
        elif writes_argument(function):
            self._note_put(stack, function, args)
        else:
            self.refuse(
                f"it calls {function_name(function)}, which depends on, or changes, more than its arguments: {INSTEAD}"
            )

    def _note_other_builtin_call(self, stack: Stack, function: object, args: list[Any], keywords: Params) -> None:
        """Note a call of a built-in function that reads its arguments and has no entry in ``BUILTINS``."""
        module, name = module_of(function), getattr(function, "__name__", "")
        if module == "_abc":
            return
        if name == "from_iterable" or module == "itertools":
            self.expect(result_is_new=True)
            self.note_operands(stack, args)
            return
        if name in ("repr", "format", "ascii", "mod"):
            self.note_text(args, "__str__" if name == "format" else "__repr__")
        if module == "builtins" and name == "format" and len(args) > 1 and has_class(args[1], str):
            self.check_format_spec(args[1])
        if name in _CALLING_BUILTINS:
            self._note_applied([*args, *keywords.values()])
        self.note_operands(stack, [*args, *keywords.values()])

    # The functions in BUILTINS. They return False for arguments that are noted like those of other functions.

    def _note_getattr(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        if len(args) < 2 or not has_class(args[1], str):
            return False
        self.guard_attribute(args[0], args[1])
        return True

    def _note_setattr(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        if len(args) < 2:
            return False
        self.note_attribute_write(*args)
        return True

    def _note_vars(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        if not args:
            return False
        self.guard_attribute(args[0], "__dict__")
        return True

    def _note_len(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        if not args:
            return False
        self.guard_length(args[0].mapping if has_class(args[0], (*VIEWS, *ORDERED_VIEWS)) else args[0])
        return True

    def _note_iter(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        if name == "iter" and len(args) == 2:
            self.note_possible_call(args[0], [()])
            self.expect(result_is_new=True)
            return True
        for x in args[:1]:
            self.note_iteration(x)
            if not is_iterator(x):
                self.expect(result_is_new=name == "iter", receive=self.note_consumed)
        return True

    def _note_sorted(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        self.note_operands(stack, args)
        if name != "sorted" and stack.pending is not None:
            for x in stack.pending.arrays:  # the result is one of the arrays that are compared
                self.guard_array_values(x)
        self.note_applied_now(keywords.get("key"), args[0] if len(args) == 1 else tuple(args))
        return True

    def _note_operator_call(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        if not args:
            return False
        self.note_call(stack, args[0], args[1:], keywords)
        return True

    def _note_operator_getitem(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        if not args or not has_class(args[0], dict):
            return False
        self.guard_element(*args)
        return True

    def _note_isinstance(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        if len(args) != 2:
            return False
        x, cls = args
        self.guard_isinstance(x, cls)
        self.check_type(x, lambda eager_type: not issubclass(type(x), cls) or issubclass(eager_type, cls))
        return True

    def _note_issubclass(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        if len(args) != 2:
            return False
        if has_class(args[0], type):
            self.guard_issubclass(*args)
        return True

    def _note_nothing(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        return True

    def _note_build_class(self, stack: Stack, args: list[Any], keywords: Params, name: str) -> bool:
        for base in args[2:]:
            if has_class(base, type):
                self.note_special_method(None, "__init_subclass__", owner=base)
        self.expect(result_is_new=all(map(makes_classes, [keywords.get("metaclass", type), *map(type, args[2:])])))
        return True

    def _note_exception_info(self, function: Any) -> None:
        """Note a query of the handled exception. Refuse the trace if a caller of the function handles it."""
        now = sys.exc_info()[1]
        if now is None:
            self.guard_check(function, operator.call, "setting")
        elif now is self.handled:
            self.refuse("it reads the exception that its caller handles")


#: (module, name) of a built-in function -> the method that notes its calls
BUILTINS: dict[tuple[str, str], Callable[[Calls, Stack, list[Any], Params, str], bool]] = {
    ("_operator", "call"): Calls._note_operator_call,
    ("_operator", "getitem"): Calls._note_operator_getitem,
    ("builtins", "vars"): Calls._note_vars,
    ("builtins", "len"): Calls._note_len,
    ("builtins", "isinstance"): Calls._note_isinstance,
    ("builtins", "issubclass"): Calls._note_issubclass,
    ("builtins", "__build_class__"): Calls._note_build_class,
    **{("builtins", name): Calls._note_getattr for name in ("getattr", "hasattr")},
    **{("builtins", name): Calls._note_setattr for name in ("setattr", "delattr")},
    **{("builtins", name): Calls._note_iter for name in ("iter", "next")},
    **{("builtins", name): Calls._note_sorted for name in ("sorted", "min", "max")},
    **{("builtins", name): Calls._note_nothing for name in ("globals", "locals", "eval", "exec")},
}
