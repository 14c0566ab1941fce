"""Functions of matrices that SciPy computes, as rows. The module loads when it is first used."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.rules.batching import each_example
from chainrule._src.rules.kinds import opaque
from chainrule._src.rules.rules import conjugate


def scipy_linalg() -> Any:
    return importlib.import_module("scipy.linalg")


def _adjoint(x: Any) -> Any:
    return conjugate(np.swapaxes(x, -1, -2))


def _frechet(x: Any, t: Any, name: str, options: Any) -> Any:
    """The derivative of a function at x in the direction t: a block of its value at [[x, t], [0, x]].

    R. Mathias, A chain rule for matrix functions and applications (1996).
    """
    n = shape_of(x)[-1]
    both = np.concatenate(
        [np.concatenate([x, t], -1), np.concatenate([np.zeros((n, n)), x], -1)],
        -2,
    )
    return matrix_function(both, name=name, options=options)[..., :n, n:]


@opaque(
    vjp={"x": lambda g, x, name, options: _frechet(_adjoint(x), g, name, options)},
    jvp={"x": lambda t, x, name, options: _frechet(x, t, name, options)},
    batch=each_example,
    promotion="float",
    listed=False,
)
def matrix_function(x, *, name, options):
    """A function of a matrix, of those in ``scipy.linalg`` that are so for the conjugate transpose, too."""
    x = np.asarray(x)
    found = getattr(scipy_linalg(), name)(x, *options)
    return found if found.dtype.kind == "c" or x.dtype.kind != "f" else found.astype(x.dtype, copy=False)


@opaque(
    shared={"gy": lambda g, x, y: sylvester(_adjoint(x), _adjoint(y), g)},
    vjp={
        "x": lambda gy, out: -gy @ _adjoint(out),
        "y": lambda gy, out: -_adjoint(out) @ gy,
        "z": lambda gy: gy,
    },
    jvp={
        "x": lambda t, x, y, out: -sylvester(x, y, t @ out),
        "y": lambda t, x, y, out: -sylvester(x, y, out @ t),
        "z": lambda t, x, y: sylvester(x, y, t),
    },
    batch=each_example,
    promotion="float",
    listed=False,
)
def sylvester(x, y, z):
    """The matrix X with ``x X + X y = z``."""
    return scipy_linalg().solve_sylvester(np.asarray(x), np.asarray(y), np.asarray(z))
