"""Compare compiled gradients with other libraries, from NumPy arrays to NumPy arrays.

python benchmarks/compiled.py [--only PATTERN] [--rounds N] [--peers jax,torch,...] [--steps N] [--limit SECONDS]

As in `eager.py`, each library has a process, the processes take turns, and a ratio is chainrule's time divided by the
peer's in the same round. The first call of each work, which records or compiles, is timed separately, three times if it
is short. Complete optimizer runs use one thread, because SciPy's linear algebra library would use several even for 2 × 2
matrices. A library that exceeds the time limit, for example by compiling the unrolled long loop, is excluded from that
work, and the tables mark it. The tables are Markdown; the last one lists missed goals.
"""

from __future__ import annotations

import argparse
import math
import platform
import re
from statistics import median

from report import (
    Rows,
    Value,
    microseconds,
    print_table,
    progress,
    record,
    record_option,
    spread,
    verdict,
    worker_environment,
)
from table import Work
from turns import Late, Peer, Row, measure

# the module in `callers`, and its column header
COLUMNS = {
    "compiled": "compiled",
    "compiled_python": "compiled (Python)",
    "eager": "eager",
    "jax": "jax.jit",
    "jax_device": "jax.jit (own arrays)",
    "jax_scan": "jax.jit (scan)",
    "torch": "torch",
    "torch_compile": "torch.compile",
    "autograd": "autograd",
    "numpy": "by hand",
    "differences": "differences",
}
US = "compiled"
LIBRARIES = ("jax", "torch", "autograd")
FIRST_MS, FIRST_EAGER_CALLS = 50.0, 10.0  # the goals for a first call
FIRST_JAX_SHARE = 0.05  # the goal relative to jax's first call, for the long program
SHORT = 3e6  # microseconds: a first call that takes longer is timed once


def works(steps: int) -> list[Work]:
    """Return the works; goals are ratios of chainrule's time to the peer's."""
    return [
        Work("MLP 8,4,16,1", "mlp", (8, 4, 16, 1), {"jax": 0.15, "numpy": 0.5}),
        Work("MLP 32,64,64,8", "mlp", (32, 64, 64, 8), {"jax": 0.5}),
        Work("MLP 128,256,256,10", "mlp", (128, 256, 256, 10), {"torch": 1.0, "jax": 1.0}),
        Work("MLP 512,1024,1024,10", "mlp", (512, 1024, 1024, 10), {"torch": 1.0, "jax": 1.3}),
        Work("20 × tanh(y*x), 1", "chain", (1,), {"jax": 0.6}),
        Work("20 × tanh(y*x), 1k", "chain", (1_000,), {"jax": 0.7}),
        Work("20 × tanh(y*x), 10k", "chain", (10_000,), {"jax": 0.9}),
        Work("20 × tanh(y*x), 100k", "chain", (100_000,), {"jax": 0.9}),
        Work("20 × tanh(y*x), 1M", "chain", (1_000_000,), {"jax": 0.9}),
        Work("Rosenbrock, 2", "rosenbrock", (2,), {"jax": 0.4}),
        Work("Rosenbrock, 100", "rosenbrock", (100,), {"jax": 0.4}),
        Work("Hessian-vector product, MLP 32,64,64,8", "hvp", (32, 64, 64, 8), {"jax": 0.4}),
        Work("vmap(grad), MLP 32,64,64,8", "per_sample", (32, 64, 64, 8), {"jax": 0.4}),
        Work(f"Lotka–Volterra, RK4 of {steps:,} steps", "lotka_volterra", (steps,), {"jax": 1.0}),
    ]


FASTER_THAN = {"jax": 1.0, "autograd": 1.0, "differences": 1.0}
RUNS = [
    Work("Rosenbrock, 2: L-BFGS", "lbfgs", (2,), FASTER_THAN),
    Work("Rosenbrock, 100: L-BFGS", "lbfgs", (100,), FASTER_THAN),
]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time compiled gradients beside their peers.")
    parser.add_argument("--only", metavar="PATTERN", default="", help="regular expression to find in a work's name")
    parser.add_argument("--rounds", metavar="N", type=int, default=7, help="rounds of turns (default: 7)")
    parser.add_argument("--peers", default=",".join(COLUMNS), help=f"of {','.join(COLUMNS)} (default: all)")
    parser.add_argument("--threads", type=int, default=2, help="threads of every library (default: 2)")
    parser.add_argument("--seconds", type=float, default=0.2, help="length of a turn (default: 0.2)")
    record_option(parser)
    parser.add_argument("--best", action="store_true", help="compare the minimum times of the turns, not their medians")
    parser.add_argument("--steps", type=int, default=1_000, help="steps of the Runge–Kutta method (default: 1000)")
    parser.add_argument("--limit", type=float, default=30, help="time limit of an answer in seconds (default: 30)")
    arguments = parser.parse_args()
    arguments.peers = [name for name in arguments.peers.split(",") if name and name != US]
    if unknown := set(arguments.peers) - set(COLUMNS):
        parser.error(f"unknown peers: {', '.join(sorted(unknown))}; there are {', '.join(COLUMNS)}")
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    return arguments


def first_calls(row: Row, peers: list[Peer]) -> dict[str, float]:
    """Return microseconds of each peer's first call: the median of three, or one call if it is long."""
    firsts = {}
    for peer in peers:
        if peer.name in row.late:
            firsts[peer.name] = math.inf
        if peer.name not in row.times:
            continue
        try:
            times = [peer.first(row.work)]
            if times[0] < SHORT:
                times += [peer.first(row.work) for _ in range(2)]
        except Late:
            times = [math.inf]
        firsts[peer.name] = median(times)
    return firsts


def measure_all(
    chosen: list[Work], names: list[str], arguments: argparse.Namespace, threads: int
) -> tuple[list[Row], list[dict[str, float]]]:
    environment = worker_environment(threads)
    everyone = [Peer(name, environment, "callers", arguments.limit) for name in names]
    present = [peer for peer in everyone if not peer.missing]
    print(f"{'; '.join(peer.version for peer in present)}. Threads: {threads}.\n")
    for peer in everyone:
        if peer.missing:
            print(f"{COLUMNS[peer.name]} is skipped: {peer.missing}\n")
    libraries = ["chainrule", *(peer.name for peer in present if peer.name in LIBRARIES)]
    rows, firsts = [], []
    for work in chosen:
        progress(work.title)
        row = measure(work, present, arguments.rounds, arguments.seconds, arguments.best)
        rows.append(row)
        firsts.append(first_calls(row, present))
        record(arguments.record, result_rows(row, firsts[-1], names, arguments.limit), libraries)
    for peer in present:
        peer.close()
    return rows, firsts


def print_times(rows: list[Row], names: list[str]) -> None:
    print("\n### Microseconds per call\n")
    table = []
    for row in rows:
        notes = "; ".join(row.notes.values())
        table.append([row.work.title, *(microseconds(row.times.get(name)) for name in names), notes])
    print_table(["work", *(COLUMNS[name] for name in names), ""], table)


def milliseconds(time: float, limit: float) -> str:
    return f"over {limit:.0f} s" if math.isinf(time) else f"{time / 1e3:,.1f}"


def result_rows(row: Row, first: dict[str, float], names: list[str], limit: float) -> Rows:
    """Return the row for the results file."""
    if US not in row.times:
        return {}
    cells: dict[str, Value] = {"compiled, µs": spread(row.times[US])[0]}
    for peer in names:
        if peer != US and (ratios := row.ratios(US, peer)):
            cells[f"/ {COLUMNS[peer]}"] = spread(ratios, 2)
    for name, head in ((US, "first call, ms"), ("jax", "first call of jax.jit, ms")):
        if name in first:
            late = math.isinf(first[name])
            cells[head] = f"over {limit:.0f} s" if late else spread([first[name] / 1e3])[0]
    return {row.work.title: cells}


def print_first_calls(rows: list[Row], firsts: list[dict[str, float]], names: list[str], limit: float) -> None:
    print("\n### Milliseconds of the first call\n")
    table = []
    for row, first in zip(rows, firsts, strict=True):
        cells = [milliseconds(first[name], limit) if name in first else "–" for name in names]
        table.append([row.work.title, *cells, ""])
    print_table(["work", *(COLUMNS[name] for name in names), ""], table)


def ratio_rows(rows: list[Row]) -> list[list[str]]:
    table = []
    for row in rows:
        for peer, goal in row.work.goals.items():
            if ratios := row.ratios(US, peer):
                middle = median(ratios)
                spread = f"{min(ratios):.2f}..{max(ratios):.2f}"
                table.append(
                    [row.work.title, COLUMNS[peer], f"≤ {goal}", f"{middle:.2f}", spread, verdict(middle, goal)]
                )
    return table


def first_call_rows(rows: list[Row], firsts: list[dict[str, float]], limit: float) -> list[list[str]]:
    """Return the table of first calls; the time limit replaces the time of a call of jax that exceeded it."""
    table = []
    for row, first in zip(rows, firsts, strict=True):
        if US not in first or row.work.kind == "lbfgs":  # an optimizer's first run consists of many calls
            continue
        title, mine = f"{row.work.title}: first call", first[US]
        if row.work.kind == "lotka_volterra":
            if "jax" in first:
                late = math.isinf(first["jax"])
                share = mine / min(first["jax"], limit * 1e6)
                remark = verdict(share, FIRST_JAX_SHARE)
                if late and share > FIRST_JAX_SHARE:
                    remark = "not known: jax.jit takes longer than the limit"
                less = "< " if late else ""
                table.append([title, "jax.jit's first", f"≤ {FIRST_JAX_SHARE}", f"{less}{share:.3f}", "", remark])
        else:
            remark = verdict(mine / 1e3, FIRST_MS)
            table.append([title, "milliseconds", f"≤ {FIRST_MS:.0f}", milliseconds(mine, limit), "", remark])
        if "eager" in row.times:
            calls = mine / median(row.times["eager"])
            remark = verdict(calls, FIRST_EAGER_CALLS)
            table.append([title, "one eager call", f"≤ {FIRST_EAGER_CALLS:.0f}", f"{calls:.1f}", "", remark])
    return table


def print_goals(table: list[list[str]]) -> None:
    header = ["work", "beside", "goal", "ratio", "range", ""]
    print("\n### Goals\n")
    print_table(header, table)
    missed = [cells for cells in table if cells[-1] == verdict(1.0, 0.0)]
    print(f"\n### Slower than the goal: {len(missed)} of {len(table)}\n")
    if missed:
        print_table(header, missed)


def main() -> None:
    arguments = parse_arguments()
    matches = re.compile(arguments.only, re.IGNORECASE)
    names = [US, *arguments.peers]
    print(f"Python {platform.python_version()}, {platform.machine()}.\n")
    rows: list[Row] = []
    firsts: list[dict[str, float]] = []
    for works_of_kind, threads in ((works(arguments.steps), arguments.threads), (RUNS, 1)):
        chosen = [work for work in works_of_kind if matches.search(f"{work.kind} {work.title}")]
        if chosen:
            more_rows, more_firsts = measure_all(chosen, names, arguments, threads)
            rows += more_rows
            firsts += more_firsts
    names_shown = [name for name in names if any(name in row.times for row in rows)]
    if not names_shown:
        print("Nothing was measured.")
        return
    print_times(rows, names_shown)
    print_first_calls(rows, firsts, names_shown, arguments.limit)
    print_goals(ratio_rows(rows) + first_call_rows(rows, firsts, arguments.limit))


if __name__ == "__main__":
    main()
