"""``torch.special``: error, gamma and Bessel functions, and aliases of functions that are defined elsewhere.

``op`` makes these functions public, in ``chainrule.special``.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.functions import general
from chainrule._src.api.operands import promote_operands
from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import tensor_of, to_float
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.tensor import Tensor


def _compute_by_scipy(name: str, row: str, operands: tuple[Any, ...], **params: object) -> Any:
    """Apply a primitive computed by SciPy, with PyTorch's dtypes. Only ``zeta`` accepts numbers along with tensors."""
    try:
        prim = importlib.import_module("chainrule._src.ops.scipy_special").ROWS[row]
    except ImportError:
        raise errors.needs_scipy(name) from None
    if all(type(x) is Tensor and dtype_of(x) in (np.float32, np.float64) for x in operands):
        return general(prim, operands, params)
    numbers = (int, float) if row == "zeta" and any(isinstance(x, Tensor) for x in operands) else ()
    checked = [x if isinstance(x, numbers) else tensor_of(name, x, "biuf") for x in operands]
    checked = promote_operands(prim, checked)
    halves = [hasattr(x, "dtype") and dtype_of(x) == np.float16 for x in checked]  # SciPy has no float16 loops
    checked = [cast(x, np.float32) if half else x for x, half in zip(checked, halves, strict=True)]
    result = general(prim, tuple(checked), params)
    return cast(result, np.float16) if any(halves) else result


def _by_scipy(names: str, row: str = "", doc: str = "", operands: int = 1) -> Any:
    """Declare the user function of a primitive computed by SciPy; by default the primitive has the first name."""
    name = names.split()[0].removeprefix("special.")
    row = row or name

    def one(input: Tensor) -> Tensor:
        return _compute_by_scipy(name, row, (input,))

    def two(input: Tensor, other: Tensor) -> Tensor:
        return _compute_by_scipy(name, row, (input, other))

    call = one if operands == 1 else two
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc or f"Compute ``scipy.special.{row}``, by SciPy."
    method = any("." not in n for n in names.split())
    return op(names, method=method, in_place=method, out=True)(call)


lgamma = _by_scipy("lgamma special.gammaln", doc="Return log |Γ(x)|; infinite at 0 and the negative integers.")
_by_scipy("digamma special.digamma special.psi", doc="Return Γ'(x) / Γ(x), the derivative of log Γ.")
_by_scipy("special.zeta", doc="Return the Hurwitz zeta function Σ (k + y)⁻ˣ over k = 0, 1, …", operands=2)
_by_scipy("special.erfcx", doc="Return exp(x²)·erfc(x), also where erfc underflows.")
_by_scipy("special.ndtr", doc="Return the normal distribution function: the probability below x.")
_by_scipy(
    "special.log_ndtr", doc="Return the logarithm of the normal distribution function, finite far in the lower tail."
)
_by_scipy(
    "special.ndtri", doc="Return the inverse of the normal distribution function; infinite at 0 and 1, NaN beyond."
)
_by_scipy("special.i0e", doc="exp(−|x|)·I₀(x).")
_by_scipy("special.i1e", doc="exp(−|x|)·I₁(x).")
_by_scipy("special.airy_ai")
_by_scipy("special.gammainc igamma", operands=2)
_by_scipy("special.gammaincc igammac", operands=2)
for _name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"):
    _by_scipy(f"special.{_name}", _name.removeprefix("bessel_"))
for _order in "01":
    _by_scipy(f"special.modified_bessel_k{_order}", f"k{_order}")
    _by_scipy(f"special.scaled_modified_bessel_k{_order}", f"k{_order}e")


@op("polygamma special.polygamma", out=True)
def polygamma(n: int, input: Tensor) -> Tensor:
    """Return the derivative of order n of :func:`digamma`.

    >>> import chainrule as cr
    >>> cr.special.polygamma(1, cr.tensor([1.0]))
    tensor([1.6449])
    """
    if not hasattr(n, "__index__"):
        raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n: got {n}")
    return _compute_by_scipy("polygamma", "polygamma", (input,), n=n.__index__())


@op("Tensor.polygamma", in_place=True)
def _polygamma_method(self: Tensor, n: int) -> Tensor:
    """Return the derivative of order n of :func:`digamma`."""
    return polygamma(n, self)


@op("mvlgamma special.multigammaln", method=True, in_place=True, out=True, sample="rand(3) + 2, 2")
def multigammaln(input: Tensor, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension p: p(p − 1)/4·log π + Σ log Γ(x − j/2)."""
    x = to_float(tensor_of("mvlgamma", input, "biuf"))
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1: got {p}")
    if p > 100_000:
        raise ValueError(f"mvlgamma(): p = {p} is too large: the cost is linear in p, and the limit is 100000")
    total = lgamma(x)
    for j in range(1, p):
        total = ew.add(total, lgamma(ew.sub(x, j / 2)))
    return ew.add(total, p * (p - 1) / 4 * math.log(math.pi))


@op("special.spherical_bessel_j0", out=True)
def spherical_bessel_j0(input: Tensor) -> Tensor:
    """Return sin(x) / x; 0 at ±inf."""
    x = to_float(tensor_of("spherical_bessel_j0", input, "biuf"))
    is_infinite = ew.isinf(x)
    return ew.where(is_infinite, 0.0, ew.sinc(ew.div(ew.where(is_infinite, 1.0, x), math.pi)))
