"""Does a row of the table tell the truth? Every column of it, checked against the value column.

``rulecheck(row)`` runs the checks of ``CHECKS`` on all samples of the row (see ``samples``). What a rule says is never
compared with the same formula written again: derivatives are compared with differences of the values, the two modes
with each other, a batch with a loop.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from chainrule.core import engine, kinds
from chainrule.core.node import Leaf
from chainrule.core.primitive import TABLE, Primitive, argument_names, unsupported
from chainrule.core.tensor import Tensor, wrap
from chainrule.interpreters.batched import Batched
from chainrule.interpreters.dual import Dual
from chainrule.testing.differences import DIFFERENCE_TOLERANCE, ROUNDING_TOLERANCE, all_along, along, inner, worst
from chainrule.testing.samples import Sample, normal_like, samples_of, with_numbers

ndarray = np.ndarray
_LEVEL = 10**7  # above every transformation the caller can have entered
_BATCH = 3


class _Case:
    """A row and a sample of it, with what all checks need."""

    def __init__(self, prim: Primitive, sample: Sample, seed: int = 0) -> None:
        self.prim = prim
        self.sample = sample
        self.operands = sample.draw(seed)
        self.params = dict(sample.params)
        names = (prim.operands[-1],) * len(self.operands) if prim.variadic else prim.operands
        self.names = names
        rules = prim.vjps
        self.wanted = tuple(
            i for i in sample.floating if names[i] in rules and not isinstance(rules[names[i]], unsupported)
        )

    def fail(self, what: str, got: Any, expected: Any, operand: int | None = None, at: Any = None) -> None:
        about = "" if operand is None else f" with respect to operand {self.names[operand]!r} (number {operand})"
        place = "" if at is None else f" at {at}"
        raise AssertionError(
            f"row {self.prim.name}: {what}{about}, on sample {self.sample}{place}: got {got}, expected {expected}"
        )

    def agree(self, what: str, got: Any, expected: Any, tolerance: float, operand: int | None = None) -> None:
        problem = worst(got, expected, tolerance)
        if problem is not None:
            at, g, e = problem
            self.fail(what + (" (shapes)" if at == "shape" else ""), g, e, operand, None if at == "shape" else at)

    def value(self, operands: Any) -> tuple[Any, ...]:
        """The outputs on raw arrays, by the value column alone."""
        return _tuple(self.prim.value(*operands, **self.params))

    def differentiable_outputs(self) -> tuple[int, ...]:
        return tuple(i for i, out in enumerate(self.value(self.operands)) if out.dtype.kind in "fc")

    def cotangents(self, operands: Any, seed: int) -> list[Any]:
        outs = self.value(operands)
        return [normal_like(np.asarray(outs[i]), seed + i) for i in self.differentiable_outputs()]

    def run(self, operands: Any, wanted: Iterable[int]) -> tuple[list[Tensor], list[Any]]:
        """Apply the row with the wanted operands on the tape: their tensors, and the differentiable outputs."""
        wanted = tuple(wanted)
        given = [_leaf(x) if i in wanted else x for i, x in enumerate(operands)]
        outs = _tuple(self.prim(*given, **self.params))
        return [given[i] for i in wanted], [outs[i] for i in self.differentiable_outputs()]

    def pull(self, operands: Any, gs: Any, wanted: Any = None) -> list[Any]:
        """The gradients at the wanted operands, by the machinery: tape, engine, rules."""
        leaves, outs = self.run(operands, self.wanted if wanted is None else wanted)
        return _sweep(leaves, outs, gs, False)

    def moved(self, i: int, x: Any) -> tuple[Any, ...]:
        return (*self.operands[:i], x, *self.operands[i + 1 :])


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple) else (x,)


def _leaf(data: Any) -> Tensor:
    tensor = data if isinstance(data, Tensor) else wrap(data)
    if tensor._edge is None:
        tensor._edge = Leaf(tensor)
    return tensor


def _sweep(leaves: list[Tensor], outs: Any, gs: Any, create_graph: bool) -> list[Any]:
    roots = [(out._edge, g) for out, g in zip(outs, gs, strict=True) if isinstance(out, Tensor) and out._edge is not None]
    if not roots:
        return [None] * len(leaves)
    found: list[Any] = engine.sweep(
        [edge for edge, _ in roots],
        [_as_tensor(g) if create_graph else g for _, g in roots],
        [leaf._edge for leaf in leaves],
        retain_graph=True,
        create_graph=create_graph,
        accumulate=False,
    )
    return found


def _as_tensor(g: Any) -> Tensor:
    return g if isinstance(g, Tensor) else wrap(g)


def _or_zeros(g: Any, like: Any) -> Any:
    return np.zeros(np.shape(like), getattr(like, "dtype", np.float64)) if g is None else g


def _push(case: _Case, operands: Any, tangents: dict[int, Any], level: int = _LEVEL) -> list[Any]:
    """The differentiable outputs' tangents (zeros for None), by forward mode."""
    given = [Dual(x, tangents[i], level) if i in tangents else x for i, x in enumerate(operands)]
    outs = _tuple(case.prim(*given, **case.params))
    return [
        _or_zeros(outs[i].tangent, outs[i]) if isinstance(outs[i], Dual) else np.zeros(np.shape(outs[i]))
        for i in case.differentiable_outputs()
    ]


# -- derivatives -----------------------------------------------------------------------------------------------------


def check_vjp(case: _Case) -> None:
    """The VJP against central differences of the value, operand by operand."""
    gs = case.cotangents(case.operands, 1)
    floats = case.differentiable_outputs()
    for i, got in zip(case.wanted, case.pull(case.operands, gs)):
        x = case.operands[i]
        got = _or_zeros(got, x)
        if np.shape(got) != np.shape(x):
            case.fail("the VJP's shape", np.shape(got), np.shape(x), i)

        def loss(moved: Any, i: int = i) -> float:
            outs = case.value(case.moved(i, moved))
            return sum(inner(g, outs[k]) for g, k in zip(gs, floats))

        directions = list(case.sample.directions(i, x))
        expected = all_along(loss, x, directions)
        case.agree("VJP", [inner(got, d) for d in directions], expected, DIFFERENCE_TOLERANCE, i)


def check_jvp(case: _Case) -> None:
    """The JVP against central differences along a direction: each operand alone, and all together."""
    if not case.wanted or case.prim.jvp is None:
        return
    floats = case.differentiable_outputs()
    for which in dict.fromkeys([*((i,) for i in case.wanted), case.wanted]):
        tangents = {i: case.sample.direction(i, case.operands[i], 3) for i in which}
        got = _push(case, case.operands, tangents)

        def moved(s: Any, tangents: Any = tangents) -> list[Any]:
            return [np.asarray(x + s * tangents[i]) if i in tangents else x for i, x in enumerate(case.operands)]

        for n, k in enumerate(floats):
            expected = along(lambda s, k=k: case.value(moved(s))[k], 0.0, 1.0)
            case.agree("JVP", got[n], expected, DIFFERENCE_TOLERANCE, which[0] if len(which) == 1 else None)


def check_adjoint(case: _Case) -> None:
    """⟨g, J·t⟩ = ⟨Jᵀ·g, t⟩."""
    if not case.wanted:
        return
    gs = case.cotangents(case.operands, 1)
    tangents = {i: case.sample.direction(i, case.operands[i], 3) for i in case.wanted}
    forward = sum(inner(g, t) for g, t in zip(gs, _push(case, case.operands, tangents)))
    pulled = case.pull(case.operands, gs)
    backward = sum(inner(_or_zeros(r, case.operands[i]), tangents[i]) for i, r in zip(case.wanted, pulled))
    case.agree("adjoint identity (JVP, VJP)", forward, backward, ROUNDING_TOLERANCE)


def check_second_order(case: _Case) -> None:
    """Derivatives of the VJP, by reverse over reverse, forward over reverse and reverse over forward."""
    gs = case.cotangents(case.operands, 1)
    if not case.wanted or not gs:
        return
    weights = [case.sample.direction(i, case.operands[i], 5) for i in case.wanted]

    def pulled(operands: Any, cotangents: Any) -> float:
        found = case.pull(operands, cotangents)
        return sum(inner(w, _or_zeros(r, w)) for w, r in zip(weights, found))

    # reverse over reverse: the gradient of ⟨weights, VJP(x, g)⟩ with respect to x and g
    leaves, outs = case.run(case.operands, case.wanted)
    cotangents = [_leaf(g.copy()) for g in gs]
    first = _sweep(leaves, outs, cotangents, True)
    second = _sweep(
        [*leaves, *cotangents],
        [r for r in first if r is not None],
        [w for w, r in zip(weights, first) if r is not None],
        False,
    )
    for n, i in enumerate(case.wanted):
        x = case.operands[i]
        directions = list(case.sample.directions(i, x))
        expected = all_along(lambda moved, i=i: pulled(case.moved(i, moved), gs), x, directions)
        got = _or_zeros(second[n], x)
        case.agree("derivative of the VJP", [inner(got, d) for d in directions], expected, DIFFERENCE_TOLERANCE, i)
    for n, g in enumerate(gs):
        direction = normal_like(g, 23)
        expected = along(lambda moved, n=n: pulled(case.operands, [*gs[:n], moved, *gs[n + 1 :]]), g, direction)
        got = inner(_or_zeros(second[len(leaves) + n], g), direction)
        case.agree("derivative of the VJP along the cotangent", got, expected, DIFFERENCE_TOLERANCE)

    # forward over reverse: the VJP's tangent
    tangents = {i: case.sample.direction(i, case.operands[i], 3) for i in case.wanted}
    duals = [Dual(x, tangents[i], _LEVEL) if i in tangents else x for i, x in enumerate(case.operands)]
    g_tangents = [normal_like(g, 29) for g in gs]
    found = case.pull(duals, [Dual(g, t, _LEVEL) for g, t in zip(gs, g_tangents)])

    def at(s: Any) -> list[Any]:
        operands = [np.asarray(x + s * tangents[i]) if i in tangents else x for i, x in enumerate(case.operands)]
        return [_or_zeros(r, case.operands[i]) for i, r in zip(
            case.wanted, case.pull(operands, [np.asarray(g + s * t) for g, t in zip(gs, g_tangents)])
        )]

    for n, i in enumerate(case.wanted):
        expected = along(lambda s, n=n: at(s)[n], 0.0, 1.0)
        r = found[n]
        got = r.tangent if isinstance(r, Dual) else None
        case.agree("JVP of the VJP", _or_zeros(got, case.operands[i]), expected, DIFFERENCE_TOLERANCE, i)

    # reverse over forward: the gradient of ⟨g, JVP(x, t)⟩
    leaves = [_leaf(case.operands[i]) for i in case.wanted]
    by_position = dict(zip(case.wanted, leaves))
    given = [Dual(by_position[i], tangents[i], _LEVEL) if i in by_position else x for i, x in enumerate(case.operands)]
    outs_ = _tuple(case.prim(*given, **case.params))
    parts = [outs_[k].tangent for k in case.differentiable_outputs()]
    kept = [(p, g) for p, g in zip(parts, gs) if isinstance(p, Tensor)]
    back = _sweep(leaves, [p for p, _ in kept], [g for _, g in kept], False)
    for n, i in enumerate(case.wanted):
        x = case.operands[i]
        directions = list(case.sample.directions(i, x))

        def pushed(moved: Any, i: int = i) -> float:
            return sum(inner(g, t) for g, t in zip(gs, _push(case, case.moved(i, moved), tangents)))

        expected = all_along(pushed, x, directions)
        got = _or_zeros(back[n], x)
        case.agree("VJP of the JVP", [inner(got, d) for d in directions], expected, DIFFERENCE_TOLERANCE, i)


# -- batching --------------------------------------------------------------------------------------------------------


def _subsets(items: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    if len(items) > 4:
        return [(i,) for i in items] + [items]
    return itertools.chain.from_iterable(itertools.combinations(items, n) for n in range(1, len(items) + 1))


def _payload(x: Any, size: int = _BATCH, level: int = _LEVEL) -> Any:
    """What a result holds for all examples: its payload, or itself repeated."""
    if isinstance(x, Tensor):
        x = x._data
    if isinstance(x, Batched) and x.level == level:
        return x.payload
    return np.broadcast_to(x, (size, *np.shape(x)))


def _examples(case: _Case) -> tuple[tuple[Any, ...], ...]:
    return tuple(case.sample.draw(seed) for seed in range(_BATCH))


def _batched(case: _Case, subset: Any, draws: Any) -> list[Any]:
    return [
        Batched(np.stack([d[i] for d in draws]), _LEVEL) if i in subset else x for i, x in enumerate(draws[0])
    ]


def _chosen(subset: Any, draws: Any) -> list[list[Any]]:
    """The operands of each example of a batch over the operands of a subset."""
    return [[d[i] if i in subset else x for i, x in enumerate(draws[0])] for d in draws]


def check_batch(case: _Case) -> None:
    """A batch against a loop: over each subset of the operands, two nested batches, and no examples at all."""
    draws = _examples(case)
    operands = case.sample.arrays
    for subset in _subsets(operands):
        outs = _tuple(case.prim(*_batched(case, subset, draws), **case.params))
        loops = list(zip(*[case.value(chosen) for chosen in _chosen(subset, draws)], strict=True))
        for out, loop in zip(outs, loops, strict=True):
            if not isinstance(out, Batched):
                case.fail(f"batch over operands {subset}: the result's type", type(out).__name__, "Batched")
            case.agree(f"batch over operands {subset}", out.payload, np.stack(loop), ROUNDING_TOLERANCE)
            if out.dtype != loop[0].dtype:
                case.fail(f"batch over operands {subset}: the result's dtype", out.dtype, loop[0].dtype)
    if operands:
        given = [Batched(np.empty((0, *np.shape(x)), x.dtype), _LEVEL) if i in operands else x for i, x in enumerate(draws[0])]
        for out, one in zip(_tuple(case.prim(*given, **case.params)), case.value(draws[0]), strict=True):
            if tuple(out.payload.shape) != (0, *one.shape):
                case.fail("the shape of a batch of nothing", tuple(out.payload.shape), (0, *one.shape))
    for inside, outside in itertools.product(_subsets(operands), repeat=2) if len(operands) < 3 else ():
        _check_nested_batch(case, inside, outside, draws)


def _check_nested_batch(case: _Case, inside: Any, outside: Any, draws: Any) -> None:
    others = tuple(case.sample.draw(seed + 10) for seed in range(2))
    grid = [
        [
            [
                draws[a][i] if i in inside and i not in outside else others[b][i] if i in outside and i not in inside
                else case.sample.draw(50 + _BATCH * b + a)[i] if i in inside else x
                for i, x in enumerate(draws[0])
            ]
            for a in range(_BATCH)
        ]
        for b in range(2)
    ]
    given = []
    for i, x in enumerate(draws[0]):
        if i in outside and i in inside:
            x = Batched(np.stack([np.stack([grid[b][a][i] for b in range(2)]) for a in range(_BATCH)]), _LEVEL)
            x = Batched(Batched(np.swapaxes(x.payload, 0, 1), _LEVEL), _LEVEL + 1)
        elif i in outside:
            x = Batched(np.stack([grid[b][0][i] for b in range(2)]), _LEVEL)
        elif i in inside:
            x = Batched(np.stack([grid[0][a][i] for a in range(_BATCH)]), _LEVEL + 1)
        given.append(x)
    outs = _tuple(case.prim(*given, **case.params))
    for k, out in enumerate(outs):
        inner_payload = _payload(out, _BATCH, _LEVEL + 1)
        payload = inner_payload.payload if isinstance(inner_payload, Batched) else np.broadcast_to(inner_payload, (2, *np.shape(inner_payload)))
        expected = np.stack([np.stack([case.value(grid[b][a])[k] for a in range(_BATCH)]) for b in range(2)])
        case.agree(f"nested batches over operands {inside} and {outside}", payload, expected, ROUNDING_TOLERANCE)


def check_batched_derivatives(case: _Case) -> None:
    """VJP and JVP of a batch, batches of cotangents and tangents, and the other nestings, against a loop."""
    if not case.wanted:
        return
    draws = _examples(case)
    outs = case.value(draws[0])
    gs = [[normal_like(np.asarray(outs[k]), 31 * b + k) for k in case.differentiable_outputs()] for b in range(_BATCH)]
    stacked = [Batched(np.stack(parts), _LEVEL) for parts in zip(*gs, strict=True)]
    everything = tuple(_subsets(case.sample.arrays))
    for subset in ((), *everything):
        # An operand that every example shares has a gradient for each only where nothing else is batched.
        wanted = tuple(i for i in case.wanted if i in subset) if subset else case.wanted
        loop = [
            [_or_zeros(r, draws[0][i]) for i, r in zip(wanted, case.pull(chosen, g, wanted))]
            for chosen, g in zip(_chosen(subset, draws), gs)
        ]
        found = case.pull(_batched(case, subset, draws), stacked, wanted)
        for n, i in enumerate(wanted):
            got = _payload(_or_zeros(found[n], draws[0][i]))
            case.agree(f"VJP of a batch over operands {subset}", got, np.stack([row[n] for row in loop]), ROUNDING_TOLERANCE, i)
    tangents = [{i: case.sample.direction(i, draws[b][i], 3 + b) for i in case.wanted} for b in range(_BATCH)]
    together = {i: np.stack([t[i] for t in tangents]) for i in case.wanted}
    for subset in ((), *everything):
        loop = [_push(case, chosen, t) for chosen, t in zip(_chosen(subset, draws), tangents)]
        given = _batched(case, subset, draws)
        above = _push(case, given, {i: Batched(t, _LEVEL) for i, t in together.items()}, _LEVEL + 1)
        for n, got in enumerate(above):
            expected = np.stack([row[n] for row in loop])
            case.agree(f"JVP of a batch over operands {subset}", _payload(got), expected, ROUNDING_TOLERANCE)
    # a batch of duals: the batch is the outer transformation's inside
    given = [
        Batched(Dual(np.stack([d[i] for d in draws]), together[i], _LEVEL), _LEVEL + 1) if i in case.wanted else x
        for i, x in enumerate(draws[0])
    ]
    results = _tuple(case.prim(*given, **case.params))
    loop = [_push(case, chosen, t) for chosen, t in zip(_chosen(case.wanted, draws), tangents)]
    for n, k in enumerate(case.differentiable_outputs()):
        payload = results[k].payload
        got = _or_zeros(payload.tangent if isinstance(payload, Dual) else None, payload)
        case.agree("batch of a JVP", got, np.stack([row[n] for row in loop]), ROUNDING_TOLERANCE)


# -- dtypes, shapes, text, memory ------------------------------------------------------------------------------------


def check_dtype(case: _Case) -> None:
    """float32 in, float32 out and back: value, VJP, JVP and second derivative; mixed dtypes come back as they went in."""
    narrow = np.complex64 if case.sample.complex else np.float32
    operands = case.sample.draw(0, np.float32)
    outs = case.value(operands)
    floats = case.differentiable_outputs()
    results = _tuple(case.prim(*[wrap(x) if i in case.sample.floating else x for i, x in enumerate(operands)], **case.params))
    for out, result in zip(outs, results, strict=True):
        if result.dtype != out.dtype or tuple(result.shape) != np.shape(out):
            case.fail("a tensor's dtype and shape", (result.dtype, tuple(result.shape)), (out.dtype, np.shape(out)))
    if case.sample.floating and "dtype" not in case.params:
        for k in floats:
            if outs[k].dtype not in (np.float32, np.complex64):
                case.fail(f"the value's dtype for {np.dtype(narrow)} operands", outs[k].dtype, np.dtype(narrow))
    if not case.wanted:
        return
    gs = case.cotangents(operands, 1)
    for i, r in zip(case.wanted, case.pull(operands, gs)):
        if r is not None and r.dtype != narrow:
            case.fail("the VJP's dtype", r.dtype, np.dtype(narrow), i)
    tangents = {i: case.sample.direction(i, operands[i], 3) for i in case.wanted}
    for t, k in zip(_push(case, operands, tangents), floats):
        if t.dtype != outs[k].dtype:
            case.fail("the JVP's dtype", t.dtype, outs[k].dtype)
    leaves, tensors = case.run(operands, case.wanted)
    first = [r for r in _sweep(leaves, tensors, gs, True) if r is not None]
    for r in _sweep(leaves, first, [normal_like(np.empty(r.shape, r.dtype), 5) for r in first], False):
        if r is not None and r.dtype != narrow:
            case.fail("the second derivative's dtype", r.dtype, np.dtype(narrow))
    if len(case.wanted) > 1 and case.prim.promotion != "none":
        mixed = [x.astype(case.operands[i].dtype) if i == case.wanted[0] else x for i, x in enumerate(operands)]
        with_mixed = [normal_like(np.asarray(case.value(mixed)[k]), 1) for k in floats]
        for i, r in zip(case.wanted, case.pull(mixed, with_mixed)):
            if r is not None and r.dtype != mixed[i].dtype:
                case.fail("the VJP's dtype among mixed ones", r.dtype, mixed[i].dtype, i)


def check_formula(case: _Case) -> None:
    """The text of each VJP, evaluated, against the rule."""
    if case.sample.complex or not case.wanted:
        return
    gs = case.cotangents(case.operands, 1)
    outs = case.value(case.operands)
    names: dict[str, Any] = {}
    for rule in case.prim.vjps.values():  # what stands beside the rule: its own helpers
        names.update(getattr(rule, "__globals__", {}))
    names.update(TABLE, np=np, unfit=kinds.unfit)
    names.update(zip(case.prim.outputs, outs))
    names.update(g=gs[0] if len(case.prim.outputs) == 1 else tuple(gs), out=outs[0] if len(outs) == 1 else outs)
    if case.prim.variadic:
        name = case.names[0].lstrip("*")
        names.update({name: case.operands, name + "_shape": tuple(np.shape(x) for x in case.operands),
                      name + "_dtype": tuple(x.dtype for x in case.operands)})
    for name, x in zip(case.prim.operands, case.operands):
        if not name.startswith("*"):
            names.update({name: x, name + "_shape": np.shape(x), name + "_dtype": getattr(x, "dtype", None)})
    names.update(case.params)
    pulled = dict(zip(case.wanted, case.pull(case.operands, gs)))
    for i in case.wanted:
        x = case.operands[i]
        text = case.prim.formula[case.names[i]]
        said = eval(text, names)
        if case.prim.variadic:
            said = said[i]
        got = kinds.unfit(np.asarray(said), np.shape(x), x.dtype)
        case.agree(f"formula {text!r}", got, _or_zeros(pulled[i], x), ROUNDING_TOLERANCE, i)


def check_moves(case: _Case) -> None:
    """A row that only moves elements: where they go, read off from an array of their positions."""
    if not case.prim.moves:
        return
    x = case.operands[0]
    positions = np.arange(x.size).reshape(x.shape)
    moved = case.prim.value(positions, *case.operands[1:], **case.params)
    case.agree("index map", case.value(case.operands)[0], x.reshape(-1)[np.asarray(moved)], 0.0)


def check_saves(case: _Case) -> None:
    """A node keeps what the rules of the operands that require grad name, and nothing else."""
    prim = case.prim
    for subset in _subsets(case.wanted):
        _, outs = case.run(case.operands, subset)
        node = next((out.grad_fn for out in outs if out.grad_fn is not None), None)
        if node is None:
            continue
        named = {name for i in subset for name in argument_names(prim.vjps[case.names[i]])}  # type: ignore[arg-type]
        for name, kept in zip(prim.saves, node.saved, strict=True):
            if kept is None and name in named:
                case.fail(f"what the node saves for operands {subset}", f"no {name}", name)
            if kept is not None and name not in named:
                case.fail(f"what the node saves for operands {subset}", name, f"no {name}")


def check_face(case: _Case) -> None:
    """The user's function (which has a path of its own, for speed) against the row."""
    if case.prim.fast is None or not case.wanted or case.params:
        return
    gs = case.cotangents(case.operands, 1)
    for subset in _subsets(case.wanted):
        given = [_leaf(x) if i in subset else wrap(x) if isinstance(x, ndarray) else x for i, x in enumerate(case.operands)]
        out = case.prim.fast(*given)
        case.agree("value of the user's function", out._data, case.value(case.operands)[0], ROUNDING_TOLERANCE)
        found = _sweep([given[i] for i in subset], [out], gs, False)
        for i, got, expected in zip(subset, found, case.pull(case.operands, gs, subset)):
            zeros = np.zeros_like(case.operands[i])
            case.agree("VJP of the user's function", zeros if got is None else got, zeros if expected is None else expected,
                       ROUNDING_TOLERANCE, i)
    narrow = [_leaf(x) if i in case.wanted else x for i, x in enumerate(case.sample.draw(0, np.float32))]
    out = case.prim.fast(*narrow)
    for i, got in zip(case.wanted, _sweep([narrow[i] for i in case.wanted], [out], [np.ones(out.shape, out.dtype)], False)):
        if got is not None and (got.dtype, got.shape) != (narrow[i].dtype, narrow[i].shape):
            case.fail("dtype and shape of the VJP of the user's function", (got.dtype, got.shape),
                      (narrow[i].dtype, narrow[i].shape), i)


#: What ``rulecheck`` checks, by name.
CHECKS: dict[str, Callable[[_Case], None]] = {
    "vjp": check_vjp,
    "jvp": check_jvp,
    "adjoint": check_adjoint,
    "second_order": check_second_order,
    "batch": check_batch,
    "batched_derivatives": check_batched_derivatives,
    "dtype": check_dtype,
    "formula": check_formula,
    "moves": check_moves,
    "saves": check_saves,
    "face": check_face,
}


def accepts_complex(prim: Primitive) -> bool:
    """Whether the row is for complex numbers, too: it does not say otherwise, and its value function takes them."""
    if "c" not in prim.accepts or not prim.differentiable:
        return False
    for sample in samples_of(prim)[:1]:
        if not sample.floating:
            return False
        try:
            prim.value(*_complex(sample).draw(), **sample.params)
        except TypeError:
            return False
    return True


def _complex(sample: Sample) -> Sample:
    return replace(sample, complex=True)


def every_sample(prim: Primitive) -> list[Sample]:
    """Real and complex samples, and those with a Python number for an operand."""
    plain = samples_of(prim)
    if prim.domain == "complex":
        return [_complex(s) for s in plain]
    return [*plain, *with_numbers(prim), *([_complex(s) for s in plain if s.may_be_complex] if accepts_complex(prim) else [])]


def rulecheck(prim: Primitive, checks: Iterable[str] | None = None, samples: Iterable[Sample] | None = None) -> None:
    """Check a row of the table: yours, or one of chainrule's.

    Args:
        prim: the row, as the decorators ``elementwise``, ``linear``, ``contraction``, ``opaque`` and ``discrete`` return it.
        checks: names from ``CHECKS``; all of them without it.
        samples: inputs to check with, instead of the row's own.

    Raises:
        AssertionError: naming the row, the operand, the sample and the two numbers that differ.

    >>> from chainrule.core.primitive import TABLE
    >>> from chainrule.testing import rulecheck
    >>> rulecheck(TABLE["tanh"])
    """
    chosen = [CHECKS[name] for name in (CHECKS if checks is None else checks)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        for sample in every_sample(prim) if samples is None else samples:
            case = _Case(prim, sample)
            for check in chosen:
                check(case)
