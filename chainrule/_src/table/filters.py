"""SciPy's recursive filter ``lfilter`` as a primitive. The module is loaded at first use.

``scipy.signal`` calls ``filtered``.
"""

from __future__ import annotations

import importlib

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.rules.batching import each_example
from chainrule._src.rules.kinds import opaque
from chainrule._src.rules.rules import conjugate


def _filter_backward(g: AnyArray, b: AnyArray, a: AnyArray) -> AnyArray:
    """Apply the filter with conjugate coefficients, from the end to the start."""
    return np.flip(filtered(conjugate(b), conjugate(a), np.flip(g, -1)), -1)


def _lagged_products(w: AnyArray, x: AnyArray, count: int) -> AnyArray:
    """Return the sums of w[t] conj(x[t - k]) over t and over leading axes, for each lag k < count."""
    n = w.shape[-1]
    return np.stack([np.sum(w[..., k:] * conjugate(x[..., : max(n - k, 0)])) for k in range(count)])


# With the shift S, Σ a[k] Sᵏ y = Σ b[k] Sᵏ x. So a tangent of y is the filter's response to Σ db[k] Sᵏ x − Σ da[k] Sᵏ y.
@opaque(
    shared={"w": lambda g, a: _filter_backward(g, np.ones(1, g.dtype), a)},
    vjp={
        "b": lambda w, x, b_shape: _lagged_products(w, x, b_shape[0]),
        "a": lambda w, out, a_shape: -_lagged_products(w, out, a_shape[0]),
        "x": lambda w, b: _filter_backward(w, b, np.ones(1, w.dtype)),
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
    """Filter signals (..., n) with feedforward coefficients b and feedback coefficients a; the initial state is zero."""
    return importlib.import_module("scipy.signal").lfilter(np.asarray(b), np.asarray(a), np.asarray(x), -1)
