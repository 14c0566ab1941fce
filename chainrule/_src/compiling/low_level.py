"""Make C callbacks for SciPy (``scipy.LowLevelCallable``) from compiled functions.

``Compiled.as_low_level_callable`` calls ``arguments_of`` and ``low_level_callable``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.function_trace import Argument, FunctionTrace
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.compiling.tree import Tree
from chainrule._src.messages import errors
from chainrule._src.native import AVAILABLE, why_not

if TYPE_CHECKING:
    from scipy import LowLevelCallable

DOUBLE = np.dtype(np.float64)


def arguments_of(name: str, examples: tuple[object, ...]) -> tuple[NumpyArray, ...]:
    """Return float64 arrays like the arguments that SciPy will pass: 0-d arrays, or one 1-D array."""
    arrays = tuple([np.array(x, DOUBLE) for x in examples])
    if not arrays or not (all([x.ndim == 0 for x in arrays]) or (len(arrays) == 1 and arrays[0].ndim == 1)):
        raise errors.compile_low_level_arguments(name, [x.shape for x in arrays])
    return arrays


def low_level_callable(name: str, tree: Tree, arguments: tuple[NumpyArray, ...]) -> LowLevelCallable:
    """Return the C callback of the trace of a tree, for calls with such arguments."""
    from scipy import LowLevelCallable

    if not AVAILABLE:
        raise errors.compile_not_low_level(name, why_not)
    trace = tree.root.trace
    if trace is None or tree.root.checks:
        raise errors.compile_not_low_level(name, "Python reads a value in it; choose with np.where instead")
    plan = tree.root.plan
    if reason := _why_not(trace, plan):
        raise errors.compile_not_low_level(name, reason)
    entry = plan.entry(None)
    if entry is None:
        raise errors.compile_not_low_level(name, "its result is an argument, or Python runs one of its steps")
    out = trace.results[0].var
    assert out is not None
    kind = "integrand" if not arguments[0].shape else "line_filter" if out.shape else "filter"
    sources = [tree.sources[number] for number in tree.root.inputs]
    given = [source.at if type(source) is Argument else source.array((), ()) for source in sources]
    return LowLevelCallable(entry[0].low_level(kind, len(arguments), given))


def _why_not(trace: FunctionTrace, plan: ExecutionPlan) -> str:
    """Return the reason why a trace cannot be a C callback, or ""."""
    if trace.generator_states:
        return "it draws random numbers"
    if trace.effects or trace.writes or trace.states or trace.backward is not None:
        return "it changes captured tensors, or gradients flow through it"
    out = trace.results[0].var if len(trace.results) == 1 else None
    if out is None:
        return "it has to return one array"
    if out.dtype != DOUBLE or len(out.shape) > 1:
        return f"it returns {out.dtype}{list(out.shape)}, and SciPy needs float64[] or float64[n]"
    python = [step.name for step in plan.steps if step.template is None and not step.view]
    if python:
        return f"{', '.join(dict.fromkeys(python))} is a step that Python runs"
    failing = [step.name for step in plan.steps if step.template is not None and step.template.may_fail]
    return f"{', '.join(dict.fromkeys(failing))} may raise an error, which SciPy does not check for" if failing else ""
