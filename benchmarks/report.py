"""What the tables of the benchmarks share: the workers' environment, and cells."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent


def worker_environment(threads: int) -> dict[str, str]:
    limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    # compiled modules are cached, as they are for an installed library
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
    numeric = range(1, len(header) - 1)  # between the title and the remark
    rule = ["-" * (width - 1) + ":" if i in numeric else "-" * width for i, width in enumerate(widths)]
    for cells in (header, rule, *rows):
        padded = [f"{cell:{'>' if i in numeric else '<'}{widths[i]}}" for i, cell in enumerate(cells)]
        print("| " + " | ".join(padded) + " |")


def verdict(value: float, goal: float | None) -> str:
    if goal is None:
        return ""
    return "**over**" if value > goal else "met"
