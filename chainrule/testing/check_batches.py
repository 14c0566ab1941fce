"""Check batching rules: the result for a batch must equal that of a loop over its examples.

``rulecheck`` calls these checks.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.differences import ROUNDING_TOLERANCE, normal_like
from chainrule._src.transforms.vmap import vmap
from chainrule.testing.case import LEVEL, Case, as_tuple, or_zeros, push, subsets

_BATCH = 3


def _payload(x: TensorLike, size: int = _BATCH, level: int = LEVEL) -> Any:
    """Return a result's values for all examples: its payload, or the result repeated if it is not batched."""
    if isinstance(x, Tensor):
        x = x._raw
    if isinstance(x, Batched) and x.level == level:
        return x.payload
    return np.broadcast_to(x, (size, *np.shape(x)))


def _examples(case: Case) -> tuple[tuple[Any, ...], ...]:
    return tuple(case.draw(seed) for seed in range(_BATCH))


def _batched(case: Case, subset: tuple[int, ...], draws: tuple[tuple[AnyArray, ...], ...]) -> list[Any]:
    return [Batched(np.stack([d[i] for d in draws]), LEVEL) if i in subset else x for i, x in enumerate(draws[0])]


def _chosen(subset: tuple[int, ...], draws: tuple[tuple[AnyArray, ...], ...]) -> list[list[Any]]:
    """Return the operands of each example of a batch over the operands of a subset."""
    return [[d[i] if i in subset else x for i, x in enumerate(draws[0])] for d in draws]


def check_batch(case: Case) -> None:
    """Compare batches over each subset of the operands, nested batches and empty batches with loops."""
    draws = _examples(case)
    operands = case.sample.arrays
    for subset in subsets(operands):
        outs = as_tuple(case.prim(*_batched(case, subset, draws), **case.params))
        loops = list(zip(*[case.value(chosen) for chosen in _chosen(subset, draws)], strict=True))
        for out, loop in zip(outs, loops, strict=True):
            if not isinstance(out, Batched):
                case.fail(f"batch over operands {subset}: the result's type", type(out).__name__, "Batched")
            case.agree(f"batch over operands {subset}", out.payload, np.stack(loop), ROUNDING_TOLERANCE)
            if out.dtype != loop[0].dtype:
                case.fail(f"batch over operands {subset}: the result's dtype", out.dtype, loop[0].dtype)
    if operands:
        given = [
            Batched(np.empty((0, *np.shape(x)), x.dtype), LEVEL) if i in operands else x for i, x in enumerate(draws[0])
        ]
        for out, one in zip(as_tuple(case.prim(*given, **case.params)), case.value(draws[0]), strict=True):
            if tuple(out.payload.shape) != (0, *one.shape):
                case.fail("the shape of an empty batch", tuple(out.payload.shape), (0, *one.shape))
    if operands:  # the batch axis is the last one of operands and results
        dims = tuple(-1 if i in operands else None for i in range(len(draws[0])))
        given = [np.stack([d[i] for d in draws], axis=-1) if i in operands else x for i, x in enumerate(draws[0])]
        outs = as_tuple(
            vmap(
                lambda *xs: case.prim(*xs, **case.params),
                dims,
                (-1,) * len(case.prim.outputs) if len(case.prim.outputs) > 1 else -1,
            )(*given)
        )
        loops = list(zip(*[case.value(d) for d in _chosen(operands, draws)], strict=True))
        for out, loop in zip(outs, loops, strict=True):
            got = out._raw if isinstance(out, Tensor) else out
            case.agree("vmap over the last axis", got, np.stack(loop, axis=-1), ROUNDING_TOLERANCE)
    for inside, outside in itertools.product(subsets(operands), repeat=2) if len(operands) < 3 else ():
        _check_nested_batch(case, inside, outside, draws)


def _check_nested_batch(
    case: Case, inside: Sequence[int], outside: Sequence[int], draws: tuple[tuple[object, ...], ...]
) -> None:
    others = tuple(case.draw(seed + 10) for seed in range(2))

    def example(b: int, a: int) -> list[Any]:
        both = case.draw(50 + _BATCH * b + a)
        by_membership = {
            (True, True): both,
            (True, False): draws[a],
            (False, True): others[b],
            (False, False): draws[0],
        }
        return [by_membership[i in inside, i in outside][i] for i in range(len(draws[0]))]

    grid = [[example(b, a) for a in range(_BATCH)] for b in range(2)]
    given = []
    for i, x in enumerate(draws[0]):
        if i in outside and i in inside:
            x = Batched(np.stack([np.stack([grid[b][a][i] for b in range(2)]) for a in range(_BATCH)]), LEVEL)
            x = Batched(Batched(np.swapaxes(x.payload, 0, 1), LEVEL), LEVEL + 1)
        elif i in outside:
            x = Batched(np.stack([grid[b][0][i] for b in range(2)]), LEVEL)
        elif i in inside:
            x = Batched(np.stack([grid[0][a][i] for a in range(_BATCH)]), LEVEL + 1)
        given.append(x)
    outs = as_tuple(case.prim(*given, **case.params))
    for k, out in enumerate(outs):
        inner_payload = _payload(out, _BATCH, LEVEL + 1)
        payload = (
            inner_payload.payload
            if isinstance(inner_payload, Batched)
            else np.broadcast_to(inner_payload, (2, *np.shape(inner_payload)))
        )
        expected = np.stack([np.stack([case.value(grid[b][a])[k] for a in range(_BATCH)]) for b in range(2)])
        case.agree(f"nested batches over operands {inside} and {outside}", payload, expected, ROUNDING_TOLERANCE)


def check_batched_derivatives(case: Case) -> None:
    """Compare VJPs and JVPs of batches, of batched cotangents and tangents, and of other nestings, with loops."""
    if not case.wanted:
        return
    draws = _examples(case)
    outs = case.value(draws[0])
    gs = [[normal_like(np.asarray(outs[k]), 31 * b + k) for k in case.differentiable_outputs()] for b in range(_BATCH)]
    stacked = [Batched(np.stack(parts), LEVEL) for parts in zip(*gs, strict=True)]
    everything = tuple(subsets(case.sample.arrays))
    for subset in ((), *everything):
        # An operand shared by all examples has a gradient per example only if no operand is batched.
        wanted = tuple(i for i in case.wanted if i in subset) if subset else case.wanted
        loop = [
            [or_zeros(r, draws[0][i]) for i, r in zip(wanted, case.pull(chosen, g, wanted))]
            for chosen, g in zip(_chosen(subset, draws), gs)
        ]
        found = case.pull(_batched(case, subset, draws), stacked, wanted)
        for n, i in enumerate(wanted):
            got = _payload(or_zeros(found[n], draws[0][i]))
            case.agree(
                f"VJP of a batch over operands {subset}", got, np.stack([row[n] for row in loop]), ROUNDING_TOLERANCE, i
            )
    tangents = [{i: case.sample.direction(i, draws[b][i], 3 + b) for i in case.wanted} for b in range(_BATCH)]
    stacked_tangents = {i: np.stack([t[i] for t in tangents]) for i in case.wanted}
    for subset in ((), *everything):
        loop = [push(case, chosen, t) for chosen, t in zip(_chosen(subset, draws), tangents)]
        given = _batched(case, subset, draws)
        batched_tangents = push(case, given, {i: Batched(t, LEVEL) for i, t in stacked_tangents.items()}, LEVEL + 1)
        for n, got in enumerate(batched_tangents):
            expected = np.stack([row[n] for row in loop])
            case.agree(f"JVP of a batch over operands {subset}", _payload(got), expected, ROUNDING_TOLERANCE)
    # a batch of duals: vmap around jvp
    given = [
        Batched(Dual(np.stack([d[i] for d in draws]), stacked_tangents[i], LEVEL), LEVEL + 1) if i in case.wanted else x
        for i, x in enumerate(draws[0])
    ]
    results = as_tuple(case.prim(*given, **case.params))
    loop = [push(case, chosen, t) for chosen, t in zip(_chosen(case.wanted, draws), tangents)]
    for n, k in enumerate(case.differentiable_outputs()):
        payload = results[k].payload
        got = or_zeros(payload.tangent if isinstance(payload, Dual) else None, payload)
        case.agree("batch of a JVP", got, np.stack([row[n] for row in loop]), ROUNDING_TOLERANCE)
