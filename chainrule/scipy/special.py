"""``scipy.special``: its ufuncs answer to tensors and Arrays themselves, and so do the functions here that SciPy wrote in Python.

For plain arrays they are SciPy's own.

>>> import numpy as np
>>> import chainrule as cr
>>> cr.grad(lambda x: cr.scipy.special.logsumexp(x, b=[1.0, 3.0]))(np.zeros(2))
array([0.25, 0.75])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import special
from chainrule._src.arrays.types import AnyArray, AnyFunction, Dims, IntoArray
from chainrule.scipy.along import is_differentiated, recorded
from chainrule.scipy.derivatives import scipy_module

_scipys = scipy_module("scipy.special", "special")
__all__ = ["log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax"]


def _or_scipys(name: str, ours: AnyFunction, *args: object, **options: object) -> Any:
    """Return a function of ours where its arguments are differentiated, else SciPy's."""
    function = getattr(_scipys, name)
    if not any(map(is_differentiated, (*args, *options.values()))):
        return function(*args, **options)
    found = recorded(function, *args, **options)
    return ours(*args, **options) if found is None else found


def logsumexp(
    a: IntoArray, axis: Dims = None, b: IntoArray | None = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """``scipy.special.logsumexp``: log Σ b·exp(a) over an axis, several, or (None) everything, without overflow.

    Args:
        b: factors, which broadcast with a; they may be 0 or negative, and are differentiated, too.
        return_sign: give the logarithm of the sum's magnitude, and its sign.

    Returns:
        An array without the axes (with them, of length 1, if ``keepdims``). The sum of negative sign is nan without ``return_sign``.
    """
    return _or_scipys("logsumexp", _logsumexp, a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)


def _logsumexp(a: Any, axis: Dims, b: Any, keepdims: bool, return_sign: bool) -> Any:
    if b is None and not return_sign and is_differentiated(a):
        return special.logsumexp(a, axis, keepdims)
    if b is not None:
        a = np.where(np.equal(b, 0), -np.inf, np.add(a, np.zeros(np.shape(b))))
    top = np.max(a.detach() if is_differentiated(a) else a, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    terms = np.exp(a - top)
    total = np.sum(terms if b is None else b * terms, axis=axis, keepdims=True)
    sign = np.sign(total.detach())
    found = np.log(np.abs(total) if return_sign else total) + top
    if not keepdims:
        found, sign = np.squeeze(found, axis), np.squeeze(sign, axis)
    return (found, sign) if return_sign else found


def softmax(x: IntoArray, axis: Dims = None) -> AnyArray:
    """``scipy.special.softmax``: exp(x) / Σ exp(x) over an axis, several, or (None) everything."""
    return _or_scipys("softmax", lambda x, axis: np.exp(_log_softmax(x, axis)), x, axis=axis)


def log_softmax(x: IntoArray, axis: Dims = None) -> AnyArray:
    """``scipy.special.log_softmax``: the logarithm of the softmax, without overflow."""
    return _or_scipys("log_softmax", _log_softmax, x, axis=axis)


def _log_softmax(x: Any, axis: Dims) -> AnyArray:
    if isinstance(axis, int):
        return special.log_softmax(x, axis)
    return x - special.logsumexp(x, axis, True)


def polygamma(n: IntoArray, x: IntoArray) -> AnyArray:
    """``scipy.special.polygamma``: the n-th derivative of the digamma function at x."""
    return _or_scipys("polygamma", special.polygamma, n, x)


def multigammaln(a: IntoArray, d: int) -> AnyArray:
    """``scipy.special.multigammaln``: the logarithm of the gamma function of d dimensions at a."""
    return _or_scipys("multigammaln", special.multigammaln, a, d)


def __getattr__(name: str) -> object:
    """Return the other names are SciPy's."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_scipys.__all__})
