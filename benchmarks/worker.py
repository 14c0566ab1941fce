"""One peer in a process of its own: reads a request a line, times the work, answers a line.

python benchmarks/worker.py MODULE

A request is {"kind", "sizes", "inner", "runs"}; the answer has the least and the median time per operation in
microseconds over blocks of runs, or "error". `runs` of 0 asks for the "answer" instead: one number per gradient. With
"fresh" the work is made anew for it; "first" says how many microseconds its first run took. With "memory" the answer
has the "peak": how many bytes one run needed, most at a time, of what the system had given back before; with "footprint"
that is counted from before the work is made to the end of its second run, and "kept" is what it needs between runs. With
"cpu" times are the processor's.
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
    """Time blocks of runs. The first block warms caches and threads after the other process's turn, and is dropped."""
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
    """Return the growth of what is resident, most at a time, where Linux counts it; the allocator gives back what it holds."""
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
    """What is resident when all that can be given back is; the mark of the most is set to it."""
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
    # the first run is over: this one must give the same, for gradients were reset, not added up
    return {"answer": [float(np.abs(np.asarray(g, np.float64)).mean()) for g in run()]}


def describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def main(name: str) -> None:
    # whatever a library prints goes to stderr: stdout is the line to the parent
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def reply(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=replies)

    try:
        module = importlib.import_module(name)
    except Exception as error:  # not installed, or being worked on
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
                run = None  # free the last work's memory before the next one's is taken
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
