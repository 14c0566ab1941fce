"""``torch.special``: error, gamma and Bessel functions, and the special names of functions that are elsewhere, too.

They are computed with NumPy. ``scipy.special``'s functions take tensors as well, where SciPy is installed.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core.array import open_to_arrays
from chainrule.core.dispatch import cast
from chainrule.core.faces import binary, general, unary, written
from chainrule.core.inplace import in_place
from chainrule.core.tensor import Tensor, attach
from chainrule.ops import elementwise as ew
from chainrule.ops.arguments import floating, tensor_of
from chainrule.ops.elementwise import exp2, expm1, log1p, logit, round, sigmoid, sinc, xlogy
from chainrule.ops.polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from chainrule.ops.reductions import log_softmax, logsumexp, softmax
from chainrule.table import bessel, gamma, normal
from chainrule.table import special as rows

erf, erfc, entr, xlog1py = unary(rows.erf), unary(rows.erfc), unary(rows.entr), binary(rows.xlog1py)
erfinv, erfcx = unary(normal.erfinv), unary(normal.erfcx)
ndtr, ndtri, log_ndtr = unary(normal.ndtr), unary(normal.ndtri), unary(normal.log_ndtr)
gammaln, digamma, zeta = unary(gamma.lgamma), unary(gamma.digamma), binary(gamma.zeta)
i0, i0e, i1, i1e = unary(bessel.i0), unary(bessel.i0e), unary(bessel.i1), unary(bessel.i1e)
for _face in (entr, erfcx, i0e, i1, i1e, log_ndtr, ndtr, ndtri, xlog1py, zeta):
    _face.__module__ = __name__  # which has them under their names, as pickles need; the others are in chainrule itself
expit, psi, lgamma = sigmoid, digamma, gammaln
modified_bessel_i0, modified_bessel_i1 = i0, i1


def polygamma(n: int, input: Tensor, *, out: Any = None) -> Tensor:
    """The derivative of order n of :func:`digamma`.

    >>> import chainrule as cr
    >>> cr.special.polygamma(1, cr.tensor([1.0]))
    tensor([1.6449])
    """
    if not hasattr(n, "__index__"):
        raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n: got {n}")
    return written(general(gamma.polygamma, (input,), {"n": n.__index__()}), out)  # type: ignore[no-any-return]


def multigammaln(input: Tensor, p: int, *, out: Any = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p: p(p − 1)/4·log π + Σ log Γ(x − j/2)."""
    x = floating(tensor_of("mvlgamma", input, "biuf"))
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1: got {p}")
    if p > 100_000:
        raise ValueError(f"mvlgamma(): p = {p} is a sum of as many terms; up to 100000 are possible")
    total = gammaln(x)
    for j in range(1, p):
        total = ew.add(total, gammaln(ew.sub(x, j / 2)))
    return written(ew.add(total, p * (p - 1) / 4 * math.log(math.pi)), out)  # type: ignore[no-any-return]


def spherical_bessel_j0(input: Tensor, *, out: Any = None) -> Tensor:
    """sin(x) / x; 0 at ±inf."""
    x = floating(tensor_of("spherical_bessel_j0", input, "biuf"))
    far = ew.isinf(x)
    return written(ew.where(far, 0.0, sinc(ew.div(ew.where(far, 1.0, x), math.pi))), out)  # type: ignore[no-any-return]


def _computed(name: str, row: str, operands: tuple[Any, ...], out: Any) -> Tensor:
    prim = importlib.import_module("chainrule.ops.scipy_special").ROWS.get(row)
    if prim is None:
        raise errors.needs_scipy(f"special.{name}")
    operands = tuple(floating(tensor_of(name, x, "biuf")) for x in operands)
    if operands[0].dtype == np.float16:  # SciPy has no such loops
        return written(cast(_computed(name, row, tuple(x.float() for x in operands), None), np.float16), out)  # type: ignore[no-any-return]
    return written(general(prim, operands, {}), out)  # type: ignore[no-any-return]


def _by_scipy(name: str, row: str, operands: int = 1) -> Any:
    """The user's function for a row that SciPy computes."""

    def one(input: Tensor, *, out: Any = None) -> Tensor:
        return _computed(name, row, (input,), out)

    def two(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
        return _computed(name, row, (input, other), out)

    call = one if operands == 1 else two
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``scipy.special.{row}`` on tensors; SciPy computes it."
    return call


airy_ai = _by_scipy("airy_ai", "airy_ai")
bessel_j0, bessel_j1 = _by_scipy("bessel_j0", "j0"), _by_scipy("bessel_j1", "j1")
bessel_y0, bessel_y1 = _by_scipy("bessel_y0", "y0"), _by_scipy("bessel_y1", "y1")
modified_bessel_k0, modified_bessel_k1 = _by_scipy("modified_bessel_k0", "k0"), _by_scipy("modified_bessel_k1", "k1")
scaled_modified_bessel_k0 = _by_scipy("scaled_modified_bessel_k0", "k0e")
scaled_modified_bessel_k1 = _by_scipy("scaled_modified_bessel_k1", "k1e")
gammainc = igamma = _by_scipy("gammainc", "gammainc", 2)
gammaincc = igammac = _by_scipy("gammaincc", "gammaincc", 2)


def _polygamma_method(self: Tensor, n: int) -> Tensor:
    """The derivative of order n of digamma."""
    return polygamma(n, self)


_METHODS = {
    "erf": erf, "erfc": erfc, "erfinv": erfinv, "lgamma": gammaln, "digamma": digamma, "i0": i0, "mvlgamma": multigammaln,
    "igamma": igamma, "igammac": igammac,
}  # fmt: skip
attach(**_METHODS, polygamma=_polygamma_method)
attach(**{name + "_": in_place(name + "_", function) for name, function in _METHODS.items()})
attach(polygamma_=in_place("polygamma_", _polygamma_method))

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u",
    "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2",
    "expit", "expm1", "gammainc", "gammaincc", "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0",
    "i0e", "i1", "i1e", "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
    "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0",
    "xlog1py", "xlogy", "zeta",
]  # fmt: skip

open_to_arrays(globals(), __all__, ("chainrule.special", "chainrule.ops"))


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
