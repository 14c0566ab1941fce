"""A worker process for one library: reads requests as lines of JSON, measures, and answers with lines of JSON.

python benchmarks/worker.py MODULE

A request is {"kind", "sizes", "inner", "runs"}; the answer contains the minimum and median time per operation in
microseconds over blocks of runs, or "error". With `runs` 0 it contains the "answer" instead: one number per gradient. With
"fresh" the work is created anew; "first" is the time of its first run in microseconds. With "memory" the answer contains
the "peak" growth of the resident memory during a run in bytes; with "footprint" the peak is measured from the creation of
the work to the end of its second run, and "kept" is the memory held between runs. With "cpu" the times are CPU times.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import statistics
import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

BLOCKS = 15
Clock = Callable[[], float]


def measure(run: Callable[[], Any], runs: int, inner: int, clock: Clock) -> dict[str, float]:
    """Time blocks of runs. The first block is a warm-up after the other process's turn and is dropped."""
    blocks = min(runs, BLOCKS)
    block = range(runs // blocks)
    times = []
    for _ in range(blocks + 1):
        start = clock()
        for _ in block:
            run()
        times.append((clock() - start) / (len(block) * inner) * 1e6)
    del times[0]
    return {"min": min(times), "median": statistics.median(times)}


def microseconds(run: Callable[[], Any], clock: Clock) -> float:
    start = clock()
    run()
    return (clock() - start) * 1e6


def peak(run: Callable[[], Any]) -> dict[str, int | None]:
    """Return the peak growth of resident memory on Linux; the allocator's free memory is released before."""
    before = _begin()
    if before is None:
        return {"peak": None}
    result = run()
    most = _resident("VmHWM")
    del result
    return {"peak": most - before}


def footprint(make: Callable[..., Callable[[], Any]], sizes: list[int]) -> dict[str, int | None]:
    before = _begin()
    if before is None:
        return {"peak": None, "kept": None}
    run = make(*sizes)
    run()
    run()
    most, kept = _resident("VmHWM"), _begin()
    return {"peak": most - before, "kept": kept and kept - before}


def _begin() -> int | None:
    """Release free memory, reset the memory peak, and return the resident memory."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as mark:
            mark.write("5")
        return _resident("VmRSS")
    except (OSError, AttributeError):
        return None


def _resident(name: str) -> int:
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(name))


def answer(run: Callable[[], Any]) -> dict[str, Any]:
    # this second run must give the same result: gradients are reset, not accumulated
    return {"answer": [float(np.abs(np.asarray(g, np.float64)).mean()) for g in run()]}


def describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def main(name: str) -> None:
    # redirect the output of libraries to stderr: stdout is the pipe to the parent
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def reply(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=replies)

    try:
        module = importlib.import_module(name)
    except Exception as error:  # not installed or broken
        reply({"missing": describe(error)})
        return
    reply({"version": module.VERSION, "kinds": sorted(module.WORKS)})

    current: tuple[str, list[int]] | None = None
    run: Callable[[], Any] | None = None
    first = 0.0
    for line in sys.stdin:
        request = json.loads(line)
        try:
            work, clock = (request["kind"], request["sizes"]), process_time if request.get("cpu") else perf_counter
            if run is None or work != current or request.get("fresh") or request.get("footprint"):
                run = None  # free the memory of the last work before the next one is created
                if request.get("footprint"):
                    current = None
                    reply(footprint(module.WORKS[request["kind"]], request["sizes"]))
                    continue
                current, run = work, module.WORKS[request["kind"]](*request["sizes"])
                first = microseconds(run, clock)
            runs = request["runs"]
            if request.get("memory"):
                result: dict[str, Any] = peak(run)
            else:
                result = measure(run, runs, request["inner"], clock) if runs else answer(run)
            reply(result | {"first": first})
        except Exception as error:
            run = None
            reply({"error": describe(error)})


if __name__ == "__main__":
    main(sys.argv[1])
