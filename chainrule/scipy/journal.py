"""What a solver asked for, in a file: where it was stopped, it goes on without computing again what it knows.

SciPy's solvers hand out no state to go on from. But they ask the same questions again when they are started again, so the
answers are a checkpoint of any of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from chainrule.scipy.vectors import FloatVector


class Journal:
    """Answers, written to a file as they are computed, and read from it where they are in it already.

    The file is a sequence of arrays of ``np.save``: the start, and then question and answer, one behind the other. A last
    one that was not written to its end counts as none. The last whole one is computed again, to see that the function is
    the same as it was.

    Args:
        path: the file, which need not be there.
        start: where the solver starts.

    Raises:
        ValueError: the file is of a run that started elsewhere, or no checkpoint at all.
    """

    def __init__(self, path: Any, start: FloatVector) -> None:
        self.path = Path(path)
        self.known, whole = _read(self.path)
        self.at = 1
        if not self.known:
            if self.path.exists() and self.path.stat().st_size:
                raise ValueError(
                    f"checkpoint={str(path)!r} is a file that is no checkpoint: give the path of a new one"
                )
            self._write(start)
        elif np.array_equal(self.known[0], start):
            os.truncate(self.path, whole)
        else:
            raise self._of_another_run("it started from another x0")

    def recorded(self, function: Callable[..., FloatVector]) -> Callable[..., FloatVector]:
        """Return a function from vectors to a vector, whose answers are kept."""

        def answer(*questions: FloatVector) -> FloatVector:
            asked = np.concatenate(questions)
            if self.at >= len(self.known):
                found = function(*questions)
                self._write(np.concatenate([asked, found]))
                return found
            known, found = np.split(self.known[self.at], [asked.size])
            self.at += 1
            if not np.array_equal(known, asked):
                raise self._of_another_run("the solver asks for a point that it did not ask for then")
            if self.at == len(self.known) and not _agree(found, function(*questions)):
                raise self._of_another_run("where it was stopped, the function has another value or derivative now")
            return found

        return answer

    def _write(self, record: FloatVector) -> None:
        with open(self.path, "ab") as file:
            np.save(file, record, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())

    def _of_another_run(self, why: str) -> ValueError:
        return ValueError(
            f"checkpoint={str(self.path)!r} is of another run: {why}. x0, the function, its data, method, bounds and options "
            "must be the same, for the solver to go on from where it was stopped; to start anew, remove the file"
        )


def _read(path: Path) -> tuple[list[FloatVector], int]:
    """Return the whole arrays at the beginning of a file, and where they end."""
    records: list[FloatVector] = []
    whole = 0
    if path.exists():
        with open(path, "rb") as file:
            while True:
                try:
                    records.append(np.load(file, allow_pickle=False))
                except (EOFError, ValueError, OSError):
                    break
                whole = file.tell()
    return records, whole


def _agree(x: FloatVector, y: FloatVector) -> bool:
    """Return whether two computations of the same numbers differ by no more than their order of summation explains."""
    return x.shape == y.shape and np.allclose(x, y, 1e-6, 1e-6 * np.max(np.abs(x), initial=0), equal_nan=True)
