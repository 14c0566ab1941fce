"""autograd.scipy and autograd.misc: values compared with SciPy, derivatives with differences."""

import numpy as onp
import pytest

pytest.importorskip("scipy")

import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd import grad
from chainrule.compat.autograd.misc import const_graph, flatten, optimizers
from chainrule.compat.autograd.misc.fixed_points import fixed_point
from chainrule.compat.autograd.misc.flatten import flatten_func
from chainrule.compat.autograd.scipy import integrate, linalg, signal, special, stats
from chainrule.compat.autograd.test_util import check_equivalent, check_grads

generator = onp.random.default_rng(0)
A, B, Q = generator.normal(size=(3, 3, 3)) + 2 * onp.eye(3)
BAND = generator.normal(size=(4, 5)) + onp.array([[0.0], [0.0], [6.0], [0.0]])
V = generator.normal(size=(5, 2))
triangular = lambda a, b, **options: linalg.solve_triangular(a, b, **options)

#: function, arguments, argnums, SciPy's value
CHECKED = {
    "solve_sylvester": (linalg.solve_sylvester, (A, B, Q), (0, 1, 2), scipy.linalg.solve_sylvester(A, B, Q)),
    "sqrtm": (lambda a: linalg.sqrtm(a @ a.T), (A,), (0,), scipy.linalg.sqrtm(A @ A.T)),
    "solve_triangular": (linalg.solve_triangular, (A, Q), (0, 1), scipy.linalg.solve_triangular(A, Q)),
    "transposed": (
        lambda a, b: linalg.solve_triangular(a, b, trans="T", lower=True, unit_diagonal=True),
        (A, Q[0]),
        (0, 1),
        scipy.linalg.solve_triangular(A, Q[0], trans="T", lower=True, unit_diagonal=True),
    ),
    "solve_banded": (
        lambda a, b: linalg.solve_banded((1, 2), a, b),
        (BAND, V[:, 0]),
        (0, 1),
        scipy.linalg.solve_banded((1, 2), BAND, V[:, 0]),
    ),
    "solve_banded of columns": (
        lambda a, b: linalg.solve_banded((1, 2), a, b),
        (BAND, V),
        (0, 1),
        scipy.linalg.solve_banded((1, 2), BAND, V),
    ),
    "logsumexp": (special.logsumexp, (A,), (0,), scipy.special.logsumexp(A)),
    "logsumexp along an axis": (
        lambda x, b: special.logsumexp(x, axis=0, b=b, keepdims=True),
        (A, B**2),
        (0, 1),
        scipy.special.logsumexp(A, axis=0, b=B**2, keepdims=True),
    ),
    "softmax": (lambda x: special.softmax(x, axis=1), (A,), (0,), scipy.special.softmax(A, axis=1)),
    "polygamma": (lambda x: special.polygamma(1, x), (A**2 + 1,), (0,), scipy.special.polygamma(1, A**2 + 1)),
    "multigammaln": (lambda x: special.multigammaln(x, 2), (A[0] ** 2 + 2,), (0,), scipy.special.multigammaln(A[0] ** 2 + 2, 2)),
    "gammaln": (special.gammaln, (A**2 + 1,), (0,), scipy.special.gammaln(A**2 + 1)),
    "norm": (stats.norm.logpdf, (A, 0.5, 2.0), (0, 1, 2), scipy.stats.norm.logpdf(A, 0.5, 2.0)),
    "multivariate_normal": (
        lambda x, mean: stats.multivariate_normal.logpdf(x, mean, onp.eye(3)),
        (A[0], B[0]),
        (0, 1),
        scipy.stats.multivariate_normal.logpdf(A[0], B[0], onp.eye(3)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKED)
def test_derivatives(name):
    function, args, argnums, value = CHECKED[name]
    onp.testing.assert_allclose(function(*args), value, rtol=1e-10, atol=1e-12)
    check_grads(function, argnums, modes=["rev"] if "banded" in name else ["fwd", "rev"])(*args)


def test_other_functions_of_scipy():
    assert onp.array_equal(linalg.expm(A), scipy.linalg.expm(A))
    with pytest.raises(NotImplementedError, match="VJP of expm wrt argnums"):
        grad(lambda a: np.sum(linalg.expm(a)))(A)
    assert stats.dirichlet.rvs([1.0, 2.0], random_state=0).shape == (1, 2)
    assert stats.ttest_ind is scipy.stats.ttest_ind
    assert special.logsumexp(onp.full(2, -onp.inf)) == -onp.inf
    assert onp.isneginf(grad(lambda x: special.logsumexp(np.array([x, -onp.inf])))(1.0)) is onp.False_


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
def test_convolve(mode):
    long, short = generator.normal(size=(4, 5)), generator.normal(size=(2, 3))
    onp.testing.assert_allclose(signal.convolve(long, short, mode=mode), scipy.signal.convolve(long, short, mode))
    check_grads(lambda x, y: signal.convolve(x, y, mode=mode), (0, 1), order=1)(long, short)
    if mode == "valid":
        onp.testing.assert_allclose(signal.convolve(short, long, mode=mode), scipy.signal.convolve(long, short, mode))
        with pytest.raises(ValueError, match="must be larger"):
            signal.convolve(long, short.T @ short[:, :1] @ onp.ones((1, 7)), mode=mode)
    # images x channels x 2 axes, with channels x filters x 2 axes
    images, filters = generator.normal(size=(2, 3, 4, 5)), generator.normal(size=(3, 2, 2, 2))
    found = signal.convolve(images, filters, axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode=mode)
    expected = [
        [sum(scipy.signal.convolve(image[c], filters[c, k], mode) for c in range(3)) for k in range(2)]
        for image in images
    ]
    onp.testing.assert_allclose(found, expected)
    with pytest.raises(AssertionError, match="Mode other undefined"):
        signal.convolve(long, short, mode="other")


def test_odeint():
    def rate(y, t, a, b):
        return np.stack([-a[0] * y[0] * y[1] + t, a[1] * y[0] - b * y[1]])

    times = onp.array([0.0, 0.4, 1.0])
    solve = lambda y0, t, args: integrate.odeint(rate, y0, t, args, rtol=1e-10, atol=1e-10)
    y0, args = onp.array([1.0, 0.5]), (onp.array([0.3, 2.0]), 0.7)
    check_grads(solve, (0, 1, 2), modes=["rev"], order=1)(y0, times, args)
    by_keyword = lambda y0: np.sum(integrate.odeint(rate, y0, times, args=args, rtol=1e-10, atol=1e-10)[-1])
    onp.testing.assert_allclose(grad(by_keyword)(y0), grad(lambda y: np.sum(solve(y, times, args)[-1]))(y0), rtol=1e-6)


def test_fixed_point():
    root = lambda a: fixed_point(lambda a: lambda x: (x + a / x) / 2, a, 1.0, lambda x, y: np.abs(x - y), 1e-12)
    assert onp.allclose([root(4.0), grad(root)(4.0), grad(grad(root))(4.0)], [2, 1 / 4, -1 / 32])


def test_flatten():
    tree = {"b": [onp.array([[1.0, 2.0]]), 3.0], "a": (4.0,)}
    vector, unflatten = flatten(tree)
    assert onp.array_equal(vector, [4, 1, 2, 3])
    check_equivalent(unflatten(vector + 1), {"b": [onp.array([[2.0, 3.0]]), 4.0], "a": (5.0,)})
    assert flatten([(), {}])[0].shape == (0,)
    doubled = lambda vector: np.sum(unflatten(vector * 2)["b"][0] ** 2)
    assert onp.array_equal(grad(doubled)(vector), [0, 8, 16, 0])
    assert grad(lambda x: np.sum(flatten([x, {"k": x**2}])[0]))(3.0) == 7.0
    function, _, start = flatten_func(lambda tree: [tree["a"][0] * tree["b"][1]], tree)
    assert function(start) == [12.0]
    assert const_graph(lambda a, x: a * x, 2.0)(3.0) == 6.0


@pytest.mark.parametrize("name, options", [("sgd", {}), ("rmsprop", {"step_size": 0.02}), ("adam", {"step_size": 0.1})])
def test_optimizers(name, options):
    seen = []
    distance = lambda x, i: np.sum((x["w"] - 1) ** 2) + (x["b"] + 2) ** 2
    start = {"w": onp.zeros(2), "b": 0.0}
    found = getattr(optimizers, name)(
        grad(distance), start, callback=lambda x, i, g: seen.append((i, x["b"], g["b"])), num_iters=300, **options
    )
    assert onp.allclose(found["w"], 1, atol=0.02) and onp.allclose(found["b"], -2, atol=0.02)
    assert seen[0] == (0, 0.0, 4.0) and len(seen) == 300
