"""Fold a long tape: choose which consecutive operations are drawn as one node.

``drawing`` and ``folds`` call ``fold``. A range of operations in execution order can always be one node: its results are read
later and its operands were computed before, so it makes no cycle. Repeating ranges (a loop, equal layers) are folded first; if
that does not suffice, neighbours are joined.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

_PERIOD = 96  # longest period of a repetition


class Stretch(NamedTuple):
    """Operations ``start`` to ``stop``, which repeat a pattern ``times`` times (1: no repetition)."""

    start: int
    stop: int
    times: int = 1


def fold(kinds: Sequence[Hashable], most: int) -> list[Stretch]:
    """Divide operations of these kinds into ranges, at most ``most``; a range may be a single operation."""
    stretches = [Stretch(i, i + 1) for i in range(len(kinds))]
    tokens = _numbered(kinds)
    while len(stretches) > most:
        folded = _repeats(tokens)
        if all(times == 1 for _, _, times in folded):
            break
        merged: list[Stretch] = []
        kept: list[Hashable] = []
        for start, stop, times in folded:
            if times == 1:
                merged.extend(stretches[start:stop])
                kept.extend(("as it was", int(t)) for t in tokens[start:stop])
            else:
                merged.append(Stretch(stretches[start].start, stretches[stop - 1].stop, times))
                # Leave out the trip count: layers that contain loops of different length are equal.
                kept.append(("repeated", *(int(t) for t in tokens[start : start + (stop - start) // times])))
        stretches, tokens = merged, _numbered(kept)
    if len(stretches) > most:
        stretches = _pieces(stretches, most)
    return stretches


def _numbered(kinds: Sequence[Hashable]) -> np.ndarray:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], dtype=np.int64)


def _repeats(tokens: np.ndarray) -> list[Stretch]:
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
            found.append(Stretch(i, i + int(covered[i]), int(covered[i] // period[i])))
            i += int(covered[i])
        else:
            found.append(Stretch(i, i + 1))
            i += 1
    return found


def _pieces(stretches: list[Stretch], most: int) -> list[Stretch]:
    """Join neighbours evenly, so that at most ``most`` ranges are left."""
    size = -(-len(stretches) // most)
    return [
        Stretch(part[0].start, part[-1].stop, part[0].times if len(part) == 1 else 1)
        for part in (stretches[i : i + size] for i in range(0, len(stretches), size))
    ]
