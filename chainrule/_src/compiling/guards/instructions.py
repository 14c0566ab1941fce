"""Handlers by name of a bytecode instruction: they note the state that the instruction is about to read or change, and its calls.

``watch`` calls ``HANDLERS[name](log, stack, instruction)`` before an instruction.
"""

from __future__ import annotations

import collections
import functools
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.arrays.types import Params
from chainrule._src.compiling.guards.calls import GENERATOR, Calls, changes_or_shares, checks_calls
from chainrule._src.compiling.guards.effect_tables import (
    BUFFERS,
    CONSTANT,
    CONTAINERS,
    called_by,
    is_constant_module,
    is_library,
    is_lock,
    module_of_code,
)
from chainrule._src.compiling.guards.frames import Instruction, Stack
from chainrule._src.compiling.guards.guards import IMMUTABLE, MISSING, GuardKind, cell_content, elements_of
from chainrule._src.compiling.guards.implicit import is_watched
from chainrule._src.compiling.guards.method_calls import text_method
from chainrule._src.compiling.guards.objects import (
    CHAINRULE_TYPES,
    VALUES,
    are_plain,
    array_value,
    flat_items,
    has_class,
    is_iterator,
    is_python,
    module_of,
    shown_by,
)
from chainrule._src.compiling.guards.settings import is_special

ndarray = np.ndarray
#: Handles an instruction. Returns True if the instruction reads the same state whenever the same function runs it, so that one report is
#: enough. Returns a list of entries if this is so for the operands that the entries describe: ``frames._watch_table``.
Handler = Callable[[Calls, Stack, Instruction], Any]
#: functions and classes of Python that only compute with plain arguments
_OF_NUMBERS = (abs, bool, complex, divmod, float, len, list, max, min, pow, range, round, slice, sum, tuple)
_OPERATION = native.LOOPS.Operation if native.AVAILABLE else None
_ELEMENTS = 64  # maximum number of elements of an array that are guarded one by one; then the whole array is


_SUBSCRIPT = 26  # the argument of BINARY_OP for a subscript, since Python 3.14
_COLLECTIONS = 1 << 5 | 1 << 6  # class flags of sequences and mappings for pattern matching
_IN_PLACE = 13  # the first argument of BINARY_OP for in-place operators
_IN_PLACE_METHODS = (
    "__iadd__", "__iand__", "__ifloordiv__", "__ilshift__", "__imatmul__", "__imul__", "__imod__", "__ior__", "__ipow__",
    "__irshift__", "__isub__", "__itruediv__", "__ixor__",
)  # fmt: skip


def _load_global(log: Calls, stack: Stack, i: Instruction) -> bool:
    if log.guard_item(stack.frame.f_globals, i.value) is MISSING:
        log.guard_item(stack.frame.f_builtins, i.value)
    return True


def _load_name(log: Calls, stack: Stack, i: Instruction) -> None:
    names = stack.frame.f_locals
    if names is not stack.frame.f_globals:
        if not has_class(names, dict):  # a mapping passed to eval()
            log.note_operand(names, [])
        else:
            log.guard_element(names, i.value)
            if i.value in names:
                return
    _load_global(log, stack, i)


def _free_cell(stack: Stack, i: Instruction) -> Any:
    """Return the cell of a variable of an enclosing function; None for a variable of this function."""
    code = stack.frame.f_code
    if i.value not in code.co_freevars:
        return None
    return stack.cell(code.co_freevars.index(i.value))


def _load_deref(log: Calls, stack: Stack, i: Instruction) -> object:
    cell = _free_cell(stack, i)
    if cell is None:
        return True
    log.guard(GuardKind.CELL, cell, None, cell_content(cell))
    return [cell]


def _load_attribute(log: Calls, stack: Stack, i: Instruction) -> object:
    x = stack.top()
    log.guard_attribute(x, i.value)
    return log.attribute_entries(x, i.value)


def _subscript(log: Calls, stack: Stack, i: Instruction) -> object:
    x, key = stack.top(2), stack.top()
    log.check_type(x, lambda eager_type: eager_type is not float)
    if are_plain((x, key.start, key.stop, key.step) if type(key) is slice else (x, key)):
        return None
    log.guard_class_use(x)
    log.guard_class_use(key)
    if type(x) is ndarray:
        if not has_class(key, CHAINRULE_TYPES):
            return _subscript_array(log, stack, x, key)
    elif has_class(x, (dict, list, collections.deque, types.MappingProxyType)):
        if type(key) in IMMUTABLE or not has_class(x, (list, collections.deque)):
            log.guard_element(x, key)
            return log.element_entries(x, key)
        log.note_operands(stack, [x, key])
    elif has_class(x, type):
        log.note_special_method(None, "__class_getitem__", key, owner=x)
    elif not log.guard_mutable_content(x):
        log.note_operands(stack, [key] if has_class(x, (*CONSTANT, tuple)) else [x, key])
    return None


def _subscript_array(log: Calls, stack: Stack, x: Any, key: object) -> object:
    entries = log.array_entries([x])
    if entries and are_plain(flat_items([key])):
        return entries
    whole = key if type(key) is tuple else (key,)
    if x.dtype.names is None and x.ndim == len(whole) and all(type(k) is int for k in whole):
        guards = log.watched_object(x).guards
        if sum(type(name) is tuple and name[0] == "element" for name in guards) < _ELEMENTS:
            at = functools.partial(array_value, key=whole)
            with_value = at(x)
            if with_value is not MISSING:
                log.check_not_written(x)
                log.guard(GuardKind.CHECK, x, at, with_value, ("element", whole))
            return None
    log.note_operands(stack, [x, key])
    return [] if x.dtype.hasobject or x.dtype.names else [(x,)]


def _operands(count: int) -> Handler:
    def look(log: Calls, stack: Stack, i: Instruction) -> object:
        operands = [stack.top(k) for k in range(count, 0, -1)]
        entries = log.array_entries(operands)
        if not entries:
            log.note_operands(stack, operands)
        return entries

    return look


def _contains(log: Calls, stack: Stack, i: Instruction) -> object:
    key, x = stack.top(2), stack.top()
    if type(key) is str and type(x) is dict:
        log.guard_key(x, key)
        return [(x, key)]
    log.note_operands(stack, [key, x])
    return None


def _binary(log: Calls, stack: Stack, i: Instruction) -> object:
    x, y = stack.top(2), stack.top()
    if i.arg == _SUBSCRIPT:
        return _subscript(log, stack, i)
    if has_class(x, str) and not has_class(y, str):
        log.note_text([y], text_method(x))
    if are_plain((x, y)):
        return None
    if i.arg >= _IN_PLACE and log.note_special_method(x, _IN_PLACE_METHODS[i.arg - _IN_PLACE], y):
        return None
    writes = i.arg >= _IN_PLACE and (
        has_class(x, (list, set, dict, collections.deque))
        or (has_class(x, ndarray) and not has_class(y, CHAINRULE_TYPES))
    )
    if i.arg >= _IN_PLACE and has_class(x, BUFFERS):
        log.refuse(f"it writes into a {type(x).__name__}, which a replay cannot repeat: use a NumPy array")
    if writes and not has_class(x, CHAINRULE_TYPES):
        log.note_container_change(x)
    entries = [] if i.arg >= _IN_PLACE and type(x) is ndarray else log.array_entries([x, y])
    if not entries:
        log.note_operands(stack, [x, y])
    return entries


def _compare_identity(log: Calls, stack: Stack, i: Instruction) -> None:
    x, y = stack.top(2), stack.top()
    if x is not y and has_class(x, VALUES) and has_class(y, VALUES):
        frame = stack.frame
        if not is_constant_module(module_of_code(frame.f_code, frame.f_globals)):
            log.refuse("it checks whether two of its values are the same object (is), which may differ in another call")


def _return_or_yield(log: Calls, stack: Stack, i: Instruction) -> None:
    """Note a value that a function or generator returns or yields to C code or a library."""
    if not log.receivers:
        return
    outer = stack.frame.f_back
    while outer is not None and id(outer) not in log.receivers and _is_foreign(outer):
        outer = outer.f_back
    receiver_stack = log.receivers.get(id(outer))
    x = stack.top()
    if (
        receiver_stack is not None
        and receiver_stack.frame is outer
        and type(x) not in IMMUTABLE
        and not has_class(x, CHAINRULE_TYPES)
    ):
        receiver_stack.pending.receive(x, receiver_stack.pending.arrays)


def _is_foreign(frame: types.FrameType) -> bool:
    return module_of_code(frame.f_code, frame.f_globals).startswith(("numpy.", "scipy.", "pandas."))


def _push_exception(log: Calls, stack: Stack, i: Instruction) -> None:
    if has_class(stack.top(), RecursionError):
        log.refuse("it handles a RecursionError, which depends on the depth of the caller")
    log.recorder.note_handled_exception(stack.top())


def _test_truth(log: Calls, stack: Stack, i: Instruction) -> object:
    x = stack.top()
    log.guard_class_use(x)
    if has_class(x, CONTAINERS):
        log.guard_length(x)
        return [x] if type(x) in (list, dict) else None
    if type(x) is ndarray:
        log.guard_array_values(x)
    elif type(x) not in IMMUTABLE:
        log.note_operand(x, [])
    return None


def _build_slice(log: Calls, stack: Stack, i: Instruction) -> None:
    log.note_operands(stack, [stack.top(k) for k in range(i.arg, 0, -1)])


def _iterate(log: Calls, stack: Stack, i: Instruction) -> object:
    x = stack.top()
    log.note_iteration(x)
    if not is_iterator(x):
        log.expect(result_is_new=i.name == "GET_ITER", receive=log.note_consumed)
    x = shown_by(x)
    return [x] if type(x) in (list, dict) else None


def _store_attribute(log: Calls, stack: Stack, i: Instruction) -> None:
    log.note_attribute_write(stack.top(), i.value, *([stack.top(2)] if i.name == "STORE_ATTR" else []))


def _store_item(log: Calls, stack: Stack, i: Instruction) -> None:
    log.guard_class_use(stack.top())
    log.note_item_write(stack.top(2), stack.top(), stack.top(3))


def _delete_item(log: Calls, stack: Stack, i: Instruction) -> None:
    x, key = stack.top(2), stack.top()
    log.guard_class_use(key)
    if not log.note_special_method(x, "__delitem__", key):
        log.note_container_change(x)


def _store_slice(log: Calls, stack: Stack, i: Instruction) -> None:
    log.note_item_write(stack.top(3), slice(stack.top(2), stack.top()), stack.top(4))


def _store_global(log: Calls, stack: Stack, i: Instruction) -> None:
    if i.name.endswith("GLOBAL") or stack.frame.f_locals is stack.frame.f_globals:
        log.note_name_change(stack.frame.f_globals, i.value)
    elif i.name == "STORE_NAME":  # in a class body: the class looks up __set_name__ of its attributes
        log.guard_class_use(stack.top())


def _store_free(log: Calls, stack: Stack, i: Instruction) -> object:
    cell = _free_cell(stack, i)
    if cell is None:
        return True
    log.note_cell_change(cell)
    return None


def _call(log: Calls, stack: Stack, i: Instruction) -> object:
    if i.name == "CALL" and CALLS_TWICE:
        return None
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
    keywords = dict(zip(names, args[len(positional) :], strict=True))
    log.note_call(stack, function, positional, keywords)
    return _call_entries(log, function, args, keywords)


def _call_entries(log: Calls, function: Any, args: list[Any], keywords: Params) -> list[Any] | None:
    """Return the entries of a call (``frames._watch_table``) if further calls need not be noted; else None."""
    if type(function) is types.MethodType:
        function, args = function.__func__, [function.__self__, *args]
    if type(function) is types.FunctionType and not is_library(module_of_code(function.__code__, function.__globals__)):
        # its own instructions are watched
        return None if function.__code__.co_flags & GENERATOR else [(function.__code__, function.__globals__)]
    if type(function) is types.MethodDescriptorType and args and type(args[0]) is dict and not keywords:
        return _dictionary_entries(function, *args)
    flat = [item for x in args for item in (x if type(x) in (list, tuple) else (x,))]
    if not are_plain(flat):
        return None
    if is_python(function, "__call__") and not has_class(function, (type, weakref.ref)):
        called = log.attribute_entries(function, "__call__")
        return None if called is None or len(called[0]) != 4 or called[0][2] is None else [(called[0],)]
    return [(function,)] if _repeats(function, keywords) else None


def _dictionary_entries(method: Any, x: dict[Any, Any], *args: object) -> list[Any] | None:
    """Return the entry of a method that reads a dictionary."""
    if method.__name__ in ("keys", "values", "items") and not args:
        return [(method, x)]
    return [(method, x, args[0])] if method.__name__ == "get" and args and type(args[0]) is str else None


def _repeats(function: Any, keywords: Params) -> bool:
    """Return whether calls with plain arguments need not be noted again: they write nothing and read no state."""
    kind = type(function)
    if "out" in keywords:
        return False
    if kind is np.ufunc:
        return not keywords and not called_by(function) and not is_special(function)
    if kind.__name__ == "_ArrayFunctionDispatcher":
        return module_of(function).startswith("numpy") and not changes_or_shares(function)
    if kind is types.FunctionType:
        return module_of(function).startswith("chainrule") and not checks_calls(function)
    if kind is _OPERATION:
        return not changes_or_shares(function)
    of_math = kind is types.BuiltinFunctionType and module_of(function) == "math"
    return not keywords and (of_math or any([function is each for each in _OF_NUMBERS]))


def _call_unpacked(log: Calls, stack: Stack, i: Instruction) -> object:
    keywords = stack.top() if i.arg & 1 or _KEYWORDS_ALWAYS else {}
    depth = 1 + (i.arg & 1 or _KEYWORDS_ALWAYS)
    keywords = {} if Stack.is_null(keywords) else keywords
    given = stack.top(depth)
    function = stack.top(depth + (2 if _CALLABLE_FIRST else 1))
    if has_class(keywords, dict) and keywords:
        log.guard_elements(keywords)
    if has_class(given, CONTAINERS):
        log.guard_elements(given)
        log.note_call(stack, function, list(elements_of(given)), dict(keywords))
        return _call_entries(log, function, list(elements_of(given)), dict(keywords))
    log.note_operands(stack, [given, *keywords.values()])
    if is_watched(function) or has_class(function, type):
        log.note_call(stack, function, [], dict(keywords))
    else:
        log.note_possible_call(function)
    return None


def _format(log: Calls, stack: Stack, i: Instruction) -> None:
    deeper = i.name == "FORMAT_WITH_SPEC" or (i.name == "FORMAT_VALUE" and i.arg & 4)
    x = stack.top(2 if deeper else 1)
    conversion = (
        (i.arg & 3 if i.name == "FORMAT_VALUE" else i.arg) if i.name in ("FORMAT_VALUE", "CONVERT_VALUE") else 0
    )
    log.note_text([x], "__repr__" if conversion > 1 else "__str__")
    if deeper and has_class(spec := stack.top(), str):
        log.check_format_spec(spec)
    log.note_operands(stack, [x])


def _import_name(log: Calls, stack: Stack, i: Instruction) -> None:
    names, level = stack.frame.f_globals, stack.top(2)
    name = i.value
    if level:
        base = (names.get("__package__") or "").split(".")
        name = ".".join([*base[: len(base) - level + 1], *([name] if name else [])])
    if name not in sys.modules:
        log.refuse("it imports a module that is not loaded yet", later=True)
    log.guard_item(stack.frame.f_builtins, "__import__")
    log.guard_item(sys.modules, name)
    if not stack.top():  # ``import a.b`` gives a
        log.guard_item(sys.modules, name.partition(".")[0])


def _enter_context(log: Calls, stack: Stack, i: Instruction) -> None:
    x = stack.top()
    log.guard_type(x)
    frame = getattr(getattr(x, "gen", None), "gi_frame", None) if type(x).__module__ == "contextlib" else None
    # a generator-based context manager
    of_library = frame is not None and is_library(module_of_code(frame.f_code, frame.f_globals))
    in_python = is_python(x, "__enter__") and is_python(x, "__exit__")
    is_known_manager = is_lock(x) or in_python or type(x).__module__.startswith(("numpy", "chainrule"))
    if of_library or not is_known_manager:
        log.refuse(f"it enters a {type(x).__name__}, and compile does not know what that changes")


def _match_class(log: Calls, stack: Stack, i: Instruction) -> None:
    x, cls, names = stack.top(3), stack.top(2), stack.top()
    log.guard_isinstance(x, cls)
    if i.arg:
        log.guard_attribute(cls, "__match_args__")
    if isinstance(x, cls):
        for name in (*getattr(cls, "__match_args__", ())[: i.arg], *names):
            log.guard_attribute(x, name)


def _match_exception(log: Calls, stack: Stack, i: Instruction) -> None:
    log.guard_class(type(stack.top(2)))


def _match_collection(log: Calls, stack: Stack, i: Instruction) -> None:
    x = stack.top()
    if log.guard_type(x):  # registering a class as a sequence changes its flags, but not its version
        log.guard_check(x, _flags, "flags")


def _flags(x: object) -> int:
    return type(x).__flags__ & _COLLECTIONS


def _use_objects(step: int) -> Handler:
    """Return a handler for objects that are raised, or that are elements of a new set or keys of a new dictionary."""

    def look(log: Calls, stack: Stack, i: Instruction) -> bool | None:
        for k in range(step, step * i.arg + 1, step):
            log.guard_class_use(stack.top(k))
        return True if i.arg == 0 else None

    return look


def _add_key(depth: int) -> Handler:
    """Return a handler for a key that is added to a set or dictionary of a comprehension."""
    return lambda log, stack, i: log.guard_class_use(stack.top(depth))


def _super_attribute(log: Calls, stack: Stack, i: Instruction) -> None:
    try:
        bound = super(stack.top(2), stack.top())
    except TypeError:  # the instruction raises it, too
        log.guard_class_use(stack.top())
        return
    log.guard_attribute(bound, i.value)


def refuse_unknown(log: Calls, stack: Stack, i: Instruction) -> None:
    log.refuse(f"it runs the instruction {i.name}, and compile does not know what that reads")


CALLS_TWICE = sys.version_info < (3, 12)  # PRECALL comes before CALL, and has all operands


_KEYWORDS_ALWAYS = sys.version_info >= (3, 14)  # CALL_FUNCTION_EX always has an operand for keywords
_CALLABLE_FIRST = sys.version_info >= (3, 13)


_HARMLESS = """
    NOP RESUME CACHE EXTENDED_ARG POP_TOP PUSH_NULL COPY SWAP LOAD_CONST LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR
    LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW LOAD_SMALL_INT LOAD_COMMON_CONSTANT
    STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_FAST_MAYBE_NULL DELETE_FAST LOAD_CLOSURE MAKE_CELL COPY_FREE_VARS
    MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE BUILD_TUPLE BUILD_LIST BUILD_CONST_KEY_MAP BUILD_STRING
    LIST_APPEND LIST_TO_TUPLE FOR_ITER END_FOR POP_ITER KW_NAMES
    RETURN_CONST RETURN_GENERATOR GEN_START SEND END_SEND ASYNC_GEN_WRAP
    JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
    POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
    POP_EXCEPT RERAISE WITH_EXCEPT_START LOAD_ASSERTION_ERROR CLEANUP_THROW
    LOAD_BUILD_CLASS LOAD_LOCALS SETUP_ANNOTATIONS CALL_INTRINSIC_1 CALL_INTRINSIC_2
    NOT_TAKEN EXIT_INIT_CHECK INTERPRETER_EXIT
"""


_JUMPS = """
    POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_BACKWARD_IF_TRUE
    POP_JUMP_BACKWARD_IF_FALSE JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP TO_BOOL UNARY_NOT
"""


#: the handler of each instruction; None: the instruction needs none
HANDLERS: dict[str, Handler | None] = {
    **dict.fromkeys(_HARMLESS.split()),
    **dict.fromkeys(_JUMPS.split(), _test_truth),
    "LOAD_GLOBAL": _load_global, "LOAD_NAME": _load_name, "LOAD_DEREF": _load_deref,
    "LOAD_CLASSDEREF": _load_deref, "LOAD_FROM_DICT_OR_DEREF": _load_deref,
    "LOAD_FROM_DICT_OR_GLOBALS": _load_name, "LOAD_ATTR": _load_attribute, "LOAD_METHOD": _load_attribute, "IMPORT_FROM": _load_attribute,
    "LOAD_SUPER_ATTR": _super_attribute, "BINARY_SUBSCR": _subscript, "BINARY_SLICE": _operands(3), "BINARY_OP": _binary,
    "COMPARE_OP": _operands(2), "CONTAINS_OP": _contains, "UNARY_NEGATIVE": _operands(1), "UNARY_INVERT": _operands(1),
    "UNARY_POSITIVE": _operands(1), "GET_ITER": _iterate,
    "BUILD_SLICE": _build_slice, "GET_YIELD_FROM_ITER": _iterate, "UNPACK_SEQUENCE": _iterate, "UNPACK_EX": _iterate,
    "LIST_EXTEND": _iterate, "SET_UPDATE": _iterate, "DICT_UPDATE": _iterate, "DICT_MERGE": _iterate,
    "RETURN_VALUE": _return_or_yield, "YIELD_VALUE": _return_or_yield, "IS_OP": _compare_identity,
    "PUSH_EXC_INFO": _push_exception, "GET_LEN": _test_truth,
    "CHECK_EXC_MATCH": _match_exception, "MATCH_SEQUENCE": _match_collection, "MATCH_MAPPING": _match_collection,
    "BUILD_SET": _use_objects(1), "BUILD_MAP": _use_objects(2), "RAISE_VARARGS": _use_objects(1),
    "SET_ADD": _add_key(1), "MAP_ADD": _add_key(2), "MATCH_KEYS": _operands(2), "MATCH_CLASS": _match_class, "STORE_ATTR": _store_attribute,
    "DELETE_ATTR": _store_attribute, "STORE_SUBSCR": _store_item, "DELETE_SUBSCR": _delete_item,
    "STORE_SLICE": _store_slice, "STORE_GLOBAL": _store_global, "STORE_NAME": _store_global, "DELETE_GLOBAL": _store_global,
    "DELETE_NAME": _store_global, "STORE_DEREF": _store_free, "DELETE_DEREF": _store_free, "PRECALL": _call, "CALL": _call,
    "CALL_KW": _call, "CALL_FUNCTION_EX": _call_unpacked, "FORMAT_VALUE": _format, "FORMAT_SIMPLE": _format,
    "FORMAT_WITH_SPEC": _format, "CONVERT_VALUE": _format, "IMPORT_NAME": _import_name, "BEFORE_WITH": _enter_context,
    "LOAD_SPECIAL": _enter_context,
}  # fmt: skip
