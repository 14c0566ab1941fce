"""A Jacobian in all layouts, with several inputs and outputs, and as an operator."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

import chainrule as cr
from chainrule._src.jacobians.operator import JacobianOperator
from chainrule._src.jacobians.result import Jacobian

rng = np.random.default_rng(0)
x0, w0 = rng.standard_normal((2, 3)), rng.standard_normal(4)


def several(x, w):
    """Two results of two arguments, with different structures."""
    return {"outer": np.sin(x)[:, :, None] * w, "sum": (x**2).sum(axis=0), "constant": np.ones(2)}


def dense_of(found):
    if isinstance(found, Jacobian):
        return found.to_dense()
    if isinstance(found, JacobianOperator):
        return (found @ np.eye(found.matrix_shape[1])).reshape(found.shape)
    return found.toarray() if sp.issparse(found) else found


SHAPES = {"outer": (2, 3, 4), "sum": (3,), "constant": (2,)}


@pytest.mark.parametrize("layout", ["dense", "csr", "csc", "coo", "structured", "operator", "auto"])
def test_trees(layout):
    expected = cr.func.jacrev(several, (0, 1))(x0, w0)
    found = cr.jacobian(several, (x0, w0), layout=layout)
    assert list(found) == list(expected)
    for key, blocks in expected.items():
        for J, block in zip(found[key], blocks, strict=True):
            m = int(np.prod(SHAPES[key]))
            np.testing.assert_allclose(dense_of(J).reshape(m, -1), block.reshape(m, -1), rtol=1e-12, atol=1e-14)
            if layout in ("csr", "csc", "coo"):
                assert J.format == layout and isinstance(J, sp.sparray)


@pytest.mark.parametrize("layout", ["dense", "csr", "structured", "operator", "auto"])
def test_one_matrix(layout):
    rows = cr.func.jacrev(several, (0, 1))(x0, w0)
    expected = np.block([[J.reshape(-1, x.size) for J, x in zip(row, (x0, w0), strict=True)] for row in rows.values()])
    found = cr.jacobian(several, (x0, w0), layout=layout, hstack=True)
    np.testing.assert_allclose(dense_of(found), expected, rtol=1e-12, atol=1e-14)


def energy(x, w):
    return (np.diff(x, axis=1) ** 3).sum() + np.sin(x[0, 0] * w[1]) + w[0] * w[1] ** 2 + x.sum() * w[3]


@pytest.mark.parametrize("layout", ["dense", "csr", "structured", "operator"])
def test_hessian_of_several(layout):
    expected = cr.func.hessian(energy, (0, 1))(x0, w0)
    found = cr.hessian(energy, (x0, w0), layout=layout)
    for i, n in enumerate((6, 4)):
        for j, k in enumerate((6, 4)):
            block = dense_of(found[i][j]).reshape(n, k)
            np.testing.assert_allclose(block, expected[i][j].reshape(n, k), rtol=1e-11, atol=1e-13)
            if layout != "operator":
                np.testing.assert_array_equal(block, dense_of(found[j][i]).reshape(k, n).T)
    whole = dense_of(cr.hessian(energy, (x0, w0), layout=layout, hstack=True))
    if layout != "operator":
        np.testing.assert_array_equal(whole, whole.T)
    np.testing.assert_allclose(whole[6:, :6], expected[1][0].reshape(4, 6), rtol=1e-11, atol=1e-13)


def test_tensors_come_back_as_tensors():
    x = cr.tensor(x0)
    for layout in ("dense", "auto"):
        assert isinstance(cr.jacobian(lambda x: x**2 * x.sum(), x, layout=layout), cr.Tensor)
    J = cr.jacobian(lambda x: x**2, x, layout="structured")
    assert isinstance(J @ x, cr.Tensor) and isinstance(J.to_dense(), cr.Tensor)
    assert type(cr.jacobian(lambda x: x**2, x, layout="csr").data) is np.ndarray


def test_sparse_results_have_no_history():
    w = cr.tensor(w0, requires_grad=True)
    A = cr.jacobian(lambda x: x * w, cr.tensor(w0), layout="csr")
    A.data[:] = 0  # has its own memory
    np.testing.assert_array_equal(w.detach().numpy(), w0)


def test_results_do_not_share_the_users_memory():
    b = np.ones(3)
    found = {
        layout: cr.jacobian(lambda x: x * b, np.zeros(3), layout=layout) for layout in ("csr", "structured", "dense")
    }
    b[:] = 7
    for J in found.values():
        assert np.diagonal(dense_of(J)).tolist() == [1, 1, 1]


def test_differentiable():
    def through(x):
        J = cr.jacobian(lambda x: x**3 * x.sum(), x, layout="structured", create_graph=True)
        return (J.T @ J @ x).sum() + J.diagonal().sum()

    assert cr.autograd.gradcheck(through, cr.tensor(w0, requires_grad=True))


@pytest.mark.parametrize(
    "options", [{}, {"mode": "forward"}, {"strategy": "forward terms"}, {"hstack": True}, {"strategy": "vjps"}]
)
def test_a_dense_result_has_a_limit(options):
    x = np.zeros(200_000)
    with pytest.raises(ValueError, match=r"200000 rows .*takes 298 GiB, more than the limit of 4 GiB.*layout='csr'"):
        cr.jacobian(np.sin, x, layout="dense", **options)
    assert cr.jacobian(np.sin, x, layout="auto").nnz == 200_000


def test_a_dense_hessian_has_a_limit():
    x = cr.zeros(100_000, requires_grad=True)
    with pytest.raises(ValueError, match=r"takes 37.3 GiB"):
        cr.hessian(lambda x: np.sin(x).sum(), x, layout="dense")
    with pytest.raises(ValueError, match=r"takes 37.3 GiB"):
        cr.jacobian(x * 2, x)


@pytest.mark.parametrize("layout", ["dense", "csr", "structured", "operator"])
@pytest.mark.parametrize(
    "x, words",
    [(np.ma.masked_array([1.0, 2.0, 4.0], [0, 1, 0]), "tensors have no masks"), (np.matrix([[1.0, 2.0]]), "np.matrix")],
    ids=["masked", "matrix"],
)
def test_arrays_with_other_operators_are_refused_in_every_layout(layout, x, words):
    with pytest.raises(TypeError, match=words):
        cr.jacobian(np.diff, x, layout=layout)
    with pytest.raises(TypeError, match=words):
        cr.hessian(lambda v: (v * v).sum(), x, layout=layout)
    if layout in ("csr", "structured"):
        with pytest.raises(TypeError, match=words):
            cr.jacobian(lambda v: x, np.ones(2), layout=layout)


@pytest.mark.parametrize("options", [{}, {"hstack": True}, {"check": True}, {"strategy": "forward terms"}])
def test_mode_and_chunk_size_are_checked_with_every_option(options):
    with pytest.raises(ValueError, match="'auto', 'forward' or 'reverse'"):
        cr.jacobian(np.sin, np.ones(2), mode="rows", **options)
    with pytest.raises(ValueError, match="chunk_size must be a positive int"):
        cr.jacobian(np.sin, np.ones(2), chunk_size=0, **options)


def test_hessians_are_of_scalars():
    with pytest.raises(RuntimeError, match=r"hessian\(f, x\).*scalar"):
        cr.hessian(lambda x: x**2, np.ones(3))


# -- operators ---------------------------------------------------------------------------------------------------------


def function(x):
    return np.cumsum(np.sin(x) * x[::-1], axis=1)[:, 1:]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_operator(dtype):
    x = (x0 + 1j * x0[::-1] if dtype is np.complex128 else x0).astype(dtype)
    A = JacobianOperator(function, x)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    columns = [A.matvec(e.reshape(2, 3)) for e in np.eye(6, dtype=dtype)]
    M = np.stack([column.reshape(-1) for column in columns], axis=1)
    step = 1e-2 if dtype is np.float32 else 1e-6
    v, u = rng.standard_normal((2, 3)), rng.standard_normal((2, 2))
    differences = (function(x + step * v.astype(dtype)) - function(x - step * v.astype(dtype))) / (2 * step)
    np.testing.assert_allclose(A @ v, differences, rtol=1e-2 if dtype is np.float32 else 1e-7)
    assert (A.shape, A.matrix_shape, A.dtype) == ((2, 2, 2, 3), (4, 6), dtype)
    np.testing.assert_array_equal(A.value, function(x))

    def close(found, expected):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)

    close(A.rmatvec(u), (M.conj().T @ u.ravel()).reshape(2, 3))
    close(A.rmatvec(u.ravel()), M.conj().T @ u.ravel())
    close(u @ A, (u.ravel() @ M).reshape(2, 3))
    V, U = rng.standard_normal((6, 2)), rng.standard_normal((2, 2, 3))
    close(A.matmat(V), M @ V)
    close(A @ V[:, :0], M @ V[:, :0])
    close(A.rmatmat(U), (M.conj().T @ U.reshape(4, 3)).reshape(2, 3, 3))
    close(A @ (v + 1j * v), (M @ (v + 1j * v).ravel()).reshape(2, 2))
    L = A.to_scipy()
    assert isinstance(L, LinearOperator) and L.shape == (4, 6)
    close(L @ np.eye(6), M)
    close(L.H @ np.eye(4), M.conj().T)
    close(L @ V[:, 0], M @ V[:, 0])
    close(L.rmatvec(u.ravel()), M.conj().T @ u.ravel())


def test_operator_keeps_its_point():
    x = x0.copy()
    A = JacobianOperator(lambda x: x**3, x)
    before = A @ x0
    x[:] = 0
    np.testing.assert_array_equal(A @ x0, before)


def test_the_function_of_an_operator_runs_once():
    ran = []

    def noted(x):
        ran.append(1)
        return x**2

    A = cr.jacobian(noted, x0, layout="operator")
    for _ in range(2):
        A @ x0, x0 @ A, A @ np.eye(6)
    assert len(ran) == 1


def test_operators_of_tensors():
    A = JacobianOperator(lambda x: x**2, cr.tensor(x0))
    assert isinstance(A @ x0, cr.Tensor) and isinstance(x0 @ A, cr.Tensor)
    assert type(A.to_scipy() @ np.ones(6)) is np.ndarray


def test_products_of_operators_are_differentiable():
    def through(x):
        A = JacobianOperator(lambda x: x**3 * x.sum(), x)
        return ((A @ x) * (x @ A)).sum()

    assert cr.autograd.gradcheck(through, cr.tensor(w0, requires_grad=True))
    w = cr.tensor(w0, requires_grad=True)
    for create_graph in (None, True, False):
        A = JacobianOperator(lambda x: x**2 * w, cr.tensor(w0), create_graph)
        assert (A @ w0).requires_grad is (w0 @ A).requires_grad is (create_graph is not False)


def test_operator_solves():
    from scipy.sparse.linalg import gmres

    A = cr.jacobian(lambda x: 4 * x + np.sin(x.sum()) * x[::-1] ** 2, w0, layout="operator")
    found, failed = gmres(A.to_scipy(), w0, rtol=1e-10)
    assert not failed
    np.testing.assert_allclose(A @ found, w0, rtol=1e-7)


def test_bad_operands():
    A = JacobianOperator(function, x0)
    with pytest.raises(ValueError, match=r"A.matvec\(v\): the operand has shape \(5,\)"):
        A.matvec(np.ones(5))
    with pytest.raises(ValueError, match=r"A.rmatvec\(u\): .*shape of y, \(2, 2\)"):
        A.rmatvec(x0)
    with pytest.raises(ValueError, match="only in A @ v"):
        A.matvec(np.ones((6, 2)))
    with pytest.raises(TypeError):
        A @ "a"


def test_operator_without_scipy(monkeypatch):
    A = JacobianOperator(function, x0)
    monkeypatch.setitem(sys.modules, "scipy.sparse.linalg", None)
    with pytest.raises(ImportError, match="scipy"):
        A.to_scipy()
