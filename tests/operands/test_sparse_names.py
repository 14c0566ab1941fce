"""Sparse matrices with SciPy's API: results of indices and methods are SciPy's, with the derivatives of the dense matrix."""

import numpy as np
import pytest

import chainrule as cr

sparse = pytest.importorskip("scipy.sparse")
scipys = pytest.importorskip("scipy.sparse.linalg")
rng = np.random.default_rng(0)

A = sparse.random_array((4, 5), density=0.6, random_state=0).tocsr()
COORDS = A.tocoo().coords
MASK = np.array([True, False, True, False])
KINDS = ["coo_array", "csr_array", "csc_array", "coo_matrix", "csr_matrix", "csc_matrix"]
INDICES = [
    (1, 2), (-1, -1), 1, (1, slice(None)), (slice(None), 2), (slice(0, 3), slice(1, None, 2)), slice(None, None, -1), Ellipsis,
    [0, 1], np.array([0, 2, 2]), (np.array([0, 1]), np.array([2, 3])), np.ix_([0, 2], [1, 1, 4]), MASK, (MASK, slice(1, 3)),
    (slice(None), np.array([0, 3])), (1, np.array([0, 2])), (np.array([0, 2]), 1), (None, 1),
]  # fmt: skip
METHODS = {
    "T": lambda M: M.T,
    "transpose": lambda M: M.transpose(),
    "sum": lambda M: M.sum(),
    "np.sum": np.sum,
    "sums of columns": lambda M: M.sum(0),
    "sums of rows": lambda M: M.sum(axis=1),
    "mean": lambda M: M.mean(),
    "means": lambda M: M.mean(1),
    "diagonal": lambda M: M.diagonal(),
    "diagonal above": lambda M: M.diagonal(2),
    "diagonal below": lambda M: M.diagonal(-2),
    "trace": lambda M: M.trace(),
    "csc": lambda M: M.tocsc(),
    "csr": lambda M: M.tocsr(),
    "there and back": lambda M: M.tocsc().T.tocsr(),
    "entries by columns": lambda M: M.tocsc().data,
    "rows by columns": lambda M: M.tocsc().indices,
    "columns begin": lambda M: M.tocsc().indptr,
    "rows of entries": lambda M: M.tocsr().tocoo().row,
    "coo": lambda M: M.asformat("coo"),
    "scaled": lambda M: 2.0 * M / 3.0,
    "negative": lambda M: -M,
    "conj": lambda M: M.conj(),
    "copy": lambda M: M.copy(),
    "astype": lambda M: M.astype(np.float32),
    "multiply": lambda M: M.multiply(np.arange(20.0).reshape(4, 5) + 1),
    "A @ u": lambda M: M @ np.arange(5.0),
    "u @ A": lambda M: np.arange(4.0) @ M,
    "A @ B": lambda M: M @ M.T,
    "A + B": lambda M: M + M,
}
OF_MATRICES = {
    "A * u": lambda M: M * np.arange(5.0),
    "u * A": lambda M: np.arange(4.0) * M,
    "A * B": lambda M: M * M.T,
    "row": lambda M: M[1] * np.arange(5.0),
}


def dense(x):
    x = x.toarray() if hasattr(x, "toarray") else x
    return np.asarray(x.detach() if isinstance(x, cr.Tensor) else x)


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_scipys(kind):
    theirs = getattr(sparse, kind)(A)
    theirs = theirs.tocsr() if kind.startswith("coo") else theirs
    ours = getattr(cr.sparse, kind)((cr.tensor(A.data, requires_grad=True), COORDS), shape=A.shape)
    assert ours.format == theirs.format
    for index in INDICES:
        found, expected = dense(ours[index]), dense(theirs[index])
        assert found.shape == expected.shape, index
        np.testing.assert_allclose(found, expected, err_msg=str(index))
    for name, method in (METHODS | (OF_MATRICES if kind.endswith("matrix") else {})).items():
        found, expected = dense(method(ours)), dense(method(theirs))
        assert found.shape == expected.shape, name
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix"])
@pytest.mark.parametrize("k", range(len(INDICES)))
def test_derivatives_of_what_an_index_takes(kind, k):
    make, index = getattr(cr.sparse, kind), INDICES[k]

    def taken(data):
        found = make((data, COORDS), A.shape)[index]
        return np.sum(np.sin(found.toarray() if hasattr(found, "toarray") else found))

    def of_dense(data):
        places = np.zeros((A.nnz, 20))
        places[np.arange(A.nnz), COORDS[0] * 5 + COORDS[1]] = 1
        return np.sum(np.sin((data @ places).reshape(4, 5)[index]))

    np.testing.assert_allclose(cr.grad(taken)(A.data), cr.grad(of_dense)(A.data), rtol=1e-12)
    np.testing.assert_allclose(cr.jacfwd(taken)(A.data), cr.grad(of_dense)(A.data), rtol=1e-12)


def test_what_they_are_made_of():
    d = A.data
    csc = A.tocsc()
    for made in (
        cr.sparse.csr_array((d, A.indices, A.indptr), A.shape),
        cr.sparse.csr_array((d, COORDS)),
        cr.sparse.csc_array((csc.data, csc.indices, csc.indptr)),
        cr.sparse.coo_matrix(A),
        cr.sparse.csr_matrix(cr.sparse.like(A)),
        cr.sparse.csc_matrix(A.toarray()),
    ):
        np.testing.assert_allclose(made.toarray(), A.toarray())
    assert cr.sparse.coo_array((2, 3)).nnz == 0 and cr.sparse.csr_array(A, dtype=np.float32).dtype == np.float32
    np.testing.assert_array_equal(cr.sparse.eye_array(2, 3, k=1).toarray(), np.eye(2, 3, 1))
    tridiagonal = cr.sparse.diags([[1.0, 2, 3], 4.0, np.arange(2.0)], [0, 1, -1])
    np.testing.assert_array_equal(
        tridiagonal.toarray(), np.diag([1.0, 2, 3]) + 4 * np.eye(3, k=1) + np.diag([0, 1.0], -1)
    )
    G = cr.grad(lambda M: np.sum(M[0]))(cr.sparse.csr_matrix(A))
    assert type(G) is cr.sparse.SparseMatrix


def test_entries_at_one_place_are_one_element():
    twice = cr.sparse.csr(np.array([1.0, 2.0, 3.0]), [0, 0, 1], [0, 2, 3], (2, 2))
    assert twice[0, 0] == 3.0 and twice[0].tolist() == [3.0, 0.0]
    assert cr.grad(lambda d: twice.with_data(d)[0, 0] ** 2)(np.array([1.0, 2.0, 3.0])).tolist() == [6.0, 6.0, 0.0]


def test_what_is_refused():
    S = cr.sparse.like(A)
    for make, error, message in (
        (lambda: S[9, 0], IndexError, "out of range"),
        (lambda: S.__setitem__((0, 0), 1.0), TypeError, "pattern of a SparseArray is fixed"),
        (lambda: len(S), TypeError, "ambiguous"),
        (lambda: np.linalg.det(S), TypeError, r"A\.toarray\(\) is dense"),
        (lambda: S.asformat("lil"), ValueError, "'csr' or 'csc'"),
        (lambda: S.sum(2), ValueError, "axis must be 0 or 1"),
        (lambda: cr.sparse.csr_matrix(A).todense(), TypeError, "numpy.matrix"),
        (lambda: cr.sparse.csr_array(cr.tensor([[1.0]])), TypeError, "give the indices"),
        (lambda: cr.sparse.csr_array(A, shape=(5, 4)), ValueError, r"shape is \(5, 4\)"),
        (lambda: cr.sparse.diags([np.ones(2), np.ones(3)], [0, 1]), ValueError, "offset 1 must have 1 elements"),
        (lambda: cr.sparse.diags([np.ones(2)], [0, 1]), ValueError, "one distinct offset"),
        (lambda: scipys.spsolve(S[:4, :4], np.ones(4)), TypeError, r"chainrule\.scipy\.sparse\.linalg has spsolve"),
        (
            lambda: cr.grad(lambda d: sparse.coo_matrix((d, COORDS)).sum())(A.data),
            RuntimeError,
            r"sparse\.coo_matrix keeps",
        ),
    ):
        with pytest.raises(error, match=message):
            make()
    with pytest.raises(TypeError, match=r"chainrule\.scipy\.sparse\.linalg has spsolve, splu"):
        scipys.splu(S[:4, :4])


# -- eigenvalues -------------------------------------------------------------------------------------------------------

n = 9
rows_at, columns = np.indices((n, n)).reshape(2, -1)
DENSE = np.where(np.abs(rows_at - columns) % 4 < 2, rng.normal(size=n * n), 0).reshape(n, n)
DENSE = DENSE + DENSE.T + np.diag(3.0 * np.arange(n))
K = sparse.csr_array(DENSE)
MASS = sparse.diags_array([np.full(n - 1, 0.1), 1 + np.arange(n) / 7, np.full(n - 1, 0.1)], offsets=[-1, 0, 1]).tocsr()
WEIGHTS = rng.normal(size=(n, 3))
eigsh = cr.scipy.sparse.linalg.eigsh


def observed(K, M=None, **options):
    w, v = eigsh(K, 3, M, **options)
    return np.sum(np.sin(w)) + np.sum(WEIGHTS * v**2)


def by_scipy(K, M=None, **options):
    w, v = scipys.eigsh(K, 3, M, **options)
    return np.sum(np.sin(w)) + np.sum(WEIGHTS * v**2)


def symmetric(like):
    """Return a random direction that keeps a matrix symmetric."""
    found = sparse.csr_array((rng.normal(size=like.nnz), like.indices, like.indptr))
    return ((found + found.T) / 2).tocsr()


@pytest.mark.parametrize("options", [{}, {"which": "SA"}, {"sigma": 4.0}], ids=str)
@pytest.mark.parametrize("M", [None, MASS], ids=["standard", "generalised"])
def test_eigenvalues_and_vectors(M, options):
    ours = cr.sparse.like(K)
    assert np.isclose(observed(ours, M, **options), by_scipy(K, M, **options))
    dK, h = symmetric(K), 1e-5
    slope = (by_scipy(K + h * dK, M, **options) - by_scipy(K - h * dK, M, **options)) / (2 * h)
    G = cr.grad(lambda K: observed(K, M, **options))(ours)
    assert np.isclose(G.data @ dK.data, slope, rtol=1e-6)
    found = cr.jvp(lambda d: observed(ours.with_data(d), M, **options), (K.data,), (dK.data,))[1]
    assert np.isclose(found, G.data @ dK.data, rtol=1e-10)
    if M is not None:
        dM = symmetric(M) * 0.3
        slope = (by_scipy(K, M + h * dM, **options) - by_scipy(K, M - h * dM, **options)) / (2 * h)
        G = cr.grad(lambda M: observed(ours, M, **options))(cr.sparse.like(M))
        assert np.isclose(G.data @ dM.data, slope, rtol=1e-6)


def test_eigenvalues_of_other_forms():
    ours, dK = cr.sparse.like(K), symmetric(K)
    step = 1e-3
    second = (by_scipy(K + step * dK) - 2 * by_scipy(K) + by_scipy(K - step * dK)) / step**2
    hvp = cr.jvp(cr.grad(lambda d: observed(ours.with_data(d))), (K.data,), (dK.data,))[1]
    assert np.isclose(hvp @ dK.data, second, rtol=1e-4)
    largest = scipys.eigsh(K, 1)[0][0]
    assert np.isclose(np.trace(cr.grad(lambda A: eigsh(A, 1, return_eigenvectors=False)[0])(DENSE)), 1)
    times = cr.scipy.sparse.linalg.LinearOperator((n, n), lambda u: K @ u)
    np.testing.assert_allclose(eigsh(times, 1)[0], largest)
    scaled = cr.vmap(lambda s: eigsh(s * ours, 1, return_eigenvectors=False)[0])(np.array([1.0, 2.0]))
    np.testing.assert_allclose(scaled, [largest, 2 * largest])
    w, v = eigsh(ours.with_data(cr.tensor(K.data, requires_grad=True)), 2)
    assert type(w) is type(v) is cr.Tensor
    np.testing.assert_array_equal(eigsh(K, 2, v0=np.ones(n))[0], scipys.eigsh(K, 2, v0=np.ones(n))[0])


def test_eigenvalues_that_are_refused():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        cr.grad(lambda I: eigsh(I, 2)[0].sum())(cr.sparse.diags(np.ones(8)))
    with pytest.raises(ValueError, match="a square matrix"):
        eigsh(cr.sparse.like(A))
    with pytest.raises(NotImplementedError, match="complex128"):
        eigsh(cr.sparse.diags(1j * np.ones(8)), 2)
