"""The parent side of the worker processes: peers run in turns and sleep while the others run."""

from __future__ import annotations

import json
import math
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from table import Work

SETTLE = 0.05  # seconds between turns: idle BLAS and OpenMP threads spin for some 30 ms before they sleep
LONG = 0.3  # seconds: a longer work is run once per turn


class Failed(Exception):
    """Raised if a worker reports an error."""


class Late(Failed):
    """Raised if a worker does not answer in time."""


class Peer:
    """A worker process and its pipe. The process is restarted if it does not answer within `limit` seconds."""

    def __init__(
        self,
        name: str,
        environment: dict[str, str],
        package: str = "peers",
        limit: float | None = None,
        cpu: bool = False,
    ) -> None:
        self.name, self.environment, self.module, self.limit = name, environment, f"{package}.{name}", limit
        self.cpu = cpu  # whether to measure CPU time
        hello = self._start()
        self.missing: str = hello.get("missing", hello.get("error", ""))
        self.version: str = hello.get("version", name)
        self.kinds: list[str] = hello.get("kinds", [])

    def _start(self) -> dict[str, Any]:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), self.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=self.environment,
        )
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        pipe = self.process.stdout
        if not select.select([pipe], [], [], self.limit)[0]:
            self.process.kill()
            self.process.wait()
            self._start()
            raise Late(f"no answer within {self.limit:.0f} s")
        line = pipe.readline()  # type: ignore[union-attr]
        return json.loads(line) if line else {"error": "its process ended"}

    def _ask(self, work: Work, runs: int, **options: bool) -> dict[str, Any]:
        request = {"kind": work.kind, "sizes": work.sizes, "inner": work.inner, "runs": runs, "cpu": self.cpu}
        request |= options
        try:
            print(json.dumps(request), file=self.process.stdin)
        except BrokenPipeError:
            raise Failed("its process ended") from None
        result = self._hear()
        if "error" in result:
            raise Failed(result["error"])
        return result

    def answer(self, work: Work) -> list[float]:
        """Return one number for each gradient."""
        return self.begin(work)[0]

    def begin(self, work: Work) -> tuple[list[float], float]:
        """Return one number for each gradient, and the microseconds of the first run."""
        found = self._ask(work, 0)
        return found["answer"], found["first"]

    def time(self, work: Work, runs: int, best: bool = False) -> float:
        """Return the microseconds per operation."""
        microseconds: float = self._ask(work, runs)["min" if best else "median"]
        return microseconds

    def first(self, work: Work) -> float:
        """Return the microseconds of the first run of a newly created work."""
        microseconds: float = self._ask(work, 0, fresh=True)["first"]
        return microseconds

    def memory(self, work: Work) -> int | None:
        """Return the peak bytes of a run, or None if the system does not provide them."""
        peak: int | None = self._ask(work, 0, memory=True)["peak"]
        return peak

    def footprint(self, work: Work) -> tuple[int | None, int | None]:
        """Return the peak bytes of a work from its creation to its second run, and the bytes held between runs."""
        found = self._ask(work, 0, footprint=True)
        return found["peak"], found["kept"]

    def runs_for(self, work: Work, seconds: float) -> int:
        """Return the number of runs in a turn."""
        runs = 1
        for share in (0.1, 1.0):
            run_seconds = self.time(work, runs) * work.inner / 1e6
            if run_seconds >= max(LONG, seconds):
                return 1
            runs = max(3 if run_seconds < LONG else 1, math.ceil(seconds * share / run_seconds))
        return runs

    def close(self) -> None:
        self.process.stdin.close()  # type: ignore[union-attr]
        self.process.wait()


@dataclass
class Row:
    """The measurements of one work: microseconds of each peer per turn, or the reasons for missing values."""

    work: Work
    times: dict[str, list[float]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)  # the peers that did not answer within the limit

    def ratios(self, us: str, peer: str) -> list[float]:
        mine, theirs = self.times.get(us, []), self.times.get(peer, [])
        return [m / t for m, t in zip(mine, theirs, strict=False)]


def _same(mine: Sequence[float], theirs: Sequence[float]) -> bool:
    return len(mine) == len(theirs) and all(
        math.isclose(m, t, rel_tol=1e-3, abs_tol=1e-7) for m, t in zip(mine, theirs, strict=True)
    )


def measure(work: Work, peers: list[Peer], pairs: int, seconds: float, best: bool) -> Row:
    """Time a work in `pairs` rounds of turns, after checking that the results of all peers agree."""
    row = Row(work)
    runs: dict[Peer, int] = {}
    answers: dict[str, list[float]] = {}
    for peer in peers:
        if work.kind not in peer.kinds:
            continue
        try:
            answers[peer.name] = peer.answer(work)
            runs[peer] = peer.runs_for(work, seconds)
        except Failed as failure:
            row.notes[peer.name] = f"{peer.name} failed: {failure}"
            if isinstance(failure, Late):
                row.late.add(peer.name)
    ours = answers.get(peers[0].name)
    for name, theirs in answers.items():
        if ours is not None and not _same(ours, theirs):
            row.notes[name] = f"answers differ: {ours} and {theirs}"

    order = list(runs)
    for _ in range(pairs):
        for peer in tuple(order):
            time.sleep(SETTLE)
            try:
                row.times.setdefault(peer.name, []).append(peer.time(work, runs[peer], best))
            except Failed as failure:
                row.notes[peer.name] = f"{peer.name} failed: {failure}"
                row.times.pop(peer.name, None)
                order.remove(peer)
        order.reverse()
    return row
