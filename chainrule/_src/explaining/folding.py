"""Fold a long tape: choose which consecutive operations are drawn as one node.

``drawing`` and ``folds`` call ``fold_repeats``. A range of operations in execution order can always be one node: its results are read
later and its operands were computed before, so it makes no cycle. Repeating ranges (a loop, equal layers) are folded first; if
that does not suffice, neighbours are joined.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

_PERIOD = 96  # longest period of a repetition


class OperationRange(NamedTuple):
    """Operations ``start`` to ``stop``, which repeat a pattern ``times`` times (1: no repetition)."""

    start: int
    stop: int
    times: int = 1


def fold_repeats(kinds: Sequence[Hashable], most: int) -> list[OperationRange]:
    """Divide operations of these kinds into ranges, at most ``most``; a range may be a single operation."""
    ranges = [OperationRange(i, i + 1) for i in range(len(kinds))]
    tokens = _numbered(kinds)
    while len(ranges) > most:
        folded = _repeats(tokens)
        if all(times == 1 for _, _, times in folded):
            break
        merged: list[OperationRange] = []
        kept: list[Hashable] = []
        for start, stop, times in folded:
            if times == 1:
                merged.extend(ranges[start:stop])
                kept.extend(("as it was", int(t)) for t in tokens[start:stop])
            else:
                merged.append(OperationRange(ranges[start].start, ranges[stop - 1].stop, times))
                # Leave out the trip count: layers that contain loops of different length are equal.
                kept.append(("repeated", *(int(t) for t in tokens[start : start + (stop - start) // times])))
        ranges, tokens = merged, _numbered(kept)
    if len(ranges) > most:
        ranges = _pieces(ranges, most)
    return ranges


def _numbered(kinds: Sequence[Hashable]) -> np.ndarray:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], dtype=np.int64)


def _repeats(tokens: np.ndarray) -> list[OperationRange]:
    """Find repetitions greedily from the left: at each index the period that covers most, the shortest if several do."""
    n = len(tokens)
    covered = np.zeros(n, np.int64)
    period = np.ones(n, np.int64)
    for p in range(1, min(_PERIOD, n // 2) + 1):
        same = np.append(tokens[:-p] == tokens[p:], np.zeros(p, bool))
        ends = np.where(~same, np.arange(n), n)
        run = np.minimum.accumulate(ends[::-1])[::-1] - np.arange(n)  # length of the repetition
        cover = (run + p) // p * p
        better = (run >= p) & (cover > covered) & (cover >= 3)
        covered[better] = cover[better]
        period[better] = p
    found, i = [], 0
    while i < n:
        if covered[i]:
            found.append(OperationRange(i, i + int(covered[i]), int(covered[i] // period[i])))
            i += int(covered[i])
        else:
            found.append(OperationRange(i, i + 1))
            i += 1
    return found


def _pieces(ranges: list[OperationRange], most: int) -> list[OperationRange]:
    """Join neighbours evenly, so that at most ``most`` ranges are left."""
    size = -(-len(ranges) // most)
    return [
        OperationRange(part[0].start, part[-1].stop, part[0].times if len(part) == 1 else 1)
        for part in (ranges[i : i + size] for i in range(0, len(ranges), size))
    ]
