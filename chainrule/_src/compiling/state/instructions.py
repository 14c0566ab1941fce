"""What each instruction of Python's is about to read, change and call."""

from __future__ import annotations

import collections
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.compiling.state.calls import Calls
from chainrule._src.compiling.state.frames import Instruction, Stack
from chainrule._src.compiling.state.guards import IMMUTABLE, MISSING, GuardKind, cell_content, elements
from chainrule._src.compiling.state.implicit import is_watched
from chainrule._src.compiling.state.known import (
    BUFFERS,
    CONSTANT,
    CONTAINERS,
    is_constant_module,
    is_library,
    is_lock,
    module_of_code,
)
from chainrule._src.compiling.state.method_calls import text_method
from chainrule._src.compiling.state.objects import OURS, VALUES, are_plain, array_value, is_iterator, is_python, isa

ndarray = np.ndarray
#: looks at an instruction; whether it reads the same whenever the same function runs it, and so need not be looked at again
Handler = Callable[[Calls, Stack, Instruction], Any]
_ELEMENTS = 64  # of one array that are looked at one by one; beyond, all of it is


_SUBSCRIPT = 26  # of BINARY_OP, since Python 3.14
_COLLECTIONS = 1 << 5 | 1 << 6  # flags of classes that patterns take for sequences and mappings
_IN_PLACE = 13  # the first number of BINARY_OP that is an in-place operator
_IN_PLACE_METHODS = (
    "__iadd__", "__iand__", "__ifloordiv__", "__ilshift__", "__imatmul__", "__imul__", "__imod__", "__ior__", "__ipow__",
    "__irshift__", "__isub__", "__itruediv__", "__ixor__",
)  # fmt: skip


def _global(reads: Calls, stack: Stack, i: Instruction) -> bool:
    if reads.item(stack.frame.f_globals, i.value) is MISSING:
        reads.item(stack.frame.f_builtins, i.value)
    return True


def _name(reads: Calls, stack: Stack, i: Instruction) -> None:
    names = stack.frame.f_locals
    if names is not stack.frame.f_globals:
        if not isa(names, dict):  # of eval()
            reads.operand(names, [])
        else:
            reads.element(names, i.value)
            if i.value in names:
                return
    _global(reads, stack, i)


def _free(stack: Stack, i: Instruction) -> Any:
    """The cell of a variable of an enclosing function; None for one of this function's."""
    code = stack.frame.f_code
    if i.value not in code.co_freevars:
        return None
    return stack.cell(code.co_freevars.index(i.value))


def _deref(reads: Calls, stack: Stack, i: Instruction) -> bool:
    cell = _free(stack, i)
    if cell is not None:
        reads.guard(GuardKind.CELL, cell, None, cell_content(cell))
    return True


def _attribute(reads: Calls, stack: Stack, i: Instruction) -> None:
    reads.attribute(stack.top(), i.value)


def _reads_element(reads: Calls, stack: Stack, i: Instruction) -> None:
    x, key = stack.top(2), stack.top()
    reads.check_type(x, lambda stands_for: stands_for is not float)
    if are_plain((x, key.start, key.stop, key.step) if type(key) is slice else (x, key)):
        return
    reads.passed(x)
    reads.passed(key)
    if type(x) is ndarray:
        if not isa(key, OURS):
            _array_element(reads, stack, x, key)
    elif isa(x, (dict, list, collections.deque, types.MappingProxyType)):
        if type(key) in IMMUTABLE or not isa(x, (list, collections.deque)):
            reads.element(x, key)
        else:
            reads.computes(stack, [x, key])
    elif isa(x, type):
        reads.special(None, "__class_getitem__", key, owner=x)
    elif not reads.changed_in_place(x):
        reads.computes(stack, [key] if isa(x, (*CONSTANT, tuple)) else [x, key])


def _array_element(reads: Calls, stack: Stack, x: Any, key: object) -> None:
    whole = key if type(key) is tuple else (key,)
    if x.dtype.names is None and x.ndim == len(whole) and all(type(k) is int for k in whole):
        guards = reads.thing_of(x).guards
        if sum(type(name) is tuple and name[0] == "element" for name in guards) < _ELEMENTS:
            at = functools.partial(array_value, key=whole)
            with_value = at(x)
            if with_value is not MISSING:
                reads.check_not_written(x)
                reads.guard(GuardKind.CHECK, x, at, with_value, ("element", whole))
            return
    reads.computes(stack, [x, key])


def _operands(count: int) -> Handler:
    def look(reads: Calls, stack: Stack, i: Instruction) -> None:
        reads.computes(stack, [stack.top(k) for k in range(count, 0, -1)])

    return look


def _binary(reads: Calls, stack: Stack, i: Instruction) -> None:
    x, y = stack.top(2), stack.top()
    if i.arg == _SUBSCRIPT:
        _reads_element(reads, stack, i)
        return
    if isa(x, str) and not isa(y, str):
        reads.formats([y], text_method(x))
    if are_plain((x, y)):
        return
    if i.arg >= _IN_PLACE and reads.special(x, _IN_PLACE_METHODS[i.arg - _IN_PLACE], y):
        return
    writes = i.arg >= _IN_PLACE and (
        isa(x, (list, set, dict, collections.deque)) or (isa(x, ndarray) and not isa(y, OURS))
    )
    if i.arg >= _IN_PLACE and isa(x, BUFFERS):
        reads.refuse(f"it writes into a {type(x).__name__}, which no recording repeats: use an array of NumPy's")
    if writes and not isa(x, OURS):
        reads.changed_container(x)
    reads.computes(stack, [x, y])


def _compares_identity(reads: Calls, stack: Stack, i: Instruction) -> None:
    x, y = stack.top(2), stack.top()
    if x is not y and isa(x, VALUES) and isa(y, VALUES):
        frame = stack.frame
        if not is_constant_module(module_of_code(frame.f_code, frame.f_globals)):
            reads.refuse("it asks whether two of its values are one (is), which they may be in another call")


def _gives(reads: Calls, stack: Stack, i: Instruction) -> None:
    """A function, or generator, gives something to C code, or to a library's."""
    if not reads.takers:
        return
    outer = stack.frame.f_back
    while outer is not None and id(outer) not in reads.takers and _is_foreign(outer):
        outer = outer.f_back
    taker = reads.takers.get(id(outer))
    x = stack.top()
    if taker is not None and taker.frame is outer and type(x) not in IMMUTABLE and not isa(x, OURS):
        taker.pending.takes(x, taker.pending.arrays)


def _is_foreign(frame: types.FrameType) -> bool:
    return module_of_code(frame.f_code, frame.f_globals).startswith(("numpy.", "scipy.", "pandas."))


def _handles(reads: Calls, stack: Stack, i: Instruction) -> None:
    if isa(stack.top(), RecursionError):
        reads.refuse("it handles a RecursionError, which depends on where it is called")
    reads.recorder.handles(stack.top())


def _truth(reads: Calls, stack: Stack, i: Instruction) -> None:
    x = stack.top()
    reads.passed(x)
    if isa(x, CONTAINERS):
        reads.length(x)
    elif type(x) is ndarray:
        reads.consumed(x)
    elif type(x) not in IMMUTABLE:
        reads.operand(x, [])


def _makes_slice(reads: Calls, stack: Stack, i: Instruction) -> None:
    reads.computes(stack, [stack.top(k) for k in range(i.arg, 0, -1)])


def _goes_through(reads: Calls, stack: Stack, i: Instruction) -> None:
    x = stack.top()
    reads.iterated(x)
    if not is_iterator(x):
        reads.expect(makes=i.name == "GET_ITER", takes=reads.used_up)


def _stores_attribute(reads: Calls, stack: Stack, i: Instruction) -> None:
    reads.sets_attribute(stack.top(), i.value, *([stack.top(2)] if i.name == "STORE_ATTR" else []))


def _stores_item(reads: Calls, stack: Stack, i: Instruction) -> None:
    reads.passed(stack.top())
    reads.sets_item(stack.top(2), stack.top(), stack.top(3))


def _deletes_item(reads: Calls, stack: Stack, i: Instruction) -> None:
    x, key = stack.top(2), stack.top()
    reads.passed(key)
    if not reads.special(x, "__delitem__", key):
        reads.changed_container(x)


def _stores_slice(reads: Calls, stack: Stack, i: Instruction) -> None:
    reads.sets_item(stack.top(3), slice(stack.top(2), stack.top()), stack.top(4))


def _stores_global(reads: Calls, stack: Stack, i: Instruction) -> None:
    if i.name.endswith("GLOBAL") or stack.frame.f_locals is stack.frame.f_globals:
        reads.changed_name(stack.frame.f_globals, i.value)
    elif i.name == "STORE_NAME":  # in the body of a class, which asks its attributes for __set_name__
        reads.passed(stack.top())


def _stores_free(reads: Calls, stack: Stack, i: Instruction) -> None:
    cell = _free(stack, i)
    if cell is not None:
        reads.changed_cell(cell)


def _call(reads: Calls, stack: Stack, i: Instruction) -> None:
    if i.name == "CALL" and CALLS_TWICE:
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


def _call_unpacked(reads: Calls, stack: Stack, i: Instruction) -> None:
    keywords = stack.top() if i.arg & 1 or _KEYWORDS_ALWAYS else {}
    depth = 1 + (i.arg & 1 or _KEYWORDS_ALWAYS)
    keywords = {} if Stack.is_null(keywords) else keywords
    given = stack.top(depth)
    function = stack.top(depth + (2 if _CALLABLE_FIRST else 1))
    if isa(keywords, dict) and keywords:
        reads.whole(keywords)
    if isa(given, CONTAINERS):
        reads.whole(given)
        reads.calls(stack, function, list(elements(given)), dict(keywords))
    else:
        reads.computes(stack, [given, *keywords.values()])
        if is_watched(function) or isa(function, type):
            reads.calls(stack, function, [], dict(keywords))
        else:
            reads.may_call(function)


def _formatted(reads: Calls, stack: Stack, i: Instruction) -> None:
    deeper = i.name == "FORMAT_WITH_SPEC" or (i.name == "FORMAT_VALUE" and i.arg & 4)
    x = stack.top(2 if deeper else 1)
    conversion = (
        (i.arg & 3 if i.name == "FORMAT_VALUE" else i.arg) if i.name in ("FORMAT_VALUE", "CONVERT_VALUE") else 0
    )
    reads.formats([x], "__repr__" if conversion > 1 else "__str__")
    if deeper and isa(spec := stack.top(), str):
        reads.spec(spec)
    reads.computes(stack, [x])


def _imports(reads: Calls, stack: Stack, i: Instruction) -> None:
    names, level = stack.frame.f_globals, stack.top(2)
    name = i.value
    if level:
        base = (names.get("__package__") or "").split(".")
        name = ".".join([*base[: len(base) - level + 1], *([name] if name else [])])
    if name not in sys.modules:
        reads.refuse("it imports a module that is not loaded yet", later=True)
    reads.item(stack.frame.f_builtins, "__import__")
    reads.item(sys.modules, name)
    if not stack.top():  # ``import a.b`` gives a
        reads.item(sys.modules, name.partition(".")[0])


def _enters(reads: Calls, stack: Stack, i: Instruction) -> None:
    x = stack.top()
    reads.type_of(x)
    frame = getattr(getattr(x, "gen", None), "gi_frame", None) if type(x).__module__ == "contextlib" else None
    # Made by contextmanager().
    of_library = frame is not None and is_library(module_of_code(frame.f_code, frame.f_globals))
    in_python = is_python(x, "__enter__") and is_python(x, "__exit__")
    known = is_lock(x) or in_python or type(x).__module__.startswith(("numpy", "chainrule"))
    if of_library or not known:
        reads.refuse(f"it enters a {type(x).__name__}, of which it is not known what it changes")


def _matches_class(reads: Calls, stack: Stack, i: Instruction) -> None:
    x, cls, names = stack.top(3), stack.top(2), stack.top()
    reads.is_instance(x, cls)
    if i.arg:
        reads.attribute(cls, "__match_args__")
    if isinstance(x, cls):
        for name in (*getattr(cls, "__match_args__", ())[: i.arg], *names):
            reads.attribute(x, name)


def _matches_exception(reads: Calls, stack: Stack, i: Instruction) -> None:
    reads.contents_of(type(stack.top(2)))


def _matches_collection(reads: Calls, stack: Stack, i: Instruction) -> None:
    x = stack.top()
    if reads.type_of(x):  # registering a class makes it a sequence, which is no other version of it
        reads.looked_up(x, _flags, "flags")


def _flags(x: object) -> int:
    return type(x).__flags__ & _COLLECTIONS


def _uses(step: int) -> Handler:
    """Objects are raised, or put into a new set or, as keys, dictionary."""

    def look(reads: Calls, stack: Stack, i: Instruction) -> None:
        for k in range(step, step * i.arg + 1, step):
            reads.passed(stack.top(k))

    return look


def _adds(depth: int) -> Handler:
    """A key is put into a set or dictionary of a comprehension."""
    return lambda reads, stack, i: reads.passed(stack.top(depth))


def _super_attribute(reads: Calls, stack: Stack, i: Instruction) -> None:
    reads.attribute(super(stack.top(2), stack.top()), i.value)


def unknown(reads: Calls, stack: Stack, i: Instruction) -> None:
    reads.refuse(f"it runs the instruction {i.name}, of which it is not known what it reads")


CALLS_TWICE = sys.version_info < (3, 12)  # PRECALL comes before CALL, and has all operands


_KEYWORDS_ALWAYS = sys.version_info >= (3, 14)  # of CALL_FUNCTION_EX, though there be none
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


#: what is done before an instruction; None: nothing
HANDLERS: dict[str, Handler | None] = {
    **dict.fromkeys(_HARMLESS.split()),
    **dict.fromkeys(_JUMPS.split(), _truth),
    "LOAD_GLOBAL": _global, "LOAD_NAME": _name, "LOAD_DEREF": _deref, "LOAD_CLASSDEREF": _deref, "LOAD_FROM_DICT_OR_DEREF": _deref,
    "LOAD_FROM_DICT_OR_GLOBALS": _name, "LOAD_ATTR": _attribute, "LOAD_METHOD": _attribute, "IMPORT_FROM": _attribute,
    "LOAD_SUPER_ATTR": _super_attribute, "BINARY_SUBSCR": _reads_element, "BINARY_SLICE": _operands(3), "BINARY_OP": _binary,
    "COMPARE_OP": _operands(2), "CONTAINS_OP": _operands(2), "UNARY_NEGATIVE": _operands(1), "UNARY_INVERT": _operands(1),
    "UNARY_POSITIVE": _operands(1), "GET_ITER": _goes_through,
    "BUILD_SLICE": _makes_slice, "GET_YIELD_FROM_ITER": _goes_through, "UNPACK_SEQUENCE": _goes_through, "UNPACK_EX": _goes_through,
    "LIST_EXTEND": _goes_through, "SET_UPDATE": _goes_through, "DICT_UPDATE": _goes_through, "DICT_MERGE": _goes_through,
    "RETURN_VALUE": _gives, "YIELD_VALUE": _gives, "IS_OP": _compares_identity, "PUSH_EXC_INFO": _handles, "GET_LEN": _truth,
    "CHECK_EXC_MATCH": _matches_exception, "MATCH_SEQUENCE": _matches_collection, "MATCH_MAPPING": _matches_collection,
    "BUILD_SET": _uses(1), "BUILD_MAP": _uses(2), "RAISE_VARARGS": _uses(1),
    "SET_ADD": _adds(1), "MAP_ADD": _adds(2), "MATCH_KEYS": _operands(2), "MATCH_CLASS": _matches_class, "STORE_ATTR": _stores_attribute,
    "DELETE_ATTR": _stores_attribute, "STORE_SUBSCR": _stores_item, "DELETE_SUBSCR": _deletes_item,
    "STORE_SLICE": _stores_slice, "STORE_GLOBAL": _stores_global, "STORE_NAME": _stores_global, "DELETE_GLOBAL": _stores_global,
    "DELETE_NAME": _stores_global, "STORE_DEREF": _stores_free, "DELETE_DEREF": _stores_free, "PRECALL": _call, "CALL": _call,
    "CALL_KW": _call, "CALL_FUNCTION_EX": _call_unpacked, "FORMAT_VALUE": _formatted, "FORMAT_SIMPLE": _formatted,
    "FORMAT_WITH_SPEC": _formatted, "CONVERT_VALUE": _formatted, "IMPORT_NAME": _imports, "BEFORE_WITH": _enters,
    "LOAD_SPECIAL": _enters,
}  # fmt: skip
