"""Eigenvalues of general matrices, LU factors, Householder products, and operations that return error codes."""

from __future__ import annotations

import numpy as np
import pytest

from behaviour import differs, torch

LA = torch.linalg
SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 4), (1, 1), (0, 3), (2, 0, 0), (20, 20)]


def numbers(*shape, complex=False, seed=0):
    rng = np.random.default_rng((seed, *shape))
    x = rng.normal(size=shape)
    return torch.from_numpy(x + 1j * rng.normal(size=shape) if complex else x)


def leaf(*shape, **options):
    return numbers(*shape, **options).requires_grad_()


def close(a, b, tolerance=1e-10):
    np.testing.assert_allclose(a.detach().resolve_conj().numpy(), b.detach().resolve_conj().numpy(), atol=tolerance)


# -- eigenvalues -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (0, 0)])
def test_eig(shape, complex):
    A = numbers(*shape, complex=complex)
    w, v = LA.eig(A)
    assert w.dtype == v.dtype == torch.complex128
    close(A.to(torch.complex128) @ v, v * w.unsqueeze(-2))
    close(LA.eigvals(A), w)
    result = LA.eig(A)
    close(result.eigenvalues, w)
    close(result.eigenvectors, v)


@pytest.mark.parametrize("complex", [False, True])
def test_gradients_of_eig(complex):
    """Of a function that is independent of the phases and lengths of the eigenvectors."""
    A = leaf(3, 3, complex=complex)
    assert torch.autograd.gradcheck(lambda A: LA.eigvals(A).abs(), A)
    assert torch.autograd.gradcheck(lambda A: LA.eig(A).eigenvectors.abs(), A)
    assert torch.autograd.gradcheck(lambda A: (lambda w, v: (v @ torch.diag(w**3) @ LA.inv(v)).abs())(*LA.eig(A)), A)
    assert torch.autograd.gradgradcheck(lambda A: LA.eigvals(A).abs().sum(), A)


def test_the_third_power_by_eigenvalues():
    A = leaf(3, 3)
    w, v = LA.eig(A)
    cube = (v @ torch.diag(w**3) @ LA.inv(v)).real
    close(cube, A @ A @ A)
    G = numbers(3, 3, seed=1)
    close(*[torch.autograd.grad(x, A, G)[0] for x in (cube, A @ A @ A)])


def test_a_loss_must_not_depend_on_phases():
    A = leaf(3, 3, complex=True)
    with pytest.raises(RuntimeError, match="ill-defined"):
        LA.eig(A).eigenvectors.imag.sum().backward()


@pytest.mark.parametrize(
    "call, kind",
    [
        (lambda: LA.eig(numbers(3)), RuntimeError),
        (lambda: LA.eig(numbers(2, 3)), RuntimeError),
        (lambda: LA.eig(torch.full((2, 2), float("nan"))), RuntimeError),
        (lambda: LA.eigvals(torch.ones(2, 2, dtype=torch.int64)), RuntimeError),
    ],
)
def test_what_eig_refuses(call, kind):
    with pytest.raises(kind):
        call()


# -- LU --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape, complex):
    A = numbers(*shape, complex=complex)
    P, L, U = LA.lu(A)
    m, n = shape[-2:]
    k = min(m, n)
    assert P.shape == (*shape[:-2], m, m) and L.shape == (*shape[:-2], m, k) and U.shape == (*shape[:-2], k, n)
    close(P @ L @ U, A)
    close(L.tril(), L)
    close(U.triu(), U)
    if L.numel():
        assert float(L.abs().max()) <= 1 + 1e-12 or complex  # a row exchange ensures it
    packed, pivots = LA.lu_factor(A)
    assert pivots.dtype == torch.int32 and pivots.shape == (*shape[:-2], k)
    close(packed[..., :k, :].triu(), U)


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3)])
def test_gradients_of_lu(shape, complex):
    A = leaf(*shape, complex=complex)
    assert torch.autograd.gradcheck(lambda A: LA.lu(A)[1:], A)
    assert torch.autograd.gradcheck(lambda A: LA.lu_factor(A).LU, A)
    if not complex:
        assert torch.autograd.gradgradcheck(lambda A: LA.lu(A)[1:], A)
        tangent = numbers(*shape, seed=1)
        _, moved = torch.func.jvp(lambda A: LA.lu_factor(A)[0], (A.detach(),), (tangent,))
        h = 1e-6
        close(moved, (LA.lu_factor(A + h * tangent).LU - LA.lu_factor(A - h * tangent).LU) / (2 * h), 1e-6)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
@pytest.mark.parametrize("complex", [True, False])
def test_lu_solve(left, adjoint, complex):
    A, B = (
        numbers(2, 3, 3, complex=complex),
        numbers(2, 3, 2, complex=complex) if left else numbers(2, 2, 3, complex=complex),
    )
    packed, pivots = LA.lu_factor(A)
    X = LA.lu_solve(packed, pivots, B, left=left, adjoint=adjoint)
    M = A.mH if adjoint else A
    close(M @ X if left else X @ M, B)
    leaves = packed.requires_grad_(), B.requires_grad_()
    assert torch.autograd.gradcheck(lambda F, B: LA.lu_solve(F, pivots, B, left=left, adjoint=adjoint), leaves)


def test_pivots_count_from_one():
    packed, pivots = LA.lu_factor(torch.tensor([[1.0, 2.0], [2.0, 8.0]]))
    assert packed.tolist() == [[2, 8], [0.5, -2]] and pivots.tolist() == [2, 2]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: LA.lu(numbers(3, 3), pivot=False), "LU without pivoting is not implemented on the CPU"),
        (lambda: LA.lu_factor(torch.ones(2, 2)), r"U\[2,2\] is zero"),
        (lambda: LA.lu_solve(*LA.lu_factor(numbers(3, 3)), numbers(2, 3)), "Incompatible shapes"),
        (lambda: LA.lu_solve(LA.lu_factor(numbers(3, 3)).LU, torch.tensor([1, 2, 3]), numbers(3, 1)), "torch.int32"),
        (lambda: LA.lu_solve(*LA.lu_factor(numbers(3, 3)), torch.ones(3, 1)), "same dtype"),
    ],
)
def test_what_lu_refuses(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()


# -- information -----------------------------------------------------------------------------------------------------

MIXED = [[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]], [[4.0, 2.0], [2.0, 5.0]]]


def test_info_says_which_matrix():
    A = torch.tensor(MIXED)
    inverse, info = LA.inv_ex(A)
    assert info.tolist() == [2, 0, 0] and info.dtype == torch.int32
    close(inverse[1:], LA.inv(A[1:]), 1e-6)
    X, info = LA.solve_ex(A, torch.ones(3, 2, 1))
    assert info.tolist() == [2, 0, 0]
    close(X[1:], LA.solve(A[1:], torch.ones(2, 2, 1)), 1e-6)
    L, info = LA.cholesky_ex(A)
    assert info.tolist() == [2, 2, 0]
    close(L[2], LA.cholesky(A[2]), 1e-6)
    assert LA.lu_factor_ex(A).info.tolist() == [2, 0, 0]
    for name, args in (("inv_ex", ()), ("cholesky_ex", ()), ("lu_factor_ex", ()), ("solve_ex", (torch.ones(3, 2, 1),))):
        with pytest.raises(RuntimeError, match=r"Batch element 0"):
            getattr(LA, name)(A, *args, check_errors=True)
        assert not getattr(LA, name)(A[2], *[B[2] for B in args], check_errors=True).info.any()


def test_gradients_go_through_what_can_be_inverted():
    A = numbers(2, 3, 3).requires_grad_()
    B = numbers(2, 3, 1, seed=1)
    assert torch.autograd.gradcheck(lambda A: LA.inv_ex(A).inverse, A)
    assert torch.autograd.gradcheck(lambda A: LA.solve_ex(A, B).result, A)
    assert torch.autograd.gradcheck(lambda A: LA.cholesky_ex(A @ A.mT + torch.eye(3)).L, A)


@differs("what it returns for a singular matrix is whatever the elimination left")
def test_what_failed_is_nan():
    A = torch.tensor(MIXED, requires_grad=True)
    inverse = LA.inv_ex(A).inverse
    assert bool(inverse[0].isnan().all())
    inverse[1:].sum().backward()
    assert bool(A.grad.isfinite().all()) and not A.grad[0].any()


# -- others ----------------------------------------------------------------------------------------------------------


def test_householder_product():
    A, tau = numbers(2, 5, 3), numbers(2, 3)
    Q = torch.eye(5, dtype=torch.float64).repeat(2, 1, 1)
    for i in range(3):
        v = A[..., i].clone()
        v[:, :i], v[:, i] = 0, 1
        Q = Q @ (torch.eye(5, dtype=torch.float64) - tau[:, i, None, None] * v.unsqueeze(-1) * v.unsqueeze(-2))
    close(LA.householder_product(A, tau), Q[..., :3])
    assert torch.autograd.gradcheck(LA.householder_product, (leaf(4, 2, complex=True), leaf(2, complex=True)))
    with pytest.raises(RuntimeError, match="must be greater than or equal to"):
        LA.householder_product(numbers(2, 3), numbers(2))


def test_tolerances_for_each_matrix():
    A = torch.diag_embed(torch.tensor([[1.0, 0.1, 0.01], [1.0, 0.1, 0.01]], dtype=torch.float64))
    assert LA.matrix_rank(A, atol=torch.tensor([0.05, 0.5], dtype=torch.float64)).tolist() == [2, 1]
    assert LA.matrix_rank(A, rtol=torch.tensor([0.05, 0.005], dtype=torch.float64)).tolist() == [2, 3]
    found = LA.pinv(A, atol=torch.tensor([0.05, 0.5], dtype=torch.float64))
    np.testing.assert_allclose(found.diagonal(0, -2, -1).numpy(), [[1, 10, 0], [1, 0, 0]], atol=1e-12)


def test_hermitian_reads_the_lower_triangle():
    whole = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    close(LA.pinv(whole.tril(), hermitian=True), LA.inv(whole))


@pytest.mark.parametrize("ord", [1, 2, float("inf"), "fro", "nuc"])
def test_norms_of_nothing(ord):
    for shape in ((0, 0), (3, 0), (0, 3)):
        assert LA.norm(torch.zeros(shape), ord).item() == 0
    if ord in (1, 2):
        with pytest.raises(IndexError):
            LA.norm(torch.zeros(3, 0), -ord)


# -- under transformations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"adjoint": True}, {"left": False}])
def test_factors_solve_in_vmap_and_jvp(options):
    A, B = numbers(4, 3, 3), numbers(4, 3, 3, seed=1)

    def solved(A, B):
        return LA.lu_solve(*LA.lu_factor(A), B, **options)

    def exact(A, B):
        A = A.mT if options.get("adjoint") else A
        return LA.solve(A, B, left=options.get("left", True))

    torch.testing.assert_close(torch.func.vmap(solved)(A, B), exact(A, B))
    torch.testing.assert_close(torch.func.vmap(solved, in_dims=(0, None))(A, B[0]), exact(A, B[0].expand(4, 3, 3)))
    tangents = numbers(4, 3, 3, seed=2), numbers(4, 3, 3, seed=3)
    for a, b in zip(torch.func.jvp(solved, (A, B), tangents), torch.func.jvp(exact, (A, B), tangents)):
        torch.testing.assert_close(a, b)


def test_factors_are_unpacked_in_vmap():
    A = numbers(4, 3, 2)
    P, L, U = torch.func.vmap(lambda A: tuple(torch.lu_unpack(*LA.lu_factor(A))))(A)
    torch.testing.assert_close(P @ L @ U, A)


def test_information_on_what_fails_in_vmap():
    A = torch.stack([torch.eye(3), torch.ones(3, 3), -torch.eye(3)])
    assert torch.func.vmap(lambda A: LA.inv_ex(A).info)(A).tolist() == [0, 2, 0]
    assert torch.func.vmap(lambda A: LA.cholesky_ex(A).info)(A).tolist() == [0, 2, 1]
