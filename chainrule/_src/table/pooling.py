"""The argmax of every window or bag. Pooling then is ``gather`` at these indices, and so are its derivatives.

``nn.pooling`` calls ``window_argmax``, and ``nn.sampling`` calls ``bag_argmax``.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.types import AnyArray, NumpyDType
from chainrule._src.rules.kinds import call, discrete
from chainrule._src.tape.foreign import constant_like, zeros_on_device_of

ndarray = np.ndarray
_PLACES = {"places": (np.array([[0, 1], [1, 2], [-1, 2]]), np.array([[0, 2], [2, 3]]))}


def _as_slice(indices: AnyArray) -> AnyArray | slice:
    """Return evenly spaced indices as a slice, others unchanged."""
    if not indices.size:
        return slice(0, 0)
    steps = np.diff(indices)
    if (steps != steps[:1]).any() or (steps < 1).any():
        return indices
    return slice(int(indices[0]), int(indices[-1]) + 1, int(steps[0]) if steps.size else 1)


class _Tap(NamedTuple):
    """One position in the windows of a grid: which windows contain it (None: all), and its offset in them."""

    windows: tuple[Any, ...] | None
    indices: tuple[Any, ...]


class _Plan(NamedTuple):
    """All data that depend on the window positions only."""

    taps: list[_Tap]
    first: Any  # for every window the number of its first tap
    table: Any  # for every tap and window the index in the flattened axes


def _cached_plan(places: tuple[AnyArray, ...], spatial: tuple[int, ...]) -> _Plan:
    """Return the cached plan of a grid of windows: programs use few grids, and use them repeatedly."""
    return _plan(tuple([(p.shape, p.astype(np.int64, copy=False).tobytes()) for p in places]), spatial)


@functools.lru_cache(64)
def _plan(encoded_places: tuple[tuple[tuple[int, int], bytes], ...], spatial: tuple[int, ...]) -> _Plan:
    places = [np.frombuffer(data, np.int64).reshape(shape) for shape, data in encoded_places]
    taps, table = [], []
    for columns in itertools.product(*[p.T for p in places]):
        valid = [np.flatnonzero(column >= 0) for column in columns]
        everywhere = all(len(t) == len(column) for t, column in zip(valid, columns, strict=True))
        indices = _grid_index([column[t] for column, t in zip(columns, valid, strict=True)])
        taps.append(_Tap(None if everywhere else _grid_index(valid), indices))
        table.append(_positions(columns, spatial).ravel())
    first = _positions([(p >= 0).argmax(1) for p in places], [p.shape[1] for p in places])
    return _Plan(taps, first, np.stack(table))


def _grid_index(places: list[AnyArray]) -> tuple[Any, ...]:
    """Return the index of a grid in the last axes: slices if all of ``places`` are evenly spaced."""
    even = [_as_slice(p) for p in places]
    return (Ellipsis, *(even if all(type(p) is slice for p in even) else np.ix_(*places)))


def _lowest(dtype: NumpyDType) -> float:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _positions(places: tuple[AnyArray, ...] | list[AnyArray], spatial: tuple[int, ...] | list[int]) -> Any:
    """Return the indices of a grid's elements in the flattened axes."""
    steps = [math.prod(spatial[i + 1 :]) for i in range(len(spatial))]
    return sum(np.ix_(*[np.asarray(p) * n for p, n in zip(places, steps, strict=True)]))


@discrete(samples=[call((2, 3, 4), **_PLACES), call((3, 4), **_PLACES)])
def window_argmax(x: Any, *, places: tuple[AnyArray, ...]) -> AnyArray:
    """Return the index, in the flattened last axes, of every window's largest element: the first of several, or a NaN.

    ``places`` holds for each of these axes the indices of its windows, (windows, kernel), with −1 for padding.
    """
    lead, spatial = x.shape[: x.ndim - len(places)], x.shape[x.ndim - len(places) :]
    counts = [len(p) for p in places]
    if 0 in (*lead, *counts):
        return np.zeros((*lead, *counts), np.int64)
    if not is_array(x):
        return _argmax_of_windows(x, places)
    taps, first, table = _cached_plan(places, spatial)
    best = np.full((*lead, *counts), _lowest(x.dtype), x.dtype)
    chosen = np.empty(best.shape, np.min_scalar_type(len(taps)))  # the number of the best tap so far
    chosen[...] = first
    may_be_nan = x.dtype.kind == "f" and np.isnan(x.max())
    for number, tap in enumerate(taps):
        value = np.ascontiguousarray(x[tap.indices])
        so_far = best if tap.windows is None else best[tap.windows]
        better = value > so_far
        if may_be_nan:
            better |= value != value
        number_here = np.multiply(better, number, dtype=chosen.dtype)
        if tap.windows is None:
            np.maximum(chosen, number_here, out=chosen)
            np.maximum(best, value, out=best)
        else:
            chosen[tap.windows] = np.maximum(chosen[tap.windows], number_here)
            best[tap.windows] = np.maximum(so_far, value)
    n = table.shape[1]
    flat = np.multiply(chosen.reshape(-1, n), n, dtype=np.int64)
    flat += np.arange(n)
    return table.reshape(-1).take(flat).reshape(best.shape)


def _argmax_of_windows(x: AnyArray, places: AnyArray) -> Any:
    """Compute ``window_argmax`` for arrays of other libraries: copy every window to a line, and take the argmax of each."""
    spatial = x.shape[x.ndim - len(places) :]
    axes = len(places)
    windows: Any = 0
    valid: Any = True
    for k, (p, n) in enumerate(zip(places, spatial, strict=True)):  # p: (windows, kernel) of this axis
        shape = [1] * (2 * axes)
        shape[k], shape[axes + k] = np.shape(p)
        along = np.reshape(p, shape)
        windows, valid = windows * n + along, valid & (along >= 0)
    counts = windows.shape[:axes]
    windows = np.where(valid, windows, -1).reshape(math.prod(counts), -1)
    lines = np.take(np.reshape(x, (*x.shape[: x.ndim - axes], math.prod(spatial))), np.maximum(windows, 0), axis=-1)
    best = np.argmax(np.where(windows >= 0, lines, _lowest(x.dtype)), axis=-1)
    chosen = constant_like(x, windows.ravel())[best + np.arange(len(windows)) * windows.shape[1]]
    first = np.take_along_axis(windows, np.argmax(windows >= 0, axis=1)[:, None], 1)[:, 0]
    return np.reshape(np.where(chosen >= 0, chosen, first), (*x.shape[: x.ndim - axes], *counts))


@discrete(samples=[call((5, 2), members=np.array([0, 1, 3, 4]), ends=np.array([0, 2, 2, 4]))])
def bag_argmax(x: AnyArray, *, members: AnyArray, ends: Any) -> AnyArray:
    """Return for each bag and column the first row with the largest element; 0 for an empty bag.

    Bag i holds the rows ``members[ends[i] : ends[i + 1]]`` of x (rows, columns).
    """
    best = zeros_on_device_of(x, (*x.shape[:-2], len(ends) - 1, x.shape[-1]), np.int64)
    for bag, (start, end) in enumerate(itertools.pairwise(ends)):
        if end > start:
            bag_rows = members[start:end]
            best[..., bag, :] = constant_like(x, bag_rows)[np.argmax(x[..., bag_rows, :], axis=-2)]
    return best
