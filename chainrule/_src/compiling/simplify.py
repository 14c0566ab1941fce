"""Simplify a recorded program: dead code elimination, common subexpression elimination and constant folding.

``plan`` passes the result to ``Lowering``. The bits of the outputs do not change. The passes run on the arrays of ``encoding``, in C with
the extension.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, overload

import numpy as np

from chainrule._src import native
from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.encoding import KEPT, PURE, EncodedCalls, operand_vars
from chainrule._src.compiling.layout import same_memory
from chainrule._src.compiling.loops import numpy_functions
from chainrule._src.interpreters.rebuilt import Rebuilt
from chainrule._src.interpreters.trace_types import AsArray, PrimitiveFunction, Program, TracedCall, Var, map_vars
from chainrule._src.tape.versions import owner

ndarray = np.ndarray

#: the number of calls up to which they are kept with the Vars that they read
KEPT_PAIRS = 256
#: the maximum bytes of a folded constant
FOLDED = 1 << 16


class RemainingCalls:
    """The remaining calls of a program, in order, each with the Vars that it reads: a sequence that makes its items on demand.

    Attributes:
        rows: the indices of the calls.
        reads: whether each call of the program reads its operands.
    """

    def __init__(self, encoded: EncodedCalls, rows: NumpyArray, reads: NumpyArray) -> None:
        self._encoded, self.rows, self.reads = encoded, rows, reads
        self._pairs = list(map(self._pair, rows.tolist())) if len(rows) <= KEPT_PAIRS else None

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> tuple[TracedCall, list[Var]]: ...
    @overload
    def __getitem__(self, at: slice) -> list[tuple[TracedCall, list[Var]]]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if self._pairs is not None:
            return self._pairs[at]
        return (
            list(map(self._pair, self.rows[at].tolist())) if isinstance(at, slice) else self._pair(int(self.rows[at]))
        )

    def __iter__(self) -> Iterator[tuple[TracedCall, list[Var]]]:
        return map(self._pair, self.rows.tolist()) if self._pairs is None else iter(self._pairs)

    def _pair(self, row: int) -> tuple[TracedCall, list[Var]]:
        return self._encoded.calls[row], self._encoded.operands_of(row) if self.reads[row] else []


class Simplified:
    """A program without unneeded calls.

    Args:
        encoded: the calls of the program, if they are encoded.

    Attributes:
        encoded: all calls of the program; calls: the remaining ones.
        same: for each Var of ``encoded`` the index of the Var that replaces it: of an equal result of an earlier call, or its own.
        constants: the content of each Var that does not depend on the inputs.
        dropped, merged, folded: the numbers of calls that were dropped, merged and folded.
    """

    __slots__ = ("calls", "constants", "dropped", "encoded", "folded", "merged", "same")

    def __init__(self, program: Program, encoded: EncodedCalls | None = None) -> None:
        encoded = EncodedCalls(program.calls) if encoded is None else encoded
        needed_after = [*program.outputs, *[value for _, value in program.writes]]
        encoded.add([*program.inputs, *program.constants, *needed_after])
        self.encoded = encoded
        self.constants: dict[Var, NumpyArray] = {var: var.array for var in program.constants}
        self.folded = 0
        first = [encoded.calls[i] for i in encoded.first.tolist()]
        may_raise = np.array([bool(_may_raise(call)) for call in first], bool)
        reads = ~np.array([_needs_shape_only(call) for call in first], bool)[encoded.signature]
        pure, kept = (encoded.flags & PURE) != 0, (encoded.flags & KEPT) != 0
        live, needed = ~pure | kept | may_raise[encoded.signature], encoded.of_variables()
        needed[encoded.indices(needed_after)] = True
        calls = encoded.starts, encoded.operands, encoded.result_starts, encoded.results
        mark, merge = (
            (_mark_live, _merge_equal) if native.LOOPS is None else (native.LOOPS.mark_live, native.LOOPS.merge_equal)
        )
        mark(calls, live, reads, needed)
        self.dropped = len(live) - int(np.count_nonzero(live))
        self.same = np.arange(len(encoded.variables), dtype=np.int32)
        constant = encoded.of_variables()
        constant[encoded.indices(program.constants)] = True
        self.merged = merge(
            calls, encoded.form, live, pure, reads, constant, self.same, functools.partial(self._fold, reads)
        )
        self.calls = RemainingCalls(encoded, np.flatnonzero(live), reads)

    def original(self, var: Var) -> Var:
        """Return the Var that replaces a Var."""
        at = self.encoded.find(var)
        return var if at is None else self.encoded.variables[self.same[at]]

    def _fold(self, reads: NumpyArray, i: int) -> bool:
        """Fold a call whose operands are all constants; return whether that was possible."""
        constants, call = self.constants, self.encoded.calls[i]
        used = self.encoded.operands_of(i) if reads[i] else []
        if not used and call.function not in CREATORS:
            return False
        kept = []
        for array in self._recorded_results(call):
            if not any([same_memory(array, constants[x]) for x in used]):
                if any([same_memory(array, x.array) for x in used]):
                    return False  # a view of an array that was copied when it was folded
                if array.nbytes > FOLDED or is_released(array):
                    return False
                if array.dtype.kind in "fc" and not np.isfinite(array).all():
                    return False  # the call may raise a floating-point exception
                array = with_strides(array, array.strides)  # a copy: others may refer to the recorded array
            kept.append(array)
        constants.update(zip(call.results, kept, strict=True))
        self.folded += 1
        return True

    def _recorded_results(self, call: TracedCall) -> list[NumpyArray]:
        """Return the recorded results of a call whose operands are constants. Compute small ones again if their memory was released."""
        arrays = [var.array for var in call.results]
        if not any(map(is_released, arrays)) or sum([array.nbytes for array in arrays]) > FOLDED:
            return arrays
        args, kwargs = map_vars((call.args, call.kwargs), lambda var: self.constants.get(var, var.array))
        with np.errstate(all="ignore"):
            out = call.callee(*args, **kwargs)
        parts = out if isinstance(out, (tuple, list)) else (out,)
        for var, part in zip(call.results, parts, strict=True):
            var.array = np.asarray(part)
        return [var.array for var in call.results]


def is_released(array: NumpyArray) -> bool:
    """Return whether the memory of a recorded value was released (see ``native/released_values.c``)."""
    return native.LOOPS is not None and isinstance(owner(array).base, native.LOOPS.ReservedMemory)


def _mark_live(calls: tuple[NumpyArray, ...], live: NumpyArray, reads: NumpyArray, needed: NumpyArray) -> None:
    """Set ``live`` of each call whose results are needed, and ``needed`` of the operands that live calls read."""
    starts, operands, result_starts, results = [array.tolist() for array in calls]
    for i in range(len(live) - 1, -1, -1):
        live[i] |= needed[results[result_starts[i] : result_starts[i + 1]]].any()
        if live[i] and reads[i]:
            needed[operands[starts[i] : starts[i + 1]]] = True


def _merge_equal(
    calls: tuple[NumpyArray, ...],
    form: NumpyArray,
    live: NumpyArray,
    pure: NumpyArray,
    reads: NumpyArray,
    constant: NumpyArray,
    same: NumpyArray,
    fold: Callable[[int], bool],
) -> int:
    """Clear ``live`` of each pure call that can be folded, or that is equal to an earlier one; return how many are merged.

    ``same`` gets the index of the Var that replaces each result of a merged call.
    """
    starts, operands, result_starts, results = [array.tolist() for array in calls]
    seen: dict[Any, list[int]] = {}
    merged = 0
    for i in np.flatnonzero(live & pure).tolist():
        used, own = operands[starts[i] : starts[i + 1]], results[result_starts[i] : result_starts[i + 1]]
        if (not reads[i] or constant[used].all()) and fold(i):
            constant[own] = True
            live[i] = False
            continue
        found = seen.setdefault((form[i], *same[used].tolist()), own)
        if found is not own and len(found) == len(own):
            same[own] = found
            live[i] = False
            merged += 1
    return merged


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
