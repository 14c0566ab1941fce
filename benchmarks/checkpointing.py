"""Measure peak memory and time of a 24-layer MLP with and without checkpoints, in separate processes.

python benchmarks/checkpointing.py [--libraries chainrule torch] [--batch 4096] [--width 256]

The layers are divided into segments. Only the inputs of the segments are saved; the other values are recomputed in the
backward pass. The peak includes the gradients of the weights, so checkpoints help if activations are larger than weights.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import subprocess
import sys
from statistics import median
from time import perf_counter
from typing import Any

from eager import print_table

LAYERS = 24
MEMORY_GOAL = 0.35
TIME_GOAL = 1.4


def measure(library: str, activation: str, segments: int, batch: int, width: int) -> dict[str, float]:
    """Return the minimum seconds of five passes and the growth of peak memory in bytes; 0 segments: no checkpoints."""
    torch = importlib.import_module(library)
    checkpoints = importlib.import_module(f"{library}.utils.checkpoint")
    act = {"tanh": torch.tanh, "gelu": torch.nn.functional.gelu}[activation]
    torch.manual_seed(0)
    weights = [(torch.randn(width, width) / width**0.5).requires_grad_() for _ in range(LAYERS)]
    layers = [lambda h, w=w: act(h @ w) for w in weights]
    x = torch.randn(batch, width)

    def step() -> None:
        if segments:
            y = checkpoints.checkpoint_sequential(layers, segments, x, use_reentrant=False)
        else:
            y = x
            for layer in layers:
                y = layer(y)
        y.sum().backward()
        for w in weights:
            w.grad = None

    warm = torch.randn(2, width)
    act(warm @ weights[0]).sum().backward()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step()
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    times = []
    for _ in range(5):
        start = perf_counter()
        step()
        times.append(perf_counter() - start)
    return {"bytes": peak, "seconds": min(times)}


def in_process(*arguments: Any) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    cost: dict[str, float] = json.loads(done.stdout)
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--libraries", nargs="+", default=["chainrule", "torch"])
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--segments", type=int, nargs="+", default=[4, 6])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        library, activation, *numbers = options.measure
        print(json.dumps(measure(library, activation, *map(int, numbers))))
        return
    size = (options.batch, options.width)
    rows = []
    for activation in ("tanh", "gelu"):
        for segments in options.segments:
            for library in options.libraries:
                pairs = [
                    (in_process(library, activation, 0, *size), in_process(library, activation, segments, *size))
                    for _ in range(options.repeats)
                ]
                memory = median(kept["bytes"] / plain["bytes"] for plain, kept in pairs)
                time = median(kept["seconds"] / plain["seconds"] for plain, kept in pairs)
                plain, kept = pairs[0]
                mib = f"{plain['bytes'] / 2**20:.0f} → {kept['bytes'] / 2**20:.0f}"
                rows.append([library, activation, str(segments), mib, f"{memory:.2f}", f"{time:.2f}"])
    print(f"\n{LAYERS} layers, batch {size[0]}, width {size[1]}; goals: memory ≤ {MEMORY_GOAL}, time ≤ {TIME_GOAL}\n")
    print_table(["library", "layer", "segments", "peak MiB", "memory", "time"], rows)


if __name__ == "__main__":
    main()
