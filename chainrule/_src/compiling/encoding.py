"""The calls of a trace as integer arrays, which the first passes read instead of objects.

``tree`` encodes the calls of each segment, in C with the extension (``native/passes.c``). ``fingerprints``, ``simplify`` and ``trace``
take the arrays.

Each array of the program has an index. Calls have the same *form* if function and arguments are equal, apart from arrays: such calls
compute equal results from equal operands. Calls have the same *signature* if form, layouts of operands and layouts of results are equal.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.layout import data_address, memory_span
from chainrule._src.interpreters.trace_types import (
    PrimitiveFunction,
    TracedCall,
    Var,
    argument_key,
    collect_instances,
)

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

    def __init__(self, calls: list[TracedCall]) -> None:
        self.calls = calls
        self.layouts: dict[Any, int] = {}
        self._forms: dict[Any, int] = {}
        self._form_count = 0
        encode = _encode_calls if native.LOOPS is None else native.LOOPS.encode_calls
        self.variables: list[Var]
        (
            self.variables, self.number, self.layout, self.address, self.starts, self.operands, self.result_starts,
            self.results, self.form, self.signature, self.flags, self.first, self.first_of_form, self.hashes, self._by_number,
        ) = encode(calls, self._form_of, self.layout_of)  # fmt: skip
        self._forms.clear()

    def _form_of(self, call: TracedCall) -> int:
        """Return the form of a call. A call whose arguments have no hash has a form of its own."""
        function = call.function
        try:
            if type(function) is PrimitiveFunction:
                function = function.prim, argument_key(function.params, type)
            key = function, call.method, argument_key(call.args, type), argument_key(call.kwargs, type)
            form = self._forms.setdefault(key, self._form_count)
        except TypeError:
            form = self._form_count
        self._form_count += form == self._form_count
        return form

    def layout_of(self, array: NumpyArray) -> int:
        """Return the index of the layout of an array."""
        return self.layouts.setdefault((array.shape, array.strides, array.dtype), len(self.layouts))

    def find(self, var: Var) -> int | None:
        """Return the index of a Var among ``variables``, or None."""
        if 0 <= var.number < len(self._by_number):
            at = int(self._by_number[var.number])
            if at >= 0 and self.variables[at] is var:
                return at
        return self._index.get(var)

    @functools.cached_property
    def _index(self) -> dict[Var, int]:
        """The index of each Var, for Vars that ``_by_number`` does not have: it has one for each number at the time of encoding."""
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


def operand_vars(call: TracedCall) -> list[Var]:
    """Return the Vars among the arguments of a call, with repetitions."""
    found: list[Var] = []
    collect_instances(call.args, Var, found)
    collect_instances(call.kwargs, Var, found)
    return found


def _encode_calls(calls: list[TracedCall], form_of: Any, layout_of: Any) -> tuple[Any, ...]:
    """Return the attributes of EncodedCalls, as ``encode_calls`` in ``native/passes.c``."""
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
                layouts.append(-1 if var.array is None else layout_of(var.array))
        form = form_of(call)
        if form == len(first_of_form):
            first_of_form.append(i)
        key = form, *[layouts[index[var]] for var in (*used, *call.results)]
        if signatures.setdefault(key, len(signatures)) == len(first):
            first.append(i)
        forms.append(form)
        encoded.append(signatures[key])
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
