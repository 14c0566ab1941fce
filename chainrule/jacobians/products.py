"""The chain rule for values that the computation was cut at.

Where terms count the elements of a value that was cut, the Jacobian is a product: that with respect to the value, times the
value's own. ``resolve`` multiplies all such factors, in the order that is estimated to cost less: newest first, which is
reverse mode, or oldest first, which is forward mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from chainrule.jacobians.assemble import Pattern, Sparse, dtype_of_terms
from chainrule.jacobians.blocks import Blocks, blocks_of_terms
from chainrule.jacobians.matmul import in_order, loosely_multiplied
from chainrule.jacobians.terms import Term, Variable

# -- factors ----------------------------------------------------------------------------------------------------------


def sparse_of(terms: Sequence[Term], out_shape: tuple[int, ...], size: int) -> Sparse:
    return Pattern.of(terms, out_shape, size).matrix(terms)


class Factor:
    """The Jacobian of one value with respect to one variable."""

    def __init__(self, terms: list[Term] | None, source: Variable, out_shape: tuple[int, ...]) -> None:
        self.source = source
        self.out_shape = out_shape
        self._terms = terms
        self._blocks: Blocks | None = None
        self._sparse: Sparse | None = None  # its columns may be in any order

    @property
    def terms(self) -> list[Term]:
        if self._terms is None:
            assert self._sparse is not None
            self._terms = [in_order(self._sparse).term(self.source)]
        return self._terms

    @property
    def entries(self) -> int:
        """How many there are, where they are added up also how many parts they have."""
        return self._sparse.nnz if self._sparse is not None else sum([term.cols.size for term in self.terms])

    def blocks(self) -> Blocks | None:
        if self._blocks is None and self._sparse is None:
            self._blocks = blocks_of_terms(self.terms, self.out_shape, self.source.size, dtype_of_terms(self.terms))
        return self._blocks

    def sparse(self) -> Sparse:
        """Its rows, with columns in any order."""
        if self._sparse is None:
            self._sparse = sparse_of(self.terms, self.out_shape, self.source.size)
        return self._sparse

    def times(self, other: Factor) -> Factor:
        """With respect to the other factor's variable, where it is the Jacobian of this one's variable."""
        mine, others = self.blocks(), other.blocks()
        blocks = mine.product(others) if mine is not None and others is not None else None
        if blocks is not None:
            product = Factor([blocks.term(other.source, self.out_shape)], other.source, self.out_shape)
            product._blocks = blocks
        else:
            product = Factor(None, other.source, self.out_shape)
            product._sparse = loosely_multiplied(self.sparse(), other.sparse())
        return product

    def plus(self, others: Sequence[Factor]) -> Factor:
        if not others:
            return self
        return Factor([term for factor in (self, *others) for term in factor.terms], self.source, self.out_shape)


class Estimate:
    """A factor's shape and number of entries, if they lie anywhere. Products add what they cost to ``costs``."""

    def __init__(self, entries: float, shape: tuple[int, int], costs: list[float]) -> None:
        self.entries = entries
        self.shape = shape
        self.costs = costs

    @classmethod
    def of(cls, factor: Factor, costs: list[float]) -> Estimate:
        return cls(factor.entries, (math.prod(factor.out_shape), factor.source.size), costs)

    def times(self, other: Estimate) -> Estimate:
        cost = self.entries * other.entries / max(other.shape[0], 1)
        self.costs.append(cost)
        m, n = self.shape[0], other.shape[1]
        return Estimate(min(cost, m * n), (m, n), self.costs)

    def plus(self, others: Sequence[Estimate]) -> Estimate:
        most = self.shape[0] * self.shape[1]
        return Estimate(min(sum([x.entries for x in (self, *others)]), most), self.shape, self.costs)


# -- values that were cut ----------------------------------------------------------------------------------------------


def resolve(terms: Sequence[Term], out_shape: tuple[int, ...]) -> dict[Variable, list[Term]]:
    """The terms of a value with respect to inputs alone, for each input.

    Args:
        terms: with respect to inputs, and to values that were cut.
        out_shape: the value's.
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
    """Forward mode: for each value that was cut its Jacobian with respect to the inputs.

    Args:
        cuts: each after those that it depends on.
        own: for each of them, its factors (or estimates) by variable.
        outer: those of the result.
    """
    known: dict[Variable, Any] = {}
    for cut in cuts:
        known[cut] = _through(own[cut], known)
    return _through(outer, known)


def _through(factors: Any, known: Any) -> Any:
    parts: dict[Variable, list[Any]] = {}
    for source, factor in factors.items():
        if source not in known:
            parts.setdefault(source, []).append(factor)
            continue
        for variable, inner in known[source].items():
            parts.setdefault(variable, []).append(factor.times(inner))
    return {variable: found[0].plus(found[1:]) for variable, found in parts.items()}


def newest_first(cuts: list[Variable], own: Any, outer: Any) -> Any:
    """Reverse mode: the result's Jacobian with respect to each value that was cut. (Arguments: see ``oldest_first``.)"""
    parts = {source: [factor] for source, factor in outer.items()}
    for cut in reversed(cuts):
        first, *more = parts.pop(cut)
        whole = first.plus(more)
        for source, inner in own[cut].items():
            parts.setdefault(source, []).append(whole.times(inner))
    return {variable: found[0].plus(found[1:]) for variable, found in parts.items()}


def _cost(order: Any, cuts: list[Variable], own: Any, outer: Any) -> float:
    """About how many numbers would be multiplied."""
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
    """All values that were cut and lie behind sources, each after those that it depends on."""
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
