"""Fits on a cluster of processes that cannot hold the data; one process is killed during the fit.

Each process can hold half of the data; with ``make cluster`` a quarter.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_data import COLUMNS, ROWS, block

import chainrule as cr

da = pytest.importorskip("dask.array", reason="Dask is not installed: pip install chainrule[dask]")
distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install chainrule[dask]")
pytest.importorskip("scipy", reason="SciPy is not installed: pip install chainrule[scipy]")
import dask  # noqa: E402

MEMORY = 160 * 2**20  # of each worker, of which Python, NumPy and Dask use 95
LARGE = os.environ.get("CHAINRULE_CLUSTER") == "1"
TIMES = 4 if LARGE else 2
BLOCKS = TIMES * MEMORY // (ROWS * COLUMNS * 8) + 1
HIDDEN = 6
#: Optional imports of Dask and SciPy that need more memory than the fit.
LEAN = "import sys; sys.modules.update(sparse=None, xarray=None, pandas=None)"

large = pytest.mark.skipif(not LARGE, reason="takes minutes of a busy machine: make cluster runs it")


def labels(x: Any) -> Any:
    return (np.sin(2 * (x @ np.linspace(-1, 1, COLUMNS))) > 0.1) * 1.0


def logistic(w: Any, x: Any, y: Any) -> Any:
    z = x @ w
    return np.mean(np.logaddexp(0, z) - y * z) + 0.01 * np.sum(w**2)


def network(p: Any, x: Any, y: Any) -> Any:
    z = np.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
    return np.mean(np.logaddexp(0, z) - y * z) + 0.01 * (np.sum(p["w1"] ** 2) + np.sum(p["w2"] ** 2))


def start_of_network() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "w1": 0.3 * rng.standard_normal((COLUMNS, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": 0.3 * rng.standard_normal(HIDDEN),
        "b2": np.array(0.0),
    }


@pytest.fixture(scope="module")
def in_memory() -> tuple[np.ndarray, np.ndarray]:
    x = np.concatenate([block(i) for i in range(BLOCKS)])
    return x, labels(x)


@pytest.fixture
def client(tmp_path: Path) -> Any:
    config = {"distributed.worker.preload": [LEAN], "distributed.scheduler.allowed-failures": 10}
    with (
        dask.config.set(config),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit=MEMORY,
            dashboard_address=None,
            local_directory=str(tmp_path),
            silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def fit(client: Any, order: Path, loss: Callable[..., Any], start: Any, steps: int) -> tuple[Any, set[int], set[int]]:
    """Fit on the cluster while one worker is killed; also return the processes at the beginning and at the end."""
    blocks = [da.from_delayed(dask.delayed(block)(i, order), (ROWS, COLUMNS), float) for i in range(BLOCKS)]
    x = da.concatenate(blocks)
    assert x.nbytes >= TIMES * MEMORY
    before = set(client.run(os.getpid).values())
    finished = []

    def killing(x: Any) -> None:
        finished.append(x)
        if len(finished) == max(1, steps // 2):
            order.touch()

    found = cr.scipy.minimize(
        loss, start, args=(x, labels(x)), method="L-BFGS-B", callback=killing, options={"maxiter": steps}
    )
    assert not order.exists(), "the worker was not killed"
    assert found.nit == steps
    client.wait_for_workers(2, timeout=120)
    return found, before, set(client.run(os.getpid).values())


def check(found: Any, loss: Callable[..., Any], start: Any, steps: int, data: Any) -> None:
    """Check that the same steps on the same data in memory end at the same parameters."""
    expected = cr.scipy.minimize(loss, start, args=data, method="L-BFGS-B", options={"maxiter": steps})
    assert found.nfev == expected.nfev
    for got, wanted in zip(cr.tree.tree_leaves(found.x), cr.tree.tree_leaves(expected.x), strict=True):
        assert np.all(np.isfinite(wanted)) and not np.array_equal(got, 0 * wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.fun, expected.fun, rtol=1e-10)


def test_a_fit_survives_a_worker(client: Any, in_memory: Any, tmp_path: Path) -> None:
    found, before, after = fit(client, tmp_path / "order", logistic, np.zeros(COLUMNS), 2)
    assert len(before) == len(after) == 2 and before != after
    check(found, logistic, np.zeros(COLUMNS), 2, in_memory)


# the logistic fit has converged after two steps
@large
@pytest.mark.parametrize(
    ("loss", "start", "steps"), [(logistic, np.zeros(COLUMNS), 2), (network, start_of_network(), 12)]
)
def test_whole_fits_survive_a_worker(
    client: Any, in_memory: Any, tmp_path: Path, loss: Any, start: Any, steps: int
) -> None:
    found, before, after = fit(client, tmp_path / "order", loss, start, steps)
    assert len(before) == len(after) == 2 and before != after
    check(found, loss, start, steps, in_memory)
    deadline = time.monotonic() + 60
    while any(client.run(_held).values()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not any(client.run(_held).values()), "workers keep nothing of a fit"


def _held(dask_worker: Any) -> int:
    return len(dask_worker.data)
