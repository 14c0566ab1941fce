"""``chainrule.scipy.interpolate`` compared with SciPy."""

import numpy as np
import pytest

import chainrule as cr
from tests.operands.checking import check

scipy = pytest.importorskip("scipy.interpolate")
ours = cr.scipy.interpolate
rng = np.random.default_rng(0)

x = np.array([0, 0.2, 0.5, 0.6, 0.9, 1.1, 1.5])
y = np.sin(2 * x) + 0.1 * rng.normal(size=7)
Y = np.stack([y, y**2], -1)
t = np.array([0.1, 0.33, 0.77, 1.3])
knots = np.arange(11.0) / 8

BY_VALUES = {
    "CubicSpline": lambda m, y: m.CubicSpline(x, y),
    "natural": lambda m, y: m.CubicSpline(x, y, bc_type="natural"),
    "make_interp_spline": lambda m, y: m.make_interp_spline(x, y, 2),
    "KroghInterpolator": lambda m, y: m.KroghInterpolator(x, y),
    "BarycentricInterpolator": lambda m, y: m.BarycentricInterpolator(x, y),
    "PchipInterpolator": lambda m, y: m.PchipInterpolator(x, y),
    "BSpline": lambda m, y: m.BSpline(knots, y, 3),
    "interp1d": lambda m, y: m.interp1d(x, y, axis=0),
    "interp1d unsorted": lambda m, y: m.interp1d(x[::-1], np.flip(y, 0), "cubic", axis=0),
    "interp1d filled": lambda m, y: m.interp1d(x + 0.25, y, axis=0, bounds_error=False, fill_value=(3.0, 4.0)),
    "interp1d extrapolated": lambda m, y: m.interp1d(x + 0.25, y, axis=0, fill_value="extrapolate"),
    "CubicHermiteSpline": lambda m, y: m.CubicHermiteSpline(x, y, np.cos(y)),
}


@pytest.mark.parametrize("name", BY_VALUES)
def test_curves_by_their_values(name):
    make = BY_VALUES[name]
    check(lambda y, t: make(ours, y)(t), lambda y, t: make(scipy, y)(t), (y, t))
    check(lambda Y, t: make(ours, Y)(t[0]), lambda Y, t: make(scipy, Y)(t[0]), (Y, t), orders=1, compiled=False)


CONSTANT = {
    "Akima1DInterpolator": lambda m: m.Akima1DInterpolator(x, y),
    "UnivariateSpline": lambda m: m.UnivariateSpline(x, y, s=0.01),
    "line": lambda m: m.UnivariateSpline(x, y, k=1),
    "InterpolatedUnivariateSpline": lambda m: m.InterpolatedUnivariateSpline(x, y),
    "make_smoothing_spline": lambda m: m.make_smoothing_spline(x, y),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_curves_where_they_are_evaluated(name):
    make = CONSTANT[name]
    check(lambda t: make(ours)(t), lambda t: make(scipy)(t), (t,))


def test_curves_of_scipys():
    for make in (*CONSTANT.values(), lambda m: m.CubicSpline(x, Y), lambda m: m.make_interp_spline(x, y)):
        curve = make(scipy)
        check(lambda t, c=curve: ours.evaluate(c, t), curve, (t,), orders=1, compiled=False)
    curve = scipy.CubicSpline(x, y)
    check(lambda t: ours.evaluate(curve, t, 2), lambda t: curve(t, 2), (t,))


def test_smoothing_by_values():
    def smooth(m, y, t):
        return m.make_smoothing_spline(x, y, lam=0.01)(t)

    check(lambda y, t: smooth(ours, y, t), lambda y, t: smooth(scipy, y, t), (y, t))
    with pytest.raises(TypeError, match=r"lam=0\.1"):
        cr.grad(lambda y: np.sum(ours.make_smoothing_spline(x, y)(t)))(y)


def test_derivatives_and_integrals_of_curves():
    for f in (
        lambda m, y, t: m.CubicSpline(x, y).derivative()(t),
        lambda m, y, t: m.CubicSpline(x, y).derivative(2)(t, 1),
        lambda m, y, t: m.CubicSpline(x, y).antiderivative()(t),
        lambda m, y, t: m.CubicSpline(x, y).integrate(t[0], t[1]),
    ):
        check(lambda y, t, f=f: f(ours, y, t), lambda y, t, f=f: f(scipy, y, t), (y, t), orders=1)


def test_axes():
    check(
        lambda y, t: ours.CubicSpline(x, y, axis=1)(t), lambda y, t: scipy.CubicSpline(x, y, axis=1)(t), (Y.T.copy(), t)
    )
    square = np.stack([t, t + 0.1])
    assert ours.interp1d(x, cr.Array(Y.T))(square).shape == scipy.interp1d(x, Y.T)(square).shape == (2, 2, 4)


GRID = np.array([0, 0.3, 1.0, 1.4]), np.array([0, 0.5, 2.0])
V = rng.normal(size=(4, 3))
POINTS = rng.random((5, 2)) * [1.4, 2]
GRIDS = {
    "inside": (lambda m, v, p: m.RegularGridInterpolator(GRID, v)(p), V, POINTS),
    "several values": (lambda m, v, p: m.RegularGridInterpolator(GRID, v)(p), np.stack([V, V**2], -1), POINTS),
    "extrapolated": (
        lambda m, v, p: m.RegularGridInterpolator(GRID, v, bounds_error=False, fill_value=None)(p),
        V,
        POINTS * 1.3,
    ),
    "filled": (lambda m, v, p: m.interpn(GRID, v, p, bounds_error=False, fill_value=2.0), V, POINTS * 1.3),
}


@pytest.mark.parametrize("name", GRIDS)
def test_grids(name):
    f, values, points = GRIDS[name]
    check(lambda v, p: f(ours, v, p), lambda v, p: f(scipy, v, p), (values, points))


def test_what_has_no_derivative():
    with pytest.raises(TypeError, match="PchipInterpolator and make_interp_spline are"):
        cr.grad(lambda y: np.sum(ours.Akima1DInterpolator(x, y)(t)))(y)
    with pytest.raises(TypeError, match="make_interp_spline"):
        cr.grad(lambda y: np.sum(ours.UnivariateSpline(x, y)(t)))(y)
    with pytest.raises(TypeError, match="bc_type='natural'"):
        cr.grad(lambda y: np.sum(ours.CubicSpline(x, y, bc_type=((1, 0.0), (1, 0.0)))(t)))(y)
    with pytest.raises(TypeError, match="interp1d has no derivative"):
        ours.evaluate(scipy.interp1d(x, y), t)
    with pytest.raises(NotImplementedError, match="'nearest'"):
        ours.interp1d(x, y, "nearest")
    with pytest.raises(NotImplementedError, match="only 'linear' is supported"):
        ours.RegularGridInterpolator(GRID, V, "cubic")


def test_points_outside():
    for call in (
        lambda t: ours.interp1d(x, y)(t + 1),
        lambda t: ours.RegularGridInterpolator(GRID, V)(np.stack([t, t], -1) * 4),
    ):
        for inside in (
            lambda call=call: cr.grad(lambda t: np.sum(call(t)))(t),
            lambda call=call: cr.vmap(call)(t[:, None]),
        ):
            with pytest.raises(ValueError, match="outside of the interpolation range"):
                inside()


@pytest.mark.parametrize(
    "call", [lambda t: scipy.CubicSpline(x, y)(t), lambda t: scipy.CubicSpline(x, np.sin(x) * t[0])(1.0)]
)
def test_scipys_own_say_what_to_use(call):
    with pytest.raises(RuntimeError, match=r"chainrule\.scipy\.interpolate"):
        cr.grad(lambda t: np.sum(call(t)))(t)


@pytest.mark.parametrize("nu", [-1, 0, 1, 2])
@pytest.mark.parametrize("ext", [0, 1, 3, "const"])
def test_splines_outside(ext, nu):
    """Constant extrapolation has slope zero; derivatives are evaluated like in SciPy."""
    x, t, h = np.arange(6.0), np.array([-1.0, 0.5, 2.3, 7.0]), 1e-6
    theirs = scipy.UnivariateSpline(x, np.sin(x), k=3, s=0, ext=ext)
    expected = theirs.antiderivative() if nu < 0 else lambda t: theirs(t, nu)
    curve = ours.UnivariateSpline(x, np.sin(x), k=3, s=0, ext=ext)
    for function in (lambda t: curve(t, nu), lambda t: ours.evaluate(theirs, t, nu)):
        np.testing.assert_allclose(function(t), expected(t), atol=1e-12)
        slopes = cr.jacfwd(function)(t).diagonal()
        np.testing.assert_allclose(slopes, (expected(t + h) - expected(t - h)) / (2 * h), atol=1e-6)


@pytest.mark.parametrize("name", ["interp1d", "CubicSpline", "PchipInterpolator", "make_interp_spline"])
def test_scipys_own_name_the_replacement_for_one_number_too(name):
    make = getattr(scipy, name)
    for point in (0.5, np.array([0.5, 0.7])):
        with pytest.raises(
            (RuntimeError, TypeError), match=rf"chainrule\.scipy\.interpolate\.{name}|takes plain arrays"
        ):
            cr.grad(lambda t, make=make: np.sum(make(x, y)(t)))(point)
