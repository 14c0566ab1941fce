"""``Case``: an op definition with one sample input, and the tape and interpreters run on it. Every check takes a Case."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.interpreters.dual import Dual
from chainrule._src.rules.primitive import Primitive, unsupported
from chainrule._src.tape import engine
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.tensor import Tensor, tensor_of
from chainrule._src.transforms.differences import largest_difference, normal_like
from chainrule.testing.samples import Sample

ndarray = np.ndarray
LEVEL = 10**7  # higher than the level of any transformation of the caller


class Case:
    """An op definition (primitive) and a sample input, with the helpers of the checks."""

    def __init__(self, prim: Primitive, sample: Sample, seed: int = 0) -> None:
        self.prim = prim
        self.sample = sample
        self._drawn: dict[int, tuple[Any, ...]] = {}
        self._differentiable: tuple[int, ...] | None = None
        self.operands = self.draw(seed)
        self.params = dict(sample.params)
        names = (prim.operands[-1],) * len(self.operands) if prim.variadic else prim.operands
        self.names = names
        rules = prim.vjps
        self.wanted = tuple(
            i for i in sample.floating if names[i] in rules and not isinstance(rules[names[i]], unsupported)
        )

    def draw(self, seed: int) -> tuple[Any, ...]:
        """Return the sample's operands for a seed, the same arrays in each call."""
        if seed not in self._drawn:
            self._drawn[seed] = self.sample.draw(seed)
        return self._drawn[seed]

    def fail(self, what: str, got: object, expected: object, operand: int | None = None, at: object = None) -> None:
        about = "" if operand is None else f" with respect to operand {self.names[operand]!r} (number {operand})"
        place = "" if at is None else f" at {at}"
        raise AssertionError(
            f"primitive {self.prim.name}: {what}{about}, on sample {self.sample}{place}: got {got}, expected {expected}"
        )

    def agree(
        self,
        what: str,
        got: object,
        expected: TensorLike,
        tolerance: float,
        operand: int | None = None,
    ) -> None:
        problem = largest_difference(got, expected, tolerance)
        if problem is not None:
            at, g, e = problem
            self.fail(what + (" (shapes)" if at == "shape" else ""), g, e, operand, None if at == "shape" else at)

    def value(self, operands: Any) -> tuple[Any, ...]:
        """Return the outputs for raw arrays, by the value rule."""
        outs = as_tuple(self.prim.value(*operands, **self.params))
        # Before 2.1, NumPy's counting functions return plain ints.
        return tuple(np.int64(out) if type(out) is int else out for out in outs)

    def differentiable_outputs(self) -> tuple[int, ...]:
        if self._differentiable is None:
            self._differentiable = tuple(i for i, out in enumerate(self.value(self.operands)) if out.dtype.kind in "fc")
        return self._differentiable

    def cotangents(self, operands: object, seed: int) -> list[Any]:
        outs = self.value(operands)
        return [normal_like(np.asarray(outs[i]), seed + i) for i in self.differentiable_outputs()]

    def run(self, operands: Any, wanted: Iterable[int]) -> tuple[list[Tensor], list[Any]]:
        """Apply the op with the wanted operands on the tape; return their tensors and the differentiable outputs."""
        wanted = tuple(wanted)
        given = [on_tape(x) if i in wanted else x for i, x in enumerate(operands)]
        outs = as_tuple(self.prim(*given, **self.params))
        return [given[i] for i in wanted], [outs[i] for i in self.differentiable_outputs()]

    def pull(
        self, operands: Sequence[object], gs: Sequence[object], wanted: tuple[int, ...] | None = None
    ) -> list[Any]:
        """Return the gradients of the wanted operands, computed by tape, engine and VJP rules."""
        leaves, outs = self.run(operands, self.wanted if wanted is None else wanted)
        return sweep(leaves, outs, gs, False)

    def moved(self, i: int, x: TensorLike) -> tuple[Any, ...]:
        return (*self.operands[:i], x, *self.operands[i + 1 :])

    def displaced(self, tangents: dict[int, AnyArray], s: TensorLike) -> list[TensorLike]:
        return [np.asarray(x + s * tangents[i]) if i in tangents else x for i, x in enumerate(self.operands)]


def as_tuple(x: object) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple) else (x,)


def on_tape(data: TensorLike) -> Tensor:
    tensor = tensor_of(data)
    if tensor._edge is None:
        tensor._edge = Leaf(tensor)
    return tensor


def sweep(leaves: list[Tensor], outs: object, gs: object, create_graph: bool) -> list[Any]:
    roots = [
        (out._edge, g) for out, g in zip(outs, gs, strict=True) if isinstance(out, Tensor) and out._edge is not None
    ]
    if not roots:
        return [None] * len(leaves)
    found: list[Any] = engine.sweep(
        [edge for edge, _ in roots],
        [tensor_of(g) if create_graph else g for _, g in roots],
        [leaf._edge for leaf in leaves],
        retain_graph=True,
        create_graph=create_graph,
        accumulate=False,
    )
    return found


def or_zeros(g: TensorLike | None, like: TensorLike) -> Any:
    return np.zeros(np.shape(like), getattr(like, "dtype", np.float64)) if g is None else g


def duals(operands: Any, tangents: dict[int, Any], level: int = LEVEL) -> list[Any]:
    return [Dual(x, tangents[i], level) if i in tangents else x for i, x in enumerate(operands)]


def push(case: Case, operands: object, tangents: dict[int, Any], level: int = LEVEL) -> list[Any]:
    """Return the differentiable outputs' tangents (zeros for None), by forward mode."""
    outs = as_tuple(case.prim(*duals(operands, tangents, level), **case.params))
    return [
        or_zeros(outs[i].tangent, outs[i]) if isinstance(outs[i], Dual) else np.zeros(np.shape(outs[i]))
        for i in case.differentiable_outputs()
    ]


def subsets(items: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    if len(items) > 4:
        return [(i,) for i in items] + [items]
    return itertools.chain.from_iterable(itertools.combinations(items, n) for n in range(1, len(items) + 1))
