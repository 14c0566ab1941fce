"""Estimate the cost of propagating terms through a program, from shapes only. ``strategy`` compares the estimates.

A sketch of a term has its number of slots and the axes along which its columns vary, which determine the work of each step. Its
key is the origin of its columns, so that terms that will be merged are counted once. The functions here mirror those that
propagate terms (``propagation``, ``accumulate``).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import Params, Shape
from chainrule._src.interpreters.jac import Jac, JacStep
from chainrule._src.jacobians.accumulate import MOST_SLOTS
from chainrule._src.jacobians.compaction import MOST_TERMS, MOST_WITH_ROWS, SMALL
from chainrule._src.jacobians.mixing import mixed_axes
from chainrule._src.rules.structure import structure_of

#: seconds per operation on one element, per NumPy call on terms, and per step of a batched derivative
OPERATION, CALL, RULE = 1e-9, 2e-6, 2.5e-5
#: operations per entry in a product of sparse matrices, and per multiplication in a product of dense matrices
MULTIPLIED, IN_PRODUCT = 3, 0.2
#: calls per step of a function that runs once more, on a tape
AGAIN = 10


class Cost(NamedTuple):
    """The estimated cost of a strategy.

    Attributes:
        operations: number of operations on single elements.
        overhead: seconds of function calls.
        entries: most numbers that a step makes, or that the result has.
        why_not: the reason why it cannot be used; "" if it can.
    """

    operations: float = 0.0
    overhead: float = 0.0
    entries: float = 0.0
    why_not: str = ""

    @property
    def seconds(self) -> float:
        return math.inf if self.why_not else self.operations * OPERATION + self.overhead


class TermSketch(NamedTuple):
    """The sketch of a term.

    Attributes:
        slots: number of entries in each row.
        varies: the axes of the value, counted from the end, along which columns vary.
        rows: number of rows with entries; None: all.
        plain: whether vals is one number.
    """

    slots: int
    varies: frozenset[int]
    rows: int | None = None
    plain: bool = True


#: the sketch of a value's Jacobian: its terms by the origin of their columns
Sketch = dict[Hashable, TermSketch]


class StepSketch(NamedTuple):
    """The line of a plan about a step."""

    step: JacStep
    terms: int
    entries: int
    cut: bool


def sketch_of_variable(key: Hashable, shape: Shape) -> Sketch:
    """Return the sketch of a variable."""
    return {key: TermSketch(1, frozenset([k - len(shape) for k, n in enumerate(shape) if n > 1]))}


def count_entries(parts: Sketch, size: int) -> int:
    return sum([part.slots * (size if part.rows is None else part.rows) for part in parts.values()])


# -- propagating sketches through a step -------------------------------------------------------------------------------


def add_sketches(several: Iterable[Sketch]) -> Sketch:
    """Add sketches; terms with the same columns are merged."""
    found: Sketch = {}
    for parts in several:
        for key, part in parts.items():
            known = found.get(key)
            found[key] = part if known is None else known._replace(plain=known.plain and part.plain)
    return found


def mix_axes(
    parts: Sketch, ins: Sequence[int], outs: Sequence[int], shape: Shape, out_shape: Shape, tag: Hashable, sums: bool
) -> Sketch:
    """Turn axes ``ins`` into slots, unless columns are constant along them; the result has axes ``outs`` instead.

    Args:
        sums: whether numbers are added along axes with constant columns.
    """
    n, m = len(shape), len(out_shape)
    count = math.prod([shape[a] for a in ins])
    before = [k for k in range(-1, -n - 1, -1) if k not in ins]
    after = [k for k in range(-1, -m - 1, -1) if k not in outs]
    axis_after = dict(zip(before, after, strict=False))
    found: Sketch = {}
    for key, part in parts.items():
        varies = frozenset([axis_after[a] for a in part.varies if a in axis_after])
        slots = part.slots
        if sums:
            slots *= math.prod([shape[a] for a in ins if a in part.varies])
        elif not part.varies.isdisjoint(ins):
            slots *= count
        found[key, tag, tuple(ins)] = TermSketch(slots, varies, None, part.plain and sums)
    return found


def move_elements(parts: Sketch, out_shape: Shape, tag: Hashable, rows: int | None) -> Sketch:
    """Move elements; with ``rows``, only that many rows of the result have entries."""
    every = frozenset([k - len(out_shape) for k, n in enumerate(out_shape) if n > 1])
    found: Sketch = {}
    for key, part in parts.items():
        kept = rows if part.rows is None else min(part.rows, math.prod(out_shape))
        found[key, tag] = part._replace(varies=every if part.varies else part.varies, rows=kept)
    return found


def scan_axis(parts: Sketch, axis: int, shape: Shape, tag: Hashable) -> Sketch:
    """Propagate through a cumulative operation along an axis: each pair of elements is an entry with an explicit row."""
    n, size = shape[axis], math.prod(shape)
    return {
        (key, tag): part._replace(
            varies=frozenset(), rows=(size if part.rows is None else part.rows) * (n + 1) // 2, plain=False
        )
        if axis in part.varies or part.rows is not None
        else part
        for key, part in parts.items()
    }


def multiply_sparse_entries(parts: Sketch, step: JacStep, size: int) -> Sketch:
    """Propagate through a product of a sparse matrix and columns: each product is an entry with an explicit row.

    ``size`` is the number of elements of the value that the terms belong to.
    """
    data, x = step.operands
    count = math.prod(shape_of(data)) * math.prod(shape_of(x)[1:])
    return {
        (key, step.seq): part._replace(
            varies=frozenset(), rows=(size if part.rows is None else part.rows) * count // max(size, 1), plain=False
        )
        for key, part in parts.items()
    }


def stretched_axes(shape: Shape, out_shape: Shape) -> tuple[int, ...]:
    """Return the axes of a result along which an operand is broadcast, counted from the end."""
    front = len(out_shape) - len(shape)
    return tuple(
        [k - len(out_shape) for k, n in enumerate(out_shape) if n > 1 and (k < front or shape[k - front] == 1)]
    )


def _tag(step: JacStep) -> Hashable:
    """Return a key that is equal for steps that move columns in the same way."""
    return step.prim.name, repr(step.params) if _is_short(step.params) else step.seq


def _is_short(params: Params) -> bool:
    values = [x for value in params.values() for x in (value if type(value) is tuple else (value,))]
    return all([x is None or x is Ellipsis or isinstance(x, (int, float, str, slice)) for x in values])


def _constant_partial(step: JacStep, i: int) -> bool:
    """Return whether an elementwise step multiplies by a constant number."""
    cells = step.prim.declared[2]["d"]
    return not callable(cells.get(step.prim.operands[i], callable))


class _Sketches:
    """A dry run: computes the sketches of all values, in the direction of the subclass, and the cost.

    Args:
        bound: number of columns.
        limit: most entries that a step may make.
    """

    def __init__(self, steps: Sequence[JacStep], bound: int, limit: int) -> None:
        self.steps = steps
        self.bound = bound
        self.limit = limit
        self.operations = self.calls = 0.0
        self.most = 0
        self.why_not = ""
        self.lines: list[StepSketch] = []
        self.slots_of: dict[Hashable, float] = {}  # for each intermediate variable: entries in a row
        self.sizes: dict[Hashable, int] = {}  # for each intermediate variable: elements

    @property
    def cost(self) -> Cost:
        return Cost(self.operations, self.calls * CALL, self.most, self.why_not)

    def _made(self, step: JacStep, parts: Sketch, size: int) -> None:
        """Add the cost of making a value's terms."""
        numbers = {key: part for key, part in parts.items() if not part.plain}
        self.operations += count_entries(numbers, size)
        self.calls += 2 + 4 * len(parts)
        entries = count_entries(parts, size)
        self.most = max(self.most, entries)
        if entries > self.limit and not self.why_not:
            self.why_not = (
                f"{step.prim.name} makes {entries:,} entries, more than the {self.limit:,} of the memory limit"
            )

    def _compacted(self, parts: Sketch, size: int) -> Sketch:
        """Merge the terms with respect to a variable if they have as many entries as the dense matrix."""
        if len(parts) < 2:
            return parts
        groups: dict[Hashable, Sketch] = {}
        for key, part in parts.items():
            groups.setdefault(_root(key), {})[key] = part
        found: Sketch = {}
        for root, group in groups.items():
            bound = self.sizes.get(root, self.bound)
            if len(group) > 1 and count_entries(group, size) >= bound * size:
                varies = frozenset[int]().union(*[part.varies for part in group.values()])
                found[root, "compacted", frozenset(group)] = TermSketch(bound, varies, None, False)
            else:
                found.update(group)
        return found

    def _cut(self, key: Hashable, parts: Sketch, shape: Shape, bound: int) -> Sketch:
        """Cut at a value: return the sketch of its identity."""
        self.slots_of[key] = self._total_slots(parts, math.prod(shape), bound)
        self.sizes[key] = math.prod(shape)
        return sketch_of_variable(key, shape)

    def _total_slots(self, parts: Sketch, size: int, bound: int) -> float:
        """Return the entries in a row with respect to the inputs; add the cost of products with intermediate Jacobians."""
        total = 0.0
        for key, part in parts.items():
            part_rows = size if part.rows is None else part.rows
            behind = self.slots_of.get(_root(key))
            if behind is not None:
                self.operations += MULTIPLIED * part.slots * part_rows * behind
                self.calls += 10
            total += part.slots * (behind or 1.0) * (part_rows / max(size, 1))
        return min(total, bound)


def _root(key: Hashable) -> Hashable:
    """Return the variable of columns with this key."""
    while type(key) is tuple and type(key[0]) is tuple:
        key = key[0]
    return key


class ForwardSketches(_Sketches):
    """Sketches for forward terms: from the inputs to each result.

    Attributes:
        nnz: entries of the results' Jacobians; entries at the same position count separately.
    """

    def __init__(self, steps: Sequence[JacStep], results: Sequence[object], bound: int, limit: int) -> None:
        super().__init__(steps, bound, limit)
        self.known: dict[Any, Sketch] = {}
        self.uses = _uses(steps, results)
        for step in steps:
            self._walk(step)
        self.nnz = 0.0
        for x in results:
            size = math.prod(shape_of(x))
            if type(x) is Jac:
                self.nnz += self._total_slots(self._parts(x.origin, x), size, bound) * size

    def _parts(self, origin: object, x: object) -> Sketch:
        if origin is None:
            return {}
        if type(origin) is tuple:
            return self.known[origin[0].seq, origin[1]]
        return sketch_of_variable(("input", id(origin)), shape_of(x))

    def _walk(self, step: JacStep) -> None:
        operands = [self._parts(o, x) for o, x in zip(step.origins, step.operands, strict=True)]
        for i, parts in enumerate(operands):
            if any([part.rows is not None for part in parts.values()]) and combines_elements(step, i):
                operands[i] = self._cut((step.seq, i), parts, shape_of(step.operands[i]), self.bound)
        for index, out in enumerate(step.outs):
            shape = shape_of(out)
            several = [self._through(step, i, x, shape, index) for i, x in enumerate(operands) if x]
            parts = self._compacted(add_sketches(several), math.prod(shape))
            self._made(step, parts, math.prod(shape))
            self.lines.append(StepSketch(step, len(parts), count_entries(parts, math.prod(shape)), False))
            if self.uses.get((step.seq, index), 0) > 1 and _many(parts, math.prod(shape)):
                self.lines[-1] = self.lines[-1]._replace(cut=True)
                parts = self._cut((step.seq, index), parts, shape, self.bound)
            self.known[step.seq, index] = parts

    def _through(self, step: JacStep, i: int, parts: Sketch, shape: Shape, index: int) -> Sketch:
        """Return the terms that operand i contributes to an output."""
        have = shape_of(step.operands[i])
        size = math.prod(shape)
        if step.prim.kind == "elementwise":
            plain = _constant_partial(step, i)
            self.operations += 0 if plain else size
            return {
                (key if have == shape else (key, "stretched", shape)): part._replace(
                    plain=part.plain and plain,
                    rows=None if part.rows is None else part.rows * size // max(math.prod(have), 1),
                )
                for key, part in parts.items()
            }
        structure = structure_of(step.prim, i, step.params)
        if step.prim.moves or structure in ("selection", "scatter"):
            whole = step.prim.moves or math.prod(have) >= size
            return move_elements(parts, shape, _tag(step), None if whole else math.prod(have))
        if structure == "scan":
            self.operations += size * (have[step.params["axis"]] + 1)
            return scan_axis(parts, step.params["axis"], have, step.seq)
        if structure == "entries":
            return multiply_sparse_entries(parts, step, math.prod(have))
        ins, outs = mixed_axes(step, i)
        self._count_mixing(step, parts, ins, have, size)
        sums = structure in ("sum", "mean")
        return mix_axes(parts, ins, outs[index], have, shape, _tag(step) if sums else step.seq, sums)

    def _count_mixing(self, step: JacStep, parts: Sketch, ins: Sequence[int], have: Shape, size: int) -> None:
        """Add the cost of a JVP for terms whose columns are constant along the mixed axes."""
        along = math.prod([have[a] for a in ins])
        for part in parts.values():
            if part.varies.isdisjoint(ins):
                self.operations += IN_PRODUCT * part.slots * size * along


class ReverseSketches(_Sketches):
    """Sketches for reverse terms: from the results to each input, in reverse order of the steps.

    Attributes:
        nnz: entries of the Jacobians with respect to the inputs; entries at the same position count separately.
    """

    def __init__(self, steps: Sequence[JacStep], results: Sequence[object], bound: int, limit: int) -> None:
        super().__init__(steps, bound, limit)
        self.arrived: dict[Any, list[Sketch]] = {}
        self.inputs: dict[int, tuple[Any, list[Sketch]]] = {}
        for k, x in enumerate(results):
            if type(x) is Jac:
                self._arrive(x.origin, sketch_of_variable(("output", k), shape_of(x)))
        for step in reversed(steps):
            self._walk(step)
        self.nnz = 0.0
        for variable, several in self.inputs.values():
            self.nnz += self._total_slots(add_sketches(several), variable.size, bound) * variable.size
        self.calls += AGAIN * len(steps)

    def _arrive(self, origin: object, parts: Sketch) -> None:
        if type(origin) is tuple:
            self.arrived.setdefault((origin[0].seq, origin[1]), []).append(parts)
        elif origin is not None:
            self.inputs.setdefault(id(origin), (origin, []))[1].append(parts)

    def _walk(self, step: JacStep) -> None:
        for index, out in enumerate(step.outs):
            several = self.arrived.pop((step.seq, index), [])
            size = math.prod(shape_of(out))
            parts = self._compacted(add_sketches(several), size)
            is_mixed = any([combines_elements(step, i) for i, origin in enumerate(step.origins) if origin is not None])
            scattered = any([part.rows is not None for part in parts.values()])
            uses = sum([origin is not None for origin in step.origins])
            cut = (scattered and is_mixed) or (uses > 1 and _many(parts, size))
            if cut:
                parts = self._cut((step.seq, index), parts, shape_of(out), self.bound)
            self.lines.append(StepSketch(step, len(parts), count_entries(parts, size), cut))
            for i, origin in enumerate(step.origins):
                if origin is not None and parts:
                    found = self._through(step, i, parts, shape_of(out), index)
                    self._made(step, found, math.prod(shape_of(step.operands[i])))
                    self._arrive(origin, found)

    def _through(self, step: JacStep, i: int, parts: Sketch, shape: Shape, index: int) -> Sketch:
        """Return the terms that an output's cotangent contributes to the cotangent of operand i."""
        have = shape_of(step.operands[i])
        size = math.prod(have)
        if step.prim.kind == "elementwise":
            plain = _constant_partial(step, i)
            self.operations += 0 if plain else math.prod(shape)
            scaled = {key: part._replace(plain=part.plain and plain) for key, part in parts.items()}
            axes = stretched_axes(have, shape)
            if not axes:
                return scaled
            kept = axes if len(have) == len(shape) else ()
            return mix_axes(scaled, axes, kept, shape, have, ("summed", axes), True)
        structure = structure_of(step.prim, i, step.params)
        if step.prim.moves or structure in ("selection", "scatter"):
            return move_elements(parts, have, _tag(step), None if math.prod(shape) >= size else math.prod(shape))
        if structure == "scan":
            self.operations += size * (have[step.params["axis"]] + 1)
            return scan_axis(parts, step.params["axis"], have, step.seq)
        if structure == "entries":
            return multiply_sparse_entries(parts, step, math.prod(shape))
        ins, outs = mixed_axes(step, i)
        along = math.prod([shape[a] for a in outs[index]])
        for part in parts.values():
            if part.varies.isdisjoint(outs[index]) and structure not in ("sum", "mean"):
                self.operations += IN_PRODUCT * part.slots * size * along
        tag = _tag(step) if structure in ("sum", "mean") else step.seq
        return mix_axes(parts, outs[index], ins, shape, have, tag, False)


def _uses(steps: Sequence[JacStep], results: Sequence[object]) -> dict[Any, int]:
    """Count the uses of each value."""
    uses: dict[Any, int] = {}
    origins = [origin for step in steps for origin in step.origins] + [x.origin for x in results if type(x) is Jac]
    for origin in origins:
        if type(origin) is tuple:
            key = (origin[0].seq, origin[1])
            uses[key] = uses.get(key, 0) + 1
    return uses


def _many(parts: Sketch, size: int) -> bool:
    """Return whether a value with these terms will be cut if several steps use it."""
    if len(parts) < 2 or count_entries(parts, size) <= SMALL:
        return False
    with_rows = sum([part.rows is not None for part in parts.values()])
    slots = sum([part.slots for part in parts.values()])
    return len(parts) > MOST_TERMS or with_rows > MOST_WITH_ROWS or slots > MOST_SLOTS


_KEEPS_ROWS = {"diagonal", "selection", "scatter", "sum", "mean", "scan", "windows", "entries", "zero"}


def combines_elements(step: JacStep, i: int) -> bool:
    """Return whether a step combines elements of operand i, so that its terms need a row for each."""
    return not step.prim.moves and structure_of(step.prim, i, step.params) not in _KEEPS_ROWS


# -- products with vectors ---------------------------------------------------------------------------------------------


def products_cost(steps: Sequence[JacStep], count: int, others: int, limit: int) -> Cost:
    """Estimate the cost of ``count`` batched VJPs or JVPs of ``others`` elements each."""
    sizes = [math.prod(shape_of(out)) for step in steps for out in step.outs]
    operations = float(count * sum(sizes) + count * others)
    for step in steps:
        for i, origin in enumerate(step.origins):
            if origin is not None and combines_elements(step, i):
                ins, _ = mixed_axes(step, i)
                along = math.prod([shape_of(step.operands[i])[a] for a in ins])
                operations += IN_PRODUCT * count * math.prod(shape_of(step.outs[0])) * along
    passes = max(1, math.ceil(count * max(sizes, default=1) * 4 / max(limit, 1)))
    return Cost(operations, (len(steps) + 5) * passes * RULE, float(count * others))
