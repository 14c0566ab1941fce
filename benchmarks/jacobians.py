"""Compare structured Jacobians with dense ones, with colourings of other libraries, and with hand-written code.

python benchmarks/jacobians.py [--only PATTERN] [--rounds N] [--peers torch,jax,...] [--best] [--record FILE]

Each library has a process; all use the same core and float64. After a comparison of results the processes take turns. A
ratio is the peer's time divided by chainrule's in the same round. *Cold* is a complete first call, from the function to
the Jacobian; *prepared* and *warm* repeat it at another point. Cold calls of asdex and CasADi are timed in three new
processes, or one if it is long. Memory is the growth of the process during a run, without memory held from earlier runs.
The last table lists missed goals.

asdex and CasADi are only used in this benchmark (`pip install -e ".[bench]"`). Libraries that are not installed are skipped.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from report import Rows, Value, print_table, progress, record, record_option, spread, worker_environment
from table import Work
from turns import SETTLE, Failed, Late, Peer

US = "chainrule"
PEERS = (US, "torch", "jax", "asdex", "casadi", "numpy")
NAMES = {"casadi": "CasADi", "numpy": "by hand"}
COLD = ("asdex/cold", "casadi/cold")  # timed in new processes
LONG = 2e6  # microseconds: a cold call that takes longer is timed once
JAX = ("jax/jacfwd", "jax/jacrev")
WARM = ("casadi/warm MX", "casadi/warm SX")


@dataclass(frozen=True)
class Faster:
    """A goal: a route of chainrule is faster than the best of others by a factor."""

    ours: str
    beside: tuple[str, ...]
    times: float


@dataclass(frozen=True)
class Least:
    """A goal: a route of chainrule needs at most this time or memory."""

    ours: str
    milliseconds: float = math.inf
    megabytes: float = math.inf


@dataclass(frozen=True)
class Case:
    title: str
    kind: str
    sizes: tuple[int, ...]
    goals: tuple[Faster | Least, ...] = ()
    also: tuple[str, ...] = ()

    def routes(self) -> list[str]:
        """Return the routes to measure, chainrule's first."""
        mine = [f"{US}/{goal.ours}" for goal in self.goals]
        others = [name for goal in self.goals if isinstance(goal, Faster) for name in goal.beside]
        return list(dict.fromkeys([*mine, *others, *self.also]))

    def work(self, route: str) -> Work:
        return Work(self.title, f"{self.kind}/{route.partition('/')[2]}", self.sizes)


CASES = [
    Case("Brusselator, 32 × 32", "brusselator", (32,), (
        Faster("dense", ("torch/jacrev",), 20), Faster("dense", JAX, 12), Faster("dense", ("asdex/prepared dense",), 4),
        Faster("csr", ("casadi/cold",), 5), Faster("csr", ("asdex/cold",), 250), Least("csr", milliseconds=1.0),
        Faster("prepared", ("asdex/prepared",), 1 / 1.5), Faster("prepared", WARM, 2),
    ), ("chainrule/structured", "torch/jacfwd", "numpy/values")),
    Case("Brusselator, 256 × 256", "brusselator", (256,), (
        Faster("csr", ("casadi/cold",), 20), Faster("csr", ("asdex/cold",), 200), Faster("csr", WARM, 2),
    ), ("chainrule/prepared", "asdex/prepared", "numpy/values")),
    Case("exp(X @ W), 32 × 64", "exp", (32, 64), (
        Faster("dense", ("torch/jacrev",), 25), Faster("dense", JAX, 18), Faster("dense", ("asdex/prepared dense",), 6),
        Faster("structured", ("asdex/prepared",), 2),
    ), ("chainrule/csr", "casadi/cold", *WARM, "numpy/dense", "numpy/blocks")),
    Case("a * b, 2,000", "times", (2000,), (
        Faster("dense", ("torch/jacrev",), 6), Faster("dense", JAX, 1.4), Least("structured", milliseconds=0.03),
    ), ("chainrule/csr", "chainrule/prepared", "asdex/prepared", "casadi/cold", *WARM, "numpy/dense")),
    Case("outer(a, b), 100", "outer", (100,), (
        Faster("dense", ("torch/jacfwd",), 6), Faster("dense", ("jax/jacfwd",), 1),
    ), ("chainrule/csr", "chainrule/structured", "asdex/prepared dense", "casadi/cold", "numpy/dense")),
    Case("arrowhead, 2,000", "arrowhead", (2000,), (
        Faster("csr", ("asdex/prepared",), 100),
    ), ("chainrule/prepared", "casadi/cold", *WARM)),
    Case("10 Euler steps, 32 × 32", "euler", (32, 10), (
        Faster("csr", ("asdex/prepared",), 2.5), Faster("csr", ("jax/jacrev",), 40),
    ), ("chainrule/prepared",)),
    Case("MLP, 32 × 64, 3 layers", "mlp", (32, 64, 3), (
        Faster("dense", ("torch/jacrev",), 25), Faster("dense", JAX, 10), Faster("dense", ("asdex/prepared dense",), 2.5),
        Faster("structured", ("torch/vmap(jacrev)",), 1 / 1.3),
    ), ("chainrule/csr", "numpy/blocks")),
    Case("bundle adjustment, 21, 2,000, 8,000", "cameras", (21, 2000, 8000), (
        Faster("csr", ("asdex/cold",), 200), Faster("csr", ("casadi/cold",), 10),
        Faster("prepared", ("asdex/prepared",), 1),
    ), WARM),
    Case("Hessian of Rosenbrock's, 2,000", "rosenbrock", (2000,), (
        Faster("dense", ("torch/jacrev",), 50), Faster("dense", JAX[:1], 2),
    ), ("chainrule/csr", "chainrule/prepared", "asdex/prepared", "asdex/prepared dense", *WARM, "numpy/dense")),
    Case("A @ x, 1,000 × 500", "linear", (1000, 500), (), (
        "chainrule/dense", "chainrule/structured", "torch/jacrev", "torch/jacfwd", *JAX)),
    Case("sin(A @ x), 1,000 × 500", "sine", (1000, 500), (), (
        "chainrule/dense", "torch/jacfwd", *JAX, "casadi/cold", "casadi/warm MX")),
    Case("Bratu's residual, 200 × 200", "bratu", (200,), (
        Least("csr", milliseconds=50, megabytes=200),
    ), ("chainrule/prepared", "asdex/cold", "asdex/prepared")),
]  # fmt: skip

UNKNOWN = "not measured"
SLOPE_GOAL = 1.1
GRIDS = [Case(f"Brusselator, {n} × {n}", "brusselator", (n,), (), ("chainrule/csr",)) for n in (32, 64, 128, 256)]


@dataclass
class Measured:
    """Microseconds of each route per round, bytes, the reasons for missing values, and routes that timed out."""

    case: Case
    times: dict[str, list[float]] = field(default_factory=dict)
    bytes: dict[str, int | None] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)  # the routes that did not answer within the limit

    def failed(self, route: str, failure: Failed) -> None:
        self.notes[route] = f"failed: {failure}"
        if isinstance(failure, Late):
            self.late.add(route)

    def ratios(self, ours: str, beside: Iterable[str]) -> tuple[str, list[float]]:
        """Return the best of the other routes, and the ratios of its time to that of chainrule's route."""
        mine = self.times.get(f"{US}/{ours}", [])
        present = [name for name in beside if self.times.get(name)]
        if not mine or not present:
            return "", []
        best = min(present, key=lambda name: median(self.times[name]))
        theirs = self.times[best]
        if len(theirs) == len(mine):
            return best, [t / m for t, m in zip(theirs, mine)]
        return best, [t / median(mine) for t in theirs]


def measure(case: Case, peers: dict[str, Peer], rounds: int, seconds: float, best: bool) -> Measured:
    found = Measured(case)
    runs: dict[str, int] = {}
    answers: dict[str, float] = {}
    for route in case.routes():
        peer = peers.get(route.partition("/")[0])
        if peer is None:
            continue
        try:
            if route in COLD:
                found.times[route] = cold(peer, case.work(route))
            answers[route] = peer.answer(case.work(route))[0]
            if route not in COLD:
                runs[route] = peer.runs_for(case.work(route), seconds)
        except Failed as failure:
            found.failed(route, failure)
    for route, answer in answers.items():
        if not math.isclose(answer, next(iter(answers.values())), rel_tol=1e-9):
            found.notes[route] = f"different result: {answer:.12g}"
    take_turns(found, peers, runs, rounds, best)
    for route in found.times:
        try:
            found.bytes[route] = peers[route.partition("/")[0]].memory(case.work(route))
        except Failed:
            found.bytes[route] = None
    return found


def cold(peer: Peer, work: Work) -> list[float]:
    times = [peer.first(work)]
    if times[0] < LONG:
        times += [peer.first(work) for _ in range(2)]
    return times


def take_turns(found: Measured, peers: dict[str, Peer], runs: dict[str, int], rounds: int, best: bool) -> None:
    order = list(runs)
    for _ in range(rounds):
        for route in tuple(order):
            time.sleep(SETTLE)
            try:
                taken = peers[route.partition("/")[0]].time(found.case.work(route), runs[route], best)
                found.times.setdefault(route, []).append(taken)
            except Failed as failure:
                found.failed(route, failure)
                found.times.pop(route, None)
                order.remove(route)
        order.reverse()


# --- tables -----------------------------------------------------------------------------------------------------------


def route_title(route: str) -> str:
    peer, _, way = route.partition("/")
    return f"{NAMES.get(peer, peer)}: {way}"


def milliseconds(times: list[float]) -> str:
    return f"{median(times) / 1e3:,.3g}"


def megabytes(peak: int | None) -> str:
    return "–" if peak is None else f"{peak / 2**20:,.1f}"


def print_times(results: list[Measured]) -> None:
    print("\n### Milliseconds, and MiB that one run adds to the process\n")
    rows = []
    for found in results:
        for route in found.case.routes():
            times, note = found.times.get(route), found.notes.get(route, "")
            if times:
                spread = f"{min(times) / 1e3:.3g}..{max(times) / 1e3:.3g}"
                cells = [milliseconds(times), spread, megabytes(found.bytes.get(route))]
            elif note:
                cells = ["–", "", ""]
            else:
                cells, note = ["–", "", ""], "not installed"
            rows.append([f"{found.case.title}: {route_title(route)}", *cells, note])
    print_table(["work", "ms", "range", "MiB", ""], rows)


def goal_rows(results: list[Measured]) -> list[list[str]]:
    rows = []
    for found in results:
        for goal in found.case.goals:
            title = f"{found.case.title}: {goal.ours}"
            if isinstance(goal, Faster):
                rows.append([title, *faster_cells(found, goal)])
                continue
            mine = found.times.get(f"{US}/{goal.ours}")
            peak = found.bytes.get(f"{US}/{goal.ours}")
            if math.isfinite(goal.milliseconds):
                rows.append([title, "–", *least_cells(goal.milliseconds, median(mine) / 1e3 if mine else None, "ms")])
            if math.isfinite(goal.megabytes):
                rows.append([title, "–", *least_cells(goal.megabytes, None if peak is None else peak / 2**20, "MiB")])
    return rows


def least_cells(goal: float, value: float | None, unit: str) -> list[str]:
    if value is None:
        return [f"≤ {goal:g} {unit}", "–", "", UNKNOWN]
    return [f"≤ {goal:g} {unit}", f"{value:.3g} {unit}", "", verdict(value <= goal)]


def verdict(reached: bool) -> str:
    return "met" if reached else "**missed**"


def faster_cells(found: Measured, goal: Faster) -> list[str]:
    best, ratios = found.ratios(goal.ours, goal.beside)
    wanted = f"≥ {goal.times:.3g}"
    if not ratios:
        return [route_title(goal.beside[0]), wanted, "–", "", UNKNOWN]
    spread = f"{min(ratios):.3g}..{max(ratios):.3g}"
    return [route_title(best), wanted, f"{median(ratios):.3g}", spread, verdict(median(ratios) >= goal.times)]


def slope_row(results: list[Measured]) -> list[list[str]]:
    """Return the slope of log time over the log number of unknowns."""
    points = []
    for found in results:
        if times := found.times.get(f"{US}/csr"):
            points.append((math.log(2 * found.case.sizes[0] ** 2), math.log(median(times))))
    if len(points) < 2:
        return []
    x, y = (sum(axis) / len(points) for axis in zip(*points))
    slope = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
    sizes = f"{results[0].case.sizes[0]} to {results[-1].case.sizes[0]}"
    title = f"Brusselator: growth of csr with the unknowns, N = {sizes}"
    return [[title, "–", f"≤ {SLOPE_GOAL}", f"{slope:.3f}", "", verdict(slope <= SLOPE_GOAL)]]


GOALS = ["work", "beside", "goal", "times faster", "range", ""]


def print_goals(rows: list[list[str]]) -> None:
    print("\n### Goals\n")
    print_table(GOALS, rows)
    missed = [row for row in rows if row[-1] != "met"]
    print(f"\n### Missed or not measured: {len(missed)} of {len(rows)}\n")
    if missed:
        print_table(GOALS, missed)


#: The columns of the recorded table: a column has the best time of its routes.
RECORDED = {
    "dense": ("chainrule/dense",),
    "structured": ("chainrule/structured",),
    "csr": ("chainrule/csr",),
    "prepared": ("chainrule/prepared",),
    "torch": ("torch/jacrev", "torch/jacfwd", "torch/vmap(jacrev)"),
    "jax.jit": JAX,
    "asdex, cold": ("asdex/cold",),
    "asdex, prepared": ("asdex/prepared", "asdex/prepared dense"),
    "CasADi, cold": ("casadi/cold",),
    "CasADi, warm": WARM,
    "by hand": ("numpy/values", "numpy/dense", "numpy/blocks"),
}


def result_rows(found: Measured, limit: float) -> Rows:
    """Return the row for the results file: milliseconds of each column, and MiB of chainrule's."""
    row: dict[str, Value] = {}
    for head, routes in RECORDED.items():
        present = [route for route in routes if found.times.get(route)]
        if present:
            best = min(present, key=lambda route: median(found.times[route]))
            row[head] = spread(time / 1e3 for time in found.times[best])[0]
            peak = found.bytes[best]
            if best.startswith(f"{US}/") and peak is not None:
                row[f"{head}: MiB"] = round(peak / 2**20, 1)
        elif any(route in found.late for route in routes):
            row[head] = f"over {limit:.0f} s"
    return {found.case.title: row}


# --- the program ------------------------------------------------------------------------------------------------------


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare the time of structured Jacobians with other libraries.")
    parser.add_argument("--only", metavar="PATTERN", default="", help="regular expression to find in a case's name")
    parser.add_argument("--rounds", metavar="N", type=int, default=5, help="rounds of turns (default: 5)")
    parser.add_argument("--seconds", type=float, default=0.2, help="length of a turn (default: 0.2)")
    parser.add_argument("--best", action="store_true", help="use the minimum times of turns, for a busy machine")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"of {','.join(PEERS)} (default: all)")
    parser.add_argument("--limit", type=float, default=300, help="time limit of an answer in seconds (default: 300)")
    record_option(parser)
    arguments = parser.parse_args()
    arguments.peers = [US, *(name for name in arguments.peers.split(",") if name and name != US)]
    if unknown := set(arguments.peers) - set(PEERS):
        parser.error(f"unknown peers: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    return arguments


def start(names: list[str], limit: float) -> dict[str, Peer]:
    """Start the processes of the installed libraries, all on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    environment = worker_environment(1)
    everyone = {name: Peer(name, environment, "jacobian_peers", limit) for name in names}
    for name, peer in everyone.items():
        if peer.missing:
            print(f"{NAMES.get(name, name)} is skipped: {peer.missing}\n")
    present = {name: peer for name, peer in everyone.items() if not peer.missing}
    print(f"{'; '.join(peer.version for peer in present.values())}; one core, float64.\n")
    return present


def main() -> None:
    arguments = parse_arguments()
    matches = re.compile(arguments.only, re.IGNORECASE)
    print(f"Python {platform.python_version()}, {platform.machine()}.\n")
    peers = start(arguments.peers, arguments.limit)

    libraries = ["chainrule", *(name for name in peers if name not in (US, "numpy"))]

    def measured(cases: list[Case]) -> list[Measured]:
        found = []
        for case in cases:
            if matches.search(f"{case.kind} {case.title}"):
                progress(case.title)
                found.append(measure(case, peers, arguments.rounds, arguments.seconds, arguments.best))
                if cases is CASES:
                    record(arguments.record, result_rows(found[-1], arguments.limit), libraries)
        return found

    results, grids = measured(CASES), measured([] if arguments.record else GRIDS)
    for peer in peers.values():
        peer.close()
    if not results:
        print("Nothing was measured.")
        return
    rows = goal_rows(results) + slope_row(grids)
    print_times(results)
    print_goals(rows)


if __name__ == "__main__":
    main()
