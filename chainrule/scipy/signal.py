"""Signal filters with the names of ``scipy.signal``, differentiable with respect to the signal.

``lfilter`` and ``sosfilt`` are differentiable with respect to the coefficients, too.

>>> import numpy as np
>>> import chainrule as cr
>>> cr.grad(lambda x: np.sum(cr.scipy.signal.lfilter([1.0], [1.0, -0.5], x)))(np.zeros(4))
array([1.875, 1.75 , 1.5  , 1.   ])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, IntoArray
from chainrule._src.table.filters import filtered
from chainrule.scipy.along import is_differentiated, linear_along_axis, record_call
from chainrule.scipy.derivatives import scipy_module
from chainrule.sparse.arrays import apply_primitive

__all__ = ["detrend", "filtfilt", "hilbert", "lfilter", "resample", "savgol_filter", "sosfilt", "sosfiltfilt"]


def lfilter(b: Any, a: Any, x: Any, axis: int = -1) -> AnyArray:
    """Compute ``scipy.signal.lfilter`` from rest; differentiable with respect to the coefficients b, a and the signal x.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> e = np.random.default_rng(0).normal(size=50)
    >>> loss = lambda phi: np.sum(cr.scipy.signal.lfilter(np.stack([1.0, -phi]), [1.0], e) ** 2)
    >>> round(float(cr.grad(loss)(0.5)), 4), round(float(loss(0.5001) - loss(0.4999)) / 0.0002, 4)
    (13.5285, 13.5285)
    """
    scipy_lfilter = scipy_module("scipy.signal", "signal.lfilter").lfilter
    if not any(map(is_differentiated, (b, a, x))):
        return scipy_lfilter(b, a, x, axis)
    found = record_call(scipy_lfilter, b, a, x, axis)
    if found is not None:
        return found
    b, a = (c if is_differentiated(c) else np.ravel(c) for c in (b, a))
    return np.moveaxis(apply_primitive(filtered, (b, a, np.moveaxis(x, axis, -1))), -1, axis)


def filtfilt(b: object, a: object, x: object, axis: int = -1, **options: object) -> AnyArray:
    """Compute ``scipy.signal.filtfilt``, differentiable with respect to the signal x."""
    return linear_along_axis("signal", "filtfilt", x, axis, before=(b, a), **options)


def sosfilt(sos: Any, x: object, axis: int = -1) -> object:
    """Compute ``scipy.signal.sosfilt`` from rest, differentiable in the coefficients (sections, 6) and the signal x."""
    for section in sos if is_differentiated(sos) else np.asarray(sos):
        x = lfilter(section[:3], section[3:], x, axis)
    return x


def sosfiltfilt(sos: object, x: object, axis: int = -1, **options: object) -> AnyArray:
    """Compute ``scipy.signal.sosfiltfilt``, differentiable with respect to the signal x."""
    return linear_along_axis("signal", "sosfiltfilt", x, axis, before=(sos,), **options)


def savgol_filter(x: IntoArray, window_length: int, polyorder: int, axis: int = -1, **options: Any) -> AnyArray:
    """Compute ``scipy.signal.savgol_filter``, differentiable with respect to the signal x."""
    return linear_along_axis("signal", "savgol_filter", x, axis, window_length, polyorder, **options)


def detrend(data: IntoArray, axis: int = -1, **options: Any) -> AnyArray:
    """Compute ``scipy.signal.detrend``, differentiable with respect to the data."""
    return linear_along_axis("signal", "detrend", data, axis, **options)


def resample(x: IntoArray, num: int, axis: int = 0, **options: Any) -> AnyArray:
    """Compute ``scipy.signal.resample``, differentiable with respect to the signal x."""
    return linear_along_axis("signal", "resample", x, axis, num, **options)


def hilbert(x: object, N: int | None = None, axis: int = -1) -> AnyArray:
    """Return the complex analytic signal, as ``scipy.signal.hilbert``; differentiable with respect to the signal x."""
    return linear_along_axis("signal", "hilbert", x, axis, N)


show(globals())
