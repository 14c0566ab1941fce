"""The offset that softmax and related functions subtract before exp: one maximum for all rows if all numbers are close."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.table.reduction import height

ROWS = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)


@pytest.mark.parametrize("scale", [1, 30])
def test_one_maximum_or_one_for_each_row(scale):
    assert np.shape(height(ROWS * scale, -1)) == (() if scale == 1 else (64, 1))
    assert np.shape(height(ROWS[:2] * scale, -1)) == (2, 1)  # for a few rows the general path is fast
    assert np.shape(height(ROWS * scale, -2)) == (1, 128)


@pytest.mark.parametrize("spoilt", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_row(spoilt):
    x = ROWS.copy()
    x[1, 3] = spoilt
    with np.errstate(invalid="ignore"):
        out = cr.softmax(cr.from_numpy(x), -1).numpy()
    rest = np.delete(out, 1, axis=0)
    assert np.isfinite(rest).all()
    assert np.allclose(rest.sum(-1), 1)
    assert np.isfinite(out[1]).all() == (spoilt == -np.inf)


@pytest.mark.parametrize("scale", [1, 2, 30])
def test_as_exact_as_with_a_maximum_for_each_row(scale):
    x = ROWS * np.float32(scale)
    exact = x.astype(np.float64)
    exact -= exact.max(-1, keepdims=True)
    log_total = np.log(np.exp(exact).sum(-1, keepdims=True))
    softmax, log_softmax = cr.softmax(cr.from_numpy(x), -1).numpy(), cr.log_softmax(cr.from_numpy(x), -1).numpy()
    np.testing.assert_allclose(softmax, np.exp(exact - log_total), rtol=2e-5 if scale == 30 else 2e-6, atol=1e-37)
    np.testing.assert_allclose(log_softmax, exact - log_total, rtol=1e-6, atol=1e-6)
    target = np.arange(64)
    loss = cr.nn.functional.cross_entropy(cr.from_numpy(x), cr.from_numpy(target))
    np.testing.assert_allclose(loss.numpy(), -(exact - log_total)[target, target].mean(), rtol=1e-6)
