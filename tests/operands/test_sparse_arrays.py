"""Sparse matrices with differentiable entries, compared with dense ones of the same entries."""

import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.table.sparse import SparsityPattern, operator_matmul, sparse_matmul, sparse_solve
from chainrule.testing.rulecheck import CHECKS, rulecheck
from chainrule.testing.samples import Sample

sparse = pytest.importorskip("scipy.sparse")
linalg = pytest.importorskip("scipy.sparse.linalg")
rng = np.random.default_rng(0)


def sample(*shapes, **params):
    n = len(shapes)
    return Sample(shapes, params, ((-2, 2),) * n, ("normal",) * n)


WIDE = SparsityPattern(np.array([0, 2, 1, 0, 1]), np.array([0, 2, 3, 3, 5]), (4, 3))
SQUARE = SparsityPattern(np.array([0, 1, 0, 1, 2, 1, 2]), np.array([0, 2, 5, 7]), (3, 3))
EMPTY = SparsityPattern(np.array([], int), np.array([0, 0, 0]), (2, 3))
OPERATOR = linalg.aslinearoperator(np.arange(6.0, dtype=np.float32).reshape(2, 3))
ROWS = {
    "vector": (sparse_matmul, sample((5,), (3,), pattern=WIDE, transposed=False)),
    "columns": (sparse_matmul, sample((5,), (3, 2), pattern=WIDE, transposed=False)),
    "transposed": (sparse_matmul, sample((5,), (4,), pattern=WIDE, transposed=True)),
    "empty": (sparse_matmul, sample((0,), (3,), pattern=EMPTY, transposed=False)),
    "solve": (sparse_solve, sample((7,), (3,), pattern=SQUARE, transposed=False)),
    "solve transposed": (sparse_solve, sample((7,), (3, 2), pattern=SQUARE, transposed=True)),
    "operator": (operator_matmul, sample((3,), operator=OPERATOR)),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(name):
    row, example = ROWS[name]
    checks = [check for check in CHECKS if check not in ("formula", "public_function")]
    rulecheck(row, checks, samples=[example])
    if name != "operator":
        rulecheck(
            row, checks, samples=[Sample(example.shapes, example.params, example.domains, example.makes, complex=True)]
        )


n = 5
A = (sparse.random_array((n, n), density=0.3, random_state=1) + 3 * sparse.eye_array(n)).tocsr()
ROW, COL = A.tocoo().coords
u = rng.normal(size=n)
like, diags = cr.sparse.like, cr.sparse.diags


def dense(data):
    """Return the same matrix, dense."""
    selection = np.zeros((len(ROW), n * n))
    selection[np.arange(len(ROW)), ROW * n + COL] = 1
    return (data @ selection).reshape(n, n)


PROGRAMS = {
    "product": (lambda d, u: like(A, d) @ u, lambda D, u: D @ u),
    "transposed": (lambda d, u: like(A, d).T @ u, lambda D, u: D.T @ u),
    "from the left": (
        lambda d, u: (u[None] * u[:, None]) @ like(A, d) @ u,
        lambda D, u: (u[None] * u[:, None]) @ D @ u,
    ),
    "solve": (lambda d, u: like(A, d).solve(u), lambda D, u: np.linalg.solve(D, u)),
    "solve for columns": (
        lambda d, u: like(A, d).T.solve(u[:, None] * u) @ u,
        lambda D, u: np.linalg.solve(D.T, u[:, None] * u) @ u,
    ),
    "dense": (lambda d, u: like(A, d).toarray() @ u, lambda D, u: D @ u),
    "diagonal": (lambda d, u: like(A, d).diagonal() * u, lambda D, u: np.diagonal(D) * u),
    "sums": (
        lambda d, u: like(A, d).sum() * like(A, d).sum(0) + like(A, d).sum(-1) * u,
        lambda D, u: D.sum() * D.sum(0) + D.sum(-1) * u,
    ),
    "scaled": (lambda d, u: (u[:, None] * like(A, d) * u / 2.0) @ u, lambda D, u: (u[:, None] * D * u / 2.0) @ u),
    "added": (
        lambda d, u: (like(A, d) + like(A, 2 * d) - like(A, d).T - diags(u)) @ u,
        lambda D, u: (3 * D - D.T - np.diag(u)) @ u,
    ),
    "multiplied": (lambda d, u: (like(A, d).T @ like(A, d) @ A) @ u, lambda D, u: D.T @ D @ A.toarray() @ u),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f, g = PROGRAMS[name]
    d = A.data

    def ours(d, u):
        return np.sum(np.sin(f(d, u)))

    def expected(d, u):
        return np.sum(np.sin(g(dense(d), u)))

    close = dict(rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours(d, u), expected(d, u), **close)
    for at in (0, 1):
        np.testing.assert_allclose(cr.grad(ours, at)(d, u), cr.grad(expected, at)(d, u), **close)
        np.testing.assert_allclose(cr.jacfwd(ours, at)(d, u), cr.grad(expected, at)(d, u), **close)
        np.testing.assert_allclose(cr.hessian(ours, at)(d, u), cr.hessian(expected, at)(d, u), rtol=1e-8, atol=1e-10)
    ds, us = np.stack([d, 1.1 * d]), np.stack([u, -u])
    for dims, args in (((0, 0), (ds, us)), ((0, None), (ds, u)), ((None, 0), (d, us))):
        np.testing.assert_allclose(cr.vmap(ours, dims)(*args), cr.vmap(expected, dims)(*args), **close)
    compiled = cr.compile(cr.grad(ours))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "compile: ours .* runs eagerly")  # some make sparse arrays
        for scale in (1.0, 1.2):
            np.testing.assert_allclose(compiled(scale * d, u), cr.grad(expected)(scale * d, u), **close)
    t = cr.tensor(d, requires_grad=True)
    y = f(t, u)
    assert type(y) is cr.Tensor
    y.sin().sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), cr.grad(expected)(d, u), **close)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_entries_are_in_the_order_of_the_matrix(form):
    M = A.asformat(form)
    np.testing.assert_array_equal(like(M, M.data).toarray(), A.toarray())
    np.testing.assert_array_equal(like(M).toarray(), A.toarray())
    found = cr.grad(lambda d: np.sum(like(M, d) @ u))(M.data)
    np.testing.assert_allclose(found, u[M.tocoo().col])


def test_entries_at_one_place_add_up():
    made = cr.sparse.coo(np.array([1.0, 2.0, 3.0]), [1, 0, 1], [0, 1, 0], (2, 2))
    assert made.nnz == 2
    np.testing.assert_array_equal(made.toarray(), [[0, 2], [4, 0]])
    twice = cr.sparse.csr(np.array([1.0, 2.0, 3.0]), [0, 0, 1], [0, 2, 3], (2, 2))
    np.testing.assert_array_equal(twice.toarray(), [[3, 0], [0, 3]])
    np.testing.assert_allclose(twice.solve(np.ones(2)), np.ones(2) / 3)


@pytest.mark.parametrize(
    ("row", "col"),
    {
        "by rows": ([0, 0, 1, 2], [0, 2, 1, 0]),
        "by rows, one place twice": ([0, 0, 0, 2], [0, 2, 2, 0]),
        "by columns": ([0, 2, 1, 0], [0, 0, 1, 2]),
        "none": ([], []),
    }.values(),
)
def test_orders_of_entries(row, col):
    """Ascending positions are not sorted; in any order, the matrix and its parts equal SciPy's."""
    data = np.arange(1.0, 1 + len(row))
    theirs = sparse.coo_array((data, (row, col)), shape=(3, 3)).tocsr()
    made = cr.sparse.coo(data, np.array(row, int), np.array(col, int), (3, 3))
    np.testing.assert_array_equal(made.toarray(), theirs.toarray())
    np.testing.assert_array_equal(made.data, theirs.data)
    np.testing.assert_array_equal(
        made[np.ix_([2, 0], [1, 2, 0])].toarray(), theirs.toarray()[np.ix_([2, 0], [1, 2, 0])]
    )
    slope = cr.grad(lambda d: np.sum(cr.sparse.coo(d, np.array(row, int), np.array(col, int), (3, 3)).toarray() ** 2))(
        data
    )
    np.testing.assert_allclose(slope, 2 * theirs.toarray()[np.array(row, int), np.array(col, int)])


def test_a_matrix_is_a_container():
    G = cr.grad(lambda S: np.sum((S @ u) ** 2))(like(A))
    assert type(G) is cr.sparse.SparseArray
    np.testing.assert_allclose(G.toarray(), np.where(A.toarray() != 0, 2 * np.outer(A @ u, u), 0))
    np.testing.assert_array_equal(G.to_scipy().toarray(), G.toarray())


def test_plain_entries_give_plain_results():
    S = like(A)
    for found, expected in ((S @ u, A @ u), (u @ S, u @ A), (S.solve(u), linalg.spsolve(A.tocsc(), u))):
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, expected)
    assert S.shape == (n, n) and S.T.nnz == A.nnz and S.dtype == np.float64
    assert repr(S) == f"<SparseArray (5, 5), {A.nnz} entries, float64>"


def test_factors_are_not_those_of_other_entries():
    d = A.data.copy()
    S = like(A, d)
    S.solve(u)
    d *= 2
    np.testing.assert_allclose(S.solve(u), linalg.spsolve(A.tocsc(), u) / 2)


def test_what_is_no_matrix():
    for make, message in (
        (lambda: cr.sparse.csr(np.ones(2), [0, 5], [0, 1, 2], (2, 2)), "each from 0 to 1"),
        (lambda: cr.sparse.csr(np.ones(2), [0, 1], [0, 2], (2, 2)), "must have 3 ascending integers"),
        (lambda: cr.sparse.csr(np.ones(3), [0, 1], [0, 1, 2], (2, 2)), "has 2 entries"),
        (lambda: cr.sparse.coo(np.ones(2), [0, 2], [0, 1], (2, 2)), "from 0 to 1 in row"),
        (lambda: cr.sparse.coo(np.ones(2), [0, 1], [0, -1], (2, 2)), "from 0 to 1 in row and from 0 to 1 in col"),
        (lambda: like(sparse.dia_array(A), np.ones(3)), "tocsr"),
        (lambda: like(A).T.solve(np.ones(3)), "not \\(3,\\)"),
        (lambda: cr.sparse.csr(np.ones(1), [0], [0, 1], (1, 2)).solve(np.ones(1)), "square"),
        (lambda: like(A) * np.ones(3), "does not broadcast"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(TypeError, match="not a sparse matrix"):
        like(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        cr.sparse.csr(np.zeros(2), [0, 1], [0, 1, 2], (2, 2)).solve(np.ones(2))
    with pytest.raises(TypeError, match="compute with their data"):
        like(A) * A
