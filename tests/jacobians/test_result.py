"""The class Jacobian, compared with dense matrices."""

from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from random_terms import matrix_of, random_case, random_terms

import chainrule as cr
from chainrule._src.jacobians.result import Jacobian
from chainrule._src.jacobians.terms import Term, Variable

seeds = st.integers(0, 2**32)
some = settings(max_examples=60, deadline=None, derandomize=True, database=None)
float64 = np.dtype(np.float64)


def random_jacobian(seed, dtype=np.float64, **options):
    rng, terms, out_shape, variable = random_case(seed, dtype)
    J = Jacobian(terms, out_shape, variable.shape, dtype, **options)
    return rng, J, matrix_of(terms, out_shape, variable, dtype)


def close(found, expected, dtype=np.float64):
    tolerance = 1e-4 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def diagonal(values):
    """Return the Jacobian of an elementwise function."""
    variable = Variable(np.shape(values), float64)
    return Jacobian([Term(variable, variable.seed[None], np.asarray(values)[None])], variable.shape, variable.shape)


def identity(shape):
    variable = Variable(shape, float64)
    return Jacobian([variable.identity()], shape, shape)


def batched(W, transposed=False):
    """Return the Jacobian of ``x -> x @ W[k].T`` for each of a batch; W has the shape (k, p, q)."""
    k, p, q = W.shape
    variable = Variable((q, k) if transposed else (k, q), float64)
    seed = variable.seed if transposed else variable.seed.T
    cols = np.broadcast_to(seed[:, :, None], (q, k, p))
    return Jacobian([Term(variable, cols, np.moveaxis(W, 2, 0))], (k, p), variable.shape)


def matrix_shaped(M):
    """Return the Jacobian of ``x -> M @ x``."""
    m, n = M.shape
    variable = Variable((n,), M.dtype)
    return Jacobian([Term(variable, np.broadcast_to(variable.seed[:, None], (n, m)), M.T)], (m,), (n,))


def sparse(M):
    """Return the nonzero entries of a matrix."""
    rows, cols = np.nonzero(M)
    variable = Variable((M.shape[1],), M.dtype)
    return Jacobian([Term(variable, cols[None], M[rows, cols][None], rows)], M.shape[:1], M.shape[1:], M.dtype)


rng = np.random.default_rng(0)
W = rng.standard_normal((3, 2, 2))


def banded(n, below=1, above=2, seed=0):
    M = np.random.default_rng(seed).standard_normal((n, n)) + 4 * np.eye(n)
    return np.triu(np.tril(M, above), -below)


# -- any terms ---------------------------------------------------------------------------------------------------------


@some
@given(seeds, st.sampled_from([np.float64, np.float32, np.complex128]))
def test_everything(seed, dtype):
    rng, J, M = random_jacobian(seed, dtype)
    m, n = M.shape
    assert J.matrix_shape == (m, n) and J.shape == J.out_shape + J.in_shape and J.dtype == dtype
    close(J.to_dense().reshape(m, n), M, dtype)
    assert J.to_dense().dtype == dtype and J.to_dense().shape == J.shape
    close(np.asarray(J), J.to_dense(), dtype)
    A = J.to_scipy()
    assert isinstance(A, sp.csr_array) and A.dtype == dtype and A.nnz == J.nnz
    close(A.toarray(), M, dtype)
    close(J.to_scipy("coo").toarray(), M, dtype)

    v, V = (random_vals_of(rng, (*J.in_shape, *more), dtype) for more in ((), (2, 3)))
    close(J @ v, (M @ v.ravel()).reshape(J.out_shape), dtype)
    close(J @ V, (M @ V.reshape(n, 6)).reshape(*J.out_shape, 2, 3), dtype)
    g, G = (random_vals_of(rng, (*more, *J.out_shape), dtype) for more in ((), (2, 3)))
    close(g @ J, (g.ravel() @ M).reshape(J.in_shape), dtype)
    close(G @ J, (G.reshape(6, m) @ M).reshape(2, 3, *J.in_shape), dtype)
    assert J.T.shape == J.in_shape + J.out_shape and J.T.nnz == J.nnz
    close(J.T.to_dense().reshape(n, m), M.T, dtype)
    close(J.T.T.to_dense(), J.to_dense(), dtype)

    close((J * 2.5).to_dense(), J.to_dense() * 2.5, dtype)
    close((-J / 4).to_dense(), J.to_dense() / -4, dtype)
    on_diagonal = np.diagonal(M)
    close(J.diagonal(), on_diagonal.reshape(J.out_shape) if J.in_shape == J.out_shape else on_diagonal, dtype)
    below, above = J.bandwidth
    close(np.triu(np.tril(M, above), -below), M, dtype)

    kind, blocks = J.kind, J.blocks
    assert repr(J).startswith("<Jacobian") and f"{J.nnz} of {m * n} entries" in repr(J)
    if blocks is not None:
        again = np.zeros((m, n), dtype)
        for block, rows, cols in zip(blocks, J.block_rows, J.block_cols, strict=True):
            again[np.ix_(rows, cols)] = block
        close(again, M, dtype)
    again = pickle.loads(pickle.dumps(J))
    assert (again.kind, again.shape, again.dtype, again.nnz) == (kind, J.shape, J.dtype, J.nnz)
    np.testing.assert_array_equal(again.to_dense(), J.to_dense())
    np.testing.assert_array_equal(copy.deepcopy(J).to_dense(), J.to_dense())


def random_vals_of(rng, shape, dtype):
    v = rng.standard_normal(shape)
    return (v + 1j * rng.standard_normal(shape) if dtype is np.complex128 else v).astype(dtype)


@some
@given(seeds)
def test_products_and_sums(seed):
    rng, J, M = random_jacobian(seed)
    variable = Variable((2, int(rng.integers(0, 4))), float64)
    terms = random_terms(rng, J.in_shape, variable, int(rng.integers(0, 3)))
    inner = Jacobian(terms, J.in_shape, variable.shape, float64)
    chained = J @ inner
    assert chained.shape == J.out_shape + variable.shape
    close(chained.to_dense().reshape(chained.matrix_shape), M @ matrix_of(terms, J.in_shape, variable))

    own = Variable(J.in_shape, float64)
    terms = random_terms(rng, J.out_shape, own, int(rng.integers(0, 3)))
    other = Jacobian(terms, J.out_shape, J.in_shape, float64)
    N = matrix_of(terms, J.out_shape, own).reshape(J.shape)
    close((J + other).to_dense(), J.to_dense() + N)
    close((J - other).to_dense(), J.to_dense() - N)


# -- kinds -------------------------------------------------------------------------------------------------------------


def kinds():
    yield "zero", Jacobian([], (2,), (3,))
    yield "zero", Jacobian([Term(Variable((0,), float64), np.zeros((0, 2), np.intp), 1)], (2,), (0,))
    yield "identity", identity((2, 3))
    yield "identity", identity(())
    yield "diagonal", diagonal([[1.0, 2], [3, 4]])
    yield "diagonal", identity((3,)) * 2
    yield "diagonal", sparse(np.diag([1.0, 2, 3]))
    yield "blocks", batched(W)
    yield "blocks", batched(W, transposed=True)
    yield "blocks", sparse(np.kron(np.eye(2), np.ones((2, 3))))
    yield "blocks", Jacobian([Term(v := Variable((3,), float64), v.seed[None, ::-1], 2.0)], (3,), (3,))
    yield "dense", matrix_shaped(rng.standard_normal((3, 4)))
    yield "dense", sparse(np.ones((2, 3)))
    yield "csr", sparse(banded(5))
    yield "terms", identity((3,)) + Jacobian([Term(v := Variable((3,), float64), v.seed[None, ::-1], 2.0)], (3,), (3,))


@pytest.mark.parametrize(("kind", "J"), [*kinds()])
def test_kind(kind, J):
    assert J.kind == kind
    assert kind in repr(J)
    if kind not in ("csr", "terms"):
        assert J.T.kind == ("diagonal" if kind == "identity" else kind)
        assert pickle.loads(pickle.dumps(J)).kind == kind


def test_products_keep_their_structure():
    D, B, square = diagonal(rng.standard_normal((3, 2))), batched(W), matrix_shaped(rng.standard_normal((6, 6)))
    assert (D @ D).kind == "diagonal"
    for left, right in ((D, B), (B, D), (B, B)):
        assert (left @ right).kind == "blocks"
        close(as_matrix(left @ right), as_matrix(left) @ as_matrix(right))
    flat = Jacobian(square.terms, (6,), (6,))
    assert (flat @ flat).kind == "dense"
    C = sparse(banded(6))
    for left, right in ((flat, C), (C, flat)):
        assert (left @ right).kind == "dense"
        close(as_matrix(left @ right), as_matrix(left) @ as_matrix(right))
    assert (B.T @ B).kind == "blocks" and (B.T @ B).blocks.shape == (3, 2, 2)
    assert (C @ C).kind == "csr" and (C @ C).bandwidth == (2, 4)


def as_matrix(J):
    return J.to_dense().reshape(J.matrix_shape)


def test_zeros_that_are_entries_count():
    J = diagonal([0.0, 1.0, 0.0])
    assert J.nnz == 3 and J.to_scipy().nnz == 3
    A = batched(np.array([[[1.0, -1.0], [0.0, 2.0]]])) @ batched(np.array([[[1.0, 0.0], [1.0, 0.0]]]))
    assert A.nnz == 4


# -- solving -----------------------------------------------------------------------------------------------------------


def systems():
    yield "identity", identity((2, 2))
    yield "diagonal", diagonal(rng.uniform(1, 2, (2, 3)))
    yield "blocks", batched(W + 3 * np.eye(2))
    yield "blocks, transposed", batched(W + 3 * np.eye(2), transposed=True)
    yield "permutation", Jacobian([Term(v := Variable((3,), float64), v.seed[None, ::-1], 2.0)], (3,), (3,))
    yield "band", sparse(banded(60))
    yield "tridiagonal", sparse(banded(7, 1, 1))
    yield "sparse", sparse(banded(60)[:, rng.permutation(60)])
    yield "dense", matrix_shaped(rng.standard_normal((6, 6)) + 6 * np.eye(6))
    yield "entries, dense", sparse(np.triu(rng.standard_normal((8, 8))) + 4 * np.eye(8))
    yield "empty", identity((0, 3))
    yield "complex", sparse(banded(7, 1, 1) * (1 + 0.5j))


@pytest.mark.parametrize("with_scipy", [True, False])
@pytest.mark.parametrize(("name", "J"), [*systems()], ids=lambda x: x if isinstance(x, str) else "")
def test_solve(name, J, with_scipy, monkeypatch):
    if not with_scipy:
        monkeypatch.setitem(sys.modules, "scipy", None)
    M = as_matrix(J)
    for more in ((), (2,)):
        b = rng.standard_normal((*J.out_shape, *more))
        x = J.solve(b)
        assert x.shape == J.in_shape + more
        close(J @ x, b)
        flat = J.solve(b.reshape(-1, *more))
        assert flat.shape == (len(M), *more)
        np.testing.assert_array_equal(flat.ravel(), x.ravel())


def test_solve_transposed():
    J = batched(W + 3 * np.eye(2))
    b = rng.standard_normal(J.in_shape)
    close(b, J.T.solve(b) @ J)


def test_solve_is_differentiable():
    numbers = rng.uniform(1, 2, 12)

    def solved(x):
        v = Variable((4,), float64)
        D = Jacobian([Term(v, v.seed[None], x[None, :4])], (4,), (4,))
        T = D + Jacobian([Term(v, v.seed[None, :-1], x[None, 4:7] / 4, np.arange(1, 4))], (4,), (4,))
        return D.solve(x[8:]) + T.solve(x[8:])

    assert cr.autograd.gradcheck(solved, cr.tensor(numbers, requires_grad=True))


@pytest.mark.parametrize("matrix", [banded(60), banded(60)[:, rng.permutation(60)]], ids=["band", "sparse"])
def test_sparse_solve_is_differentiable(matrix, monkeypatch):
    rows, cols = np.nonzero(matrix)
    v = Variable((60,), float64)
    monkeypatch.setattr(np.linalg, "solve", None)  # it is not made dense

    def solved(data, b):
        return Jacobian([Term(v, cols[None], data[None], rows)], (60,), (60,), float64).solve(b)

    data, b = matrix[rows, cols], rng.standard_normal((60, 2))
    a, t = rng.standard_normal(data.shape), rng.standard_normal(b.shape)
    d, c = (cr.tensor(x, requires_grad=True) for x in (data, b))
    along = lambda s: solved(data + s * a, b + s * t)
    weights = rng.standard_normal((60, 2))
    first = cr.autograd.grad((solved(d, c) * weights).sum(), (d, c), create_graph=True)
    slope = sum((g * x).sum() for g, x in zip(first, (a, t), strict=True))
    close(slope.item(), ((along(1e-5) - along(-1e-5)) * weights).sum() / 2e-5, np.float32)
    second = cr.autograd.grad(slope, (d, c))
    curvature = sum((g * x).sum() for g, x in zip(second, (a, t), strict=True)).item()
    exact = ((along(1e-3) - 2 * along(0) + along(-1e-3)) * weights).sum() / 1e-6
    assert curvature == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize(
    ("J", "message"),
    [
        (diagonal([[1.0, 0.0]]), r"the only entry of its row \(0, 1\) is 0"),
        (batched(np.stack([np.eye(2), np.ones((2, 2))])), r"the block with the row \(1, 0\) is"),
        (matrix_shaped(np.zeros((3, 3))), "a 0 on the diagonal"),
        (
            sparse(np.diag([1.0, 2, 0, 3]) + np.diag([1.0, 0, 1], 1)),
            "its column 2 is empty, because y does not depend on that element of x",
        ),
        (Jacobian([], (2,), (2,)), "its row 0 is empty, because that element of y does not depend on x"),
        (sparse(np.array([[1.0, 0], [1, 0]])), "its column 1 is empty"),
        (sparse(np.array([[1.0, 1, 0], [1, 1, 0], [0, 1, 1]])), "a 0 on the diagonal"),
        (sparse(np.kron(np.eye(40), np.ones((2, 2)))[:, rng.permutation(80)] + np.eye(80, k=41)), "singular"),
    ],
)
def test_singular(J, message):
    with pytest.raises(np.linalg.LinAlgError, match=r"J\.solve.*is singular") as caught:
        J.solve(np.ones(J.out_shape))
    assert caught.match(message)


def test_what_is_not_square():
    J = matrix_shaped(np.ones((3, 2)))
    with pytest.raises(np.linalg.LinAlgError, match=r"3 rows \(y of shape \(3,\)\) and 2 columns.*lsqr"):
        J.solve(np.ones(3))


# -- symmetric Jacobians -----------------------------------------------------------------------------------------------


@some
@given(seeds)
def test_symmetric(seed):
    rng, _, _, variable = random_case(seed)
    terms = random_terms(rng, variable.shape, variable, int(rng.integers(0, 4)))
    H = Jacobian(terms, variable.shape, variable.shape, float64, symmetric=True)
    M = matrix_of(terms, variable.shape, variable)
    found = as_matrix(H)
    close(found, (M + M.T) / 2)
    for A in (found, H.to_scipy().toarray(), as_matrix(H.T), as_matrix(pickle.loads(pickle.dumps(H)))):
        np.testing.assert_array_equal(A, found)
        np.testing.assert_array_equal(A, A.T)
    assert H.symmetric and (H + H).symmetric and (2 * H).symmetric


def test_large_symmetric_ones_stay_sparse():
    v = Variable((3000,), float64)
    off = rng.standard_normal((1, 2999))
    terms = [
        Term(v, v.seed[None], 2.0),
        Term(v, v.seed[None, 1:], off, v.seed[:-1]),
        Term(v, v.seed[None, :-1], off, v.seed[1:]),
    ]
    H = Jacobian(terms, v.shape, v.shape, symmetric=True)
    assert H.nnz == 3000 + 2 * 2999 and H.bandwidth == (1, 1)


def test_a_hessian_has_one_shape_twice():
    with pytest.raises(ValueError, match=r"not \(2,\) and \(3,\)"):
        Jacobian([], (2,), (3,), float64, symmetric=True)


# -- memory of the caller ----------------------------------------------------------------------------------------------


def test_tensors():
    J = batched(W)
    T = Jacobian(J.terms, J.out_shape, J.in_shape, tensors=True)
    v = cr.ones(3, 2, dtype=cr.float64)
    for found in (T.to_dense(), T @ v, T @ v.numpy(), v @ T, T.solve(v), T.diagonal(), T.blocks, J @ v, J.solve(v)):
        assert isinstance(found, cr.Tensor)
    for found in (J.to_dense(), J @ v.numpy(), J.blocks):
        assert type(found) is np.ndarray
    assert isinstance((T @ T).to_dense(), cr.Tensor) and isinstance(T.T.to_dense(), cr.Tensor)
    assert type(np.asarray(T)) is np.ndarray
    assert T.to_scipy().shape == (6, 6)


def test_lists_and_numbers():
    J = matrix_shaped(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert (J @ [1.0, 1.0]).tolist() == [3, 7] and ([1.0, 1.0] @ J).tolist() == [4, 6]
    scalar = diagonal(3.0)
    assert scalar @ 2.0 == 6 and scalar.solve(6.0) == 2
    assert (np.float64(2) * J).to_dense().tolist() == [[2, 4], [6, 8]]
    assert (J * np.float32(2)).dtype == np.float64
    assert (J * 1j).dtype == np.complex128


@pytest.mark.parametrize("make", ["to_dense", "product", "solve", "blocks", "T", "chain", "scaled"])
def test_recorded_entries(make):
    numbers = rng.uniform(1, 2, (2, 3))

    def compute(x):
        v = Variable((3,), float64)
        cols = np.array([[0, 1, 2], [1, 2, 0]])
        tensors = isinstance(x, cr.Tensor)
        J = Jacobian([Term(v, cols, x)], (3,), (3,), float64, tensors=tensors)
        D = Jacobian([Term(v, v.seed[None], x[:1])], (3,), (3,), float64, tensors=tensors)
        b = np.array([1.0, 2.0, 4.0])
        if make == "product":
            return J @ b + b @ D + D @ b
        if make == "scaled":
            return (J * x[0, 0] / x[1, 1] - D).to_dense()
        parts = {"to_dense": J.to_dense, "solve": lambda: J.solve(b), "blocks": lambda: D.blocks}
        parts |= {"T": lambda: J.T.to_dense(), "chain": lambda: (J @ D @ J).to_dense()}
        return parts[make]()

    plain = compute(numbers)
    assert type(plain) is np.ndarray
    x = cr.tensor(numbers, requires_grad=True)
    recorded = compute(x)
    assert recorded.requires_grad
    close(np.asarray(recorded.detach()), plain)
    assert cr.autograd.gradcheck(compute, x)


def test_plain_numbers_of_recorded_entries():
    v = Variable((3,), float64)
    x = cr.ones(1, 3, dtype=cr.float64, requires_grad=True)
    J = Jacobian([Term(v, v.seed[None], x * 2)], (3,), (3,), tensors=True)
    assert J.to_scipy().toarray().tolist() == (2 * np.eye(3)).tolist()
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(J)
    assert not J.detach().to_dense().requires_grad and J.to_dense().requires_grad

    def inside(x):
        return Jacobian([Term(v, v.seed[None], x[None])], (3,), (3,)).to_scipy()

    with pytest.raises(TypeError, match="layout='structured' or layout='dense'"):
        cr.func.vmap(inside)(np.ones((2, 3)))


def test_what_the_program_computed_with_may_change():
    v = Variable((3,), float64)
    for vals in (np.ones((1, 3)), np.broadcast_to(np.ones(1), (1, 3))):
        memory = vals if vals.base is None else vals.base
        J = Jacobian([Term(v, v.seed[None], vals)], (3,), (3,))
        entries = J.to_scipy(copy=False)
        memory.setflags(write=True)
        memory[...] = 7
        assert (J @ np.ones(3)).tolist() == [1, 1, 1] and entries.data.tolist() == [1, 1, 1]
    w = cr.ones(1, 3, dtype=cr.float64)
    J = Jacobian([Term(v, v.seed[None], w)], (3,), (3,), tensors=True)
    w.fill_(7)
    assert J.diagonal().tolist() == [1, 1, 1]


# -- bad input -----------------------------------------------------------------------------------------------------------


def test_shapes_that_do_not_fit():
    J = batched(W)
    with pytest.raises(ValueError, match=r"J @ v: the operand has shape \(2, 3\).*shape of x, \(3, 2\), or be flat"):
        J @ np.ones((2, 3))
    with pytest.raises(ValueError, match=r"v @ J: the operand has shape \(5,\).*shape of y, \(3, 2\)"):
        np.ones(5) @ J
    with pytest.raises(ValueError, match=r"J.solve\(b\): the operand has shape \(\)"):
        J.solve(1.0)
    with pytest.raises(ValueError, match=r"J1 is with respect to a value of shape \(3, 2\).*\(3,\)"):
        J @ identity((3,))
    with pytest.raises(ValueError, match="different shapes"):
        J + identity((3,))
    for wrong in (lambda: J + 1, lambda: J * np.ones(2), lambda: J @ "a", lambda: "a" @ J, lambda: J - np.eye(6)):
        with pytest.raises(TypeError):
            wrong()


def test_a_dense_array_has_a_limit():
    J = identity((10_000,))
    with pytest.raises(
        ValueError, match=r"10000 rows .*10000 columns .*takes 763 MiB, more than the limit of 256 MiB.*to_scipy"
    ):
        np.asarray(J)
    assert J.nnz == 10_000
    with pytest.raises(ValueError, match="copy=False"):
        np.array(identity((2,)), copy=False)


def test_entries_that_are_handed_out_are_copies():
    J = diagonal([1.0, 2.0])
    J.to_scipy().data[:] = 0
    J.to_dense()[:] = 0
    J.block_rows[:] = 5
    assert (J @ np.ones(2)).tolist() == [1, 2]


# -- pictures ------------------------------------------------------------------------------------------------------------


def test_pictures():
    J = sparse(banded(5, 1, 0))
    assert J.spy_text().count("■") == 9
    html = J._repr_html_()
    assert (
        "<svg" in html
        and "Jacobian (5,) by (5,): csr, 9 of 25 entries" in html
        and html.count("<div") == html.count("</div")
    )
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert J.spy(ax) is ax
    assert ax.lines[0].get_xydata().tolist() == np.argwhere(as_matrix(J))[:, ::-1].tolist()


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="spy_text"):
        identity((2,)).spy()


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match=r"chainrule\[scipy\]"):
        identity((2,)).to_scipy()


def test_several_outputs_and_inputs():
    blocks, expected = [], np.zeros((7, 6))
    for i, (m, row) in enumerate(((4, 0), (3, 4))):
        for j, (n, column) in enumerate(((2, 0), (4, 2))):
            v = Variable((n,), float64)
            terms = random_terms(np.random.default_rng(2 * i + j), (m,), v, 2)
            blocks.append((terms, m, row, column))
            expected[row : row + m, column : column + n] = matrix_of(terms, (m,), v)
    J = Jacobian.stacked(blocks, (7, 6), float64)
    close(J.to_dense(), expected)
    assert J.shape == (7, 6)
