"""Compute logarithms of small tail probabilities by quadrature, for distributions without a formula for the cdf.

``primitives`` calls these functions.

The log probability is the log density at the point plus the log of an integral of the density's relative decay. The integral
extends to a decay of exp(−40). The integrand is smooth, so 60 Gauss nodes give full precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.ops.incomplete import log_of_share
from chainrule._src.ops.scipy_special import NAMES
from chainrule.stats.densities import LOG_ROOT_2PI, log_skewnorm_density, log_vonmises_density

cosm1, log_ndtr = NAMES["cosm1"], NAMES["log_ndtr"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(60)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS
_FALL = 40.0  # exp(-40) is below double precision


def log_mass(fall: Callable[[AnyArray], AnyArray], width: AnyArray) -> AnyArray:
    """Return the logarithm of the integral of exp(−fall(u)) over u in [0, width]; nodes are along the last axis."""
    u = width[..., None] * _NODES
    return np.log(width * np.sum(_WEIGHTS * np.exp(-fall(u)), -1))


def _combine_tails(
    share: AnyArray, rest: AnyArray, small: float, tail: AnyFunction, other: AnyFunction, *operands: Any
) -> AnyArray:
    """Return the log of a probability: by ``tail`` if it is small, by ``other`` if its complement ``rest`` is small."""
    with np.errstate(all="ignore"):
        out = np.array(log_of_share(share, rest))
        operands = np.broadcast_arrays(*operands)
        finish: AnyFunction
    for few, function, finish in ((share <= small, tail, lambda x: x), (rest < small, other, _log1mexp_small)):
        if np.any(few):
            found = finish(function(*[np.asarray(x[few], np.float64) for x in operands]))
            out[few] = np.where(np.isnan(found), out[few], found)
    return out


def _log1mexp_small(x: AnyArray) -> AnyArray:
    return np.log1p(-np.exp(x))


# -- the skew-normal distribution --------------------------------------------------------------------------------------


def _skew_tail(x: AnyArray, a: AnyArray) -> AnyArray:
    """Return the logarithm of a small probability of more than x; nan where the density does not decay yet."""
    at = a * x
    log_density = log_skewnorm_density(x, a)
    hazard = np.exp(-0.5 * np.square(at) - LOG_ROOT_2PI - log_ndtr(at))
    slope = x - a * hazard
    curvature = np.where(
        a < 0, 1 + 0.6 * np.square(a), 1
    )  # lower bound: log Φ has the curvature 0.64 at 0, and 1 in the left tail
    width = 2 * _FALL / (slope + np.sqrt(np.square(slope) + 2 * _FALL * curvature))
    x, a, at = x[..., None], a[..., None], at[..., None]

    def fall(u: AnyArray) -> AnyArray:
        return u * (x + 0.5 * u) + log_ndtr(at) - log_ndtr(at + a * u)

    return np.where((slope > 0) & ((a[..., 0] >= 0) | (at[..., 0] < 1)), log_density + log_mass(fall, width), np.nan)


def log_skewnorm_sf(x: Any, a: Any, cdf: Callable[[Any, Any], Any]) -> AnyArray:
    """Return the logarithm of the probability of more than x, given the distribution function."""

    def other(x: AnyArray, a: AnyArray) -> AnyArray:
        return _skew_tail(-x, -a)

    return _combine_tails(cdf(-x, -a), cdf(x, a), 0.01, _skew_tail, other, x, a)


# -- the von Mises distribution ----------------------------------------------------------------------------------------


def _vonmises_tail(x: AnyArray, kappa: AnyArray) -> AnyArray:
    """Return the logarithm of a small probability between x and π; nan if x is not in [0, π)."""
    sine, cosine = np.sin(x), np.cos(x)
    width = np.arccos(np.maximum(cosine - _FALL / kappa, -1)) - x

    def fall(u: AnyArray) -> AnyArray:
        return -kappa[..., None] * (cosine[..., None] * cosm1(u) - sine[..., None] * np.sin(u))

    return np.where((x >= 0) & (x < np.pi), log_vonmises_density(x, kappa) + log_mass(fall, width), np.nan)


def log_vonmises_sf(x: Any, kappa: Any, cdf: Callable[[Any, Any], Any]) -> AnyArray:
    """Return the logarithm of the probability of more than x, given the distribution function."""

    def other(x: AnyArray, kappa: AnyArray) -> AnyArray:
        return _vonmises_tail(-x, kappa)

    lower = cdf(x, kappa)
    upper = np.where(np.abs(x) <= np.pi, cdf(-x, kappa), 1 - lower)
    return _combine_tails(upper, lower, 0.6, _vonmises_tail, other, x, kappa)
