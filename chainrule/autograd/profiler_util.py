"""What a profile is made of: events, their averages, and how they are shown.

Times are microseconds. An event's *total* time is all that passed in it; its *self* time is that without the events inside
it. So self times add up to no more than the time that passed, however events nest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from chainrule import errors

#: What kinds of events there are, and the short words for them in tables.
PHASES = {"forward": "fwd", "backward": "bwd", "tangent": "jvp", "label": "label"}

_COLUMNS = ("Name", "Phase", "Calls", "Self", "Self %", "Total", "Output", "Average")
_PRINTED = 7  # as many columns fit into 80 characters
_SORTS = (
    "cpu_time",
    "cpu_time_total",
    "self_cpu_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "count",
    "key",
)


def format_time(us: float) -> str:
    """Microseconds for people: ``12.345us``, ``1.235ms``, ``2.000s``."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def format_memory(nbytes: int) -> str:
    """Bytes for people: ``512 b``, ``1.50 Kb``, ``3.00 Mb``."""
    for size, unit in ((2**30, "Gb"), (2**20, "Mb"), (2**10, "Kb")):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} b"


class FunctionEvent:
    """One operation, one rule, or one labelled region.

    Attributes:
        key: the name: ``mul``, ``MulBackward0`` or the label. (``name`` is the same.)
        phase: "forward", "backward", "tangent" (forward mode) or "label".
        start, end: microseconds since the profile began.
        depth: the number of events around it.
        nested: whether one of these has the same key, so that its time is in that one's total already.
        children_time, children_memory: of the events directly inside it.
        cpu_memory_usage: bytes of the arrays that were made in it and handed out.
        input_shapes: of the operands, with ``record_shapes``.
        stack: the lines of the program, with ``with_stack``.
    """

    __slots__ = (
        "children_memory",
        "children_time",
        "depth",
        "end",
        "input_shapes",
        "key",
        "nested",
        "own_memory",
        "phase",
        "stack",
        "start",
        "thread",
    )

    def __init__(self, key: str, phase: str, depth: int, thread: int) -> None:
        self.key = key
        self.phase = phase
        self.depth = depth
        self.thread = thread
        self.start = self.end = self.children_time = 0.0
        self.own_memory = self.children_memory = 0
        self.nested = False
        self.input_shapes: Any = None
        self.stack: Any = None

    count = 1  # of calls, as in averages

    @property
    def name(self) -> str:
        return self.key

    @property
    def cpu_time_total(self) -> float:
        return self.end - self.start

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total - self.children_time

    @property
    def cpu_memory_usage(self) -> int:
        return self.own_memory + self.children_memory

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.own_memory

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent {self.key} ({self.phase}) at {format_time(self.start)}: {format_time(self.cpu_time_total)}, "
            f"of which self {format_time(self.self_cpu_time_total)}>"
        )


class FunctionEventAvg:
    """All events of one name together."""

    __slots__ = (
        "count",
        "cpu_memory_usage",
        "cpu_time_total",
        "input_shapes",
        "key",
        "phase",
        "self_cpu_memory_usage",
        "self_cpu_time_total",
    )

    def __init__(self, key: str = "", phase: str = "", input_shapes: Any = None) -> None:
        self.key = key
        self.phase = phase
        self.input_shapes = input_shapes
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0

    def add(self, event: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Count one more event (or all those of another average)."""
        self.count += getattr(event, "count", 1)
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        if not getattr(event, "nested", False):
            self.cpu_time_total += event.cpu_time_total
            self.cpu_memory_usage += event.cpu_memory_usage
        return self

    __iadd__ = add

    @property
    def cpu_time(self) -> float:
        """Total time per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: format_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: format_time(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: format_time(self.self_cpu_time_total))

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list[Any]):
    """A list of events, or of averages.

    Attributes:
        elapsed: the time that the profile took, in microseconds.
    """

    supported_export_stacks_metrics = ("self_cpu_time_total",)

    def __init__(self, events: Iterable[Any] = (), elapsed: float = 0.0) -> None:
        super().__init__(events)
        self.elapsed = elapsed

    @property
    def self_cpu_time_total(self) -> float:
        """The time that passed in any of the events."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """One average for each name (and for each shape of the operands, or each innermost lines of the program)."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shape else None
            lines = str(event.stack[-group_by_stack_n:]) if group_by_stack_n and event.stack else ""
            group = (event.key, event.phase, str(shapes), lines)
            if group not in found:
                found[group] = FunctionEventAvg(event.key, event.phase, shapes)
            found[group].add(event)
        return EventList(found.values(), self.elapsed)

    def total_average(self) -> FunctionEventAvg:
        """All events in one; its total time is its self time, so that nothing counts twice."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        total.cpu_time_total = total.self_cpu_time_total
        total.cpu_memory_usage = total.self_cpu_memory_usage
        return total

    def rows(self, sort_by: str | None = None, row_limit: int = 100) -> list[tuple[str, ...]]:
        """The table's cells."""
        whole = self.self_cpu_time_total or 1.0
        cells: list[tuple[str, ...]] = []
        for e in self._sorted(sort_by)[: row_limit if row_limit >= 0 else None]:
            count = getattr(e, "count", 1)
            name = e.key if e.input_shapes is None else f"{e.key} {e.input_shapes}"
            memory = e.cpu_memory_usage if e.phase == "label" else e.self_cpu_memory_usage
            cells.append(
                (
                    name,
                    PHASES[e.phase],
                    str(count),
                    format_time(e.self_cpu_time_total),
                    f"{100 * e.self_cpu_time_total / whole:.1f}%",
                    format_time(e.cpu_time_total),
                    format_memory(memory) if memory else "-",
                    format_time(e.cpu_time_total / count),
                )
            )
        return cells

    def _sorted(self, sort_by: str | None) -> list[Any]:
        if sort_by is None:
            return list(self)
        if sort_by not in _SORTS:
            raise errors.profiler_sort(sort_by, _SORTS)
        if sort_by == "key":
            return sorted(self, key=lambda e: str(e.key))
        return sorted(self, key=lambda e: -getattr(e, sort_by, 1))

    def summary(self) -> str:
        """One line for each phase, and the time that passed."""
        lines = []
        for phase, what in (("forward", "forward"), ("backward", "backward"), ("tangent", "forward mode")):
            mine = [e for e in self if e.phase == phase]
            if mine:
                calls = sum(getattr(e, "count", 1) for e in mine)
                times = format_time(sum(e.self_cpu_time_total for e in mine))
                memory = format_memory(sum(e.self_cpu_memory_usage for e in mine))
                lines.append(f"{what + ':':<14}{times} self time in {calls} calls, {memory} of outputs")
        if self.elapsed:
            outside = sum(e.self_cpu_time_total for e in self if e.phase != "label")
            lines.append(
                f"{'elapsed:':<14}{format_time(self.elapsed)}, {format_time(self.elapsed - outside)} outside of these"
            )
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
        """A text table.

        Args:
            sort_by: "self_cpu_time_total", "cpu_time_total", "cpu_time" (average), "count", "self_cpu_memory_usage",
                "cpu_memory_usage" or "key".
            row_limit: show that many rows; all, if negative.
            max_name_column_width: longer names are cut.
            header: a line to put above.
            top_level_events_only: leave out events inside others (of a list of events, not of averages).
        """
        events = self
        if top_level_events_only:
            events = EventList([e for e in self if getattr(e, "depth", 0) == 0], self.elapsed)
        rows = events.rows(sort_by, row_limit)
        lines = [] if header is None else [header]
        lines += _laid_out(_COLUMNS, rows, max_name_column_width)
        if len(rows) < len(events):
            lines.append(f"({len(events) - len(rows)} more)")
        return "\n".join([*lines, events.summary()])

    def printed(self) -> str:
        """The table with the columns that matter, at most 80 characters wide."""
        rows = [row[:_PRINTED] for row in self.rows("self_cpu_time_total")]
        others = [max(map(len, column)) + 2 for column in list(zip(_COLUMNS, *rows))[1:_PRINTED]]
        return "\n".join([*_laid_out(_COLUMNS[:_PRINTED], rows, 80 - sum(others)), self.summary()])

    __str__ = printed

    def __repr__(self) -> str:
        return f"<EventList of {len(self)}: print() shows it>"

    def __rich__(self) -> Any:
        """What ``rich.print`` shows."""
        import rich.box
        import rich.table

        table = rich.table.Table(
            box=rich.box.SIMPLE_HEAD,
            caption=self.summary(),
            caption_justify="left",
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        for i, title in enumerate(_COLUMNS[:_PRINTED]):
            table.add_column(title, justify="left" if i < 2 else "right", no_wrap=True, overflow="ellipsis")
        colours = {"bwd": "cyan", "jvp": "magenta", "label": "bold"}
        for row in self.rows("self_cpu_time_total"):
            table.add_row(*row[:_PRINTED], style=colours.get(row[1], ""))
        return table

    def export_chrome_trace(self, path: Any, metadata: Mapping[str, Any] | None = None) -> None:
        """Write the events as JSON for chrome://tracing and ui.perfetto.dev."""
        pid = os.getpid()
        events = [
            {
                "name": e.key,
                "cat": e.phase,
                "ph": "X",
                "ts": e.start,
                "dur": e.cpu_time_total,
                "pid": pid,
                "tid": e.thread,
                "args": {"output bytes": e.own_memory, "shapes": str(e.input_shapes) if e.input_shapes else ""},
            }
            for e in self
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms", **(metadata or {})}, file)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write a line for each stack of program lines and its time, as flame graph programs read them."""
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


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 3] + "..."


def _laid_out(titles: tuple[str, ...], rows: list[tuple[str, ...]], name_width: int) -> list[str]:
    """The lines of a table."""
    rows = [(_cut(row[0], name_width), *row[1:]) for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *rows)]
    rule = "  ".join("-" * width for width in widths)
    return [rule, _line(titles, widths), rule, *(_line(row, widths) for row in rows), rule]


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    return "  ".join(f"{c:<{w}}" if i < 2 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(cells, widths))).rstrip()
