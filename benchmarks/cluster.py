"""Compare logistic regression on a cluster of two processes with hand-written NumPy code and with dask-ml.

``python benchmarks/cluster.py`` measures value and gradient at one point, where the data is generated each time instead
of read from storage: seconds, rows per second, bytes moved between processes, and the peak memory of a worker.
``--scale 1 2 4 8`` multiplies the amount of data; ``--fit`` compares complete fits with dask-ml's ``LogisticRegression``.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from scipy.special import expit

import chainrule as cr

ROWS, COLUMNS = 100_000, 20  # the shape of a chunk


def block(i: int, copies: int) -> np.ndarray:
    """Generate a chunk; random numbers take about as long as reading from storage, copies almost no time."""
    return np.tile(np.random.default_rng(i).standard_normal((ROWS // copies, COLUMNS)), (copies, 1))


def labels(x: Any) -> Any:
    return (x @ np.linspace(-1, 1, COLUMNS) > 0.1) * 1.0


def data(blocks: int, copies: int) -> tuple[Any, Any]:
    chunks = [da.from_delayed(dask.delayed(block)(i, copies), (ROWS, COLUMNS), float) for i in range(blocks)]
    x = da.concatenate(chunks)
    return x, labels(x)


# -- one gradient, three ways ------------------------------------------------------------------------------------------


def loss(w: Any, x: Any, y: Any) -> Any:
    z = x @ w
    return np.sum(np.logaddexp(0, z) - y * z)


def ours(w: np.ndarray, x: Any, y: Any, copies: int) -> Any:
    return cr.value_and_grad(loss)(w, x, y)


def _part(x: np.ndarray, w: np.ndarray) -> tuple[Any, np.ndarray]:
    y = labels(x)
    z = x @ w
    return np.sum(np.logaddexp(0, z) - y * z), x.T @ (expit(z) - y)


def _add(parts: list[Any]) -> Any:
    return sum(value for value, _ in parts), sum(gradient for _, gradient in parts)


def at_once(w: np.ndarray, x: Any, y: Any, copies: int) -> Any:
    """Compute value and gradient like the solvers."""
    return cr.compute(*ours(w, x, y, copies))


def by_hand(w: np.ndarray, x: Any, y: Any, copies: int) -> Any:
    """Compute value and gradient of each chunk in one function, summed by a tree reduction."""
    parts = [dask.delayed(_part)(dask.delayed(block)(i, copies), w) for i in range(x.numblocks[0])]
    while len(parts) > 1:
        parts = [dask.delayed(_add)(parts[i : i + 4]) for i in range(0, len(parts), 4)]
    return parts[0]


WAYS: dict[str, Callable[..., Any]] = {"by hand": by_hand, "cr.compute": at_once, "dask.compute": ours}


# -- measurement -------------------------------------------------------------------------------------------------------


def _start(dask_worker: Any) -> None:
    with open("/proc/self/clear_refs", "w") as file:  # reset the memory peak
        file.write("5")


def _peak(dask_worker: Any) -> float:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


def _moved(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def _processor(dask_worker: Any) -> float:
    return float(sum(dask_worker.monitor.proc.cpu_times()[:2]))


def _over_workers(client: Client, what: Callable[..., Any]) -> list[Any]:
    return list(client.run(what).values())


def measured(client: Client, way: Callable[..., Any], *point: Any) -> dict[str, float]:
    """Measure one value and gradient: wall and CPU time, bytes moved, peak memory."""
    client.run(_start)
    moved, processor = sum(_over_workers(client, _moved)), sum(_over_workers(client, _processor))
    own, began = time.process_time(), time.perf_counter()
    lazy = way(*point)
    dask.compute(lazy)
    seconds = time.perf_counter() - began
    own = time.process_time() - own
    return {
        "seconds": seconds,
        "processor": sum(_over_workers(client, _processor)) - processor + own,
        "moved": (sum(_over_workers(client, _moved)) - moved) / 2**20,
        "memory": max(_over_workers(client, _peak)),
    }


def gradients(client: Client, scales: list[int], blocks: int, rounds: int, copies: int) -> None:
    print(f"value and gradient; {ROWS:,} rows of {COLUMNS} columns in a chunk, made of {copies} copies\n")
    print("| data | way | s | s of processors | million rows/s | MiB moved | MiB of a worker, at most |")
    print("|---|---|---:|---:|---:|---:|---:|")
    w = np.linspace(0.5, -0.5, COLUMNS)
    for scale in scales:
        x, y = data(scale * blocks, copies)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
        for way in WAYS.values():
            dask.compute(way(w, *data(2, copies), copies))
        for _ in range(rounds):  # alternate, so that other load affects both
            for name, way in WAYS.items():
                found[name].append(measured(client, way, w, x, y, copies))
        for name, runs in found.items():
            m = {key: statistics.median([run[key] for run in runs]) for key in runs[0]}
            print(
                f"| {x.nbytes / 2**30:.2f} GiB | {name} | {m['seconds']:.2f} | {m['processor']:.2f} | "
                f"{len(x) / m['seconds'] / 1e6:.2f} | {m['moved']:.2f} | {m['memory']:.0f} |"
            )
        for name in ("cr.compute", "dask.compute"):
            for key in ("seconds", "processor"):
                ratios = [a[key] / b[key] for a, b in zip(found[name], found["by hand"], strict=True)]
                print(f"| | {name} / by hand, {key} | {statistics.median(ratios):.2f} | | | | |", flush=True)


def fits(client: Client, blocks: int) -> None:
    """Compare L-BFGS with chainrule's gradients and dask-ml's lbfgs solver at the same accuracy."""
    if importlib.util.find_spec("dask_ml") is None:
        print("dask-ml is not installed: pip install dask-ml")
        return
    from dask_ml.linear_model import LogisticRegression

    x, y = data(blocks, 1)
    noisy = da.where(da.arange(len(x), chunks=x.chunks[0]) % 10 == 0, 1 - y, y)
    strength = 1.0

    def objective(w: Any) -> Any:
        return loss(w, x, noisy) + strength / 2 * np.sum(w**2)

    def chainrule() -> np.ndarray:
        return cr.scipy.minimize(objective, np.zeros(COLUMNS), method="L-BFGS-B", options={"gtol": 1e-3}).x

    def dask_ml() -> np.ndarray:
        return (
            LogisticRegression(
                solver="lbfgs", C=strength, fit_intercept=False, solver_kwargs={"normalize": False}, tol=1e-9
            )
            .fit(x, noisy)
            .coef_.ravel()
        )

    print("\n| fit | s | s of processors | value at the end |\n|---|---:|---:|---:|")
    for name, fit in {"chainrule": chainrule, "dask-ml": dask_ml}.items():
        processor, own, began = sum(_over_workers(client, _processor)), time.process_time(), time.perf_counter()
        w = fit()
        seconds = time.perf_counter() - began
        processor = sum(_over_workers(client, _processor)) - processor + time.process_time() - own
        print(f"| {name} | {seconds:.1f} | {processor:.1f} | {float(objective(w).compute()):.6f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=int, nargs="+", default=[1], help="multiples of the amount of data")
    parser.add_argument("--blocks", type=int, default=16, help="chunks at scale 1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--copies", type=int, default=1, help="number of copies of random numbers in a chunk")
    parser.add_argument("--fit", action="store_true", help="also compare fits with dask-ml")
    parser.add_argument("--memory", default="600MiB", help="memory of each worker")
    options = parser.parse_args()
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=options.memory, dashboard_address=None, silence_logs="ERROR"
        ) as cluster,
        Client(cluster) as client,
    ):
        gradients(client, options.scale, options.blocks, options.rounds, options.copies)
        if options.fit:
            fits(client, options.blocks)


if __name__ == "__main__":
    main()
