"""Profile operations and backward rules, with the names of ``torch.autograd.profiler``.

``chainrule.autograd.profiler`` exports the public names.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import numpy as np

from chainrule._src.api.watch import Watch
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.node import Node

__all__ = [
    "EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "load_nvprof", "parse_nvprof_trace",
    "profile", "record_function",
]  # fmt: skip

#: The phases of events, and their abbreviations in tables.
PHASES = {"forward": "fwd", "backward": "bwd", "tangent": "jvp", "label": "label"}
_COLUMNS = ("Name", "Phase", "Calls", "Self", "Self %", "Total", "Output", "Average")
_PRINTED_COLUMNS = 7  # the number of columns that fit into 80 characters
_SORTS = (
    "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count", "key",
)  # fmt: skip


def format_time(us: float) -> str:
    """Format microseconds: ``12.345us``, ``1.235ms``, ``2.000s``."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def format_memory(nbytes: int) -> str:
    """Format a number of bytes: ``512 b``, ``1.50 Kb``, ``3.00 Mb``."""
    for size, unit in ((2**30, "Gb"), (2**20, "Mb"), (2**10, "Kb")):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} b"


# -- events ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class FunctionEventAvg:
    """The totals over all events of the same name.

    Attributes:
        key: the name: ``mul``, ``MulBackward0`` or the label.
        phase: "forward", "backward", "tangent" (forward mode) or "label".
        input_shapes: the shapes of the operands, with ``record_shapes``.
        count: the number of calls.
        cpu_memory_usage: the bytes of the result arrays that own their memory.
    """

    key: str = ""
    phase: str = ""
    input_shapes: Any = None
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0

    def add(self, event: FunctionEventAvg) -> FunctionEventAvg:
        """Add one event (or all events of another average) to the totals."""
        self.count += event.count
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        if not getattr(event, "nested", False):
            self.cpu_time_total += event.cpu_time_total
            self.cpu_memory_usage += event.cpu_memory_usage
        return self

    __iadd__ = add

    @property
    def cpu_time(self) -> float:
        """The total time per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: format_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: format_time(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: format_time(self.self_cpu_time_total))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} key={self.key} count={self.count} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} cpu_memory_usage={self.cpu_memory_usage}>"
        )


FunctionEventAvg.__module__ = (
    "chainrule.autograd.profiler"  # set afterwards: the dataclass decorator looks up the real module
)


@dataclass(eq=False, repr=False)
class FunctionEvent(FunctionEventAvg):
    """One run of an operation, a backward rule or a labelled region.

    Attributes:
        start, end: microseconds since the start of the profile.
        depth: the number of enclosing events.
        nested: whether an enclosing event has the same key and phase; its total then includes the time of this event.
        stack: the lines of the program, with ``with_stack``.
    """

    count: int = 1
    depth: int = 0
    thread: int = 0
    start: float = 0.0
    end: float = 0.0
    nested: bool = False
    stack: Any = None

    name = property(lambda self: self.key)


FunctionEvent.__module__ = (
    "chainrule.autograd.profiler"  # set afterwards: the dataclass decorator looks up the real module
)


class EventList(list[Any]):
    """A list of events, or of averages.

    Attributes:
        elapsed: the duration of the profile, in microseconds.
    """

    __module__ = "chainrule.autograd.profiler"
    supported_export_stacks_metrics = ("self_cpu_time_total",)

    def __init__(self, events: Iterable[object] = (), elapsed: float = 0.0) -> None:
        super().__init__(events)
        self.elapsed = elapsed

    @property
    def self_cpu_time_total(self) -> float:
        """The time spent in operations, rules and labelled regions, in microseconds."""
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return one average per name (and per operand shapes, or per innermost ``group_by_stack_n`` program lines)."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shape else None
            lines = str(event.stack[-group_by_stack_n:]) if group_by_stack_n and event.stack else ""
            group = (event.key, event.phase, str(shapes), lines)
            found.setdefault(group, FunctionEventAvg(event.key, event.phase, shapes)).add(event)
        return EventList(found.values(), self.elapsed)

    def total_average(self) -> FunctionEventAvg:
        """Return one average of all events. Its total time is its self time, so no time is counted twice."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        total.cpu_time_total = total.self_cpu_time_total
        total.cpu_memory_usage = total.self_cpu_memory_usage
        return total

    def _rows(self, sort_by: str | None = None, row_limit: int = 100) -> list[tuple[str, ...]]:
        """Return the cells of the table, row by row."""
        total_time = self.self_cpu_time_total or 1.0
        return [_row(e, total_time) for e in self._sorted(sort_by)[: row_limit if row_limit >= 0 else None]]

    def _sorted(self, sort_by: str | None) -> list[Any]:
        if sort_by is None:
            return list(self)
        if sort_by not in _SORTS:
            raise errors.profiler_sort(sort_by, _SORTS)
        return sorted(self, key=lambda e: e.key if sort_by == "key" else -getattr(e, sort_by))

    def summary(self) -> str:
        """Return one line for each phase, and a line with the elapsed time."""
        lines = []
        for phase, title in (("forward", "forward:"), ("backward", "backward:"), ("tangent", "forward mode:")):
            total = EventList([e for e in self if e.phase == phase]).total_average()
            if total.count:
                memory = format_memory(total.cpu_memory_usage)
                lines.append(
                    f"{title:<14}{total.cpu_time_total_str} self time in {total.count} calls, {memory} of outputs"
                )
        if self.elapsed:
            outside = self.elapsed - sum(e.self_cpu_time_total for e in self if e.phase != "label")
            lines.append(f"{'elapsed:':<14}{format_time(self.elapsed)}, {format_time(outside)} outside of these")
        return "\n".join(lines)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Return a text table, with one row for each average or event of this list.

        Args:
            sort_by: "self_cpu_time_total", "cpu_time_total", "cpu_time" (average), "count", "self_cpu_memory_usage",
                "cpu_memory_usage" or "key".
            row_limit: the largest number of rows; if negative, show all.
            max_name_column_width: longer names are shortened.
            header: a line above the table.
            top_level_events_only: omit events inside other events (only for a list of events, not of averages).
        """
        events = self
        if top_level_events_only:
            events = EventList([e for e in self if getattr(e, "depth", 0) == 0], self.elapsed)
        rows = events._rows(sort_by, row_limit)
        lines = [] if header is None else [header]
        lines += _layout(_COLUMNS, rows, max_name_column_width)
        if len(rows) < len(events):
            lines.append(f"({len(events) - len(rows)} more)")
        return "\n".join([*lines, events.summary()])

    def __str__(self) -> str:
        rows = [row[:_PRINTED_COLUMNS] for row in self._rows("self_cpu_time_total")]
        others = [max(map(len, column)) + 2 for column in list(zip(_COLUMNS, *rows))[1:_PRINTED_COLUMNS]]
        return "\n".join([*_layout(_COLUMNS[:_PRINTED_COLUMNS], rows, 80 - sum(others)), self.summary()])

    def __repr__(self) -> str:
        return f"<EventList of {len(self)}: print() shows it>"

    def export_chrome_trace(self, path: Any, metadata: Mapping[str, Any] | None = None) -> None:
        """Write the events as JSON for chrome://tracing and ui.perfetto.dev."""
        events = []
        for e in self:
            args = {"output bytes": e.self_cpu_memory_usage, "shapes": str(e.input_shapes) if e.input_shapes else ""}
            event = {"name": e.key, "cat": e.phase, "ph": "X", "ts": e.start, "dur": e.cpu_time_total, "args": args}
            events.append({**event, "pid": os.getpid(), "tid": e.thread})
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms", **(metadata or {})}, file)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks of program lines and their times in the format of flame graph tools. Needs ``with_stack``."""
        if metric not in self.supported_export_stacks_metrics:
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics}, not {metric!r}")
        times: dict[str, float] = {}
        for e in self:
            if e.stack:
                lines = [f"{os.path.basename(file)}({line}): {function}" for file, line, function in e.stack]
                text = ";".join([*lines, e.key]).replace(" ", "_")
                times[text] = times.get(text, 0.0) + e.self_cpu_time_total
        with open(path, "w", encoding="utf-8") as out:
            out.writelines(f"{text} {int(time)}\n" for text, time in times.items() if int(time) > 0)


def _row(e: FunctionEventAvg, total_time: float) -> tuple[str, ...]:
    memory = e.cpu_memory_usage if e.phase == "label" else e.self_cpu_memory_usage
    return (
        e.key if e.input_shapes is None else f"{e.key} {e.input_shapes}",
        PHASES[e.phase],
        str(e.count),
        e.self_cpu_time_total_str,
        f"{100 * e.self_cpu_time_total / total_time:.1f}%",
        e.cpu_time_total_str,
        format_memory(memory) if memory else "-",
        e.cpu_time_str,
    )


def _layout(titles: tuple[str, ...], rows: list[tuple[str, ...]], name_width: int) -> list[str]:
    """Return the lines of a table."""
    rows = [(_shortened(row[0], name_width), *row[1:]) for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *rows)]
    rule = "  ".join("-" * width for width in widths)
    return [rule, _line(titles, widths), rule, *(_line(row, widths) for row in rows), rule]


def _shortened(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 3] + "..."


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    return "  ".join(f"{c:<{w}}" if i < 2 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(cells, widths))).rstrip()


# -- recording ---------------------------------------------------------------------------------------------------------


class _Recorder(Watch):
    """A watch that records an event for every operation and rule."""

    def __init__(self, shapes: bool, stacks: bool) -> None:
        self.shapes = shapes
        self.stacks = stacks
        self.thread = threading.get_ident()
        self.began = perf_counter_ns()
        self.events: list[FunctionEvent] = []
        self.open: list[FunctionEvent] = []

    def now(self) -> float:
        return (perf_counter_ns() - self.began) / 1e3

    def begin(self, key: str, phase: str, operands: object = ()) -> FunctionEvent:
        event = FunctionEvent(key, phase, depth=len(self.open), thread=self.thread)
        event.nested = any(around.key == key and around.phase == phase for around in self.open)
        if self.shapes:
            event.input_shapes = [list(np.shape(x)) for x in _flat(operands)]
        if self.stacks:
            event.stack = errors.call_stack()
        self.events.append(event)
        self.open.append(event)
        event.start = self.now()
        return event

    def finish(
        self,
        event: FunctionEvent,
        results: TensorLike | tuple[AnyArray | None, ...] = (),
        operands: tuple[TensorLike | None, ...] | Sequence[TensorLike] = (),
    ) -> None:
        event.end = self.now()
        while self.open.pop() is not event:  # enclosed events that did not finish, because of an exception
            pass
        duration, memory = event.end - event.start, _new_bytes(results, operands)
        event.cpu_time_total = duration  # enclosed events already subtracted their times
        event.self_cpu_time_total += duration
        event.self_cpu_memory_usage = memory
        event.cpu_memory_usage += memory
        if self.open:
            self.open[-1].self_cpu_time_total -= duration
            self.open[-1].cpu_memory_usage += event.cpu_memory_usage

    def timed(
        self,
        key: str,
        phase: str,
        operands: object,
        read: tuple[TensorLike | None, ...] | Sequence[TensorLike],
        call: AnyFunction,
        *args: object,
    ) -> Any:
        event = self.begin(key, phase, operands)
        out: Any = ()
        try:
            out = call(*args)
        finally:
            self.finish(event, out, read)
        return out

    def forward(self, prim: Primitive, datas: Sequence[TensorLike] | tuple[AnyArray, ...], params: Params) -> Any:
        return self.timed(prim.name, "forward", datas, datas, super().forward, prim, datas, params)

    def backward(self, node: Node, g: object, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> Any:
        return self.timed(node.name(), "backward", g, (g, *saved), super().backward, node, g, saved, edges)

    def tangent(
        self,
        prim: Primitive,
        primals: Sequence[AnyArray],
        tangents: Sequence[AnyArray],
        out: TensorLike,
        params: Params,
    ) -> Any:
        read = (*primals, *tangents, out)
        return self.timed(prim.name, "tangent", primals, read, super().tangent, prim, primals, tangents, out, params)


def _flat(xs: Any) -> Iterator[Any]:
    for x in xs if type(xs) in (tuple, list) else (xs,):
        if type(x) in (tuple, list):
            yield from _flat(x)
        else:
            yield x


def _new_bytes(results: TensorLike | tuple[AnyArray | None, ...], operands: object) -> int:
    """Return the number of bytes of the result arrays that own their memory and are not operands."""
    before = {id(x) for x in _flat(operands)}
    total = 0
    for x in _flat(results):
        if isinstance(x, np.generic):
            total += x.itemsize
        elif type(x) is np.ndarray and x.base is None and id(x) not in before:
            total += x.nbytes
    return total


def _finished_method(method: AnyFunction) -> AnyFunction:
    """Convert a method of EventList to a method of ``profile``, which raises before the profile is finished."""

    @functools.wraps(method)
    def call(self: profile, *args: object, **kwargs: object) -> Any:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running: end its `with` block (with enabled=True) first")
        return method(self.function_events, *args, **kwargs)

    return call


class profile:
    """Record how often each operation and backward rule of this thread runs in the context, and how long it takes.

    Args:
        enabled: if False, the context does nothing.
        record_shapes: record the shapes of operands, for ``key_averages(group_by_input_shape=True)``.
        profile_memory: accepted for compatibility with PyTorch; the bytes of outputs are always counted.
        with_stack: record the lines of the program, for ``export_stacks``.
        use_cuda, use_device, with_flops, with_modules, use_kineto: not supported; requesting them raises an error.

    ``function_events`` contains all events; ``self_cpu_time_total`` and ``elapsed`` are in microseconds.

    >>> import chainrule as cr
    >>> x = cr.ones(3, requires_grad=True)
    >>> with cr.autograd.profiler.profile() as prof:
    ...     y = (x * x).sum()
    ...     y.backward()
    >>> [(e.key, e.phase, e.count) for e in prof.key_averages()]  # doctest: +NORMALIZE_WHITESPACE
    [('mul', 'forward', 1), ('sum', 'forward', 1), ('SumBackward0', 'backward', 1), ('MulBackward0', 'backward', 1)]
    """

    __module__ = "chainrule.autograd.profiler"

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
    ) -> None:
        refused = {"use_cuda": use_cuda, "use_device": use_device not in (None, "cpu"), "with_flops": with_flops,
                   "with_modules": with_modules, "use_kineto": use_kineto}  # fmt: skip
        for name, given in refused.items():
            if given:
                raise errors.profiler_option(name)
        self.enabled = enabled
        self.entered = False
        self.function_events: EventList | None = None
        self._options = (record_shapes, with_stack)

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant: create another profile()")
        self.entered = True
        self._recorder = _Recorder(*self._options)
        self._recorder.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            elapsed = self._recorder.now()
            self._recorder.__exit__(*exc)
            self.function_events = EventList(self._recorder.events, elapsed)

    key_averages = _finished_method(EventList.key_averages)
    total_average = _finished_method(EventList.total_average)
    table = _finished_method(EventList.table)
    export_chrome_trace = _finished_method(EventList.export_chrome_trace)
    self_cpu_time_total = property(_finished_method(lambda events: events.self_cpu_time_total))
    elapsed = property(_finished_method(lambda events: events.elapsed))

    @functools.wraps(EventList.export_stacks)
    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        if not self._options[1]:
            raise ValueError("export_stacks() requires profile(with_stack=True)")
        _finished_method(EventList.export_stacks)(self, path, metric)

    def __str__(self) -> str:
        if self.function_events is None:
            return "<unfinished chainrule.autograd.profiler.profile>"
        return str(self.function_events.key_averages())

    def __repr__(self) -> str:
        if self.function_events is None:
            return str(self)
        return f"<profile of {len(self.function_events)} events: print() shows it>"


class record_function(contextlib.ContextDecorator):
    """Label a part of the program: the enclosing profiles record it as one event. Also usable as a decorator.

    >>> import chainrule as cr
    >>> from chainrule.autograd import profiler
    >>> with profiler.profile() as prof:
    ...     with profiler.record_function("model"):
    ...         y = cr.exp(cr.ones(2))
    >>> [(e.key, e.depth) for e in prof.function_events]
    [('model', 0), ('exp', 1)]
    """

    __module__ = "chainrule.autograd.profiler"

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function() takes a str as the label, not {type(name).__name__}")
        self.name = name
        self.args = args
        self._open: list[list[tuple[_Recorder, FunctionEvent]]] = []

    def __enter__(self) -> record_function:
        found = []
        watch = LOCAL.watch
        while watch is not None:
            if isinstance(watch, _Recorder):
                found.append((watch, watch.begin(self.name, "label")))
            watch = watch.inner
        self._open.append(found)
        return self

    def __exit__(self, *exc: object) -> None:
        for recorder, event in self._open.pop():
            if event in recorder.open:
                recorder.finish(event)


# -- functions for devices that are not supported ----------------------------------------------------------------------


def _unsupported(name: str) -> AnyFunction:
    def refuse(*args: object, **kwargs: object) -> Any:
        raise errors.profiler_option(name)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = (
        f"``{name}`` is for devices that are not supported; it raises an error that suggests an alternative."
    )
    return refuse


emit_nvtx, emit_itt = _unsupported("emit_nvtx"), _unsupported("emit_itt")
load_nvprof, parse_nvprof_trace = _unsupported("load_nvprof"), _unsupported("parse_nvprof_trace")
