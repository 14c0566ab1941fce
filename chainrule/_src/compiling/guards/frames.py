"""Watch the instructions of Python functions, with access to the evaluation stack.

``call_watched`` calls a function and calls back before each instruction. The callback reads the operands of the instruction
(``LOAD_ATTR`` of which object?) from the evaluation stack of the frame, which Python does not expose. Its offset in memory is
listed for each version of CPython (``LAYOUTS``), and its height before each instruction is computed from the code. ``why_unwatchable``
checks both at first use.

Instructions are reported by ``sys.settrace`` before Python 3.12, and by ``sys.monitoring`` since.
"""

from __future__ import annotations

import array
import dis
import functools
import sys
import threading
from collections.abc import Callable
from types import CellType, CodeType, FrameType
from typing import Any, NamedTuple, Protocol, SupportsIndex

from chainrule._src import native

try:
    import ctypes
except ImportError:  # a Python built without it
    ctypes = None  # type: ignore[assignment]

_WORD = 8
#: offsets of a frame's function and of its first local, in words from the beginning of the interpreter frame
LAYOUTS = {(3, 11): (0, 9), (3, 12): (2, 9), (3, 13): (2, 9), (3, 14): (2, 10)}
_TAGS = 3 if sys.version_info >= (3, 14) else 0  # tag bits of a reference
COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})  # each run makes a new function
_NULL: object = type("Null", (), {"__repr__": lambda self: "<NULL>"})()
_ENDS = frozenset(
    {
        "RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS", "JUMP_FORWARD", "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT", "INTERPRETER_EXIT",
    }
)  # fmt: skip


class Instruction(NamedTuple):
    """One instruction of a code object.

    Attributes:
        name, arg, value: ``opname``, ``arg`` and ``argval`` of ``dis``.
        height: the stack height before it; None for unreachable code.
        keywords: the names of the keyword arguments of a call.
    """

    name: str
    arg: int
    value: Any
    height: int | None
    keywords: tuple[str, ...]


class Stack:
    """The locals and the evaluation stack of a running frame."""

    __slots__ = ("_base", "_objects", "_words", "frame", "height", "pending")

    frame: FrameType
    pending: Any

    def __init__(self, frame: FrameType) -> None:
        code = frame.f_code
        self.frame = frame
        self._base = _count_locals(code)
        self._words = _frame_references(frame, LAYOUTS[sys.version_info[:2]][1], self._base + code.co_stacksize)
        self._objects = None if _TAGS else (ctypes.py_object * len(self._words)).from_buffer(self._words)
        self.height = 0
        self.pending = None  # for the callback: the effects of the instruction that it expects

    def top(self, depth: int = 1) -> Any:
        """Return the stack entry at a depth, 1 being the top; ``NULL`` for an empty one."""
        if self._objects is None:
            return self.slot(self._base + self.height - depth)
        try:
            return self._objects[self._base + self.height - depth]
        except ValueError:  # a null reference
            return _NULL

    def cell(self, index: int) -> Any:
        """Return the cell of a variable of an enclosing function."""
        return self.slot(self._base - len(self.frame.f_code.co_freevars) + index)

    def end(self) -> None:
        """Drop the reference to the frame, which refers to this object."""
        self.pending = self.frame = None  # type: ignore[assignment]

    def slot(self, index: int) -> Any:
        """Return a local, a cell or a stack entry, counted from the first local."""
        return _object_of_reference(self._words[index])

    @staticmethod
    def is_null(x: object) -> bool:
        return x is _NULL


def function_of(frame: FrameType) -> Any:
    """Return the function that a frame runs, or None."""
    found = _object_of_reference(_frame_references(frame, LAYOUTS[sys.version_info[:2]][0], 1)[0])
    return None if found is _NULL else found


def first_argument(frame: FrameType) -> Any:
    """Return the first argument of the function that a frame begins to run, or None. ``f_locals`` would refer to all locals."""
    code = frame.f_code
    if not code.co_argcount:
        return None
    found = _object_of_reference(_frame_references(frame, LAYOUTS[sys.version_info[:2]][1], 1)[0])
    if found is not _NULL and code.co_varnames[0] in code.co_cellvars and type(found) is CellType:
        return found.cell_contents
    return None if found is _NULL else found


def _frame_references(frame: FrameType, first: int, count: int) -> Any:
    """Return references in the interpreter frame of a frame, as a ctypes array."""
    record = ctypes.c_void_p.from_address(id(frame) + object.__basicsize__ + _WORD).value
    assert record is not None
    return (ctypes.c_void_p * count).from_address(record + first * _WORD)


def _object_of_reference(reference: int | None) -> Any:
    """Return the object of a reference; ``NULL`` for null and for tagged integers."""
    if reference is None or reference & _TAGS == 3:
        return _NULL
    address = reference & ~_TAGS
    return ctypes.cast(address, ctypes.py_object).value if address else _NULL


@functools.lru_cache(maxsize=4096)
def _count_locals(code: CodeType) -> int:
    return len(code.co_varnames) + len(code.co_freevars) + len(set(code.co_cellvars) - set(code.co_varnames))


@functools.lru_cache(maxsize=4096)
def instructions_by_offset(code: CodeType) -> dict[int, Instruction]:
    """Return the instructions of a code object by offset. The offset of an ``EXTENDED_ARG`` maps to its instruction."""
    found = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
    heights = _heights(code, found)
    table: dict[int, Instruction] = {}
    keywords: tuple[str, ...] = ()
    prefixes: list[int] = []
    for i in found:
        if i.opname == "EXTENDED_ARG":
            prefixes.append(i.offset)
            continue
        if i.opname == "KW_NAMES":
            keywords = code.co_consts[i.arg or 0]
        one = Instruction(i.opname, i.arg or 0, i.argval, heights.get(i.offset), keywords)
        for offset in (*prefixes, i.offset):
            table[offset] = one
        prefixes = []
        if i.opname == "CALL":
            keywords = ()
    return table


def _heights(code: CodeType, found: list[dis.Instruction]) -> dict[int, int]:
    """Return the stack height before each reachable instruction, by offset."""
    index = {i.offset: k for k, i in enumerate(found)}
    heights: dict[int, int] = {}
    handlers = [(e.target, e.depth + 1 + bool(e.lasti)) for e in dis._parse_exception_table(code)]  # type: ignore[attr-defined]
    todo = [(0, 0), *handlers]
    while todo:
        offset, height = todo.pop()
        k = index[offset]
        while k < len(found) and found[k].offset not in heights:
            i = found[k]
            heights[i.offset] = height
            arg = i.arg if i.opcode >= dis.HAVE_ARGUMENT else None
            if i.opcode in dis.hasjrel or i.opcode in dis.hasjabs:
                todo.append((i.argval, height + dis.stack_effect(i.opcode, arg, jump=True)))
            if i.opname in _ENDS:
                break
            if i.opname == "RETURN_GENERATOR":
                height = 1  # the value that the first next() sends; stack_effect differs between versions
            elif i.opname != "EXTENDED_ARG":
                height += dis.stack_effect(i.opcode, arg, jump=False)
            k += 1
    return heights


# -- callbacks -----------------------------------------------------------------------------------------------------------


class Observer(Protocol):
    """The object whose methods ``call_watched`` calls.

    Attributes:
        receivers: empty if no C code receives the values that functions return.
        written: empty if no array was written.
        caches: gets the lists of entries that ``look`` returned. They refer to objects; the observer may clear them.
        failed: set to True if an exception ended the watch before the function. The function may have handled the exception.
    """

    failed: bool
    receivers: dict[int, Any]
    caches: list[list[Any]]

    @property
    def written(self) -> dict[int, Any]:
        """A dictionary that is empty if no array was written."""

    @property
    def ignored_frame(self) -> object:
        """The frame whose inner frames are not reported; None if all frames are reported."""

    @property
    def python_floats(self) -> set[int]:
        """A set that is empty if no traced value is a Python float in eager code."""

    def enter(self, frame: FrameType) -> bool | None:
        """Return whether to report the instructions of a frame that starts or resumes. Return None to report no frame with its code."""

    def repeats(self, frame: FrameType) -> tuple[object, object, bool] | None:
        """Return for which further frames of the code ``enter`` has no effect, or None.

        Returns:
            The function; the type of its first argument, or a list of this argument and its type, or None for any argument; and
            whether the function must be called by a reported frame. For a comprehension, whose function is a new one in each run,
            the first two are None and the globals.
        """

    def count_frame(self) -> None:
        """Count a reported frame for which ``enter`` was not called."""

    def look(self, stack: Stack, instruction: Instruction) -> object:
        """Handle an instruction before it runs. Return True if the same function need not report it again.

        See ``_watch_table`` for the entries that it may return in a list.
        """

    def leave(self, stack: Stack) -> None:
        """Note that a reported frame returns, yields or raises."""

    def is_watched_name(self, name: str) -> bool:
        """Return whether to report instructions of a name. Other instructions may be left out unless the stack has a pending effect."""


def call_watched(call: Callable[[], object], observer: Observer, plain_types: frozenset[type]) -> object:
    """Call a function without arguments, and report the instructions of this thread to an observer meanwhile.

    Args:
        plain_types: types of operands for which operators and subscripts need not be reported.
    """
    return (_call_monitored if hasattr(sys, "monitoring") else _call_traced)(call, observer, plain_types)


def _call_traced(call: Callable[[], object], observer: Observer, plain_types: frozenset[type]) -> object:
    loops = native.LOOPS
    known: dict[CodeType, tuple[Any, ...]] = {}
    #: by code and id of the function, or of the globals of a comprehension, which are kept alive
    tables: dict[tuple[CodeType, int], tuple[object, tuple[Any, ...]]] = {}

    def begin(frame: FrameType, event: str = "call", arg: object = None) -> Any:
        if event != "call":
            return None
        watch_frame = observer.enter(frame)
        if not watch_frame:
            if watch_frame is None and loops is not None:
                loops.mark_untraced(frame.f_code)
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if not observed:
            return _frame_trace_function(frame, observer)
        code = frame.f_code
        function = None if code.co_name in COMPREHENSIONS else function_of(frame)
        function = frame.f_globals if function is None else function
        if (code, id(function)) not in tables:
            tables[code, id(function)] = function, _watch_table(code, observer.is_watched_name)
            observer.caches.append(tables[code, id(function)][1][3])
        parts = tables[code, id(function)][1]
        repeated = observer.repeats(frame)
        if repeated is not None:
            function, argument, by_reported = repeated
            if type(argument) is list:
                seen = known[code][1] if code in known and known[code][0] is function else None
                if type(seen) is not list or len(seen) >= 2 * _ENTRIES:
                    seen = []
                    observer.caches.append(seen)
                seen += argument
                argument = seen
            known[code] = function, argument, *parts, by_reported
        _report_natively(frame, observer, bytearray(1), parts)
        return None

    def open_frame(frame: FrameType, trace: tuple[Any, ...]) -> Any:
        observer.count_frame()
        table, pending, _, *others = trace
        return _report_natively(frame, observer, pending, (table, *others))

    observed = loops is not None and loops.trace_frames(
        begin,
        open_frame,
        observer,
        plain_types,
        observer.python_floats,
        observer.receivers,
        observer.written,
        _OWN_METHODS,
        known,
    )
    if not observed:
        sys.settrace(begin)
    silenced = loops is not None and loops.enable_untraced(True)
    try:
        return call()
    finally:
        sys.settrace(None)
        tables.clear()
        known.clear()
        clear_entries(observer.caches)
        if loops is not None:
            loops.drop_trace_references()
        if silenced:
            loops.enable_untraced(False)


def _report_natively(
    frame: FrameType, observer: Observer, pending: bytearray, parts: tuple[Any, ...]
) -> Callable[[int], bool]:
    """Have the extension report the instructions of a frame. Return the callback."""
    table, heights, counts, cached = parts
    found, stack = instructions_by_offset(frame.f_code), Stack(frame)

    def at(offset: int) -> bool:
        if offset < 0:
            observer.leave(stack)
            stack.end()
            return False
        instruction = found[offset]
        if instruction.height is not None:
            stack.height = instruction.height
            again: Any = observer.look(stack, instruction)
            if again is True:
                table[offset >> 1] = _NOTHING
            elif again:
                cached[offset >> 1] = (*again, *(cached[offset >> 1] or ()))[:_ENTRIES]
        return stack.pending is not None

    frame.f_trace = table, pending, at, heights, counts, cached  # type: ignore[assignment]
    return at


def clear_entries(caches: list[list[Any]]) -> None:
    """Remove all entries from the caches of instructions, which refer to objects."""
    for cached in caches:
        cached[:] = [None] * len(cached)


def _frame_trace_function(frame: FrameType, observer: Observer) -> Any:
    """Return the trace function of a frame whose instructions ``sys.settrace`` reports."""
    found, stack = instructions_by_offset(frame.f_code), Stack(frame)

    def inside(frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode":
            instruction = found[frame.f_lasti]
            if instruction.height is not None:
                stack.height = instruction.height
                observer.look(stack, instruction)
        elif event == "return":
            observer.leave(stack)
            stack.end()
        return inside

    return inside


#: whether an instruction is reported: the enum in ``native/frame_tracing.c``
(
    _NOTHING,
    _ALWAYS,
    _UNLESS_PLAIN,
    _UNLESS_PLAIN_SUBSCRIPT,
    _UNLESS_CACHED_CALL,
    _UNLESS_CACHED_ATTRIBUTE,
    _IF_RECEIVED,
    _UNLESS_CACHED_CELL,
    _UNLESS_OWN,
    _UNLESS_OWN_ITEM,
    _UNLESS_NONE,
    _UNLESS_MEMBER,
    _UNLESS_CACHED_UNPACKED,
) = range(13)
#: methods of lists and dictionaries that use only these and their arguments
_OWN_METHODS = frozenset(
    {
        list.append, list.clear, list.copy, list.insert, list.pop, list.reverse,
        dict.copy, dict.get, dict.items, dict.keys, dict.pop, dict.setdefault, dict.values,
    }
)  # fmt: skip
_ENTRIES = 32  # maximum number of entries of an instruction
_KINDS = {
    "BINARY_OP": (_UNLESS_PLAIN, 2), "COMPARE_OP": (_UNLESS_PLAIN, 2), "UNARY_NEGATIVE": (_UNLESS_PLAIN, 1),
    "BINARY_SUBSCR": (_UNLESS_PLAIN_SUBSCRIPT, 2), "LOAD_ATTR": (_UNLESS_CACHED_ATTRIBUTE, 1),
    "LOAD_METHOD": (_UNLESS_CACHED_ATTRIBUTE, 1), "RETURN_VALUE": (_IF_RECEIVED, 0), "YIELD_VALUE": (_IF_RECEIVED, 0),
    "UNPACK_SEQUENCE": (_UNLESS_OWN, 1), "UNPACK_EX": (_UNLESS_OWN, 1), "LIST_EXTEND": (_UNLESS_OWN, 1),
    "DICT_MERGE": (_UNLESS_OWN, 1), "DICT_UPDATE": (_UNLESS_OWN, 1), "CONTAINS_OP": (_UNLESS_MEMBER, 2),
    "STORE_SUBSCR": (_UNLESS_OWN_ITEM, 3), "IS_OP": (_UNLESS_NONE, 2),
    **dict.fromkeys(
        ("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE",
         "JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP", "UNARY_NOT"), (_UNLESS_OWN, 1)),
}  # fmt: skip


def _watch_table(
    code: CodeType, is_watched_name: Callable[[str], bool]
) -> tuple[bytearray, bytes, bytes, list[object]]:
    """Return which instructions of a code object are reported, as ``native/frame_tracing.c`` reads it.

    Operators and subscripts are reported unless all operands have plain types. Instructions on a list or dictionary are not reported
    while only the running frame refers to it. ``Observer.look`` may return entries. Then the instruction is not reported again for:

    - ``(owner, type, version, name[, value])``: an attribute of the owner, or of all objects of a type. ``_load_attribute`` makes it.
    - ``(function,)``: a call with operands of plain types, or new lists and tuples of these. ``(code, globals)``: a call of a Python
      function. ``(method, dictionary[, key])``: a call of a method that reads a dictionary.
    - a cell: the variable of an enclosing function.
    - a list or dictionary: all its elements. ``(dictionary, key)``: the element of this key.
    - an array: its numbers. ``(array,)``: the array as operand together with a traced value, or its views.
    """
    table, heights, counts = _instruction_kinds(code, is_watched_name)
    return bytearray(table), heights, counts, [None] * len(table)


@functools.lru_cache(maxsize=4096)
def _instruction_kinds(code: CodeType, is_watched_name: Callable[[str], bool]) -> tuple[bytes, bytes, bytes]:
    """Return the kinds of the instructions, the heights of the stack before them and the numbers of their operands."""
    count = len(code.co_code) >> 1
    table, counts, heights = bytearray(count), bytearray(count), [0] * count
    instructions = instructions_by_offset(code)
    following = [*[*instructions.values()][1:], None]
    for (offset, instruction), after in zip(instructions.items(), following, strict=True):
        if instruction.height is not None and is_watched_name(instruction.name):
            kind, operands = _KINDS.get(instruction.name, (_ALWAYS, 0))
            if instruction.name == "BUILD_SLICE":
                kind, operands = _UNLESS_PLAIN, instruction.arg
            elif instruction.name == "GET_ITER" and after is not None and after.name in ("FOR_ITER", "PRECALL"):
                kind, operands = _UNLESS_OWN, 1  # a loop or comprehension: no other code gets the iterator
            elif instruction.name == "PRECALL" and instruction.arg < 256:
                kind, operands = _UNLESS_CACHED_CALL, instruction.arg
            elif instruction.name == "CALL_FUNCTION_EX":
                kind, operands = _UNLESS_CACHED_UNPACKED, instruction.arg & 1
            elif instruction.name == "LOAD_DEREF" and instruction.arg < 256:
                kind, operands = _UNLESS_CACHED_CELL, instruction.arg  # up to 3.12 the index of a local or cell
            table[offset >> 1], counts[offset >> 1], heights[offset >> 1] = kind, operands, instruction.height
    stack_heights = array.array("h", [_count_locals(code), *heights])
    return bytes(table), stack_heights.tobytes(), bytes(counts)


def _call_monitored(call: Callable[[], object], observer: Observer, plain_types: frozenset[type]) -> object:
    monitoring: Any = vars(sys)["monitoring"]
    events = monitoring.events
    tool = next((n for n in (4, 3, 5) if monitoring.get_tool(n) is None), None)
    if tool is None:
        raise RuntimeError("all tool ids of sys.monitoring are in use")
    thread = threading.get_ident()
    stacks: dict[int, tuple[FrameType, Stack | None]] = {}
    codes: set[CodeType] = set()

    def begin(code: CodeType, offset: int, *_: object) -> object:
        if threading.get_ident() != thread:
            return None
        frame = sys._getframe(1 if code is sys._getframe(1).f_code else 2)
        watch_frame = observer.enter(frame)
        if watch_frame is None:
            return monitoring.DISABLE
        if watch_frame:
            stacks[id(frame)] = frame, Stack(frame)
            if code not in codes:
                codes.add(code)
                monitoring.set_local_events(tool, code, events.INSTRUCTION)
        return None

    def thrown(code: CodeType, offset: int, *_: object) -> None:
        begin(code, offset)  # these events cannot be disabled per code object, so the result is ignored

    def inside(code: CodeType, offset: int) -> None:
        if threading.get_ident() != thread:
            return None
        frame = sys._getframe(1)
        entry = stacks.get(id(frame))
        if entry is not None and entry[1] is not None:
            instruction = instructions_by_offset(code)[offset]
            if instruction.height is not None:
                entry[1].height = instruction.height
                observer.look(entry[1], instruction)
        return None

    def end(code: CodeType, offset: int, *_: object) -> None:
        if threading.get_ident() == thread:
            entry = stacks.pop(id(sys._getframe(1)), None)
            if entry is not None and entry[1] is not None:
                observer.leave(entry[1])
                entry[1].end()
        return None

    monitoring.use_tool_id(tool, "chainrule")
    monitoring.restart_events()  # enables events of code objects that an earlier watch disabled
    handlers = {
        events.PY_START: begin, events.PY_RESUME: begin, events.PY_THROW: thrown, events.INSTRUCTION: inside,
        events.PY_RETURN: end, events.PY_YIELD: end, events.PY_UNWIND: end,
    }  # fmt: skip
    for event, handler in handlers.items():
        monitoring.register_callback(tool, event, handler)
    monitoring.set_events(tool, sum(event for event in handlers if event != events.INSTRUCTION))
    try:
        return call()
    finally:
        monitoring.set_events(tool, 0)
        for code in codes:
            monitoring.set_local_events(tool, code, 0)
        for event in handlers:
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
        stacks.clear()


def is_thread_traced() -> bool:
    """Return whether a debugger or a coverage tool traces this thread now."""
    return not hasattr(sys, "monitoring") and sys.gettrace() is not None


# -- self-test -----------------------------------------------------------------------------------------------------------


def _run_self_test(things: Any, key: SupportsIndex) -> object:
    """Run the instructions of the self-test: a subscript, an attribute of a global, a call with a keyword, a loop."""
    try:
        return [[*sorted(x, reverse=True), things[key], Stack.top] for x in things[0]][5]
    except IndexError:
        return dict(a=things[key])


class _SelfTest:
    """An observer that notes the operands of subscripts and attributes."""

    ignored_frame: object = None
    failed = False

    def __init__(self) -> None:
        self.seen: list[tuple[Any, Any]] = []
        self.functions: list[Any] = []
        self.python_floats: set[int] = set()
        self.receivers: dict[int, Any] = {}
        self.written: dict[int, Any] = {}
        self.caches: list[list[Any]] = []

    def enter(self, frame: FrameType) -> bool:
        self.functions.append(function_of(frame))
        return frame.f_code.co_name in ("_run_self_test", "<listcomp>")

    def repeats(self, frame: FrameType) -> None:
        return None

    def count_frame(self) -> None:
        return None

    def look(self, stack: Stack, i: Instruction) -> None:
        if i.name == "BINARY_SUBSCR" or (i.name, i.arg) == ("BINARY_OP", 26):
            self.seen.append((stack.top(2), stack.top()))
        elif i.name == "LOAD_ATTR":
            self.seen.append((stack.top(), i.value))

    def leave(self, stack: Stack) -> None:
        return None

    def is_watched_name(self, name: str) -> bool:
        return True


@functools.cache
def why_unwatchable() -> str:
    """Return the reason why instructions cannot be watched on this interpreter, or ""."""
    if ctypes is None or sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != _WORD:
        return "it needs 64-bit CPython with ctypes"
    if sys.version_info[:2] not in LAYOUTS:
        return f"the frame layout of Python {sys.version_info[0]}.{sys.version_info[1]} is not known"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "Python runs without the GIL"
    things, test = ([[3, 4]], object()), _SelfTest()
    call_watched(lambda: _run_self_test(things, 1), test, frozenset())
    expected = [(things, 0), (things, 1), (Stack, "top")]
    found = [pair for pair in test.seen if pair[0] is things or pair[0] is Stack]
    if [(id(a), b) for a, b in found[:3]] != [(id(a), b) for a, b in expected] or _run_self_test not in test.functions:
        return f"instructions of Python {sys.version.split()[0]} have other operands than expected"
    return ""
