"""Where the time goes: a profile of operations and rules, with the names of ``torch.autograd.profiler``.

A profile is a watch (see ``core.watch``): every operation, rule and labelled region of its thread becomes an event. What
NumPy does inside a rule is part of the rule's own time.
"""

from __future__ import annotations

import contextlib
import importlib.util
import threading
from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from chainrule.core.modes import LOCAL
from chainrule.core.watch import Watch

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]


class _Recorder(Watch):
    """Makes events of what it sees."""

    def __init__(self, shapes: bool, stacks: bool) -> None:
        self.shapes = shapes
        self.stacks = stacks
        self.thread = threading.get_ident()
        self.began = perf_counter_ns()
        self.events: list[FunctionEvent] = []
        self.open: list[FunctionEvent] = []

    def now(self) -> float:
        return (perf_counter_ns() - self.began) / 1e3

    def begin(self, key: str, phase: str, operands: Any = ()) -> FunctionEvent:
        event = FunctionEvent(key, phase, len(self.open), self.thread)
        event.nested = any(around.key == key and around.phase == phase for around in self.open)
        if self.shapes:
            event.input_shapes = [list(np.shape(x)) for x in _flat(operands)]
        if self.stacks:
            event.stack = errors.call_stack()
        self.events.append(event)
        self.open.append(event)
        event.start = self.now()
        return event

    def finish(self, event: FunctionEvent, results: Any = (), operands: Any = ()) -> None:
        event.end = self.now()
        while self.open.pop() is not event:  # what is inside ended without saying so
            pass
        event.own_memory = _new_bytes(results, operands)
        if self.open:
            around = self.open[-1]
            around.children_time += event.cpu_time_total
            around.children_memory += event.cpu_memory_usage

    def forward(self, prim: Any, datas: Any, params: dict[str, Any]) -> Any:
        event = self.begin(prim.name, "forward", datas)
        out: Any = ()
        try:
            out = super().forward(prim, datas, params)
        finally:
            self.finish(event, out, datas)
        return out

    def backward(self, node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
        event = self.begin(node.name(), "backward", g)
        grads: tuple[Any, ...] = ()
        try:
            grads = super().backward(node, g, saved, edges)
        finally:
            self.finish(event, grads, (g, *saved))
        return grads

    def tangent(self, prim: Any, primals: Any, tangents: Any, out: Any, params: dict[str, Any]) -> Any:
        event = self.begin(prim.name, "tangent", primals)
        tangent: Any = ()
        try:
            tangent = super().tangent(prim, primals, tangents, out, params)
        finally:
            self.finish(event, tangent, (*primals, *tangents, out))
        return tangent


def _flat(xs: Any) -> Iterator[Any]:
    for x in xs if type(xs) in (tuple, list) else (xs,):
        if type(x) in (tuple, list):
            yield from _flat(x)
        else:
            yield x


def _new_bytes(results: Any, operands: Any) -> int:
    """The bytes of result arrays with memory of their own."""
    before = {id(x) for x in _flat(operands)}
    total = 0
    for x in _flat(results):
        if isinstance(x, np.generic):
            total += x.itemsize
        elif type(x) is np.ndarray and x.base is None and id(x) not in before:
            total += x.nbytes
    return total


class profile:
    """Record how often each operation and each backward rule of this thread runs in the context, and for how long.

    Args:
        enabled: without it the context does nothing.
        record_shapes: keep the shapes of operands, for ``key_averages(group_by_input_shape=True)``.
        profile_memory: accepted as in PyTorch; the bytes of outputs are always counted.
        with_stack: keep the lines of the program, for ``export_stacks``.
        use_cuda, use_device, with_flops, with_modules, use_kineto: not there; an error says so.

    >>> import chainrule as cr
    >>> x = cr.ones(3, requires_grad=True)
    >>> with cr.autograd.profiler.profile() as prof:
    ...     y = (x * x).sum()
    ...     y.backward()
    >>> [(e.key, e.phase, e.count) for e in prof.key_averages()]  # doctest: +NORMALIZE_WHITESPACE
    [('mul', 'forward', 1), ('sum', 'forward', 1), ('SumBackward0', 'backward', 1), ('MulBackward0', 'backward', 1)]
    """

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
        device = use_device not in (None, "cpu")
        refused = {
            "use_cuda": use_cuda,
            "use_device": device,
            "with_flops": with_flops,
            "with_modules": with_modules,
            "use_kineto": use_kineto,
        }
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
            raise RuntimeError("Profiler context manager is not reentrant: make another profile()")
        self.entered = True
        self._recorder = _Recorder(*self._options)
        self._recorder.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            elapsed = self._recorder.now()
            self._recorder.__exit__(*exc)
            self.function_events = EventList(self._recorder.events, elapsed)

    def _events(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running: leave its `with` block (with enabled=True) first")
        return self.function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """An :class:`EventList` with one average for each name."""
        return self._events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """Everything in one average."""
        return self._events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The time that passed in operations, rules and labelled regions, in microseconds."""
        return self._events().self_cpu_time_total

    @property
    def elapsed(self) -> float:
        """The time from entering the context to leaving it, in microseconds."""
        return self._events().elapsed

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """Every single event as a text table (see :meth:`EventList.table`). ``key_averages().table()`` is shorter."""
        return self._events().table(sort_by, row_limit, **options)

    def export_chrome_trace(self, path: Any, metadata: Any = None) -> None:
        """Write the events as JSON for chrome://tracing and ui.perfetto.dev."""
        self._events().export_chrome_trace(path, metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks of program lines and their times, as flame graph programs read them. Needs ``with_stack``."""
        if not self._options[1]:
            raise ValueError("export_stacks() requires profile(with_stack=True)")
        self._events().export_stacks(path, metric)

    def show(self) -> None:
        """Print the averages: in colour if rich is installed (``pip install chainrule[explain]``), else as plain text."""
        if importlib.util.find_spec("rich") is None:
            print(self)
        else:
            importlib.import_module("rich").print(self)

    def __rich__(self) -> Any:
        return self._events().key_averages().__rich__()

    def __str__(self) -> str:
        if self.function_events is None:
            return "<unfinished chainrule.autograd.profiler.profile>"
        return self.function_events.key_averages().printed()

    def __repr__(self) -> str:
        if self.function_events is None:
            return str(self)
        return f"<profile of {len(self.function_events)} events: print() shows it>"


class record_function(contextlib.ContextDecorator):
    """Label a part of the program: it becomes an event of the profiles around it. Also a decorator.

    >>> import chainrule as cr
    >>> from chainrule.autograd import profiler
    >>> with profiler.profile() as prof:
    ...     with profiler.record_function("model"):
    ...         y = cr.exp(cr.ones(2))
    >>> [(e.key, e.depth) for e in prof.function_events]
    [('model', 0), ('exp', 1)]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function() takes a label, not {type(name).__name__}")
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


def _absent(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise errors.profiler_option(name)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"``{name}`` is about devices that are not supported; it raises an error that says what to use."
    return refuse


emit_nvtx = _absent("emit_nvtx")
emit_itt = _absent("emit_itt")
load_nvprof = _absent("load_nvprof")
parse_nvprof_trace = _absent("parse_nvprof_trace")
