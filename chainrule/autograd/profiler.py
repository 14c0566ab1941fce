"""Profile operations and rules, with the names of ``torch.autograd.profiler``.

A profile is an observer (see ``api.watch``): every operation, rule and labelled region of its thread becomes an event.
NumPy calls inside a rule count as the rule's self time. Times are microseconds. An event's *total* time includes the
events nested in it; its *self* time excludes them. The sum of all self times never exceeds the elapsed time.
"""

from chainrule._src.api.public_modules import show
from chainrule._src.transforms.profiler import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    emit_itt,
    emit_nvtx,
    load_nvprof,
    parse_nvprof_trace,
    profile,
    record_function,
)

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

show(globals())
