"""Compiled functions as arguments of SciPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule._src import native

scipy = pytest.importorskip("scipy")
from scipy import integrate, ndimage, optimize  # noqa: E402

needs_native = pytest.mark.skipif(not native.AVAILABLE, reason=f"chainrule._src.native: {native.why_not}")


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def same_result(got, want):
    """Check that the compiled function took the same steps to the same result."""
    assert got.nfev == want.nfev
    assert got.x.tobytes() == want.x.tobytes()


# -- optimizers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["L-BFGS-B", "BFGS", "CG", "TNC", "SLSQP"])
def test_minimize(method):
    eager = cr.func.value_and_grad(rosenbrock)
    compiled = cr.compile(eager)
    x0 = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
    want = optimize.minimize(eager, x0, jac=True, method=method)
    got = optimize.minimize(compiled, x0, jac=True, method=method)
    same_result(got, want)
    np.testing.assert_allclose(got.x, np.ones(5), atol=1e-3)
    assert len(compiled.recordings) == 1


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-exact"])
def test_minimize_with_second_derivatives(method):
    value, gradient = cr.compile(rosenbrock), cr.compile(cr.func.grad(rosenbrock))
    if method == "trust-exact":
        second = {"hess": cr.compile(cr.func.hessian(rosenbrock))}
        eager = {"hess": cr.func.hessian(rosenbrock)}
    else:
        product = lambda x, p: cr.func.jvp(cr.func.grad(rosenbrock), (x,), (p,))[1]
        second, eager = {"hessp": cr.compile(product)}, {"hessp": product}
    x0 = np.array([0.5, 0.7, 0.8])
    got = optimize.minimize(value, x0, jac=gradient, method=method, **second)
    same_result(got, optimize.minimize(rosenbrock, x0, jac=cr.func.grad(rosenbrock), method=method, **eager))
    np.testing.assert_allclose(got.x, np.ones(3), atol=1e-3)


def test_constraints():
    norm = lambda x: np.sum(x * x)

    def run(compiled):
        return optimize.minimize(
            compiled(cr.func.value_and_grad(lambda x: np.sum((x - 2.0) ** 2))),
            np.full(3, 0.5),
            jac=True,
            method="SLSQP",
            constraints={"type": "eq", "fun": compiled(lambda x: norm(x) - 3.0), "jac": compiled(cr.func.grad(norm))},
        )

    got = run(cr.compile)
    same_result(got, run(lambda f: f))
    np.testing.assert_allclose(got.x, np.ones(3), rtol=1e-6)


def test_least_squares_and_curve_fit():
    t = np.linspace(0, 4, 30)
    observed = 2.0 * np.exp(-1.5 * t) + 0.5

    def residuals(p):
        return p[0] * np.exp(-p[1] * t) + p[2] - observed

    eager = cr.func.jacfwd(residuals)
    got = optimize.least_squares(cr.compile(residuals), np.ones(3), jac=cr.compile(eager))
    same_result(got, optimize.least_squares(residuals, np.ones(3), jac=eager))
    np.testing.assert_allclose(got.x, [2.0, 1.5, 0.5], rtol=1e-6)


def test_root():
    def equations(x):
        return np.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]])

    for method in ("hybr", "lm"):
        got = optimize.root(
            cr.compile(equations), np.zeros(2), jac=cr.compile(cr.func.jacrev(equations)), method=method
        )
        same_result(got, optimize.root(equations, np.zeros(2), jac=cr.func.jacrev(equations), method=method))
        np.testing.assert_allclose(equations(got.x), 0, atol=1e-8)


def test_values_that_are_read_are_followed():
    """Minimize an objective with different branches on both sides of a line."""

    def loss(x):
        if x[0] > 1.0:
            return np.sum((x - 3.0) ** 2)
        return np.sum((x - 3.0) ** 2) + (x[0] - 1.0) ** 2

    eager = cr.func.value_and_grad(loss)
    compiled = cr.compile(eager)
    got = optimize.minimize(compiled, np.zeros(2), jac=True, method="BFGS")
    same_result(got, optimize.minimize(eager, np.zeros(2), jac=True, method="BFGS"))
    assert len(compiled.recordings) == 2


# -- differential equations ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "BDF"])
def test_solve_ivp(method):
    def van_der_pol(t, y):
        return np.stack([y[1], 3.0 * (1.0 - y[0] ** 2) * y[1] - y[0]])

    jacobian = cr.func.jacfwd(van_der_pol, 1)
    implicit = method in ("Radau", "BDF")
    span, y0 = (0.0, 5.0), np.array([2.0, 0.0])

    def run(function, jac):
        more = {"jac": lambda t, y: jac(np.asarray(t), y)} if implicit else {}
        return integrate.solve_ivp(lambda t, y: function(np.asarray(t), y), span, y0, method=method, **more)

    got, want = run(cr.compile(van_der_pol), cr.compile(jacobian)), run(van_der_pol, jacobian)
    assert got.nfev == want.nfev and got.y.tobytes() == want.y.tobytes()


# -- C functions --------------------------------------------------------------------------------------------------------


@needs_native
def test_quad():
    compiled = cr.compile(lambda x, a: np.exp(-a * x * x))
    function = compiled.as_low_level_callable(0.0, 1.0)
    assert function.signature == "double (int, double *, void *)"
    got = integrate.quad(function, -np.inf, np.inf, args=(2.0,))[0]
    assert got == pytest.approx(np.sqrt(np.pi / 2.0))
    assert integrate.dblquad(cr.compile(lambda y, x: x * y).as_low_level_callable(0.0, 0.0), 0, 2, 0, 1)[
        0
    ] == pytest.approx(1.0)


@needs_native
def test_quad_of_a_gradient():
    gradient = cr.compile(cr.func.grad(lambda x: np.sin(x) * x))
    got = integrate.quad(gradient.as_low_level_callable(0.0), 0, 2)[0]
    assert got == pytest.approx(2 * np.sin(2.0))


@needs_native
def test_quad_reads_captured_arrays_where_they_lie():
    scale = np.array(2.0)
    function = cr.compile(lambda x: x * scale).as_low_level_callable(0.0)
    assert integrate.quad(function, 0, 1)[0] == 1.0
    scale[...] = 4.0
    assert integrate.quad(function, 0, 1)[0] == 2.0


@needs_native
def test_filters():
    image = np.random.default_rng(0).standard_normal((12, 12))
    weights = np.linspace(-1, 1, 9)
    weighted = cr.compile(lambda window: np.sum(np.tanh(window * weights)))
    got = ndimage.generic_filter(image, weighted.as_low_level_callable(np.zeros(9)), size=3)
    want = ndimage.generic_filter(image, lambda window: np.sum(np.tanh(window * weights)), size=3)
    np.testing.assert_array_equal(got, want)

    smooth = lambda line: (line[:-2] + line[1:-1] + line[2:]) / 3.0
    function = cr.compile(smooth).as_low_level_callable(np.zeros(14))

    def by_hand(line, out):
        out[...] = smooth(line)

    got = ndimage.generic_filter1d(image, function, 3)
    np.testing.assert_array_equal(got, ndimage.generic_filter1d(image, by_hand, 3))


@needs_native
@pytest.mark.parametrize(
    ("function", "example", "message"),
    [
        (lambda x: x if x > 0 else -x, 1.0, "Python reads a value"),
        (lambda x: (x, x), 1.0, "it has to return one array"),
        (lambda x: 3.0, 1.0, "it has to return one array"),
        (lambda x: np.partition(x, 1)[0], [1.0, 2.0], "partition is a step that Python runs"),
        (lambda x: np.astype(x, np.float32), 1.0, r"it returns float32\[\]"),
        (lambda x: x * np.ones((2, 2)), 1.0, r"it returns float64\[2, 2\]"),
        (lambda x: x + cr.rand(()), 1.0, "draws random numbers"),
    ],
)
def test_what_takes_python_is_refused(function, example, message):
    compiled = cr.compile(function)
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match=message):
        warnings.simplefilter("ignore")
        compiled.as_low_level_callable(example)


def test_examples_of_other_shapes():
    compiled = cr.compile(lambda *x: x[0])
    for examples in ((), (np.ones((2, 2)),), (np.ones(2), np.ones(2)), (1.0, np.ones(2))):
        with pytest.raises(TypeError, match="numbers"):
            compiled.as_low_level_callable(*examples)
