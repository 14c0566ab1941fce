"""Configuration and fixtures shared by several test directories."""

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
    """Let the processes that tests start cache their bytecode, so that they do not compile the library each time."""
    # Without elapsed time, tracing costs nothing: each new kind of call is traced at its first occurrence, on any machine.
    policy.perf_counter = lambda: 0.0
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Two processes with two BLAS threads each wait for one another, which doubles the time of tests with matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


_COLLECTED = threading.Event()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Print a message, because the workers' collection produces no output for a long time."""

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
    """Let the garbage collector run rarely: the many objects created during the collection cannot be freed.

    The collector stays enabled, because Dask checks at its import whether it is enabled.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000, 100, 100)
    try:
        return (yield)
    finally:
        gc.set_threshold(*thresholds)


def pytest_collection_finish() -> None:
    """Freeze the collected tests, so that tests that collect garbage do not scan them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Send one message from a worker for a test that passed. The other five cost more CPU time than most tests do."""
    if not hasattr(item.config, "workerinput") or item.config.option.xmlpath:  # an XML report needs all phases
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Freeze objects that other test files keep alive, too."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture
def calls() -> Callable[[Callable[[], object]], int]:
    """Return a function that counts the Python and C calls of a function, a measure of work that is independent of load."""

    def count(function: Callable[[], object]) -> int:
        with cProfile.Profile() as profile:
            function()
        return sum(entry.callcount for entry in profile.getstats())

    return count
