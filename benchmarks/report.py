"""Shared by the benchmarks: the workers' environment, tables, and the results file for the documentation."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import sys
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"


def worker_environment(threads: int) -> dict[str, str]:
    limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    # compiled modules are cached, like for an installed library
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **dict.fromkeys(limits, str(threads)), "PYTHONPATH": path}


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def microseconds(times: list[float] | None) -> str:
    if not times:
        return "–"
    value = median(times)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def print_table(header: list[str], rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    numeric = range(1, len(header) - 1)  # the columns between the title and the notes
    rule = ["-" * (width - 1) + ":" if i in numeric else "-" * width for i, width in enumerate(widths)]
    for cells in (header, rule, *rows):
        padded = [f"{cell:{'>' if i in numeric else '<'}{widths[i]}}" for i, cell in enumerate(cells)]
        print("| " + " | ".join(padded) + " |")


def verdict(value: float, goal: float | None) -> str:
    if goal is None:
        return ""
    return "**over**" if value > goal else "met"


# --- results file ------------------------------------------------------------------------------------------------------

Value = float | str | list[float]  # a number, text, or median, minimum and maximum
Rows = dict[str, dict[str, Value]]  # by work, then by column


def spread(values: Iterable[float], digits: int = 3) -> list[float]:
    """Return median, minimum and maximum for the results file."""
    found = sorted(values)
    return [float(f"{value:.{digits}g}") for value in (median(found), found[0], found[-1])]


def record(benchmark: str, rows: Rows, libraries: Iterable[str]) -> None:
    """Write measurements of a benchmark to ``results.json``, with machine, versions, command and date.

    It is called after each work, so that an interrupted run loses nothing. Rows of earlier runs for other works remain,
    with their dates.

    Args:
        benchmark: its name in the file.
        rows: the measurements by work.
        libraries: the distributions whose versions are recorded, in addition to NumPy.
    """
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    used = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = {name: importlib.metadata.version(name) for name in ["numpy", *libraries]}
    run = {
        "date": date.today().isoformat(),
        "command": " ".join(["python", "benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]]),
        "machine": f"{processor()}, {used} of {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), **versions},
    }
    table: dict[str, Any] = results.setdefault(benchmark, {"runs": [], "rows": {}})
    if run not in table["runs"]:
        table["runs"].append(run)
    for title, cells in rows.items():
        table["rows"][title] = {"run": table["runs"].index(run), **cells}
    used = sorted({row["run"] for row in table["rows"].values()})
    table["runs"] = [table["runs"][number] for number in used]
    for row in table["rows"].values():
        row["run"] = used.index(row["run"])
    text = json.dumps(results, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+([-\d.e,\s]+?)\s+\]", lambda numbers: f"[{' '.join(numbers[1].split())}]", text) + "\n"
    whole = RESULTS.with_suffix(".new")
    whole.write_text(text)
    whole.replace(RESULTS)


def processor() -> str:
    """Return the processor's name, if the system provides it."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.exists()
        else []
    )
    return names[0] if names else platform.machine()
