"""What several folders of tests use."""

from __future__ import annotations

import cProfile
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Generator

import pytest
from _pytest.runner import runtestprotocol

from chainrule._src.compiling import policy


def pytest_configure() -> None:
    """Processes that tests start keep what they compile of the library: else each compiles all of it again."""
    # Where no time passes, tracing costs nothing: each new kind of call is traced when it first comes, on any machine.
    policy.perf_counter = lambda: 0.0
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Two processes whose BLAS has two threads each wait for one another: half of the time of tests with matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


_COLLECTED = threading.Event()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Other processes collect in silence, for longer than somebody who waits believes that something is going on."""

    def tick() -> None:
        begin = time.monotonic()
        while not _COLLECTED.wait(10):
            print(f"collecting tests, {time.monotonic() - begin:.0f} s", file=sys.__stderr__, flush=True)

    threading.Thread(target=tick, daemon=True).start()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(ids: list[str]) -> None:
    if not _COLLECTED.is_set():
        _COLLECTED.set()
        print(f"{len(ids):,} tests", file=sys.__stderr__, flush=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector run rarely: nothing that is collected can be freed, and there is much of it.

    It stays enabled: Dask remembers whether it was when Dask was imported.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000, 100, 100)
    try:
        return (yield)
    finally:
        gc.set_threshold(*thresholds)


def pytest_collection_finish() -> None:
    """Tests that collect garbage look at what tests made, not at the tests themselves, all of which are in memory."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Send one message from a worker for a test that passed. The other five cost more CPU time than most tests do."""
    if not hasattr(item.config, "workerinput") or item.config.option.xmlpath:  # an XML report needs every phase
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nor at what other files' tests keep."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture
def calls() -> Callable[[Callable[[], object]], int]:
    """How many functions a function calls, Python's and C's: the work it does, whatever else the machine has to do."""

    def count(function: Callable[[], object]) -> int:
        with cProfile.Profile() as profile:
            function()
        return sum(entry.callcount for entry in profile.getstats())

    return count
