"""Data of the cluster tests, in a separate module: other imports of workers would count as their memory."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np

ROWS, COLUMNS = 50_000, 20  # of a chunk


def block(i: int, order: Path | None = None) -> np.ndarray:
    """Return a chunk of the data by its number. If the file ``order`` exists, the process that loads it exits immediately."""
    if order is not None and i == 5 and order.exists():
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    some = np.random.default_rng(i).standard_normal((ROWS // 50, COLUMNS))
    return np.tile(some, (50, 1))
