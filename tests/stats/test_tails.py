"""Values and derivatives far in the tails, and with extreme shapes: the expected numbers are from mpmath with 60 digits."""

import functools

import numpy as np
import pytest

from chainrule import func, stats
from tests.stats.cases import CONTINUOUS

pytest.importorskip("scipy")
incomplete = pytest.importorskip("chainrule._src.ops.incomplete")

#: a method, its arguments, its value, and the derivatives with respect to the arguments (None: not compared)
NUMBERS = [
    (stats.norm.logcdf, (-40.0,), -804.60844201375379, (40.024968847207264,)),
    (stats.norm.logsf, (90.0, 10.0, 2.0), -804.60844201375379, (-20.012484423603632, 20.012484423603632, None)),
    (stats.gamma.logsf, (2000.0, 3.0), -1985.4903422616423, (-0.99900049999975025, 6.6786183741936155)),
    (stats.gamma.logcdf, (1e-200, 2.0), -921.72718437817822, (None, -461.4398029339076)),
    (stats.gamma.cdf, (1e-30, 0.01), 0.50404727285999546, (None, -34.535639314126298)),
    (stats.gamma.cdf, (100_500.0, 1e5), 0.94289673002397129, (None, -0.00036204424288664558)),
    (stats.gamma.ppf, (0.001, 0.02), 5.7068124422472519e-151, (None, 9.8557763450696135e-147)),
    (stats.chi2.logsf, (4000.0, 6.0), -1985.4903422616423, (-0.49950024999987512, 3.3393091870968078)),
    (stats.beta.logcdf, (0.01, 500.0, 3.0), -2290.8630943021441, (None, -4.6011822266173553, 5.2867812960944219)),
    (stats.beta.logsf, (0.9, 3.0, 700.0), -1599.6066750092744, (None, 5.526659163614394, -2.2997345102674319)),
    (stats.beta.cdf, (0.3, 0.01, 0.02), 0.66117842725110733, (None, -22.588449240546256, 11.02759578976957)),
    (stats.t.logsf, (1e60, 4.0), -551.52181002990285, (-4e-60, -137.07177224630941)),
    (stats.t.cdf, (-1e5, 0.1), 0.13198724418620107, (None, -1.6872292575535347)),
    (stats.truncnorm.logpdf, (40.1, 40.0, 41.0), -0.31549651945088457, (-40.1, 40.024968847207264, None)),
    (stats.poisson.logsf, (400, 2.0), -1730.5376525265305, (None, 199.50249993765974)),
    (stats.binom.logcdf, (3, 900, 0.6), -804.83094697224383, (None, None, -2237.5092867245054)),
    (stats.logistic.logpdf, (-800.0,), -800.0, (1.0,)),
    (stats.gumbel_r.logsf, (50.0,), -50.0, (-1.0,)),
    (stats.laplace.logsf, (800.0,), -800 - np.log(2), (-1.0,)),
    (stats.cauchy.ppf, (1e-10,), -3183098861.8379067, (3.1830988618379067e19,)),
    (stats.f.isf, (1e-10, 3.2, 5.1), 18488.447312024271, (None, None, None)),
    (stats.expon.logcdf, (1e-300,), np.log(1e-300), (1e300,)),
    (stats.skewnorm.logsf, (4.801195042802819, -5.509347152423192), -370.8037355802364, (None, None)),
    (stats.skewnorm.logcdf, (-10.441275576952906, -0.3799423696782), -57.090678757373559, (10.535317540664609, None)),
    (stats.vonmises.logsf, (2.3052, 17.943994616016838), -31.941676084937853, (-12.06279419575308, None)),
    (stats.vonmises.logcdf, (-1.1674, 82.78), -53.33542487261906, (76.54498970777489, None)),
    (stats.vonmises.logsf, (0.06341755891080414, 412.1876194553083), -2.3120224000082716, (None, None)),
]


@pytest.mark.parametrize(("method", "arguments", "value", "slopes"), NUMBERS)
def test_number(method, arguments, value, slopes):
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(method(*arguments), value, rtol=1e-10)
        for i, expected in enumerate(slopes):
            if expected is not None:
                slope = func.grad(method, argnums=i)(*map(float, arguments))
                np.testing.assert_allclose(slope, expected, rtol=1e-10, err_msg=f"argument {i}")


@pytest.mark.parametrize("name", CONTINUOUS)
def test_slopes_of_distribution_functions_are_densities(name):
    """Also where one of the two functions rounds to 1; both depend on the shapes."""
    distribution, shapes = getattr(stats, name), CONTINUOUS[name]
    shares = np.array([1e-100, 1e-30, 1e-17, 1e-10, 1e-3, 0.3])
    x = np.sort(np.concatenate([distribution.ppf(shares, *shapes), distribution.isf(shares, *shapes)]))
    x = x[np.isfinite(x) & (distribution.pdf(x, *shapes) > 1e-250)]
    x = x[(x > x.min()) & (x < x.max())] if name in ("pareto", "uniform", "vonmises") else x
    density, ones = distribution.pdf(x, *shapes), np.ones_like(x)

    def slope(method):
        return func.jvp(lambda x: getattr(distribution, method)(x, *shapes), (x,), (ones,))[1]

    np.testing.assert_allclose(slope("cdf"), density, rtol=1e-9)
    np.testing.assert_allclose(slope("sf"), -density, rtol=1e-9)
    for sign, method in ((1, "logcdf"), (-1, "logsf")):
        log_density, log = distribution.logpdf(x, *shapes), getattr(distribution, method)(x, *shapes)
        np.testing.assert_allclose(slope(method), sign * np.exp(log_density - log), rtol=1e-9)
    for i in range(len(shapes) if name != "vonmises" else 0):
        at, moved = [np.full_like(x, shape) for shape in shapes], [np.zeros_like(x) for _ in shapes]
        moved[i] = ones
        up, down = (
            func.jvp(functools.partial(getattr(distribution, method), x), tuple(at), tuple(moved))[1]
            for method in ("cdf", "sf")
        )
        np.testing.assert_allclose(up, -down, rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize(("name", "k", "shapes", "by"), [
    ("geom", 200, (0.3,), 0), ("poisson", 60, (2.3,), 0), ("binom", 6, (7, 0.001), 1), ("nbinom", 90, (2.7, 0.4), 1),
])  # fmt: skip
def test_both_sides_of_a_discrete_distribution_move_alike(name, k, shapes, by):
    def at(method):
        return lambda p: getattr(getattr(stats, name), method)(k, *shapes[:by], p, *shapes[by + 1 :])

    up, down = (func.grad(at(method))(shapes[by]) for method in ("cdf", "sf"))
    np.testing.assert_allclose(up, -down, rtol=1e-9)


@pytest.mark.parametrize(("a", "b", "x", "expected"), [
    (480297.8, 0.00153, 0.99999999, 2.0820437642094444e-14),
    (3e4, 5e4, 0.3752, 7.8121582520818491e-6),
    (1e-6, 3.0, 0.2, 152949.48151478792),
    (0.02, 0.03, 1e-40, 5.6028229700302754e-37),
    (50.0, 1e-3, 0.999999, 2.0201119055492496e-8),
    (1e-5, 1e4, 1e-6, 0.40785728921155875),
])  # fmt: skip
def test_quantiles_of_beta_distributions_of_extreme_shapes(a, b, x, expected):
    np.testing.assert_allclose(incomplete.beta_quantile_by_a(a, b, x, 1 - x), expected, rtol=1e-11)
    np.testing.assert_allclose(incomplete.beta_quantile_by_a(*map(np.array, (a, b, x, 1 - x))), expected, rtol=1e-11)


def test_large_arrays_are_computed_in_blocks():
    a, x = np.linspace(0.1, 9, 5000)[:, None], np.array([0.3, 4.0])
    whole = incomplete.gammainc_by_a(a, x)
    np.testing.assert_array_equal(whole[::1000], incomplete.gammainc_by_a(a[::1000], x))


def test_second_derivative_by_a_shape_parameter():
    slope = func.grad(func.grad(lambda a: stats.gamma.cdf(1.0, a)))(2.0)
    assert np.isclose(slope, 0.20511882229077995, rtol=1e-11)


def test_what_is_not_chosen_has_no_say():
    """Points outside the support, and nan, do not affect the derivatives with respect to other elements' parameters."""
    x, within = np.array([-1.0, 0.5, 2.0, np.inf]), np.array([0.5, 2.0])
    total = func.grad(lambda v, x, method, name: getattr(getattr(stats, name), method)(x, *v, 0.1, 1.2).sum())
    by_point = func.grad(lambda x, v, method, name: getattr(getattr(stats, name), method)(x, *v).sum())
    shapes = {"gamma": [2.0], "weibull_min": [1.5], "lognorm": [0.7], "invgamma": [2.0], "expon": [], "f": [3.0, 4.0]}
    for name, values in shapes.items():
        v = np.array(values)
        for method in ("pdf", "cdf", "sf"):
            np.testing.assert_allclose(total(v, x, method, name), total(v, within, method, name), rtol=1e-13)
            assert by_point(x, v, method, name)[[0, 3]].tolist() == [0, 0]


def test_in_the_middle():
    """Points where a formula is 0/0, or has a kink, although the distribution has none."""
    assert np.isclose(
        func.hessian(lambda v: stats.t.cdf(v[0], v[1]))(np.array([0.0, 3.3]))[0, 1], 0.00816279, rtol=1e-6
    )
    assert np.isclose(func.grad(func.grad(stats.logistic.logpdf))(0.0), -0.5)
    assert np.isclose(func.grad(lambda a: stats.skewnorm.logpdf(1.0, a))(0.0), np.sqrt(2 / np.pi))
    assert func.grad(stats.halfnorm.logpdf)(0.0) == 0
    assert func.grad(stats.laplace.cdf)(0.0) == 0.5 and func.grad(stats.laplace.logsf)(0.0) == -1


def test_both_sides_of_a_distribution_move_alike():
    for x in (1e-15, 1e-3, 0.8, 30.0, 8e12):
        v = np.array([x, 0.57, 0.89])
        up, down = func.grad(lambda v: stats.f.cdf(*v))(v), func.grad(lambda v: stats.f.sf(*v))(v)
        np.testing.assert_allclose(up, -down, rtol=1e-9)


def test_second_derivatives_of_skewnorm_far_in_the_tail():
    """There, where a > 0, its tail is twice the normal one's: so the second derivatives are the same. See the guide."""

    def second(dist, x, *shapes):
        return func.grad(func.grad(lambda y: dist.logsf(y, *shapes)))(x)

    for x, digits in ((10.0, 11), (50.0, 9), (371.0, 6)):
        assert np.isclose(second(stats.skewnorm, x, 2.0), second(stats.norm, x), rtol=10.0**-digits, atol=0)
