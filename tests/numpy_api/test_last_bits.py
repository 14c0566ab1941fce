"""Values of differentiated functions: NumPy's bits, except for the functions that the guide lists."""

import numpy as np
import pytest

import chainrule as cr

SAME = {
    "matmul": lambda x: x @ x,
    "kron": lambda x: np.kron(x, x),
    "mean": lambda x: np.mean(x, 0),
    "var": lambda x: np.var(x, 0),
    "prod": np.prod,
    "interp": lambda x: np.interp(x[0], np.sort(x[1]), x[2]),
    "trapezoid": np.trapezoid if hasattr(np, "trapezoid") else np.sin,
    "average": lambda x: np.average(x, weights=np.abs(x)),
    "cov": np.cov,
    "polyval": lambda x: np.polyval(x[0], x[1]),
    "sinc": np.sinc,
    "logaddexp": lambda x: np.logaddexp(x, x.T),
    "gradient": lambda x: np.gradient(x[0]),
    "det": np.linalg.det,
    "norm of rows": lambda x: np.linalg.norm(x, axis=1),
    "median": lambda x: np.median(x[:, :5], axis=1) + np.median(x, axis=0),
    "nanmedian": lambda x: np.nanmedian(np.where(x > 2, np.nan, x), axis=0),
    "quantile": lambda x: np.quantile(x, [0.07, 0.93], axis=1),
    "percentile": lambda x: np.percentile(x, 61),
    "nanquantile": lambda x: np.nanquantile(np.where(x > 2, np.nan, x), 0.61, axis=0),
    "nanpercentile": lambda x: np.nanpercentile(np.where(x > 2, np.nan, x), [20, 70.0], axis=0),
}
METHODS = [
    "lower",
    "higher",
    "nearest",
    "midpoint",
    "inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "median_unbiased",
    "normal_unbiased",
]
SAME |= {
    f"quantile, {method}": lambda x, method=method: np.quantile(x, [0.0, 0.3, 0.81, 1.0], axis=1, method=method)
    for method in METHODS
}
LAST_BITS = {
    "i0": lambda x: np.i0(x[0]),
    "convolve": lambda x: np.convolve(x[0], x[1]),
    "correlate": lambda x: np.correlate(x[0], x[1]),
    "einsum": lambda x: np.einsum("ij,kj", x, x),
    "einsum of a sum": lambda x: np.einsum("ij,ij", x, x),
    "svdvals": lambda x: np.linalg.svd(x, compute_uv=False),
    "cond": np.linalg.cond,
    "norm": np.linalg.norm,
    "norm of singular values": lambda x: np.linalg.norm(x, "nuc"),
    "cumsum": np.cumsum,
    "sum of some": lambda x: np.sum(x, axis=0, where=np.eye(6) < 1),
    "std of some": lambda x: np.std(x, axis=0, where=np.eye(6) < 1),
    "exp": np.exp,
    "product with what is reversed": lambda x: x[::-1] @ x[0],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*SAME, *LAST_BITS])
def test_values_are_numpys(name, dtype):
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = (rng.standard_normal((6, 6)) + 3 * np.eye(6)).astype(dtype)
        found, expected = cr.vjp((SAME | LAST_BITS)[name], x)[0], (SAME | LAST_BITS)[name](x)
        if name in SAME:
            np.testing.assert_array_equal(found, expected)
        else:
            scale = np.max(np.abs(expected))
            np.testing.assert_allclose(found, expected, rtol=0, atol=16 * np.finfo(dtype).eps * scale)


INFINITE = [[1.0, np.inf], [np.inf, np.inf], [-np.inf, 1.0, -np.inf], [1.0, 2.0, np.inf], [np.inf, np.nan, 1.0]]


@pytest.mark.parametrize("function", [np.median, np.nanmedian, np.quantile, np.nanquantile])
def test_quantiles_between_infinities_are_numpys(function):
    fractions = [()] if "median" in function.__name__ else [(0.5,), (1.0,), (0,), ([0.25, 0.75],)]
    with np.errstate(invalid="ignore"):
        for x in map(np.array, INFINITE):
            for q in fractions:
                np.testing.assert_array_equal(function(cr.Array(x), *q).detach(), function(x, *q))


SPREADS = {
    "mean": np.mean,
    "mean of rows": lambda x: np.mean(x, axis=0),
    "mean of all": lambda x: np.mean(x, axis=-1, where=np.eye(6) < 2),
    "nanmean": lambda x: np.nanmean(x, axis=0),
    "average": np.average,
    "var": np.var,
    "var of rows": lambda x: np.var(x, axis=0, ddof=1),
    "std": lambda x: np.std(x, axis=-1),
    "std of all": lambda x: np.std(x, axis=0, where=np.eye(6) < 2),
}


@pytest.mark.parametrize("dtype", [np.float16, np.complex64, np.complex128])
@pytest.mark.parametrize("name", SPREADS)
def test_means_and_spreads_of_narrow_and_complex_numbers(name, dtype):
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.standard_normal((6, 6)) + (1j * rng.standard_normal((6, 6)) if dtype is not np.float16 else 0)
        x = x.astype(dtype)
        found, expected = cr.vjp(SPREADS[name], x)[0], SPREADS[name](x)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
