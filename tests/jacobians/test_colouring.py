"""Colourings of patterns, and Jacobians from few products."""

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.jacobians.colouring import colour_pattern, compute_entries, pattern_of

R = np.random.default_rng(0)


def banded(n, width):
    return abs(np.subtract.outer(np.arange(n), np.arange(n))) <= width


def brusselator(n):
    """Two fields on a periodic grid: five points of the same field, one of the other."""
    own = np.eye(n * n).reshape(n, n, -1)
    stencil = own + sum(np.roll(own, shift, axis) for shift in (1, -1) for axis in (0, 1))
    return np.block([[stencil.reshape(n * n, -1), np.eye(n * n)], [np.eye(n * n), stencil.reshape(n * n, -1)]])


def scattered(shape, density, seed):
    return np.random.default_rng(seed).random(shape) < density


PATTERNS = {
    "diagonal": (np.eye(5), 1, False),
    "tridiagonal": (banded(9, 1), 3, False),
    "a full row": (np.vstack([np.eye(6), np.ones((1, 6))]), 2, True),
    "a full column": (np.hstack([np.eye(6), np.ones((6, 1))]), 2, False),
    "a grid": (brusselator(16), 11, False),
    "dense": (np.ones((3, 4)), 3, True),
    "empty": (np.zeros((3, 2)), 0, False),
    "no rows": (np.zeros((0, 4)), 0, False),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_how_many_colours(name):
    matrix, count, of_rows = PATTERNS[name]
    found = colour_pattern(pattern_of(matrix, matrix.shape))
    assert (found.number, found.of_rows) == (count, of_rows)


@pytest.mark.parametrize("seed", range(6))
def test_products_give_every_entry_of_a_matrix(seed):
    r = np.random.default_rng(seed)
    mask = scattered((r.integers(1, 40), r.integers(1, 40)), r.uniform(0.02, 0.4), seed)
    matrix = np.where(mask, r.standard_normal(mask.shape), 0)
    pattern = pattern_of(mask, mask.shape)
    for of_rows in (False, True):
        colouring = colour_pattern(pattern, of_rows)
        shape = mask.shape[:1] if of_rows else mask.shape[1:]
        for step in (1, 3, 100):
            products = (lambda g: g @ matrix) if of_rows else (lambda t: t @ matrix.T)
            values = compute_entries(pattern, colouring, products, shape, matrix.dtype, step)
            assert np.array_equal(values, matrix[pattern.rows, pattern.cols])


def test_all_entries_are_kept_that_are_stored():
    sparse = pytest.importorskip("scipy.sparse")
    stored = sparse.coo_array(([1.0, 0.0, 2.0, 3.0], ([0, 1, 1, 1], [2, 0, 1, 1])), shape=(2, 3))
    pattern = pattern_of(stored, (2, 3))
    assert pattern.rows.tolist() == [0, 1, 1] and pattern.cols.tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match=r"\(2, 3\), but the Jacobian is a matrix of shape \(3, 2\)"):
        pattern_of(stored, (3, 2))


class Differences(cr.autograd.Function):
    """Sparse, but not detected as sparse."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return cr.tensor(np.diff(x.numpy()) ** 2)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        part = 2 * np.diff(x.numpy()) * g.numpy()
        return cr.tensor(np.concatenate([[0], part]) - np.concatenate([part, [0]]))


def jacobian_of_differences(x):
    d = 2 * np.diff(x)
    return np.diag(d, 1)[:-1] - np.diag(np.append(d, 0))[:-1]


def test_opaque_functions_with_a_pattern():
    x = R.standard_normal(30)
    pattern = np.eye(29, 30) + np.eye(29, 30, k=1)
    found = cr.jacobian(lambda x: Differences.apply(x), cr.tensor(x), layout="csr", sparsity=pattern, check=True)
    assert found.nnz == 58
    np.testing.assert_allclose(found.toarray(), jacobian_of_differences(x))


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_products_of_functions_with_a_pattern(layout):
    x = R.standard_normal((5, 6))
    pattern = pattern_of(np.kron(np.eye(5), np.ones((6, 6))), (30, 30))
    sparse = np.zeros((30, 30))
    sparse[pattern.rows, pattern.cols] = 1
    calls = []

    def function(x):
        calls.append(x.shape)
        return np.cumsum(x * x, 1)

    wanted = cr.func.jacrev(function)(x)
    calls.clear()
    found = cr.jacobian(function, x, layout=layout, sparsity=sparse, check=True)
    np.testing.assert_allclose(found.toarray().reshape(wanted.shape) if layout == "csr" else found, wanted)
    assert len(calls) < 6


def test_a_pattern_that_misses_entries_is_told_by_products():
    x = R.standard_normal(5)
    for function in (lambda x: x * x.sum(), np.cumsum):
        with pytest.raises(RuntimeError, match=r"of \d elements differ\). Entries are missing"):
            cr.jacobian(function, x, layout="csr", sparsity=np.eye(5), check=True)
        cr.jacobian(function, x, layout="csr", sparsity=np.ones((5, 5)), check=True)


def test_checks_of_structure():
    def function(p):
        return {"a": np.roll(p["u"], 1) * p["v"], "b": (p["u"] ** 3).sum()}

    x = {"u": R.standard_normal(4), "v": R.standard_normal(4)}
    for layout in ("csr", "structured", "dense"):
        cr.jacobian(function, x, layout=layout, check=True)

    class Wrong(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

        @staticmethod
        def jvp(ctx, t):
            return t * 2

    with pytest.raises(RuntimeError, match="of the function is"):
        cr.jacobian(lambda x: Wrong.apply(x), cr.tensor(x["u"]), layout="csr", check=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparsity": np.eye(3)}, r"\(3, 3\), but the Jacobian is a matrix of shape \(4, 4\)"),
        ({"sparsity": np.eye(4), "create_graph": True}, "off the tape"),
    ],
)
def test_patterns_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        cr.jacobian(np.sin, np.ones(4), **options)
    with pytest.raises(ValueError, match="got 1 and 2"):
        cr.jacobian(lambda a, b: a * b, (np.ones(4), np.ones(4)), sparsity=np.eye(4))


def test_rounding_beside_zero_is_no_difference():
    def cross(x):
        v = np.append(np.ediff1d(x), x)[:3]
        return np.cross(v, np.ediff1d(x)[:3])

    for seed in range(5):
        for size in (1.0, 1e-34):
            x = size * np.random.default_rng(seed).normal(size=5)
            cr.jacobian(cross, x, layout="structured", check=True)
    with pytest.raises(RuntimeError, match="Entries are missing"):  # also if all numbers are small
        cr.jacobian(lambda x: x * x.sum(), 1e-34 * R.standard_normal(5), layout="csr", sparsity=np.eye(5), check=True)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_functions_that_return_arrays_of_objects(layout):
    def function(y):
        return np.array([y[1], -np.sin(y[0])])

    y = np.array([1.0, 0.5])
    pattern = np.array([[0, 1], [1, 0]])
    found = cr.jacobian(function, y, layout=layout, sparsity=pattern, check=True)
    np.testing.assert_allclose(found if layout == "dense" else found.toarray(), [[0, 1], [-np.cos(1.0), 0]])
