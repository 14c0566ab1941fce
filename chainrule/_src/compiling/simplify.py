"""Simplify a recorded program: dead code elimination, common subexpression elimination and constant folding.

``plan`` passes the result to ``Lowering``. The bits of the outputs do not change.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.layout import same_memory
from chainrule._src.compiling.loops import numpy_functions
from chainrule._src.interpreters.rebuilt import Rebuilt
from chainrule._src.interpreters.trace_types import (
    AsArray,
    PrimitiveFunction,
    Program,
    TracedCall,
    Var,
    argument_key,
    collect_instances,
)

ndarray = np.ndarray

#: the maximum bytes of a folded constant
FOLDED = 1 << 16


class Simplified:
    """A program without unneeded calls.

    Attributes:
        calls: the remaining calls, in order, each with the Vars among its arguments.
        same: for each result of a call that was merged with an equal one, the Var that replaces it.
        constants: the content of each Var that does not depend on the inputs.
        dropped, merged, folded: the numbers of calls that were dropped, merged and folded.
    """

    __slots__ = ("calls", "constants", "dropped", "folded", "merged", "same")

    def __init__(self, program: Program) -> None:
        self.same: dict[Var, Var] = {}
        self.constants: dict[Var, NumpyArray] = {var: var.array for var in program.constants}
        self.merged = self.folded = 0
        live = _live(program)
        self.dropped = len(program.calls) - len(live)
        self.calls: list[tuple[TracedCall, list[Var]]]
        seen: dict[Any, tuple[Var, ...]] = {}

        def is_needless(call: TracedCall, used: list[Var]) -> bool:
            return call.pure and (self._fold(call, used) or self._merge(call, seen))

        if native.LOOPS is None:
            self.calls = [pair for pair in live if not is_needless(*pair)]
        else:
            self.calls, merged = native.LOOPS.merge_equal(live, self.constants, self.same, is_needless)
            self.merged += merged

    def _fold(self, call: TracedCall, used: list[Var]) -> bool:
        """Fold a call whose operands are all constants; return whether that was possible."""
        constants = self.constants
        for var in used:
            if var not in constants:
                return False
        if not used and call.function not in CREATORS:
            return False
        kept = []
        for var in call.results:
            array = var.array
            if not any([same_memory(array, constants[x]) for x in used]):
                if any([same_memory(array, x.array) for x in used]):
                    return False  # a view of an array that was copied when it was folded
                if array.nbytes > FOLDED:
                    return False
                if array.dtype.kind in "fc" and not np.isfinite(array).all():
                    return False  # the call may raise a floating-point exception
                array = with_strides(array, array.strides)  # a copy: others may refer to the recorded array
            kept.append(array)
        constants.update(zip(call.results, kept, strict=True))
        self.folded += 1
        return True

    def _merge(self, call: TracedCall, seen: dict[object, tuple[Var, ...]]) -> bool:
        """Replace the results of a call by those of an equal earlier call; return whether there is one."""
        same = self.same
        try:
            if call.step is not None:
                key: tuple[Any, ...] = call.step.form, *[same.get(x, x) for x in operand_vars(call)]
            else:
                args = tuple([same.get(x, x) if type(x) is Var else argument_key(x, self.of) for x in call.args])
                kwargs = argument_key(call.kwargs, self.of) if call.kwargs else ()
                key = call.function, call.method, args, kwargs
            results = seen.get(key)
        except TypeError:  # an argument that has no hash
            return False
        if results is None:
            seen[key] = call.results
            return False
        self.same.update(zip(call.results, results, strict=True))
        self.merged += 1
        return True

    def of(self, var: Var) -> Var:
        return self.same.get(var, var)


def operand_vars(call: TracedCall) -> list[Var]:
    """Return the Vars among the arguments of a call, with repetitions."""
    found: list[Var] = []
    collect_instances(call.args, Var, found)
    collect_instances(call.kwargs, Var, found)
    return found


def _live(program: Program) -> list[tuple[TracedCall, list[Var]]]:
    """Return the calls on which outputs, writes or effects depend, with the Vars among their arguments."""
    needed: set[Var] = set(program.outputs)
    needed.update(value for _, value in program.writes)

    def operands_if_needed(call: TracedCall) -> list[Var] | None:
        if not call.pure or call.kept or not needed.isdisjoint(call.results) or _may_raise(call):
            return [] if _needs_shape_only(call) else operand_vars(call)
        return None

    if native.LOOPS is not None:
        live: list[tuple[TracedCall, list[Var]]] = native.LOOPS.live_calls(
            list(program.calls), needed, _MAY_RAISE, operands_if_needed, _set_flags
        )
    else:
        live = []
        for call in reversed(program.calls):
            used = operands_if_needed(call)
            if used is not None:
                live.append((call, used))
                needed.update(used)
    live.reverse()
    return live


def _set_flags(call: TracedCall) -> None:
    """Set the flags of the step of a template, which are the same for all of its calls."""
    call.step.may_raise, call.step.reads_shape_only = bool(_may_raise(call)), bool(_needs_shape_only(call))


def _may_raise(call: TracedCall) -> bool:
    """Return whether a call may raise an error for other values of its operands."""
    function = call.function
    while type(function) in (Rebuilt, AsArray):
        function = function.function
    if type(function) is PrimitiveFunction:
        return function.prim.kind not in ("elementwise", "linear", "contraction")
    if function in (np.power, operator.pow):  # integers to negative powers raise
        return all(var.dtype.kind in "iub" for var in call.results)
    if function in (operator.getitem, operator.setitem):
        return any(var.shape for var in operand_vars(call)[1:])
    if isinstance(function, np.ufunc):
        return call.method == "reduceat"
    if function is np.where and len(call.args) + len(call.kwargs) == 1:  # the shape of the result depends on values
        return True
    return function not in _NEVER_RAISING and getattr(function, "__module__", None) not in _NEVER_RAISING_MODULES


def _needs_shape_only(call: TracedCall) -> bool:
    """Return whether a call fills a small array with one number and reads only the shape of its operand."""
    if call.function not in LIKE or sum(var.array.nbytes for var in call.results) > FOLDED:
        return False
    return len(operand_vars(call)) == 1 and type(call.args[0]) is Var


#: ufuncs that may raise for some values
_MAY_RAISE = frozenset({np.power})
#: functions that make an array with the shape of another one
LIKE: frozenset[Any] = frozenset({np.zeros_like, np.ones_like, np.full_like})
#: functions whose result does not depend on the content of arrays
CREATORS: frozenset[Any] = LIKE | {np.zeros, np.ones, np.full, np.arange, np.eye, np.identity, np.linspace}
#: modules whose functions raise only for shapes and dtypes, not for values
_NEVER_RAISING_MODULES = frozenset({"numpy.fft", "_operator", "chainrule._src.arrays.any_array"})
#: NumPy functions that raise only for shapes and dtypes
_NEVER_RAISING = (
    numpy_functions(
        """
    reshape ravel transpose swapaxes moveaxis squeeze expand_dims broadcast_to atleast_1d atleast_2d atleast_3d concatenate
    stack hstack vstack dstack column_stack where copy astype real imag conj diagonal diag tril triu trace flip roll tile
    dot inner outer vdot tensordot einsum kron cross sum prod mean var std max min any all argmax argmin ptp
    cumsum cumprod sort argsort clip round diff nan_to_num isclose
    """
    )
    | CREATORS
    | {np.linalg.det, np.linalg.slogdet}
)
