"""How an operation moves the terms of its operands' Jacobians, by what the row says its local Jacobian looks like.

=============  =======================================================================================================
structure      what happens to a term
=============  =======================================================================================================
diagonal       vals are multiplied by the partial derivative
selection      the row itself is applied to cols and vals (mostly views); or, where some elements are constants, the row
               applied to the positions of the operand's elements says where each one goes
scatter        the row's transpose, applied to the positions of the result's elements, says where each one of the
               operand's is added
sum, mean      the axes that are summed become slots
"ik,kj->ij"    the subscript that is summed becomes slots, whose vals are the other operand's
axis, "ab:ij"  the axes that the operation mixes become slots, whose vals are the local Jacobian's: the row's JVP along
               unit tangents in these axes
windows, scan  the products that are summed become entries, whose vals are the other operand's; or those of the local
               Jacobian
=============  =======================================================================================================

Where a term's columns don't vary along the axes that are mixed, its vals are tangents like any others: the row's JVP moves
them, in one batch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.core.levels import open_level
from chainrule.core.protocol import ArrayLike
from chainrule.core.tensor import Tensor
from chainrule.interpreters.batched import Batched
from chainrule.interpreters.jac import Step
from chainrule.jacobians.terms import Index, Term, flat
from chainrule.jacobians.windows import meeting
from chainrule.rows.primitive import TABLE, Primitive, unsupported
from chainrule.rows.rules import conjugate, environment, read
from chainrule.rows.structure import letters_of, structure_of
from chainrule.transform.forward import exit_level
from chainrule.types.shapes import dtype_of, shape_of

ndarray = np.ndarray
Terms = list[Term]
Shape = tuple[int, ...]


class Unstructured(Exception):
    """Terms cannot be carried through an operation; the message says which, and why."""


class Moves:
    """Moves terms through the steps of one trace.

    Args:
        limit: the number of entries that one step may make.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._cols: dict[Any, tuple[Any, Index]] = {}
        self._places: dict[Any, Index] = {}

    def through(self, step: Step, operands: Sequence[Terms]) -> list[Terms]:
        """The terms of each output of a step, from those of its operands."""
        prim = step.prim
        if prim.kind == "elementwise":
            found: Terms = []
            for i, terms in enumerate(operands):
                if terms:
                    self._scale(step, i, terms, found)
            return [merged(found)]
        if prim.moves:
            return [self._moved(step, operands[0])]
        if prim.variadic and prim.structure == "selection":
            return [merged(self._side_by_side(step, operands))]
        outs: list[Terms] = [[] for _ in step.outs]
        for i, terms in enumerate(operands):
            if terms:
                move = _move(step, i)
                for out, more in zip(outs, move(self, step, i, terms), strict=True):
                    out += more
        return [merged(out) for out in outs]

    def check_count(self, step: Step, entries: int) -> None:
        """Raise where a step would make more entries than there may be.

        Raises:
            Unstructured: it would.
        """
        if entries > self.limit:
            raise Unstructured(f"{step.prim.name} makes {entries:,} entries")

    # -- diagonal --------------------------------------------------------------------------------------------------------

    def _scale(self, step: Step, i: int, terms: Terms, found: Terms) -> None:
        """Elementwise: every value times the partial with respect to operand i, after broadcasting."""
        factor = _partial(step, i)
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
            found.append(scaled(term, factor, shape, out))

    def _stretched(self, term: Term, have: Shape, shape: Shape) -> Term:
        """A term of an operand that is broadcast to a shape."""
        if term.rows is not None:
            return Gather(np.broadcast_to(positions(have), shape), have).of(term)
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

    def _moved(self, step: Step, terms: Terms) -> Terms:
        """A row whose value only moves elements, applied to cols and vals."""
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
                gather = Gather(np.asarray(prim.value(positions(have), **step.params)), have)
            found.append(gather.of(term))
        return found

    def _moved_cols(self, step: Step, cols: Index) -> Index:
        """cols after a move; equal moves of the same cols give the same array, so that their terms can be merged."""
        key = _hashable(step.params)
        if key is None:
            return _batched(step, cols)
        return self._once(cols, (step.prim.name, key), lambda: _batched(step, cols))

    def _once(self, cols: Index, key: Any, make: Callable[[], Index]) -> Index:
        """What is made of cols, made once: cols that are equal because they came about alike are one object."""
        known = self._cols.get((id(cols), key))
        if known is None:
            made = self._one_of_equal(make())
            self._cols[id(cols), key] = known = (cols, made)  # which keeps cols, and its id
        return known[1]

    def _one_of_equal(self, cols: Index) -> Index:
        """The first of all arrays of columns that show the same memory in the same way."""
        return self._places.setdefault((cols.__array_interface__["data"][0], cols.shape, cols.strides), cols)

    def _selected(self, step: Step, i: int, terms: Terms) -> list[Terms]:
        """Elements of the operand among others and constants: the row, applied to positions, says where each one goes."""
        gather = Gather(sources(step, i), shape_of(step.operands[i]))
        return [[gather.of(term) for term in terms]]

    def _side_by_side(self, step: Step, operands: Sequence[Terms]) -> Terms:
        """Operands that are put next to each other, all of them: every element goes to one place."""
        sizes = [math.prod(shape_of(x)) for x in step.operands]
        ends = np.cumsum(sizes)
        parts = [
            np.arange(end - size, end).reshape(shape_of(x))
            for x, size, end in zip(step.operands, sizes, ends.tolist(), strict=True)
        ]
        src = np.asarray(step.prim.value(*parts, **step.params)).reshape(-1)
        to = np.empty(src.size, np.intp)
        to[src] = np.arange(src.size)
        found: Terms = []
        for terms, size, end in zip(operands, sizes, ends.tolist(), strict=True):
            rows = to[end - size : end]
            found += [_at(term, rows) for term in terms]
        return found

    def _diagonal(self, step: Step, i: int, terms: Terms) -> list[Terms]:
        """What is no elementwise row, and yet has a diagonal Jacobian with respect to this operand."""
        if step.prim.kind == "linear":
            return [terms]
        factor = push(step, i, np.ones((1, *shape_of(step.operands[i])), dtype_of(step.operands[i])))[0][0]
        return [[scaled(t, factor, shape_of(factor), step.outs[0]) for t in terms]]

    def _scattered(self, step: Step, i: int, terms: Terms) -> list[Terms]:
        """Every element of the operand is added to one of the result."""
        to = destinations(step, i)
        if step.prim.kind != "linear":
            factor = pull(step, i)
            terms = [scaled(t, factor, to.shape, step.outs[0]) for t in terms]
        return [[scattered(t, to) for t in terms]]

    def _put(self, step: Step, i: int, terms: Terms) -> list[Terms]:
        """Values that are written into an array at an index, or added to what is there."""
        if not step.params.get("accumulate"):
            return self._selected(step, i, terms)
        if i == 0:
            return [terms]
        shape = shape_of(step.outs[0])
        target = positions(shape)[step.params["index"]]
        have = shape_of(step.operands[1])
        spread = [self._stretched(t, have, target.shape) if have != target.shape else t for t in terms]
        return [[scattered(t, target) for t in spread]]

    # -- sums ------------------------------------------------------------------------------------------------------------

    def _summed(self, step: Step, i: int, terms: Terms) -> list[Terms]:
        """The axes that are summed become slots."""
        x, params = step.operands[0], step.params
        shape = shape_of(x)
        axes = tuple(sorted([a % len(shape) for a in params["axis"]]))
        count = math.prod([shape[a] for a in axes])
        results = []
        for term in terms:
            if term.rows is None:
                moved = added_up(term, axes, bool(params["keepdims"]))
            else:
                kept = positions(tuple([1 if a in axes else n for a, n in enumerate(shape)]))
                moved = scattered(term, np.broadcast_to(kept, shape))
            if step.prim.name == "mean":
                moved.vals = moved.vals / count if count else moved.vals * np.nan
            results.append(moved)
        return [results]

    # -- windows ---------------------------------------------------------------------------------------------------------

    def _windowed(self, step: Step, i: int, terms: Terms) -> list[Terms]:
        """A convolution: sums of products of elements that meet in a window."""
        return self._by_entries(step, i, terms, lambda: meeting_entries(step, i, self.limit))

    def _scanned(self, step: Step, i: int, terms: Terms) -> list[Terms]:
        """A running sum or product: an element comes from those before it."""
        return self._by_entries(step, i, terms, lambda: self._scan_entries(step, i))

    def _scan_entries(self, step: Step, i: int) -> Entries:
        shape = shape_of(step.operands[i])
        ins, outs = mixing(step, i)
        n = shape[ins[0]]
        self.check_count(step, math.prod(shape) * (n + 1) // 2)
        later, earlier = np.tril_indices(n)
        places = np.moveaxis(positions(shape), ins[0], -1)
        factors: Any = 1
        if step.prim.kind != "linear":
            (block,) = self._local(step, i, ins, outs)
            each = np.arange(math.prod(shape) // n)[:, None]  # of the slices
            which = ((earlier * len(each) + each) * n + later).reshape(-1)
            picked = [flat(part)[which][None] for part in (block if isinstance(block, tuple) else (block,))]
            factors = tuple(picked) if len(picked) > 1 else picked[0]
        return Entries(shape, places[..., earlier].reshape(-1), places[..., later].reshape(-1), factors)

    def _picked(self, step: Step, i: int, terms: Terms) -> list[Terms]:
        """A weighted element of each row, which its class picks."""
        x, index, coef = step.operands
        places = positions(shape_of(x))
        at = np.take_along_axis(places, plain(index)[..., None], -1)[..., 0]
        to = positions(shape_of(step.outs[0]))
        to = np.broadcast_to(to[..., None] if step.params["reduce"] else to, at.shape)
        factors = np.reshape(np.broadcast_to(coef, at.shape), (1, -1))
        return self._by_entries(step, i, terms, lambda: Entries(shape_of(x), at.reshape(-1), to.reshape(-1), factors))

    def _by_entries(self, step: Step, i: int, terms: Terms, entries_of: Callable[[], Entries]) -> list[Terms]:
        """Terms through a local Jacobian whose entries are known; those of a dense Jacobian as tangents."""
        axes, _ = mixing(step, i)
        uniform = [t for t in terms if t.rows is None and unvarying(t.cols, axes)]
        results = self._mixed(step, i, uniform) if uniform else [[]]
        if len(uniform) < len(terms):
            entries = entries_of()
            for term in terms:
                if term not in uniform:
                    self.check_count(step, term.slots * len(entries.at))
                    results[0].append(entries.of(term))
        return results

    # -- everything that mixes elements ----------------------------------------------------------------------------------

    def _contracted(self, step: Step, i: int, terms: Terms) -> list[Terms]:
        """A product of two operands that is summed over a subscript; further operands are added to it."""
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

        def local() -> list[Any]:
            """The other operand, as (summed, *leading axes, *kept ones of this operand, *its own kept ones)."""
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

    def _mixed(self, step: Step, i: int, terms: Terms) -> list[Terms]:
        """An operation that mixes the elements along some axes, and does the same along all others."""
        ins, outs = mixing(step, i)

        def local() -> list[Any]:
            return self._local(step, i, ins, outs)

        return self._along(step, i, terms, ins, outs, local)

    def _along(
        self,
        step: Step,
        i: int,
        terms: Terms,
        ins: tuple[int, ...],
        outs: list[tuple[int, ...]],
        local: Callable[[], list[Any]],
    ) -> list[Terms]:
        """Terms through an operation that mixes axes ``ins`` of operand i, giving axes ``outs`` of each output."""
        results: list[Terms] = [[] for _ in step.outs]
        blocks: list[Any] | None = None
        for term in terms:
            if term.rows is not None:
                raise Unstructured(f"{step.prim.name} mixes elements of which only some have an entry")
            if unvarying(term.cols, ins):
                found = push(step, i, _tangents(term, step.operands[i]))
                for result, vals, out, axes in zip(results, found, step.outs, outs, strict=True):
                    if vals is not None:
                        cols = _spread(_first_along(term.cols, ins), shape_of(out), axes)
                        result.append(Term(term.source, self._one_of_equal(cols), vals))
                continue
            if blocks is None:
                blocks = local()
            self._check(step, i, term, ins, outs)
            for result, block, out, axes in zip(results, blocks, step.outs, outs, strict=True):
                if block is not None:
                    moved = _through_blocks(term, ins, block, shape_of(out), axes)
                    moved.cols = self._one_of_equal(moved.cols)
                    result.append(moved)
        return results

    def _check(self, step: Step, i: int, term: Term, ins: tuple[int, ...], outs: list[tuple[int, ...]]) -> None:
        shape = shape_of(step.operands[i])
        k = math.prod([shape[a] for a in ins])
        entries = k * term.slots * max([math.prod(shape_of(out)) for out in step.outs])
        if entries > self.limit:
            raise Unstructured(
                f"{step.prim.name} mixes {k:,} elements with each other, which makes {entries:,} entries"
            )

    def _local(self, step: Step, i: int, ins: tuple[int, ...], outs: list[tuple[int, ...]]) -> list[Any]:
        """The local Jacobian along the axes that are mixed: for each output (in, *rest, *out).

        Of a reduction one VJP tells it; else the JVPs of unit tangents do.
        """
        x = step.operands[i]
        shape = shape_of(x)
        lengths = [shape[a] for a in ins]
        k = math.prod(lengths)
        if _reduces(step, x, k):
            partials = np.moveaxis(pull(step, i), ins, range(len(ins)))
            return [np.reshape(partials, (*shape_of(partials), *(1,) * len(outs[0])))]
        if k * math.prod(shape) > self.limit or k * max([math.prod(shape_of(out)) for out in step.outs]) > self.limit:
            raise Unstructured(f"{step.prim.name} mixes {k:,} elements with each other")
        unit = np.eye(k, dtype=dtype_of(x)).reshape(k, *lengths, *(1,) * (len(shape) - len(ins)))
        unit = np.moveaxis(unit, range(1, 1 + len(ins)), [a + 1 + len(shape) for a in ins])
        tangents = np.broadcast_to(unit, (k, *shape))
        found = push(step, i, tangents)
        if dtype_of(x).kind == "c":
            turned = push(step, i, tangents * 1j)
            pairs = [None if a is None else (a, b) for a, b in zip(found, turned, strict=True)]
            return [
                None if p is None else tuple([_last(v, axes) for v in p]) for p, axes in zip(pairs, outs, strict=True)
            ]
        return [None if vals is None else _last(vals, axes) for vals, axes in zip(found, outs, strict=True)]


def _reduces(step: Step, x: Any, k: int) -> bool:
    """Whether each of k elements that are mixed goes to one and the same element of the one output."""
    out = step.outs[0]
    if len(step.outs) > 1 or "c" in (dtype_of(x).kind, dtype_of(out).kind):
        return False
    return math.prod(shape_of(out)) * k == math.prod(shape_of(x))


_BY_STRUCTURE: dict[str, Callable[..., list[Terms]]] = {
    "diagonal": Moves._diagonal,
    "selection": Moves._selected,
    "scatter": Moves._scattered,
    "scan": Moves._scanned,
    "windows": Moves._windowed,
    "sum": Moves._summed,
    "mean": Moves._summed,
}


def _move(step: Step, i: int) -> Callable[..., list[Terms]]:
    """What moves the terms of operand i."""
    move = _BY_NAME.get(step.prim.name)
    if move is None:
        structure = structure_of(step.prim, i, step.params)
        move = Moves._contracted if "->" in structure else _BY_STRUCTURE.get(structure, Moves._mixed)
    return move


def _cast(moves: Moves, step: Step, i: int, terms: Terms) -> list[Terms]:
    """Another dtype."""
    return [[Term(t.source, t.cols, _real_if(t.vals, step.outs[0]), t.rows) for t in terms]]


_BY_NAME: dict[str, Callable[..., list[Terms]]] = {"cast": _cast, "index_put": Moves._put, "nll_loss": Moves._picked}


# -- factors and tangents ------------------------------------------------------------------------------------------------


@functools.cache
def _rule_of(prim: Primitive, i: int) -> tuple[Any, str]:
    """The rule for an elementwise row's operand, and what is given to it: "" to a partial, "t" to a JVP, "g" to a VJP."""
    name = prim.operands[i]
    cells = prim.declared[2]  # type: ignore[index]
    for column, given in (("jvp", "t"), ("d", ""), ("vjp", "g")):
        if name in cells[column]:
            return cells[column][name], given
    return 0, ""


def _partial(step: Step, i: int) -> Any:
    """What an elementwise row multiplies a tangent of operand i by: a number or an array-like; None where that is 0.

    For a complex operand it is a pair: what it makes of 1, and of 1j.
    """
    prim = step.prim
    rule, given = _rule_of(prim, i)
    if isinstance(rule, unsupported):
        raise Unstructured(f"{prim.name} has no derivative with respect to {prim.operands[i]}: {rule.why}")
    turning = dtype_of(step.operands[i]).kind == "c"
    if not given:
        factor = rule
        if callable(rule):
            factor = read(prim, rule, environment(prim, _precise(step), step.outs[0], step.params))
        if isinstance(factor, (int, float)) and factor == 0:
            return None
        if hasattr(factor, "dtype") and factor.dtype.kind in "biu":  # whose sums are not those of numbers
            factor = factor.astype(_real_dtype(step.outs[0]))
        return (factor, factor * 1j) if turning else factor
    out = step.outs[0]
    env = environment(prim, _precise(step), out, step.params)

    def of(unit: Any) -> Any:
        dtype = dtype_of(step.operands[i]) if turning else _real_dtype(out)
        return read(prim, rule, {**env, given: np.full(shape_of(out), unit, dtype)})

    return (of(1), of(1j)) if turning else of(1)


def _precise(step: Step) -> list[Any]:
    """A step's operands; those that are less precise than its result, as precise: a partial is of these alone."""
    operands = step.operands
    out = step.outs[0].dtype
    for x in operands:
        if type(x) is ndarray and x.dtype is not out and x.dtype.kind in "fc":
            precision = np.finfo(out).dtype
            return [
                x.astype(np.result_type(x.dtype, precision)) if type(x) is ndarray and x.dtype.kind in "fc" else x
                for x in operands
            ]
    return operands


def _real_dtype(x: Any) -> np.dtype[Any]:
    return np.empty(0, dtype_of(x)).real.dtype


def scaled(term: Term, factor: Any, shape: Shape, out: Any) -> Term:
    """A term of an operand that has the output's shape, times a factor for each row."""
    vals = term.vals
    if type(factor) is tuple:
        one, turn = [_at_rows(f, shape, term) for f in factor]
        vals = np.real(vals) * one + np.imag(vals) * turn
    else:
        factor = _at_rows(factor, shape, term)
        vals = factor if type(vals) is int and vals == 1 else vals * factor
    return Term(term.source, term.cols, _real_if(vals, out), term.rows)


def _at_rows(factor: Any, shape: Shape, term: Term) -> Any:
    """A factor for each element of a value, as one for each row of a term."""
    have = shape_of(factor)
    if not have and not hasattr(factor, "dtype"):
        return factor
    if term.rows is None:
        return np.reshape(factor, (1,) * (1 + len(shape) - len(have)) + tuple(have))
    full = factor if have == shape else np.broadcast_to(factor, shape)
    return flat(full)[term.rows][None]


def _real_if(vals: Any, out: Any) -> Any:
    """The real part of what became of complex tangents, where the result is real."""
    if dtype_of(out).kind != "c" and (isinstance(vals, complex) or (hasattr(vals, "dtype") and vals.dtype.kind == "c")):
        return np.real(vals)
    return vals


def push(step: Step, i: int, tangents: Any) -> list[Any]:
    """The row's JVP of a batch of tangents of operand i, for each output with the batch in front; None for zeros."""
    size = shape_of(tangents)[0]
    with open_level("jacobian", Batched, size, "same", True) as level:
        given: list[Any] = [None] * len(step.operands)
        given[i] = Batched(tangents, level)
        found = step.prim.jvp(step.operands, given, step.out(), step.params)  # type: ignore[misc]
        several = isinstance(found, tuple)
        parts = found if several else (found,) * len(step.outs) if found is None else (found,)
        return [None if t is None else _real_if(exit_level(t, level), o) for t, o in zip(parts, step.outs, strict=True)]


def pull(step: Step, i: int) -> Any:
    """What each element of operand i is multiplied by before it goes to one element of the output."""
    prim, name = step.prim, step.prim.operands[i]
    env = environment(prim, step.operands, step.out(), step.params)
    env["g"] = np.ones(shape_of(step.outs[0]), step.outs[0].dtype)
    if prim.shared is not None:
        env[prim.shared[0]] = read(prim, prim.shared[1], env)
    return conjugate(read(prim, prim.vjps[name], env))  # type: ignore[arg-type]


def _tangents(term: Term, x: Any) -> Any:
    """The vals of a term, as tangents of the operand."""
    vals = term.vals
    return np.broadcast_to(vals if hasattr(vals, "dtype") else np.asarray(vals, dtype_of(x)), term.cols.shape)


# -- cols and vals through views and gathers -----------------------------------------------------------------------------


def _hashable(params: dict[str, Any]) -> Any:
    """What tells parameters apart; None where that takes a look into arrays."""
    found: list[Any] = []
    for value in params.values():
        if type(value) is tuple:
            items = [(x.start, x.stop, x.step) if type(x) is slice else x for x in value]
            if not all([x is None or x is Ellipsis or type(x) in _HASHABLE for x in items]):
                return None
            found.append(tuple(items))
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


def _batched(step: Step, array: Any) -> Any:
    """The row applied to what has an axis of slots in front."""
    prim = step.prim
    return prim.batch(prim, (array,), (True,), shape_of(array)[0], step.params)  # type: ignore[misc]


def _moved_vals(step: Step, term: Term, cols: Index) -> Any:
    """vals after a move that took the term's cols to ``cols``; along axes in which they did not vary they still don't."""
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


def positions(shape: Shape) -> Index:
    return np.arange(math.prod(shape)).reshape(shape)


def plain(x: Any) -> Any:
    """The numbers of a constant operand, which is needed to know where elements go."""
    data = x._raw if isinstance(x, Tensor) else x
    if isinstance(data, ArrayLike):
        data = data.read()
        if data is None:
            raise Unstructured("an index has a value for each example")
    return data


def sources(step: Step, i: int) -> Index:
    """For every element of the output the position in operand i that it is an element of; −1 for none."""
    prim = step.prim
    given: list[Any] = []
    for k, x in enumerate(step.operands):
        name = prim.operands[min(k, len(prim.operands) - 1)]
        if k == i:
            given.append(positions(shape_of(x)) + 1)
        elif prim.variadic or name in prim.vjps:
            given.append(np.zeros(shape_of(x), np.intp))
        else:
            given.append(plain(x))
    params = {name: 0 if name == "value" else value for name, value in step.params.items()}
    src: Index = np.asarray(prim.value(*given, **params), np.intp) - 1
    return src


def destinations(step: Step, i: int) -> Index:
    """For every element of operand i the position in the output where it goes; −1 for nowhere."""
    row = TABLE[_GOES_LIKE.get(step.prim.name, step.prim.name)]
    given = [x if k == i else plain(x) for k, x in enumerate(step.operands)]
    env = environment(row, given, None, {name: step.params[name] for name in row.parameters})
    back = read(row, row.vjps[row.operands[i]], {**env, "g": positions(shape_of(step.outs[0])) + 1})  # type: ignore[arg-type]
    to: Index = np.asarray(back, np.intp) - 1
    return to


#: Rows whose elements go where those of another row go, though they are not added there.
_GOES_LIKE = {"scatter_prod": "scatter_add", "scatter_best": "scatter_add"}


class Gather:
    """Where the elements of a value come from.

    Attributes:
        src: for each the position in another value; −1 for a constant.
        have: the shape of the other value.
        kept: the positions of those that are no constants; None if all are.
        at: where those come from.
    """

    __slots__ = ("_joins", "at", "have", "kept", "src")

    def __init__(self, src: Index, have: Shape) -> None:
        self.src = src
        self.have = have
        at = src.reshape(-1)
        self.kept = None if not at.size or at.min() >= 0 else np.flatnonzero(at >= 0)
        self.at = at if self.kept is None else at[self.kept]
        self._joins: dict[int, tuple[Index, Index]] = {}

    def of(self, term: Term) -> Term:
        """The term of the value whose elements are taken from that of this term."""
        src, at, slots = self.src, self.at, term.slots
        if term.rows is None:
            flat_cols = term.cols.reshape(slots, -1)
            if self.kept is None:
                cols = flat_cols.take(at, 1).reshape(slots, *src.shape)
                return Term(term.source, cols, _taken(term, at, src.shape))
            return Term(term.source, flat_cols.take(at, 1), _taken(term, at, at.shape), self.kept)
        join = self._joins.get(id(term.rows))
        if join is None:
            join = self._joins[id(term.rows)] = _joined(term.rows, src.reshape(-1), math.prod(self.have))
        rows, picks = join
        vals = term.vals[:, picks] if shape_of(term.vals)[1:] not in ((), (1,)) else term.vals
        return Term(term.source, term.cols.take(picks, 1), vals, rows)


def _taken(term: Term, at: Index, shape: Shape) -> Any:
    """The vals of the rows at some positions, in a shape."""
    vals = term.vals
    known = shape_of(vals)
    if not known:
        return vals
    slots = known[0]
    if max(known[1:], default=1) == 1:
        return np.reshape(vals, (slots, *(1,) * len(shape)))
    full = np.reshape(np.broadcast_to(vals, (slots, *term.cols.shape[1:])), (slots, -1))
    return np.reshape(full[:, at], (slots, *shape))


def _joined(rows: Index, at: Index, size: int) -> tuple[Index, Index]:
    """For all pairs of a wanted position and an entry in that row: the number of the former, and of the latter."""
    counts = np.bincount(rows, minlength=size)
    if not counts.size or counts.max() <= 1:
        entry = np.full(size + 1, -1)  # whose last one is that of no row
        entry[rows] = np.arange(rows.size)
        picks = entry[at]
        wanted = np.flatnonzero(picks >= 0)
        return wanted, picks[wanted]
    order = np.argsort(rows, kind="stable")
    starts = np.cumsum(counts) - counts
    wanted = np.flatnonzero(at >= 0)
    each = counts[at[wanted]]
    first = np.repeat(starts[at[wanted]] - (np.cumsum(each) - each), each)
    return np.repeat(wanted, each), order[first + np.arange(first.size)]


def scattered(term: Term, dst: Index) -> Term:
    """The term of a value that the elements of another are added into, at positions ``dst``."""
    to = dst.reshape(-1)
    if to.size and to.min() < 0:
        kept = np.flatnonzero(to >= 0)
        return scattered(Gather(kept, dst.shape).of(term), to[kept])
    return _at(term, to)


def _at(term: Term, to: Index) -> Term:
    """A term whose rows go to other places."""
    if term.rows is not None:
        return Term(term.source, term.cols, term.vals, to[term.rows])
    slots = term.slots
    vals = term.vals
    if known := shape_of(vals):
        if max(known[1:], default=1) > 1:
            vals = np.broadcast_to(vals, (known[0], *term.cols.shape[1:]))
        vals = np.reshape(vals, (known[0], -1))
    return Term(term.source, term.cols.reshape(slots, -1), vals, to)


class Entries:
    """The entries of a local Jacobian.

    Attributes:
        have: the shape of the operand.
        at, to: for each entry the position in the operand, and in the result.
        factors: its value, (1, entries), or a number; for complex operands it can be a pair: what is made of 1, and of 1j.
    """

    def __init__(self, have: Shape, at: Index, to: Index, factors: Any) -> None:
        self.have = have
        self.at = at
        self.to = to
        self.factors = factors

    def of(self, term: Term) -> Term:
        """The term of the result, from one of the operand."""
        if term.rows is None:
            cols = term.cols.reshape(term.slots, -1).take(self.at, 1)
            return Term(term.source, cols, self._times(_taken(term, self.at, self.at.shape)), self.to)
        which, picks = _joined(term.rows, self.at, math.prod(self.have))
        vals = term.vals[:, picks] if shape_of(term.vals)[1:] not in ((), (1,)) else term.vals
        return Term(term.source, term.cols.take(picks, 1), self._times(vals, which), self.to[which])

    def _times(self, vals: Any, which: Any = slice(None)) -> Any:
        """Values times the factors (of some of the entries)."""
        if isinstance(self.factors, tuple):
            one, turn = self.factors
            return np.real(vals) * one[:, which] + np.imag(vals) * turn[:, which]
        if isinstance(self.factors, int) and self.factors == 1:
            return vals
        return vals * self.factors[:, which]


def meeting_entries(step: Step, i: int, limit: int) -> Entries:
    """The entries of a convolution's local Jacobian."""
    met = meeting(step, i)
    shape = np.broadcast_shapes(*[part.shape for part in met])
    if math.prod(shape) > limit:
        raise Unstructured(f"{step.prim.name} has {math.prod(shape):,} products of elements")
    inside = np.flatnonzero(np.broadcast_to((met.operand >= 0) & (met.result >= 0) & (met.factor >= 0), shape))
    at, to, factor = (np.broadcast_to(part, shape).reshape(-1)[inside] for part in met)
    return Entries(shape_of(step.operands[i]), at, to, np.reshape(step.operands[1 - i], (-1,))[factor][None])


def added_up(term: Term, axes: tuple[int, ...], keep: bool) -> Term:
    """A term of a sum over axes: where columns don't vary along an axis, values are added up; other axes become slots."""
    alike = tuple([a for a in axes if unvarying(term.cols, (a + 1,))])
    if not alike:
        return bundled(term, axes, keep)
    vals = term.vals
    known = shape_of(vals)
    count = math.prod([term.cols.shape[a + 1] for a in alike if not known or known[a + 1] == 1])
    if known:
        vals = np.add.reduce(vals, axis=tuple([a + 1 for a in alike]), keepdims=True)
    if count != 1:
        vals = vals * count
    index = tuple([slice(None), *[slice(0, 1) if a in alike else slice(None) for a in range(term.cols.ndim - 1)]])
    return bundled(Term(term.source, term.cols[index], vals), axes, keep)


def bundled(term: Term, axes: tuple[int, ...], keep: bool) -> Term:
    """A term with some axes of its rows made slots."""

    def moved(array: Any) -> Any:
        shape = shape_of(array)
        front = np.moveaxis(array, [a + 1 for a in axes], range(len(axes)))
        rest = tuple([1 if a in axes else n for a, n in enumerate(shape[1:]) if keep or a not in axes])
        return np.reshape(front, (math.prod([shape[a + 1] for a in axes]) * shape[0], *rest))

    vals = term.vals
    known = shape_of(vals)
    if known:
        fixed = all(known[a + 1] == 1 for a in axes) and known[0] == 1
        if not fixed:
            full = tuple([term.cols.shape[k] if k == 0 or k - 1 in axes else n for k, n in enumerate(known)])
            vals = np.broadcast_to(vals, full)
        vals = moved(vals)
    return Term(term.source, moved(term.cols), vals)


# -- blocks --------------------------------------------------------------------------------------------------------------


def mixing(step: Step, i: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The axes of operand i that a row mixes, and those of each output that they become; all others correspond, in order."""
    structure = structure_of(step.prim, i, step.params)
    n = len(shape_of(step.operands[i]))
    ranks = [len(shape_of(out)) for out in step.outs]
    letters = [letters_of(structure, i, step.params, n, m, k) for k, m in enumerate(ranks)]
    if None in letters:
        return tuple(range(-n, 0)), [tuple(range(-m, 0)) for m in ranks]
    pairs = [pair for pair in letters if pair is not None]
    ins = [tuple([k - len(mine) for k, c in enumerate(mine) if c not in out]) for mine, out in pairs]
    return ins[0], [tuple([k - len(out) for k, c in enumerate(out) if c not in mine]) for mine, out in pairs]


def unvarying(cols: Index, ins: tuple[int, ...]) -> bool:
    """Whether the columns of a term don't vary along axes of its rows."""
    return all(cols.strides[a] == 0 or cols.shape[a] == 1 for a in ins)


def _first_along(cols: Index, ins: tuple[int, ...]) -> Index:
    """cols without axes along which they don't vary."""
    index: list[Any] = [slice(None)] * cols.ndim
    for a in ins:
        index[a] = 0
    return cols[tuple(index)]


def _spread(cols: Index, shape: Shape, axes: tuple[int, ...]) -> Index:
    """cols of the axes that correspond, repeated along the axes that an operation made."""
    slots = cols.shape[0]
    n = len(shape)
    made = [a + n for a in axes]
    rest = [k for k in range(n) if k not in made]
    front = (1,) * (len(rest) - (cols.ndim - 1))
    laid = cols.reshape(slots, *front, *cols.shape[1:])
    laid = laid.reshape(slots, *[1 if k in made else laid.shape[1 + rest.index(k)] for k in range(n)])
    return np.broadcast_to(laid, (slots, *shape))


def _last(vals: Any, axes: tuple[int, ...]) -> Any:
    """(slots, *out) with some of the output's axes last."""
    n = len(shape_of(vals))
    return np.moveaxis(vals, [a + n for a in axes], range(n - len(axes), n)) if axes else vals


def _through_blocks(term: Term, ins: tuple[int, ...], block: Any, shape: Shape, axes: tuple[int, ...]) -> Term:
    """A term times local Jacobians (in, *rest, *out): the axes that were mixed become slots."""
    ndim = term.cols.ndim
    slots = term.slots
    k = math.prod([term.cols.shape[a] for a in ins])
    front = np.moveaxis(term.cols, [a + ndim for a in ins], range(len(ins)))
    rest_in = front.shape[len(ins) + 1 :]
    cols = _spread(front.reshape(k * slots, *rest_in), shape, axes)
    rest = len(shape) - len(axes)
    vals = term.vals
    if known := shape_of(vals):
        if any(known[a] != 1 for a in ins):
            vals = np.broadcast_to(
                vals, tuple([term.cols.shape[a] if a - ndim in ins else n for a, n in enumerate(known)])
            )
        vals = np.moveaxis(vals, [a + ndim for a in ins], range(len(ins)))
        have = shape_of(vals)
        vals = np.reshape(
            vals,
            (
                math.prod(have[: len(ins)]),
                have[len(ins)],
                *(1,) * (rest - len(rest_in)),
                *have[len(ins) + 1 :],
                *(1,) * len(axes),
            ),
        )
    pair = block if isinstance(block, tuple) else (block,)
    laid = [
        np.reshape(b, (k, 1, *shape_of(b)[len(shape_of(b)) - len(shape) :]))
        for b in (_flat_ins(b, len(shape)) for b in pair)
    ]
    if len(laid) == 2:
        product = np.real(vals) * laid[0] + np.imag(vals) * laid[1]
    else:
        product = laid[0] if isinstance(vals, (int, float)) and vals == 1 else vals * laid[0]
    made = shape_of(product)
    if slots > 1 and made[1] == 1:
        product = np.broadcast_to(product, (made[0], slots, *made[2:]))
        made = shape_of(product)
    product = np.reshape(product, (k * slots, *made[2:]))
    n = len(shape)
    product = np.moveaxis(product, range(1 + rest, 1 + n), [a + n + 1 for a in axes]) if axes else product
    return Term(term.source, cols, product)


def _flat_ins(block: Any, n: int) -> Any:
    """A block with the axes that were mixed as one."""
    shape = shape_of(block)
    return np.reshape(block, (math.prod(shape[: len(shape) - n]), *shape[len(shape) - n :]))


# -- merging -------------------------------------------------------------------------------------------------------------


def merged(terms: Terms) -> Terms:
    """Terms in the same rows and columns, as one."""
    if len(terms) == 1 or not terms:
        return terms
    kept: dict[Any, Term] = {}
    for term in terms:
        key = (id(term.cols), id(term.rows), id(term.source))
        other = kept.get(key)
        kept[key] = term if other is None else Term(term.source, term.cols, other.vals + term.vals, term.rows)
    return list(kept.values())
