"""Shared by the benchmarks: the workers' environment, tables, and the files of measurements for the documentation."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterable
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


# --- measurements ------------------------------------------------------------------------------------------------------

Value = float | str | list[float]  # a number, text, or median, minimum and maximum
Rows = dict[str, dict[str, Value]]  # by work, then by column


def spread(values: Iterable[float], digits: int = 3) -> list[float]:
    """Return median, minimum and maximum."""
    found = sorted(values)
    return [float(f"{value:.{digits}g}") for value in (median(found), found[0], found[-1])]


def record_option(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--record FILE``, which `run_all.py` passes to each benchmark."""
    parser.add_argument("--record", metavar="FILE", type=Path, help="write the measurements to a JSON file")


def record(file: Path | None, rows: Rows, libraries: Iterable[str]) -> None:
    """Add measurements to a benchmark's file, with the names of the measured libraries.

    It is called after each work, so that an interrupted run loses nothing.

    Args:
        file: the argument of ``--record``, or None, which records nothing.
        rows: the measurements by work.
        libraries: the distributions that are measured, in addition to NumPy.
    """
    if file is None:
        return
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"rows": {}}
    found["libraries"] = ["python", "numpy", *libraries]
    found["rows"] |= rows
    whole = file.with_suffix(".new")
    whole.write_text(json.dumps(found, ensure_ascii=False))
    whole.replace(file)


def processor() -> str:
    """Return the processor's name, if the system provides it."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.exists()
        else []
    )
    return names[0] if names else platform.machine()
