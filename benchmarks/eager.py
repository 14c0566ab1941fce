"""Compare the speed of eager execution with other libraries.

python benchmarks/eager.py [--only PATTERN] [--rounds N] [--peers torch,autograd,mygrad,numpy]

Every library runs in a separate process, because two thread pools in one process would compete, and the processes take
turns, so that other load on the machine affects them equally. A ratio is chainrule's time divided by the peer's in the
same round; the median over the rounds is compared with the goal. The tables are Markdown.
"""

from __future__ import annotations

import argparse
import platform
import re
from statistics import median

import footprint
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
from table import IMPORT_GOAL_MS, IMPORT_TITLE, MEMORY_GOAL, MEMORY_NODES, MEMORY_TITLES, WORKS
from turns import Peer, Row, measure

PEERS = ["torch", "autograd", "mygrad", "numpy"]
HEADS = {"numpy": "by hand"}
FOOTPRINTS = ["chainrule", "torch"]  # the libraries whose import time and memory are measured


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time the eager engine beside its peers.")
    parser.add_argument("--only", metavar="PATTERN", default="", help="regular expression to find in a work's name")
    parser.add_argument("--rounds", metavar="N", type=int, default=7, help="rounds of turns (default: 7)")
    parser.add_argument("--peers", default=",".join(PEERS), help="of torch,autograd,mygrad,numpy (default: all)")
    parser.add_argument("--us", default="chainrule", help="the library whose ratios are shown (default: chainrule)")
    parser.add_argument("--threads", type=int, default=2, help="threads of every library (default: 2)")
    parser.add_argument("--seconds", type=float, default=0.2, help="length of a turn (default: 0.2)")
    record_option(parser)
    parser.add_argument("--best", action="store_true", help="compare the minimum times of the turns, not their medians")
    arguments = parser.parse_args()
    arguments.peers = [name for name in arguments.peers.split(",") if name and name != arguments.us]
    if unknown := set(arguments.peers) - set(PEERS):
        parser.error(f"unknown peers: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    return arguments


def print_ratios(rows: list[Row], us: Peer, peer: Peer) -> None:
    cells = []
    for row in rows:
        if peer.name not in row.times and peer.name not in row.notes:
            continue  # this peer does not have the work
        goal = row.work.goals.get(peer.name)
        ratios = row.ratios(us.name, peer.name)
        remarks = [row.notes[name] for name in (us.name, peer.name) if name in row.notes]
        if ratios:
            remarks.insert(0, verdict(median(ratios), goal))
        cells.append(
            [
                row.work.title,
                f"≤ {goal}" if goal is not None else "–",
                f"{median(ratios):.2f}" if ratios else "–",
                f"{min(ratios):.2f}..{max(ratios):.2f}" if ratios else "–",
                microseconds(row.times.get(us.name)),
                microseconds(row.times.get(peer.name)),
                "; ".join(filter(None, remarks)),
            ]
        )
    if cells:
        print(f"\n### {us.name} / {peer.name}\n")
        print_table(["work", "goal", "ratio", "range", f"{us.name} µs", f"{peer.name} µs", ""], cells)


def result_rows(row: Row, us: Peer, peers: list[Peer]) -> Rows:
    """Return the row for the results file."""
    if us.name not in row.times:
        return {}
    cells: dict[str, Value] = {"µs": spread(row.times[us.name])[0]}
    for peer in peers:
        if ratios := row.ratios(us.name, peer.name):
            cells[f"/ {HEADS.get(peer.name, peer.name)}"] = spread(ratios, 2)
    return {row.work.title: cells}


def import_row(names: list[str], pairs: int, environment: dict[str, str]) -> list[str]:
    progress(IMPORT_TITLE)
    extra: dict[str, list[float]] = {name: [] for name in names}
    base: list[float] = []
    for turn in range(pairs + 1):
        numpy_ms = footprint.import_ms("numpy", environment)
        more_ms = {name: footprint.import_ms(name, environment) - numpy_ms for name in names}
        if turn:  # the first turn may include writing bytecode
            base.append(numpy_ms)
            for name in names:
                extra[name].append(more_ms[name])
    cells = [f"{median(extra[name]):+.0f} ms" if name in extra else "–" for name in FOOTPRINTS]
    remark = verdict(median(extra["chainrule"]), IMPORT_GOAL_MS) if "chainrule" in extra else ""
    return [f"{IMPORT_TITLE} {median(base):.0f} ms", f"≤ +{IMPORT_GOAL_MS:.0f} ms", cells[0], *cells, remark]


def memory_row(title: str, step: str, names: list[str], environment: dict[str, str]) -> list[str]:
    costs: dict[str, dict[str, float]] = {}
    remarks = []
    for name in names:
        progress(f"{title} with {name}")
        try:
            costs[name] = footprint.chain_cost(name, step, MEMORY_NODES, environment)
        except RuntimeError as error:
            remarks.append(f"{name} failed: {error}")
    ratio = costs["chainrule"]["bytes"] / costs["torch"]["bytes"] if len(costs) == len(FOOTPRINTS) else None
    if ratio is not None:
        remarks.insert(0, verdict(ratio, MEMORY_GOAL))
    cells = [
        f"{costs[name]['bytes'] / 2**20:,.0f} MiB, {costs[name]['seconds']:.1f} s" if name in costs else "–"
        for name in FOOTPRINTS
    ]
    return [title, f"≤ {MEMORY_GOAL}", f"{ratio:.2f}" if ratio is not None else "–", *cells, "; ".join(remarks)]


def print_footprints(matches: re.Pattern[str], names: list[str], pairs: int, environment: dict[str, str]) -> None:
    rows = []
    if matches.search(IMPORT_TITLE):
        rows.append(import_row(names, pairs, environment))
    for step, title in MEMORY_TITLES.items():
        if matches.search(title):
            rows.append(memory_row(title, step, names, environment))
    if rows:
        print("\n### Import and memory\n")
        print_table(["what", "goal", "measured", *FOOTPRINTS, ""], rows)


def main() -> None:
    arguments = parse_arguments()
    environment = worker_environment(arguments.threads)
    matches = re.compile(arguments.only, re.IGNORECASE)

    everyone = [Peer(name, environment) for name in (arguments.us, *arguments.peers)]
    us, present = everyone[0], [peer for peer in everyone if not peer.missing]
    versions = ", ".join(peer.version for peer in present)
    print(f"{versions}; Python {platform.python_version()}, {arguments.threads} threads, {platform.machine()}.")
    for peer in everyone:
        if peer.missing:
            print(f"\n{peer.name} is left out, because it does not import here: {peer.missing}")

    others = [peer for peer in everyone[1:] if not peer.missing]
    libraries = [peer.name for peer in (us, *others) if peer.name != "numpy"]
    rows = []
    for work in filter(lambda work: matches.search(f"{work.kind} {work.title}"), WORKS):
        progress(work.title)
        # hand-written NumPy code is the reference, with or without a goal
        selected = [peer for peer in present if peer.name in (us.name, "numpy", *work.goals)]
        rows.append(measure(work, selected, arguments.rounds, arguments.seconds, arguments.best))
        record(arguments.record, result_rows(rows[-1], us, others), libraries)
    for peer in present:
        peer.close()
    for peer in others:
        print_ratios(rows, us, peer)
    names = [peer.name for peer in present if peer.name in FOOTPRINTS]
    if arguments.record is None:
        print_footprints(matches, names, arguments.rounds, environment)


if __name__ == "__main__":
    main()
