"""Log densities, quantiles and entropies are bitwise PyTorch's in ``distributions``, and SciPy's in ``stats`` (ADR 022)."""

import numpy as np
import pytest

import chainrule as cr
from chainrule import stats

RNG = np.random.default_rng(0)
LOC, SCALE, U = RNG.standard_normal(1000), np.exp(RNG.standard_normal(1000)), RNG.random(1000)
#: a distribution of PyTorch, its parameters, points, and the methods that are compared
PYTORCHS = {
    "Normal": ((LOC, SCALE), LOC + 2 * SCALE * (U - 0.5), ("log_prob", "entropy", "variance")),
    "Laplace": ((LOC, SCALE), LOC + 2 * SCALE * (U - 0.5), ("log_prob", "cdf", "entropy", "variance")),
    "Uniform": ((LOC, LOC + SCALE), LOC + SCALE * U, ("log_prob", "cdf", "icdf", "entropy", "mean", "variance")),
    "Exponential": ((SCALE,), U, ("log_prob", "cdf", "icdf", "entropy", "mean")),
}


def equal_bits(ours, theirs):
    """Return the share of equal numbers: logarithms of other libraries may differ in the last bit on other processors."""
    return np.mean(np.asarray(ours) == np.asarray(theirs))


@pytest.mark.oracle
@pytest.mark.parametrize("name", PYTORCHS)
def test_pytorchs(name):
    torch = pytest.importorskip("torch")
    parameters, x, methods = PYTORCHS[name]
    for method in methods:
        ours, theirs = (
            getattr(getattr(library.distributions, name)(*map(library.tensor, parameters), validate_args=False), method)
            for library in (cr, torch)
        )
        if callable(ours):
            ours, theirs = (ours(), theirs()) if method == "entropy" else (ours(cr.tensor(x)), theirs(torch.tensor(x)))
        assert equal_bits(ours.numpy(), theirs.numpy()) > 0.9, method


#: a distribution of SciPy, and the methods that are compared (SciPy computes others by less accurate formulas)
SCIPYS = {
    "norm": ("logpdf", "cdf", "sf", "ppf", "isf"),
    "laplace": ("cdf", "sf", "ppf", "isf"),
    "uniform": ("logpdf", "cdf", "sf", "ppf", "isf"),
    "expon": ("logpdf", "sf", "ppf", "isf"),
}


@pytest.mark.parametrize("name", SCIPYS)
def test_scipys(name):
    ours, theirs = getattr(stats, name), getattr(pytest.importorskip("scipy.stats"), name)
    for method in SCIPYS[name]:
        x = U if method in ("ppf", "isf") else LOC + SCALE * U
        assert equal_bits(getattr(ours, method)(x, LOC, SCALE), getattr(theirs, method)(x, LOC, SCALE)) > 0.9, method
    assert equal_bits(ours.entropy(LOC, SCALE), theirs.entropy(LOC, SCALE)) > 0.9
