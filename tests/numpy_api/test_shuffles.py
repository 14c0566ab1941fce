"""Shuffles that assign ``x[i], x[j] = x[j], x[i]``: if rows are views, values would be lost, so this raises."""

import operator
import random

import numpy as np
import pytest

import chainrule as cr

ROWS = np.arange(12.0).reshape(6, 2)
SHUFFLES = {
    "Generator": np.random.default_rng(0).shuffle,
    "RandomState": np.random.RandomState(0).shuffle,
    "Random": random.Random(0).shuffle,
    "module of NumPy": np.random.shuffle,
    "module of Python": random.shuffle,
}


@pytest.mark.filterwarnings("ignore:you are shuffling")
@pytest.mark.parametrize("shuffle", SHUFFLES.values(), ids=SHUFFLES)
def test_a_shuffle_of_views_is_refused(shuffle):
    for x in (cr.Array(ROWS), cr.tensor(ROWS), cr.tensor(ROWS[:, 0]), cr.Array(ROWS, requires_grad=True) * 1):
        with pytest.raises(TypeError, match=r"views of its memory(.|\n)*x\[rng.permutation\(len\(x\)\)\]"):
            shuffle(x)
        assert cr.equal(cr.tensor(np.asarray(x.detach())), cr.tensor(ROWS if x.ndim == 2 else ROWS[:, 0]))
    for transformation in (cr.grad, cr.vmap):
        with pytest.raises(TypeError, match="views of its memory"):
            transformation(lambda x: [shuffle(x), np.sum(x)][1])(ROWS[None] if transformation is cr.vmap else ROWS)


@pytest.mark.filterwarnings("ignore:you are shuffling")
@pytest.mark.parametrize("shuffle", SHUFFLES.values(), ids=SHUFFLES)
def test_numbers_and_lists_are_shuffled(shuffle):
    numbers, listed = cr.Array(ROWS[:, 0]), list(cr.Array(ROWS))
    shuffle(numbers)
    shuffle(listed)
    assert sorted(np.asarray(numbers)) == ROWS[:, 0].tolist()
    assert sorted(np.asarray(row)[0] for row in listed) == ROWS[:, 0].tolist()


def test_other_assignments_of_rows_are_as_ever():
    def swapped(x):
        x = x.copy()
        x[0], x[1] = x[1], x[0]  # NumPy also writes the second row twice
        operator.setitem(x, 2, x[3])
        x.__setitem__(4, x[5])
        return x

    np.testing.assert_array_equal(np.asarray(swapped(cr.Array(ROWS))), swapped(ROWS))
