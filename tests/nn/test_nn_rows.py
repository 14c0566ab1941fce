"""Every row for neural networks and special functions through all checks of rulecheck."""

from __future__ import annotations

import math

import numpy as np
import pytest

import chainrule.nn
import chainrule.special
from chainrule.core.primitive import Primitive
from chainrule.table import nn, special
from chainrule.testing import rulecheck

ROWS = [row for module in (nn, special) for row in vars(module).values() if isinstance(row, Primitive)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row):
    rulecheck(row)


@pytest.mark.parametrize("function, exact", [(chainrule.special.erf, math.erf), (chainrule.special.erfc, math.erfc)])
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 2e-15), (np.float32, 2e-7)])
def test_error_function(function, exact, dtype, tolerance):
    """Against the C library, on few elements (which call it) and on many (which do not)."""
    x = np.concatenate([np.linspace(-6, 6, 4001), np.linspace(6, 26, 501), [0.0, 0.46875, 4.0, 1e-30]]).astype(dtype)
    expected = np.array([exact(v) for v in x.tolist()])
    sure = np.abs(expected) > np.finfo(dtype).tiny
    for part in (slice(None), slice(0, 4001, 50)):
        got = function(chainrule.from_numpy(x[part])).numpy()
        assert got.dtype == dtype
        np.testing.assert_allclose(got[sure[part]], expected[part][sure[part]], rtol=tolerance)
    edges = function(chainrule.from_numpy(np.array([np.inf, -np.inf, np.nan] * 200, dtype))).numpy()
    np.testing.assert_array_equal(edges[:3], np.array([exact(math.inf), exact(-math.inf), math.nan], dtype))
    assert function(chainrule.tensor([1])).dtype == np.float32
