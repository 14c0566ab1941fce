"""Differentiable versions of the ``scipy.special`` functions that are not ufuncs.

SciPy's ufuncs accept tensors and Arrays themselves. For plain arrays, the functions here call SciPy.

>>> import numpy as np
>>> import chainrule as cr
>>> cr.grad(lambda x: cr.scipy.special.logsumexp(x, b=[1.0, 3.0]))(np.zeros(2))
array([0.25, 0.75])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import special
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, AnyFunction, Dims, IntoArray
from chainrule.scipy.along import is_differentiated, record_call
from chainrule.scipy.derivatives import scipy_module

_scipy_special = scipy_module("scipy.special", "special")
__all__ = sorted({"log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax", *_scipy_special.__all__})


def _dispatch_scipy(name: str, rule: AnyFunction, *args: object, **options: object) -> Any:
    """Call ``rule`` if an argument is differentiated, else SciPy's function."""
    function = getattr(_scipy_special, name)
    if not any(map(is_differentiated, (*args, *options.values()))):
        return function(*args, **options)
    found = record_call(function, *args, **options)
    return rule(*args, **options) if found is None else found


def logsumexp(
    a: IntoArray, axis: Dims = None, b: IntoArray | None = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Return log Σ b·exp(a) over one axis, several, or all (None), without overflow, as ``scipy.special.logsumexp``.

    Args:
        b: differentiable factors that broadcast with a; they may be 0 or negative.
        return_sign: return the logarithm of the sum's magnitude, and its sign.

    Returns:
        An array without the axes (with axes of length 1 if ``keepdims``). Without ``return_sign``, a negative sum gives nan.
    """
    return _dispatch_scipy("logsumexp", _logsumexp, a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)


def _logsumexp(a: Any, axis: Dims, b: Any, keepdims: bool, return_sign: bool) -> Any:
    if b is None and not return_sign and is_differentiated(a):
        return special.logsumexp(a, axis, keepdims)
    if b is not None:
        a = np.where(np.equal(b, 0), -np.inf, np.add(a, np.zeros(np.shape(b))))
    shift = np.max(a.detach() if is_differentiated(a) else a, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(shift), shift, 0.0)
    terms = np.exp(a - shift)
    total = np.sum(terms if b is None else b * terms, axis=axis, keepdims=True)
    sign = np.sign(total.detach())
    found = np.log(np.abs(total) if return_sign else total) + shift
    if not keepdims:
        found, sign = np.squeeze(found, axis), np.squeeze(sign, axis)
    return (found, sign) if return_sign else found


def softmax(x: IntoArray, axis: Dims = None) -> AnyArray:
    """Return exp(x) / Σ exp(x) over one axis, several, or all (None), as ``scipy.special.softmax``."""
    return _dispatch_scipy("softmax", lambda x, axis: np.exp(_log_softmax(x, axis)), x, axis=axis)


def log_softmax(x: IntoArray, axis: Dims = None) -> AnyArray:
    """Return the logarithm of the softmax without overflow, as ``scipy.special.log_softmax``."""
    return _dispatch_scipy("log_softmax", _log_softmax, x, axis=axis)


def _log_softmax(x: Any, axis: Dims) -> AnyArray:
    if isinstance(axis, int):
        return special.log_softmax(x, axis)
    return x - special.logsumexp(x, axis, True)


def polygamma(n: IntoArray, x: IntoArray) -> AnyArray:
    """Return the n-th derivative of the digamma function at x, as ``scipy.special.polygamma``."""
    return _dispatch_scipy("polygamma", special.polygamma, n, x)


def multigammaln(a: IntoArray, d: int) -> AnyArray:
    """Return the logarithm of the d-dimensional gamma function at a, as ``scipy.special.multigammaln``."""
    return _dispatch_scipy("multigammaln", special.multigammaln, a, d)


def __getattr__(name: str) -> Any:
    """Return SciPy's function for any other name."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_scipy_special, name)


show(globals())
