"""A recursive filter as a row. The module loads when it is first used."""

from __future__ import annotations

import importlib

import numpy as np

from chainrule._src.rules.kinds import linear


def _turned(g, b, a):
    """The filter with conjugate coefficients, from the end to the start."""
    return np.flip(filtered(np.flip(g, -1), b=tuple(np.conj(b).tolist()), a=tuple(np.conj(a).tolist())), -1)


@linear(transpose=lambda g, b, a: _turned(g, b, a), promotion="float", listed=False)
def filtered(x, *, b, a):
    """A signal through a linear filter, from rest, along the last axis."""
    return importlib.import_module("scipy.signal").lfilter(b, a, np.asarray(x), -1)
