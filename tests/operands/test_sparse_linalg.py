"""Solvers with SciPy's names, compared with dense solutions."""

import warnings

import numpy as np
import pytest

import chainrule as cr
from tests.operands.checking import check

sparse = pytest.importorskip("scipy.sparse")
scipys = pytest.importorskip("scipy.sparse.linalg")
ours = cr.scipy.sparse.linalg
rng = np.random.default_rng(0)

n = 5
A = (sparse.random_array((n, n), density=0.3, random_state=1) + 3 * sparse.eye_array(n)).tocsr()
SPD = (A @ A.T).tocsr()
b = rng.normal(size=n)
ITERATIVE = ["cg", "minres", "gmres", "bicgstab", "cgs", "lgmres"]


def matrix_for(name):
    return SPD if name in ("cg", "minres") else A


def iterated(name, A, b):
    options = {} if name == "minres" else {"atol": 0.0}
    return getattr(ours, name)(A, b, rtol=1e-12, **options)[0]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_direct(kind):
    M, D = kind(A), A.toarray()
    for solve in (ours.spsolve, lambda A, b: ours.splu(A).solve(b), lambda A, b: ours.factorized(A)(b)):
        check(lambda b, s=solve: s(M, b), lambda b: np.linalg.solve(D, b), (b,))
        check(lambda b, s=solve: s(M, b), lambda b: np.linalg.solve(D, b), (rng.normal(size=(n, 2)),), orders=1)
    check(lambda b: ours.splu(M).solve(b, "T"), lambda b: np.linalg.solve(D.T, b), (b,))
    check(lambda b: ours.splu(M).solve(b, trans="H"), lambda b: np.linalg.solve(D.T, b), (b,))


def test_direct_by_the_entries():
    def solved(data, b):
        return np.linalg.solve(cr.sparse.like(A, data).toarray(), b)

    check(lambda data, b: ours.spsolve(cr.sparse.like(A, data), b), solved, (A.data, b), tolerance=1e-6)


@pytest.mark.parametrize("name", ITERATIVE)
def test_iterative(name):
    M = matrix_for(name)
    D = M.toarray()

    def solved(D, b):
        return np.linalg.solve(D, b)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        orders = 1 if name in ("bicgstab", "cgs") else 2  # these break down if a right-hand side is solved at once
        check(lambda b: iterated(name, M, b), lambda b: solved(D, b), (b,), tolerance=1e-6, orders=orders)
    operator = scipys.aslinearoperator(M)
    check(lambda b: iterated(name, operator, b), lambda b: solved(D, b), (b,), orders=1, compiled=False)
    check(
        lambda d, b: iterated(name, cr.sparse.like(M, d), b),
        lambda d, b: solved(cr.sparse.like(M, d).toarray(), b),
        (M.data, b),
        () if name in ("cg", "minres") else (0,),  # entries of symmetric matrices change in pairs
        orders=1,
        compiled=False,
    )

    def shifted(k):
        return np.sum(np.sin(iterated(name, ours.LinearOperator((n, n), lambda v: M @ v + k * v), b)))

    expected = cr.grad(lambda k: np.sum(np.sin(np.linalg.solve(D + k * np.eye(n), b))))(2.0)
    np.testing.assert_allclose(cr.grad(shifted)(2.0), expected, rtol=1e-8)


def test_dense_matrices():
    def ours_(D, b):
        return iterated("gmres", D, b)

    check(ours_, np.linalg.solve, (A.toarray(), b), tolerance=1e-6, orders=1, compiled=False)


def test_plain_arguments_are_scipys():
    for found, expected in zip(ours.cg(SPD, b), scipys.cg(SPD, b), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert type(ours.cg(SPD, b)[0]) is np.ndarray
    x, info = ours.gmres(A, cr.tensor(b, requires_grad=True), restart=3)
    assert type(x) is cr.Tensor and info == 0


def test_preconditioners_and_starts():
    M = sparse.diags_array(1 / A.diagonal())

    def solved(b):
        return np.sum(ours.gmres(A, b, np.ones(n), rtol=1e-12, M=M)[0])

    np.testing.assert_allclose(cr.grad(solved)(b), np.linalg.solve(A.toarray().T, np.ones(n)))


def test_what_does_not_converge_says_so():
    with pytest.warns(UserWarning, match=r"cg\(\): the solver did not converge"):
        _, info = ours.cg(SPD, cr.Array(b), maxiter=1)
    assert info == 1
    with pytest.warns(UserWarning, match="did not converge"):
        cr.grad(lambda b: np.sum(ours.cg(SPD, b, maxiter=1)[0]))(b)


def test_linear_operators():
    D = A.toarray()
    L = scipys.aslinearoperator(A)
    products = [
        lambda u: ours.aslinearoperator(L) @ u,
        lambda u: ours.aslinearoperator(A).matvec(u),
        lambda u: ours.aslinearoperator(D)(u),
        lambda u: ours.LinearOperator((n, n), lambda v: A @ v).dot(u),
        lambda u: ours.aslinearoperator(L) @ (u[:, None] * u) @ u,
    ]
    for f in products[:4]:
        check(f, lambda u: D @ u, (b,), orders=1)
    check(products[4], lambda u: D @ (u[:, None] * u) @ u, (b,), orders=1)
    check(lambda u: u @ L, lambda u: u @ D, (b,), orders=1)
    check(lambda u: ours.LinearOperator((n, n), lambda v: A @ v).rmatvec(u), lambda u: u @ D, (b,), orders=1)
    check(lambda u: ours.aslinearoperator(L).rmatvec(u), lambda u: u @ D, (b,), orders=1)
    for call in (lambda u: L @ u, lambda u: L.matvec(u), lambda u: L * u):
        with pytest.raises(RuntimeError, match=r"chainrule\.scipy\.sparse\.linalg\.aslinearoperator\(A\) @ x"):
            cr.grad(lambda u, call=call: np.sum(call(u)))(b)


def test_scipys_solvers_say_what_to_use():
    for name in ("spsolve", *ITERATIVE):
        with pytest.raises(RuntimeError, match=rf"chainrule\.scipy\.sparse\.linalg\.{name} keeps the derivative"):
            cr.grad(lambda b, name=name: np.sum(getattr(scipys, name)(SPD, b)))(b)


def test_wrong_shapes():
    for call in (
        lambda: ours.cg(A, cr.Array(np.ones(3))),
        lambda: ours.spsolve(A, cr.Array(np.ones(3))),
        lambda: ours.LinearOperator((3, 3), lambda v: v) @ b,
    ):
        with pytest.raises(ValueError, match=r"\(3,\)|\(3, 3\)"):
            call()
    with pytest.raises(ValueError, match="'N', 'T' or 'H'"):
        ours.splu(A).solve(b, trans="X")


SCIPYS = {
    "cg": lambda A: scipys.cg(A, b, rtol=1e-12)[0],
    "gmres": lambda A: scipys.gmres(A, b, rtol=1e-12)[0],
    "lsqr": lambda A: scipys.lsqr(A, b)[0],
    "eigsh": lambda A: scipys.eigsh(A, 1, v0=b)[0],
    "adjoint": lambda A: scipys.aslinearoperator(A).H @ b,
}


@pytest.mark.parametrize("name", SCIPYS)
def test_functions_of_scipy_that_ask_for_products_take_numbers(name):
    M = cr.sparse.like(SPD)
    np.testing.assert_allclose(SCIPYS[name](M), SCIPYS[name](SPD), rtol=1e-6)
    with pytest.raises(TypeError, match=r"carry derivatives.*chainrule\.scipy\.sparse\.linalg"):
        SCIPYS[name](cr.sparse.like(SPD, cr.tensor(SPD.data, requires_grad=True)))
    with pytest.raises(TypeError, match=r"inside a transformation|carry derivatives"):
        cr.jvp(lambda data: SCIPYS[name](cr.sparse.like(SPD, data)), (SPD.data,), (SPD.data,))


@pytest.mark.parametrize("call", [lambda A: scipys.spsolve(A, b), scipys.splu, sparse.csr_array])
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_functions_of_scipy_that_need_the_entries_say_what_takes_them(call):
    with pytest.raises(TypeError, match=r"SparseArray.*chainrule\.scipy\.sparse\.linalg has spsolve, splu"):
        call(cr.sparse.like(A))
    call(cr.sparse.like(A).to_scipy().tocsc())


@pytest.mark.parametrize("name", ["spsolve", "splu", "factorized"])
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_scipys_own_names_what_to_use_for_dense_matrices(name):
    def f(x):
        return getattr(scipys, name)(np.diag(x), *[b] * (name == "spsolve"))

    with pytest.raises((TypeError, RuntimeError), match=r"chainrule\.scipy\.sparse\.linalg"):
        cr.grad(f)(b)


def test_a_sparse_array_prints_where_something_else_failed():
    matrix = cr.sparse.like(A, A.data)
    try:
        raise ValueError
    except ValueError:
        assert f"{matrix}" == repr(matrix)
        assert f"{cr.Array(1.5)}" == "1.5"
