"""Primitives for distributions, in addition to those of ``scipy.special``.

``base`` and ``multivariate`` apply them.

They are logarithms of distribution functions that are accurate in the tails, functions that SciPy has only as methods of
distributions, and samples. A sample is a drawn number with its implicit derivative ∂x/∂θ = −(∂F/∂θ) / f (Figurnov, Mohamed
and Mnih 2018, "Implicit reparameterization gradients").
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from chainrule._src.api.array import takes_arrays
from chainrule._src.arrays.types import AnyArray, AnyFunction, IntoArray, Params, TensorLike
from chainrule._src.ops import incomplete
from chainrule._src.ops.incomplete import (
    beta_logit_by_a,
    gamma_quantile_by_a,
    log_betainc_by_a,
    log_betaincc_by_a,
    log_gammainc_by_a,
    log_gammaincc_by_a,
    log_stdtr_by_df,
    log_student_density,
    stdtr_by_df,
    student_density,
)
from chainrule._src.ops.scipy_special import NAMES
from chainrule._src.rules.kinds import call, discrete, elementwise
from chainrule._src.rules.primitive import Primitive, unsupported
from chainrule.stats.densities import (
    log_beta_density,
    log_gamma_density,
    log_skewnorm_density,
    log_truncnorm_density,
    log_vonmises_density,
)
from chainrule.stats.tails import log_skewnorm_sf as log_skewnorm_tail
from chainrule.stats.tails import log_vonmises_sf as log_vonmises_tail

expit, ndtr = NAMES["expit"], NAMES["ndtr"]

POSITIVE, UNIT, REAL = (0.3, 3.0), (0.1, 0.9), (-2.0, 2.0)
_OPTIONS: Any = {"promotion": "float", "accepts": "f", "listed": False}


def scipy_stats_method(name: str, method: str) -> AnyFunction:
    """Return a method of one of SciPy's distributions. (Loads ``scipy.stats``, which is slow, on first use.)"""
    return getattr(getattr(importlib.import_module("scipy.stats"), name), method)


def _scipy_value(name: str, method: str) -> AnyFunction:
    """Return a value rule that calls a method of one of SciPy's distributions, in the dtype of the operands."""
    return lambda *operands: np.asarray(scipy_stats_method(name, method)(*operands), np.result_type(*operands))


@elementwise(d={"x": lambda x: -np.exp(x)}, domain=((-3.0, -0.1),), value=lambda x: -np.expm1(x), **_OPTIONS)
def neg_expm1(x: TensorLike) -> None:
    """Return 1 − exp(x), with a derivative that is accurate for values near 1."""


@elementwise(d={"x": lambda x: expit(x) * expit(-x)}, domain=REAL, value=lambda x: NAMES["expit"](x), **_OPTIONS)
def logistic_cdf(x: TensorLike) -> None:
    """Return 1 / (1 + exp(−x)), with a derivative that is accurate for values near 1."""


# -- logarithms of distribution functions ------------------------------------------------------------------------------


@elementwise(
    d={"a": lambda a, x: log_gammainc_by_a(a, x), "x": lambda a, x, out: np.exp(log_gamma_density(x, a) - out)},
    domain=((0.5, 3.0), POSITIVE),
    value=incomplete.log_gammainc,
    **_OPTIONS,
)
def log_gammainc(a: TensorLike, x: TensorLike) -> None:
    """Return the logarithm of the regularised lower incomplete gamma function."""


@elementwise(
    d={"a": lambda a, x: log_gammaincc_by_a(a, x), "x": lambda a, x, out: -np.exp(log_gamma_density(x, a) - out)},
    domain=((0.5, 3.0), POSITIVE),
    value=incomplete.log_gammaincc,
    **_OPTIONS,
)
def log_gammaincc(a: TensorLike, x: TensorLike) -> None:
    """Return the logarithm of the regularised upper incomplete gamma function."""


@elementwise(
    d={
        "a": lambda a, b, x: log_betainc_by_a(a, b, x, 1 - x),
        "b": lambda a, b, x: log_betaincc_by_a(b, a, 1 - x, x),
        "x": lambda a, b, x, out: np.exp(log_beta_density(x, a, b) - out),
    },
    domain=((0.5, 3.0), (0.5, 3.0), UNIT),
    value=incomplete.log_betainc,
    **_OPTIONS,
)
def log_betainc(a: TensorLike, b: TensorLike, x: TensorLike) -> None:
    """Return the logarithm of the regularised incomplete beta function."""


@elementwise(
    d={
        "a": lambda a, b, x: log_betaincc_by_a(a, b, x, 1 - x),
        "b": lambda a, b, x: log_betainc_by_a(b, a, 1 - x, x),
        "x": lambda a, b, x, out: -np.exp(log_beta_density(x, a, b) - out),
    },
    domain=((0.5, 3.0), (0.5, 3.0), UNIT),
    value=incomplete.log_betaincc,
    **_OPTIONS,
)
def log_betaincc(a: TensorLike, b: TensorLike, x: TensorLike) -> None:
    """Return the logarithm of the complement of the regularised incomplete beta function."""


@elementwise(
    d={
        "df": lambda df, x, out: log_stdtr_by_df(df, x, out),
        "x": lambda df, x, out: np.exp(log_student_density(df, x) - out),
    },
    domain=((1.0, 5.0), (-3.0, 2.0)),
    value=incomplete.log_stdtr,
    **_OPTIONS,
)
def log_stdtr(df: TensorLike, x: TensorLike) -> None:
    """Return the logarithm of the distribution function of Student's t distribution."""


@elementwise(
    d={"df": lambda df, x: 2 * stdtr_by_df(df, x), "x": lambda df, x: 2 * student_density(df, x)},
    domain=((1.0, 5.0), POSITIVE),
    value=lambda df, x: NAMES["betainc"](0.5, 0.5 * df, np.square(x) / (df + np.square(x))),
    **_OPTIONS,
)
def halft_cdf(df: TensorLike, x: TensorLike) -> None:
    """Return the distribution function of |x| where x has Student's t distribution."""


# -- the skew-normal distribution --------------------------------------------------------------------------------------


def _skew_density(x: AnyArray, a: TensorLike) -> AnyArray:
    return np.exp(-0.5 * np.square(x)) * (2 / NAMES["root2pi"]) * ndtr(a * x)


def _skew_by_a(x: TensorLike, a: AnyArray) -> AnyArray:
    """Return the derivative of the cdf with respect to a: twice the derivative of Owen's function T, negated."""
    square = 1 + np.square(a)
    return -np.exp(-0.5 * np.square(x) * square) / (np.pi * square)


@elementwise(
    d={"x": lambda x, a: _skew_density(x, a), "a": lambda x, a: _skew_by_a(x, a)},
    domain=(REAL, REAL),
    value=_scipy_value("skewnorm", "cdf"),
    **_OPTIONS,
)
def skewnorm_cdf(x: TensorLike, a: TensorLike) -> None:
    """Return the distribution function of the skew-normal distribution, which SciPy takes from Boost."""


@elementwise(
    d={
        "x": lambda x, a, out: -np.exp(log_skewnorm_density(x, a) - out),
        "a": lambda x, a, out: np.exp(-0.5 * np.square(x) * (1 + np.square(a)) - out) / (np.pi * (1 + np.square(a))),
    },
    domain=(REAL, REAL),
    value=lambda x, a: log_skewnorm_tail(x, a, _scipy_value("skewnorm", "cdf")).astype(np.result_type(x, a)),
    **_OPTIONS,
)
def log_skewnorm_sf(x: TensorLike, a: TensorLike) -> None:
    """Return the logarithm of the probability of more than x, of the skew-normal distribution."""


@elementwise(
    d={"q": lambda out, a: 1 / _skew_density(out, a), "a": lambda out, a: -_skew_by_a(out, a) / _skew_density(out, a)},
    domain=(UNIT, REAL),
    value=_scipy_value("skewnorm", "ppf"),
    **_OPTIONS,
)
def skewnorm_ppf(q: AnyArray, a: TensorLike) -> None:
    """Return the quantile function of the skew-normal distribution, which SciPy takes from Boost."""


# -- the von Mises distribution ----------------------------------------------------------------------------------------


_UNKNOWN = unsupported("the von Mises distribution's cdf has no formula for it")


@elementwise(
    d={"x": lambda x, kappa: np.exp(log_vonmises_density(x, kappa)), "kappa": _UNKNOWN},
    domain=(REAL, POSITIVE),
    value=_scipy_value("vonmises", "cdf"),
    **_OPTIONS,
)
def vonmises_cdf(x: TensorLike, kappa: TensorLike) -> None:
    """Return the distribution function of the von Mises distribution, which SciPy computes."""


@elementwise(
    d={"x": lambda x, kappa, out: -np.exp(log_vonmises_density(x, kappa) - out), "kappa": _UNKNOWN},
    domain=(REAL, POSITIVE),
    value=lambda x, kappa: log_vonmises_tail(x, kappa, _scipy_value("vonmises", "cdf")).astype(
        np.result_type(x, kappa)
    ),
    **_OPTIONS,
)
def log_vonmises_sf(x: TensorLike, kappa: TensorLike) -> None:
    """Return the logarithm of the probability of more than x, of the von Mises distribution."""


@elementwise(
    d={"q": lambda kappa, out: np.exp(-log_vonmises_density(out, kappa)), "kappa": _UNKNOWN},
    domain=(UNIT, POSITIVE),
    value=_scipy_value("vonmises", "ppf"),
    **_OPTIONS,
)
def vonmises_ppf(q: AnyArray, kappa: TensorLike) -> None:
    """Return the quantile function of the von Mises distribution, which SciPy computes."""


# -- the truncated normal distribution ---------------------------------------------------------------------------------


_BETWEEN = {"domain": (UNIT, (-2.0, -0.5), (1.5, 2.0)), **_OPTIONS}


@elementwise(
    d={
        "x": lambda x, a, b: np.exp(log_truncnorm_density(x, a, b)),
        "a": lambda x, a, b: -np.exp(log_truncnorm_density(a, a, b)) * functions["truncnorm_cdf"](-x, -b, -a),
        "b": lambda a, b, out: -np.exp(log_truncnorm_density(b, a, b)) * out,
    },
    value=_scipy_value("truncnorm", "cdf"),
    **_BETWEEN,
)
def truncnorm_cdf(x: TensorLike, a: TensorLike, b: TensorLike) -> None:
    """Return the distribution function of the normal distribution between a and b."""


@elementwise(
    d={
        "x": lambda x, a, b, out: np.exp(log_truncnorm_density(x, a, b) - out),
        "a": lambda a, b, out: -np.exp(log_truncnorm_density(a, a, b)) * np.expm1(-out),
        "b": lambda a, b: -np.exp(log_truncnorm_density(b, a, b)),
    },
    value=_scipy_value("truncnorm", "logcdf"),
    **_BETWEEN,
)
def truncnorm_logcdf(x: TensorLike, a: TensorLike, b: TensorLike) -> None:
    """Return the logarithm of the distribution function of the normal distribution between a and b."""


def _truncnorm_by_a(x: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
    """Return the derivative of a quantile x with respect to a."""
    return np.exp(0.5 * (x - a) * (x + a)) * functions["truncnorm_cdf"](-x, -b, -a)


def _truncnorm_by_b(x: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
    """Return the derivative of a quantile x with respect to b."""
    return np.exp(0.5 * (x - b) * (x + b)) * functions["truncnorm_cdf"](x, a, b)


@elementwise(
    d={
        "q": lambda a, b, out: np.exp(-log_truncnorm_density(out, a, b)),
        "a": lambda a, b, out: _truncnorm_by_a(out, a, b),
        "b": lambda a, b, out: _truncnorm_by_b(out, a, b),
    },
    value=_scipy_value("truncnorm", "ppf"),
    **_BETWEEN,
)
def truncnorm_ppf(q: AnyArray, a: TensorLike, b: TensorLike) -> None:
    """Return the quantile function of the normal distribution between a and b."""


# -- samples -----------------------------------------------------------------------------------------------------------


def _drawn(*operands: Any) -> AnyArray | None:
    """Return the drawn numbers, the last operand."""
    return np.array(operands[-1], np.result_type(*operands))


@elementwise(d={"a": lambda a, out: gamma_quantile_by_a(a, out)}, value=_drawn, **_OPTIONS)
def gamma_sample(a: TensorLike, drawn: AnyArray) -> None:
    """Return numbers drawn from the gamma distribution."""


@elementwise(
    d={
        "a": lambda a, b, out: beta_logit_by_a(a, b, expit(out), expit(-out)),
        "b": lambda a, b, out: -beta_logit_by_a(b, a, expit(-out), expit(out)),
    },
    value=_drawn,
    **_OPTIONS,
)
def beta_logit_sample(a: TensorLike, b: TensorLike, drawn: AnyArray) -> None:
    """Return log(x / (1 − x)) of numbers drawn from the beta distribution."""


@elementwise(d={"df": lambda df, out: -stdtr_by_df(df, out) / student_density(df, out)}, value=_drawn, **_OPTIONS)
def t_sample(df: TensorLike, drawn: AnyArray) -> None:
    """Return numbers drawn from Student's t distribution."""


@elementwise(d={"a": lambda a, out: -_skew_by_a(out, a) / _skew_density(out, a)}, value=_drawn, **_OPTIONS)
def skewnorm_sample(a: TensorLike, drawn: AnyArray) -> None:
    """Return numbers drawn from the skew-normal distribution."""


@elementwise(
    d={"a": lambda a, b, out: _truncnorm_by_a(out, a, b), "b": lambda a, b, out: _truncnorm_by_b(out, a, b)},
    value=_drawn,
    **_OPTIONS,
)
def truncnorm_sample(a: TensorLike, b: TensorLike, drawn: AnyArray) -> None:
    """Return numbers drawn from the normal distribution between a and b."""


# -- quantiles of discrete distributions -------------------------------------------------------------------------------


def _steps(*operands: Any, name: str, method: str) -> AnyArray:
    return np.asarray(scipy_stats_method(name, method)(*operands), np.result_type(*operands))


@discrete(
    value=_steps, samples=[call(np.array([0.3, 0.8]), np.array([2.0, 5.5]), name="poisson", method="ppf")], listed=False
)
def steps(*operands: IntoArray, name: str, method: str) -> Any:
    """Call a piecewise constant method of one of SciPy's discrete distributions."""


#: The primitives as differentiable functions, by name, for the distributions to call.
functions: Params = {name: takes_arrays(row) for name, row in list(globals().items()) if isinstance(row, Primitive)}
