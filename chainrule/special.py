"""``torch.special``: error, gamma and Bessel functions, and the special names of functions that are elsewhere, too.

Error functions, products with a logarithm, I₀ and I₁ need NumPy alone. SciPy computes the others, and is loaded when one
of them is first called; without it they raise an ImportError that says what to install.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core.array import open_to_arrays
from chainrule.core.dispatch import cast
from chainrule.core.faces import binary, general, promoted, unary, written
from chainrule.core.inplace import in_place
from chainrule.core.shapes import dtype_of
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
from chainrule.table import special as rows

erf, erfc, erfinv, entr, xlog1py = *map(unary, (rows.erf, rows.erfc, rows.erfinv, rows.entr)), binary(rows.xlog1py)
i0, i1 = unary(rows.i0), unary(rows.i1)
for _face in (entr, i1, xlog1py):
    _face.__module__ = __name__  # which has them under their names, as pickles need; the others are in chainrule itself
expit = sigmoid
modified_bessel_i0, modified_bessel_i1 = i0, i1


def _computed(name: str, row: str, operands: tuple[Any, ...], out: Any = None, **params: Any) -> Any:
    """What SciPy computes by this row, in PyTorch's dtypes. Numbers may stand beside tensors in ``zeta`` alone."""
    try:
        prim = importlib.import_module("chainrule.ops.scipy_special").ROWS[row]
    except ImportError:
        raise errors.needs_scipy(name) from None
    numbers = (int, float) if row == "zeta" and any(isinstance(x, Tensor) for x in operands) else ()
    checked = [x if isinstance(x, numbers) else tensor_of(name, x, "biuf") for x in operands]
    checked = promoted(prim, checked)
    halves = [hasattr(x, "dtype") and dtype_of(x) == np.float16 for x in checked]  # SciPy has no such loops
    checked = [cast(x, np.float32) if half else x for x, half in zip(checked, halves, strict=True)]
    result = general(prim, tuple(checked), params)
    return written(cast(result, np.float16) if any(halves) else result, out)


def _by_scipy(name: str, row: str = "", doc: str = "", operands: int = 1) -> Any:
    """The user's function for a row that SciPy computes."""
    row = row or name

    def one(input: Tensor, *, out: Any = None) -> Tensor:
        return _computed(name, row, (input,), out)  # type: ignore[no-any-return]

    def two(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
        return _computed(name, row, (input, other), out)  # type: ignore[no-any-return]

    call = one if operands == 1 else two
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc or f"``scipy.special.{row}`` on tensors; SciPy computes it."
    return call


gammaln = lgamma = _by_scipy("lgamma", doc="log |Γ(x)|; infinite at 0 and the negative integers.")
digamma = psi = _by_scipy("digamma", doc="Γ'(x) / Γ(x), the derivative of log Γ.")
zeta = _by_scipy("zeta", doc="Hurwitz's zeta function Σ (k + y)⁻ˣ over k = 0, 1, …", operands=2)
erfcx = _by_scipy("erfcx", doc="exp(x²)·erfc(x), finite where erfc is too small for a number.")
ndtr = _by_scipy("ndtr", doc="The normal distribution function: the share below x.")
log_ndtr = _by_scipy("log_ndtr", doc="The logarithm of the normal distribution function, finite far in the lower tail.")
ndtri = _by_scipy("ndtri", doc="The inverse of the normal distribution function; infinite at 0 and 1, nan beyond.")
i0e, i1e = _by_scipy("i0e", doc="exp(−|x|)·I₀(x)."), _by_scipy("i1e", doc="exp(−|x|)·I₁(x).")
airy_ai = _by_scipy("airy_ai")
bessel_j0, bessel_j1 = _by_scipy("bessel_j0", "j0"), _by_scipy("bessel_j1", "j1")
bessel_y0, bessel_y1 = _by_scipy("bessel_y0", "y0"), _by_scipy("bessel_y1", "y1")
modified_bessel_k0, modified_bessel_k1 = _by_scipy("modified_bessel_k0", "k0"), _by_scipy("modified_bessel_k1", "k1")
scaled_modified_bessel_k0 = _by_scipy("scaled_modified_bessel_k0", "k0e")
scaled_modified_bessel_k1 = _by_scipy("scaled_modified_bessel_k1", "k1e")
gammainc = igamma = _by_scipy("gammainc", operands=2)
gammaincc = igammac = _by_scipy("gammaincc", operands=2)


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
    return _computed("polygamma", "polygamma", (input,), out, n=n.__index__())  # type: ignore[no-any-return]


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
