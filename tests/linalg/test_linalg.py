"""chainrule.linalg: values and gradients against numbers recorded from PyTorch 2.13, and against differences."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
import chainrule.linalg as L
from chainrule.testing import gradcheck, gradgradcheck


def numbers(*shape, seed=0.3, scale=1.5):
    """Deterministic numbers in (−scale, scale)."""
    n = int(np.prod(shape))
    return np.asarray(np.sin(np.arange(n) ** 1.5 * 1.37 + seed).reshape(shape) * scale)


def general(*shape, seed=0.3):
    """Well-conditioned matrices."""
    return numbers(*shape, seed=seed) + 3 * np.eye(shape[-2], shape[-1])


def sym(a):
    """The symmetric part: what these functions read of a matrix, in a form that differences can move freely."""
    return (a + a.mT) / 2


def positive(a):
    return a @ a.mT


def checksum(x):
    x = np.asarray(x).ravel()
    return float((x.real if x.dtype.kind == "c" else x) @ np.cos(np.arange(x.size) + 0.5))


A3, A4 = general(3, 3), general(2, 4, 4)
TALL, WIDE = general(4, 2), general(2, 3, 5)

#: name -> (call on the library, operands that get gradients, constants)
CASES = {
    "inv": (lambda T, a: T.linalg.inv(a), [A4], []),
    "inverse": (lambda T, a: a.inverse(), [A3], []),
    "solve": (lambda T, a, b: T.linalg.solve(a, b), [A4, numbers(2, 4, 3)], []),
    "solve vector": (lambda T, a, b: T.linalg.solve(a, b), [A3, numbers(3)], []),
    "solve vectors": (lambda T, a, b: T.linalg.solve(a, b), [A4, numbers(2, 4)], []),
    "solve broadcast": (lambda T, a, b: T.linalg.solve(a, b), [A4, numbers(4, 3)], []),
    "solve right": (lambda T, a, b: T.linalg.solve(a, b, left=False), [A3, numbers(2, 3)], []),
    "solve_triangular": (
        lambda T, a, b: T.linalg.solve_triangular(a, b, upper=True), [A4, numbers(2, 4, 3)], [],
    ),
    "solve_triangular right unit": (
        lambda T, a, b: T.linalg.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
        [A4, numbers(3, 4)],
        [],
    ),
    "det": (lambda T, a: T.linalg.det(a), [A4], []),
    "slogdet": (lambda T, a: T.linalg.slogdet(a).logabsdet, [A4], []),
    "logdet": (lambda T, a: positive(a).logdet(), [A4], []),
    "cholesky": (lambda T, a: T.linalg.cholesky(positive(a)), [A4], []),
    "cholesky upper": (lambda T, a: T.linalg.cholesky(positive(a), upper=True), [A3], []),
    "eigvalsh": (lambda T, a: T.linalg.eigvalsh(sym(a)), [A4], []),
    "eigh values": (lambda T, a: T.linalg.eigh(sym(a)).eigenvalues, [A3], []),
    "eigh projector": (lambda T, a: (lambda v: v[:, :1] @ v[:, :1].mT)(T.linalg.eigh(sym(a)).eigenvectors), [A3], []),
    "eigh upper": (lambda T, a: T.linalg.eigh(sym(a), "U").eigenvectors ** 2, [A3], []),
    "svdvals tall": (lambda T, a: T.linalg.svdvals(a), [TALL], []),
    "svdvals wide": (lambda T, a: T.linalg.svdvals(a), [WIDE], []),
    "svd full": (lambda T, a: T.linalg.svd(a).S, [WIDE], []),
    "svd tall": (lambda T, a: (lambda r: r.U[:, :1] @ r.Vh[:1])(T.linalg.svd(a, full_matrices=False)), [TALL], []),
    "svd wide": (
        lambda T, a: (lambda r: r.U[..., :1] @ r.Vh[..., :1, :])(T.linalg.svd(a, full_matrices=False)), [WIDE], [],
    ),
    "qr tall Q": (lambda T, a: T.linalg.qr(a).Q, [TALL], []),
    "qr tall R": (lambda T, a: T.linalg.qr(a).R, [TALL], []),
    "qr wide Q": (lambda T, a: T.linalg.qr(a).Q, [WIDE], []),
    "qr wide R": (lambda T, a: T.linalg.qr(a, "complete").R, [WIDE], []),
    "pinv tall": (lambda T, a: T.linalg.pinv(a), [TALL], []),
    "pinv wide": (lambda T, a: T.linalg.pinv(a), [WIDE], []),
    "lstsq": (lambda T, a, b: T.linalg.lstsq(a, b).solution, [TALL, numbers(4, 3)], []),
    "lstsq residuals": (lambda T, a, b: T.linalg.lstsq(a, b, driver="gels").residuals, [TALL, numbers(4, 3)], []),
    "matrix_exp": (lambda T, a: T.linalg.matrix_exp(a), [A4], []),
    "matrix_power": (lambda T, a: T.linalg.matrix_power(a, 5), [A3], []),
    "matrix_power inverse": (lambda T, a: T.linalg.matrix_power(a, -2), [A3], []),
    "multi_dot": (
        lambda T, a, b, c: T.linalg.multi_dot([a, b, c]),
        [numbers(2, 3), numbers(3, 4, seed=1), numbers(4, seed=2)],
        [],
    ),
    "cond": (lambda T, a: T.linalg.cond(a), [A4], []),
    "cond -2": (lambda T, a: T.linalg.cond(a, -2), [A4], []),
    "norm": (lambda T, a: T.linalg.norm(a), [A4], []),
    "norm dim": (lambda T, a: T.linalg.norm(a, 3, 1), [A4], []),
    "norm nuc": (lambda T, a: T.linalg.norm(a, "nuc"), [TALL], []),
    "vector_norm": (lambda T, a: T.linalg.vector_norm(a, 1.5, (0, 2), True), [A4], []),
    **{
        f"matrix_norm {p}": (lambda T, a, p=p: T.linalg.matrix_norm(a, p, (0, -1), keepdim=True), [A4], [])
        for p in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    },
    "cross": (lambda T, a, b: T.linalg.cross(a, b), [numbers(4, 3), numbers(4, 3, seed=1)], []),
    "vecdot": (lambda T, a, b: T.linalg.vecdot(a, b, dim=0), [numbers(4, 3), numbers(4, 3, seed=1)], []),
    "diagonal": (lambda T, a: T.linalg.diagonal(a, offset=1), [A4], []),
    "tensorinv": (lambda T, a: T.linalg.tensorinv(a, ind=1), [general(6, 6).reshape(6, 2, 3)], []),
    "tensorsolve": (lambda T, a, b: T.linalg.tensorsolve(a, b), [general(6, 6).reshape(2, 3, 6), numbers(2, 3)], []),
}  # fmt: skip

#: name -> the checksum of the value, then of each gradient of Σ cos(i + ½)·valueᵢ
RECORDED = {
    "inv": [-1.40871528064, -6.33789575564],
    "inverse": [-0.218139489506, -1.0583350936],
    "solve": [6.08383747555, 7.23172869345, 7.11272844113],
    "solve vector": [-0.178794925492, 0.0932479796314, 0.404579050444],
    "solve vectors": [0.45581333961, -2.74190113256, 2.91791986604],
    "solve broadcast": [6.0774720408, 6.09339990037, 6.45374660774],
    "solve right": [0.393358835554, 2.1829504155, 0.766961788796],
    "solve_triangular": [3.05070720822, 1.61368361141, 5.4577520602],
    "solve_triangular right unit": [1.82152317758, -1.00068575414, 17.7432603194],
    "det": [22.7063723851, -25.5098540488],
    "slogdet": [3.01144769628, -1.05500511223],
    "logdet": [6.02289539256, -2.11001022446],
    "cholesky": [0.340957653849, 8.01363562424],
    "cholesky upper": [2.89382621354, 0.716107922068],
    "eigvalsh": [-0.334093373446, -2.93886369776],
    "eigh values": [-2.58803639055, -0.13025035317],
    "eigh projector": [0.20518975599, -0.684733744156],
    "eigh upper": [-0.627629796945, -0.44828459871],
    "svdvals tall": [4.40621431278, -0.567749011962],
    "svdvals wide": [-0.708366549261, 0.519366897828],
    "svd full": [-0.708366549261, 0.519366897828],
    "svd tall": [-0.756840071073, 0.40432871055],
    "svd wide": [0.968964140486, 1.01094670097],
    "qr tall Q": [-0.599298532048, -0.318255397542],
    "qr tall R": [0.659235701664, -1.918588933],
    "qr wide Q": [-0.278189360522, 0.0141418638873],
    "qr wide R": [-3.01000256551, -4.84493727433],
    "pinv tall": [0.298022341783, -0.0472662277618],
    "pinv wide": [-0.289779241525, 0.0960631391345],
    "lstsq": [-0.226775243654, -0.145868191369, 0.392310901471],
    "lstsq residuals": [1.61284784791, -0.454792351899, 3.00410522158],
    "matrix_exp": [-132.007573079, 289.724219447],
    "matrix_power": [1360.21894091, 246.496059302],
    "matrix_power inverse": [-0.184494369404, -1.42193083619],
    "multi_dot": [-0.952623047938, 1.26369182225, -0.577065813518, -2.55174621755],
    "cond": [7.88408851068, 12.1589482276],
    "cond -2": [0.114215769106, -0.169894015725],
    "norm": [8.23402402381, 0.284180620432],
    "norm dim": [4.55888880594, 1.8348886562],
    "norm nuc": [7.81079383231, 0.532275844888],
    "vector_norm": [-1.76610863324, -0.239470712772],
    "matrix_norm fro": [-1.34111515178, -0.0474320485622],
    "matrix_norm nuc": [-2.90075427792, -1.48688573603],
    "matrix_norm 1": [-0.886820122613, 0.343657946628],
    "matrix_norm -1": [-0.07085046843, -0.160481621453],
    "matrix_norm 2": [-0.929793024809, 0.125136810228],
    "matrix_norm -2": [-1.97096125311, -1.61202254626],
    "matrix_norm inf": [-2.53706210406, 0.902525867345],
    "matrix_norm -inf": [-0.403592237488, -2.07956436325],
    "cross": [-0.764542534114, 2.4799761953e-16, -7.34989382568e-17],
    "vecdot": [2.40394123202, -0.032483880638, 0.0992472766291],
    "diagonal": [-0.549015039877, -0.784063569413],
    "tensorinv": [-0.964691018558, -1.28425801635],
    "tensorsolve": [0.753795633335, 0.225220836967, 1.03445751167],
}


def run(name):
    call, floats, constants = CASES[name]
    tensors = [cr.from_numpy(x.copy()).requires_grad_() for x in floats]
    out = call(Library, *tensors, *[cr.from_numpy(np.array(x)) for x in constants])
    weights = cr.from_numpy(np.cos(np.arange(out.numel()) + 0.5).reshape(tuple(out.shape)))
    grads = cr.autograd.grad((out * weights).sum(), tensors)
    return [checksum(out.detach().numpy()), *[checksum(g.numpy()) for g in grads]]


class Library:
    """What the calls above need of the library."""

    linalg = L


def leaves(name):
    return tuple(cr.from_numpy(x.copy()).requires_grad_() for x in CASES[name][1])


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients_are_pytorchs(name):
    np.testing.assert_allclose(run(name), RECORDED[name], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_by_differences(name):
    assert gradcheck(lambda *xs: CASES[name][0](Library, *xs), leaves(name))


@pytest.mark.parametrize("name", sorted(set(CASES) - {"matrix_power"}))
def test_second_derivatives_by_differences(name):
    assert gradgradcheck(lambda *xs: CASES[name][0](Library, *xs), leaves(name), atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_float32_stays_float32(name):
    call, floats, _ = CASES[name]
    tensors = [cr.from_numpy(x.astype(np.float32)).requires_grad_() for x in floats]
    out = call(Library, *tensors)
    assert out.dtype == np.float32
    assert all(g.dtype == np.float32 for g in cr.autograd.grad(out.sum(), tensors))


@pytest.mark.parametrize("name", CASES)
def test_batch_is_a_loop(name):
    call, floats, _ = CASES[name]
    examples = [cr.from_numpy(np.stack([x, x + 0.1 * np.cos(x), 1.1 * x])) for x in floats]

    def loss(*xs):
        out = call(Library, *xs)
        return (out * out).sum()

    where = tuple(range(len(floats)))
    batched = cr.func.vmap(cr.func.grad(loss, where))(*examples)
    for i in range(3):
        one = cr.func.grad(loss, where)(*[x[i] for x in examples])
        for b, g in zip(batched, one, strict=True):
            np.testing.assert_allclose(b[i].numpy(), g.numpy(), rtol=1e-8, atol=1e-9 * abs(g.numpy()).max())


@pytest.mark.parametrize("name", CASES)
def test_forward_mode_by_differences(name):
    call, floats, _ = CASES[name]
    primals = tuple(cr.from_numpy(x) for x in floats)
    tangents = tuple(cr.from_numpy(numbers(*x.shape, seed=5)) for x in floats)
    _, tangent = cr.func.jvp(lambda *xs: call(Library, *xs), primals, tangents)
    step = 1e-6
    ahead, behind = (
        call(Library, *[x + s * t for x, t in zip(primals, tangents, strict=True)]).numpy() for s in (step, -step)
    )
    difference = (ahead - behind) / (2 * step)
    np.testing.assert_allclose(tangent.numpy(), difference, rtol=1e-5, atol=1e-6 * max(1, abs(difference).max()))


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


# -- what is special about some --------------------------------------------------------------------------------------


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
    """Larger than 32, triangular systems are solved by halves."""
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
