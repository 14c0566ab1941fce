"""Inspection of compiled functions: the printed plan of one call, and a text about all traces.

``Compiled.plan`` returns a ``PlanOfCall``; ``Compiled.explain`` returns the text of ``describe_traces``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from chainrule._src.compiling.tree import Segment, Tree
from chainrule._src.messages.source_locations import Where
from chainrule._src.native import AVAILABLE, why_not

EXECUTOR = "native" if AVAILABLE else f"python ({why_not})"


class PlanOfCall:
    """The plans of the segments of one call, and the values that Python reads between them.

    ``print`` it to see one line for each step.

    Attributes:
        plans: the plan of each segment.
        memory: the bytes of buffers that the call needs besides its outputs.
        executor: "native", "python", or "mixed".
    """

    def __init__(self, path: list[Segment]) -> None:
        self._path = path
        self.plans = [segment.plan for segment in path]
        self.memory = sum(plan.memory for plan in self.plans)
        kinds = {plan.executor for plan in self.plans if plan.steps}
        self.executor = kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "native"

    @property
    def steps(self) -> list[Any]:
        """The steps of all segments."""
        return [step for plan in self.plans for step in plan.steps]

    def __str__(self) -> str:
        parts = []
        for segment in self._path:
            parts.append(str(segment.plan))
            if segment.guard is not None:
                parts.append(f"Python reads {segment.guard.var!r}{_at(segment.guard)}: one of {len(segment.branches)}")
        return "\n\n".join(parts)

    __repr__ = __str__


def describe_traces(name: str, trees: Iterable[Tree], reasons: Iterable[str]) -> str:
    """Return a text about all traces: the number of native steps, their inputs, and the lines where Python reads or runs steps.

    It ends with the reasons why other calls run eagerly.
    """
    lines = []
    counted = Counter[bool]()
    for tree in trees:
        for path in tree.paths():
            plan, trace = PlanOfCall(path), path[-1].trace
            assert trace is not None
            here = Counter([step.template is not None for step in plan.steps if not step.view])
            counted += here
            lines.append(f"- {trace.describe()}: {_native(here)}, {plan.memory} bytes")
            reads = Counter([(guard.code, guard.lasti) for guard in trace.guards])
            lines += [f"    reads {Where(*at).quoted or 'a value'}{_times(count)}" for at, count in reads.items()]
            lines += [f"    calls {text}" for text in _by_python(plan)]
    lines += [f"- runs eagerly: {reason}" for reason in reasons]
    return "\n".join([f"compiled {name}: executor {EXECUTOR}; {_native(counted)}", *lines])


def _native(steps: Counter[bool]) -> str:
    return f"{steps[True]:,} of {steps.total():,} steps native"


#: the call of a step: the name of the operation, and the source location (code, offset of the instruction)
StepCall = tuple[str, Any, int]


def python_steps(steps: Iterable[Any]) -> Counter[StepCall]:
    """Count the steps that Python runs, by their calls."""
    found = Counter[StepCall]()
    for step in steps:
        if step.template is None and not step.view:
            call = step.call
            found[("copy", None, -1) if call is None else (call.op_name or step.name, call.code, call.lasti)] += 1
    return found


def _by_python(plan: PlanOfCall) -> list[str]:
    """Return a line for each call that Python runs, unless the whole plan runs in Python."""
    if plan.executor == "python":
        return []
    lines = []
    for (name, code, lasti), count in python_steps(plan.steps).most_common():
        where = Where(code, lasti)
        lines.append(f"{name} in Python{_times(count)}" + (f": {where.quoted or where}" if where else ""))
    return lines


def _at(guard: Any) -> str:
    where = Where(guard.code, guard.lasti)
    return f" ({where})" if where else ""


def _times(count: int) -> str:
    return f", {count:,} times" if count > 1 else ""
