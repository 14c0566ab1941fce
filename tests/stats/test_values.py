"""Values are SciPy's: at random points, at and beyond the edges of the support, and with invalid parameters."""

import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule import stats
from tests.stats.cases import ALL, CONTINUOUS, DISCRETE, PLACES, POINTS, SCIPYS, SHARES

scipy_stats = pytest.importorskip("scipy.stats")


def assert_scipys(name, method, *args, **kwds):
    """Check that the value is SciPy's; where SciPy's formula is nan at an infinite point, it is a limit: a number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(getattr(scipy_stats, name), method)(*args, **kwds)
    with np.errstate(invalid="ignore" if np.isnan(theirs).any() else "warn"):
        ours = getattr(getattr(stats, name), method)(*args, **kwds)
    assert type(ours) is type(theirs) and np.shape(ours) == np.shape(theirs)
    theirs = np.where(np.isnan(theirs) & np.isinf(args[0]) & ~np.isnan(ours), ours, theirs)
    if method.startswith("log"):
        theirs = np.where(np.isneginf(theirs) & (ours < -700), ours, theirs)  # where SciPy's value underflows
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-16, err_msg=f"{name}.{method} {kwds}")


@pytest.mark.parametrize("name", SCIPYS)
@pytest.mark.parametrize("method", ["log density", "density", "cdf", "logcdf", "sf", "logsf"])
def test_functions_of_points(name, method):
    if method.endswith("density"):
        method = method.replace("log density", "logpdf").replace("density", "pdf")
        method = method.replace("pdf", "pmf") if name in DISCRETE else method
    for place in PLACES:
        if name in DISCRETE and "scale" in place:
            continue
        assert_scipys(name, method, POINTS, *ALL[name], **place)
        assert_scipys(name, method, 0.7, *ALL[name], **{k: v for k, v in place.items() if not np.ndim(v)})


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name in SCIPYS])
@pytest.mark.parametrize("method", ["ppf", "isf"])
def test_quantiles(name, method):
    for place in PLACES[:3]:
        shares = SHARES[2:] if name in ("cauchy", "f") else SHARES  # SciPy is inaccurate for these in the tails
        assert_scipys(name, method, shares, *CONTINUOUS[name], **place)


def test_half_t_is_of_what_t_is_without_its_sign():
    x, df = np.array([-1.0, 0.0, 1e-12, 0.3, 2.0, 1e5]), 3.3
    theirs, inside = scipy_stats.t(df), x >= 0
    np.testing.assert_allclose(stats.halft.pdf(x, df), np.where(inside, 2 * theirs.pdf(x), 0), rtol=1e-12)
    np.testing.assert_allclose(stats.halft.sf(x, df), np.where(inside, 2 * theirs.sf(x), 1), rtol=1e-12)
    np.testing.assert_allclose(stats.halft.cdf(x, df), 1 - stats.halft.sf(x, df), rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(stats.halft.cdf(1e-12, df) / 1e-12, 2 * theirs.pdf(0), rtol=1e-12)
    q = np.array([0, 1e-12, 0.3, 0.5, 0.8, 1 - 1e-12, 1])
    np.testing.assert_allclose(stats.halft.cdf(stats.halft.ppf(q, df), df), q, rtol=1e-11)
    np.testing.assert_allclose(stats.halft.sf(stats.halft.isf(q, df), df), q, rtol=1e-11)
    drawn = stats.halft.rvs(df, 1.0, 2.0, size=5, random_state=0)
    np.testing.assert_allclose(drawn, 1 + 2 * np.abs(scipy_stats.t.rvs(df, size=5, random_state=0)))
    moments = [scipy_stats.t(df).expect(lambda x, k=k: 2 * x**k, lb=0, ub=np.inf) for k in (1, 2)]
    np.testing.assert_allclose(stats.halft.mean(df), moments[0], rtol=1e-6)
    np.testing.assert_allclose(stats.halft.var(df), df / (df - 2) - moments[0] ** 2, rtol=1e-6)
    assert np.isclose(stats.halft.entropy(df), scipy_stats.t(df).entropy() - np.log(2))


@pytest.mark.parametrize("method", ["logpmf", "pmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"])
def test_bernoulli_by_logits(method):
    logits = np.array([-3.0, 0.4, 2.0])[:, None]
    points = np.array([0.1, 0.6, 0.99]) if method in ("ppf", "isf") else np.array([-1, 0, 0.5, 1, 2, np.nan])
    p = 1 / (1 + np.exp(-logits))
    with np.errstate(divide="ignore"):
        expected = getattr(scipy_stats.bernoulli, method)(points, p)
    np.testing.assert_allclose(getattr(stats.bernoulli, method)(points, logits=logits), expected, rtol=1e-12)
    np.testing.assert_allclose(getattr(stats.bernoulli(logits=logits), method)(points), expected, rtol=1e-12)


def test_bernoulli_by_logits_where_a_share_is_next_to_one():
    logits, k = np.array([-800.0, -40.0, 40.0, 800.0]), np.array([[0.0], [1.0]])
    expected = np.array([[0, -np.exp(-40), -40, -800], [-800, -40, -np.exp(-40), 0]])
    np.testing.assert_allclose(stats.bernoulli.logpmf(k, logits=logits), expected, rtol=1e-15)
    slopes = cr.grad(lambda l: stats.bernoulli.logpmf(k, logits=l)[0].sum())(logits)
    np.testing.assert_allclose(slopes, [0, -np.exp(-40), -1, -1], rtol=1e-15)
    p = 1 / (1 + np.exp(-2.0))
    np.testing.assert_allclose(stats.bernoulli.mean(logits=2.0), p)
    np.testing.assert_allclose(stats.bernoulli.std(logits=2.0), np.sqrt(p * (1 - p)))
    drawn = stats.bernoulli.rvs(logits=2.0, size=9, random_state=1)
    assert drawn.tolist() == scipy_stats.bernoulli.rvs(p, size=9, random_state=1).tolist()
