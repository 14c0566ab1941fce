"""Choose whether a call is traced, replayed or run eagerly, so that the cost of compiling is bounded.

``Compiled`` calls its ``TraceBudget`` before it traces or looks up a trace, and records the seconds of each call there.

This is the ski-rental algorithm. An eager call pays rent. A trace is a purchase, which may never pay off. A compiled function buys
its first trace at once. It buys another one when its eager calls have taken as long as all purchases so far. So purchases never take
longer than eager calls, apart from the last one. Half of the seconds that replays save pays for purchases, too. For every sequence of calls

    seconds <= max_slowdown * (seconds of eager calls) + (the longest trace) + ALLOWANCE

with ``max_slowdown = 2``. Three more rules keep this true, and useful:

- A quarter of the purchases may be lookups: lookups that find no trace, and replays that are not known to be faster than eager
  calls. If they have taken longer, calls run eagerly without a lookup until the eager seconds have caught up.
- A trace whose replays take longer than eager calls is not used. Eager seconds are measured when a call runs eagerly anyway. A
  trace that may be slower is compared with one or two eager calls.
- After ``TRUSTED`` traces in a row that have not made calls faster, a new kind of call must pay for its own trace, and must account
  for at least 1/``SHARE`` of all eager seconds. So one-off kinds of calls are traced more and more rarely.

The clock is elapsed time, not processor time: the caller waits for elapsed time, which includes the threads of BLAS. Its clock is
also cheaper to read.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter

from chainrule._src.messages.message_parts import counted

SAVED = 0.5  # fraction of saved seconds that pays for purchases: useless traces cannot use up all savings
MEASURED_AFTER = 64  # replays of a trace after which an eager call is measured, to compute the savings
ALLOWANCE = 0.1  # seconds of purchases that are free: less than the import of NumPy takes
LOOKUPS = 0.25  # fraction of purchases that lookups may take
SPENT = 0.7  # fraction of the allowed seconds that is spent: the rest covers overheads that are not measured
TRUSTED = 8
SHARE = 16  # a kind of call that pays for its own trace must have at least 1/SHARE of all eager seconds
KINDS = 512  # kinds of calls whose eager seconds are stored; at most SHARE of them can have such a share
NUMPY_CALL = 0.2e-6  # minimum seconds of an eager NumPy call
JUDGED = 16  # replays after which a trace can be judged to be slower
CLOSE = 1.25  # tolerance: replays may take this many times as long as eager calls, since few calls are measured
WRAPPER = 4e-6  # approximate seconds of overhead of an eager run by a compiled function, besides the lookup
ENTRY = 3e-6  # the part of WRAPPER before the first clock reading
WASTED = 64  # eager calls in a row after which a warning may name the cause

#: seconds of purchases of all compiled functions: an eager call of one may contain purchases of another
_purchases = 0.0


def _stopped() -> float:
    return 0.0


class ReplaySpeed:
    """The measured seconds of replays of a trace and of eager calls.

    Attributes:
        replay, eager: the shortest replay and eager call, in seconds; replays, eager_runs: the number of measurements.
        last: the seconds of the last replay.
        unproven: seconds of replays that may have been slower than eager calls.
        counted: the number of replays that are recorded as savings.
        needs_eager_call: whether an eager call is needed to compute savings.
    """

    __slots__ = ("counted", "eager", "eager_runs", "last", "needs_eager_call", "replay", "replays", "unproven")

    def __init__(self, eager: float = inf, eager_runs: int = 0) -> None:
        self.eager, self.eager_runs = eager, eager_runs
        self.replay, self.last, self.replays = inf, inf, 0
        self.unproven, self.counted, self.needs_eager_call = 0.0, 0, False

    @property
    def is_known(self) -> bool:
        """Whether ``eager`` is reliable. The first eager call may be slow, since it fills caches."""
        return self.eager_runs > 1 or (self.eager_runs == 1 and 2 * self.replay <= self.eager)

    @property
    def is_slower(self) -> bool:
        """Whether replays are known to take longer than eager calls."""
        return self.is_known and self.replays > JUDGED and self.replay > CLOSE * self.eager + WRAPPER

    def least_eager(self, calls: int) -> float:
        """Return a lower bound of the seconds of an eager call that makes ``calls`` NumPy calls."""
        return max(calls * NUMPY_CALL, self.eager) if self.is_known else calls * NUMPY_CALL

    def is_faster(self, calls: int) -> bool:
        """Return whether replays of ``calls`` NumPy calls are known to take no longer than eager calls."""
        return self.replay <= calls * NUMPY_CALL or (self.is_known and self.replay <= CLOSE * self.eager + WRAPPER)


class TraceBudget:
    """The budget of one compiled function, in seconds.

    Args:
        max_slowdown: all calls may take this many times as long as eager calls. With None there is no bound: the clock returns 0.
        clock: returns seconds.

    Attributes:
        eager: seconds of eager calls; saved: seconds that replays have saved.
        tracing, lookups, wrapping: seconds of purchases. ``tracing``: of traces. ``lookups``: of lookups, and of replays beyond
            the time of eager calls. ``wrapping``: of the overhead of eager runs.
        longest: seconds of the longest trace.
        traces, misses: the number of traces, and of calls that ran eagerly because they had no trace.
    """

    def __init__(self, max_slowdown: float | None = 2.0, clock: Callable[[], float] | None = None) -> None:
        if max_slowdown is not None and not max_slowdown >= 1:
            raise ValueError(f"compile: max_slowdown is at least 1, or None, not {max_slowdown!r}")
        self.max_slowdown = max_slowdown
        self.clock: Callable[[], float] = (clock or perf_counter) if max_slowdown is not None else _stopped
        self.eager = self.saved = self.tracing = self.lookups = self.wrapping = self.longest = 0.0
        self.traces = self.misses = 0
        self._numpy_call = inf  # the least measured seconds of eager calls, per NumPy call
        self._rate = SPENT * ((max_slowdown or 2.0) - 1)
        self._unproven = 0  # traces since a replay was last shown to be faster
        self._ended = 0.0  # the clock at the end of the last eager call
        self._streak, self._streak_seconds = 0, 0.0  # eager calls in a row, and their seconds
        self._kinds: dict[
            int, tuple[float, float, int]
        ] = {}  # by kind: eager seconds, the shortest call, number of calls

    # -- decisions ---------------------------------------------------------------------------------------------------

    @property
    def limit(self) -> float:
        """The seconds that purchases may take."""
        return self._rate * (self.eager + SAVED * self.saved) + ALLOWANCE

    def may_trace(self, kind: int) -> bool:
        """Return whether a call without a trace may be traced.

        Args:
            kind: a key that is equal for calls that could share a trace.
        """
        if self.tracing + self.lookups + self.wrapping > self.limit:
            return False
        if self._unproven < TRUSTED:
            return True
        seconds, _, _ = self._kinds.get(kind, (0.0, 0.0, 0))
        return seconds >= max(self.tracing / self.traces, self.eager / SHARE)

    def may_look_up(self) -> bool:
        """Return whether a call may look up a trace."""
        return self.lookups <= LOOKUPS * self.limit

    def wants_eager_run(self, speed: ReplaySpeed) -> bool:
        """Return whether a call that has a trace should run eagerly, to measure it."""
        if speed.is_known:
            return False
        return (
            speed.needs_eager_call
            or speed.unproven >= LOOKUPS * ALLOWANCE / 2
            or self.lookups > LOOKUPS * self.limit / 2
        )

    @property
    def is_wasted(self) -> bool:
        """Whether ``WASTED`` calls in a row had no trace, so that a warning is due."""
        return self._streak >= WASTED and self._streak_seconds > 4 * self.longest > 0

    # -- recording -----------------------------------------------------------------------------------------------------

    def record_trace(self, seconds: float, kind: int | None) -> None:
        """Record the seconds of a trace. ``kind`` is None for a failed one."""
        self._buy(seconds)
        self.tracing += seconds
        self.longest = max(self.longest, seconds)
        if kind is not None:
            self.traces += 1
            self._unproven += 1
            self._kinds.pop(kind, None)

    def start_eager(self) -> tuple[float, float, float]:
        """Return the argument of :meth:`end_eager` for an eager call that begins now."""
        return self.clock(), self.eager, _purchases

    def end_eager(self, start: tuple[float, float, float], looked_up: float = 0.0, kind: int | None = None) -> float:
        """Record an eager call, and return its seconds.

        Args:
            start: the result of :meth:`start_eager`.
            looked_up: seconds of the lookup before the call.
            kind: as for :meth:`may_trace`, if the call had no trace.
        """
        begin, eager, purchases = start
        self._ended = self.clock()
        seconds = max(self._ended - begin - (_purchases - purchases), 0.0)
        if eager + seconds > self.eager:  # recursive calls have recorded their part already
            self.eager = eager + seconds
        if looked_up:
            self._buy(looked_up)
            self.lookups += looked_up
        if kind is not None:
            self.misses += 1
            self._streak, self._streak_seconds = self._streak + 1, self._streak_seconds + seconds
            total, shortest, count = self._kinds.get(kind, (0.0, inf, 0))
            self._kinds[kind] = total + seconds, min(shortest, seconds), count + 1
            if len(self._kinds) > KINDS:
                self._kinds = {k: kind for k, kind in self._kinds.items() if kind[0] * KINDS > self.eager}
        return seconds

    def end_call(self) -> None:
        """Record the overhead of a call around an eager run that has just ended."""
        self.wrapping += self.clock() - self._ended + ENTRY

    def record_replay(self, speed: ReplaySpeed, seconds: float, calls: int) -> None:
        """Record a replay of a trace of ``calls`` NumPy calls, with its lookup."""
        seconds, speed.last = (
            min(seconds, speed.last),
            seconds,
        )  # the lesser of two: the other may have been interrupted
        speed.replay, speed.replays = min(speed.replay, seconds), speed.replays + 1
        eager_is_known = speed.is_known
        if eager_is_known:
            self._numpy_call = min(self._numpy_call, speed.eager / max(calls, 1))
        else:
            speed.unproven += max(seconds - calls * NUMPY_CALL, 0.0)
        eager = speed.eager if eager_is_known else calls * (self._numpy_call if self._numpy_call < inf else NUMPY_CALL)
        self._buy(max(seconds - eager, 0.0))
        self.lookups = max(self.lookups + seconds - eager, 0.0)  # savings of replays pay for failed lookups
        self._streak, self._streak_seconds = 0, 0.0

    def record_comparison(self, speed: ReplaySpeed, seconds: float) -> None:
        """Record an eager call that was run to compare it with replays."""
        speed.eager, speed.eager_runs = min(speed.eager, seconds), speed.eager_runs + 1

    def count_savings(self, speed: ReplaySpeed, replays: int, calls: int) -> None:
        """Record the seconds that the replays of a trace have saved. ``replays`` is their number so far."""
        if replays > MEASURED_AFTER and not speed.is_known:
            speed.needs_eager_call = True
        else:
            saved = max(speed.least_eager(calls) - speed.replay, 0.0)
            self.saved += saved * (replays - speed.counted)
            speed.counted = replays

    def record_faster_replay(self) -> None:
        """Note that replays of another trace are faster than eager calls."""
        self._unproven = 0

    def speed_of(self, kind: int) -> ReplaySpeed:
        """Return the speed of a new trace, with the eager seconds of its kind of call."""
        _, shortest, count = self._kinds.get(kind, (0.0, inf, 0))
        return ReplaySpeed(shortest, count)

    def _buy(self, seconds: float) -> None:
        global _purchases
        _purchases += seconds

    def describe(self) -> str:
        """Return one line for ``Compiled.explain``."""
        return (
            f"{counted(self.traces, 'trace')} took {self.tracing:.3g} s; {counted(self.misses, 'call')} without a trace ran eagerly, "
            f"in {self.eager:.3g} s"
        )
