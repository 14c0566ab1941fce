"""``TermPlan``: a compiled program that computes the numbers of a Jacobian's terms from the arrays of a trace.

The rows and columns of terms depend only on the signature of the trace, so a plan stores them. NumPy calls compute the numbers.
``record_plan`` records these calls while it propagates the terms of one trace. ``plan_cache`` calls ``record_plan`` and runs the plans.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.types import NumpyArray, Params
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.interpreters.jac import Jac, JacStep
from chainrule._src.interpreters.recorder import Recorder
from chainrule._src.interpreters.trace_types import Program, Unrecordable, Var, collect_instances
from chainrule._src.interpreters.traced import Traced
from chainrule._src.jacobians.assemble import EntryPattern
from chainrule._src.jacobians.terms import Term, TermGrid
from chainrule._src.jacobians.trace import JacobianTrace
from chainrule._src.tape.levels import open_level

ndarray = np.ndarray


class TermPlan:
    """Computes the terms of traces with one signature.

    Attributes:
        patterns: the sparsity patterns of matrices of these terms. ``layouts`` and ``result`` add them.
        nbytes: approximate memory, including patterns.
        last_use: number of the last lookup that found the plan.
    """

    __slots__ = ("__weakref__", "_inputs", "_numbers", "_plan", "_report", "_terms", "last_use", "nbytes", "patterns")

    def __init__(self, recorder: Recorder, inputs: list[Var], grid: TermGrid) -> None:
        self._report = functools.partial(_raise_except_for, frozenset(recorder.ignored))
        self._terms = [[[_as_constant(term) for term in terms] for terms in row] for row in grid]
        index_of: dict[Any, _Input | _Output] = {var: _Input(k) for k, var in enumerate(inputs)}
        outputs: list[Var] = []
        self._numbers: list[Any] = []  # for each term in order: an _Input, an _Output, or constant numbers
        for vals in [term.vals for row in grid for terms in row for term in terms]:
            if type(vals) is not Traced:
                self._numbers.append(vals.copy() if type(vals) is ndarray else vals)
                continue
            if vals.var not in index_of:
                index_of[vals.var] = _Output(len(outputs))
                outputs.append(vals.var)
            self._numbers.append(index_of[vals.var])
        used: list[Var] = []
        calls = list(recorder.calls)
        for call in calls:
            call.code = None  # may contain the code of the function, which the plan must not keep alive
            collect_instances((call.args, call.kwargs), Var, used)
        read = set(used)
        self._inputs = [k for k, var in enumerate(inputs) if var in read]
        known = set(inputs)
        constants = [var for var in recorder.roots() if var not in known]
        _check_constants(constants, inputs)
        program = Program([inputs[k] for k in self._inputs], constants, calls, outputs, [])
        self._plan = ExecutionPlan(program) if outputs else None
        self.patterns: dict[Any, EntryPattern] = {}
        self.last_use = 0
        integers = [x for row in grid for terms in row for term in terms for x in (term.cols, term.rows)]
        entries = sum([term.cols.size for row in grid for terms in row for term in terms])
        planned = 0 if self._plan is None else self._plan.memory + self._plan.constant_bytes
        self.nbytes = planned + sum([x.nbytes for x in integers if x is not None]) + 16 * entries

    def terms(self, arrays: Sequence[NumpyArray]) -> TermGrid | None:
        """Return the terms for the arrays of a signature; None if a call raises or would warn: the terms must then be propagated."""
        outputs: list[NumpyArray] = []
        if self._plan is not None:
            try:
                outputs = self._plan.run([arrays[k] for k in self._inputs], self._report)
            except Exception:
                return None
        numbers = iter(self._numbers)
        return [
            [[_filled(term, next(numbers), arrays, outputs) for term in terms] for terms in row] for row in self._terms
        ]


def _raise_except_for(ignored: frozenset[str], kinds: Iterable[str]) -> None:
    """Raise for kinds of floating-point exceptions that are not ignored, so that eager code warns about them."""
    if not ignored.issuperset(kinds):
        raise FloatingPointError


class _Input(NamedTuple):
    """The numbers of a term are an array of the signature, with this index."""

    number: int


class _Output(NamedTuple):
    """The numbers of a term are an output of the plan, with this index."""

    number: int


def _filled(term: Term, numbers: Any, arrays: Sequence[NumpyArray], outputs: list[NumpyArray]) -> Term:
    """Return a term with its numbers, given as an index of the inputs or outputs, or as constants."""
    if type(numbers) is _Output:
        numbers = outputs[numbers.number]
    elif type(numbers) is _Input:
        numbers = arrays[numbers.number]
    return Term(term.source, term.cols, numbers, term.rows)


def _as_constant(term: Term) -> Term:
    """Return a term without numbers, whose integer arrays cannot be written."""
    for integers in (term.cols, term.rows):
        if integers is not None:
            if type(integers) is not ndarray:
                raise Unrecordable("the rows or columns of a term depend on numbers")
            integers.flags.writeable = False
    return Term(term.source, term.cols, 0, term.rows)


def _check_constants(constants: list[Var], inputs: list[Var]) -> None:
    """Raise if a constant shares memory with an input: the constant would keep the input's old numbers."""
    floats = [var.array for var in constants if var.dtype.kind in "fc"]
    if any([np.may_share_memory(x, var.array) for x in floats for var in inputs]):
        raise Unrecordable("a number of the trace was captured as a constant")


def record_plan(
    trace: JacobianTrace, arrays: Sequence[NumpyArray], memory: int
) -> tuple[TermPlan, TermGrid, list[int]]:
    """Propagate the terms of a trace forward and record the NumPy calls.

    Args:
        arrays: the arrays of the trace's signature.
        memory: the maximum number of bytes of each step.

    Returns:
        The plan; the terms of this trace; and the indices of arrays whose content determined rows or columns.

    Raises:
        Unrecordable: the calls depend on numbers, or on other state.
        Unstructured: terms cannot be propagated through a step.
    """
    recorder = Recorder()
    with open_level("jacobian", Traced) as level:
        recorder.level = level
        level.recorder = recorder
        with recorder:
            inputs = [recorder.new(_unshared(x)) for x in arrays]
            values = {id(x): Traced(var, level, plain=True) for x, var in zip(arrays, inputs, strict=True)}
            grid = _with_values(trace, values).terms(memory)
        recorder.check_refused()
    if recorder.handled or recorder.generator_states or recorder.lifted or recorder.written or recorder.rebound:
        raise Unrecordable("a rule changes state")
    reads = [_index_of(guard.var, inputs) for guard in recorder.guards]
    plan = TermPlan(recorder, inputs, grid)
    computed = [
        [
            [Term(t.source, t.cols, t.vals.var.array if type(t.vals) is Traced else t.vals, t.rows) for t in terms]
            for terms in row
        ]
        for row in grid
    ]
    return plan, computed, sorted(set(reads))


def _unshared(x: NumpyArray) -> NumpyArray:
    """Return an array of integers as a copy: rows and columns may be views of it, and the caller may write into it."""
    return with_strides(x, x.strides) if x.dtype.kind in "biu" else x


def _index_of(var: Var, inputs: list[Var]) -> int:
    """Return the index of an array that was read; raise for numbers, and for integers that are computed from them."""
    for k, known in enumerate(inputs):
        if known is var and var.dtype.kind in "biu":
            return k
    raise Unrecordable("a rule reads numbers")


def _with_values(trace: JacobianTrace, values: dict[int, Traced]) -> JacobianTrace:
    """Return the same trace with other values of the arrays, given by id."""
    steps: dict[JacStep, JacStep] = {}
    for step in trace.steps:
        made = steps[step] = object.__new__(JacStep)
        made.prim, made.seq, made.code, made.lasti = step.prim, step.seq, step.code, step.lasti
        made.params = _copied(step.params)
        made.operands = [values.get(id(x), x) for x in step.operands]
        made.outs = tuple([values.get(id(x), x) for x in step.outs])
        made.origins = [_mapped(origin, steps) for origin in step.origins]
    found = copy.copy(trace)
    found.__dict__["steps"] = list(steps.values())
    found.results = [Jac(y.primal, _mapped(y.origin, steps), y.level) for y in trace.results]
    return found


def _mapped(origin: Any, steps: dict[JacStep, JacStep]) -> Any:
    """Return an origin with its step replaced."""
    return (steps[origin[0]], origin[1]) if type(origin) is tuple else origin


def _copied(params: Params) -> Params:
    """Return parameters with copies of their arrays, which the user may write into."""
    return {name: _copy_arrays(x) for name, x in params.items()}


def _copy_arrays(x: Any) -> Any:
    kind = type(x)
    if kind is ndarray:
        return with_strides(x, x.strides)
    if kind is tuple or kind is list:
        return kind([_copy_arrays(item) for item in x])
    return {name: _copy_arrays(item) for name, item in x.items()} if kind is dict else x
