"""The calls of a trace as integer arrays, which the first passes read instead of objects.

``tree`` encodes the calls of each segment, in C with the extension (``native/encoding.c``). ``fingerprints``, ``simplify`` and ``trace``
take the arrays.

Each array of the program has an index. Calls have the same *form* if function and arguments are equal, apart from arrays: such calls
compute equal results from equal operands. Calls have the same *signature* if form, layouts of operands and layouts of results are equal.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.layout import data_address, memory_span
from chainrule._src.interpreters.trace_types import CallRange, Forms, TracedCall, Var, collect_instances

#: flags of a call
PURE, KEPT = 1, 2


class EncodedCalls:
    """The calls of a program as integer arrays.

    Args:
        calls: the calls, in order.

    Attributes:
        variables: the Vars of the calls.
        number, layout, address: for each Var its number, the index of its layout (-1 without an array), and the address of its data.
        layouts: shape, strides and dtype of each layout.
        starts, operands: the Vars among the arguments of call ``i`` are ``operands[starts[i]:starts[i + 1]]``, with repetitions.
        result_starts, results: its results in the same way.
        form, signature, flags: for each call the indices of its form and of its signature, and PURE and KEPT.
        first, first_of_form: for each signature and for each form the first call that has it.
        hashes: hashes of the last forms, which are those of ufunc calls that C encoded.
    """

    def __init__(self, calls: Sequence[TracedCall]) -> None:
        self.calls = calls
        self.variables: Any
        self.layouts: dict[Any, int]
        self._by_number: NumpyArray | None = None
        if type(calls) is CallRange:
            slots, *arrays = calls.encode()
            self.variables, self.layouts = Variables(calls.calls, slots), calls.calls.layouts
        else:
            self.calls, self.layouts = list(calls), {}
            encode = _encode_calls if native.LOOPS is None else native.LOOPS.encode_calls
            self.variables, *arrays, self._by_number = encode(self.calls, Forms(), self.layouts)
        (
            self.number, self.layout, self.address, self.starts, self.operands, self.result_starts,
            self.results, self.form, self.signature, self.flags, self.first, self.first_of_form, self.hashes,
        ) = arrays  # fmt: skip

    def layout_of(self, array: NumpyArray) -> int:
        """Return the index of the layout of an array."""
        return self.layouts.setdefault((array.shape, array.strides, array.dtype), len(self.layouts))

    def find(self, var: Var) -> int | None:
        """Return the index of a Var among ``variables``, or None."""
        if self._by_number is None:
            at = self.variables.find(var)
            return self._index.get(var) if at is None else at
        if 0 <= var.number < len(self._by_number):
            at = int(self._by_number[var.number])
            if at >= 0 and self.variables[at] is var:
                return at
        return self._index.get(var)

    @functools.cached_property
    def _index(self) -> dict[Var, int]:
        """The indices of Vars that were added, or that ``_by_number`` does not have: it has one for each number at the time of encoding."""
        if self._by_number is None:
            return {}
        return dict(zip(self.variables, range(len(self.variables)), strict=True))

    def add(self, variables: Iterable[Var]) -> None:
        """Add Vars that no call computes or reads."""
        new = [var for var in dict.fromkeys(variables) if self.find(var) is None]
        if new:
            self._index.update(zip(new, range(len(self.variables), len(self.variables) + len(new)), strict=True))
            self.variables += new
            self.number = np.append(self.number, [var.number for var in new])
            self.layout = np.append(self.layout, np.array([self.layout_of(var.array) for var in new], np.int32))
            self.address = np.append(self.address, [data_address(var.array) for var in new])

    def operands_of(self, i: int) -> list[Var]:
        """Return the Vars among the arguments of a call, with repetitions."""
        return [self.variables[k] for k in self.operands[self.starts[i] : self.starts[i + 1]].tolist()]

    def indices(self, variables: Iterable[Var]) -> NumpyArray:
        """Return the indices of Vars."""
        return np.array([self.find(var) for var in variables], np.intp)

    def of_variables(self, values: bool | int = False, dtype: Any = bool) -> NumpyArray:
        """Return a new array with an entry for each Var."""
        return np.full(len(self.variables), values, dtype)

    def inputs(self) -> list[Var]:
        """Return the Vars that calls read and that no call computes."""
        computed = self.of_variables()
        computed[self.results] = True
        return [self.variables[k] for k in np.flatnonzero(~computed).tolist()]

    def views(self) -> list[TracedCall]:
        """Return the calls whose only result is in the memory that one of their operands spans."""
        spans = [memory_span(shape, strides, dtype.itemsize) for shape, strides, dtype in self.layouts]
        before, nbytes = np.array([*spans, (0, 0)], np.int64)[self.layout].T
        begin = self.address - before
        end = begin + nbytes
        calls = np.repeat(np.arange(len(self.calls)), np.diff(self.starts))
        is_single = np.diff(self.result_starts)[calls] == 1
        calls, x = calls[is_single], self.operands[is_single]
        y = self.results[self.result_starts[calls]]
        shared = (begin[x] < end[y]) & (begin[y] < end[x]) & (nbytes[x] > 0) & (nbytes[y] > 0)
        return [self.calls[i] for i in dict.fromkeys(calls[shared].tolist())]

    def computed(self, numbers: Collection[int]) -> dict[int, Var]:
        """Return the Vars that calls compute, of those with some numbers, by number."""
        wanted = np.sort(np.array([*numbers, -1], np.int64))
        number = self.number[self.results]
        found = self.results[(number >= 0) & (wanted[np.searchsorted(wanted[:-1], number)] == number)]
        return {self.variables[k].number: self.variables[k] for k in found.tolist()}


class Variables:
    """The Vars of packed calls: a list whose items are made on demand.

    Args:
        calls: the ``CallList`` of the trace.
        slots: the slot of each Var in it.
    """

    def __init__(self, calls: Any, slots: NumpyArray) -> None:
        self._calls, self._slots = calls, slots
        self._added: list[Var] = []

    def __len__(self) -> int:
        return len(self._slots) + len(self._added)

    def __getitem__(self, i: int) -> Var:
        found: Var = (
            self._calls.variable(int(self._slots[i])) if i < len(self._slots) else self._added[i - len(self._slots)]
        )
        return found

    def __iadd__(self, variables: list[Var]) -> Variables:
        self._added += variables
        return self

    def find(self, var: Var) -> int | None:
        """Return the index of a Var of the calls, or None."""
        slot = self._calls.find(var)
        if 0 <= slot < len(self._slots) and self._slots.item(slot) == slot:  # as in the first calls of a trace
            return int(slot)
        order, by_slot = self._sorted
        at = bisect.bisect_left(by_slot, slot)
        return order[at] if at < len(by_slot) and by_slot[at] == slot else None

    @functools.cached_property
    def _sorted(self) -> tuple[memoryview, memoryview]:
        """The indices of the Vars in the order of their slots, and these slots."""
        order = np.argsort(self._slots, kind="stable")
        return order.data, self._slots[order].data


def operand_vars(call: TracedCall) -> list[Var]:
    """Return the Vars among the arguments of a call, with repetitions."""
    found: list[Var] = []
    collect_instances(call.args, Var, found)
    collect_instances(call.kwargs, Var, found)
    return found


def _encode_calls(calls: list[TracedCall], form_of: Any, layout_indices: dict[Any, int]) -> tuple[Any, ...]:
    """Return the attributes of EncodedCalls, as ``encode_calls`` in ``native/encoding.c``."""
    index: dict[Var, int] = {}
    signatures: dict[Any, int] = {}
    layouts: list[int] = []
    starts, operands, result_starts, results = [0], [], [0], []
    forms, encoded, first, first_of_form = [], [], [], []  # type: ignore[var-annotated]
    for i, call in enumerate(calls):
        used = operand_vars(call)
        for var in (*used, *call.results):
            if var not in index:
                index[var] = len(index)
                x = var.array
                key = None if x is None else (x.shape, x.strides, x.dtype)
                layouts.append(-1 if key is None else layout_indices.setdefault(key, len(layout_indices)))
        form = form_of(call)
        if form == len(first_of_form):
            first_of_form.append(i)
        signature = form, *[layouts[index[var]] for var in (*used, *call.results)]
        if signatures.setdefault(signature, len(signatures)) == len(first):
            first.append(i)
        forms.append(form)
        encoded.append(signatures[signature])
        operands += [index[var] for var in used]
        results += [index[var] for var in call.results]
        starts.append(len(operands))
        result_starts.append(len(results))
    numbers = np.array([var.number for var in index], np.int64)
    addresses = np.array([0 if var.array is None else data_address(var.array) for var in index], np.int64)
    flags = np.array([PURE * bool(call.pure) + KEPT * bool(call.kept) for call in calls], np.uint8)
    rows = layouts, starts, operands, result_starts, results, forms, encoded, first, first_of_form
    layout, *arrays, first_array, first_form_array = [np.array(row, np.int32) for row in rows]
    return (
        list(index), numbers, layout, addresses, *arrays, flags, first_array, first_form_array, np.zeros(0, np.int64),
        np.zeros(0, np.int32),
    )  # fmt: skip
