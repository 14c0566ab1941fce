"""Values are SciPy's: at random points, at and beyond the edges of the support, and with invalid parameters."""

import warnings

import numpy as np
import pytest

from chainrule import stats
from tests.stats.cases import ALL, CONTINUOUS, DISCRETE, PLACES, POINTS, SHARES

scipy_stats = pytest.importorskip("scipy.stats")


def assert_scipys(name, method, *args, **kwds):
    """Our value is SciPy's; where a formula of SciPy's is nan at an infinite point, it is a limit: a number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(getattr(scipy_stats, name), method)(*args, **kwds)
    ours = getattr(getattr(stats, name), method)(*args, **kwds)
    assert type(ours) is type(theirs) and np.shape(ours) == np.shape(theirs)
    theirs = np.where(np.isnan(theirs) & np.isinf(args[0]) & ~np.isnan(ours), ours, theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-16, err_msg=f"{name}.{method} {kwds}")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("method", ["log density", "density", "cdf", "logcdf", "sf", "logsf"])
def test_functions_of_points(name, method):
    if method.endswith("density"):
        method = method.replace("log density", "logpdf").replace("density", "pdf")
        method = method.replace("pdf", "pmf") if name in DISCRETE else method
    for place in PLACES:
        if name in DISCRETE and "scale" in place:
            continue
        points = POINTS[:-4] if (name, method) == ("halfnorm", "logsf") else POINTS  # SciPy's underflows to −inf
        place = {key: value[: points.size] if np.ndim(value) else value for key, value in place.items()}
        assert_scipys(name, method, points, *ALL[name], **place)
        assert_scipys(name, method, 0.7, *ALL[name], **{k: v for k, v in place.items() if not np.ndim(v)})


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("method", ["ppf", "isf"])
def test_quantiles(name, method):
    for place in PLACES[:3]:
        shares = SHARES[2:] if name in ("cauchy", "f") else SHARES  # of these SciPy has few digits far out
        assert_scipys(name, method, shares, *CONTINUOUS[name], **place)
