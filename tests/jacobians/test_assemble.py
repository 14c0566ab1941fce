"""Matrices assembled from terms, compared with sums in loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_terms import assert_adds_up, matrix_of, random_case, random_terms

import chainrule as cr
from chainrule._src.jacobians.assemble import EntryPattern, add_into, dense_of_terms
from chainrule._src.jacobians.terms import Term, Variable

seeds = st.integers(0, 2**32)
few = settings(max_examples=120, deadline=None, derandomize=True, database=None)


def positions(terms, out_shape, variable):
    ones = [Term(t.source, t.cols, 1, t.rows) for t in terms]
    return np.argwhere(matrix_of(ones, out_shape, variable))


@few
@given(seeds, st.sampled_from([np.float64, np.float32, np.complex128]))
def test_dense(seed, dtype):
    _, terms, out_shape, variable = random_case(seed, dtype)
    J = dense_of_terms(terms, out_shape, variable.shape, dtype)
    assert J.shape == (*out_shape, *variable.shape)
    assert J.dtype == dtype
    assert_adds_up(J.reshape(math.prod(out_shape), variable.size), terms, out_shape, variable)


@few
@given(seeds, st.sampled_from([np.float64, np.float32, np.complex128]))
def test_sparse(seed, dtype):
    _, terms, out_shape, variable = random_case(seed, dtype)
    pattern = EntryPattern.of(terms, out_shape, variable.size)
    A = pattern.matrix(terms, dtype)
    assert A.data.dtype == dtype and A.data.shape == (pattern.nnz,)
    assert_adds_up(A.dense(), terms, out_shape, variable)
    found = np.stack([A.row_numbers(), A.indices], axis=1)
    np.testing.assert_array_equal(found, positions(terms, out_shape, variable))  # sorted, each once, zeros too
    np.testing.assert_array_equal(A.positions, pattern.positions)
    assert A.indptr[-1] == A.nnz

    turned = A.transposed()
    np.testing.assert_allclose(turned.dense(), A.dense().T)
    assert (np.diff(turned.positions) > 0).all()


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(seeds)
def test_other_numbers(seed):
    """A pattern is valid for all terms with the same indices."""
    rng, terms, out_shape, variable = random_case(seed)
    pattern = EntryPattern.of(terms, out_shape, variable.size)
    others = [Term(t.source, t.cols, t.vals * rng.standard_normal(np.shape(t.vals)), t.rows) for t in terms]
    expected = matrix_of(others, out_shape, variable)
    np.testing.assert_allclose(pattern.matrix(others).dense(), expected, rtol=1e-13, atol=1e-15)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(seeds)
def test_blocks_of_a_larger_matrix(seed):
    blocks, sparse, expected = [], [], []
    sizes = []
    for k in range(4):
        _, terms, out_shape, variable = random_case(seed + 77 * k)
        sizes.append((int(np.prod(out_shape)), variable.size))
        blocks.append((terms, out_shape, variable))
    height, width = max(m for m, _ in sizes), max(n for _, n in sizes)
    expected = np.zeros((2 * height, 2 * width))
    J = np.zeros_like(expected)
    for k, (terms, out_shape, variable) in enumerate(blocks):
        i, j = k // 2 * height, k % 2 * width
        m, n = sizes[k]
        expected[i : i + m, j : j + n] = matrix_of(terms, out_shape, variable)
        sparse.append((terms, m, i, j))
        add_into(J, sparse[-1])
    np.testing.assert_allclose(J, expected, rtol=1e-13, atol=1e-15)
    pattern = EntryPattern(sparse, expected.shape)
    A = pattern.matrix([term for terms, *_ in sparse for term in terms], np.float64)
    np.testing.assert_allclose(A.dense(), expected, rtol=1e-13, atol=1e-15)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(seeds)
def test_symmetrized(seed):
    rng, _, _, variable = random_case(seed)
    terms = random_terms(rng, variable.shape, variable, 3)
    A = EntryPattern.of(terms, variable.shape, variable.size).matrix(terms, np.float64)
    found = A.symmetrized()
    np.testing.assert_array_equal(found.dense(), found.dense().T)
    np.testing.assert_allclose(found.dense(), (A.dense() + A.dense().T) / 2, rtol=1e-13, atol=1e-15)
    stored = positions(terms, variable.shape, variable)
    both = {*map(tuple, stored), *map(tuple, stored[:, ::-1])}
    assert {*zip(found.row_numbers(), found.indices, strict=True)} == both


def brusselator_like(n, vals):
    """Return two halves of 6 slots each, periodic in two directions."""
    variable = Variable((2 * n * n,), np.dtype(np.float64))
    halves = variable.seed.reshape(2, n, n)
    terms = []
    for k in range(2):
        rows = halves[k].ravel()
        for shift, axis in ((1, 0), (-1, 0), (1, 1), (-1, 1)):
            terms.append(Term(variable, np.roll(halves[k], shift, axis).reshape(1, -1), 10.0, rows))
        terms += [Term(variable, halves[j].reshape(1, -1), vals[j][None], rows) for j in (k, 1 - k)]
    return variable, terms


def test_grid():
    vals = np.arange(1.0, 33.0).reshape(2, 16)
    variable, terms = brusselator_like(4, vals)
    pattern = EntryPattern.of(terms, variable.shape, variable.size)
    assert pattern.nnz == 6 * 32 and pattern.pool == 8 + 64
    assert (np.diff(pattern.indptr) == 6).all() and pattern.starts is None
    np.testing.assert_array_equal(pattern.matrix(terms).dense(), matrix_of(terms, variable.shape, variable))


def test_what_lies_in_order_is_not_moved():
    variable = Variable((3, 4), np.dtype(np.float64))
    W = np.arange(8.0).reshape(4, 1, 2)
    cols = np.broadcast_to(variable.seed.T[:, :, None], (4, 3, 2))
    pattern = EntryPattern.of([Term(variable, cols, W)], (3, 2), variable.size)
    assert pattern.pool == 8 and pattern.order is not None  # shared by the rows of x
    full = np.arange(12.0).reshape(1, 3, 4)
    term = Term(variable, variable.seed[None], full)
    pattern = EntryPattern.of([term], (3, 4), variable.size)
    data = pattern.data([term])
    assert pattern.order is None and not np.shares_memory(data, full)


def test_explicit_zeros_are_entries():
    variable = Variable((3,), np.dtype(np.float64))
    terms = [Term(variable, variable.seed[None], np.array([[0.0, 1.0, 0.0]]))]
    assert EntryPattern.of(terms, (3,), 3).nnz == 3


def test_complex_numbers_do_not_become_real_ones():
    variable = Variable((2,), np.dtype(np.float64))
    for vals in (1j, np.array([[1j, 2]])):
        terms = [Term(variable, variable.seed[None], vals)]
        with pytest.raises(TypeError, match="a Jacobian of float64 cannot hold derivatives of complex128"):
            dense_of_terms(terms, (2,), (2,), np.float64)
        with pytest.raises(TypeError, match="complex128"):
            EntryPattern.of(terms, (2,), 2).data(terms, np.float64)
        assert dense_of_terms(terms, (2,), (2,)).dtype == np.complex128


def test_terms_that_are_not_those_of_the_pattern():
    variable = Variable((2,), np.dtype(np.float64))
    pattern = EntryPattern.of([Term(variable, variable.seed[None], 1)], (2,), 2)
    with pytest.raises(ValueError, match="the pattern has 1 numbers, but the terms have 2"):
        pattern.data([Term(variable, variable.seed[None], np.ones((1, 2)))])


# -- array-likes instead of arrays -------------------------------------------------------------------------------------


def with_numbers(terms, numbers):
    """Return the same terms, with vals that are parts of one array-like."""
    result, begin = [], 0
    for term in terms:
        size = int(np.prod(np.shape(term.vals)))
        vals = np.reshape(numbers[begin : begin + size], np.shape(term.vals)) if np.ndim(term.vals) else term.vals
        result.append(Term(term.source, term.cols, vals, term.rows))
        begin += size
    return result


def numbers_of(terms):
    return np.concatenate([np.zeros(0), *[np.ravel(np.asarray(t.vals, np.float64)) for t in terms]])


cases_with_numbers = [seed for seed in range(60) if numbers_of(random_case(seed)[1]).size > 3][:12]


@pytest.mark.parametrize("seed", cases_with_numbers)
@pytest.mark.parametrize("make", ["dense", "data"])
def test_differentiable(seed, make):
    rng, terms, out_shape, variable = random_case(seed)
    pattern = EntryPattern.of(terms, out_shape, variable.size)

    def assembled(numbers):
        own = with_numbers(terms, numbers)
        return dense_of_terms(own, out_shape, variable.shape) if make == "dense" else pattern.data(own)

    numbers = numbers_of(terms)
    plain = assembled(numbers)
    recorded = assembled(cr.tensor(numbers, requires_grad=True))
    assert isinstance(recorded, cr.Tensor) and recorded.requires_grad
    np.testing.assert_allclose(recorded.detach().numpy(), plain, rtol=1e-13, atol=1e-15)

    direction = rng.standard_normal(numbers.shape)
    expected = assembled(direction) - assembled(np.zeros_like(numbers))  # it is affine
    _, tangent = cr.func.jvp(assembled, (numbers,), (direction,))
    np.testing.assert_allclose(tangent, expected, rtol=1e-12, atol=1e-14)
    g = rng.standard_normal(plain.shape)
    (pulled,) = cr.func.vjp(assembled, numbers)[1](g)
    assert np.vdot(g, expected) == pytest.approx(np.vdot(pulled, direction), rel=1e-9, abs=1e-12)

    several = np.stack([numbers, direction])
    for found, row in zip(cr.func.vmap(assembled)(several), several, strict=True):
        np.testing.assert_allclose(found, assembled(row), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("seed", cases_with_numbers[:6])
def test_compiled(seed):
    rng, terms, out_shape, variable = random_case(seed)
    pattern = EntryPattern.of(terms, out_shape, variable.size)

    def assembled(numbers):
        own = with_numbers(terms, numbers)
        return dense_of_terms(own, out_shape, variable.shape), pattern.data(own)

    compiled = cr.compile(assembled)
    for _ in range(3):
        numbers = rng.standard_normal(numbers_of(terms).shape)
        for found, expected in zip(compiled(numbers), assembled(numbers), strict=True):
            np.testing.assert_array_equal(found, expected)
