"""Filters of signals by SciPy's names, with derivatives by the signal. Filters are constants.

>>> import numpy as np
>>> import chainrule as cr
>>> cr.grad(lambda x: np.sum(cr.scipy.signal.lfilter([1.0], [1.0, -0.5], x)))(np.zeros(4))
array([1.875, 1.75 , 1.5  , 1.   ])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.table.filters import filtered
from chainrule.scipy.along import is_differentiated, linear_along, recorded
from chainrule.scipy.derivatives import scipy_module
from chainrule.sparse.arrays import applied

__all__ = ["detrend", "filtfilt", "hilbert", "lfilter", "resample", "savgol_filter", "sosfilt", "sosfiltfilt"]


def lfilter(b: Any, a: Any, x: Any, axis: int = -1) -> Any:
    """``scipy.signal.lfilter`` from rest: differentiable by the signal x, of any length."""
    if is_differentiated(b) or is_differentiated(a):
        raise TypeError("lfilter(): there are derivatives by the signal, and the coefficients are constants")
    scipys = scipy_module("scipy.signal", "signal.lfilter").lfilter
    if not is_differentiated(x):
        return scipys(b, a, x, axis)
    found = recorded(scipys, b, a, x, axis)
    if found is not None:
        return found
    found = applied(filtered, (np.moveaxis(x, axis, -1),), b=tuple(np.ravel(b).tolist()), a=tuple(np.ravel(a).tolist()))
    return np.moveaxis(found, -1, axis)


def filtfilt(b: object, a: object, x: object, axis: int = -1, **options: object) -> Any:
    """``scipy.signal.filtfilt``, differentiable by the signal x."""
    return linear_along("signal", "filtfilt", x, axis, before=(b, a), **options)


def sosfilt(sos: object, x: object, axis: int = -1) -> Any:
    """``scipy.signal.sosfilt`` from rest, differentiable by the signal x."""
    for section in np.asarray(sos):
        x = lfilter(section[:3], section[3:], x, axis)
    return x


def sosfiltfilt(sos: object, x: object, axis: int = -1, **options: object) -> Any:
    """``scipy.signal.sosfiltfilt``, differentiable by the signal x."""
    return linear_along("signal", "sosfiltfilt", x, axis, before=(sos,), **options)


def savgol_filter(x: Any, window_length: int, polyorder: int, axis: int = -1, **options: Any) -> Any:
    """``scipy.signal.savgol_filter``, differentiable by the signal x."""
    return linear_along("signal", "savgol_filter", x, axis, window_length, polyorder, **options)


def detrend(data: Any, axis: int = -1, **options: Any) -> Any:
    """``scipy.signal.detrend``, differentiable by the data."""
    return linear_along("signal", "detrend", data, axis, **options)


def resample(x: Any, num: int, axis: int = 0, **options: Any) -> Any:
    """``scipy.signal.resample``, differentiable by the signal x."""
    return linear_along("signal", "resample", x, axis, num, **options)


def hilbert(x: object, N: int | None = None, axis: int = -1) -> Any:
    """``scipy.signal.hilbert``: the analytic signal, whose numbers are complex; differentiable by the signal x."""
    return linear_along("signal", "hilbert", x, axis, N)
