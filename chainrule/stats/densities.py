"""Log densities in standard form, and their constants.

Distributions return these log densities. The partial derivatives of ``stats.primitives`` and the integrals of
``stats.tails`` evaluate the same functions, on plain arrays or on any array-like.
"""

from __future__ import annotations

import math

import numpy as np

from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.ops.scipy_special import NAMES

betaln, gammaln, xlog1py, xlogy = (NAMES[name] for name in ("betaln", "gammaln", "xlog1py", "xlogy"))
cosm1, i0e, log_ndtr, ndtr = (NAMES[name] for name in ("cosm1", "i0e", "log_ndtr", "ndtr"))

LOG_2 = math.log(2)
LOG_PI = math.log(math.pi)
LOG_2PI = math.log(2 * math.pi)
LOG_ROOT_2PI = 0.5 * LOG_2PI
EULER = 0.57721566490153286061


def log1mexp(x: AnyArray) -> AnyArray:
    """Return log(1 − exp(x)) for x ≤ 0, by the more accurate of two formulas.

    M. Mächler (2012), "Accurately computing log(1 − exp(−|a|))".
    """
    near = x > -0.6931471805599453
    close, far = np.where(near, x, -1), np.where(near, -1, x)
    with np.errstate(divide="ignore"):
        return np.where(near, np.log(-np.expm1(close)), np.log1p(-np.exp(far)))


def log_gamma_density(x: AnyArray, a: AnyArray) -> TensorLike:
    """Return the log density of the gamma distribution of shape a."""
    return xlogy(a - 1, x) - x - gammaln(a)


def log_beta_density(x: AnyArray, a: AnyArray, b: AnyArray) -> TensorLike:
    """Return the log density of the beta distribution."""
    return xlog1py(b - 1, -x) + xlogy(a - 1, x) - betaln(a, b)


def log_skewnorm_density(x: AnyArray, a: AnyArray) -> TensorLike:
    """Return the log density of the skew-normal distribution."""
    return LOG_2 - LOG_ROOT_2PI - 0.5 * np.square(x) + log_ndtr(a * x)


def log_vonmises_density(x: AnyArray, kappa: AnyArray) -> TensorLike:
    """Return the log density of the von Mises distribution."""
    return kappa * cosm1(x) - LOG_2PI - np.log(i0e(kappa))


def log_normal_mass(a: AnyArray, b: AnyArray) -> AnyArray:
    """Return the logarithm of the normal probability between a and b, for a < b."""
    right = a > 0
    a, b = np.where(right, -b, a), np.where(right, -a, b)  # mirror to the left, the side of the smaller tail
    left = b <= 0
    upper = log_ndtr(np.where(left, b, 0))
    in_tail = upper + log1mexp(log_ndtr(np.where(left, a, -1)) - upper)
    return np.where(left, in_tail, np.log1p(-ndtr(np.where(left, -1, a)) - ndtr(-np.where(left, 1, b))))


def log_truncnorm_density(x: AnyArray, a: AnyArray, b: AnyArray) -> TensorLike:
    """Return the log density of the normal distribution between a and b."""
    return -0.5 * np.square(x) - LOG_ROOT_2PI - log_normal_mass(a, b)
