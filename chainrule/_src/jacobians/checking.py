"""``jacobian(check=True)``: compare products of a Jacobian with random vectors with a JVP and a VJP of the function.

``api`` calls ``check_products``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import unwrap_array
from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.jacobians.terms import Term
from chainrule._src.jacobians.trace import JacobianTrace
from chainrule._src.messages import errors
from chainrule._src.messages.kinds import NoForwardMode
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.arguments import data_of, is_array
from chainrule._src.transforms.grad import vjp
from chainrule._src.transforms.jvp import jvp

ndarray = np.ndarray
#: tolerance of a sum, in units of the machine precision times the square root of the number of summands
TOLERANCE = 1e3


def function_of_leaves(trace: JacobianTrace) -> tuple[AnyFunction, list[Any]]:
    """Return the traced function from the leaves of its argument to the leaves of its result, and these arguments."""

    def flat(*leaves: Any) -> tuple[Any, ...]:
        return tuple([y if is_array(y) else np.asarray(y) for y in trace.call(leaves)])

    return flat, [p.detach() if isinstance(p, Tensor) else np.asarray(data_of(unwrap_array(p))) for p in trace.points]


def check_products(trace: JacobianTrace, found: Sequence[Sequence[list[Term]]]) -> None:
    """Raise if products with a Jacobian differ from the JVP or the VJP of the traced function.

    Args:
        found: the terms, for each output, for each input.

    Raises:
        RuntimeError: the products differ: entries are missing or wrong.
        ValueError: the function is complex.
    """
    shapes = [(tuple(y.shape), y.dtype) for y in trace.results], [(v.shape, v.dtype) for v in trace.variables]
    if any([dtype.kind == "c" for side in shapes for _, dtype in side]):
        raise errors.jacobian_check_complex()
    floor = _floor(trace)
    r = np.random.default_rng(0)
    ys, xs = [[r.uniform(0.5, 1.5, shape).astype(dtype) for shape, dtype in side] for side in shapes]
    flat, points = function_of_leaves(trace)
    try:
        _, tangents = jvp(flat, tuple(points), tuple(_like(points, xs)))
    except NoForwardMode:  # a custom function without JVP; the VJP checks the same entries
        tangents = None
    if tangents is not None:
        for i, (wanted, row) in enumerate(zip(tangents, found, strict=True)):
            parts = [_product(terms, v, ys[i].size) for terms, v in zip(row, xs, strict=True)]
            _compare(f"output {i}", "JVP", parts, _numbers(wanted), ys[i].shape, floor)
    outputs, pull = vjp(flat, *points)
    cotangents = pull(tuple(_like(outputs, ys)))
    for k, wanted in enumerate(cotangents):
        parts = [_product(found[i][k], g, xs[k].size, transposed=True) for i, g in enumerate(ys)]
        _compare(f"input {k}", "VJP", parts, _numbers(wanted), xs[k].shape, floor)


def _like(points: Sequence[object], arrays: Sequence[object]) -> list[Any]:
    """Convert arrays to tensors where the points are tensors."""
    return [wrap(array) if isinstance(point, Tensor) else array for point, array in zip(points, arrays, strict=True)]


def _numbers(x: object) -> Any:
    return np.asarray(data_of(unwrap_array(x)))


def _product(terms: list[Term], v: AnyArray, size: int, transposed: bool = False) -> tuple[Any, Any]:
    """Return the product of a Jacobian and a vector, and the product of their absolute values."""
    total, scale = np.zeros(size), np.zeros(size)
    for term in terms:
        rows, cols, vals = term.entries()
        own, other = (cols, rows) if transposed else (rows, cols)
        summands = _numbers(vals) * v.reshape(-1)[other]
        total += np.bincount(own, summands, size)
        scale += np.bincount(own, abs(summands), size)
    return total, scale


def _floor(trace: JacobianTrace) -> float:
    """Estimate the size of derivatives before cancellation: the largest summand of a result over the largest argument."""
    summands, todo, seen = [y.primal for y in trace.results], [y.origin for y in trace.results], set()
    while todo:
        origin = todo.pop()
        if type(origin) is tuple and origin[0].seq not in seen:
            step = origin[0]
            seen.add(step.seq)
            summands += step.outs
            if step.prim.kind == "linear" or step.prim.name in ("add", "sub"):
                todo += step.origins
    point = _largest([data_of(unwrap_array(p)) for p in trace.points])
    return _largest(summands) / point if point else 0.0


def _largest(arrays: Sequence[object]) -> float:
    sizes = [np.abs(x[np.isfinite(x)]).max(initial=0) for x in arrays if type(x) is ndarray and x.dtype.kind in "fc"]
    return float(max(sizes, default=0))


def _compare(
    where: str, what: str, parts: Sequence[tuple[AnyArray, ...]], wanted: Any, shape: tuple[int, ...], floor: float
) -> None:
    found = np.sum([total for total, _ in parts], 0)
    scale = np.sum([scale for _, scale in parts], 0) + abs(wanted.reshape(-1))
    expected = wanted.reshape(-1)
    limits = np.finfo(wanted.dtype)
    tolerance = TOLERANCE * float(limits.eps) * math.sqrt(max(found.size, 1)) * (scale + floor) + float(limits.tiny)
    bad = np.flatnonzero(~((abs(found - expected) <= tolerance) | (np.isnan(found) & np.isnan(expected))))
    if bad.size:
        index = tuple([int(i) for i in np.unravel_index(bad[0], shape)])
        raise errors.jacobian_check(
            where, what, index, f"{found[bad[0]]:.6g}", f"{expected[bad[0]]:.6g}", int(bad.size), int(found.size)
        )
