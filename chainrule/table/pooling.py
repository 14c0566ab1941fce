"""Which element of every window, or row of every bag, is the largest. Taking it is ``gather``, and so are its derivatives."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from chainrule.core.kinds import discrete

ndarray = np.ndarray
_PLACES = {"places": (np.array([[0, 1], [1, 2], [-1, 2]]), np.array([[0, 2], [2, 3]]))}


def _even(places: Any) -> Any:
    """Indices as a slice, if they are evenly spaced."""
    if not places.size:
        return slice(0, 0)
    steps = np.diff(places)
    if (steps != steps[:1]).any() or (steps < 1).any():
        return places
    return slice(int(places[0]), int(places[-1]) + 1, int(steps[0]) if steps.size else 1)


class _Tap(NamedTuple):
    """One place in the windows along an axis: which windows have it, and where it is in each of these."""

    windows: Any  # indices, or slices where they are evenly spaced
    indices: Any
    everywhere: bool


def _taps(places: Any) -> list[_Tap]:
    found = []
    for column in places.T:
        there = np.flatnonzero(column >= 0)
        found.append(_Tap(_even(there), _even(column[there]), len(there) == len(column)))
    return found


def _crossed(places: list[Any]) -> tuple[Any, ...]:
    """The index of a grid in the last axes: slices, where all of ``places`` are."""
    if all(type(p) is slice for p in places):
        return (Ellipsis, *places)
    return (Ellipsis, *np.ix_(*[np.arange(p.start, p.stop, p.step) if type(p) is slice else p for p in places]))


def _lowest(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _positions(places: Any, spatial: Any) -> Any:
    """Where a grid's elements are in the flattened axes."""
    steps = [math.prod(spatial[i + 1 :]) for i in range(len(spatial))]
    return sum(np.ix_(*[np.asarray(p) * n for p, n in zip(places, steps, strict=True)]))


@discrete(samples=[{"shapes": [(2, 3, 4)], **_PLACES}, {"shapes": [(3, 4)], **_PLACES}])
def window_argmax(x, *, places):
    """The position, in the flattened last axes, of every window's largest element: the first of several, or a nan.

    ``places`` holds for each of these axes the indices of its windows, (windows, kernel), −1 where there is nothing.
    """
    lead, spatial = x.shape[: x.ndim - len(places)], x.shape[x.ndim - len(places) :]
    counts, kernel = [len(p) for p in places], [p.shape[1] for p in places]
    if 0 in (*lead, *counts):
        return np.zeros((*lead, *counts), np.int64)
    taps = list(itertools.product(*map(range, kernel)))
    best = np.full((*lead, *counts), _lowest(x.dtype), x.dtype)
    chosen = np.empty(best.shape, np.min_scalar_type(len(taps)))  # the number of the best tap, which only grows
    chosen[...] = _positions([(p >= 0).argmax(1) for p in places], kernel)
    may_be_nan = x.dtype.kind == "f" and np.isnan(x.max())
    for number, along in enumerate(itertools.product(*map(_taps, places))):
        value = x[_crossed([tap.indices for tap in along])]
        into = (...,) if all(tap.everywhere for tap in along) else _crossed([tap.windows for tap in along])
        so_far = best[into]
        better = value > so_far
        if may_be_nan:
            better |= value != value
        chosen[into] = np.maximum(chosen[into], np.multiply(better, number, dtype=chosen.dtype))
        best[into] = np.maximum(so_far, value)
    table = np.stack([_positions([p[:, a] for p, a in zip(places, at, strict=True)], spatial).ravel() for at in taps])
    n = table.shape[1]
    flat = np.multiply(chosen.reshape(-1, n), n, dtype=np.int64)
    flat += np.arange(n)
    return table.reshape(-1).take(flat).reshape(best.shape)


@discrete(samples=[{"shapes": [(5, 2)], "members": np.array([0, 1, 3, 4]), "ends": np.array([0, 2, 2, 4])}])
def bag_argmax(x, *, members, ends):
    """For each bag and column the first row whose element is the largest; 0 for an empty bag.

    Bag i holds the rows ``members[ends[i] : ends[i + 1]]`` of x (rows, columns).
    """
    best = np.zeros((*x.shape[:-2], len(ends) - 1, x.shape[-1]), np.int64)
    for bag, (start, end) in enumerate(itertools.pairwise(ends)):
        if end > start:
            mine = members[start:end]
            best[..., bag, :] = mine[x[..., mine, :].argmax(-2)]
    return best
