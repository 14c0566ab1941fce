"""``scipy.special``: its ufuncs answer to Arrays themselves, and so do these functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from chainrule import special as _ours
from chainrule._src.api.array import Array, holds
from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule.compat.autograd.values import getval

globals().update({name: getattr(scipy.special, name) for name in scipy.special.__all__})


def _by_type(name: str) -> AnyFunction:
    """chainrule's function for Arrays, SciPy's for everything else."""
    ours, scipys = getattr(_ours, name), getattr(scipy.special, name)
    return lambda *args: ours(*args) if holds(args, Array) else scipys(*args)


polygamma = _by_type("polygamma")
multigammaln = _by_type("multigammaln")


def logsumexp(x: Any, axis: Any = None, b: Any = 1.0, keepdims: bool = False) -> AnyArray:
    """log(sum(b exp(x)))."""
    if not holds((x, b), Array):
        return scipy.special.logsumexp(x, axis, b, keepdims)
    top = np.max(getval(x), axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.log(np.sum(b * np.exp(x - top), axis=axis, keepdims=keepdims))
    return total + (top if keepdims else np.squeeze(top, axis))


def log_softmax(x: TensorLike, axis: object = None) -> AnyArray:
    return x - logsumexp(x, axis, keepdims=True)


def softmax(x: TensorLike, axis: object = None) -> AnyArray:
    return np.exp(log_softmax(x, axis))
