"""chainrule.linalg: complex matrices, special cases, and errors (values and derivatives: ops/cases.py)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import chainrule as cr
import chainrule.linalg as L
from chainrule.testing import gradcheck


def numbers(*shape, seed=0.3, scale=1.5):
    """Return deterministic numbers in (−scale, scale)."""
    n = int(np.prod(shape))
    return np.asarray(np.sin(np.arange(n) ** 1.5 * 1.37 + seed).reshape(shape) * scale)


def general(*shape, seed=0.3):
    """Return well-conditioned matrices."""
    return numbers(*shape, seed=seed) + 3 * np.eye(shape[-2], shape[-1])


def sym(a):
    """Return the symmetric part: the part of a matrix that these functions read, which finite differences can change freely."""
    return (a + a.mT) / 2


A3, TALL = general(3, 3), general(4, 2)


def complex_matrix(*shape):
    return numbers(*shape) + 1j * numbers(*shape, seed=2) + 3 * np.eye(shape[-2], shape[-1])


@pytest.mark.parametrize(
    "f",
    [
        L.inv,
        L.det,
        lambda a: L.slogdet(a).logabsdet,
        lambda a: L.slogdet(a).sign,
        lambda a: L.cholesky(a @ a.mH),
        lambda a: L.eigvalsh(a @ a.mH),
        lambda a: abs(L.eigh(a @ a.mH).eigenvectors) ** 2,
        L.svdvals,
        lambda a: (lambda r: r.U[:, :1] @ r.Vh[:1])(L.svd(a)),
        lambda a: L.qr(a).R,
        lambda a: L.qr(a[:, :2]).Q,
        lambda a: L.pinv(a[:2]),
        L.matrix_exp,
        lambda a: L.solve(a, a * a),
        lambda a: L.solve_triangular(a, a * a, upper=True),
        lambda a: L.matrix_norm(a, "nuc"),
        lambda a: L.vecdot(a, a * a),
    ],
)
def test_complex_derivatives_by_differences(f):
    x = cr.from_numpy(complex_matrix(3, 3)).requires_grad_()
    assert gradcheck(f, (x,))


# -- special cases ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_determinant_of_singular_matrices(rank):
    a = numbers(3, rank) @ numbers(rank, 3, seed=1) if rank else np.zeros((3, 3))
    x = cr.from_numpy(a).requires_grad_()
    L.det(x).backward()
    cofactors = np.array(
        [
            [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(3)]
            for i in range(3)
        ]
    )  # fmt: skip
    np.testing.assert_allclose(x.grad.numpy(), cofactors, atol=1e-12)


def test_gradient_of_a_solution_if_only_the_transposed_matrix_has_a_zero_pivot():
    a = np.array([[-1.0, 0.0, 2.0], [3.0, -3.0, 3.0], [0.7999999999999999, -0.8999999999999999, 1.0999999999999999]])
    left_null_vector = np.linalg.svd(a)[0][:, 2]
    x, y = cr.from_numpy(a).requires_grad_(), cr.ones(3, dtype=cr.float64).requires_grad_()
    L.solve(x, y).sum().backward()
    direction = y.grad / y.grad.norm()  # the inverse of a is dominated by its null vectors
    np.testing.assert_allclose(abs(direction.numpy() @ left_null_vector), 1, rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), -np.outer(y.grad, np.linalg.solve(a, np.ones(3))), rtol=1e-12)
    g = a.T @ [1.0, 2.0, 3.0]  # a right-hand side that has a solution
    (found,) = cr.autograd.grad(L.solve(x, y), y, cr.from_numpy(g))
    off_null_space = np.eye(3) - np.outer(left_null_vector, left_null_vector)
    np.testing.assert_allclose(off_null_space @ found.numpy(), off_null_space @ [1.0, 2.0, 3.0], rtol=1e-9)


def test_equal_eigenvalues_and_singular_values():
    x = cr.eye(3, dtype=cr.float64).requires_grad_()
    L.eigvalsh(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.eye(3), atol=1e-12)
    y = cr.eye(3, dtype=cr.float64).requires_grad_()
    L.svdvals(y).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), np.eye(3), atol=1e-12)


def test_results_have_fields():
    a = cr.eye(2)
    assert L.eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert L.svd(a)._fields == ("U", "S", "Vh")
    assert L.qr(a)._fields == ("Q", "R")
    assert L.slogdet(a)._fields == ("sign", "logabsdet")
    assert L.lstsq(a, a)._fields == ("solution", "residuals", "rank", "singular_values")
    assert a.svd()._fields == ("U", "S", "V")


def test_node_names():
    a = cr.eye(2, requires_grad=True)
    assert L.inv(a).grad_fn.name() == "LinalgInvExBackward0"
    assert L.det(a).grad_fn.name() == "LinalgDetBackward0"
    assert L.svd(a).S.grad_fn.name() == "LinalgSvdBackward0"
    assert L.eigh(a).eigenvalues.grad_fn.name() == "LinalgEighBackward0"


def test_svd_shapes():
    a = cr.from_numpy(numbers(2, 4, 3))
    full, thin = L.svd(a), L.svd(a, full_matrices=False)
    assert full.U.shape == (2, 4, 4) and full.Vh.shape == (2, 3, 3) and thin.U.shape == (2, 4, 3)
    back = thin.U @ cr.diag_embed(thin.S) @ thin.Vh
    np.testing.assert_allclose(back.numpy(), a.numpy(), atol=1e-12)


def test_lstsq_parts():
    a, b = cr.from_numpy(TALL), cr.from_numpy(numbers(4))
    plain = L.lstsq(a, b)
    assert plain.solution.shape == (2,) and plain.residuals.numel() == 0 and plain.singular_values.numel() == 0
    assert plain.rank.item() == 2
    both = L.lstsq(a, b, driver="gelsd")
    np.testing.assert_allclose(both.singular_values.numpy(), np.linalg.svd(TALL)[1])
    expected = np.linalg.lstsq(TALL, numbers(4), rcond=None)
    np.testing.assert_allclose(both.solution.numpy(), expected[0], atol=1e-12)
    np.testing.assert_allclose(both.residuals.numpy(), expected[1], atol=1e-12)


def test_rank_and_tolerances():
    a = cr.tensor([[1.0, 0.0], [0.0, 1e-3]])
    assert L.matrix_rank(a).item() == 2
    assert L.matrix_rank(a, tol=1e-2).item() == 1 and L.matrix_rank(a, rtol=1e-2).item() == 1
    np.testing.assert_allclose(L.pinv(a, rtol=1e-2).numpy(), [[1, 0], [0, 0]], atol=1e-7)
    assert L.matrix_rank(cr.zeros(3, 2, 2)).tolist() == [0, 0, 0]


def test_matrix_power_zero_keeps_the_graph():
    a = cr.eye(2, requires_grad=True)
    L.matrix_power(a, 0).sum().backward()
    assert a.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_logdet_of_negative_and_zero_determinants():
    assert np.isnan((-cr.eye(1)).logdet().item())
    assert cr.zeros(2, 2).logdet().item() == -np.inf


def test_cholesky_solve_and_inverse():
    a = sym(cr.from_numpy(A3)) + 3 * cr.eye(3, dtype=cr.float64)
    factor = L.cholesky(a)
    b = cr.from_numpy(numbers(3, 2))
    np.testing.assert_allclose(b.cholesky_solve(factor).numpy(), L.solve(a, b).numpy(), atol=1e-12)
    np.testing.assert_allclose(factor.cholesky_inverse().numpy(), L.inv(a).numpy(), atol=1e-12)
    np.testing.assert_allclose(factor.mT.cholesky_inverse(upper=True).numpy(), L.inv(a).numpy(), atol=1e-12)


def test_large_norm_exponentials():
    a = np.array([[[0.0, 40.0], [-40.0, 0.0]], [[0.0, 1e-3], [-1e-3, 0.0]]])
    got = L.matrix_exp(cr.from_numpy(a)).numpy()
    for matrix, angle in zip(got, (40.0, 1e-3), strict=True):
        expected = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
        np.testing.assert_allclose(matrix, expected, atol=1e-12)


# -- errors ----------------------------------------------------------------------------------------------------------


def z(*shape):
    return cr.zeros(*shape)


@pytest.mark.parametrize(
    "kind, words, call",
    [
        (L.LinAlgError, "batches of square matrices, but they are 2 by 3 matrices", lambda: L.inv(z(2, 3))),
        (L.LinAlgError, "linalg.inv: The diagonal element 2 is zero", lambda: L.inv(cr.ones(2, 2))),
        (L.LinAlgError, r"\(Batch element 1\)", lambda: L.inv(cr.stack([cr.eye(2), cr.ones(2, 2)]))),
        (RuntimeError, "at least 2 dimensions", lambda: L.det(z(3))),
        (RuntimeError, "floating point or complex tensor as input. Got Long", lambda: L.inv(z(2, 2).long())),
        (L.LinAlgError, "torch.linalg.solve: The solver failed", lambda: L.solve(cr.ones(2, 2), z(2))),
        (RuntimeError, r"for the equation AX = B \(2x2 and 3x1\)", lambda: L.solve(cr.eye(2), z(3, 1))),
        (RuntimeError, "A of type Float and B of type Double", lambda: L.solve(cr.eye(2), z(2).double())),
        (RuntimeError, "left=False", lambda: L.solve(cr.eye(2), z(2), left=False)),
        (L.LinAlgError, "minor of order 2 is not positive-definite", lambda: L.cholesky(cr.tensor([[1.0, 2], [2, 1]]))),
        (RuntimeError, "Expected UPLO argument to be 'L' or 'U'", lambda: L.eigh(cr.eye(2), "X")),
        (RuntimeError, "unrecognized mode 'foo'", lambda: L.qr(cr.eye(2), "foo")),
        (RuntimeError, "input must be 1D or 2D. Got 3D", lambda: L.norm(z(2, 2, 2), 2)),
        (RuntimeError, "must be of length 1 or 2", lambda: L.norm(z(2, 2), dim=(0, 1, 1))),
        (RuntimeError, "Order foo not supported", lambda: L.norm(z(2, 2), "foo")),
        (RuntimeError, "Order 3 not supported", lambda: L.matrix_norm(z(2, 2), 3)),
        (RuntimeError, "Got Long", lambda: L.vector_norm(z(2).long())),
        *[
            (RuntimeError, r"linalg.vector_norm cannot compute the .* does not have an identity", call)
            for ord in (-1, -0.5, float("inf"), -float("inf"))
            for call in (
                lambda ord=ord: L.vector_norm(z(0), ord),
                lambda ord=ord: L.vector_norm(z(2, 0), ord, 1),
                lambda ord=ord: cr.norm(z(2, 0), ord),
                lambda ord=ord: z(0, 2).norm(ord, dim=0),
            )
        ],
        (RuntimeError, "must have length 3. Got 2 and 2", lambda: L.cross(z(2), z(2))),
        (TypeError, "argument 'n' .* must be int, not float", lambda: L.matrix_power(cr.eye(2), 1.5)),
        (TypeError, "must be Tensor, not list", lambda: L.inv([[1.0]])),
        (RuntimeError, "at least 2 tensors", lambda: L.multi_dot([z(2, 2)])),
        (RuntimeError, "prod", lambda: L.tensorinv(z(2, 3, 4), ind=1)),
        (L.LinAlgError, "non-finite values", lambda: L.svd(cr.full((2, 2), float("nan")))),
        (RuntimeError, r"input.size\(-2\) should match", lambda: L.lstsq(z(3, 2), z(2, 1))),
    ],
)
def test_errors(kind, words, call):
    with pytest.raises(kind, match=words):
        call()


def test_linalg_errors_are_runtime_errors_and_numpys():
    assert issubclass(L.LinAlgError, RuntimeError) and issubclass(L.LinAlgError, np.linalg.LinAlgError)


def test_gradients_that_are_not_determined():
    tall = cr.from_numpy(TALL).requires_grad_()
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete'"):
        L.qr(tall, "complete").Q.sum().backward()
    with pytest.raises(RuntimeError, match="full_matrices=False"):
        L.svd(tall).U.sum().backward()
    hermitian = cr.from_numpy(complex_matrix(3, 3) + complex_matrix(3, 3).conj().T).requires_grad_()
    with pytest.raises(RuntimeError, match=r"linalg_eigh_backward.*ill-defined"):
        L.eigh(hermitian).eigenvectors.real.sum().backward()
    with pytest.raises(RuntimeError, match=r"svd_backward.*ill-defined"):
        L.svd(hermitian).U.real.sum().backward()


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape, columns", [((70, 70), 1), ((2, 67, 67), 3), ((33, 33), 40)])
def test_large_triangles(shape, columns, upper):
    """Triangular systems larger than 32 are solved recursively by halves."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(shape) + 2 * shape[-1] ** 0.5 * np.eye(shape[-1])
    triangle = np.triu(a) if upper else np.tril(a)
    b = rng.standard_normal((*shape[:-1], columns))
    x = cr.linalg.solve_triangular(cr.tensor(a, requires_grad=True), cr.tensor(b), upper=upper)
    np.testing.assert_allclose(x.detach().numpy(), np.linalg.solve(triangle, b), rtol=1e-9, atol=1e-12)
    singular = triangle.copy()
    singular[..., 40 % shape[-1], 40 % shape[-1]] = 0
    with pytest.raises(RuntimeError, match="singular"):
        cr.linalg.solve_triangular(cr.tensor(singular), cr.tensor(b), upper=upper)


def _exact_derivatives(x: np.ndarray, t: np.ndarray) -> list[float]:
    """Return the derivatives of det(x + s t) for s, in order, at s = 0: the polynomial in exact rational arithmetic."""
    n = len(x)

    def determinant(rows: list[list[Fraction]]) -> Fraction:
        if not rows:
            return Fraction(1)
        first, others = rows[0], rows[1:]
        minors = [determinant([row[:j] + row[j + 1 :] for row in others]) for j in range(len(first))]
        return sum(((-1) ** j * first[j] * minor for j, minor in enumerate(minors)), Fraction(0))

    def at(s: int) -> Fraction:
        return determinant([[Fraction(float(a)) + s * Fraction(float(b)) for a, b in zip(*rows)] for rows in zip(x, t)])

    values = [at(s) for s in range(n + 1)]
    differences = []
    while values:
        differences.append(values[0])
        values = [b - a for a, b in itertools.pairwise(values)]
    derivatives, power = [Fraction(0)] * (n + 1), [Fraction(1)]  # the power series of s(s - 1)…(s - k + 1) / k!
    for k, difference in enumerate(differences):
        for i, coefficient in enumerate(power):
            derivatives[i] += difference * coefficient * math.factorial(i)
        power = [(b - k * a) / (k + 1) for a, b in zip([*power, Fraction(0)], [Fraction(0), *power])]
    return [float(derivative) for derivative in derivatives]


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("kind", ["well-conditioned", "nearly singular", "singular", "of rank n - 2", "graded", "zero"])
def test_derivatives_of_det_hold_at_and_near_singular_matrices(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    q, p = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    s = {
        "well-conditioned": rng.uniform(0.5, 2, n),
        "nearly singular": np.append(np.ones(n - 1), 1e-14),
        "singular": np.append(np.ones(n - 1), 0),
        "of rank n - 2": np.append(np.ones(n - 2), [0, 0]),
        "graded": 100.0 ** -np.arange(n),
        "zero": np.zeros(n),
    }[kind]
    x, t = q @ np.diag(s) @ p, rng.normal(size=(n, n))
    _, first, second, third = (*_exact_derivatives(x, t), 0.0)[:4]
    along = lambda f: lambda x: cr.func.jvp(f, (x,), (t,))[1]
    reverse = lambda f: lambda x: np.sum(cr.func.grad(f)(x) * t)
    for one, two, three in [(along, along, along), (reverse, reverse, reverse), (reverse, along, along)]:
        np.testing.assert_allclose(one(np.linalg.det)(x), first, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(two(one(np.linalg.det))(x), second, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(three(two(one(np.linalg.det)))(x), third, rtol=1e-9, atol=1e-12)
    stack = np.stack([x, rng.normal(size=(n, n))])
    many = cr.vmap(reverse(reverse(np.linalg.det)))(stack)
    np.testing.assert_allclose(many, [second, _exact_derivatives(stack[1], t)[2]], rtol=1e-9, atol=1e-13)
    tiny = np.full((2, 2), 1e-200)  # its determinant is 0, and an inverse would overflow
    np.testing.assert_array_equal(cr.hessian(np.linalg.det)(tiny), cr.hessian(np.linalg.det)(np.ones((2, 2))))
    np.testing.assert_allclose(cr.hessian(np.linalg.det)(x.astype(np.float32)), cr.hessian(np.linalg.det)(x), atol=2e-4)
