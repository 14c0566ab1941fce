"""Choose the strategy for a Jacobian, from shapes only, by a dry run over the traced steps (``sketches``).

``compute_terms`` calls the public functions. The strategies are:

=================  ===================================================================================================
forward terms      propagate terms from the inputs through the steps (``accumulate``)
reverse terms      propagate terms through the steps of the VJP, which is linear in its cotangent; gives the transpose
vjps               a VJP for each element of the outputs, in batches
jvps               a JVP for each element of the inputs, in batches
=================  ===================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.interpreters.jac import JacStep
from chainrule._src.jacobians.accumulate import steps_of
from chainrule._src.jacobians.sketches import Cost, ForwardSketches, ReverseSketches, StepSketch, products_cost
from chainrule._src.messages.source_locations import Where
from chainrule._src.rules.structure import structure_of

FORWARD, REVERSE, VJPS, JVPS = STRATEGIES = ("forward terms", "reverse terms", "vjps", "jvps")

#: operations per entry: to add it to a dense matrix, and to sort it into a sparse one
ADDED, SORTED = 4, 25
#: factor by which reverse terms must be faster, for a dense result (True) and for a sparse one (False)
RELUCTANCE = {True: 1.2, False: 3.0}
#: density from which on products with vectors may be as fast
FULL = 0.25
#: ratio of operations of terms and of products, above which a compiled plan uses products
REPEATED = 3
#: with at most this number of inputs and at least this number of steps, JVPs are used for all layouts
FEW, LONG = 8, 300


class Plan:
    """The strategy of a Jacobian and the estimated costs of all strategies. Print it.

    Attributes:
        strategy: "forward terms", "reverse terms", "vjps" or "jvps".
        costs: the estimated cost of each strategy; for forward and reverse terms also the reason why they cannot be used.
        shape: of the Jacobian as a matrix.
        nnz: upper bound of the number of entries, if it is computed by terms.
        lines: for each step, the numbers of terms and entries of its result (or, for reverse terms, of its cotangent).
        why: the reason for the strategy: "by estimate", "as requested", "because it is small or recorded".
    """

    __module__ = "chainrule.jacobians"

    def __init__(
        self,
        strategy: str,
        costs: dict[str, Cost],
        shape: tuple[int, int],
        nnz: float,
        lines: list[StepSketch],
        why: str = "by estimate",
    ) -> None:
        self.strategy = strategy
        self.costs = costs
        self.shape = shape
        self.nnz = nnz
        self.lines = lines
        self.why = why

    def __str__(self) -> str:
        m, n = self.shape
        head = f"Jacobian of {m:,} × {n:,} by {self.strategy}, {self.why}"
        rows = [("", "estimate", "operations", "entries", ""), *[_cost_row(self, name) for name in self.costs]]
        steps = [("step", "terms", "entries", "line"), *[_line_row(line) for line in self.lines]]
        return "\n".join([head, "", *_table(rows), "", *_table(steps)])

    __repr__ = __str__


def _cost_row(plan: Plan, name: str) -> tuple[str, ...]:
    cost = plan.costs[name]
    mark = "→ " if name == plan.strategy else "  "
    if cost.why_not:
        return mark + name, "–", "", "", cost.why_not
    return mark + name, _seconds(cost.seconds), f"{cost.operations:,.0f}", f"{cost.entries:,.0f}", ""


def _line_row(line: StepSketch) -> tuple[str, ...]:
    location = Where(line.step.code, line.step.lasti)
    cut = ", cut" if line.cut else ""
    return line.step.prim.name, f"{line.terms}", f"{line.entries:,}{cut}", str(location) if location else ""


def _seconds(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Align columns; numbers to the right."""
    widths = [max([len(row[k]) for row in rows]) for k in range(len(rows[0]))]
    last = len(widths) - 1
    return [
        "  ".join(
            [
                cell.ljust(width) if k in (0, last) else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
        ).rstrip()
        for row in rows
    ]


def only_moves(steps: Sequence[JacStep]) -> bool:
    """Return whether all steps are elementwise or move elements, so that none combines the elements of an operand."""
    for step in steps:
        prim = step.prim
        if prim.kind != "elementwise" and not prim.moves:
            for i, origin in enumerate(step.origins):
                if origin is not None and structure_of(prim, i, step.params) not in _ONLY_MOVES:
                    return False
    return True


_ONLY_MOVES = {"diagonal", "selection", "scatter", "zero"}


def plain_choice(steps: Sequence[JacStep], m: int, n: int, dense: bool) -> str | None:
    """Return the strategy if simple criteria decide it, without estimates; else None."""
    if not dense and any([step.prim.kind == "function" for step in steps]):
        return REVERSE  # traces the operations of custom backward functions
    if dense and m == 1:
        return VJPS
    if n <= FEW and len(steps) > LONG:
        return JVPS
    return FORWARD if n <= 4 * m and only_moves(steps) else None


def choose_strategy(
    steps: Sequence[JacStep], results: Sequence[object], variables: Sequence[object], *, dense: bool, limit: int
) -> str:
    """Return the strategy of ``make_plan``; skip the other estimates if forward terms cost no more than assembling the matrix."""
    m, n = _size(results, variables)
    plain = plain_choice(steps, m, n, dense)
    if plain is not None:
        return plain
    forward = ForwardSketches(steps, results, n, limit)
    sparse = not dense or forward.nnz < FULL * m * n
    if sparse and not forward.why_not and forward.operations <= _to_assemble(forward.nnz, m, n, dense):
        return FORWARD
    return make_plan(results, variables, dense=dense, limit=limit).strategy


def strategy_to_repeat(
    steps: Sequence[JacStep], results: Sequence[object], variables: Sequence[object], limit: int
) -> str | None:
    """Return the products with vectors that are faster than forward terms in a compiled plan; None if there are none.

    A plan has no call overhead and does not sort entries, so only operations on numbers count.
    """
    if any([step.prim.kind == "function" for step in steps]):
        return None
    m, n = _size(results, variables)
    operations = {name: products_cost(steps, a, b, limit).operations for name, a, b in ((JVPS, n, m), (VJPS, m, n))}
    best = min(operations, key=operations.__getitem__)
    return best if REPEATED * operations[best] < ForwardSketches(steps, results, n, limit).operations else None


def _size(results: Sequence[object], variables: Sequence[Any]) -> tuple[int, int]:
    return sum([math.prod(shape_of(x)) for x in results]), sum([variable.size for variable in variables])


def make_plan(
    results: Sequence[object], variables: Sequence[object], *, dense: bool, limit: int, strategy: str | None = None
) -> Plan:
    """Choose how to compute the Jacobian of the results of a trace.

    Args:
        results: the values of the trace.
        variables: the inputs.
        dense: whether the result is dense; then products with vectors are candidates, too.
        limit: most entries in memory at once.
        strategy: the caller's choice.
    """
    m, n = _size(results, variables)
    steps = steps_of(results)
    forward = ForwardSketches(steps, results, n, limit)
    reverse = ReverseSketches(steps, results, m, limit)
    costs = {
        FORWARD: _assembled(forward.cost, forward.nnz, m, n, dense),
        REVERSE: _assembled(reverse.cost, reverse.nnz, m, n, dense),
        VJPS: products_cost(steps, m, n, limit),
        JVPS: products_cost(steps, n, m, limit),
    }
    candidates = STRATEGIES if dense else (FORWARD, REVERSE)
    best = (
        strategy
        or plain_choice(steps, m, n, dense)
        or min(candidates, key=lambda name: _weighed(name, costs[name], dense))
    )
    sketches = reverse if best == REVERSE else forward
    why = "by estimate" if strategy is None else "as requested"
    return Plan(best, costs, (m, n), sketches.nnz, sketches.lines, why)


def _weighed(name: str, cost: Cost, dense: bool) -> float:
    """Return the cost for comparison; reverse terms have a penalty, because their estimate is less certain."""
    return cost.seconds * (RELUCTANCE[dense] if name == REVERSE else 1)


def _assembled(cost: Cost, nnz: float, m: int, n: int, dense: bool) -> Cost:
    """Return the cost of terms, including the assembly of a matrix."""
    operations = cost.operations + _to_assemble(nnz, m, n, dense)
    return cost._replace(operations=operations, entries=max(cost.entries, nnz))


def _to_assemble(nnz: float, m: int, n: int, dense: bool) -> float:
    return m * n + ADDED * nnz if dense else SORTED * nnz
