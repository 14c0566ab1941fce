"""Folding a long tape: which operations are drawn as one.

Operations are taken in the order they ran. A stretch of them can always be drawn as one node: whatever leaves it is read later
and whatever it reads was there before, so no cycle can come of it. Stretches that repeat (a loop, equal layers) are found
first; if that does not suffice, the rest is cut into pieces.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

_PERIOD = 96


class Stretch(NamedTuple):
    """Operations ``start`` to ``stop``, which are ``times`` the same (1: they are not a repetition)."""

    start: int
    stop: int
    times: int = 1


def fold(kinds: Sequence[Hashable], most: int) -> list[Stretch]:
    """Divide operations of these kinds into at most ``most`` stretches, without which all would be single ones."""
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
                # How often something repeats is no part of what it is: layers with different loops inside are alike.
                kept.append(("repeated", *(int(t) for t in tokens[start : start + (stop - start) // times])))
        stretches, tokens = merged, _numbered(kept)
    if len(stretches) > most:
        stretches = _pieces(stretches, most)
    return stretches


def _numbered(kinds: Sequence[Hashable]) -> np.ndarray:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], dtype=np.int64)


def _repeats(tokens: np.ndarray) -> list[Stretch]:
    """Runs of a pattern, greedily from the left: at each place the period that covers most, the shortest of equals."""
    n = len(tokens)
    covered = np.zeros(n, np.int64)
    period = np.ones(n, np.int64)
    for p in range(1, min(_PERIOD, n // 2) + 1):
        same = np.append(tokens[:-p] == tokens[p:], np.zeros(p, bool))
        ends = np.where(~same, np.arange(n), n)
        run = np.minimum.accumulate(ends[::-1])[::-1] - np.arange(n)  # how long it goes on being the same
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
    """Join neighbours, the shortest first of all evenly, until no more than ``most`` are left."""
    size = -(-len(stretches) // most)
    return [
        Stretch(part[0].start, part[-1].stop, part[0].times if len(part) == 1 else 1)
        for part in (stretches[i : i + size] for i in range(0, len(stretches), size))
    ]
