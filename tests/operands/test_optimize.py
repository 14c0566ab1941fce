"""``chainrule.scipy.optimize`` compared with SciPy."""

import numpy as np
import pytest

import chainrule as cr
from tests.operands.checking import check

scipy = pytest.importorskip("scipy.optimize")
ours = cr.scipy.optimize
rng = np.random.default_rng(0)


def cubic(x, a, b):
    return x**3 + b * x - a


@pytest.mark.parametrize("name", ["brentq", "brenth", "bisect", "ridder", "toms748"])
def test_roots_on_intervals(name):
    def root(m, p):
        return getattr(m, name)(cubic, 0, 2, args=(p[0], p[1]), xtol=1e-13)

    p = np.array([1.5, 0.7])
    check(lambda p: root(ours, p), lambda p: root(scipy, p), (p,), tolerance=1e-6)
    captured = cr.grad(lambda a: getattr(ours, name)(lambda x: cubic(x, a, 0.7), 0, 2))(1.5)
    np.testing.assert_allclose(captured, cr.grad(lambda p: root(ours, p))(p)[0], rtol=1e-9)


def test_newton():
    a = np.array([1.5, 4.0])
    options = {"rtol": 1e-14, "tol": 1e-14}

    def found(a):
        return scipy.newton(lambda x, a: x**3 - a, np.ones(2), lambda x, a: 3 * x**2, (a,), **options)

    check(lambda a: ours.newton(lambda x, a: x**3 - a, np.ones(2), args=(a,)), found, (a,), tolerance=1e-6)
    check(
        lambda a: ours.newton(lambda x, a: x**3 - a, 1.0, lambda x, a: 3 * x**2, (a,), tol=1e-13),
        lambda a: scipy.newton(lambda x, a: x**3 - a, 1.0, lambda x, a: 3 * x**2, (float(a),), tol=1e-13),
        (np.array(2.0),),
        tolerance=1e-6,
        orders=1,
        batched=False,
    )


t = np.linspace(0.1, 2, 7)
y = 2 * np.exp(-0.8 * t) + 0.05 * rng.normal(size=7)
SIGMA = 0.5 + t


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("part", [0, 1])
def test_fits(part, absolute):
    def model(t, a, b):  # linear in a and b, so that SciPy's results are accurate enough for differences
        return a * t + b * np.exp(-t)

    def partials(t, a, b):
        return np.stack([t, np.exp(-t)], -1)

    check(
        lambda t, y, s: ours.curve_fit(model, t, y, [1.0, 0.0], s, absolute)[part],
        lambda t, y, s: scipy.curve_fit(model, t, y, [1.0, 0.0], s, absolute, jac=partials)[part],
        (t, y, SIGMA),
        tolerance=1e-5,
        orders=1,
        compiled=False,
        batched=False,
    )


def test_a_fit_without_a_start_starts_from_ones():
    model = lambda t, a, b: a * t + b * np.exp(-t)
    np.testing.assert_allclose(ours.curve_fit(model, t, y)[0], scipy.curve_fit(model, t, y)[0], rtol=1e-6)
    for unclear in (lambda t, *p: p[0] * t, lambda t: t, dict):
        with pytest.raises(ValueError, match=r"number of fit parameters .* pass p0"):
            ours.curve_fit(unclear, t, y)


def test_scipys_own_say_what_to_use():
    with pytest.raises((RuntimeError, TypeError), match=r"chainrule\.scipy\.optimize\.curve_fit"):
        cr.grad(lambda y: np.sum(scipy.curve_fit(lambda t, a, b: a * np.exp(b * t), t, y)[0]))(y)
    with pytest.raises(NotImplementedError, match="full_output"):
        ours.brentq(lambda x: x - 1, 0, 2, full_output=True)
