"""Measure the run time of statements, with the names of ``torch.utils.benchmark``: :class:`Timer`."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import Params

__all__ = ["Measurement", "Timer"]


@dataclass
class Measurement:
    """The run times of one statement, in seconds.

    Each of ``times`` is the mean over a block of ``number_per_run`` runs.
    """

    number_per_run: int
    raw_times: list[float]
    title: str = ""

    @property
    def times(self) -> list[float]:
        """Return the seconds per run of each block."""
        return [seconds / self.number_per_run for seconds in self.raw_times]

    @property
    def mean(self) -> float:
        """Return the mean of the blocks."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """Return the median of the blocks."""
        return statistics.median(self.times)

    def __repr__(self) -> str:
        unit, scale = next((u, s) for u, s in (("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 0)) if self.median >= s)
        runs = f"{len(self.times)} measurement{'s' * (len(self.times) > 1)}, {self.number_per_run} runs each"
        return f"{self.title}\n  {self.median / (scale or 1e-9):.2f} {unit}\n  {runs}"


class Timer:
    """A timer of a statement, based on Python's :mod:`timeit`.

    Args:
        stmt: the statement to time, as text or a function without arguments.
        setup: a statement or function that runs once before.
        globals: the statement's global names.
        timer: the clock.
        label, sub_label, description: the title of the results.
        num_threads: accepted and ignored; the BLAS manages its own threads (``OMP_NUM_THREADS``).

    >>> from chainrule.utils.benchmark import Timer
    >>> Timer("x + x", globals={"x": 1.0}).timeit(100).number_per_run
    100
    """

    def __init__(
        self, stmt: str | Callable[[], Any] = "pass", setup: str | Callable[[], Any] = "pass", *,
        timer: Callable[[], float] = timeit.default_timer, globals: Params | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None, num_threads: int = 1,
    ) -> None:  # fmt: skip
        self.title = ": ".join(part for part in (label or str(stmt), sub_label, description) if part)
        self._timer = timeit.Timer(stmt, setup, timer, {} if globals is None else dict(globals))

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Measure one block of ``number`` runs, after a warm-up."""
        self._timer.timeit(max(number // 100, 2))
        return Measurement(number, [self._timer.timeit(number)], self.title)

    def blocked_autorange(self, min_run_time: float = 0.2) -> Measurement:
        """Measure blocks of sufficient length for the clock, for at least ``min_run_time`` seconds in total."""
        number, seconds = 1, self._timer.timeit(1)
        while seconds < min(min_run_time, 0.2) / 100:
            number *= 10
            seconds = self._timer.timeit(number)
        times: list[float] = []
        while not times or sum(times) < min_run_time:
            times.append(self._timer.timeit(number))
        return Measurement(number, times, self.title)


show(globals())
