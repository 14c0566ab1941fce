"""Multiply the factors of Jacobians with intermediate variables, by the chain rule.

If terms are with respect to a value that was cut (an intermediate variable, see ``accumulate``), the Jacobian is a product: the
Jacobian with respect to that value, times the value's Jacobian. ``resolve_to_inputs`` multiplies all factors in the order with
the lower estimated cost: newest first (reverse mode) or oldest first (forward mode).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.jacobians.assemble import CsrMatrix, EntryPattern, dtype_of_terms
from chainrule._src.jacobians.blocks import Blocks, blocks_of_terms
from chainrule._src.jacobians.matmul import multiply_unsorted, sort_rows
from chainrule._src.jacobians.terms import Term, Variable

# -- factors ----------------------------------------------------------------------------------------------------------


def sparse_of(terms: Sequence[Term], out_shape: tuple[int, ...], size: int) -> CsrMatrix:
    return EntryPattern.of(terms, out_shape, size).matrix(terms)


class Factor:
    """The Jacobian of one value with respect to one variable."""

    def __init__(self, terms: list[Term] | None, source: Variable, out_shape: tuple[int, ...]) -> None:
        self.source = source
        self.out_shape = out_shape
        self._terms = terms
        self._blocks: Blocks | None = None
        self._sparse: CsrMatrix | None = None  # its columns may be in any order

    @property
    def terms(self) -> list[Term]:
        if self._terms is None:
            assert self._sparse is not None
            self._terms = [sort_rows(self._sparse).term(self.source)]
        return self._terms

    @property
    def entries(self) -> int:
        """Number of entries; before summation, entries at the same position count separately."""
        return self._sparse.nnz if self._sparse is not None else sum([term.cols.size for term in self.terms])

    def blocks(self) -> Blocks | None:
        if self._blocks is None and self._sparse is None:
            self._blocks = blocks_of_terms(self.terms, self.out_shape, self.source.size, dtype_of_terms(self.terms))
        return self._blocks

    def sparse(self) -> CsrMatrix:
        """Return the CSR matrix; the columns of a row are in any order."""
        if self._sparse is None:
            self._sparse = sparse_of(self.terms, self.out_shape, self.source.size)
        return self._sparse

    @property
    def shape(self) -> tuple[int, int]:
        return math.prod(self.out_shape), self.source.size

    @property
    def density(self) -> float:
        """Upper bound of the density of the matrix."""
        m, n = self.shape
        return min(self.entries / max(m * n, 1), 1.0)

    @property
    def full(self) -> bool:
        """Whether it is stored as a dense matrix."""
        blocks = self.blocks()
        return blocks is not None and blocks.dense

    def dense(self) -> AnyArray:
        """Return the dense matrix."""
        blocks = self.blocks()
        return blocks.matrix() if blocks is not None and blocks.dense else self.sparse().dense()

    def mask(self) -> AnyArray:
        """Return the dense matrix that is 1 at entries, else 0."""
        if self.full:
            return np.ones(self.shape, np.float32)
        sparse = self.sparse()
        return sparse._replace(data=np.ones(sparse.nnz, np.float32)).dense()

    def times(self, other: Factor) -> Factor:
        """Return the product with the Jacobian of this factor's variable: the Jacobian with respect to other's variable."""
        mine, others = self.blocks(), other.blocks()
        blocks = mine.product(others) if mine is not None and others is not None else None
        if blocks is not None:
            return _of_blocks(blocks, other.source, self.out_shape)
        if min(self.density, other.density) > _DENSE:
            return self._times_dense(other)
        return _of_sparse(multiply_unsorted(self.sparse(), other.sparse()), other.source, self.out_shape)

    def _times_dense(self, other: Factor) -> Factor:
        """Return the product of dense matrices; its pattern is the product of the patterns."""
        whole = np.matmul(self.dense(), other.dense())
        met = self.mask() @ other.mask() > 0  # sums of ones are not rounded to zero
        if met.all():
            return _of_matrix(whole, other.source, self.out_shape)
        positions = np.flatnonzero(met)
        m, n = met.shape
        indptr = np.zeros(m + 1, np.intp)
        met.sum(1).cumsum(out=indptr[1:])
        sparse = CsrMatrix(indptr, positions % n, np.take(np.reshape(whole, (-1,)), positions), (m, n))
        return _of_sparse(sparse, other.source, self.out_shape)

    def plus(self, others: Sequence[Factor]) -> Factor:
        if not others:
            return self
        every = (self, *others)
        if any([factor.full for factor in every]):
            whole = self.dense()
            for factor in others:
                whole = whole + factor.dense()
            return _of_matrix(whole, self.source, self.out_shape)
        return Factor([term for factor in every for term in factor.terms], self.source, self.out_shape)


#: Matrices with a higher density are multiplied as dense matrices.
_DENSE = 0.2


def _of_blocks(blocks: Blocks, source: Variable, out_shape: tuple[int, ...]) -> Factor:
    factor = Factor([blocks.term(source, out_shape)], source, out_shape)
    factor._blocks = blocks
    return factor


def _of_sparse(sparse: CsrMatrix, source: Variable, out_shape: tuple[int, ...]) -> Factor:
    factor = Factor(None, source, out_shape)
    factor._sparse = sparse
    return factor


def _of_matrix(whole: AnyArray, source: Variable, out_shape: tuple[int, ...]) -> Factor:
    m, n = shape = tuple(whole.shape)
    return _of_blocks(
        Blocks(np.reshape(whole, (1, m, n)), np.arange(m)[None], np.arange(n)[None], shape), source, out_shape
    )


class Estimate:
    """A factor's shape and number of entries, assuming random positions. Products append their costs to ``costs``."""

    def __init__(self, entries: float, shape: tuple[int, int], costs: list[float]) -> None:
        self.entries = entries
        self.shape = shape
        self.costs = costs

    @classmethod
    def of(cls, factor: Factor, costs: list[float]) -> Estimate:
        return cls(factor.entries, factor.shape, costs)

    def times(self, other: Estimate) -> Estimate:
        cost = self.entries * other.entries / max(other.shape[0], 1)
        self.costs.append(cost)
        m, n = self.shape[0], other.shape[1]
        return Estimate(min(cost, m * n), (m, n), self.costs)

    def plus(self, others: Sequence[Estimate]) -> Estimate:
        most = self.shape[0] * self.shape[1]
        return Estimate(min(sum([x.entries for x in (self, *others)]), most), self.shape, self.costs)


# -- intermediate variables --------------------------------------------------------------------------------------------


def resolve_to_inputs(terms: Sequence[Term], out_shape: tuple[int, ...]) -> dict[Variable, list[Term]]:
    """Return the terms of a value with respect to inputs only, for each input.

    Args:
        terms: with respect to inputs and intermediate variables.
        out_shape: the value's shape.
    """
    direct = _by_source(terms)
    cuts = _oldest_first(direct)
    if not cuts:
        return direct
    outer = _factors(terms, out_shape)
    own = {cut: _factors(cut.terms or [], cut.shape) for cut in cuts}
    order = min((oldest_first, newest_first), key=lambda order: _cost(order, cuts, own, outer))
    return {source: factor.terms for source, factor in order(cuts, own, outer).items()}


def oldest_first(cuts: list[Variable], own: Any, outer: Any) -> Any:
    """Multiply in forward mode: compute the Jacobian of each intermediate variable with respect to the inputs.

    Args:
        cuts: the intermediate variables, in topological order.
        own: for each of them, its factors (or estimates) by variable.
        outer: the factors of the result.
    """
    known: dict[Variable, Any] = {}
    for cut in cuts:
        known[cut] = _through(own[cut], known)
    return _through(outer, known)


def _through(factors: dict[Variable, Any], known: Mapping[Variable, dict[Variable, object]]) -> dict[Variable, Any]:
    parts: dict[Variable, list[Any]] = {}
    for source, factor in factors.items():
        if source not in known:
            parts.setdefault(source, []).append(factor)
            continue
        for variable, inner in known[source].items():
            parts.setdefault(variable, []).append(factor.times(inner))
    return {variable: found[0].plus(found[1:]) for variable, found in parts.items()}


def newest_first(cuts: list[Variable], own: Any, outer: Any) -> Any:
    """Multiply in reverse mode: compute the result's Jacobian with respect to each intermediate variable.

    (Arguments: see ``oldest_first``.)
    """
    parts = {source: [factor] for source, factor in outer.items()}
    for cut in reversed(cuts):
        first, *more = parts.pop(cut)
        whole = first.plus(more)
        for source, inner in own[cut].items():
            parts.setdefault(source, []).append(whole.times(inner))
    return {variable: found[0].plus(found[1:]) for variable, found in parts.items()}


def _cost(order: Any, cuts: list[Variable], own: Any, outer: object) -> float:
    """Estimate the number of multiplications."""
    costs: list[float] = []
    estimates = [{v: Estimate.of(f, costs) for v, f in factors.items()} for factors in (*own.values(), outer)]
    order(cuts, dict(zip(own, estimates, strict=False)), estimates[-1])
    return sum(costs)


def _by_source(terms: Sequence[Term]) -> dict[Variable, list[Term]]:
    found: dict[Variable, list[Term]] = {}
    for term in terms:
        found.setdefault(term.source, []).append(term)
    return found


def _factors(terms: Sequence[Term], out_shape: tuple[int, ...]) -> dict[Variable, Factor]:
    return {source: Factor(own, source, out_shape) for source, own in _by_source(terms).items()}


def _oldest_first(sources: dict[Variable, list[Term]]) -> list[Variable]:
    """Return all intermediate variables that the sources depend on, in topological order."""
    order: dict[Variable, None] = {}
    todo = [(source, False) for source in sources]
    while todo:
        cut, behind = todo.pop()
        if cut.terms is None or cut in order:
            continue
        if behind:
            order[cut] = None
            continue
        todo.append((cut, True))
        todo += [(term.source, False) for term in cut.terms]
    return list(order)
