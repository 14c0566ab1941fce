"""Data of the cluster's tests, in a module of its own: what workers load beside it would count as their memory."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np

ROWS, COLUMNS = 50_000, 20  # of a chunk


def block(i: int, order: Path | None = None) -> np.ndarray:
    """A chunk of the data, which its number says. Where there is an order, the process that gets it ends on the spot."""
    if order is not None and i == 5 and order.exists():
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    some = np.random.default_rng(i).standard_normal((ROWS // 50, COLUMNS))
    return np.tile(some, (50, 1))
