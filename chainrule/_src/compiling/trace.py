"""The remaining calls of a program with a signature for each call, for loop detection.

``looped_lowering`` makes ``TraceArrays`` from a simplified program, and reads them, like ``loop_detection``.

Each array of the program has a *slot*: its index in ``EncodedCalls``, or that of an equal array. The *root* of a view is the slot of
the array that owns its memory. Calls of the same function with operands of the same layouts share a signature. Python numbers among the
arguments are kept apart from it, so ``x * 0.1`` and ``x * 0.2`` have one signature.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.layout import ARENA, Buffer, BufferView, data_address, memory_span
from chainrule._src.compiling.loops import Template
from chainrule._src.compiling.lowering import LoopLowerer
from chainrule._src.compiling.simplify import Simplified
from chainrule._src.compiling.steps import VIEWS, is_elementwise, share_memory, views_of
from chainrule._src.interpreters.same_bits import number_key
from chainrule._src.interpreters.trace_types import Program, TracedCall, Var

ndarray = np.ndarray
INPUT, CONSTANT, COMPUTED = range(3)
#: the number of elements up to which equal constants share a slot
MERGED_SIZE = 64
#: the number of calls with one signature up to which each call is examined by itself
FEW = 8
_NOWHERE = Buffer(ARENA, 0)
#: the types of the usual operands of ufuncs
_ELEMENTS = {Var, float, int}


class TraceArrays:
    """The calls of a simplified program, without calls that only return views.

    Attributes:
        index: for each call of the simplified program its index in the trace, -1 for views; position: the inverse.
        view_call: for each slot of a view the call of the simplified program that returns it; -1 for other slots.
        signature, numbers: for each call the indices of its signature and of the Python numbers among its arguments.
        templates: for each signature the kernel calls; None if Python runs them, or if they depend on more than layouts.
        starts, operands: the slots of the operands of call ``i`` are ``operands[starts[i]:starts[i + 1]]``.
        results: the slots of the results, one row per call, padded with -1.
        root, offset, layout, origin: for each slot its root, its offset in bytes, the index of its layout, and INPUT,
            CONSTANT or COMPUTED.
        dense: for each layout whether the elements fill their memory.
        variables: the Var of each slot.
        producer, column: for each slot the call that computes it (or -1), and the index of the result.
        last: for each root the last call that reads it; the number of calls if it is read after all of them.
    """

    def __init__(self, program: Program, simplified: Simplified, lowerer: LoopLowerer) -> None:
        encoded = self._encoded = simplified.encoded
        self._calls, self._lowerer = simplified.calls, lowerer
        self.variables, self.layout = encoded.variables, encoded.layout
        self.templates: list[Template | None] = []
        self._keys: dict[Any, int] = {}
        self._number_keys: dict[Any, int] = {}
        self._templates: dict[tuple[int, int], Template | None] = {}
        rows, reads = simplified.calls.rows, simplified.calls.reads
        counts = np.where(reads, np.diff(encoded.starts), 0)
        self._slot, self._merged = simplified.same, bool(simplified.merged)
        self.origin = encoded.of_variables(CONSTANT, np.int8)
        self.origin[_ragged(encoded.result_starts, encoded.results, rows)] = COMPUTED
        self.origin[encoded.indices(program.inputs)] = INPUT
        after = encoded.indices([*program.outputs, *[value for _, value in program.writes]])
        self._share_constants(np.append(_ragged(encoded.starts, encoded.operands, rows[reads[rows]]), after))
        is_view = self._find_views(rows[counts[rows] == 1])[rows]
        self.position = np.flatnonzero(~is_view).astype(np.int32)
        self.index = np.where(is_view, np.int32(-1), np.cumsum(~is_view, dtype=np.int32) - np.int32(1))
        widths = np.diff(encoded.result_starts)[rows]
        self.view_call = encoded.of_variables(-1, np.int32)
        views = np.flatnonzero(is_view)
        self.view_call[_ragged(encoded.result_starts, encoded.results, rows[views])] = np.repeat(views, widths[views])
        rows, widths = rows[self.position], widths[self.position]
        self.operands = self._slot[_ragged(encoded.starts, encoded.operands, rows[reads[rows]])]
        self.starts = np.append(np.int32(0), np.cumsum(counts[rows], dtype=np.int32))
        self.results = np.full((len(rows), max(1, int(widths.max(initial=0)))), -1, np.int32)
        results = _ragged(encoded.result_starts, encoded.results, rows)
        self.results[np.arange(self.results.shape[1]) < widths[:, None]] = results
        self.signature, self.numbers = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.int32)
        for calls in _groups(encoded.signature[rows]):
            self._sign(calls)
        self.dense = np.array([_is_dense(*key) for key in encoded.layouts], bool)
        self.producer, self.column = encoded.of_variables(-1, np.int32), encoded.of_variables(0, np.int32)
        for column in range(self.results.shape[1]):
            results = self.results[:, column]
            calls = np.flatnonzero(results >= 0)
            self.producer[results[calls]], self.column[results[calls]] = calls, column
        self.last = encoded.of_variables(-1, np.int32)
        self.last[self.root[self.operands]] = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(self.starts))
        self.last[self.root[self._slot[after]]] = len(rows)

    def slot(self, var: Var) -> int:
        """Return the slot of a Var."""
        at = self._encoded.find(var)
        assert at is not None
        return int(self._slot[at])

    # -- slots -------------------------------------------------------------------------------------------------------

    def _share_constants(self, read: NumpyArray) -> None:
        """Let equal small constants share a slot, which loops read in each iteration.

        Args:
            read: the indices of arrays that are read.
        """
        is_read = self._encoded.of_variables()
        is_read[self._slot[read]] = True
        shared = np.arange(len(is_read), dtype=np.int32)
        seen: dict[Any, int] = {}
        for k in np.flatnonzero(is_read & (self.origin == CONSTANT)).tolist():
            array = self.variables[k].array
            if array.size <= MERGED_SIZE and not array.dtype.hasobject:
                shared[k] = seen.setdefault((array.tobytes(), array.shape, array.strides, array.dtype), k)
                self._merged |= bool(shared[k] != k)
        self._slot = shared[self._slot]

    def _find_views(self, rows: NumpyArray) -> NumpyArray:
        """Set ``root`` and ``offset`` of all slots. Return for each call of the program whether it only returns views.

        Args:
            rows: the calls with one operand.
        """
        encoded = self._encoded
        is_view = np.zeros(len(encoded.calls), bool)
        self.root, self.offset = np.arange(len(self._slot), dtype=np.int32), encoded.of_variables(0, np.int64)
        may_view = np.array([encoded.calls[i].function in VIEWS for i in encoded.first.tolist()], bool)
        rows = rows[may_view[encoded.signature[rows]]]
        for calls in _groups(encoded.signature[rows]):
            self._note_views(rows[calls], is_view)
        while True:  # views of views
            root = self.root[self.root]
            if np.array_equal(root, self.root):
                self.origin = self.origin[root]
                return is_view
            self.offset += self.offset[self.root]
            self.root = root

    def _note_views(self, rows: NumpyArray, is_view: NumpyArray) -> None:
        """Note the views that calls return.

        Args:
            rows: calls with one signature and one operand.
            is_view: gets True for the calls that return views.
        """
        if len(rows) <= FEW:
            for i in rows.tolist():
                self._note_view(i, is_view)
            return
        encoded, first = self._encoded, int(rows[0])
        operands = encoded.operands[encoded.starts[rows]]
        results = encoded.results[encoded.result_starts[rows][:, None] + np.arange(len(encoded.calls[first].results))]
        distance = encoded.address[results] - encoded.address[operands][:, None]
        given = self.variables[operands[0]].array
        offsets = _offsets_of_views(encoded.calls[first], given)
        if offsets is None:
            before, nbytes = memory_span(given.shape, given.strides, given.itemsize)
            unusual = ((distance >= -before) & (distance < nbytes - before)).any(1)
        else:
            unusual = (distance != distance[0]).any(1) & bool(distance[0].tolist() == offsets)
            usual = ~unusual
            self.root[results[usual]], self.offset[results[usual]] = self._slot[operands[usual]][:, None], offsets
            is_view[rows[usual]] = True
        for i in rows[unusual].tolist():
            self._note_view(i, is_view)

    def _note_view(self, i: int, is_view: NumpyArray) -> None:
        """Note the views that a call returns, if it does."""
        encoded = self._encoded
        operand = int(encoded.operands[encoded.starts[i]])
        offsets = _offsets_of_views(encoded.calls[i], self.variables[operand].array)
        if offsets is not None:
            results = encoded.results[encoded.result_starts[i] : encoded.result_starts[i + 1]]
            self.root[results], self.offset[results], is_view[i] = self._slot[operand], offsets, True

    # -- signatures --------------------------------------------------------------------------------------------------

    def _sign(self, calls: NumpyArray) -> None:
        """Set the signatures and numbers of calls of the trace with one form and equal layouts."""
        first = int(calls[0])
        call, used = self._calls[int(self.position[first])]
        if not used:
            self._set_unknown(calls)
            return
        parts = [calls]
        by_content = self._lowerer.reads_content(call)
        if by_content or (self._merged and len(used) > 1 and not is_elementwise(call)):
            operands = self.operands[self.starts[calls][:, None] + np.arange(len(used))]
            repeated = [k for k, roots in enumerate(self.root[operands].tolist()) if len({*roots}) < len(roots)]
            apart = [k for k in repeated if self._were_separate(self._calls[int(self.position[calls[k]])][1])]
            if apart:
                self._set_unknown(calls[apart])
                calls, operands = np.delete(calls, apart), np.delete(operands, apart, 0)
            parts = self._parts_by_content(calls, operands) if by_content else [calls] if len(calls) else []
        for part in parts:
            if part[0] != first:
                first = int(part[0])
                call, used = self._calls[int(self.position[first])]
            found = self._signature(first, call, used)
            if found is None:
                self._set_unknown(part)
            else:
                self.signature[part], self.numbers[part] = found

    def _parts_by_content(self, calls: NumpyArray, operands: NumpyArray) -> list[NumpyArray]:
        """Divide calls by the constants among their operands."""
        content = np.where(self.origin[operands] == CONSTANT, self.root[operands], -1)
        parts: dict[Any, list[int]] = {}
        for k, row in zip(calls.tolist(), map(tuple, content.tolist()), strict=True):
            parts.setdefault(row, []).append(k)
        return [np.array(part) for part in parts.values()]

    def _set_unknown(self, calls: NumpyArray) -> None:
        """Give each of some calls a signature that no other call has."""
        self.signature[calls] = np.arange(len(self.templates), len(self.templates) + len(calls))
        self.templates += [None] * len(calls)

    def _signature(self, i: int, call: TracedCall, used: list[Var]) -> tuple[int, int] | None:
        """Return the indices of the signature and of the numbers of a call; None if it has no template, or one of its own."""
        numbers: list[object] = []
        operands = self.operands[self.starts[i] : self.starts[i + 1]].tolist()
        key = self._key(call, operands, [slot for slot in self.results[i].tolist() if slot >= 0], numbers)
        if key is None:
            return None
        values = self._number_keys.setdefault(tuple(numbers), len(self._number_keys))
        signature = self._keys.get(key)
        if signature is None:
            found = self._template(call, used)
            if found is None:
                return None
            signature = self._keys[key] = len(self.templates)
            self.templates.append(found)
            self._templates[signature, values] = found
        elif (signature, values) not in self._templates:
            other = self.templates[signature]
            found = _with_numbers(call, other) or self._template(call, used)
            if found is None or other is None or not _differ_in_numbers_only(found, other):
                return None
            self._templates[signature, values] = found
        return signature, values

    def _template(self, call: TracedCall, used: list[Var]) -> Template | None:
        reads = []
        for var in used:
            array, slot = var.array, self.slot(var)
            read = BufferView(0, _NOWHERE, 0, array.shape, array.strides, array.dtype)
            if self.origin[slot] == CONSTANT:
                read.array = self.variables[slot].array
            reads.append(read)
        found = self._lowerer.template_of(call, reads)
        return None if found is None else found[0]

    def template(self, call: int) -> Template:
        """Return the kernel calls of a call, with its numbers."""
        found = self._templates[int(self.signature[call]), int(self.numbers[call])]
        assert found is not None
        return found

    def _key(self, call: TracedCall, operands: list[int], results: list[int], numbers: list[object]) -> Any:
        """Return the key of a call's signature, and append its numbers; None if no other call can share it."""
        if is_elementwise(call) and not call.kwargs and {*map(type, call.args)} <= _ELEMENTS:
            numbers += [number_key(x) for x in call.args if type(x) is not Var]
            kinds_of_args = [type(x) for x in call.args]
            return call.function, *kinds_of_args, *self.layout[operands + results].tolist()
        function_key = self._lowerer.function_key(call)
        if function_key is None:
            return None
        kinds = (float, complex, int) if is_elementwise(call) and not call.kwargs else (float, complex)
        part = functools.partial(self._key_part, iter(operands), self._lowerer.reads_content(call), kinds, numbers)
        try:
            key = function_key, call.method, part(call.args), part(call.kwargs), *self.layout[results].tolist()
            hash(key)
        except (TypeError, StopIteration):  # an argument that has no hash
            return None
        return key

    def _key_part(
        self, slots: Iterator[int], by_content: bool, kinds: tuple[type, ...], numbers: list[object], x: Any
    ) -> Any:
        """Return an argument as a part of a key. Take the slots of its Vars from ``slots``, and append its numbers.

        A nested function that calls itself would be in a reference cycle, which keeps the whole trace alive.

        Args:
            by_content: whether constants are part of the key.
            kinds: the types of numbers that are not.
        """
        kind = type(x)
        if kind is Var:
            slot = next(slots)
            constant = by_content and self.origin[slot] == CONSTANT
            return ("slot", self.root[slot]) if constant else self.layout[slot]
        part = functools.partial(self._key_part, slots, by_content, kinds, numbers)
        if kind is tuple or kind is list:
            return (kind, *[part(item) for item in x])
        if kind in kinds or isinstance(x, np.generic):
            numbers.append(number_key(x))
            return (kind, x.dtype) if isinstance(x, np.generic) else kind
        if kind is dict:
            return (kind, *[(name, part(item)) for name, item in x.items()])
        if kind is slice:
            return (kind, part(x.start), part(x.stop), part(x.step))
        return (kind, x)

    def _were_separate(self, used: list[Var]) -> bool:
        """Return whether operands that were separate arrays became one when equal calls were merged."""
        slots = [self.slot(var) for var in used]
        return any(
            self.root[slots[i]] == self.root[slots[k]]
            and used[i] is not used[k]
            and not share_memory(used[i].array, used[k].array)
            for i in range(len(used))
            for k in range(i)
        )


def _offsets_of_views(call: TracedCall, given: NumpyArray) -> list[int] | None:
    """Return the bytes from the operand to each result of a call that returns views; None for other calls."""
    found = views_of(call, given)
    if found is None:
        return None
    return [data_address(array) - data_address(given) if array.size else 0 for array in found[1]]


def _ragged(starts: NumpyArray, values: NumpyArray, rows: NumpyArray) -> NumpyArray:
    """Return ``values[starts[i]:starts[i + 1]]`` of each row ``i``, in order, one after another."""
    if len(rows) == len(starts) - 1:
        return values
    begins, counts = starts[rows], starts[rows + 1] - starts[rows]
    ends = np.cumsum(counts)
    return values[np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - ends + counts, counts)]


def _groups(keys: NumpyArray) -> list[NumpyArray]:
    """Return the indices of each distinct key, in order."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    ends = [*(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(keys)]
    return [order[begin:end] for begin, end in zip([0, *ends], ends, strict=False) if begin < end]


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    array = np.lib.stride_tricks.as_strided(np.empty(0, dtype), shape, strides, writeable=False)
    return bool(array.flags.c_contiguous or array.flags.f_contiguous)


def _with_numbers(call: TracedCall, template: Template | None) -> Template | None:
    """Return the template of an elementwise call that differs in its floats from another one; None for other calls."""
    floats = [x for x in call.args if type(x) is not Var]
    if (
        template is None
        or type(call.function) is not np.ufunc
        or call.function.signature is not None
        or call.method != "__call__"
        or call.kwargs
        or len(floats) != len(template.numbers)
        or not all(
            [type(x) is float and number.dtype.kind in "fc" for x, number in zip(floats, template.numbers, strict=True)]
        )
    ):
        return None
    other = Template()
    other.loops, other.temporaries = template.loops, template.temporaries
    other.numbers = [np.asarray(x, number.dtype) for x, number in zip(floats, template.numbers, strict=True)]
    return other


def _differ_in_numbers_only(x: Template, y: Template) -> bool:
    """Return whether two templates differ only in their numbers."""
    if len(x.loops) != len(y.loops) or x.temporaries != y.temporaries:
        return False
    if [(n.dtype, n.shape) for n in x.numbers] != [(n.dtype, n.shape) for n in y.numbers]:
        return False
    return all(
        a is b
        or (a.code_parts == b.code_parts and a.args == b.args and a.itemsizes == b.itemsizes and a.outputs == b.outputs)
        for a, b in zip(x.loops, y.loops, strict=True)
    )
