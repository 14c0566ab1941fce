"""Distributions of vectors and matrices: SciPy's values, and derivatives with respect to all arguments."""

import numpy as np
import pytest

import chainrule as cr
from chainrule import func, stats
from tests.stats.test_derivatives import differences

scipy_stats = pytest.importorskip("scipy.stats")

RNG = np.random.default_rng(0)
ROOT = RNG.standard_normal((3, 3))
MATRIX = ROOT @ ROOT.T + np.eye(3)
MEAN, X = RNG.standard_normal(3), RNG.standard_normal((4, 3))
SHARES, ALPHA = np.array([0.2, 0.3, 0.5]), np.array([1.5, 0.7, 3.3])


def positive(root):
    """Return a positive definite matrix made from any matrix."""
    return root @ np.swapaxes(root, -1, -2) + np.eye(3)


CALLS = [
    ("multivariate_normal", "logpdf", (X, MEAN, MATRIX)),
    ("multivariate_normal", "pdf", (X[0], MEAN, MATRIX)),
    ("multivariate_normal", "logpdf", (X, None, MATRIX)),
    ("multivariate_normal", "logpdf", (X, MEAN, 2.0)),
    ("multivariate_normal", "logpdf", (X, MEAN, np.array([1.0, 2.0, 3.0]))),
    ("multivariate_normal", "logpdf", (RNG.standard_normal((2, 4, 3)), MEAN, MATRIX)),
    ("multivariate_normal", "logpdf", (1.0, 2.0, 3.0)),
    ("multivariate_normal", "logpdf", (np.array([1.0, 2.0]), 2.0, 3.0)),
    ("multivariate_normal", "logpdf", (MEAN + ROOT[:, 0], MEAN, np.outer(ROOT[:, 0], ROOT[:, 0]), True)),
    ("multivariate_normal", "entropy", (MEAN, MATRIX)),
    ("multivariate_t", "logpdf", (X, MEAN, MATRIX, 3.3)),
    ("multivariate_t", "pdf", (X[0], MEAN, MATRIX, 1)),
    ("dirichlet", "logpdf", (SHARES, ALPHA)),
    ("dirichlet", "pdf", (SHARES[:2], ALPHA)),
    ("dirichlet", "logpdf", (np.stack([SHARES, SHARES[::-1]], 1), ALPHA)),
    ("dirichlet", "logpdf", (np.array([0.0, 0.4, 0.6]), ALPHA + 1)),
    ("dirichlet", "mean", (ALPHA,)),
    ("dirichlet", "var", (ALPHA,)),
    ("dirichlet", "entropy", (ALPHA,)),
    ("multinomial", "logpmf", ([1, 2, 3], 6, SHARES)),
    ("multinomial", "logpmf", ([[1, 2, 3], [2, 2, 2], [1, 1, 1]], 6, SHARES)),
    ("multinomial", "pmf", ([1, 2, 3], [6, 5], SHARES)),
    ("wishart", "logpdf", (MATRIX, 4.4, positive(ROOT.T))),
    ("wishart", "logpdf", (np.stack([MATRIX, positive(ROOT.T)], -1), 4.4, MATRIX)),
    ("wishart", "pdf", (2.0, 3.0, 1.5)),
]


@pytest.mark.parametrize(("name", "method", "arguments"), CALLS)
def test_values(name, method, arguments):
    ours = getattr(getattr(stats, name), method)(*arguments)
    theirs = getattr(getattr(scipy_stats, name), method)(*arguments)
    assert np.shape(ours) == np.shape(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-11)


FUNCTIONS = {
    "multivariate_normal": lambda v: stats.multivariate_normal.logpdf(X, v[:3], positive(v[3:].reshape(3, 3))).sum(),
    "of its point": lambda v: stats.multivariate_normal.logpdf(v.reshape(4, 3), MEAN, MATRIX).sum(),
    "of a singular one": lambda v: stats.multivariate_normal.logpdf(
        v, MEAN, np.diag([1.0, 0, 2.0]), allow_singular=True
    ),
    "its entropy": lambda v: stats.multivariate_normal.entropy(cov=positive(v.reshape(3, 3))),
    "multivariate_t": lambda v: stats.multivariate_t.logpdf(X, v[:3], positive(v[4:].reshape(3, 3)), v[3] ** 2).sum(),
    "dirichlet": lambda v: stats.dirichlet.logpdf(v[:2], v[2:]),
    "multinomial": lambda v: stats.multinomial.logpmf([1, 2, 3], 6, np.exp(v) / np.exp(v).sum()),
    "wishart": lambda v: stats.wishart.logpdf(positive(v[1:10].reshape(3, 3)), v[0], positive(v[10:].reshape(3, 3))),
}
POINTS = {
    "multivariate_normal": np.concatenate([MEAN, ROOT.ravel()]),
    "of its point": X.ravel(),
    "of a singular one": X[0],
    "its entropy": ROOT.ravel(),
    "multivariate_t": np.concatenate([MEAN, [1.7], ROOT.ravel()]),
    "dirichlet": np.array([0.2, 0.3, 1.5, 0.7, 3.3]),
    "multinomial": MEAN,
    "wishart": np.concatenate([[4.4], ROOT.ravel(), ROOT.T.ravel()]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    f, v = FUNCTIONS[name], POINTS[name]
    gradient = func.grad(f)
    np.testing.assert_allclose(gradient(v), differences(f, v), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(func.hessian(f)(v), differences(gradient, v), rtol=1e-5, atol=1e-6)
    batch = v * np.linspace(0.98, 1.02, 3)[:, None]
    np.testing.assert_allclose(func.vmap(gradient)(batch), [gradient(row) for row in batch], rtol=1e-9, atol=1e-12)


def test_a_t_distribution_of_infinite_degrees_is_normal():
    expected = scipy_stats.multivariate_normal.logpdf(X, MEAN, MATRIX)
    np.testing.assert_allclose(stats.multivariate_t.logpdf(X, MEAN, MATRIX, np.inf), expected, rtol=1e-11)


def test_tensors():
    mean, covariance = cr.tensor(MEAN, requires_grad=True), cr.tensor(MATRIX, requires_grad=True)
    y = stats.multivariate_normal.logpdf(cr.tensor(X), mean, covariance).sum()
    y.backward()
    inverse = np.linalg.inv(MATRIX)
    np.testing.assert_allclose(mean.grad, inverse @ (X - MEAN).sum(0), rtol=1e-10)
    scatter = (X - MEAN).T @ (X - MEAN)
    np.testing.assert_allclose(covariance.grad, 0.5 * (inverse @ scatter @ inverse - 4 * inverse), rtol=1e-9)
    alpha = cr.tensor(ALPHA, dtype=cr.float32, requires_grad=True)
    y = stats.dirichlet.logpdf(cr.tensor(SHARES, dtype=cr.float32), alpha)
    y.backward()
    assert y.dtype == alpha.grad.dtype == cr.float32


@pytest.mark.parametrize("call, error, says", [
    (lambda: stats.multivariate_normal.logpdf(X, MEAN, -MATRIX), np.linalg.LinAlgError, "positive definite"),
    (lambda: stats.multivariate_normal.logpdf(X, MEAN, np.eye(2)), ValueError, r"shape \(3, 3\), not \(2, 2\)"),
    (lambda: stats.multivariate_normal.logpdf(X, MEAN, np.triu(MATRIX)), ValueError, "must be symmetric"),
    (lambda: stats.multivariate_normal.logpdf(X, X, MATRIX), ValueError, "must be a vector"),
    (lambda: func.grad(lambda c: stats.multivariate_normal.logpdf(MEAN, MEAN, c, True))(np.eye(3)), NotImplementedError,
     "not differentiable in the matrix"),
    (lambda: stats.multivariate_t.logpdf(X, MEAN, MATRIX, -1.0), ValueError, "df must be one positive number"),
    (lambda: stats.dirichlet.logpdf(SHARES * 2, ALPHA), ValueError, "add up to 1"),
    (lambda: stats.dirichlet.logpdf([-0.1, 0.6, 0.5], ALPHA), ValueError, "between 0 and 1"),
    (lambda: stats.dirichlet.logpdf([0.5, 0.0, 0.5], ALPHA), ValueError, "density is infinite"),
    (lambda: stats.dirichlet.logpdf(SHARES, -ALPHA), ValueError, "greater than 0"),
    (lambda: stats.dirichlet.logpdf(np.ones(5) / 5, ALPHA), ValueError, "length of alpha"),
    (lambda: stats.multinomial.logpmf([1, 2], 3, [0.5, 0.6]), ValueError, "add up to 1"),
    (lambda: stats.wishart.logpdf(MATRIX, 1.0, MATRIX), ValueError, "df must be greater than 2"),
    (lambda: stats.multivariate_normal.cdf(MEAN), AttributeError, "has no 'cdf'; it has entropy, logpdf, pdf, rvs"),
    (lambda: func.vmap(lambda m: stats.multivariate_normal.rvs(m, MATRIX))(X), RuntimeError, "inside vmap"),
])  # fmt: skip
def test_bad_input(call, error, says):
    with pytest.raises(error, match=says):
        call()
