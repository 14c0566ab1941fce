"""Where the time goes: a profile of operations and rules, with the names of ``torch.autograd.profiler``.

A profile is a watch (see ``api.watch``): every operation, rule and labelled region of its thread becomes an event. What
NumPy does inside a rule is part of the rule's own time. Times are microseconds. An event's *total* time is all that
passed in it; its *self* time is that without the events inside it. So self times add up to no more than the time that
passed, however events nest.
"""

from chainrule._src.api.faces import show
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
