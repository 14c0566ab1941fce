"""Filters of signals by SciPy's names, with derivatives by the signal; of lfilter and sosfilt by the coefficients, too.

>>> import numpy as np
>>> import chainrule as cr
>>> cr.grad(lambda x: np.sum(cr.scipy.signal.lfilter([1.0], [1.0, -0.5], x)))(np.zeros(4))
array([1.875, 1.75 , 1.5  , 1.   ])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, IntoArray
from chainrule._src.table.filters import filtered
from chainrule.scipy.along import is_differentiated, linear_along, recorded
from chainrule.scipy.derivatives import scipy_module
from chainrule.sparse.arrays import applied

__all__ = ["detrend", "filtfilt", "hilbert", "lfilter", "resample", "savgol_filter", "sosfilt", "sosfiltfilt"]


def lfilter(b: Any, a: Any, x: Any, axis: int = -1) -> AnyArray:
    """``scipy.signal.lfilter`` from rest: differentiable by the coefficients b and a, and by the signal x, of any length.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> e = np.random.default_rng(0).normal(size=50)
    >>> loss = lambda phi: np.sum(cr.scipy.signal.lfilter(np.stack([1.0, -phi]), [1.0], e) ** 2)
    >>> round(float(cr.grad(loss)(0.5)), 4), round(float(loss(0.5001) - loss(0.4999)) / 0.0002, 4)
    (13.5285, 13.5285)
    """
    scipys = scipy_module("scipy.signal", "signal.lfilter").lfilter
    if not any(map(is_differentiated, (b, a, x))):
        return scipys(b, a, x, axis)
    found = recorded(scipys, b, a, x, axis)
    if found is not None:
        return found
    b, a = (c if is_differentiated(c) else np.ravel(c) for c in (b, a))
    return np.moveaxis(applied(filtered, (b, a, np.moveaxis(x, axis, -1))), -1, axis)


def filtfilt(b: object, a: object, x: object, axis: int = -1, **options: object) -> AnyArray:
    """``scipy.signal.filtfilt``, differentiable by the signal x."""
    return linear_along("signal", "filtfilt", x, axis, before=(b, a), **options)


def sosfilt(sos: Any, x: object, axis: int = -1) -> object:
    """``scipy.signal.sosfilt`` from rest, differentiable by the coefficients, of the shape (sections, 6), and the signal x."""
    for section in sos if is_differentiated(sos) else np.asarray(sos):
        x = lfilter(section[:3], section[3:], x, axis)
    return x


def sosfiltfilt(sos: object, x: object, axis: int = -1, **options: object) -> AnyArray:
    """``scipy.signal.sosfiltfilt``, differentiable by the signal x."""
    return linear_along("signal", "sosfiltfilt", x, axis, before=(sos,), **options)


def savgol_filter(x: IntoArray, window_length: int, polyorder: int, axis: int = -1, **options: Any) -> AnyArray:
    """``scipy.signal.savgol_filter``, differentiable by the signal x."""
    return linear_along("signal", "savgol_filter", x, axis, window_length, polyorder, **options)


def detrend(data: IntoArray, axis: int = -1, **options: Any) -> AnyArray:
    """``scipy.signal.detrend``, differentiable by the data."""
    return linear_along("signal", "detrend", data, axis, **options)


def resample(x: IntoArray, num: int, axis: int = 0, **options: Any) -> AnyArray:
    """``scipy.signal.resample``, differentiable by the signal x."""
    return linear_along("signal", "resample", x, axis, num, **options)


def hilbert(x: object, N: int | None = None, axis: int = -1) -> AnyArray:
    """``scipy.signal.hilbert``: the analytic signal, whose numbers are complex; differentiable by the signal x."""
    return linear_along("signal", "hilbert", x, axis, N)
