"""np.linalg on tensors: NumPy's values and signatures, with gradients."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.testing import gradcheck

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
B = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]])
STACK = np.stack([A, A + np.diag([1.0, 2.0, 3.0])])

CALLS = {
    "inv": lambda a: np.linalg.inv(a),
    "solve": lambda a: np.linalg.solve(a, B),
    "solve vector": lambda a: np.linalg.solve(a, B[:, 0]),
    "det": lambda a: np.linalg.det(a),
    "slogdet": lambda a: np.linalg.slogdet(a).logabsdet,
    "cholesky": lambda a: np.linalg.cholesky(a),
    "eigvalsh": lambda a: np.linalg.eigvalsh(a),
    "eigh": lambda a: np.linalg.eigh(a).eigenvalues,
    "eigh vectors": lambda a: np.linalg.eigh(a)[1] ** 2,
    "svd": lambda a: np.linalg.svd(a)[1],
    "svd values": lambda a: np.linalg.svd(a, compute_uv=False),
    "svdvals": lambda a: np.linalg.svdvals(a),
    "qr": lambda a: np.linalg.qr(a).R,
    "qr r": lambda a: np.linalg.qr(a, mode="r"),
    "pinv": lambda a: np.linalg.pinv(a),
    "matrix_power": lambda a: np.linalg.matrix_power(a, -3),
    "cond": lambda a: np.linalg.cond(a),
    "cond 1": lambda a: np.linalg.cond(a, 1),
    "diagonal": lambda a: np.linalg.diagonal(a, offset=1),
    "trace": lambda a: np.linalg.trace(a),
    "matrix_norm": lambda a: np.linalg.matrix_norm(a, ord="nuc"),
    "vector_norm": lambda a: np.linalg.vector_norm(a, axis=-1, ord=3),
}
NORMS = [
    {}, {"ord": "fro"}, {"ord": "nuc"}, {"ord": 1}, {"ord": -1}, {"ord": 2}, {"ord": -2}, {"ord": np.inf},
    {"ord": -np.inf}, {"axis": 0}, {"ord": 1, "axis": 1}, {"ord": 3, "axis": -1, "keepdims": True},
    {"ord": 1, "axis": (1, 0)}, {"ord": 2, "axis": (0, 1), "keepdims": True}, {"keepdims": True},
]  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("array", [A, STACK], ids=["one", "stack"])
def test_values_are_numpys(name, array):
    got = CALLS[name](cr.from_numpy(array))
    assert isinstance(got, cr.Tensor)
    np.testing.assert_allclose(got.numpy(), CALLS[name](array), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", NORMS, ids=str)
def test_norms_are_numpys(options):
    got = np.linalg.norm(cr.from_numpy(B), **options)
    np.testing.assert_allclose(got.numpy(), np.linalg.norm(B, **options), rtol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_gradients(name):
    x = cr.from_numpy(A.copy()).requires_grad_()
    assert gradcheck(lambda a: CALLS[name]((a + a.mT) / 2), (x,))


@pytest.mark.parametrize("name", CALLS)
def test_inside_transformations(name):
    batched = cr.func.vmap(CALLS[name])(cr.from_numpy(STACK))
    np.testing.assert_allclose(batched.numpy(), np.stack([CALLS[name](a) for a in STACK]), rtol=1e-10, atol=1e-12)


def test_mixed_operands():
    b = cr.from_numpy(B).requires_grad_()
    np.linalg.solve(A, b).sum().backward()
    np.testing.assert_allclose(b.grad.numpy(), np.linalg.solve(A.T, np.ones_like(B)))
    stack_with_vector = np.linalg.solve(cr.from_numpy(STACK), B[:, 0])
    np.testing.assert_allclose(stack_with_vector.numpy(), np.linalg.solve(STACK, B[:, 0]))


def test_integers_are_computed_in_float64():
    assert np.linalg.inv(cr.tensor([[2, 0], [0, 4]])).dtype == np.float64
    assert np.linalg.norm(cr.tensor([3, 4])).item() == 5.0


def test_rank_and_lstsq():
    assert np.linalg.matrix_rank(cr.from_numpy(A)).item() == 3
    x, residuals, rank, s = np.linalg.lstsq(cr.from_numpy(B), A[:, 0])
    expected = np.linalg.lstsq(B, A[:, 0])
    np.testing.assert_allclose(x.numpy(), expected[0])
    np.testing.assert_allclose(residuals.numpy(), expected[1])
    assert rank.item() == expected[2]
    np.testing.assert_allclose(s.numpy(), expected[3])


def test_errors():
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        np.linalg.inv(cr.from_numpy(B))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        np.linalg.inv(cr.ones(2, 2))
    with pytest.raises(ValueError, match="Improper number of dimensions"):
        np.linalg.norm(cr.from_numpy(STACK), 2)


def test_eigenvalues_are_real_where_numpys_are():
    real, turned = np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([[0.0, 1.0], [-1.0, 0.0]])
    for matrix in (real, turned):
        x = cr.tensor(matrix, requires_grad=True)
        expected = np.linalg.eig(matrix)
        w, v = np.linalg.eig(x)
        assert w.dtype == expected.eigenvalues.dtype and v.dtype == expected.eigenvectors.dtype
        np.testing.assert_allclose(w.detach().numpy(), expected.eigenvalues)
        np.testing.assert_allclose(v.detach().numpy(), expected.eigenvectors)
        assert np.linalg.eigvals(x).dtype == w.dtype
        (g,) = cr.autograd.grad(np.real(np.sum(w)), x)
        np.testing.assert_allclose(g.numpy(), np.eye(2), atol=1e-12)  # the trace
