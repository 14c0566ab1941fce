"""Random terms, and the matrices that they define, computed entry by entry."""

from __future__ import annotations

import math

import numpy as np

from chainrule._src.jacobians.terms import Term, Variable


def matrix_of(terms, out_shape, variable, dtype=np.float64):
    """Return the Jacobian of shape (m, n), summed in loops."""
    J = np.zeros((math.prod(out_shape), variable.size), dtype)
    for term in terms:
        vals = np.broadcast_to(np.asarray(term.vals), term.cols.shape)
        for entry in np.ndindex(term.cols.shape):
            slot, *place = entry
            row = int(np.ravel_multi_index(place, out_shape)) if term.rows is None else int(term.rows[place[0]])
            J[row, term.cols[slot, *place]] += vals[slot, *place]
    return J


def assert_adds_up(found, terms, out_shape, variable):
    """Check that a matrix equals the sum of the terms up to rounding errors.

    A sum of k rounded numbers v has an error of at most (k - 1) u sum(abs(v)), with u half of eps and without terms in u**2,
    for any order of summation (Higham, Accuracy and Stability, 4.2): cancellation excludes a bound relative to the sum.
    """
    exact = matrix_of(terms, out_shape, variable, np.result_type(found, np.float64))
    sizes = [Term(t.source, t.cols, np.abs(np.asarray(t.vals)), t.rows) for t in terms]
    counts = [Term(t.source, t.cols, 1, t.rows) for t in terms]
    magnitude, count = (matrix_of(parts, out_shape, variable) for parts in (sizes, counts))
    assert (np.abs(found - exact) <= count * np.finfo(found.dtype).eps * magnitude).all()


def random_terms(rng, out_shape, variable, count, dtype=np.float64):
    """Return ``count`` terms of all kinds."""
    return [random_term(rng, out_shape, variable, dtype) for _ in range(count)]


def random_term(rng, out_shape, variable, dtype):
    m = math.prod(out_shape)
    rows, S = None, out_shape
    if rng.random() < 0.4:
        rows = _random_rows(rng, m)
        S = rows.shape
    cols = _random_cols(rng, variable, S)
    return Term(variable, cols, random_vals(rng, cols.shape, dtype), rows)


def _random_rows(rng, m):
    kind = rng.integers(3)
    if not m or kind == 0:  # any, with repeats
        return rng.integers(0, max(m, 1), rng.integers(0, 4) if m else 0)
    first = int(rng.integers(m))
    if kind == 1:
        return np.arange(first, int(rng.integers(first, m)) + 1)
    return np.sort(rng.choice(m, int(rng.integers(1, m + 1)), replace=False))


def _random_cols(rng, variable, S):
    slots = int(rng.integers(0, 4))
    shape = (slots, *S)
    if not variable.size:
        return np.zeros((0, *S), np.intp)
    if rng.random() < 0.5:
        return rng.integers(0, variable.size, shape)
    return _affine(rng, variable, shape)


def _affine(rng, variable, shape):
    """Return a random strided view of the seed."""
    low = high = 0
    steps = []
    for length in shape:
        room = variable.size - 1 - (high - low)
        most = room // (length - 1) if length > 1 else 2
        step = int(rng.integers(-most, most + 1))
        span = step * (max(length, 1) - 1)
        low, high = low + min(span, 0), high + max(span, 0)
        steps.append(step)
    start = int(rng.integers(-low, variable.size - high))
    size = variable.seed.itemsize
    owner = variable.seed if variable.seed.base is None else variable.seed.base
    return np.ndarray(shape, np.intp, owner, start * size, [step * size for step in steps])


def random_vals(rng, shape, dtype=np.float64):
    """Return a number, or an array with some axes of length 1, in any memory order."""
    if rng.random() < 0.25:
        return (2, -1.5, 0.0)[rng.integers(3)]
    shape = tuple(n if rng.random() < 0.7 else 1 for n in shape)
    vals = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        vals = vals + 1j * rng.standard_normal(shape)
    vals = np.asarray(vals, dtype)
    turned = rng.integers(3)
    if turned == 1:
        return np.asfortranarray(vals)
    return np.repeat(vals, 2, axis=-1)[..., ::2] if turned == 2 and vals.ndim else vals


def random_case(seed, dtype=np.float64, count=None):
    """Return ``(rng, terms, out_shape, variable)``."""
    rng = np.random.default_rng(seed)
    out_shape, in_shape = (tuple(rng.choice((0, 1, 2, 3, 4), rng.integers(0, 4), p=_SIZES)) for _ in range(2))
    out_shape, in_shape = (tuple(map(int, shape)) for shape in (out_shape, in_shape))
    variable = Variable(in_shape, np.dtype(dtype))
    count = int(rng.integers(0, 5)) if count is None else count
    return rng, random_terms(rng, out_shape, variable, count, dtype), out_shape, variable


_SIZES = (0.05, 0.2, 0.3, 0.3, 0.15)
