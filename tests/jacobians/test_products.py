"""Products of the Jacobians' matrices, and cut values, compared with dense products."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_terms import matrix_of, random_case, random_terms

import chainrule as cr
from chainrule._src.jacobians import matmul, products
from chainrule._src.jacobians.assemble import CsrMatrix
from chainrule._src.jacobians.blocks import affine_view, blocks_of_sparse, blocks_of_terms
from chainrule._src.jacobians.matmul import (
    FixedProduct,
    multiply_by_dense,
    multiply_sparse,
    multiply_transpose_by_dense,
)
from chainrule._src.jacobians.products import newest_first, oldest_first, resolve_to_inputs, sparse_of
from chainrule._src.jacobians.terms import Term, Variable

seeds = st.integers(0, 2**32)
some = settings(max_examples=60, deadline=None, derandomize=True, database=None)
float64 = np.dtype(np.float64)


def matrix(sparse):
    J = np.zeros(sparse.shape)
    np.add.at(J, (sparse.row_numbers(), sparse.indices), sparse.data)
    return J


def whole(blocks):
    J = np.zeros(blocks.shape)
    for vals, rows, cols in zip(blocks.vals, blocks.rows, blocks.cols, strict=True):
        J[np.ix_(rows, cols)] = vals
    return J


@some
@given(seeds, st.booleans())
def test_product(seed, with_scipy):
    rng, left, out_shape, middle = random_case(seed)
    right_variable = Variable((int(rng.integers(0, 5)), 2), float64)
    right = random_terms(rng, middle.shape, right_variable, int(rng.integers(0, 4)))
    a, b = sparse_of(left, out_shape, middle.size), sparse_of(right, middle.shape, right_variable.size)
    with pytest.MonkeyPatch.context() as patch:
        if not with_scipy:
            patch.setattr(matmul, "_scipy", lambda: None)
        found = multiply_sparse(a, b)
    A, B = matrix_of(left, out_shape, middle), matrix_of(right, middle.shape, right_variable)
    np.testing.assert_allclose(matrix(found), A @ B, rtol=1e-12, atol=1e-13)
    ones = [x._replace(data=np.ones_like(x.data)) for x in (a, b)]
    where = np.argwhere(matrix(ones[0]) @ matrix(ones[1]))
    np.testing.assert_array_equal(np.stack([found.row_numbers(), found.indices], axis=1), where)


@some
@given(seeds, st.booleans(), st.sampled_from([np.float64, np.complex128]))
def test_products_with_dense_matrices(seed, with_scipy, dtype):
    rng, terms, out_shape, variable = random_case(seed, dtype)
    a = sparse_of(terms, out_shape, variable.size)
    A = matrix_of(terms, out_shape, variable, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matmul, "_MANY", 0 if with_scipy else np.inf)
        for count in (0, 1, 3):
            x, y = (rng.standard_normal((n, count)) for n in A.shape[::-1])
            np.testing.assert_allclose(multiply_by_dense(a, x), A @ x, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(multiply_transpose_by_dense(a, y), A.T @ y, rtol=1e-12, atol=1e-13)


def test_zeros_stay_entries():
    variable = Variable((2,), float64)
    a = sparse_of([Term(variable, np.array([[0, 1], [1, 0]]), np.array([[1.0, 0.0], [-1.0, 0.0]]))], (2,), 2)
    b = sparse_of([Term(variable, np.array([[0, 0], [1, 1]]), np.array([[1.0, 1.0], [2.0, 0.0]]))], (2,), 2)
    found = multiply_sparse(a, b)
    assert len(found.data) == 4 and matrix(found).tolist() == [[0, 2], [0, 0]]
    assert found.indices.tolist() == [0, 1, 0, 1]


@some
@given(seeds)
def test_product_with_other_numbers(seed):
    rng, left, out_shape, middle = random_case(seed)
    right_variable = Variable((int(rng.integers(0, 5)), 2), float64)
    right = random_terms(rng, middle.shape, right_variable, int(rng.integers(0, 4)))
    a, b = sparse_of(left, out_shape, middle.size), sparse_of(right, middle.shape, right_variable.size)
    product = FixedProduct(a, b)
    for zeros in (0, 0.7):
        x, y = (rng.integers(-1, 2, s.nnz) * rng.binomial(1, 1 - zeros, s.nnz) * 1.0 for s in (a, b))
        found = CsrMatrix(product.indptr, product.indices, product.data(x, y), product.shape)
        np.testing.assert_array_equal(matrix(found), matrix(a._replace(data=x)) @ matrix(b._replace(data=y)))


def test_product_is_differentiable():
    rng = np.random.default_rng(0)
    variable = Variable((4,), float64)
    cols = rng.integers(0, 4, (2, 4))

    def product(x):
        x = x.reshape(2, 4)
        a, b = (sparse_of([Term(variable, c, v)], (4,), 4) for c, v in ((cols, x), (cols[::-1], x * x)))
        return multiply_sparse(a, b).data

    assert cr.autograd.gradcheck(product, cr.tensor(rng.standard_normal(8), requires_grad=True))
    compiled = cr.compile(product)
    for _ in range(3):
        x = rng.standard_normal(8)
        np.testing.assert_allclose(compiled(x), product(x), rtol=1e-14)


# -- blocks ------------------------------------------------------------------------------------------------------------


@some
@given(seeds)
def test_blocks_are_the_matrix(seed):
    rng, terms, out_shape, variable = random_case(seed, count=1)
    found = blocks_of_terms(terms, out_shape, variable.size, float64)
    expected = matrix_of(terms, out_shape, variable)
    if found is not None:
        np.testing.assert_array_equal(whole(found), expected)
        x = rng.standard_normal((variable.size, 2))
        np.testing.assert_allclose(found.times(x), expected @ x, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(whole(found.transposed()), expected.T)
        term = found.term(variable, out_shape)
        np.testing.assert_array_equal(matrix_of([term], out_shape, variable), expected)
        assert term.rows is None and (term.affine or term.cols.size == 0)


def batch_of_blocks(batch, p, q, rng, transposed=False):
    """Return the term of ``x -> x @ W`` for a batch of x, or with the batch last."""
    shape = (q, batch) if transposed else (batch, q)
    variable = Variable(shape, float64)
    seed = variable.seed.T if transposed else variable.seed
    cols = np.broadcast_to(seed.T[:, :, None], (q, batch, p))
    vals = rng.standard_normal((q, batch, p))
    if transposed:
        cols, vals = cols.swapaxes(1, 2), vals.swapaxes(1, 2)
    return variable, Term(variable, cols, vals)


@pytest.mark.parametrize("transposed", [False, True])
def test_batches_are_blocks(transposed):
    rng = np.random.default_rng(1)
    variable, term = batch_of_blocks(3, 2, 4, rng, transposed)
    out_shape = term.cols.shape[1:]
    by_strides = blocks_of_terms([term], out_shape, variable.size, float64)
    by_entries = blocks_of_sparse(sparse_of([term], out_shape, variable.size))
    for blocks in (by_strides, by_entries):
        assert blocks.vals.shape == (3, 2, 4)
        np.testing.assert_array_equal(whole(blocks), matrix_of([term], out_shape, variable))
        assert not blocks.diagonal and not blocks.dense


def test_products_of_blocks():
    rng = np.random.default_rng(2)
    middle, left = batch_of_blocks(3, 2, 4, rng)
    variable, right = batch_of_blocks(3, 4, 5, rng)
    a = blocks_of_terms([left], (3, 2), middle.size, float64)
    b = blocks_of_terms([right], (3, 4), variable.size, float64)
    found = a.product(b)
    assert found.vals.shape == (3, 2, 5)
    np.testing.assert_allclose(whole(found), whole(a) @ whole(b), rtol=1e-12)
    assert found.term(variable, (3, 2)).affine

    diagonal = blocks_of_terms([Term(middle, middle.seed[None], rng.standard_normal((1, 3, 4)))], (3, 4), 12, float64)
    assert diagonal.diagonal
    np.testing.assert_allclose(whole(a.product(diagonal)), whole(a) @ whole(diagonal), rtol=1e-12)
    np.testing.assert_allclose(whole(diagonal.product(b)), whole(diagonal) @ whole(b), rtol=1e-12)
    np.testing.assert_allclose(whole(diagonal.product(diagonal)), whole(diagonal) @ whole(diagonal), rtol=1e-12)
    turned = Variable((3, 4), float64)
    flipped = Term(turned, turned.seed[::-1, ::-1][None], 2.0)
    flip = blocks_of_terms([flipped], (3, 4), 12, float64)
    assert not flip.diagonal
    np.testing.assert_allclose(whole(flip.product(diagonal)), whole(flip) @ whole(diagonal), rtol=1e-12)
    np.testing.assert_allclose(whole(flip.product(flip)), whole(flip) @ whole(flip), rtol=1e-12)
    assert flip.product(flip).diagonal
    assert a.product(flip) is None  # its blocks have another order of columns


def test_columns_as_a_view():
    variable = Variable((3, 4), float64)
    for view in (variable.seed[:, ::-1], variable.seed.T[1:, ::2], np.broadcast_to(variable.seed[1:2], (5, 4))):
        found = affine_view(view.copy(), variable)
        np.testing.assert_array_equal(found, view)
        assert found.base is not None and Term(variable, found[None], 1).affine
    other = np.array([[0, 1], [1, 3]])
    assert affine_view(other, variable) is other
    outside = np.array([0, 11, 22])
    assert affine_view(outside, variable) is outside


# -- cut values --------------------------------------------------------------------------------------------------------


def random_cuts(seed):
    """Return a chain of cut values with skips and two inputs, with the dense Jacobians and the numbers of paths."""
    rng = np.random.default_rng(seed)
    inputs = [Variable((int(rng.integers(1, 4)), 2), float64) for _ in range(2)]
    dense = {v: [np.eye(v.size) if v is w else np.zeros((v.size, w.size)) for w in inputs] for v in inputs}
    met = dict(dense)
    values = list(inputs)
    for _ in range(int(rng.integers(1, 5))):
        shape = (2, int(rng.integers(1, 4)))
        terms = []
        for source in values[-3:]:
            terms += random_terms(rng, shape, source, int(rng.integers(0, 3)))
        cut = Variable(shape, float64, terms)
        dense[cut], met[cut] = chained(terms, shape, dense, inputs), chained(terms, shape, met, inputs, ones=True)
        values.append(cut)
    out_shape = (int(rng.integers(0, 4)),)
    terms = [t for source in values[-2:] for t in random_terms(rng, out_shape, source, int(rng.integers(0, 3)))]
    found = chained(terms, out_shape, dense, inputs), chained(terms, out_shape, met, inputs, ones=True)
    return inputs, terms, out_shape, *found


def chained(terms, shape, dense, inputs, ones=False):
    total = [np.zeros((math.prod(shape), w.size)) for w in inputs]
    for term in terms:
        if ones:
            term = Term(term.source, term.cols, 1.0, term.rows)
        J = matrix_of([term], shape, term.source)
        total = [t + J @ D for t, D in zip(total, dense[term.source], strict=True)]
    return total


@pytest.mark.parametrize("dense_above", [-1, products._DENSE, 2])
@pytest.mark.parametrize("order", [oldest_first, newest_first, None])
def test_cuts(order, dense_above, monkeypatch):
    monkeypatch.setattr(products, "_DENSE", dense_above)
    if order is not None:
        monkeypatch.setattr(products, "_cost", lambda candidate, *_: candidate is not order)
    for seed in range(25):
        inputs, terms, out_shape, expected, met = random_cuts(seed)
        found = resolve_to_inputs(terms, out_shape)
        assert set(found) <= set(inputs)
        for variable, J, where in zip(inputs, expected, met, strict=True):
            own = found.get(variable, [])
            np.testing.assert_allclose(matrix_of(own, out_shape, variable), J, rtol=1e-9, atol=1e-10)
            ones = [Term(t.source, t.cols, 1.0, t.rows) for t in own]
            np.testing.assert_array_equal(matrix_of(ones, out_shape, variable) > 0, where > 0)


def test_without_cuts_terms_stay():
    variable = Variable((3,), float64)
    terms = [Term(variable, variable.seed[None], 2.0)]
    assert resolve_to_inputs(terms, (3,))[variable][0] is terms[0]


def chain(sizes, rng):
    """Return the terms of a chain of dense layers of the given sizes, each cut."""
    variable = Variable((sizes[0],), float64)
    for size in sizes[1:-1]:
        cols = np.broadcast_to(variable.seed[:, None], (variable.size, size))
        variable = Variable((size,), float64, [Term(variable, cols, rng.standard_normal(cols.shape))])
    cols = np.broadcast_to(variable.seed[:, None], (variable.size, sizes[-1]))
    return [Term(variable, cols, rng.standard_normal(cols.shape))], (sizes[-1],)


@pytest.mark.parametrize(("sizes", "best"), [((50, 20, 20, 1), newest_first), ((1, 20, 20, 50), oldest_first)])
def test_order_of_multiplication(sizes, best, monkeypatch):
    ran = []
    for order in (oldest_first, newest_first):

        def noted(cuts, own, outer, order=order):
            if isinstance(next(iter(outer.values())), products.Factor):
                ran.append(order)
            return order(cuts, own, outer)

        monkeypatch.setattr(products, order.__name__, noted)
    terms, out_shape = chain(sizes, np.random.default_rng(0))
    ((_, found),) = resolve_to_inputs(terms, out_shape).items()
    assert ran == [best]
    assert len(found) == 1 and found[0].affine  # dense all along


def test_long_chains():
    """No recursion, one product each."""
    variable = Variable((2,), float64)
    first = variable
    for _ in range(2000):
        variable = Variable((2,), float64, [Term(variable, variable.seed[None], 1.001)])
    found = resolve_to_inputs([Term(variable, variable.seed[None], 1)], (2,))
    np.testing.assert_allclose(matrix_of(found[first], (2,), first), np.eye(2) * 1.001**2000, rtol=1e-10)
