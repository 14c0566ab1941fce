"""Checkpoint a solver: store the function's results in a file, and replay them when the solver is restarted.

``minimize(checkpoint=path)`` makes a ``Journal``.

SciPy's solvers do not expose a state to resume from. But a restarted solver evaluates the same points in the same order, so
the results at these points are a checkpoint for any solver.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from chainrule.scipy.vectors import FloatVector


class Journal:
    """A file of function results: new results are appended, and stored ones are returned without computing.

    The file is a sequence of ``np.save`` arrays: the start, then for each call its arguments and result in one array. An
    incomplete last array is ignored. The last complete one is recomputed, to check that the function has not changed.

    Args:
        path: the file; it is created if it does not exist.
        start: the solver's start.

    Raises:
        ValueError: the file is from a run with another start, or not a checkpoint.
    """

    def __init__(self, path: Any, start: FloatVector) -> None:
        self.path = Path(path)
        self.records, complete_bytes = _read(self.path)
        self.position = 1
        if not self.records:
            if self.path.exists() and self.path.stat().st_size:
                raise ValueError(
                    f"checkpoint={str(path)!r} is an existing file, but not a checkpoint: give the path of a new file"
                )
            self._write(start)
        elif np.array_equal(self.records[0], start):
            os.truncate(self.path, complete_bytes)
        else:
            raise self._mismatch("it started from another x0")

    def cached(self, function: Callable[..., FloatVector]) -> Callable[..., FloatVector]:
        """Return a function from vectors to a vector, with results stored in the file."""

        def call(*args: FloatVector) -> FloatVector:
            query = np.concatenate(args)
            if self.position >= len(self.records):
                found = function(*args)
                self._write(np.concatenate([query, found]))
                return found
            stored_query, found = np.split(self.records[self.position], [query.size])
            self.position += 1
            if not np.array_equal(stored_query, query):
                raise self._mismatch("the solver evaluates a point that the stored run did not")
            if self.position == len(self.records) and not _agree(found, function(*args)):
                raise self._mismatch("at the last stored point, the function now has another value or derivative")
            return found

        return call

    def _write(self, record: FloatVector) -> None:
        with open(self.path, "ab") as file:
            np.save(file, record, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())

    def _mismatch(self, why: str) -> ValueError:
        return ValueError(
            f"checkpoint={str(self.path)!r} is of another run: {why}. To resume, x0, the function, its data, method, bounds "
            "and options must be the same; to start over, remove the file"
        )


def _read(path: Path) -> tuple[list[FloatVector], int]:
    """Return the complete arrays at the start of a file, and the position of their end."""
    records: list[FloatVector] = []
    complete_bytes = 0
    if path.exists():
        with open(path, "rb") as file:
            while True:
                try:
                    records.append(np.load(file, allow_pickle=False))
                except (EOFError, ValueError, OSError):
                    break
                complete_bytes = file.tell()
    return records, complete_bytes


def _agree(x: FloatVector, y: FloatVector) -> bool:
    """Return whether two results are equal up to differences in the order of summation."""
    return x.shape == y.shape and np.allclose(x, y, 1e-6, 1e-6 * np.max(np.abs(x), initial=0), equal_nan=True)
