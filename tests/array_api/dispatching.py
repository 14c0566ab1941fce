"""Check functions of SciPy and scikit-learn that dispatch on the Array API: their values and gradients on Arrays.

This is a program because SciPy reads ``SCIPY_ARRAY_API`` at import. Every call is differentiated and compared with four-point
differences of the same call on plain arrays. It prints a line for each function: its name, and ``ok``, ``constant`` (the
derivative is zero) or the error. With ``--table`` it prints the table of docs/guide/array_api.md.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import sklearn
from scipy import constants, differentiate, fft, integrate, linalg, ndimage, optimize, signal, special, stats
from scipy.cluster import vq
from scipy.interpolate import CubicSpline, PchipInterpolator, make_interp_spline
from scipy.spatial.transform import Rotation, Slerp
from sklearn import decomposition, discriminant_analysis, linear_model, metrics, naive_bayes, preprocessing

import chainrule as cr

rng = np.random.default_rng(7)
vector, other, matrix = rng.uniform(0.2, 0.9, 9), rng.uniform(0.2, 0.9, 9), rng.uniform(0.2, 0.9, (4, 3))
wave, square, quaternion = rng.normal(size=12), rng.normal(size=(3, 3)), rng.normal(size=4)
points, centers, target = rng.normal(size=(12, 3)), rng.normal(size=(5, 3)), rng.normal(size=12)
labels = (target > 0).astype(int)
short = vector[:3]

Call = Callable[[Any], Any]


def like(x: Any, value: Any) -> Any:
    """Convert a constant to an array of the type of x, as SciPy requires."""
    return x.__array_namespace__().asarray(value)


def alone(module: Any, names: str) -> dict[str, Call]:
    """Return calls of functions of x alone."""
    return {name: getattr(module, name) for name in names.split()}


def after(module: Any, names: str, *before: Any, of: str = "") -> dict[str, Call]:
    """Return calls of functions that take x after constants; ``of`` selects a part of the result."""

    def call(function: Any) -> Call:
        def compute(x: Any) -> Any:
            result = function(*[like(x, value) for value in before], x)
            return getattr(result, of) if of else result

        return compute

    return {name: call(getattr(module, name)) for name in names.split()}


def before(module: Any, names: str, *after: Any, of: str = "", **options: Any) -> dict[str, Call]:
    """Return calls of functions that take x before constants."""

    def call(function: Any) -> Call:
        def compute(x: Any) -> Any:
            result = function(x, *[like(x, value) for value in after], **options)
            return getattr(result, of) if of else result

        return compute

    return {name: call(getattr(module, name)) for name in names.split()}


#: module, the point of differentiation, and the calls by name
CASES: list[tuple[str, np.ndarray, dict[str, Call]]] = [
    ("scipy.special", vector, {
        **alone(special, """
            cbrt cosdg cosm1 cotdg entr erf erfc erfcx erfinv exp1 exp10 exp2 expi expit gamma gammaln i0 i0e i1 i1e j0 j1 k0
            k0e k1 k1e log_ndtr loggamma logit ndtr ndtri psi rgamma sinc sindg tandg y0 y1 logsumexp softmax log_softmax
            ellipk exprel spence zetac"""),
        **after(special, """
            rel_entr kl_div xlogy xlog1py gammainc gammaincc gammaincinv gammainccinv huber pseudo_huber chdtr chdtrc chdtri
            betaln binom poch pdtr pdtrc stdtr stdtrit expn zeta inv_boxcox boxcox1p""", other),
        **after(special, "betainc betaincc betaincinv fdtr fdtrc fdtri gdtr gdtrc hyp1f1", other + 1, other + 2),
        **before(special, "boxcox", other),
        "multigammaln": lambda x: special.multigammaln(x + 3, 2),
        "polygamma": lambda x: special.polygamma(1, x),
        "psi (second derivative)": lambda x: cr.grad(lambda x: special.psi(x).sum())(x),
    }),
    ("scipy.stats", vector, {
        **alone(stats, """
            gmean hmean tmean tvar tmin tmax tstd tsem skew kurtosis sem zscore gzscore gstd iqr median_abs_deviation variation
            circmean circvar circstd differential_entropy entropy describe kurtosistest jarque_bera kstat kstatvar
            lmoment false_discovery_control rankdata mode"""),
        **before(stats, "zmap", other),
        **before(stats, """
            pearsonr ttest_ind ttest_rel f_oneway bartlett levene kruskal alexandergovern chatterjeexi mannwhitneyu
            spearmanrho""", other, of="statistic"),
        "moment": lambda x: stats.moment(x, 3),
        "pmean": lambda x: stats.pmean(x, 1.7),
        "trim_mean": lambda x: stats.trim_mean(x, 0.2),
        "sigmaclip": lambda x: stats.sigmaclip(x).clipped,
        "ttest_1samp": lambda x: stats.ttest_1samp(x, 0.1).statistic,
        "ttest_1samp (pvalue)": lambda x: stats.ttest_1samp(x, 0.4).pvalue,
        "chisquare": lambda x: stats.chisquare(x / x.sum(), like(x, other / other.sum())).pvalue,
        "power_divergence": lambda x: stats.power_divergence(x / x.sum(), like(x, other / other.sum()), lambda_=0.5).statistic,
        "combine_pvalues": lambda x: stats.combine_pvalues(x).pvalue,
        "boxcox_llf": lambda x: stats.boxcox_llf(0.6, x),
        "yeojohnson_llf": lambda x: stats.yeojohnson_llf(0.6, x),
        "quantile": lambda x: stats.quantile(x, like(x, 0.4)),
        "ks_1samp": lambda x: stats.ks_1samp(x, special.ndtr).statistic,
    }),
    ("scipy.stats", matrix, {"directional_stats": lambda x: stats.directional_stats(x).mean_direction}),
    ("scipy.signal", wave, {
        **alone(signal, "hilbert envelope detrend"),
        **before(signal, "fftconvolve oaconvolve convolve correlate", other),
        "convolve (method='fft')": lambda x: signal.convolve(x, like(x, other), method="fft"),
        "correlate (method='fft')": lambda x: signal.correlate(x, like(x, other), method="fft"),
        "resample": lambda x: signal.resample(x, 8),
        "resample_poly": lambda x: signal.resample_poly(x, 3, 2),
        **after(signal, "lfilter", [1.0, 0.5], [1.0, 0.2]),
        **after(signal, "sosfilt", [[1.0, 0.5, 0.1, 1.0, 0.2, 0.1]]),
        "savgol_filter": lambda x: signal.savgol_filter(x, 5, 2),
        "medfilt": lambda x: signal.medfilt(x, 3),
    }),
    ("scipy.signal", short, {
        "freqz": lambda x: signal.freqz(x, like(x, [1.0, 0.2]), worN=8)[1],
        "freqz_zpk": lambda x: signal.freqz_zpk(x, like(x, [0.5]), 1.0, worN=8)[1],
        "freqs": lambda x: signal.freqs(x, like(x, [1.0, 0.5, 0.2]), worN=like(x, np.arange(1.0, 5)))[1],
        "freqs_zpk": lambda x: signal.freqs_zpk(x, like(x, [0.5]), 1.0, worN=like(x, np.arange(1.0, 5)))[1],
        "vectorstrength": lambda x: signal.vectorstrength(x, 1.3)[0],
        "gauss_spline": lambda x: signal.gauss_spline(x, 3),
        "zpk2tf": lambda x: signal.zpk2tf(x, like(x, [0.5]), 1.0)[0],
        "bilinear_zpk": lambda x: signal.bilinear_zpk(x, like(x, [0.5] * 7), 1.0, 2.0)[0],
        "lp2lp": lambda x: signal.lp2lp(x, like(x, [1.0, 0.5, 0.2]), 2.0)[0],
        "lp2hp_zpk": lambda x: signal.lp2hp_zpk(x, like(x, [0.5] * 7), 1.0, 2.0)[0],
        "lfilter_zi": lambda x: signal.lfilter_zi(x, like(x, [1.0, 0.5, 0.2])),
        "tf2sos": lambda x: signal.tf2sos(x, like(x, [1.0, 0.5, 0.2])),
    }),
    ("scipy.signal", matrix, {**alone(signal, "hilbert2"), **before(signal, "convolve2d", square)}),
    ("scipy.fft", matrix, alone(fft, """
        fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn hfftn ihfftn fftshift
        ifftshift dct idct dst dctn""")),
    ("scipy.fft", vector, {"fht": lambda x: fft.fht(x, 0.1, 0.5)}),
    ("scipy.integrate", vector, {
        **alone(integrate, "trapezoid cumulative_trapezoid romb simpson"),
        "cumulative_simpson": lambda x: integrate.cumulative_simpson(x, dx=0.1),
        "cubature": lambda x: integrate.cubature(lambda t: (t * x).sum(axis=-1), like(x, [0.0]), like(x, [1.0])).estimate,
        "tanhsinh": lambda x: integrate.tanhsinh(lambda t: t ** x[0], like(x, 0.0), like(x, 1.0)).integral,
    }),
    ("scipy.linalg", matrix, {
        **before(linalg, "block_diag", square),
        "orthogonal_procrustes": lambda x: linalg.orthogonal_procrustes(x, like(x, matrix[::-1].copy()))[1],
    }),
    ("scipy.linalg", square, alone(linalg, "inv det")),
    ("scipy.linalg", vector, alone(linalg, "fiedler")),
    ("scipy.cluster.vq", matrix, {
        "whiten": vq.whiten,
        "vq": lambda x: vq.vq(x, like(x, matrix[:2] + 0.1))[1],
        "kmeans2": lambda x: vq.kmeans2(x, like(x, matrix[:2] + 0.1), minit="matrix")[0],
    }),
    ("scipy.ndimage", matrix, {
        **alone(ndimage, "sobel mean center_of_mass"),
        "gaussian_filter": lambda x: ndimage.gaussian_filter(x, 1.0),
    }),
    ("scipy.spatial.transform", quaternion, {
        "Rotation.from_quat, as_matrix": lambda x: Rotation.from_quat(x).as_matrix(),
        "Rotation.as_euler": lambda x: Rotation.from_quat(x).as_euler("xyz"),
        "Rotation.apply": lambda x: Rotation.from_quat(x).apply(like(x, short)),
        "Rotation.magnitude": lambda x: Rotation.from_quat(x).magnitude(),
        "Rotation.__mul__": lambda x: (Rotation.from_quat(x) * Rotation.from_quat(like(x, other[:4]))).as_matrix(),
        "Rotation.__pow__": lambda x: (Rotation.from_quat(x) ** 1.5).as_matrix(),
    }),
    ("scipy.spatial.transform", short, {
        "Rotation.from_rotvec, as_quat": lambda x: Rotation.from_rotvec(x).as_quat(),
        "Rotation.from_euler": lambda x: Rotation.from_euler("xyz", x).as_matrix(),
        "Rotation.from_mrp, inv, as_mrp": lambda x: Rotation.from_mrp(x).inv().as_mrp(),
        "Rotation.apply (vectors)": lambda x: Rotation.from_quat(like(x, quaternion)).apply(x),
    }),
    ("scipy.spatial.transform", np.eye(3) + square / 10, {
        "Rotation.from_matrix, as_rotvec": lambda x: Rotation.from_matrix(x).as_rotvec(),
    }),
    ("scipy.spatial.transform", rng.normal(size=(2, 4)), {
        "Rotation.mean": lambda x: Rotation.from_quat(x).mean().as_matrix(),
        "Slerp": lambda x: Slerp(like(x, [0.0, 1.0]), Rotation.from_quat(x))(like(x, [0.3])).as_matrix(),
    }),
    ("scipy.interpolate", vector, {
        f.__name__: lambda x, f=f: f(like(x, np.arange(9.0)), x)(like(x, [0.5, 2.2]))
        for f in (CubicSpline, PchipInterpolator, make_interp_spline)
    }),
    ("scipy.optimize", vector, alone(optimize, "rosen rosen_der rosen_hess")),
    ("scipy.constants", vector, {
        **alone(constants, "lambda2nu nu2lambda"),
        "convert_temperature": lambda x: constants.convert_temperature(x, "C", "F"),
    }),
    ("scipy.differentiate", vector, {
        "derivative": lambda x: differentiate.derivative(lambda t, a: t**3 * a, like(x, np.ones(9)), args=(x,)).df,
    }),
    ("sklearn.metrics.pairwise", points, {
        **before(metrics.pairwise, """
            linear_kernel polynomial_kernel rbf_kernel sigmoid_kernel laplacian_kernel cosine_similarity cosine_distances
            euclidean_distances manhattan_distances""", centers),
        **before(metrics.pairwise, "paired_cosine_distances paired_euclidean_distances", points[::-1].copy()),
    }),
    ("sklearn.metrics", vector, {
        **after(metrics, "mean_squared_error mean_absolute_error r2_score", other),
        "mean_squared_error (multioutput='raw_values')": lambda x: metrics.mean_squared_error(
            like(x, other), x, multioutput="raw_values"
        ),
        "mean_absolute_error (multioutput='raw_values')": lambda x: metrics.mean_absolute_error(
            like(x, other), x, multioutput="raw_values"
        ),
    }),
    ("sklearn.preprocessing", points, {
        **{
            f"{scaler.__name__}.fit_transform": lambda x, scaler=scaler: scaler().fit_transform(x)
            for scaler in (
                preprocessing.MinMaxScaler, preprocessing.MaxAbsScaler, preprocessing.Normalizer,
                preprocessing.PolynomialFeatures, preprocessing.StandardScaler, preprocessing.RobustScaler,
            )
        },
        "KernelCenterer.fit_transform": lambda x: preprocessing.KernelCenterer().fit_transform(x @ x.T),
        **alone(preprocessing, "normalize"),
    }),
    ("sklearn", points, {
        "PCA.fit_transform": lambda x: decomposition.PCA(2, svd_solver="full").fit_transform(x) ** 2,
        "PCA.explained_variance_": lambda x: decomposition.PCA(svd_solver="full").fit(x).explained_variance_,
        "Ridge(solver='svd').coef_": lambda x: linear_model.Ridge(solver="svd").fit(x, like(x, target)).coef_,
        "RidgeCV.coef_": lambda x: linear_model.RidgeCV().fit(x, like(x, target)).coef_,
        "LogisticRegression.coef_": lambda x: linear_model.LogisticRegression().fit(x, like(x, labels)).coef_,
        "LinearDiscriminantAnalysis.decision_function": lambda x: discriminant_analysis.LinearDiscriminantAnalysis()
        .fit(x, like(x, labels)).decision_function(like(x, centers)),
        "GaussianNB.predict_joint_log_proba": lambda x: naive_bayes.GaussianNB()
        .fit(x, like(x, labels)).predict_joint_log_proba(like(x, centers)),
    }),
    ("sklearn", centers, {
        "PCA.score_samples": lambda x: decomposition.PCA(2, svd_solver="full").fit(like(x, points)).score_samples(x),
    }),
]  # fmt: skip


def total(result: Any) -> Any:
    """Return the weighted sum of all numbers of a result."""
    weights = np.random.default_rng(1).uniform(0.5, 1.5, 200)
    found: Any = 0.0
    for part in result if isinstance(result, tuple) else (result,):
        for values in (part.real, part.imag) if hasattr(part, "dtype") and part.dtype.kind == "c" else (part,):
            values = np.ravel(values)
            found = found + np.sum(values * weights[: len(values)])
    return found


def slopes(function: Call, x: np.ndarray, directions: np.ndarray, h: float = 1e-4) -> np.ndarray:
    """Return the directional derivatives by four-point differences."""
    steps = [[function(x + k * h * d) - function(x - k * h * d) for k in (1, 2)] for d in directions]
    return np.array([(8 * near - far) / (12 * h) for near, far in steps])


def outcome(call: Call, x: np.ndarray) -> str:
    """Return the outcome of a call, with an Array and with a Tensor."""

    def function(x: Any) -> Any:
        return total(call(x))

    try:
        value, gradient = cr.value_and_grad(function)(x)
        on_tensor = cr.grad(function)(cr.tensor(x))
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:150]
    if not np.allclose(value, function(x), rtol=1e-12, atol=1e-12):
        return f"wrong value: {value}, not {function(x)}"
    directions = np.random.default_rng(2).uniform(
        -1, 1, (2, *x.shape)
    )  # a wrong element changes the derivative along both directions
    expected = slopes(function, x, directions)
    if not np.isfinite(gradient).all():
        return "nan: the gradient is not finite"
    along = [np.sum(gradient * d) for d in directions]
    if not np.allclose(along, expected, rtol=1e-6, atol=1e-7) or not np.array_equal(gradient, on_tensor.numpy()):
        return f"wrong gradient: {gradient} and {on_tensor}, with slopes {along}, not {expected}".replace("\n", " ")
    return "ok" if np.any(expected) else "constant"


def outcomes() -> dict[str, dict[str, str]]:
    """Return the outcomes of the calls by module and name."""
    found: dict[str, dict[str, str]] = {}
    with warnings.catch_warnings(), sklearn.config_context(array_api_dispatch=True):
        warnings.simplefilter("ignore")
        for module, x, calls in CASES:
            found.setdefault(module, {}).update({name: outcome(call, x) for name, call in calls.items()})
    return found


if __name__ == "__main__":
    for module, found in outcomes().items():
        if sys.argv[1:] == ["--table"]:
            names = [
                ", ".join(f"`{name}`" for name, word in found.items() if (word == "ok") is good and word != "constant")
                for good in (True, False)
            ]
            print(f"| {module} | {' | '.join(names)} |")
        else:
            for name, word in found.items():
                print(f"{module}: {name}: {word}")
