"""Measure the import time of a library and the memory of a long graph.

python benchmarks/footprint.py LIBRARY multiply|add NODES

records a chain of one-element operations, runs its backward pass, and prints the growth of the process's peak memory.
"""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
from time import perf_counter


def import_ms(library: str, environment: dict[str, str]) -> float:
    """Return the milliseconds that `import library` takes in a new interpreter."""
    command = [sys.executable, "-X", "importtime", "-c", f"import {library}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(last_line(done.stderr))
    for line in reversed(done.stderr.splitlines()):
        fields = line.removeprefix("import time:").split("|")
        if len(fields) == 3 and fields[2].strip() == library:
            return int(fields[1]) / 1000
    raise RuntimeError(f"-X importtime does not mention {library}")


def chain_cost(library: str, step: str, nodes: int, environment: dict[str, str]) -> dict[str, float]:
    """Return bytes and seconds for recording a chain of `nodes` operations and its backward pass, in a new process."""
    command = [sys.executable, __file__, library, step, str(nodes)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(last_line(done.stderr) or f"ended with {done.returncode}")
    cost: dict[str, float] = json.loads(done.stdout)
    return cost


def last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


def _peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _chain(library: str, step: str, nodes: int) -> None:
    torch = importlib.import_module(library)
    before = _peak_bytes()
    start = perf_counter()
    x = torch.ones(1, requires_grad=True)
    y = x
    if step == "multiply":
        for _ in range(nodes):
            y = y * 1.0
    else:
        for _ in range(nodes):
            y = y + 1
    y.sum().backward()
    seconds = perf_counter() - start
    assert x.grad.item() == 1.0
    print(json.dumps({"bytes": _peak_bytes() - before, "seconds": seconds}))


if __name__ == "__main__":
    _chain(sys.argv[1], sys.argv[2], int(sys.argv[3]))
