"""Run the steps of a plan as NumPy calls from Python.

``plan`` uses an ``Executor`` for plans without native loops, and for mixed plans, where some of the steps are native segments.

A workspace has the arena and the argument lists of all steps. Arrays of the arena are made once. Arrays that differ in each run
(inputs, outputs, arrays that a function returned) are written into their argument slots. Each run has its own workspace, so a plan can
run in several threads, and recursively.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.types import AnyFunction, NumpyArray, TensorLike
from chainrule._src.compiling.layout import ALIGNMENT, ARENA, CONSTANT, BufferView, data_address
from chainrule._src.compiling.steps import Lowering, PlanStep
from chainrule._src.interpreters.error_state import FLOATING_POINT
from chainrule._src.interpreters.same_bits import same_bits

ndarray = np.ndarray
#: an argument list, list or dict of a step, and a position in it
ArgumentSlot = tuple[Any, Any]
Report = Callable[[set[str]], None]


#: the error state of the caller while a plan runs with its own
_CALLER_ERRSTATE: ContextVar[Any] = ContextVar("callers", default=None)


class Changed(Exception):
    """A function returned arrays of another shape or dtype than in the trace."""


class Executor:
    """Runs the steps of a plan from Python.

    Args:
        lowering: the lowered program.
        memory: the bytes of the arena.
        steps, commits: the steps, and the steps after them that write to inputs.
    """

    def __init__(self, lowering: Lowering, memory: int, steps: list[PlanStep], commits: list[PlanStep]) -> None:
        self.inputs = lowering.inputs
        self.outputs = lowering.outputs
        self.owners = [value.buffer.root for value in lowering.owners]
        self.makers = [array_maker(value) for value in self.owners]
        self.memory = memory
        self.steps = steps
        self.commits = commits
        self.runs = 0
        self._idle: list[Workspace] = []

    def run(self, arrays: list[np.ndarray[Any, Any]], report: Report | None = None) -> list[np.ndarray[Any, Any]]:
        """Return the outputs for these inputs. Floating-point exceptions are reported once, before inputs are written."""
        self.runs += 1
        try:
            space = self._idle.pop()
        except IndexError:
            space = Workspace(self)
        try:
            space.fill(arrays, [make() for make in self.makers])
            self._run_reporting(space, report)
            space.run(space.commits)
            return list(space.results)
        finally:
            space.clear()
            self._idle.append(space)

    def _run_reporting(self, space: Workspace, report: Report | None) -> None:
        """Run the steps, and report their floating-point exceptions."""
        kept = np.geterr()
        handled = getattr(report, "handled", ())
        watched: Any = {name: "call" for name, way in kept.items() if way != "ignore" or name in handled}
        if report is None or not watched:
            space.run(space.calls)
            return
        token = _CALLER_ERRSTATE.set((kept, np.geterrcall()))
        try:
            with np.errstate(call=space.noted, **watched):
                space.run(space.calls)
        finally:
            _CALLER_ERRSTATE.reset(token)
        found = space.noted.found & watched.keys()
        if found:
            report(found)

    def replay(self, arrays: list[NumpyArray], recorded: dict[BufferView, NumpyArray]) -> list[NumpyArray]:
        """Return the outputs, with recorded results, where there are any, in place of calls of functions that return new arrays.

        Return an empty list if the arguments of such a function differ from the recorded ones.
        """
        space = Workspace(self, recorded)
        space.fill(arrays, [make() for make in self.makers])
        with np.errstate(all="ignore"):
            space.run(space.calls)
        return list(space.results) if space.inputs_match else []


#: the bit that native code sets if a loop failed
FAILED = 16
_BITS = {1: "divide", 2: "over", 4: "under", 8: "invalid"}


class NativeLoopFailed(np.linalg.LinAlgError):
    """A native loop failed for its operands. The eager call raises the error with its location."""

    def __init__(self) -> None:
        super().__init__("a matrix is singular, not positive definite, or its decomposition does not converge")


def exception_names(mask: int) -> set[str]:
    """Return the names of floating-point exceptions from NumPy's flag bits.

    Raises:
        NativeLoopFailed: a loop failed.
    """
    if mask & FAILED:
        raise NativeLoopFailed
    return {name for bit, name in _BITS.items() if mask & bit}


class _Placeholder:
    """Stands for an argument that each workspace replaces by its own."""


#: placeholders for the arena, and for the callback for floating-point exceptions
ARENA_OF_CALL: Any = _Placeholder()
NOTE: Any = _Placeholder()


class _RaisedFlags:
    """Collects floating-point exceptions. It is called by NumPy with their names, or by native code with flag bits."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def __call__(self, kind: Any, flag: int = 0) -> None:
        if type(kind) is int:
            self.found |= exception_names(kind)
        else:
            self.found.add(FLOATING_POINT[kind])


class Workspace:
    """The arena and the arguments of all steps, for one run at a time."""

    def __init__(self, executor: Executor, recorded: dict[BufferView, NumpyArray] | None = None) -> None:
        memory = np.empty(executor.memory + ALIGNMENT, np.uint8)
        start = -data_address(memory) % ALIGNMENT
        self._memory = memory
        self._start = start
        self._arena = memory[start : start + executor.memory]
        self._recorded = recorded
        self._arrays: dict[BufferView, NumpyArray] = {}
        self._slots: dict[BufferView, list[ArgumentSlot]] = {}
        self.noted = _RaisedFlags()
        self.inputs_match = True
        self.results: list[Any] = [None] * len(executor.outputs)
        uses = _values_needed(executor)
        self.calls = [self._call(step) for step in executor.steps if _is_needed(step, uses)]
        self.commits = [self._call(step) for step in executor.commits]
        for i, value in enumerate(executor.outputs):
            self._put(self.results, i, value)
        self._inputs = [self._slots.get(value, []) for value in executor.inputs]
        self._owners = [self._slots.get(value, []) for value in executor.owners]
        self._changing = [slot for slots in self._slots.values() for slot in slots]

    def run(self, calls: list[Any]) -> None:
        for function, args, kwargs, sink in calls:
            result = function(*args) if kwargs is None else function(*args, **kwargs)
            if sink is not None:
                sink(result)

    def fill(self, arrays: list[NumpyArray], new_outputs: list[NumpyArray]) -> None:
        """Write the arrays of a run into their argument slots."""
        for array, slots in zip(arrays, self._inputs, strict=True):
            for container, key in slots:
                container[key] = array
        for array, slots in zip(new_outputs, self._owners, strict=True):
            for container, key in slots:
                container[key] = array

    def clear(self) -> None:
        """Drop references to the caller's arrays."""
        self.noted.found.clear()
        for container, key in self._changing:
            container[key] = None

    def _call(self, step: PlanStep) -> tuple[Any, list[Any], Any, Any]:
        function = step.function
        if step.call is not None and not step.call.pure:
            function = _WithCallersErrstate(function)
        args = [None] * len(step.args)
        frozen = False
        for i, x in enumerate(step.args):
            frozen |= self._put(args, i, x)
        kwargs: Any = {name: None for name in step.kwargs} or None
        for name, x in step.kwargs.items():
            frozen |= self._put(kwargs, name, x)
        if frozen:
            function = _WithRebuiltArguments(function)
        if step.loose and self._recorded is not None and all([value in self._recorded for value in step.writes]):
            args = [None] * len(step.reads)
            for i, value in enumerate(step.reads):
                self._put(args, i, value)
            function, kwargs = self._returns([self._recorded[value] for value in step.writes], step.reads), None
        sink = None
        if step.loose or step.view:
            sink = _Sink(step, [self._slots.setdefault(value, []) for value in step.writes], self._memory)
        return function, args, kwargs, sink

    def _returns(self, results: list[NumpyArray], reads: list[BufferView]) -> AnyFunction:
        """Return a function that compares its arguments with the recorded ones and returns the recorded results."""
        assert self._recorded is not None
        expected = [self._recorded.get(value) for value in reads]

        def recorded(*given: NumpyArray) -> Any:
            pairs = zip(given, expected, strict=True)
            self.inputs_match = self.inputs_match and all([x is None or y is None or same_bits(x, y) for x, y in pairs])
            return tuple(results)

        return recorded

    def _put(self, container: Any, key: object, x: Any) -> bool:
        """Write an argument into a container, or note the slot; return whether a tuple or slice was written as a list."""
        kind = type(x)
        if kind is BufferView:
            array = self._known(x)
            container[key] = array
            if array is None:
                self._slots.setdefault(x, []).append((container, key))
            return False
        if x is ARENA_OF_CALL:
            container[key] = self._arena
            return False
        if x is NOTE:
            container[key] = self.noted
            return False
        if kind is list:
            parts: list[object] = [None] * len(x)
            container[key] = parts
            return any([self._put(parts, i, item) for i, item in enumerate(x)])
        if (kind is tuple or kind is slice) and _has_values(x):
            items = x if kind is tuple else (x.start, x.stop, x.step)
            mutable = _Tuple([None] * len(items)) if kind is tuple else _Slice([None] * len(items))
            container[key] = mutable
            for i, item in enumerate(items):
                self._put(mutable, i, item)
            return True
        if kind is dict:
            container[key] = inner = {name: None for name in x}
            return any([self._put(inner, name, item) for name, item in x.items()])
        container[key] = x
        return False

    def _known(self, value: BufferView) -> NumpyArray | None:
        """Return the array of a value that is the same in each run, or None."""
        kind = value.buffer.kind
        if kind == CONSTANT:
            return value.array
        if kind != ARENA:
            return None
        array = self._arrays.get(value)
        if array is None:
            offset = self._start + value.buffer.offset + value.offset
            array = ndarray(value.shape, value.dtype, self._memory, offset, value.strides)
            self._arrays[value] = array
        return array


def _is_needed(step: PlanStep, uses: set[BufferView]) -> bool:
    """Return whether a step has to run: it is not a view, or a view of an array of the run that is used."""
    return not step.view or not (step.writes[0].buffer.kind == ARENA or uses.isdisjoint(step.writes))


def _values_needed(executor: Executor) -> set[BufferView]:
    """Return the values that steps and outputs need as arrays."""
    found = set(executor.outputs)
    for step in executor.steps + executor.commits:
        found.update(step.reads)
        if not step.view:
            found.update(step.writes)
    return found


def array_maker(value: BufferView) -> Callable[[], NumpyArray]:
    """Return a function that makes a new array with the layout of a value."""
    shape, dtype, strides = value.shape, value.dtype, value.strides
    if 0 in shape or strides == np.empty(shape, dtype).strides:
        return lambda: np.empty(shape, dtype)
    return lambda: ndarray(shape, dtype, None, 0, strides)


class _Sink:
    """Writes the results of a function into the argument slots that use them."""

    __slots__ = ("_memory", "_slots", "_step")

    def __init__(self, step: PlanStep, slots: list[list[ArgumentSlot]], memory: NumpyArray) -> None:
        self._step = step
        self._slots = slots
        self._memory = memory

    def __call__(self, result: TensorLike | tuple[NumpyArray, ...]) -> None:
        step = self._step
        parts = result if isinstance(result, (tuple, list)) else (result,)
        if len(parts) != len(step.writes):
            raise Changed(
                f"{step.name} returned {len(parts)} arrays; when it was recorded, it returned {len(step.writes)}"
            )
        for part, value, slots in zip(parts, step.writes, self._slots, strict=True):
            array = part if step.view else self._kept(part, value)
            for container, key in slots:
                container[key] = array

    def _kept(self, result: TensorLike, value: BufferView) -> NumpyArray:
        """Return a result as an array with the recorded layout, copied if the function may write it again during the run."""
        array = np.asarray(result)
        if array.shape != value.shape or array.dtype != value.dtype:
            raise Changed(
                f"{self._step.name} returned an array of shape {array.shape} and dtype {array.dtype}; when it was recorded, "
                f"{value.shape} and {value.dtype}"
            )
        pure = self._step.call is None or self._step.call.pure
        loose = array.base is None or not np.may_share_memory(array, self._memory)
        if pure and loose and array.strides == value.strides:
            return array
        return with_strides(array, value.strides)


class _WithCallersErrstate:
    """Calls a user's function with the error state of the caller."""

    def __init__(self, function: AnyFunction) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        callers = _CALLER_ERRSTATE.get()
        if callers is None:
            return self._function(*args, **kwargs)
        with np.errstate(call=callers[1], **callers[0]):
            return self._function(*args, **kwargs)


class _Tuple(list[object]):
    """A tuple among arguments whose arrays differ in each run, as a list."""


class _Slice(list[object]):
    """A slice among arguments whose bounds are arrays that differ in each run, as a list."""


class _WithRebuiltArguments:
    """Calls a function with tuples and slices in place of ``_Tuple`` and ``_Slice``."""

    def __init__(self, function: AnyFunction) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        return self._function(*[_rebuilt(x) for x in args], **{name: _rebuilt(x) for name, x in kwargs.items()})


def _rebuilt(x: Any) -> Any:
    kind = type(x)
    if kind is _Tuple:
        return tuple([_rebuilt(item) for item in x])
    if kind is _Slice:
        return slice(*[_rebuilt(item) for item in x])
    if kind is list:
        return [_rebuilt(item) for item in x]
    return x


def _has_values(x: Any) -> bool:
    kind = type(x)
    if kind is tuple or kind is list:
        return any([_has_values(item) for item in x])
    if kind is slice:
        return _has_values((x.start, x.stop, x.step))
    if kind is dict:
        return any([_has_values(item) for item in x.values()])
    return kind is BufferView
