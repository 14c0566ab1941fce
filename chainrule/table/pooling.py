"""Which element of every window is the largest. Taking it is ``gather``, and so are its derivatives."""

from __future__ import annotations

import itertools
import math

import numpy as np

from chainrule.core.kinds import discrete

ndarray = np.ndarray
_PLACES = {"places": (np.array([[0, 1], [1, 2], [-1, 2]]), np.array([[0, 2], [2, 3]]))}


@discrete(samples=[{"shapes": [(2, 3, 4)], **_PLACES}, {"shapes": [(3, 4)], **_PLACES}])
def window_argmax(x, *, places):
    """The position, in the flattened last axes, of every window's largest element: the first of several, or a nan.

    ``places`` holds for each of these axes the indices of its windows, (windows, kernel), −1 where there is nothing.
    """
    k = len(places)
    spatial = x.shape[x.ndim - k :]
    flat = x.reshape(*x.shape[: x.ndim - k], math.prod(spatial))
    counts = tuple(p.shape[0] for p in places)
    best = np.zeros((*x.shape[: x.ndim - k], *counts), x.dtype)
    where = np.full(best.shape, -1)
    for at in itertools.product(*[range(p.shape[1]) for p in places]):
        chosen = np.ix_(*[p[:, a] for p, a in zip(places, at, strict=True)])
        inside = np.broadcast_to(np.logical_and.reduce([np.broadcast_to(c >= 0, counts) for c in chosen]), counts)
        position = np.ravel_multi_index(tuple(np.maximum(c, 0) for c in chosen), spatial) if flat.size else 0
        position = np.broadcast_to(position, counts)
        value = np.take(flat, position, axis=-1)
        better = inside & ((where < 0) | (value > best) | (value != value))
        best = np.where(better, value, best)
        where = np.where(better, position, where)
    return where
