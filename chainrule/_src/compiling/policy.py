"""Whether a call is traced, replayed or run eagerly: an account of seconds, which bounds what compiling can cost.

This is the ski-rental argument. An eager call pays rent; a trace is a purchase, which may be in vain. A compiled function buys its
first trace at once. It buys another one when its eager calls have taken as long as all purchases so far. Then purchases never take
longer than eager calls, apart from the last one. Half of what replays save pays for purchases, too. For every sequence of calls

    seconds <= max_slowdown * (seconds of eager calls) + (the longest trace) + ALLOWANCE

with ``max_slowdown = 2``. Three more rules keep this true, and useful:

- A quarter of the purchases may be lookups: those that find no trace, and replays that are not known to be faster than eager calls.
  If they have taken longer, calls run eagerly without a lookup until the eager seconds have caught up.
- A replay that takes longer than an eager call is not used. Eager seconds are measured when a call runs eagerly anyway. A trace
  that is slow enough to be in doubt is compared with one or two eager calls.
- After ``TRUSTED`` traces in a row that have not made calls faster, a new kind of call has to pay for its trace itself, and to make
  up a good part of all eager seconds. So traces of kinds that never come again get rarer and rarer.

Elapsed time is measured, not processor time: it is what the caller waits for, it includes the work of other threads of the BLAS, and
its clock is the cheaper one to read.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter

SAVED = 0.5  # the part of saved seconds that pays for purchases: useless traces don't use up what others save
ASKED = 64  # replays of a trace after which eager calls tell what they have saved, where it matters
ALLOWANCE = 0.1  # seconds of purchases that need not be paid for: less than the import of NumPy takes
LOOKUPS = 0.25  # the part of all purchases that lookups may be
SPENT = 0.7  # the part of what purchases may take that is spent: the rest is for what is not measured
TRUSTED = 8
SHARE = 16  # a kind of call that pays for its trace itself has this part of all eager seconds
KINDS = 512  # whose eager seconds are known: more than have such a part
NUMPY_CALL = 0.2e-6  # seconds that an eager call of NumPy takes at least
JUDGED = 16  # replays that show that a trace is slower
CLOSE = 1.25  # replays may take this many times as long as eager calls, since both are measured in a few calls
WRAPPER = 4e-6  # seconds that a compiled function takes to run eagerly, besides the function and the lookup, about
ENTRY = 3e-6  # those of them before its first look at the clock
WASTED = 64  # calls in a row, and their seconds in traces, after which a warning says why none was replayed

#: seconds of purchases of all compiled functions: an eager call of one may contain those of another
_purchases = 0.0


def _stopped() -> float:
    return 0.0


class ReplaySpeed:
    """Whether the replays of a trace are faster than eager calls.

    Attributes:
        replay, eager: the shortest seconds of a replay and of an eager call; replays, eager_runs: how many were measured.
        last: the seconds of the last replay.
        unproven: seconds of replays that may have taken longer than eager calls.
        counted: how many replays have been booked as savings.
        asked: whether somebody wants to know ``eager``.
    """

    __slots__ = ("asked", "counted", "eager", "eager_runs", "last", "replay", "replays", "unproven")

    def __init__(self, eager: float = inf, eager_runs: int = 0) -> None:
        self.eager, self.eager_runs = eager, eager_runs
        self.replay, self.last, self.replays = inf, inf, 0
        self.unproven, self.counted, self.asked = 0.0, 0, False

    @property
    def is_known(self) -> bool:
        """Whether ``eager`` can be relied on. The first eager call may be slow, since it fills caches."""
        return self.eager_runs > 1 or (self.eager_runs == 1 and 2 * self.replay <= self.eager)

    @property
    def is_slower(self) -> bool:
        """Whether replays are known to take longer than eager calls."""
        return self.is_known and self.replays > JUDGED and self.replay > CLOSE * self.eager + WRAPPER

    def least_eager(self, calls: int) -> float:
        """Seconds that an eager call of so many NumPy calls takes at least, as far as is known."""
        return max(calls * NUMPY_CALL, self.eager) if self.is_known else calls * NUMPY_CALL

    def is_faster(self, calls: int) -> bool:
        """Whether replays of so many NumPy calls are known to take no longer than eager calls."""
        return self.replay <= calls * NUMPY_CALL or (self.is_known and self.replay <= CLOSE * self.eager + WRAPPER)


class TraceBudget:
    """The account of one compiled function.

    Args:
        max_slowdown: how many times the seconds of eager calls all calls may take; None: no matter how many. Then no second
            passes, so that nothing has a cost.
        clock: gives seconds.

    Attributes:
        eager: seconds of calls that ran eagerly; saved: those that replays have saved.
        tracing, lookups, wrapping: seconds of purchases: of traces, of lookups and replays beyond what eager calls would have
            taken, and of running calls eagerly besides what they do.
        longest: seconds of the longest trace.
        traces, misses: how many traces were kept, and how many calls ran eagerly since they had none.
    """

    def __init__(self, max_slowdown: float | None = 2.0, clock: Callable[[], float] | None = None) -> None:
        if max_slowdown is not None and not max_slowdown >= 1:
            raise ValueError(f"compile: max_slowdown is at least 1, or None, not {max_slowdown!r}")
        self.max_slowdown = max_slowdown
        self.clock: Callable[[], float] = (clock or perf_counter) if max_slowdown is not None else _stopped
        self.eager = self.saved = self.tracing = self.lookups = self.wrapping = self.longest = 0.0
        self.traces = self.misses = 0
        self._numpy_call = inf  # seconds of an eager call for each call of NumPy, the least that is known
        self._rate = SPENT * ((max_slowdown or 2.0) - 1)
        self._unproven = 0  # traces in a row, since a trace served to make a call faster
        self._ended = 0.0  # the last eager call
        self._streak, self._streak_seconds = 0, 0.0  # of eager calls, without a replay of a trace
        self._kinds: dict[int, tuple[float, float, int]] = {}  # their eager seconds, the shortest call, and how many

    # -- decisions ---------------------------------------------------------------------------------------------------

    @property
    def limit(self) -> float:
        """The seconds that purchases may take."""
        return self._rate * (self.eager + SAVED * self.saved) + ALLOWANCE

    def may_trace(self, kind: int) -> bool:
        """Whether a call without a trace may be traced.

        Args:
            kind: equal for calls that one trace would serve.
        """
        if self.tracing + self.lookups + self.wrapping > self.limit:
            return False
        if self._unproven < TRUSTED:
            return True
        seconds, _, _ = self._kinds.get(kind, (0.0, 0.0, 0))
        return seconds >= max(self.tracing / self.traces, self.eager / SHARE)

    def may_look_up(self) -> bool:
        """Whether a call may look for a trace."""
        return self.lookups <= LOOKUPS * self.limit

    def wants_eager_run(self, speed: ReplaySpeed) -> bool:
        """Whether a call that has a trace is to run eagerly, to be compared."""
        if speed.is_known:
            return False
        return speed.asked or speed.unproven >= LOOKUPS * ALLOWANCE / 2 or self.lookups > LOOKUPS * self.limit / 2

    @property
    def is_wasted(self) -> bool:
        """Whether so many calls in a row had no trace that the user should know."""
        return self._streak >= WASTED and self._streak_seconds > 4 * self.longest > 0

    # -- bookings ----------------------------------------------------------------------------------------------------

    def traced(self, seconds: float, kind: int | None) -> None:
        """Book a trace; ``kind`` is None for one that failed."""
        self._buy(seconds)
        self.tracing += seconds
        self.longest = max(self.longest, seconds)
        if kind is not None:
            self.traces += 1
            self._unproven += 1
            self._kinds.pop(kind, None)

    def start_eager(self) -> tuple[float, float, float]:
        """Return what :meth:`end_eager` is to be given when an eager call has ended."""
        return self.clock(), self.eager, _purchases

    def end_eager(self, start: tuple[float, float, float], looked_up: float = 0.0, kind: int | None = None) -> float:
        """Book an eager call, and return its seconds.

        Args:
            start: of :meth:`start_eager`.
            looked_up: seconds of the lookup before it.
            kind: if it had no trace, as for :meth:`may_trace`.
        """
        begin, eager, purchases = start
        self._ended = self.clock()
        seconds = max(self._ended - begin - (_purchases - purchases), 0.0)
        if eager + seconds > self.eager:  # which contains eager calls that the function made of itself
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
                self._kinds = {k: known for k, known in self._kinds.items() if known[0] * KINDS > self.eager}
        return seconds

    def end_call(self) -> None:
        """Book what a call took besides an eager call that has just ended, and its lookup."""
        self.wrapping += self.clock() - self._ended + ENTRY

    def replayed(self, speed: ReplaySpeed, seconds: float, calls: int) -> None:
        """Book a replay of a trace of so many NumPy calls, with its lookup."""
        seconds, speed.last = min(seconds, speed.last), seconds  # the lesser of two: one may have been interrupted
        speed.replay, speed.replays = min(speed.replay, seconds), speed.replays + 1
        known = speed.is_known
        if known:
            self._numpy_call = min(self._numpy_call, speed.eager / max(calls, 1))
        else:
            speed.unproven += max(seconds - calls * NUMPY_CALL, 0.0)
        eager = speed.eager if known else calls * (self._numpy_call if self._numpy_call < inf else NUMPY_CALL)
        self._buy(max(seconds - eager, 0.0))
        self.lookups = max(self.lookups + seconds - eager, 0.0)  # what replays save pays for lookups that find nothing
        self._streak, self._streak_seconds = 0, 0.0

    def compared(self, speed: ReplaySpeed, seconds: float) -> None:
        """Book an eager call that was made to be compared with replays."""
        speed.eager, speed.eager_runs = min(speed.eager, seconds), speed.eager_runs + 1

    def count_savings(self, speed: ReplaySpeed, replays: int, calls: int) -> None:
        """Book what the replays of a trace have saved, of which there were so many up to now."""
        if replays > ASKED and not speed.is_known:
            speed.asked = True
        else:
            saved = max(speed.least_eager(calls) - speed.replay, 0.0)
            self.saved += saved * (replays - speed.counted)
            speed.counted = replays

    def proved(self) -> None:
        """Note that a replay of another trace was faster than an eager call."""
        self._unproven = 0

    def speed_of(self, kind: int) -> ReplaySpeed:
        """The speed of a trace to be made, with the eager seconds of this kind of call."""
        _, shortest, count = self._kinds.get(kind, (0.0, inf, 0))
        return ReplaySpeed(shortest, count)

    def _buy(self, seconds: float) -> None:
        global _purchases
        _purchases += seconds

    def describe(self) -> str:
        """The account in a line."""
        return f"{self.traces} traces took {self.tracing:.3g} s; {self.misses} calls without one ran eagerly, in {self.eager:.3g} s"
