"""Draws from the global random number generators are found by the memory of the generators."""

import random

import numpy as np
import pytest

from chainrule._src.compiling import generators
from chainrule._src.compiling.generators import Generators

DRAWS = {
    "of a float": np.random.random_sample,
    "of a normal number, and of the second one that it has computed": np.random.standard_normal,
    "of an integer": lambda: np.random.randint(5),
    "of a permutation": lambda: np.random.permutation(4),
    "by Python": random.random,
    "of a normal number by Python, and of the second one that it has computed": lambda: random.gauss(0, 1),
    "of a choice by Python": lambda: random.choice([1, 2]),
}


@pytest.fixture(params=[True, False], ids=["by memory", "by states"])
def by_memory(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(generators, "_has_state_in_memory", lambda with_numpy: False)
    state = random.getstate(), np.random.get_state()
    yield request.param
    random.setstate(state[0])
    np.random.set_state(state[1])


def test_the_memory_of_generators_is_known_here():
    assert generators._memory(True) is not None


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_every_draw_is_found_and_drawn_again_after_a_rewind(by_memory, draw):
    for _ in range(3):
        before = Generators()
        assert not before.has_drawn(False, False) and not before.has_drawn(True, False)
        drawn = draw()
        assert before.has_drawn(True, False)
        before.rewind()
        assert not before._changed() and np.array_equal(draw(), drawn)


@pytest.mark.parametrize("seed", [random.seed, np.random.seed])
def test_a_new_seed_counts_as_a_draw(by_memory, seed):
    seed(0)
    before = Generators()
    seed(1)
    assert before._changed()
    before.rewind()
    drawn = random.random(), np.random.random_sample()
    seed(0)
    before.rewind()
    assert (random.random(), np.random.random_sample()) == drawn


def test_states_are_read_once_between_draws(monkeypatch):
    read = []
    get_state = np.random.get_state
    monkeypatch.setattr(np.random, "get_state", lambda **options: read.append(1) or get_state(**options))
    np.random.random_sample()
    for _ in range(3):
        assert not Generators()._changed()
    assert len(read) == 1
    np.random.random_sample()
    assert not Generators()._changed() and len(read) == 2


def test_other_bit_generators_are_compared_by_their_states(by_memory):
    if not hasattr(np.random, "set_bit_generator"):
        pytest.skip("this version of NumPy has one bit generator")
    usual = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(0))
    try:
        before = Generators()
        assert not before._changed()
        drawn = np.random.random_sample()
        assert before._changed()
        before.rewind()
        assert np.random.random_sample() == drawn
    finally:
        np.random.set_bit_generator(usual)
