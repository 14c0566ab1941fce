"""Bounds: from their places in the user's containers to places in the vector."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.tree import leaves_like, tree_unflatten
from chainrule._src.arrays.types import AnyFunction, TensorLike
from chainrule._src.transforms.arguments import array_like
from chainrule.scipy.vectors import FloatVector, Packing, output_value

ndarray = np.ndarray


def element_bounds(bounds: Any, packing: Packing, kind: Any) -> Any:
    """Return the bounds of ``minimize`` as ``kind``, which is ``scipy.optimize.Bounds``.

    They have the structure of x0, and at the place of each array None, a pair (low, high), a ``Bounds``, or as in SciPy a
    pair for each element. low and high are None (no bound), a number or an array. A ``Bounds`` for all is one of the
    vector; so is a pair of numbers where x0 is no sequence.

    Raises:
        ValueError: the bounds have another structure than x0, or don't fit the shape of an array.
    """
    if bounds is None:
        return None
    if isinstance(bounds, kind):
        sides = [_filled(side, 0.0, (packing.size,), "bounds") for side in (bounds.lb, bounds.ub, bounds.keep_feasible)]
        return kind(*sides[:2], keep_feasible=sides[2] > 0)
    if _is_pair_for_all(bounds, packing):
        bounds = tree_unflatten([bounds] * len(packing.leaves), packing.spec)
    lows, highs, keep = [], [], []
    for at, shape, path in zip(_at_leaves(bounds, packing), packing.shapes, packing.paths, strict=True):
        what = "bounds" + path
        low, high = (at.lb, at.ub) if isinstance(at, kind) else _pair(at, shape, what)
        lows.append(_filled(low, -np.inf, shape, what))
        highs.append(_filled(high, np.inf, shape, what))
        keep.append(_filled(getattr(at, "keep_feasible", False), 0.0, shape, what))
    return kind(packing.pack(lows), packing.pack(highs), keep_feasible=packing.pack(keep) > 0)


def _is_pair_for_all(bounds: object, packing: Packing) -> bool:
    pair = type(bounds) is tuple and len(bounds) == 2 and all(side is None or np.isscalar(side) for side in bounds)
    return pair and packing.spec.kind is not None and not issubclass(packing.spec.kind, (tuple, list))


def two_sides(bounds: Any, packing: Packing, kind: AnyFunction) -> tuple[FloatVector, FloatVector]:
    """Return the bounds of ``least_squares``: (low, high), each a number for all or with an array or number for each of x0's.

    What has x0's structure and is no such pair is read as :func:`element_bounds` does.
    """
    if type(bounds) not in (tuple, list) or len(bounds) != 2:
        found = element_bounds(bounds, packing, kind)
        return found.lb, found.ub
    low, high = bounds
    return _side(low, -np.inf, packing, "bounds[0]"), _side(high, np.inf, packing, "bounds[1]")


def _side(bound: object, free: float, packing: Packing, what: str) -> FloatVector:
    places = [bound] * len(packing.leaves) if bound is None or np.isscalar(bound) else _at_leaves(bound, packing)
    along = zip(places, packing.shapes, packing.paths, strict=True)
    return packing.pack([_filled(at, free, shape, what + path) for at, shape, path in along])


def _at_leaves(bounds: object, packing: Packing) -> list[Any]:
    """What of the bounds stands at the place of each array."""
    try:
        return leaves_like(packing.spec, bounds)
    except ValueError as error:
        raise ValueError(f"the bounds do not have the structure of {packing.what}: {error}") from None


def _pair(at: object, shape: tuple[int, ...], what: str) -> tuple[TensorLike | None, TensorLike | None]:
    """Return (low, high) for an array from a pair, or from a pair for each element."""
    if at is None:
        return None, None
    expected = f"{what}: expected None, a pair (low, high), or such a pair for each of {math.prod(shape)} elements"
    if not isinstance(at, (tuple, list, ndarray)):
        raise ValueError(f"{expected}, not {at!r}")
    if type(at) is not ndarray and len(at) == 2 and not any(isinstance(side, (tuple, list)) for side in at):
        return at[0], at[1]
    if len(at) != math.prod(shape) or any(np.isscalar(pair) or pair is None or len(pair) != 2 for pair in at):
        raise ValueError(f"{expected}, not {at!r}")
    lows = [-np.inf if low is None else low for low, _ in at]
    highs = [np.inf if high is None else high for _, high in at]
    return np.reshape(lows, shape), np.reshape(highs, shape)


def _filled(bound: object, free: float, shape: tuple[int, ...], what: str) -> ndarray:
    """Return a bound for each element of an array."""
    value = output_value(free if bound is None else array_like(bound), what).astype(float)
    if value.ndim == 1 and value.size == math.prod(shape):
        return value.reshape(shape)  # as a Bounds has them
    try:
        return np.broadcast_to(value, shape)
    except ValueError:
        raise ValueError(f"{what} has shape {value.shape}, and what it bounds has shape {shape}") from None
