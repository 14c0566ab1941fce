"""``chainrule.scipy.integrate`` compared with SciPy."""

import warnings

import numpy as np
import pytest

import chainrule as cr
from tests.operands.checking import check

scipy = pytest.importorskip("scipy.integrate")
ours = cr.scipy.integrate
y = np.sin(np.arange(9.0)) + 2
x = np.cumsum(np.arange(1, 10) / 7)

INTEGRALS = {
    "smooth": (lambda m, p: m.quad(lambda x: np.sin(p[0] * x) * p[1], 0, 2)[0], np.array([1.2, 0.7])),
    "limits": (lambda m, p: m.quad(lambda x: np.exp(-(x**2)) * x, p[0], p[1])[0], np.array([0.3, 1.9])),
    "backwards": (lambda m, p: m.quad(lambda x: np.cos(p[0] * x), p[1], 0)[0], np.array([0.3, 1.9])),
    "arguments": (lambda m, p: m.quad(lambda x, k, c: np.tanh(k * x) + c, 0, 1, (p[0], p[1]))[0], np.array([0.5, 2.0])),
    "to infinity": (
        lambda m, p: m.quad(lambda x: np.exp(-p[0] * x) / (1 + x * p[1]), 0.5, np.inf)[0],
        np.array([1.0, 2.0]),
    ),
    "from infinity": (lambda m, p: m.quad(lambda x: np.exp(p[0] * x), -np.inf, p[1])[0], np.array([1.0, 0.3])),
    "everywhere": (
        lambda m, p: m.quad(lambda x: np.exp(-p[0] * (x - p[1]) ** 2), -np.inf, np.inf)[0],
        np.array([1.3, 0.4]),
    ),
    "singular derivative": (lambda m, p: m.quad(lambda x: x ** p[0] * (1 + p[1] * x), 0, 1)[0], np.array([0.1, 0.5])),
    "peak": (lambda m, p: m.quad(lambda x: 1 / (p[0] + (x - p[1]) ** 2), -1, 1)[0], np.array([0.01, 0.2])),
}


@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals(name):
    f, p = INTEGRALS[name]
    check(
        lambda p: f(ours, p), lambda p: f(scipy, p), (p,), tolerance=2e-6, batched=False, compiled=False, orders=1
    )  # fmt: skip
    H = cr.hessian(lambda p: f(ours, p))(p)
    np.testing.assert_allclose(H, H.T, rtol=1e-6, atol=1e-8)


def test_what_an_integral_is_mapped_over():
    def area(k, b):
        return ours.quad(lambda x, k: np.exp(-k * x), 0, b, args=(k,))[0]

    k, b = np.array([0.5, 1.0, 30.0]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(cr.vmap(area)(k, b), (1 - np.exp(-k * b)) / k)
    np.testing.assert_allclose(cr.vmap(cr.grad(area, 1))(k, b), np.exp(-k * b), atol=1e-9)

    with pytest.raises(RuntimeError, match=r"args=\(k,\)"):
        cr.vmap(lambda k: ours.quad(lambda x: np.exp(-k * x), 0, 1)[0])(k)


def test_integrands_that_branch():
    area = lambda k: ours.quad(lambda x: k * x if x < 0.5 else k**2 * x, 0, 1)[0]
    np.testing.assert_allclose(cr.grad(area)(3.0), 0.125 + 2 * 3 * 0.375, rtol=1e-6)


def test_plain_arguments_are_scipys():
    assert ours.quad(np.sin, 0, 1) == scipy.quad(np.sin, 0, 1)
    assert ours.simpson(y, x=x) == scipy.simpson(y, x=x)
    value, error = ours.quad(lambda x: np.sin(x) * cr.tensor(2.0, requires_grad=True), 0, 1)
    assert type(value) is cr.Tensor or type(value) is cr.Array
    assert error < 1e-8


def test_what_is_too_hard_says_so():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.IntegrationWarning)
        with pytest.warns(UserWarning, match="Split the interval"):
            cr.grad(lambda k: ours.quad(lambda x: k * np.abs(x - 1 / 3) ** -0.9, 0, 1)[0])(1.0)
    with pytest.raises(NotImplementedError, match="weight"):
        cr.grad(lambda k: ours.quad(lambda x: k * x, 0, 1, weight="cos", wvar=1.0)[0])(1.0)


RULES = {
    "simpson": lambda m, y: m.simpson(y, x=x),
    "simpson of an even number": lambda m, y: m.simpson(y[1:], dx=0.5),
    "romb": lambda m, y: m.romb(y, 0.5),
    "cumulative_simpson": lambda m, y: m.cumulative_simpson(y, x=x, initial=1.0),
    "cumulative_trapezoid": lambda m, y: m.cumulative_trapezoid(y, x, initial=0),
    "axes": lambda m, y: m.simpson(y.reshape(3, 3), axis=0) + m.cumulative_simpson(y.reshape(3, 3), axis=0)[0],
}


@pytest.mark.parametrize("name", RULES)
def test_rules_for_samples(name):
    check(lambda y: RULES[name](ours, y), lambda y: RULES[name](scipy, y), (y,), orders=1)


def test_places_of_samples():
    check(
        lambda x: ours.cumulative_trapezoid(y, x), lambda x: scipy.cumulative_trapezoid(y, x), (x,), orders=1
    )  # fmt: skip
    with pytest.raises(TypeError, match=r"np\.trapezoid"):
        cr.grad(lambda x: ours.simpson(y * x, x=x))(x)
