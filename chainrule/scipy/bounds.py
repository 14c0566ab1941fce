"""Convert bounds in the structure of the user's containers to SciPy's bounds of a vector.

``minimize`` calls ``element_bounds``, and ``least_squares`` calls ``lower_upper_bounds``.
"""

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

    The bounds have the structure of x0. For each array of x0 they contain None, a pair (low, high), a ``Bounds``, or a pair
    for each element as in SciPy. low and high are None (no bound), a number or an array. A single ``Bounds`` applies to the
    vector of all elements; so does a pair of numbers if x0 is not a sequence.

    Raises:
        ValueError: the structure of the bounds differs from that of x0, or a bound does not fit the shape of an array.
    """
    if bounds is None:
        return None
    if isinstance(bounds, kind):
        sides = [
            _broadcast_bound(side, 0.0, (packing.size,), "bounds")
            for side in (bounds.lb, bounds.ub, bounds.keep_feasible)
        ]
        return kind(*sides[:2], keep_feasible=sides[2] > 0)
    if _is_pair_for_all(bounds, packing):
        bounds = tree_unflatten([bounds] * len(packing.leaves), packing.spec)
    lows, highs, keep = [], [], []
    for at, shape, path in zip(_leaf_bounds(bounds, packing), packing.shapes, packing.paths, strict=True):
        what = "bounds" + path
        low, high = (at.lb, at.ub) if isinstance(at, kind) else _pair(at, shape, what)
        lows.append(_broadcast_bound(low, -np.inf, shape, what))
        highs.append(_broadcast_bound(high, np.inf, shape, what))
        keep.append(_broadcast_bound(getattr(at, "keep_feasible", False), 0.0, shape, what))
    return kind(packing.pack(lows), packing.pack(highs), keep_feasible=packing.pack(keep) > 0)


def _is_pair_for_all(bounds: object, packing: Packing) -> bool:
    pair = type(bounds) is tuple and len(bounds) == 2 and all(side is None or np.isscalar(side) for side in bounds)
    return pair and packing.spec.kind is not None and not issubclass(packing.spec.kind, (tuple, list))


def lower_upper_bounds(bounds: Any, packing: Packing, kind: AnyFunction) -> tuple[FloatVector, FloatVector]:
    """Return the lower and upper bounds of ``least_squares``.

    Each is a number for all elements, or has the structure of x0 with a number or array for each of its arrays. Bounds
    that are not such a pair are read by :func:`element_bounds`.
    """
    if type(bounds) not in (tuple, list) or len(bounds) != 2:
        found = element_bounds(bounds, packing, kind)
        return found.lb, found.ub
    low, high = bounds
    return _side(low, -np.inf, packing, "bounds[0]"), _side(high, np.inf, packing, "bounds[1]")


def _side(bound: object, free: float, packing: Packing, what: str) -> FloatVector:
    places = [bound] * len(packing.leaves) if bound is None or np.isscalar(bound) else _leaf_bounds(bound, packing)
    along = zip(places, packing.shapes, packing.paths, strict=True)
    return packing.pack([_broadcast_bound(at, free, shape, what + path) for at, shape, path in along])


def _leaf_bounds(bounds: object, packing: Packing) -> list[Any]:
    """Return the bounds of each array of x0."""
    try:
        return leaves_like(packing.spec, bounds)
    except ValueError as error:
        raise ValueError(f"the bounds do not have the structure of {packing.what}: {error}") from None


def _pair(at: object, shape: tuple[int, ...], what: str) -> tuple[TensorLike | None, TensorLike | None]:
    """Return (low, high) of an array, from a pair or from a pair for each element."""
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


def _broadcast_bound(bound: object, free: float, shape: tuple[int, ...], what: str) -> ndarray:
    """Broadcast a bound to an array's shape; None becomes ``free``."""
    value = output_value(free if bound is None else array_like(bound), what).astype(float)
    if value.ndim == 1 and value.size == math.prod(shape):
        return value.reshape(shape)  # flat, as in a Bounds
    try:
        return np.broadcast_to(value, shape)
    except ValueError:
        raise ValueError(f"{what} has shape {value.shape}, but the bounded array has shape {shape}") from None
