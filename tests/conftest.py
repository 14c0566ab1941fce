"""What several folders of tests use."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable

import pytest


def pytest_configure() -> None:
    """Processes that tests start keep what they compile of the library: else each compiles all of it again."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Two processes whose BLAS has two threads each wait for one another: half of the time of tests with matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_collection_finish() -> None:
    """Tests that collect garbage look at what tests made, not at the tests themselves, all of which are in memory."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nor at what other files' tests keep."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture
def calls() -> Callable[[Callable[[], object]], int]:
    """How many functions a function calls, Python's and C's: the work it does, whatever else the machine has to do."""

    def count(function: Callable[[], object]) -> int:
        found = 0

        def profile(frame: object, event: str, argument: object) -> None:
            nonlocal found
            found += event in ("call", "c_call")

        sys.setprofile(profile)
        try:
            function()
        finally:
            sys.setprofile(None)
        return found

    return count
