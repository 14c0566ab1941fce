"""Batching rules shared by whole kinds of primitives; ``Batched`` calls them under ``vmap``.

A rule is ``(prim, payloads, batched, size, params) -> payload``. A batched payload has its batch axis first; other
payloads have no batch axis. ``batched`` marks the operands that have the axis, and ``size`` is its length. All primitives
count axes from the end, so most of them need no batching rule: their value works with an extra leading axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params
from chainrule._src.rules.contract import contraction_value, merge_batch_into_gemm

if TYPE_CHECKING:
    from chainrule._src.rules.primitive import Primitive

ndarray = np.ndarray


def reshape_any(x: AnyArray, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape) if type(x) is ndarray else np.reshape(x, shape)


def batch_elementwise(
    prim: Primitive, payloads: Sequence[AnyArray], batched: Sequence[bool], size: int, params: Params
) -> Any:
    """Pad the batched operands to one rank, so that their batch axes broadcast against each other."""
    if len(payloads) == 1:
        return apply_primitive(prim, payloads, params)
    ranks = [(p.ndim if type(p) is ndarray else len(shape_of(p))) - b for p, b in zip(payloads, batched, strict=True)]
    max_rank = max(ranks)
    return apply_primitive(
        prim, payloads if min(ranks) == max_rank else _pad_to_rank(max_rank, payloads, batched, ranks), params
    )


def _pad_to_rank(rank: int, payloads: Sequence[AnyArray], batched: Sequence[bool], ranks: list[int]) -> list[AnyArray]:
    """Insert axes of length 1 after the batch axis of each batched payload whose rank is below ``rank``."""
    return [insert_axes(p, rank - r) if b and r < rank else p for p, b, r in zip(payloads, batched, ranks, strict=True)]


def insert_axes(x: AnyArray, n: int) -> AnyArray:
    """Insert n axes of length 1 after the batch axis of a payload."""
    shape = shape_of(x)
    return reshape_any(x, (shape[0], *(1,) * n, *shape[1:]))


def apply_primitive(prim: Primitive, operands: Sequence[AnyArray], params: Params) -> Any:
    """Apply the primitive; skip dispatch if all operands are NumPy arrays."""
    for x in operands:
        if type(x) is not ndarray:
            return prim(*operands, **params)
    return prim.value(*operands, **params)


def leading_axes(
    prim: Primitive, payloads: Sequence[AnyArray], batched: Sequence[bool], size: int, params: Params
) -> Any:
    """Apply an operation whose operands must have the same leading axes: broadcast the batch axis to all operands."""
    if len(payloads) > 1:
        payloads = [p if b else broadcast_batch(p, size) for p, b in zip(payloads, batched, strict=True)]
    return apply_primitive(prim, payloads, params)


def batch_parameters(**under_batch: Callable[[Any, int], Any]) -> AnyFunction:
    """Return a batching rule for primitives of one operand: apply the primitive with adapted parameters.

    Args:
        under_batch: for each parameter to adapt, ``(parameter, size) -> parameter``.
    """

    def batch(prim: Primitive, payloads: Sequence[AnyArray], batched: Sequence[bool], size: int, params: Params) -> Any:
        return prim(*payloads, **{k: under_batch[k](v, size) if k in under_batch else v for k, v in params.items()})

    return batch


def prepend_size(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Prepend the batch axis to a shape."""
    return (size, *shape)


def each_example(
    prim: Primitive, payloads: Sequence[AnyArray], batched: Sequence[bool], size: int, params: Params
) -> Any:
    """Apply the operation to one example after the other: the fallback for primitives without a batching rule."""

    def run(examples: list[AnyArray]) -> Any:
        return apply_primitive(prim, examples, params)

    if not size:  # run one example of zeros to find the shapes and dtypes of the outputs
        out = run([np.zeros(shape_of(p)[1:], p.dtype) if b else p for p, b in zip(payloads, batched, strict=True)])
        several = isinstance(out, tuple)
        empty = tuple([np.zeros((0, *shape_of(o)), getattr(o, "dtype", type(o))) for o in (out if several else (out,))])
        return empty if several else empty[0]
    outs = [run([p[i, ...] if b else p for p, b in zip(payloads, batched, strict=True)]) for i in range(size)]
    if isinstance(outs[0], tuple):
        return tuple([np.stack(parts) for parts in zip(*outs, strict=True)])
    return np.stack(outs)


def broadcast_batch(x: AnyArray, size: int) -> Any:
    """Broadcast an unbatched operand along a new leading axis, without copying."""
    return np.broadcast_to(x, (size, *shape_of(x)))


def batch_contraction(
    prim: Primitive, payloads: Sequence[AnyArray], batched: Sequence[bool], size: int, params: Params
) -> Any:
    """Apply a contraction: as one matrix product if one operand has no batch axis, else as a stack of products.

    In the stack the operands' own batch axes broadcast, so they only need a common rank.
    """
    x, y = payloads
    left, right = prim.structure.split("->")[0].split(",")
    ranks = [len(shape_of(p)) - b - len(core) for p, b, core in zip(payloads, batched, (left, right), strict=True)]
    if ranks == [0, 0] and batched[0] is not batched[1]:
        result = (
            merge_batch_into_gemm(prim.structure, x, y, True)
            if batched[0]
            else merge_batch_into_gemm(prim.structure, y, x, False)
        )
        if result is not None:
            return result
    return contraction_value(prim.structure)(*_pad_to_rank(max(ranks), payloads, batched, ranks))
