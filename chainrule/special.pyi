"""Made by tools/stubs.py from the declarations."""

from typing import Any
from chainrule._src.arrays.types import DTypeLike
from chainrule._src.arrays.types import TensorLike
from chainrule._src.tape.tensor import Tensor
def airy_ai(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.airy_ai``, by SciPy."""
def bessel_j0(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.j0``, by SciPy."""
def bessel_j1(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.j1``, by SciPy."""
def bessel_y0(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.y0``, by SciPy."""
def bessel_y1(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.y1``, by SciPy."""
def chebyshev_polynomial_t(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the Chebyshev polynomial of the first kind, T of degree n, at x. Degrees may differ between elements; for negative degrees the result is 0."""
def chebyshev_polynomial_u(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the Chebyshev polynomial of the second kind, U of degree n, at x. Degrees may differ between elements; for negative degrees the result is 0."""
def chebyshev_polynomial_v(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the Chebyshev polynomial of the third kind, V of degree n, at x. Degrees may differ between elements; for negative degrees the result is 0."""
def chebyshev_polynomial_w(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the Chebyshev polynomial of the fourth kind, W of degree n, at x. Degrees may differ between elements; for negative degrees the result is 0."""
def digamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return Γ'(x) / Γ(x), the derivative of log Γ."""
def entr(input: Any, *, out: Any = ...) -> Any:
    """Return −x·log(x), 0 at 0 and −∞ for negative x."""
def erf(input: Any, *, out: Any = ...) -> Any:
    """Return the error function 2/√π ∫₀ˣ exp(−t²) dt."""
def erfc(input: Any, *, out: Any = ...) -> Any:
    """Return the complementary error function 1 − erf(x), accurate where it is tiny."""
def erfcx(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return exp(x²)·erfc(x), also where erfc underflows."""
def erfinv(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse of the error function; infinite at ±1, NaN beyond."""
def exp2(input: Any, *, out: Any = ...) -> Any:
    """Return 2 to the power of every element."""
def expit(input: Any, *, out: Any = ...) -> Any:
    """Return the logistic function 1 / (1 + exp(−x)), computed without overflow."""
def expm1(input: Any, *, out: Any = ...) -> Any:
    """Return exp(x) − 1, accurate near 0."""
def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.gammainc``, by SciPy."""
def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.gammaincc``, by SciPy."""
def gammaln(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return log |Γ(x)|; infinite at 0 and the negative integers."""
def hermite_polynomial_h(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the physicists' Hermite polynomial, H of degree n, at x. Degrees may differ between elements; for negative degrees the result is 0."""
def hermite_polynomial_he(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the probabilists' Hermite polynomial, He of degree n, at x. Degrees may differ between elements; for negative degrees the result is 0."""
def i0(input: Any, *, out: Any = ...) -> Any:
    """Return the modified Bessel function I₀(x)."""
def i0e(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """exp(−|x|)·I₀(x)."""
def i1(input: Any, *, out: Any = ...) -> Any:
    """Return the modified Bessel function I₁(x)."""
def i1e(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """exp(−|x|)·I₁(x)."""
def laguerre_polynomial_l(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the Laguerre polynomial L of degree n, at x. Degrees may differ between elements; for negative degrees the result is 0."""
def legendre_polynomial_p(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the Legendre polynomial P of degree n, at x. Degrees may differ between elements; for negative degrees the result is 0."""
def log1p(input: Any, *, out: Any = ...) -> Any:
    """Return log(1 + x), accurate near 0."""
def log_ndtr(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the logarithm of the normal distribution function, finite far in the lower tail."""
def log_softmax(input: TensorLike, dim: int | None = ..., dtype: DTypeLike = ...) -> Tensor:
    """Return the logarithm of the softmax along ``dim``, computed without overflow."""
def logit(input: TensorLike, eps: float | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return log(x / (1 − x)), the inverse of the sigmoid; with ``eps``, x is first clamped to [eps, 1 − eps]."""
def logsumexp(input: Any, dim: Any, keepdim: bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return log Σ exp(x) over ``dim``, computed without overflow."""
def modified_bessel_i0(input: Any, *, out: Any = ...) -> Any:
    """Return the modified Bessel function I₀(x)."""
def modified_bessel_i1(input: Any, *, out: Any = ...) -> Any:
    """Return the modified Bessel function I₁(x)."""
def modified_bessel_k0(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.k0``, by SciPy."""
def modified_bessel_k1(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.k1``, by SciPy."""
def multigammaln(input: Tensor, p: int, *, out: Tensor | None = ...) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension p: p(p − 1)/4·log π + Σ log Γ(x − j/2)."""
def ndtr(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the normal distribution function: the probability below x."""
def ndtri(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the inverse of the normal distribution function; infinite at 0 and 1, NaN beyond."""
def polygamma(n: int, input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the derivative of order n of :func:`digamma`."""
def psi(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return Γ'(x) / Γ(x), the derivative of log Γ."""
def round(input: TensorLike, *, decimals: int = ..., out: Tensor | None = ...) -> Tensor:
    """Round to the nearest integer, ties to even, or to a number of decimals."""
def scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.k0e``, by SciPy."""
def scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.k1e``, by SciPy."""
def shifted_chebyshev_polynomial_t(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the Chebyshev polynomial of the first kind, T of degree n, at 2x − 1. Degrees may differ between elements; for negative degrees the result is 0."""
def shifted_chebyshev_polynomial_u(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the Chebyshev polynomial of the second kind, U of degree n, at 2x − 1. Degrees may differ between elements; for negative degrees the result is 0."""
def shifted_chebyshev_polynomial_v(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the Chebyshev polynomial of the third kind, V of degree n, at 2x − 1. Degrees may differ between elements; for negative degrees the result is 0."""
def shifted_chebyshev_polynomial_w(input: TensorLike, n: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the Chebyshev polynomial of the fourth kind, W of degree n, at 2x − 1. Degrees may differ between elements; for negative degrees the result is 0."""
def sinc(input: Any, *, out: Any = ...) -> Any:
    """Return sin(πx) / (πx), and 1 at 0."""
def softmax(input: TensorLike, dim: int | None = ..., dtype: DTypeLike = ...) -> Tensor:
    """Return exp(x) / Σ exp(x) along ``dim``: positive numbers that sum to 1."""
def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return sin(x) / x; 0 at ±inf."""
def xlog1py(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return x·log(1 + y), and 0 where x is 0 (unless y is NaN)."""
def xlogy(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return x·log(y), and 0 where x is 0 (unless y is NaN)."""
def zeta(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the Hurwitz zeta function Σ (k + y)⁻ˣ over k = 0, 1, …"""
