"""Fit a small network for binary classification to data four times as large as the memory of the cluster.

``make cluster`` runs it on two local processes; ``python examples/cluster.py tcp://host:8786`` runs it on a cluster. With
``--checkpoint`` an interrupted fit is resumed when it is started again.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from tqdm import tqdm

import chainrule as cr

ROWS, COLUMNS, HIDDEN = 100_000, 20, 4


def block(i: int) -> np.ndarray:
    """Return chunk number i of the data. It is generated here; a real program reads it from a file or a database."""
    return np.random.default_rng(i).standard_normal((ROWS, COLUMNS))


def loss(p: dict[str, Any], x: Any, y: Any) -> Any:
    """Return the mean log loss of a network with one hidden layer, written in NumPy."""
    hidden = np.tanh(x @ p["w"] + p["b"])
    z = hidden @ p["v"] + p["c"]
    weights = np.sum(p["w"] ** 2) + np.sum(p["v"] ** 2)
    return np.mean(np.logaddexp(0, z) - y * z) + 1e-4 * weights


def start() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "w": 0.3 * rng.standard_normal((COLUMNS, HIDDEN)),
        "b": np.zeros(HIDDEN),
        "v": 0.3 * rng.standard_normal(HIDDEN),
        "c": np.array(0.0),
    }


@contextlib.contextmanager
def connected(address: str | None, memory: int) -> Iterator[Client]:
    """Provide a client of the cluster at an address, or of a new local cluster."""
    if address is not None:
        with Client(address) as client:
            yield client
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address=":0",
            local_directory=folder,
            silence_logs="ERROR",
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def memory_of(dask_worker: Any) -> tuple[int, int]:
    """Return the memory of a worker's process and the amount of data that it has sent to other workers, in bytes."""
    return dask_worker.monitor.proc.memory_info().rss, dask_worker.transfer_outgoing_bytes_total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", nargs="?", help="address of a scheduler; by default two local processes are started")
    parser.add_argument("--memory", type=int, default=400, help="memory of each process in MiB")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--checkpoint", type=Path, help="a file from which the fit can be resumed")
    options = parser.parse_args()
    memory = options.memory * 2**20

    with connected(options.address, memory) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        limit = sum(worker["memory_limit"] for worker in workers)
        blocks = 4 * limit // (ROWS * COLUMNS * 8) + 1
        chunks = [da.from_delayed(dask.delayed(block)(i), (ROWS, COLUMNS), float) for i in range(blocks)]
        x = da.concatenate(chunks)
        y = (np.sin(2 * (x @ np.linspace(-1, 1, COLUMNS))) > 0.1) * 1.0
        print(f"{len(workers)} workers with {limit / 2**30:.2f} GiB together; dashboard: {client.dashboard_link}")
        print(f"{len(x):,} rows, {x.nbytes / 2**30:.2f} GiB, in {blocks} chunks")

        passes = 0

        def counted(p: Any) -> Any:
            nonlocal passes
            passes += 1
            return loss(p, x, y)

        with tqdm(total=options.steps, unit="step") as bar:

            def progress(intermediate_result: Any) -> None:
                held = [rss for rss, _ in client.run(memory_of).values()]
                bar.set_postfix(loss=f"{intermediate_result.fun:.6f}", largest_worker=f"{max(held) >> 20} MiB")
                bar.update()

            found = cr.scipy.minimize(
                counted,
                start(),
                method="L-BFGS-B",
                callback=progress,
                options={"maxiter": options.steps},
                checkpoint=options.checkpoint,
            )
        sent = sum(sent for _, sent in client.run(memory_of).values())
        print(f"{found.nit} steps, {passes} passes over the data ({passes * x.nbytes / 2**30:.1f} GiB read)")
        print(f"{sent / 2**20:.2f} MiB moved between workers")
        print(f"loss {float(found.fun):.6f}; output weights {np.round(found.x['v'], 3)}")


if __name__ == "__main__":
    main()
