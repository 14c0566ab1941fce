"""SciPy's sparse matrices with tensors and Arrays, compared with the same programs with dense matrices."""

import numpy as np
import pytest

import chainrule as cr

sparse = pytest.importorskip("scipy.sparse")
rng = np.random.default_rng(0)

DENSE = np.where(rng.random((5, 4)) < 0.5, rng.normal(size=(5, 4)), 0)
FORMATS = ["csr", "csc", "coo", "dia", "bsr", "lil", "dok"]
CLASSES = [sparse.csr_array, sparse.csr_matrix]
u, w = rng.normal(size=4), rng.normal(size=5)
U = rng.normal(size=(4, 3))

PRODUCTS = {
    "A @ u": (lambda A, x: A @ x, u),
    "A @ U": (lambda A, x: A @ x, U),
    "w @ A": (lambda A, x: x @ A, w),
    "W @ A": (lambda A, x: x @ A, rng.normal(size=(2, 5))),
    "A.T @ w": (lambda A, x: A.T @ x, w),
}


@pytest.mark.parametrize("kind", CLASSES, ids=["array", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_products(form, kind):
    A = kind(DENSE).asformat(form)
    for f, x in PRODUCTS.values():
        found = cr.grad(lambda x, f=f: np.sum(np.sin(f(A, x))))(x)
        expected = cr.grad(lambda x, f=f: np.sum(np.sin(f(DENSE, x))))(x)
        np.testing.assert_allclose(found, expected, atol=1e-14)
        np.testing.assert_allclose(np.asarray(f(A, cr.Array(x))), f(A, x), atol=1e-15)


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_transformation(name):
    f, x = PRODUCTS[name]
    A = sparse.csr_array(DENSE)

    def ours(x):
        return np.sum(np.sin(f(A, x)) ** 2)

    def dense(x):
        return np.sum(np.sin(f(DENSE, x)) ** 2)

    batch = np.stack([x, 2 * x, -x])
    for transformed in (
        lambda g: cr.hessian(g)(x),
        lambda g: cr.jvp(g, (x,), (np.cos(x),))[1],
        lambda g: cr.vmap(cr.grad(g))(batch),
        lambda g: cr.vmap(cr.grad(g))(batch[:0]),
        lambda g: cr.grad(lambda x: np.sum(cr.grad(g)(x) ** 2))(x),
        lambda g: cr.compile(cr.grad(g))(x),
    ):
        np.testing.assert_allclose(transformed(ours), transformed(dense), atol=1e-12)
    compiled = cr.compile(cr.grad(ours))
    compiled(x)
    np.testing.assert_allclose(compiled(2 * x), cr.grad(dense)(2 * x), atol=1e-12)


def test_dot():
    found = cr.grad(lambda x: np.sum(sparse.csr_array(DENSE).dot(x)))(u)
    np.testing.assert_array_equal(found, cr.grad(lambda x: np.sum(sparse.csr_array(DENSE) @ x))(u))
    try:
        found = cr.grad(lambda x: np.sum(sparse.coo_array(DENSE).dot(x)))(u)
    except RuntimeError as error:  # newer SciPy versions ask for an array first
        assert "keeps the derivative" in str(error)
    else:
        np.testing.assert_array_equal(found, DENSE.sum(0))


def test_a_tensor_gives_a_tensor():
    A = sparse.csr_array(DENSE)
    t = cr.tensor(u, requires_grad=True)
    for y, expected in ((A @ t, DENSE @ u), (t @ A.T, u @ DENSE.T), (A @ t.detach(), DENSE @ u)):
        assert type(y) is cr.Tensor
        np.testing.assert_allclose(y.detach().numpy(), expected)
    (A @ t).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), DENSE.sum(0))
    assert type(A @ cr.Array(u)) is cr.Array


def test_stars_of_matrices_are_products_and_of_arrays_are_none():
    M, A = sparse.csr_matrix(DENSE), sparse.csr_array(DENSE)
    for x in (cr.Array(u), cr.tensor(u)):
        np.testing.assert_allclose(np.asarray(M * x), DENSE @ u)
        np.testing.assert_allclose(np.asarray(x * M.T), u @ DENSE.T)
        for product in (lambda x=x: x * A, lambda x=x: A + x, lambda x=x: x - M):
            with pytest.raises(TypeError, match=r"toarray\(\).*chainrule\.sparse\.like"):
                product()


def test_vectors_that_are_sparse():
    a = sparse.coo_array(np.array([0.0, 2.0, 0.0, 3.0]))
    np.testing.assert_allclose(cr.grad(lambda x: (a @ x) * (x @ a))(u), 2 * (a @ u) * a.toarray())


def test_complex_and_mixed_dtypes():
    A = sparse.csr_array(DENSE * (1 + 2j))
    z = cr.tensor(u * (1 - 1j), requires_grad=True)
    assert cr.autograd.gradcheck(lambda z: A @ z, z)
    single = cr.tensor(u.astype(np.float32), requires_grad=True)
    y = sparse.csr_array(DENSE) @ single
    assert y.dtype == cr.float64
    y.sum().backward()
    assert single.grad.dtype == cr.float32


def test_shapes_that_do_not_fit():
    A = sparse.csr_array(DENSE)
    for product in (lambda x: A @ x, lambda x: x @ A.T):
        with pytest.raises(ValueError, match=r"\(4,\) and \(4, k\), not \(3,\)"):
            product(cr.Array(u[:3]))


@pytest.mark.parametrize("strategy", [None, "forward terms", "reverse terms"])
def test_jacobians_have_the_entries_of_the_matrix(strategy):
    A = sparse.csr_array(DENSE)
    J = cr.jacobian(lambda x: A @ x**2, u, layout="csr", strategy=strategy)
    assert J.nnz == A.nnz
    np.testing.assert_allclose(J.toarray(), DENSE * 2 * u)

    def programs(A):
        return [
            lambda x: np.sin(A @ (A.T @ (A @ x)))[1:] * x,
            lambda x: (A @ (x[:, None] * x)).reshape(-1),
            lambda x: np.cos(A @ x[[0, 0, 2, 3]]),
        ]

    for ours, dense in zip(programs(A), programs(DENSE), strict=True):
        J = cr.jacobian(ours, u, layout="csr", strategy=strategy)
        np.testing.assert_allclose(J.toarray(), cr.jacrev(dense)(u), atol=1e-13)


def test_a_large_jacobian_stays_sparse():
    places = rng.integers(0, 5000, (2, 20000))
    A = sparse.coo_array((rng.normal(size=20000), tuple(places)), (5000, 5000)).tocsr()
    x = rng.normal(size=5000)
    J = cr.jacobian(lambda x: np.tanh(A @ x), x, layout="csr")
    assert J.nnz == A.nnz
    np.testing.assert_allclose(J @ x, (1 - np.tanh(A @ x) ** 2) * (A @ x))
    H = cr.hessian(lambda x: np.sum(np.sin(A @ x)), x, layout="csr")
    np.testing.assert_allclose(H @ x, A.T @ (-np.sin(A @ x) * (A @ x)), atol=1e-12)


def test_a_sum_of_products_by_the_entries():
    A = sparse.csr_array(DENSE)
    J = cr.jacobian(lambda data: cr.sparse.like(A, data) @ u, A.data, layout="csr")
    assert J.nnz == A.nnz
    np.testing.assert_allclose(J @ A.data, DENSE @ u)


@pytest.mark.filterwarnings("ignore:compile. .* an array of objects")  # the rows of lil
@pytest.mark.parametrize("form", FORMATS)
def test_compiled_functions_see_what_is_written_into_matrices(form):
    A = sparse.csr_array(DENSE).asformat(form)
    compiled = cr.compile(cr.grad(lambda x: np.sum((A @ x) ** 2)))
    for _ in range(2):
        np.testing.assert_allclose(compiled(u), 2 * A.T @ (A @ u))
        if form in ("lil", "dok"):
            A[0, 0] = 7.0
        else:
            A.data *= 3
    np.testing.assert_allclose(compiled(u), 2 * A.T @ (A @ u))


@pytest.mark.parametrize("name", ["dot", "matmul", "multiply"])
def test_numpys_functions_say_what_to_write(name):
    with pytest.raises(TypeError, match=r"A @ x"):
        cr.grad(lambda x: np.sum(getattr(np, name)(sparse.csr_array(DENSE), x)))(u)
