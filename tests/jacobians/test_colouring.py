"""Colourings of patterns, and Jacobians from few products."""

import numpy as np
import pytest

from chainrule.jacobians.colouring import check_products, coloured, entries, pattern_of


def banded(n, width):
    return abs(np.subtract.outer(np.arange(n), np.arange(n))) <= width


def brusselator(n):
    """Two fields on a periodic grid: five points of the own field, one of the other."""
    own = np.eye(n * n).reshape(n, n, -1)
    stencil = own + sum(np.roll(own, shift, axis) for shift in (1, -1) for axis in (0, 1))
    return np.block([[stencil.reshape(n * n, -1), np.eye(n * n)], [np.eye(n * n), stencil.reshape(n * n, -1)]])


def scattered(shape, density, seed):
    return np.random.default_rng(seed).random(shape) < density


PATTERNS = {
    "diagonal": (np.eye(5), 1, False),
    "tridiagonal": (banded(9, 1), 3, False),
    "a full row": (np.vstack([np.eye(6), np.ones((1, 6))]), 2, True),
    "a full column": (np.hstack([np.eye(6), np.ones((6, 1))]), 2, False),
    "a grid": (brusselator(16), 11, False),
    "dense": (np.ones((3, 4)), 3, True),
    "empty": (np.zeros((3, 2)), 0, False),
    "no rows": (np.zeros((0, 4)), 0, False),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_how_many_colours(name):
    matrix, count, of_rows = PATTERNS[name]
    found = coloured(pattern_of(matrix, matrix.shape))
    assert (found.number, found.of_rows) == (count, of_rows)


@pytest.mark.parametrize("seed", range(6))
def test_products_give_every_entry_of_a_matrix(seed):
    r = np.random.default_rng(seed)
    mask = scattered((r.integers(1, 40), r.integers(1, 40)), r.uniform(0.02, 0.4), seed)
    matrix = np.where(mask, r.standard_normal(mask.shape), 0)
    pattern = pattern_of(mask, mask.shape)
    for of_rows in (False, True):
        colouring = coloured(pattern, of_rows)
        shape = mask.shape[:1] if of_rows else mask.shape[1:]
        for step in (1, 3, 100):
            products = (lambda g: g @ matrix) if of_rows else (lambda t: t @ matrix.T)
            values = entries(pattern, colouring, products, shape, matrix.dtype, step)
            assert np.array_equal(values, matrix[pattern.rows, pattern.cols])


def test_all_entries_are_kept_that_are_stored():
    sparse = pytest.importorskip("scipy.sparse")
    stored = sparse.coo_array(([1.0, 0.0, 2.0, 3.0], ([0, 1, 1, 1], [2, 0, 1, 1])), shape=(2, 3))
    pattern = pattern_of(stored, (2, 3))
    assert pattern.rows.tolist() == [0, 1, 1] and pattern.cols.tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match=r"\(2, 3\), and the Jacobian is a matrix of shape \(3, 2\)"):
        pattern_of(stored, (3, 2))


def test_a_pattern_that_misses_entries_is_told_by_products():
    matrix = np.triu(np.ones((5, 5)))
    x = np.zeros(5)
    for mask, wrong in ((matrix, None), (np.eye(5), "4 of 5"), (np.where(matrix - np.eye(5, k=3) > 0, 1, 0), "2 of 5")):
        pattern = pattern_of(mask, mask.shape)
        values = matrix[pattern.rows, pattern.cols]
        given = (pattern, values, lambda t: t @ matrix.T, lambda g: g @ matrix, x, x)
        if wrong is None:
            check_products(*given)
        else:
            with pytest.raises(ValueError, match=wrong):
                check_products(*given)
