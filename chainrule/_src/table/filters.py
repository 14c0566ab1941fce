"""A recursive filter as a row. The module loads when it is first used."""

from __future__ import annotations

import importlib

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.rules.batching import each_example
from chainrule._src.rules.kinds import opaque
from chainrule._src.rules.rules import conjugate


def _turned(g: AnyArray, b: AnyArray, a: AnyArray) -> AnyArray:
    """The filter with conjugate coefficients, from the end to the start."""
    return np.flip(filtered(conjugate(b), conjugate(a), np.flip(g, -1)), -1)


def _lagged(w: AnyArray, x: AnyArray, count: int) -> AnyArray:
    """The sums of w[t] conj(x[t - k]) over t and over leading axes, for each lag k < count."""
    n = w.shape[-1]
    return np.stack([np.sum(w[..., k:] * conjugate(x[..., : max(n - k, 0)])) for k in range(count)])


# With the shift S, sum_k a[k] Sᵏ y = sum_k b[k] Sᵏ x: what y is to x, a tangent of y is to sum_k db[k] Sᵏ x - sum_k da[k] Sᵏ y.
@opaque(
    shared={"w": lambda g, a: _turned(g, np.ones(1, g.dtype), a)},
    vjp={
        "b": lambda w, x, b_shape: _lagged(w, x, b_shape[0]),
        "a": lambda w, out, a_shape: -_lagged(w, out, a_shape[0]),
        "x": lambda w, b: _turned(w, b, np.ones(1, w.dtype)),
    },
    jvp={
        "b": lambda t, a, x: filtered(t, a, x),
        "a": lambda t, a, out: -filtered(t, a, out),
        "x": lambda t, b, a: filtered(b, a, t),
    },
    batch=each_example,
    promotion="float",
    listed=False,
)
def filtered(b: AnyArray, a: AnyArray, x: AnyArray) -> AnyArray:
    """Signals (..., n) through the filter with the coefficients b (of the signal) and a (of what comes out), from rest."""
    return importlib.import_module("scipy.signal").lfilter(np.asarray(b), np.asarray(a), np.asarray(x), -1)
