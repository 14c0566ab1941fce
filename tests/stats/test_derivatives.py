"""Derivatives with respect to the point and all parameters, compared with differences, of two orders, in both modes and APIs."""

import numpy as np
import pytest

import chainrule as cr
from chainrule import func, stats
from tests.stats.cases import CONTINUOUS, DENSITY_ONLY

pytest.importorskip("scipy")

OF_POINTS = ["logpdf", "pdf", "cdf", "logcdf", "sf", "logsf"]
POINTS = {"beta": 0.35, "uniform": 0.3, "pareto": 1.8, "truncnorm": 0.4}
METHODS = [(name, method) for name in CONTINUOUS for method in [*OF_POINTS, "ppf", "isf"]
           if name not in DENSITY_ONLY or method in ("logpdf", "pdf")]  # fmt: skip
LOC, SCALE = 0.1, 1.3


def function_of(name, method):
    """Return a method as a function of one vector: the point, the shape parameters, loc and scale."""
    call = getattr(getattr(stats, name), method)
    shapes = CONTINUOUS[name]
    first = 0.3 if method in ("ppf", "isf") else POINTS.get(name, 0.9) * SCALE + LOC
    return lambda v: call(*v), np.array([first, *shapes, LOC, SCALE])


def differences(f, v, step=1e-3):
    """Return the Jacobian of f by four-point differences."""
    columns = []
    for i in range(v.size):
        e = np.zeros_like(v)
        e[i] = step * max(abs(v[i]), 0.1)
        columns.append((8 * (f(v + e) - f(v - e)) - (f(v + 2 * e) - f(v - 2 * e))) / (12 * e[i]))
    return np.stack(columns, -1)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_gradient_and_hessian(name, method):
    f, v = function_of(name, method)
    gradient = func.grad(f)
    slope = gradient(v)
    np.testing.assert_allclose(slope, differences(f, v), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(func.hessian(f)(v), differences(gradient, v), rtol=1e-6, atol=1e-8)
    t = np.linspace(0.5, 1, v.size)
    np.testing.assert_allclose(func.jvp(f, (v,), (t,))[1], slope @ t, rtol=1e-10)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_batches_and_faces(name, method):
    f, v = function_of(name, method)
    V = v * np.linspace(0.97, 1.03, 3)[:, None]
    expected = np.stack([func.grad(f)(row) for row in V])
    np.testing.assert_allclose(func.vmap(func.grad(f))(V), expected, rtol=1e-12)
    columns = [cr.tensor(column, requires_grad=True) for column in V.T]
    y = getattr(getattr(stats, name), method)(*columns)
    assert isinstance(y, cr.Tensor)
    y.sum().backward()
    np.testing.assert_allclose(np.stack([x.grad for x in columns], -1), expected, rtol=1e-12)
    single = [cr.tensor(column, dtype=cr.float32, requires_grad=True) for column in V.T]
    y = getattr(getattr(stats, name), method)(*single)
    assert y.dtype == cr.float32
    y.sum().backward()
    assert all(x.grad.dtype == cr.float32 for x in single)
    np.testing.assert_allclose(np.stack([x.grad for x in single], -1), expected, rtol=2e-4, atol=2e-5)
