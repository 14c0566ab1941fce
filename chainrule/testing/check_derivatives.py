"""Check derivatives: VJP and JVP against finite differences, against each other, and to second order.

``rulecheck`` calls these checks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.interpreters.dual import Dual
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.differences import (
    DIFFERENCE_TOLERANCE,
    ROUNDING_TOLERANCE,
    all_along,
    all_of,
    directional_derivative,
    normal_like,
    real_inner_product,
)
from chainrule.testing.case import LEVEL, Case, as_tuple, duals, on_tape, or_zeros, push, sweep


def check_vjp(case: Case) -> None:
    """Compare the VJP with central differences of the value, for each operand."""
    gs = case.cotangents(case.operands, 1)
    floats = case.differentiable_outputs()
    for i, got in zip(case.wanted, case.pull(case.operands, gs)):
        x = case.operands[i]
        got = or_zeros(got, x)
        if np.shape(got) != np.shape(x):
            case.fail("the VJP's shape", np.shape(got), np.shape(x), i)

        def loss(moved: AnyArray, i: int = i) -> float:
            outs = case.value(case.moved(i, moved))
            return sum(real_inner_product(g, outs[k]) for g, k in zip(gs, floats))

        directions = list(case.sample.directions(i, x))
        expected = all_along(loss, x, directions)
        case.agree("VJP", [real_inner_product(got, d) for d in directions], expected, DIFFERENCE_TOLERANCE, i)


def check_jvp(case: Case) -> None:
    """Compare the JVP with central differences along a direction, for each operand and all together."""
    if not case.wanted or case.prim.jvp is None:
        return
    floats = case.differentiable_outputs()
    for which in dict.fromkeys([*((i,) for i in case.wanted), case.wanted]):
        tangents = {i: case.sample.direction(i, case.operands[i], 3) for i in which}

        def outputs(s: AnyArray, tangents: dict[int, AnyArray] = tangents) -> list[Any]:
            outs = case.value(case.displaced(tangents, s))
            return [outs[k] for k in floats]

        for got, expected in zip(push(case, case.operands, tangents), all_of(outputs, 0.0, 1.0), strict=True):
            case.agree("JVP", got, expected, DIFFERENCE_TOLERANCE, which[0] if len(which) == 1 else None)


def check_adjoint(case: Case) -> None:
    """Check the adjoint identity ⟨g, J·t⟩ = ⟨Jᵀ·g, t⟩."""
    if not case.wanted:
        return
    gs = case.cotangents(case.operands, 1)
    tangents = {i: case.sample.direction(i, case.operands[i], 3) for i in case.wanted}
    forward = sum(real_inner_product(g, t) for g, t in zip(gs, push(case, case.operands, tangents)))
    pulled = case.pull(case.operands, gs)
    backward = sum(real_inner_product(or_zeros(r, case.operands[i]), tangents[i]) for i, r in zip(case.wanted, pulled))
    case.agree("adjoint identity (JVP, VJP)", forward, backward, ROUNDING_TOLERANCE)


def _normalized(direction: AnyArray) -> AnyArray:
    """Scale a direction so that no element is larger than 1, i.e. moves by more than the difference step."""
    return direction / max(1.0, np.abs(direction).max(initial=0.0))


def check_second_order(case: Case) -> None:
    """Check second derivatives: reverse over reverse, forward over reverse, forward over forward, reverse over forward.

    Derivatives are compared along one random direction per operand; any wrong element changes the result.
    """
    gs = case.cotangents(case.operands, 1)
    if not case.wanted or not gs:
        return
    weights = [case.sample.direction(i, case.operands[i], 5) for i in case.wanted]
    tangents = {i: case.sample.direction(i, case.operands[i], 3) for i in case.wanted}

    def pulled(operands: tuple[TensorLike, ...], cotangents: list[AnyArray]) -> float:
        found = case.pull(operands, cotangents)
        return sum(real_inner_product(w, or_zeros(r, w)) for w, r in zip(weights, found))

    # reverse over reverse: the gradient of ⟨weights, VJP(x, g)⟩ with respect to x and g
    leaves, outs = case.run(case.operands, case.wanted)
    cotangents = [on_tape(g.copy()) for g in gs]
    first = sweep(leaves, outs, cotangents, True)
    second = sweep(
        [*leaves, *cotangents],
        [r for r in first if r is not None],
        [w for w, r in zip(weights, first) if r is not None],
        False,
    )
    for n, i in enumerate(case.wanted):
        x, direction = case.operands[i], _normalized(tangents[i])

        def at_operand(moved: AnyArray, i: int = i) -> float:
            return pulled(case.moved(i, moved), gs)

        got = real_inner_product(or_zeros(second[n], x), direction)
        case.agree(
            "derivative of the VJP", got, directional_derivative(at_operand, x, direction), DIFFERENCE_TOLERANCE, i
        )
    for n, g in enumerate(gs):
        direction = normal_like(g, 23)

        def at_cotangent(moved: AnyArray, n: int = n) -> float:
            return pulled(case.operands, [*gs[:n], moved, *gs[n + 1 :]])

        expected = directional_derivative(at_cotangent, g, direction)
        got = real_inner_product(or_zeros(second[len(leaves) + n], g), direction)
        case.agree("derivative of the VJP along the cotangent", got, expected, DIFFERENCE_TOLERANCE)

    # forward over reverse: the VJP's tangent
    g_tangents = [normal_like(g, 29) for g in gs]
    found = case.pull(duals(case.operands, tangents), [Dual(g, t, LEVEL) for g, t in zip(gs, g_tangents)])

    def gradients(s: AnyArray) -> list[Any]:
        g_moved = [np.asarray(g + s * t) for g, t in zip(gs, g_tangents)]
        pulled = case.pull(case.displaced(tangents, s), g_moved)
        return [or_zeros(r, case.operands[i]) for i, r in zip(case.wanted, pulled)]

    for i, r, expected in zip(case.wanted, found, all_of(gradients, 0.0, 1.0), strict=True):
        tangent = or_zeros(r.tangent if isinstance(r, Dual) else None, case.operands[i])
        case.agree("JVP of the VJP", tangent, expected, DIFFERENCE_TOLERANCE, i)

    # forward over forward: the tangent's tangent
    twice = {i: Dual(case.operands[i], tangents[i], LEVEL + 1) for i in case.wanted}
    given = [Dual(twice[i], tangents[i], LEVEL + 2) if i in twice else x for i, x in enumerate(case.operands)]
    outs_ = as_tuple(case.prim(*given, **case.params))
    moved_tangents = all_of(lambda s: push(case, case.displaced(tangents, s), tangents), 0.0, 1.0)
    for k, expected in zip(case.differentiable_outputs(), moved_tangents, strict=True):
        first_tangent = outs_[k].tangent if isinstance(outs_[k], Dual) else None
        second_tangent = first_tangent.tangent if isinstance(first_tangent, Dual) else None
        case.agree("JVP of the JVP", or_zeros(second_tangent, expected), expected, DIFFERENCE_TOLERANCE)

    # reverse over forward: the gradient of ⟨g, JVP(x, t)⟩
    leaves = [on_tape(case.operands[i]) for i in case.wanted]
    by_position = dict(zip(case.wanted, leaves))
    given = [Dual(by_position[i], tangents[i], LEVEL) if i in by_position else x for i, x in enumerate(case.operands)]
    outs_ = as_tuple(case.prim(*given, **case.params))
    parts = [outs_[k].tangent for k in case.differentiable_outputs()]
    tensors = [(p, g) for p, g in zip(parts, gs) if isinstance(p, Tensor)]
    gradients_back = sweep(leaves, [p for p, _ in tensors], [g for _, g in tensors], False)
    for n, i in enumerate(case.wanted):
        x, direction = case.operands[i], _normalized(weights[n])

        def pushed(moved: AnyArray, i: int = i) -> float:
            return sum(real_inner_product(g, t) for g, t in zip(gs, push(case, case.moved(i, moved), tangents)))

        got = real_inner_product(or_zeros(gradients_back[n], x), direction)
        case.agree("VJP of the JVP", got, directional_derivative(pushed, x, direction), DIFFERENCE_TOLERANCE, i)
