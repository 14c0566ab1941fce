"""A program as integer arrays: one entry per call and one per array, so that passes need no Python object per call.

``plan`` makes ``TraceArrays`` from a simplified program. ``loop_detection`` and ``looped_lowering`` read them.

Each array of the program has a *slot*. The *root* of a view is the slot of the array that owns its memory. Calls of the
same function with operands of the same layouts share a *signature*. Python numbers among the arguments are kept apart
from it, so ``x * 0.1`` and ``x * 0.2`` have one signature.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.layout import ARENA, Buffer, BufferView, data_address
from chainrule._src.compiling.loops import Template
from chainrule._src.compiling.lowering import LoopLowerer
from chainrule._src.compiling.simplify import Simplified
from chainrule._src.compiling.steps import VIEWS, is_elementwise, share_memory, views_of
from chainrule._src.interpreters.trace_types import Program, TracedCall, Var

ndarray = np.ndarray
INPUT, CONSTANT, COMPUTED = range(3)
#: the number of elements up to which equal constants share a slot
MERGED_SIZE = 64
_NOWHERE = Buffer(ARENA, 0)


class TraceArrays:
    """The calls of a simplified program, without calls that only return views.

    Attributes:
        calls: the calls of the simplified program; index: for each of them its index in the trace, -1 for views.
        position: for each call of the trace its index in ``calls``.
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

    ``_entries`` maps the step of a template (see ``interpreters/templates``) and the layouts of its operands to
    ``(signature, numbers, layouts of the results)``, or to ``(views,)`` with offset and layout of each view.
    """

    def __init__(self, program: Program, simplified: Simplified, lowerer: LoopLowerer) -> None:
        self.calls = simplified.calls
        self.templates: list[Template | None] = []
        self.slots: dict[Var, int] = {}
        self.variables: list[Var] = []
        self._same, self._lowerer = simplified.same, lowerer
        self._layouts: dict[Any, int] = {}
        self._constants: dict[Any, int] = {}
        self._keys: dict[Any, int] = {}
        self._number_keys: dict[Any, int] = {}
        self._templates: dict[tuple[int, int], Template | None] = {}
        self._entries: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._root: list[int] = []
        self._offset: list[int] = []
        self._layout: list[int] = []
        self._origin: list[int] = []
        self._merged = bool(simplified.merged)
        for var in program.inputs:
            self._new(var, INPUT)
        self.index: list[int] = []
        self.position: list[int] = []
        self._signature: list[int] = []
        self._numbers: list[int] = []
        self._operands: list[int] = []
        self._results: list[tuple[int, ...]] = []
        self._counts = [0]
        if native.LOOPS is None:
            for position, (call, used) in enumerate(self.calls):
                self._append(position, call, used)
        else:
            lists = (
                self.slots, self._root, self._offset, self._layout, self._origin, self.variables, self.index, self.position,
                self._operands, self._counts, self._results, self._signature, self._numbers, self._keys, self._number_keys,
                self._templates, self._entries, self._same,
            )  # fmt: skip
            native.LOOPS.append_calls(lists, self.calls, self._layout_of, self._slot, self._append)
        self._as_arrays(self._counts)
        uses_after = [*program.outputs, *[value for _, value in program.writes]]
        after = np.array([self._slot(var) for var in uses_after], np.intp)
        self._as_arrays_of_slots()
        self.last[self.root[after]] = len(self.position)

    def _append(self, position: int, call: TracedCall, used: list[Var]) -> None:
        operands = [self.slots[v] if v in self.slots else self._slot(v) for v in used]
        if len(used) == 1 and call.function in VIEWS and self._add_views(call, used[0].array, operands[0]):
            self.index.append(-1)
            if call.step is not None:
                slots = [self.slots[var] for var in call.results]
                offset = self._offset[operands[0]]
                views = tuple([(self._offset[slot] - offset, self._layout[slot]) for slot in slots])
                self._entries[call.step, self._layout[operands[0]]] = (views,)
            return
        self.index.append(len(self.position))
        self.position.append(position)
        self._operands += operands
        self._counts.append(len(operands))
        results = [self._new(var, COMPUTED) for var in call.results]
        self._note(call, used, operands, results)
        self._results.append(tuple(results))
        signature = self._signature[-1]
        if call.step is not None and self.templates[signature] is not None and not self._lowerer.reads_content(call):
            layouts = tuple([self._layout[slot] for slot in results])
            key = call.step, *[self._layout[slot] for slot in operands]
            self._entries[key] = signature, self._numbers[-1], layouts

    def _as_arrays(self, counts: list[int]) -> None:
        width = max(map(len, self._results), default=1) or 1
        self.signature = np.array(self._signature, np.int32)
        self.numbers = np.array(self._numbers, np.int32)
        self.operands = np.array(self._operands, np.int32)
        self.starts = np.cumsum(counts)
        padded = [(*row, *[-1] * (width - len(row))) if len(row) < width else row for row in self._results]
        self.results = np.array(padded, np.int32).reshape(-1, width)

    def _as_arrays_of_slots(self) -> None:
        count = len(self._root)
        self.root = np.array(self._root, np.int32)
        self.offset = np.array(self._offset, np.int64)
        self.layout = np.array(self._layout, np.int32)
        self.origin = np.array(self._origin, np.int8)
        self.dense = np.array([_is_dense(*key) for key in self._layouts], bool)
        self.producer, self.column = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        for column in range(self.results.shape[1]):
            results = self.results[:, column]
            calls = np.flatnonzero(results >= 0)
            self.producer[results[calls]], self.column[results[calls]] = calls, column
        self.last = np.full(count, -1, np.int64)
        self.last[self.root[self.operands]] = np.repeat(np.arange(len(self.position)), np.diff(self.starts))

    # -- slots -------------------------------------------------------------------------------------------------------

    def _new(self, var: Var, origin: int) -> int:
        slot = self.slots[var] = len(self._root)
        self._root.append(slot)
        self._offset.append(0)
        self._layout.append(self._layout_of(var.array))
        self._origin.append(origin)
        self.variables.append(var)
        return slot

    def _layout_of(self, array: NumpyArray) -> int:
        return self._layouts.setdefault((array.shape, array.strides, array.dtype), len(self._layouts))

    def _slot(self, var: Var) -> int:
        """Return the slot of a Var; a Var that no call computes is a constant."""
        slot = self.slots.get(var)
        if slot is None:
            original = self._same.get(var, var)
            slot = self.slots.get(original)
            if slot is None:
                slot = self._constant_slot(original)
            self.slots[var] = slot
        return slot

    def _constant_slot(self, var: Var) -> int:
        """Return the slot of a constant. Equal small constants share a slot, which loops read in each iteration."""
        array = var.array
        if array.size > MERGED_SIZE or array.dtype.hasobject:
            return self._new(var, CONSTANT)
        key = array.tobytes(), array.shape, array.strides, array.dtype
        slot = self._constants.get(key)
        if slot is None:
            slot = self._constants[key] = self._new(var, CONSTANT)
        else:
            self._merged = True
        return slot

    def _add_views(self, call: TracedCall, given: NumpyArray, viewed: int) -> bool:
        found = views_of(call, given)
        if found is None:
            return False
        arrays = found[1]
        start = data_address(given)
        for var, array in zip(call.results, arrays, strict=True):
            slot = self._new(var, self._origin[viewed])
            self._root[slot] = self._root[viewed]
            self._offset[slot] = self._offset[viewed] + (data_address(array) - start if array.size else 0)
        return True

    # -- signatures --------------------------------------------------------------------------------------------------

    def _note(self, call: TracedCall, used: list[Var], operands: list[int], results: list[int]) -> None:
        numbers: list[object] = []
        key = self._key(call, operands, results, numbers) if len(used) > 0 else None
        if (
            key is not None
            and self._merged
            and len(used) > 1
            and not is_elementwise(call)
            and self._were_separate(used)
        ):
            key = None
        if key is None:
            self._signature.append(self._unknown())
            self._numbers.append(0)
            return
        values = self._number_keys.setdefault(tuple(numbers), len(self._number_keys))
        signature = self._keys.get(key)
        if signature is None:
            found = self._template(call, used)
            if found is None:
                signature = self._unknown()
            else:
                signature = self._keys[key] = len(self.templates)
                self.templates.append(found)
                self._templates[signature, values] = found
        elif (signature, values) not in self._templates:
            other = self.templates[signature]
            found = _with_numbers(call, other) or self._template(call, used)
            if found is None or other is None or not _differ_in_numbers_only(found, other):
                signature = self._unknown()
            else:
                self._templates[signature, values] = found
        self._signature.append(signature)
        self._numbers.append(values)

    def _unknown(self) -> int:
        """Return a signature that no other call has."""
        self.templates.append(None)
        return len(self.templates) - 1

    def _template(self, call: TracedCall, used: list[Var]) -> Template | None:
        reads = []
        for var in used:
            array, slot = var.array, self.slots[var]
            read = BufferView(0, _NOWHERE, 0, array.shape, array.strides, array.dtype)
            if self._origin[slot] == CONSTANT:
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
        """Return the key of a call's signature; None if no other call can share it."""
        function, layout = call.function, self._layout
        if type(function) is np.ufunc and call.method == "__call__" and not call.kwargs:
            at = 0
            parts: list[object] = [function, None]
            for x in call.args:
                kind = type(x)
                if kind is Var:
                    parts.append(layout[operands[at]])
                    at += 1
                elif kind is float or kind is int:
                    parts.append(kind)
                    numbers.append(x or repr(x))
                else:
                    break
            else:
                return (*parts, *[layout[slot] for slot in results])
            numbers.clear()
        return self._general_key(call, operands, results, numbers)

    def _general_key(self, call: TracedCall, operands: list[int], results: list[int], numbers: list[object]) -> Any:
        function_key = self._lowerer.function_key(call)
        if function_key is None:
            return None
        slots = iter(operands)
        by_content = self._lowerer.reads_content(call)
        part = functools.partial(self._key_part, slots, by_content, numbers)
        try:
            key = (
                function_key,
                call.method,
                part(call.args),
                part(call.kwargs),
                tuple([self._layout[s] for s in results]),
            )
            hash(key)
        except (TypeError, StopIteration):  # an argument that has no hash
            return None
        return key

    def _key_part(self, slots: Iterator[int], by_content: bool, numbers: list[object], x: Any) -> Any:
        """Return an argument as a part of a key. Take the slots of its Vars from ``slots``, and append its numbers.

        A nested function that calls itself would be in a reference cycle, which keeps the whole trace alive.
        """
        kind = type(x)
        if kind is Var:
            slot = next(slots)
            constant = by_content and self._origin[slot] == CONSTANT
            return ("slot", self._root[slot]) if constant else self._layout[slot]
        part = functools.partial(self._key_part, slots, by_content, numbers)
        if kind is tuple or kind is list:
            return (kind, *[part(item) for item in x])
        if kind is float or kind is complex or isinstance(x, np.generic):
            numbers.append(repr(x))
            return (kind, x.dtype) if isinstance(x, np.generic) else kind
        if kind is dict:
            return (kind, *[(name, part(item)) for name, item in x.items()])
        if kind is slice:
            return (kind, part(x.start), part(x.stop), part(x.step))
        return (kind, x)

    def _were_separate(self, used: list[Var]) -> bool:
        """Return whether operands that were separate arrays became one when equal calls were merged."""
        slots = [self.slots[var] for var in used]
        return any(
            self._root[slots[i]] == self._root[slots[k]]
            and used[i] is not used[k]
            and not share_memory(used[i].array, used[k].array)
            for i in range(len(used))
            for k in range(i)
        )


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
