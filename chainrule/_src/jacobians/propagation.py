"""Propagate the terms of Jacobians through operations, by the structure of the local Jacobian (see ``rules.structure``).

``Accumulation`` calls ``Propagation.through`` for each step of a trace.

=============  =======================================================================================================
structure      effect on a term
=============  =======================================================================================================
diagonal       vals are multiplied by the partial derivative
selection      the primitive is applied to cols and vals (mostly views); if some elements are constants, it is applied to
               the positions of the operand's elements, which gives the destination of each element
scatter        the primitive's transpose, applied to the positions of the result's elements, gives for each element of
               the operand the element that it is added to
sum, mean      the summed axes become slots
"ik,kj->ij"    the summed subscript becomes slots, whose vals are those of the other operand
axis, "ab:ij"  the axes that the operation mixes become slots, whose vals are those of the local Jacobian: the JVP along
               unit tangents in these axes
windows, scan, the summed products become entries, whose vals are those of the other operand or of the local Jacobian
entries
=============  =======================================================================================================

If a term's columns are constant along the mixed axes, its vals are ordinary tangents: the JVP of the primitive propagates
them in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, Params, Shape
from chainrule._src.interpreters.jac import JacStep
from chainrule._src.jacobians.compaction import group_by_source, merge_to_all_columns
from chainrule._src.jacobians.gather_scatter import (
    Entries,
    Selection,
    constant_operand,
    destination_positions,
    flat_positions,
    move_rows,
    scatter_term,
    source_positions,
)
from chainrule._src.jacobians.mixing import (
    broadcast_along,
    drop_constant_axes,
    is_constant_along,
    mixed_axes,
    move_axes_last,
    multiply_by_blocks,
    sum_over_axes,
)
from chainrule._src.jacobians.tangents import (
    batched_jvp,
    batched_vjp,
    partial_of,
    pull_ones,
    real_if,
    scale_term,
    tangents_of,
)
from chainrule._src.jacobians.terms import IndexArray, Term, Unstructured, flatten_array, merge_terms
from chainrule._src.jacobians.windows import convolution_entries, entry_positions
from chainrule._src.rules.structure import structure_of

ndarray = np.ndarray


class Propagation:
    """Propagates terms through the steps of one trace.

    Args:
        limit: most entries that one step may make.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._cols: dict[Any, tuple[Any, IndexArray]] = {}
        self._shared_cols: dict[Any, IndexArray] = {}

    def through(self, step: JacStep, operands: Sequence[list[Term]]) -> list[list[Term]]:
        """Return the terms of each output of a step, from those of its operands."""
        prim = step.prim
        if prim.kind == "elementwise":
            found: list[Term] = []
            for i, terms in enumerate(operands):
                if terms:
                    self._scale(step, i, terms, found)
            return [merge_terms(found)]
        if prim.moves:
            return [self._moved(step, operands[0])]
        if prim.variadic and prim.structure == "selection":
            return [merge_terms(self._side_by_side(step, operands))]
        outs: list[list[Term]] = [[] for _ in step.outs]
        for i, terms in enumerate(operands):
            if terms:
                move = _move(step, i)
                for out, more in zip(outs, move(self, step, i, terms), strict=True):
                    out += more
        return [merge_terms(out) for out in outs]

    def check_count(self, step: JacStep, entries: int) -> None:
        """Raise Unstructured if a step would make more entries than the limit."""
        if entries > self.limit:
            raise Unstructured(f"{step.prim.name} makes {entries:,} entries")

    # -- diagonal --------------------------------------------------------------------------------------------------------

    def _scale(self, step: JacStep, i: int, terms: list[Term], found: list[Term]) -> None:
        """Multiply values by the partial derivative of an elementwise operation with respect to operand i."""
        factor = partial_of(step, i)
        if factor is None:
            return
        out = step.outs[0]
        shape = shape_of(out)
        have = shape_of(step.operands[i])
        if have != shape:
            terms = [self._stretched(term, have, shape) for term in terms]
        if type(factor) is int and factor == 1 and out.dtype.kind != "c":
            found += terms
            return
        for term in terms:
            if term.slots > 1:
                self.check_count(step, term.slots * math.prod(shape_of(term.cols)[1:]))
            found.append(scale_term(term, factor, shape, out))

    def _stretched(self, term: Term, have: Shape, shape: Shape) -> Term:
        """Broadcast a term of an operand to a shape."""
        if term.rows is not None:
            return Selection(np.broadcast_to(flat_positions(have), shape), have).of(term)
        slots = term.slots
        front = (1,) * (len(shape) - len(have))
        cols = self._once(
            term.cols, shape, lambda: np.broadcast_to(term.cols.reshape(slots, *front, *have), (slots, *shape))
        )
        vals = term.vals
        if (known := shape_of(vals)) and front:
            vals = np.reshape(vals, (known[0], *front, *known[1:]))
        return Term(term.source, cols, vals)

    # -- selections ------------------------------------------------------------------------------------------------------

    def _moved(self, step: JacStep, terms: list[Term]) -> list[Term]:
        """Apply a primitive that only moves elements to cols and vals."""
        prim = step.prim
        if prim.name in ("alias", "clone"):
            return terms
        gather = None
        found = []
        for term in terms:
            if term.rows is None:
                cols = self._moved_cols(step, term.cols)
                found.append(Term(term.source, cols, _moved_vals(step, term, cols)))
                continue
            if gather is None:
                have = shape_of(step.operands[0])
                gather = Selection(np.asarray(prim.value(flat_positions(have), **step.params)), have)
            found.append(gather.of(term))
        return found

    def _moved_cols(self, step: JacStep, cols: IndexArray) -> IndexArray:
        """Move cols; cache the result, so that equal moves of the same cols return one array and terms can be merged."""
        key = _hashable(step.params)
        if key is None:
            return _batched(step, cols)
        return self._once(cols, (step.prim.name, key), lambda: _batched(step, cols))

    def _once(self, cols: IndexArray, key: object, make: Callable[[], IndexArray]) -> IndexArray:
        """Cache an array made from cols, so that equal arrays of the same origin are one object."""
        known = self._cols.get((id(cols), key))
        if known is None:
            made = self._one_of_equal(make())
            self._cols[id(cols), key] = known = (cols, made)  # keep cols alive, so that its id stays valid
        return known[1]

    def _one_of_equal(self, cols: IndexArray) -> IndexArray:
        """Return the first array of columns with the same memory, shape and strides."""
        return self._shared_cols.setdefault((cols.__array_interface__["data"][0], cols.shape, cols.strides), cols)

    def _selected(self, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
        """Propagate terms through a selection with other operands or constants: apply the primitive to positions."""
        gather = Selection(source_positions(step, i), shape_of(step.operands[i]))
        return [[gather.of(term) for term in terms]]

    def _side_by_side(self, step: JacStep, operands: Sequence[list[Term]]) -> list[Term]:
        """Propagate terms through a concatenation or stack: every element of each operand has one destination."""
        sizes = [math.prod(shape_of(x)) for x in step.operands]
        ends = np.cumsum(sizes)
        parts = [
            np.arange(end - size, end).reshape(shape_of(x))
            for x, size, end in zip(step.operands, sizes, ends.tolist(), strict=True)
        ]
        src = np.asarray(step.prim.value(*parts, **step.params)).reshape(-1)
        to = np.empty(src.size, np.intp)
        to[src] = np.arange(src.size)
        found: list[Term] = []
        for terms, size, end in zip(operands, sizes, ends.tolist(), strict=True):
            rows = to[end - size : end]
            found += [move_rows(term, rows) for term in terms]
        return found

    def _diagonal(self, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
        """Propagate terms through an operation that is not elementwise but has a diagonal Jacobian for this operand."""
        if step.prim.kind == "linear":
            return [terms]
        factor = batched_jvp(step, i, np.ones((1, *shape_of(step.operands[i])), dtype_of(step.operands[i])))[0][0]
        return [[scale_term(t, factor, shape_of(factor), step.outs[0]) for t in terms]]

    def _scattered(self, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
        """Propagate terms through a scatter: every element of the operand is added to one element of the result."""
        to = destination_positions(step, i)
        if step.prim.kind != "linear":
            factor = pull_ones(step, i)
            terms = [scale_term(t, factor, to.shape, step.outs[0]) for t in terms]
        return [[scatter_term(t, to) for t in terms]]

    def _put(self, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
        """Propagate terms through a write (or an addition) at an index."""
        if not step.params.get("accumulate"):
            return self._selected(step, i, terms)
        if i == 0:
            return [terms]
        shape = shape_of(step.outs[0])
        target = flat_positions(shape)[step.params["index"]]
        have = shape_of(step.operands[1])
        spread = [self._stretched(t, have, target.shape) if have != target.shape else t for t in terms]
        return [[scatter_term(t, target) for t in spread]]

    # -- sums ------------------------------------------------------------------------------------------------------------

    def _summed(self, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
        """Propagate terms through a sum or mean: the summed axes become slots."""
        x, params = step.operands[0], step.params
        shape = shape_of(x)
        axes = tuple(sorted([a % len(shape) for a in params["axis"]]))
        count = math.prod([shape[a] for a in axes])
        results = []
        for term in terms:
            if term.rows is None:
                moved = sum_over_axes(term, axes, bool(params["keepdims"]))
            else:
                kept = flat_positions(tuple([1 if a in axes else n for a, n in enumerate(shape)]))
                moved = scatter_term(term, np.broadcast_to(kept, shape))
            if step.prim.name == "mean":
                moved.vals = moved.vals / count if count else moved.vals * np.nan
            results.append(moved)
        return [results]

    # -- windows ---------------------------------------------------------------------------------------------------------

    def _windowed(self, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
        """Propagate terms through a convolution: sums of products of elements in a window."""
        met = entry_positions(step, i)
        return self._by_entries(step, i, terms, met.size, lambda: convolution_entries(step, i, met))

    def _scanned(self, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
        """Propagate terms through a cumulative sum or product: an element depends on those up to its own index."""
        shape = shape_of(step.operands[i])
        (axis,) = mixed_axes(step, i)[0]
        count = math.prod(shape) * (shape[axis] + 1) // 2
        return self._by_entries(step, i, terms, count, lambda: self._scan_entries(step, i, axis), 4)

    def _scan_entries(self, step: JacStep, i: int, axis: int) -> Entries:
        shape = shape_of(step.operands[i])
        n, size = shape[axis], math.prod(shape)
        later, earlier = np.tril_indices(n)
        positions = np.moveaxis(flat_positions(shape), axis, -1)
        at = positions[..., earlier]
        factors: Any = 1
        if step.prim.kind != "linear":
            most = max(1, self.limit // (size * n))  # a rule may make an array of n numbers for each element
            units = np.moveaxis(np.eye(n, dtype=step.outs[0].dtype).reshape(n, n, *(1,) * (len(shape) - 1)), 1, axis)
            rows = [
                batched_vjp(step, i, np.broadcast_to(units[k : k + most], (len(units[k : k + most]), *shape)))
                for k in range(0, n, most)
            ]
            factors = flatten_array(np.concatenate(rows))[(later * size + at).reshape(-1)][None]
        return Entries(shape, at.reshape(-1), positions[..., later].reshape(-1), factors)

    def _through_entries(self, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
        """Propagate terms through a product of a sparse matrix and columns: an entry multiplies an element of each column."""
        data, x = step.operands
        rows, columns = step.params["pattern"].coordinates(step.params["transposed"])
        width = math.prod(shape_of(x)[1:])
        each = np.arange(width)
        to, at = ((numbers[:, None].astype(np.intp) * width + each).reshape(-1) for numbers in (rows, columns))

        def entries() -> Entries:
            entry = np.repeat(np.arange(len(rows)), width)
            if i == 0:
                return Entries(shape_of(data), entry, to, np.reshape(x, (-1,))[at][None])
            return Entries(shape_of(x), at, to, np.reshape(data, (-1,))[entry][None])

        return self._by_entries(step, i, terms, to.size, entries)

    def _picked(self, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
        """Propagate terms through nll_loss: a weighted element of each row, selected by its class."""
        x, index, coef = step.operands
        positions = flat_positions(shape_of(x))
        at = np.take_along_axis(positions, constant_operand(index)[..., None], -1)[..., 0]
        to = flat_positions(shape_of(step.outs[0]))
        to = np.broadcast_to(to[..., None] if step.params["reduce"] else to, at.shape)
        factors = np.reshape(np.broadcast_to(coef, at.shape), (1, -1))
        entries = Entries(shape_of(x), at.reshape(-1), to.reshape(-1), factors)
        return self._by_entries(step, i, terms, at.size, lambda: entries)

    def _by_entries(
        self,
        step: JacStep,
        i: int,
        terms: list[Term],
        count: int,
        entries_of: Callable[[], Entries],
        most_met: float = math.inf,
    ) -> list[list[Term]]:
        """Propagate terms through a sparse local Jacobian; propagate dense terms as tangents.

        Args:
            count: number of entries of the local Jacobian.
            entries_of: returns the entries.
            most_met: most products per position of the result, on average; above it, the terms are made dense.
        """
        axes, _ = mixed_axes(step, i)
        shape, out_shape = shape_of(step.operands[i]), shape_of(step.outs[0])
        as_tangents: list[Term] = []
        others: list[Term] = []
        for source, group in group_by_source(terms).items():
            uniform = [t for t in group if t.rows is None and is_constant_along(t.cols, axes)]
            varying = [t for t in group if t not in uniform]
            made = sum([t.cols.size for t in varying]) * count // max(math.prod(shape), 1)
            most = source.size * math.prod(out_shape)
            if made > min(self.limit, most_met * most) and most <= self.limit:
                uniform, varying = [merge_to_all_columns(group, source, shape)], []
            elif varying:
                self.check_count(step, made)
            as_tangents += uniform
            others += varying
        results = self._mixed(step, i, as_tangents) if as_tangents else [[]]
        if others:
            entries = entries_of()
            results[0] += [entries.of(term) for term in others]
        return results

    # -- operations that mix elements ------------------------------------------------------------------------------------

    def _contracted(self, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
        """Propagate terms through a contraction of two operands, with an optional bias as the third."""
        if i > 1:
            have, shape = shape_of(step.operands[i]), shape_of(step.outs[0])
            return [[self._stretched(t, have, shape) for t in terms]]
        letters, out = structure_of(step.prim, i, step.params).split("->")
        mine, other = letters.split(",")[:2] if i == 0 else letters.split(",")[1::-1]
        x, y = step.operands[i], step.operands[1 - i]
        n, m = len(shape_of(x)), len(shape_of(y))
        ins = tuple([k - len(mine) for k, c in enumerate(mine) if c not in out])
        outs = tuple([k - len(out) for k, c in enumerate(out) if c not in mine])
        rest = [c for c in mine if c in out]
        lead = max(n - len(mine), m - len(other))

        def local() -> list[AnyArray]:
            """Return the other operand, with axes (summed, *leading, *kept ones of this operand, *its own kept ones)."""
            order = [c for c in other if c not in out] + [c for c in other if c in out]
            axes = [other.index(c) - len(other) for c in order]
            summed = len(order) - len(outs)
            given = m - len(other)
            moved = np.moveaxis(y, [a + m for a in axes[:summed]], range(summed)) if summed else y
            own = shape_of(moved)
            moved = np.reshape(
                moved,
                (
                    *own[:summed],
                    *(1,) * (lead - given),
                    *own[summed : summed + given],
                    *(1,) * len(rest),
                    *own[summed + given :],
                ),
            )
            return [moved]

        return self._along(step, i, terms, ins, [outs], local)

    def _mixed(self, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
        """Propagate terms through an operation that mixes elements along some axes, and is batched along all others."""
        ins, outs = mixed_axes(step, i)

        def local() -> list[Any]:
            return self._local(step, i, ins, outs)

        return self._along(step, i, terms, ins, outs, local)

    def _along(
        self,
        step: JacStep,
        i: int,
        terms: list[Term],
        ins: tuple[int, ...],
        outs: list[tuple[int, ...]],
        local: Callable[[], list[Any]],
    ) -> list[list[Term]]:
        """Propagate terms through an operation that mixes axes ``ins`` of operand i into axes ``outs`` of each output."""
        results: list[list[Term]] = [[] for _ in step.outs]
        blocks: list[Any] | None = None
        for term in terms:
            if term.rows is not None:
                raise Unstructured(f"{step.prim.name} mixes elements, but only some of them have an entry")
            if is_constant_along(term.cols, ins):
                found = batched_jvp(step, i, tangents_of(term, step.operands[i]))
                for result, vals, out, axes in zip(results, found, step.outs, outs, strict=True):
                    if vals is not None:
                        cols = broadcast_along(drop_constant_axes(term.cols, ins), shape_of(out), axes)
                        result.append(Term(term.source, self._one_of_equal(cols), vals))
                continue
            if blocks is None:
                blocks = local()
            self._check(step, i, term, ins, outs)
            for result, block, out, axes in zip(results, blocks, step.outs, outs, strict=True):
                if block is not None:
                    moved = multiply_by_blocks(term, ins, block, shape_of(out), axes)
                    moved.cols = self._one_of_equal(moved.cols)
                    result.append(moved)
        return results

    def _check(self, step: JacStep, i: int, term: Term, ins: tuple[int, ...], outs: list[tuple[int, ...]]) -> None:
        shape = shape_of(step.operands[i])
        k = math.prod([shape[a] for a in ins])
        entries = k * term.slots * max([math.prod(shape_of(out)) for out in step.outs])
        if entries > self.limit:
            raise Unstructured(
                f"{step.prim.name} mixes {k:,} elements with each other, which makes {entries:,} entries"
            )

    def _local(self, step: JacStep, i: int, ins: tuple[int, ...], outs: list[tuple[int, ...]]) -> list[Any]:
        """Return the local Jacobian along the mixed axes: for each output (in, *rest, *out).

        For a reduction it is one VJP; otherwise, the JVPs of unit tangents.
        """
        x = step.operands[i]
        shape = shape_of(x)
        lengths = [shape[a] for a in ins]
        k = math.prod(lengths)
        if _reduces(step, x, k):
            partials = np.moveaxis(pull_ones(step, i), ins, range(len(ins)))
            return [np.reshape(partials, (*shape_of(partials), *(1,) * len(outs[0])))]
        if k * math.prod(shape) > self.limit or k * max([math.prod(shape_of(out)) for out in step.outs]) > self.limit:
            raise Unstructured(f"{step.prim.name} mixes {k:,} elements with each other")
        unit = np.eye(k, dtype=dtype_of(x)).reshape(k, *lengths, *(1,) * (len(shape) - len(ins)))
        unit = np.moveaxis(unit, range(1, 1 + len(ins)), [a + 1 + len(shape) for a in ins])
        tangents = np.broadcast_to(unit, (k, *shape))
        found = batched_jvp(step, i, tangents)
        if dtype_of(x).kind == "c":
            turned = batched_jvp(step, i, tangents * 1j)
            pairs = [None if a is None else (a, b) for a, b in zip(found, turned, strict=True)]
            return [
                None if p is None else tuple([move_axes_last(v, axes) for v in p])
                for p, axes in zip(pairs, outs, strict=True)
            ]
        return [None if vals is None else move_axes_last(vals, axes) for vals, axes in zip(found, outs, strict=True)]


def _reduces(step: JacStep, x: object, k: int) -> bool:
    """Return whether the single output has one element for each group of k mixed elements."""
    out = step.outs[0]
    if len(step.outs) > 1 or "c" in (dtype_of(x).kind, dtype_of(out).kind):
        return False
    return math.prod(shape_of(out)) * k == math.prod(shape_of(x))


_BY_STRUCTURE: dict[str, Callable[..., list[list[Term]]]] = {
    "diagonal": Propagation._diagonal,
    "selection": Propagation._selected,
    "scatter": Propagation._scattered,
    "scan": Propagation._scanned,
    "windows": Propagation._windowed,
    "entries": Propagation._through_entries,
    "sum": Propagation._summed,
    "mean": Propagation._summed,
}


def _move(step: JacStep, i: int) -> Callable[..., list[list[Term]]]:
    """Return the method that propagates the terms of operand i."""
    move = _BY_NAME.get(step.prim.name)
    if move is None:
        structure = structure_of(step.prim, i, step.params)
        move = Propagation._contracted if "->" in structure else _BY_STRUCTURE.get(structure, Propagation._mixed)
    return move


def _cast(propagation: Propagation, step: JacStep, i: int, terms: list[Term]) -> list[list[Term]]:
    """Propagate terms through a cast."""
    return [[Term(t.source, t.cols, real_if(t.vals, step.outs[0]), t.rows) for t in terms]]


_BY_NAME: dict[str, Callable[..., list[list[Term]]]] = {
    "cast": _cast,
    "index_put": Propagation._put,
    "nll_loss": Propagation._picked,
}


# -- cols and vals through views -----------------------------------------------------------------------------


def _hashable(params: Params) -> tuple[int, ...] | None:
    """Return a hashable key of parameters; None if they contain arrays or other unhashable values."""
    found: list[Any] = []
    for value in params.values():
        if type(value) is tuple:
            for x in value:
                kind = type(x)
                if kind is slice:
                    found.append((x.start, x.stop, x.step))
                elif kind in _HASHABLE or x is None or x is Ellipsis:
                    found.append(x)
                else:
                    return None
            found.append(len(value))
        elif value is None or type(value) in _HASHABLE:
            found.append(value)
        else:
            return None
    key = tuple(found)
    try:
        hash(key)
    except TypeError:
        return None
    return key


_HASHABLE = (int, float, str, bool, tuple)


def _batched(step: JacStep, array: object) -> Any:
    """Apply the primitive to an array with a leading axis of slots."""
    prim = step.prim
    return prim.batch(prim, (array,), (True,), shape_of(array)[0], step.params)


def _moved_vals(step: JacStep, term: Term, cols: IndexArray) -> Any:
    """Move vals like the cols that became ``cols``; axes along which vals are constant keep length 1."""
    vals = term.vals
    known = shape_of(vals)
    if not known or max(known) == 1:
        return vals if not known else np.reshape(vals, (1,) * cols.ndim)
    full = tuple(term.cols.shape)
    if known == full:
        return _batched(step, vals)
    small = np.broadcast_to(np.empty(known, bool), full)
    moved = _batched(step, small)
    still = tuple([slice(0, 1) if stride == 0 else slice(None) for stride in moved.strides])
    return _batched(step, np.broadcast_to(vals, full))[still]
