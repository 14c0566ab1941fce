"""Checks of derivatives: each mode against differences of the values, against the other mode, and a second time."""

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
    along,
    inner,
    normal_like,
)
from chainrule.testing.case import LEVEL, Case, as_tuple, duals, on_tape, or_zeros, push, sweep


def check_vjp(case: Case) -> None:
    """The VJP against central differences of the value, operand by operand."""
    gs = case.cotangents(case.operands, 1)
    floats = case.differentiable_outputs()
    for i, got in zip(case.wanted, case.pull(case.operands, gs)):
        x = case.operands[i]
        got = or_zeros(got, x)
        if np.shape(got) != np.shape(x):
            case.fail("the VJP's shape", np.shape(got), np.shape(x), i)

        def loss(moved: AnyArray, i: int = i) -> float:
            outs = case.value(case.moved(i, moved))
            return sum(inner(g, outs[k]) for g, k in zip(gs, floats))

        directions = list(case.sample.directions(i, x))
        expected = all_along(loss, x, directions)
        case.agree("VJP", [inner(got, d) for d in directions], expected, DIFFERENCE_TOLERANCE, i)


def check_jvp(case: Case) -> None:
    """The JVP against central differences along a direction: each operand alone, and all together."""
    if not case.wanted or case.prim.jvp is None:
        return
    floats = case.differentiable_outputs()
    for which in dict.fromkeys([*((i,) for i in case.wanted), case.wanted]):
        tangents = {i: case.sample.direction(i, case.operands[i], 3) for i in which}
        got = push(case, case.operands, tangents)

        for n, k in enumerate(floats):

            def output(s: AnyArray, k: int = k, tangents: dict[int, AnyArray] = tangents) -> Any:
                return case.value(case.moved_along(tangents, s))[k]

            expected = along(output, 0.0, 1.0)
            case.agree("JVP", got[n], expected, DIFFERENCE_TOLERANCE, which[0] if len(which) == 1 else None)


def check_adjoint(case: Case) -> None:
    """⟨g, J·t⟩ = ⟨Jᵀ·g, t⟩."""
    if not case.wanted:
        return
    gs = case.cotangents(case.operands, 1)
    tangents = {i: case.sample.direction(i, case.operands[i], 3) for i in case.wanted}
    forward = sum(inner(g, t) for g, t in zip(gs, push(case, case.operands, tangents)))
    pulled = case.pull(case.operands, gs)
    backward = sum(inner(or_zeros(r, case.operands[i]), tangents[i]) for i, r in zip(case.wanted, pulled))
    case.agree("adjoint identity (JVP, VJP)", forward, backward, ROUNDING_TOLERANCE)


def check_second_order(case: Case) -> None:
    """Derivatives of the VJP, by reverse over reverse, forward over reverse and reverse over forward."""
    gs = case.cotangents(case.operands, 1)
    if not case.wanted or not gs:
        return
    weights = [case.sample.direction(i, case.operands[i], 5) for i in case.wanted]

    def pulled(operands: tuple[TensorLike, ...], cotangents: list[AnyArray]) -> float:
        found = case.pull(operands, cotangents)
        return sum(inner(w, or_zeros(r, w)) for w, r in zip(weights, found))

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
        x = case.operands[i]
        directions = list(case.sample.directions(i, x))

        def at_operand(moved: AnyArray, i: int = i) -> float:
            return pulled(case.moved(i, moved), gs)

        expected = all_along(at_operand, x, directions)
        got = or_zeros(second[n], x)
        case.agree("derivative of the VJP", [inner(got, d) for d in directions], expected, DIFFERENCE_TOLERANCE, i)
    for n, g in enumerate(gs):
        direction = normal_like(g, 23)

        def at_cotangent(moved: AnyArray, n: int = n) -> float:
            return pulled(case.operands, [*gs[:n], moved, *gs[n + 1 :]])

        expected = along(at_cotangent, g, direction)
        got = inner(or_zeros(second[len(leaves) + n], g), direction)
        case.agree("derivative of the VJP along the cotangent", got, expected, DIFFERENCE_TOLERANCE)

    # forward over reverse: the VJP's tangent
    tangents = {i: case.sample.direction(i, case.operands[i], 3) for i in case.wanted}
    g_tangents = [normal_like(g, 29) for g in gs]
    found = case.pull(duals(case.operands, tangents), [Dual(g, t, LEVEL) for g, t in zip(gs, g_tangents)])

    for n, i in enumerate(case.wanted):

        def gradient(s: AnyArray, n: int = n, i: int = i) -> Any:
            g_moved = [np.asarray(g + s * t) for g, t in zip(gs, g_tangents)]
            return or_zeros(case.pull(case.moved_along(tangents, s), g_moved)[n], case.operands[i])

        expected = along(gradient, 0.0, 1.0)
        got = found[n].tangent if isinstance(found[n], Dual) else None
        case.agree("JVP of the VJP", or_zeros(got, case.operands[i]), expected, DIFFERENCE_TOLERANCE, i)

    # forward over forward: the tangent's tangent
    twice = {i: Dual(case.operands[i], tangents[i], LEVEL + 1) for i in case.wanted}
    given = [Dual(twice[i], tangents[i], LEVEL + 2) if i in twice else x for i, x in enumerate(case.operands)]
    outs_ = as_tuple(case.prim(*given, **case.params))
    for n, k in enumerate(case.differentiable_outputs()):

        def tangent(s: AnyArray, n: int = n) -> Any:
            return push(case, case.moved_along(tangents, s), tangents)[n]

        expected = along(tangent, 0.0, 1.0)
        first_tangent = outs_[k].tangent if isinstance(outs_[k], Dual) else None
        got = first_tangent.tangent if isinstance(first_tangent, Dual) else None
        case.agree("JVP of the JVP", or_zeros(got, expected), expected, DIFFERENCE_TOLERANCE)

    # reverse over forward: the gradient of ⟨g, JVP(x, t)⟩
    leaves = [on_tape(case.operands[i]) for i in case.wanted]
    by_position = dict(zip(case.wanted, leaves))
    given = [Dual(by_position[i], tangents[i], LEVEL) if i in by_position else x for i, x in enumerate(case.operands)]
    outs_ = as_tuple(case.prim(*given, **case.params))
    parts = [outs_[k].tangent for k in case.differentiable_outputs()]
    kept = [(p, g) for p, g in zip(parts, gs) if isinstance(p, Tensor)]
    back = sweep(leaves, [p for p, _ in kept], [g for _, g in kept], False)
    for n, i in enumerate(case.wanted):
        x = case.operands[i]
        directions = list(case.sample.directions(i, x))

        def pushed(moved: AnyArray, i: int = i) -> float:
            return sum(inner(g, t) for g, t in zip(gs, push(case, case.moved(i, moved), tangents)))

        expected = all_along(pushed, x, directions)
        got = or_zeros(back[n], x)
        case.agree("VJP of the JVP", [inner(got, d) for d in directions], expected, DIFFERENCE_TOLERANCE, i)
