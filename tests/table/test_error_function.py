"""erf and erfc compared with the C library."""

import math

import numpy as np
import pytest

import chainrule as cr


@pytest.mark.parametrize("function, exact", [(cr.special.erf, math.erf), (cr.special.erfc, math.erfc)])
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 2e-15), (np.float32, 2e-7)])
def test_error_function(function, exact, dtype, tolerance):
    """For few elements (which call it) and many (which do not)."""
    x = np.concatenate([np.linspace(-6, 6, 4001), np.linspace(6, 26, 501), [0.0, 0.46875, 4.0, 1e-30]]).astype(dtype)
    expected = np.array([exact(v) for v in x.tolist()])
    sure = np.abs(expected) > np.finfo(dtype).tiny
    for part in (slice(None), slice(0, 4001, 50)):
        got = function(cr.from_numpy(x[part])).numpy()
        assert got.dtype == dtype
        np.testing.assert_allclose(got[sure[part]], expected[part][sure[part]], rtol=tolerance)
    edges = function(cr.from_numpy(np.array([np.inf, -np.inf, np.nan] * 200, dtype))).numpy()
    np.testing.assert_array_equal(edges[:3], np.array([exact(math.inf), exact(-math.inf), math.nan], dtype))
    assert function(cr.tensor([1])).dtype == np.float32
