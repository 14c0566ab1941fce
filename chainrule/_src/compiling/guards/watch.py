"""Watch the Python state that a function reads during a trace, instruction by instruction.

``function_trace`` runs the traced function by ``StateWatch.call``. Each read is one of three kinds. A read that can be guarded becomes a
:class:`~chainrule._src.compiling.guards.guards.Guard`. A read of a constant needs no guard: numbers, code, definitions of libraries. For
any other read, the function is refused.

Objects that the function makes itself need no guards: each call makes them again. They are recognized by their reference counts
after the function has returned.

Python code of NumPy, SciPy and chainrule is not watched. Objects that are passed to it are guarded as a whole.
"""

from __future__ import annotations

import functools
import gc
import operator
import sys
import types
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.compiling.guards import frames
from chainrule._src.compiling.guards.calls import SHARING, Calls
from chainrule._src.compiling.guards.classes import ClassContent
from chainrule._src.compiling.guards.effect_tables import (
    has_fixed_attributes,
    is_constant_module,
    is_library,
    module_of_code,
)
from chainrule._src.compiling.guards.frames import Instruction, Stack
from chainrule._src.compiling.guards.guards import GuardKind, function_parts
from chainrule._src.compiling.guards.instructions import CALLS_TWICE, HANDLERS, Handler, refuse_unknown
from chainrule._src.compiling.guards.objects import PLAIN, containers_in, has_class
from chainrule._src.compiling.guards.settings import PRINTERS
from chainrule._src.interpreters.recorder import Recorder
from chainrule._src.interpreters.trace_types import PrimitiveFunction
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import owner

ndarray = np.ndarray
_IGNORED_CODE = frozenset(
    {("warnings", "_showwarnmsg"), ("importlib._bootstrap", "_find_and_load"), ("_frozen_importlib", "_find_and_load")}
)


#: a depth of frames above which the recursion limit is guarded; the extension may begin 16 more without ``count_frame``
_DEEP = 16
#: code that a plan runs in each call
_STEPS = frozenset({PrimitiveFunction.__call__.__code__})


def _is_ignored_code(code: types.CodeType, module: str) -> bool:
    """Return whether a frame of this code, and all frames that it calls, read nothing for the function."""
    return (module, code.co_name) in _IGNORED_CODE or code in _STEPS or code in map(_code_of, gc.callbacks)


def _code_of(callback: object) -> types.CodeType | None:
    return getattr(callback, "__code__", getattr(type(callback).__call__, "__code__", None))


def _names_of(code: types.CodeType, cls: type) -> list[str]:
    """Return the names of a class's attributes that are functions of this code."""
    return [
        name
        for name, found in cls.__dict__.items()
        if getattr(getattr(found, "__func__", found), "__code__", None) is code and type(name) is str
    ]


class StateWatch(Calls):
    """Notes the operations of a function on Python objects, from its call to its end."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._depth = self._deepest = 0  # the number of watched frames
        #: by id of a class and code that has run: the class, and the names of its attributes with this code
        self._methods: dict[tuple[int, types.CodeType], tuple[type, list[str]]] = {}
        #: the id and the code of the ignored frame; a reference to the frame would keep its operands alive
        self.ignored_frame: tuple[int, types.CodeType] | None = None

    def call(self, function: AnyFunction, args: tuple[object, ...], kwargs: Params) -> Any:
        """Call a function under watch."""
        self.handled = sys.exc_info()[1]
        self.given = {id(x) for x in containers_in((*args, kwargs))}
        call = functools.partial(function, *args, **kwargs)
        result = frames.call_watched(call, self, PLAIN)
        if self._deepest > _DEEP:
            self.guard_check(sys.getrecursionlimit, operator.call, "setting")
        return result

    @staticmethod
    def is_watched_name(name: str) -> bool:
        return name not in _SKIPPED and HANDLERS.get(name, refuse_unknown) is not None

    @property
    def python_floats(self) -> set[int]:
        return self.recorder.weak

    @property
    def written(self) -> dict[int, Any]:
        return self.recorder.written

    def enter(self, frame: FrameType) -> bool | None:
        watch_frame = self._reports_instructions(frame)
        if watch_frame:
            self.count_frame()
        return watch_frame

    def count_frame(self) -> None:
        self._depth += 1
        self._deepest = max(self._depth, self._deepest)

    def repeats(self, frame: FrameType) -> tuple[object, object, bool] | None:
        code = frame.f_code
        may_be_called_by_library = is_constant_module(module_of_code(code, frame.f_globals))
        if code.co_name in frames.COMPREHENSIONS:
            return None, frame.f_globals, may_be_called_by_library
        function = frames.function_of(frame)
        if type(function) is not FunctionType or function.__kwdefaults__ or (code.co_name == "wrapper"):
            return None
        if not code.co_argcount:
            return function, None, may_be_called_by_library
        if code.co_varnames[0] in code.co_cellvars:
            return None
        receiver = frames.first_argument(frame)
        cls = type(receiver)
        if has_class(receiver, type):
            return None
        if has_fixed_attributes(cls) or ((id(cls), code) in self._methods and not self._methods[id(cls), code][1]):
            return function, cls, may_be_called_by_library
        return function, [receiver, cls], may_be_called_by_library

    def _reports_instructions(self, frame: FrameType) -> bool | None:
        code = frame.f_code
        module = module_of_code(code, frame.f_globals)
        aside = _is_ignored_code(code, module)
        if not aside and is_library(module):
            return self._library_frame(module)
        if self._is_in_ignored_code(frame):
            return False
        if aside:
            self.ignored_frame = id(frame), code
            return False
        if code.co_name == "wrapper" and module in ("dataclasses", "reprlib"):
            return False  # recursion guards of ``repr``
        if (is_constant_module(module) or module.startswith("namedtuple_")) and self._is_called_by_library(frame):
            return False
        if code.co_name in frames.COMPREHENSIONS:
            return True
        function = frames.function_of(frame)
        if type(function) is FunctionType and not is_constant_module(module):
            self.guard(GuardKind.FUNCTION, function, None, function_parts(function))
            if function.__kwdefaults__:
                self.guard_elements(function.__kwdefaults__)
        if code.co_argcount:
            self._note_method_run(frames.first_argument(frame), code)
        return True

    def _library_frame(self, module: str) -> bool | None:
        """Return None for a library frame, which is not watched. For code that prints, guard the print options and return False."""
        if module not in PRINTERS:
            return None
        if self.reason is None:
            holder, read = PRINTERS[module]
            if holder is None or np.get_printoptions()["formatter"]:
                self.refuse("it prints numbers with options that compile cannot guard (pd.set_option, formatter=)")
            self.guard_check(holder, read, "printing")
        return False

    def _note_method_run(self, receiver: Any, code: types.CodeType) -> None:
        """Note that a function starts, which may be a method that an operator looked up on its first argument."""
        cls: type = receiver if has_class(receiver, type) else type(receiver)
        if has_fixed_attributes(cls):
            return
        if (id(cls), code) not in self._methods:
            self._methods[id(cls), code] = cls, [name for base in cls.__mro__ for name in _names_of(code, base)]
        names = self._methods[id(cls), code][1]
        if names:
            self.guard_type(receiver)
        for name in names:
            self.guard_class_attribute(cls, name)

    def _is_in_ignored_code(self, frame: FrameType | None) -> bool:
        """Return whether a frame runs within ignored code: warnings, imports, callbacks of the collector, steps of plans."""
        while self.ignored_frame is not None and frame is not None:
            if (id(frame), frame.f_code) == self.ignored_frame:
                return True
            frame = frame.f_back
        self.ignored_frame = None
        return False

    @staticmethod
    def _is_called_by_library(frame: FrameType) -> bool:
        """Return whether a frame of the standard library is called by a library."""
        outer = frame.f_back
        while outer is not None:
            module = module_of_code(outer.f_code, outer.f_globals)
            if is_library(module) or not is_constant_module(module):
                return is_library(module)
            outer = outer.f_back
        return False

    def leave(self, stack: Stack) -> None:
        self._depth -= 1
        self.finish_instruction(stack, None)
        self.now = None

    def look(self, stack: Stack, i: Instruction) -> Any:
        self.now = stack
        if stack.pending is not None and not (CALLS_TWICE and i.name == "CALL"):
            self.finish_instruction(stack, stack.top() if i.height else None)
        handler: Handler | None = HANDLERS.get(i.name, refuse_unknown)
        try:
            return None if handler is None else handler(self, stack, i)
        except Exception as error:  # it would end the watch while the function runs on
            self.refuse(f"watching it failed: {type(error).__name__}: {error}")

    def finish_instruction(self, stack: Stack, result: object) -> None:
        """Note the effects of the last instruction: new objects, and plain arrays that it read without returning a view of them."""
        pending, stack.pending = stack.pending, None
        if pending is None:
            return
        self.receivers.pop(id(stack.frame), None)
        parts = (
            [x for x in result if not has_class(x, type)] if type(result) is tuple else []
        )  # a class in a tuple is not new
        for x in [result, *parts] if pending.result_is_new else ():
            if x is not None:
                self.note_made(x)
                self.note_special_functions(x)
        for x in pending.arrays:
            self.guard_array(x)
            if type(result) is ndarray and np.may_share_memory(result, x):
                continue
            data = pending.mixed and x.dtype.kind in "fc"  # of indices and masks the values matter to rules
            if data and (self.recorder.reads(x) or (LOCAL.recorder is not None and LOCAL.recorder.reads(x))):
                continue  # an operand of a traced call, which reads the array in place in each call
            self.guard_array_values(x)


class TypeWatch(StateWatch):
    """Watches only queries of the types of traced values, which ``pure=True`` must not get wrong."""

    def enter(self, frame: FrameType) -> bool | None:
        module = module_of_code(frame.f_code, frame.f_globals)
        if is_library(module):
            needed = module in PRINTERS or _is_ignored_code(frame.f_code, module)  # by other traces
            return False if needed else None
        return not is_constant_module(module) and self.reason is None

    @staticmethod
    def is_watched_name(name: str) -> bool:
        return name in _TYPE_QUERIES and name not in _SKIPPED

    def look(self, stack: Stack, i: Instruction) -> Any:
        if self.reason is not None or i.name not in _TYPE_QUERIES:
            return None
        self.now = stack
        return HANDLERS[i.name](self, stack, i)  # type: ignore[misc]

    def arrays(self) -> list[Any]:
        for x in self.recorder.plain_arrays.values():
            self.guard_array(owner(x))  # the instruction that made a view of it was not watched
        return super().arrays()

    def note_call(self, stack: Stack, function: object, args: list[Any], keywords: Params) -> None:
        if (
            args
            and type(args[0]) is Array
            and any(function is query for query in (type, isinstance, getattr, hasattr, np.arange, *SHARING))
        ):
            super().note_call(stack, function, args, keywords)

    def guard_type(self, x: object) -> list[ClassContent]:
        return self.guard_class(type(x))

    def guard_class(self, cls: type) -> list[ClassContent]:
        return []  # the caller promises that classes do not change

    def guard_issubclass(self, kind: type, cls: Any) -> None:
        return

    def guard_attribute(self, x: object, name: str) -> None:
        if type(x) is Array or (name == "data_ptr" and has_class(x, Tensor)):
            super().guard_attribute(x, name)


#: instructions that are handled with the one before them
_SKIPPED = frozenset({"CALL"} if CALLS_TWICE else ())
_TYPE_QUERIES = frozenset({"PUSH_EXC_INFO", "IS_OP", "PRECALL", "CALL", "CALL_KW", "LOAD_ATTR", "LOAD_METHOD"})
