"""Large arrays of zeros, which may reuse memory; and when the cycle collector scans long-lived objects."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from chainrule._src import config
from chainrule._src.arrays import memory
from chainrule._src.arrays.memory import zeros

float64 = np.dtype(np.float64)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(memory, "_LARGEST_MMAP_THRESHOLD", 800)
    monkeypatch.setattr(memory, "_MOST_KEPT", 8000)
    monkeypatch.setattr(memory, "_last", [])
    monkeypatch.setattr(config, "KEEP_MEMORY", True)


def place(array):
    return array.__array_interface__["data"][0]


def test_memory_is_used_again():
    x = zeros((10, 20), float64)
    x[:] = 7
    before = place(x)
    del x
    y = zeros((15, 12), float64)
    assert place(y) == before and not y.any() and y.flags.writeable and y.flags.c_contiguous
    assert y.dtype == float64 and y.shape == (15, 12)


@pytest.mark.parametrize(
    "keep", [lambda x: x, lambda x: x[3:, ::2], lambda x: x.T.reshape(-1), lambda x: memoryview(x)]
)
def test_memory_that_something_refers_to_is_left_alone(keep):
    x = zeros((10, 20), float64)
    x[:] = 7
    kept = keep(x)
    del x
    y = zeros((10, 20), float64)
    y[:] = 1
    z = zeros((10, 20), float64)
    z[:] = 2
    assert (np.asarray(kept) == 7).all() and (y == 1).all()
    assert not np.shares_memory(np.asarray(kept), y) and not np.shares_memory(y, z)


def test_of_another_size():
    x = zeros((10, 20), float64)
    before = place(x)
    del x
    larger, smaller = zeros((30, 20), float64), zeros((10, 10), float64)
    assert place(larger) != before != place(smaller)
    assert larger.shape == (30, 20) and not larger.any() and not smaller.any()


def test_small_and_huge_ones_are_numpys():
    for shape in ((3,), (2000,)):
        assert zeros(shape, float64).base is None
    assert memory._last == []


def test_switch(monkeypatch):
    monkeypatch.setattr(config, "KEEP_MEMORY", False)
    assert zeros((10, 20), float64).base is None


@pytest.mark.parametrize("frozen", [False, True])
def test_what_stays_is_not_looked_through_at_once(frozen):
    if frozen:
        gc.freeze()
    before = gc.get_freeze_count()
    try:
        with memory.paused_collector(staying=True):
            assert not gc.isenabled()
            made = [[] for _ in range(5000)]
            young = {id(x) for x in gc.get_objects(0)}
            assert all(id(x) in young for x in made)
        young = {id(x) for x in gc.get_objects(0)}
        assert gc.isenabled() and (frozen or not any(id(x) in young for x in made))
        assert gc.get_freeze_count() == before
    finally:
        if frozen:
            gc.unfreeze()
