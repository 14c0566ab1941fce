"""Compare the time of gradients with that of their objectives, for ADBench, loops and linear algebra.

python benchmarks/adbench.py [--only PATTERN] [--rounds N] [--peers jax,torch,...] [--limit SECONDS] [--quick]

Each library runs in a process on one core, in float64. After a comparison of results, the processes take turns. Times are
CPU times, the minimum over the blocks of a turn, which reduces the effect of other load; ratios compare times of the same
round, and the tables show the median over the rounds. The first call includes everything up to the first gradient:
recording and planning, jax's trace and compilation, the detection of a Jacobian's sparsity pattern. Memory is the growth
of the process: the peak up to the second call, and between calls.

A library that exceeds the time limit (jax.jit compiles Python loops for minutes) is excluded from that program, and the
tables mark it. All programs together take less than ten minutes.

Measured limits: the first call of a plain loop takes about 40 microseconds per NumPy call in it, two thirds of it for
recording, spread over many small operations; `scan` records its body once. A product that is summed is written to memory
and read again: for `sum(w * x**2)`, a C loop that sums blocks in NumPy's order takes half the time from 10^5 elements on,
which saves a quarter of value and gradient together. Summing rows in the blocks of their operands gains nothing (0.96 to
1.04 of the time, 1.2 for the largest GMM).

Libraries that are not installed are skipped. `--quick` uses small sizes and only checks whether all gradients agree.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from report import Rows, print_table, progress, record, record_option, worker_environment
from table import Work
from turns import SETTLE, Failed, Late, Peer

OBJECTIVE = "numpy"
COLUMNS = {
    "numpy": "objective",
    "compiled": "compiled",
    "eager": "eager",
    "scan": "compiled scan",
    "prepared": "prepared",
    "jax": "jax.jit",
    "torch": "torch",
    "autograd": "autograd",
}
US = ("compiled", "scan", "prepared", "eager")
TOLERANCE = 1e-8
LONG = 3e5  # microseconds: a first call that takes longer is timed once

WORKS = [
    Work("GMM, d 2, k 5, 1,000 points", "gmm", (2, 5, 1000)),
    Work("GMM, d 10, k 25, 1,000 points", "gmm", (10, 25, 1000)),
    Work("GMM, d 20, k 200, 1,000 points", "gmm", (20, 200, 1000)),
    Work("GMM in Python's loops, d 2, k 5, 50 points", "gmm_loops", (2, 5, 50)),
    Work("BA, 21 cameras, 2,000 observations", "ba", (21, 500, 2000)),
    Work("BA, 49 cameras, 31,843 observations", "ba", (49, 7776, 31843)),
    Work("HAND, 544 vertices, 100 points", "hand", (544, 100)),
    Work("HAND, 10,000 vertices, 6,400 points", "hand", (10_000, 6400)),
    Work("LSTM, 2 layers, 1,024 characters", "lstm", (2, 1024)),
    Work("LSTM, 4 layers, 1,024 characters", "lstm", (4, 1024)),
    Work("LSTM, 2 layers, 4,096 characters", "lstm", (2, 4096)),
    Work("Kalman filter, 2 states, 300 steps", "kalman", (2, 300)),
    Work("Kalman filter, 2 states, 3,000 steps", "kalman", (2, 3000)),
    Work("Kalman filter, 10 states, 300 steps", "kalman", (10, 300)),
    Work("Robertson, 300 implicit steps", "robertson", (300,)),
    Work("Lotka–Volterra, RK4 of 1,000 steps", "lotka_volterra", (1000,)),
    Work("van der Pol, RK4 of 1,000 steps", "van_der_pol", (1000,)),
    Work("64 bodies, 100 leapfrog steps", "bodies", (64, 100)),
    Work("Burgers' equation, 256 points, 500 steps", "burgers", (256, 500)),
    Work("Gaussian process, 100 points", "gp", (100,)),
    Work("Gaussian process, 500 points", "gp", (500,)),
]
QUICK = [
    Work("GMM", "gmm", (3, 4, 20)),
    Work("GMM in Python's loops", "gmm_loops", (3, 2, 3)),
    Work("BA", "ba", (3, 5, 12)),
    Work("HAND", "hand", (20, 15)),
    Work("LSTM", "lstm", (2, 6)),
    Work("Kalman filter", "kalman", (2, 6)),
    Work("Robertson", "robertson", (12,)),
    Work("Lotka–Volterra", "lotka_volterra", (20,)),
    Work("van der Pol", "van_der_pol", (20,)),
    Work("bodies", "bodies", (4, 6)),
    Work("Burgers' equation", "burgers", (12, 6)),
    Work("Gaussian process", "gp", (8,)),
]


@dataclass
class Measured:
    """Microseconds of each peer per round and of first calls, peak and idle memory, notes, and peers that timed out."""

    work: Work
    times: dict[str, list[float]] = field(default_factory=dict)
    firsts: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)

    def failed(self, name: str, failure: Failed) -> None:
        if isinstance(failure, Late):
            self.late.add(name)
        else:
            self.notes[name] = f"{COLUMNS[name]} failed: {failure}"

    def least(self) -> dict[str, float]:
        return {name: min(times) for name, times in self.times.items()}

    def ratio(self, mine: str, theirs: str) -> float:
        pairs = zip(self.times.get(mine, []), self.times.get(theirs, []))
        return median([m / t for m, t in pairs] or [math.nan])

    def line(self) -> str:
        """Return a progress message with the times of calls and first calls, and the memory, of each peer."""
        return "; ".join(
            f"{COLUMNS[name]} {format_value(min(times) / 1e3)}, first {format_value(self.firsts.get(name, math.nan) / 1e3)}, "
            f"{megabytes(self, name)}, {format_value(self.ratio(name, OBJECTIVE))} objectives"
            for name, times in self.times.items()
        )

    def best(self) -> str:
        """Return the fastest of chainrule's variants."""
        present = [name for name in US if name in self.times]
        return min(present, key=lambda name: median(self.times[name])) if present else US[0]


def agree(mine: Sequence[float], theirs: Sequence[float]) -> bool:
    return len(mine) == len(theirs) and all(math.isclose(m, t, rel_tol=TOLERANCE) for m, t in zip(mine, theirs))


def compare(work: Work, peers: list[Peer]) -> tuple[Measured, list[Peer]]:
    """Return the peers that can do a work and agree with the first of them."""
    found, answers, able = Measured(work), {}, []
    for peer in peers:
        if work.kind not in peer.kinds:
            continue
        try:
            answers[peer.name], found.firsts[peer.name] = peer.begin(work)
            able.append(peer)
        except Failed as failure:
            found.failed(peer.name, failure)
    answers.pop(OBJECTIVE, None)
    found.firsts.pop(OBJECTIVE, None)
    expected = next(iter(answers.values()), [])
    for name, answer in answers.items():
        if not agree(answer, expected):
            found.notes[name] = f"{COLUMNS[name]} has a different result: {answer}, not {expected}"
    return found, able


def measure(work: Work, peers: list[Peer], rounds: int, seconds: float, limit: float) -> Measured:
    found, able = compare(work, peers)
    runs: dict[str, int] = {}
    spent: dict[str, float] = {}
    for turn in range(rounds):
        for peer in able:
            name, start = peer.name, time.monotonic()
            if spent.get(name, 0.0) > limit:
                continue
            time.sleep(SETTLE)
            try:
                if turn == 0:
                    runs[name] = peer.runs_for(work, seconds)
                taken = peer.time(work, runs[name], best=True)
                found.times.setdefault(name, []).append(taken)
            except Failed as failure:
                found.failed(name, failure)
                spent[name] = math.inf
            spent[name] = spent.get(name, 0.0) + time.monotonic() - start
        able.reverse()
    for peer in able:
        if peer.name != OBJECTIVE and spent[peer.name] < math.inf:
            try:
                found.bytes[peer.name] = peer.footprint(work)
                found.firsts[peer.name] = first(peer, work, found.firsts[peer.name])
            except Failed as failure:
                found.failed(peer.name, failure)
    return found


def first(peer: Peer, work: Work, known: float) -> float:
    """Return the minimum time of three first calls, or of one if it is long."""
    return known if known > LONG else min(known, *[peer.first(work) for _ in range(2)])


# --- tables -----------------------------------------------------------------------------------------------------------


def format_value(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:#.2g}".removesuffix(".")


def milliseconds(found: Measured, name: str, times: dict[str, float], limit: float) -> str:
    if name not in times and name in found.late:
        return f"over {limit:.0f} s"
    return format_value(times.get(name, math.nan) / 1e3)


def megabytes(found: Measured, name: str) -> str:
    if name not in found.bytes:
        return "–"
    return " / ".join("–" if b is None else f"{max(b, 0) / 2**20:,.0f}" for b in found.bytes[name])


def print_tables(all_found: list[Measured], names: list[str], limit: float) -> None:
    heads, gradients = [COLUMNS[name] for name in names], [name for name in names if name != OBJECTIVE]
    print("\n### Milliseconds of the processor, per call\n")
    rows = [[f.work.title, *(milliseconds(f, n, f.least(), limit) for n in names), ""] for f in all_found]
    print_table(["program", *heads, ""], rows)

    heads = [COLUMNS[name] for name in gradients]
    print("\n### Gradient over NumPy's objective; the best of ours over jax.jit\n")
    rows = []
    for found in all_found:
        cells = [format_value(found.ratio(name, OBJECTIVE)) for name in gradients]
        rows.append([found.work.title, *cells, format_value(found.ratio(found.best(), "jax")), ""])
    print_table(["program", *heads, "/ jax.jit", ""], rows)

    print("\n### Milliseconds of the first call\n")
    rows = [[f.work.title, *(milliseconds(f, n, f.firsts, limit) for n in gradients), ""] for f in all_found]
    print_table(["program", *heads, ""], rows)

    print("\n### MiB that the process grows by: at most up to the second call / between calls\n")
    print_table(["program", *heads, ""], [[f.work.title, *(megabytes(f, n) for n in gradients), ""] for f in all_found])


def result_rows(all_found: list[Measured], names: list[str], limit: float) -> Rows:
    """Return the rows for the results file: CPU milliseconds, first calls, and memory between calls."""
    rows: Rows = {}
    for found in all_found:
        row = rows[found.work.title] = {}
        for name in names:
            for head, times in (("{}, ms", found.least()), ("{}: first call, ms", found.firsts)):
                if name in times:
                    row[head.format(COLUMNS[name])] = float(f"{times[name] / 1e3:.3g}")
                elif name in found.late:
                    row[head.format(COLUMNS[name])] = f"over {limit:.0f} s"
            if name in found.bytes:
                row[f"{COLUMNS[name]}: MiB"] = megabytes(found, name)
        for head, share in (
            ("best / objective", found.ratio(found.best(), OBJECTIVE)),
            ("best / jax.jit", found.ratio(found.best(), "jax")),
        ):
            if not math.isnan(share):
                row[head] = float(f"{share:.2g}")
    return rows


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time gradients of ADBench's objectives and of loops.")
    parser.add_argument("--only", metavar="PATTERN", default="", help="regular expression to find in a program's name")
    parser.add_argument("--rounds", metavar="N", type=int, default=3, help="rounds of turns (default: 3)")
    parser.add_argument("--peers", default=",".join(COLUMNS), help=f"of {','.join(COLUMNS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=0.1, help="length of a turn (default: 0.1)")
    parser.add_argument("--limit", type=float, default=20, help="time limit of an answer in seconds (default: 20)")
    record_option(parser)
    parser.add_argument("--quick", action="store_true", help="compare gradients at small sizes without timing")
    arguments = parser.parse_args()
    arguments.peers = [name for name in arguments.peers.split(",") if name]
    if unknown := set(arguments.peers) - set(COLUMNS):
        parser.error(f"unknown peers: {', '.join(sorted(unknown))}; there are {', '.join(COLUMNS)}")
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    return arguments


def main() -> int:
    arguments = parse_arguments()
    matches = re.compile(arguments.only, re.IGNORECASE)
    if hasattr(os, "sched_setaffinity"):  # jax derives its number of threads from the CPU affinity
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    environment = worker_environment(1)
    everyone = [Peer(name, environment, "adbench_peers", arguments.limit, cpu=True) for name in arguments.peers]
    present = [peer for peer in everyone if not peer.missing]
    print(f"Python {platform.python_version()}, {platform.machine()}; {'; '.join(peer.version for peer in present)}.\n")
    for peer in everyone:
        if peer.missing:
            print(f"{COLUMNS[peer.name]} is skipped: {peer.missing}\n")
    names = [peer.name for peer in present]
    libraries = ["chainrule", *(name for name in ("jax", "torch", "autograd") if name in names)]
    all_found = []
    for work in QUICK if arguments.quick else WORKS:
        if matches.search(f"{work.kind} {work.title}"):
            progress(work.title)
            if arguments.quick:
                all_found.append(compare(work, present)[0])
            else:
                all_found.append(measure(work, present, arguments.rounds, arguments.seconds, arguments.limit))
                progress(all_found[-1].line())
                record(arguments.record, result_rows(all_found[-1:], names, arguments.limit), libraries)
    for peer in present:
        peer.close()
    if not arguments.quick:
        print_tables(all_found, names, arguments.limit)
    notes = [f"- {found.work.title}: {note}" for found in all_found for note in found.notes.values()]
    print("\n".join(["", *notes]) if notes else f"\nGradients of {len(all_found)} programs agree.")
    return bool(notes)


if __name__ == "__main__":
    sys.exit(main())
