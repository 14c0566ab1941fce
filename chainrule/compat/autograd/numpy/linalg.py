"""``numpy.linalg``."""

from __future__ import annotations

from typing import Any

import numpy

from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule.compat.autograd.extend import defjvp, defvjp, primitive
from chainrule.compat.autograd.numpy.wrapping import wrapped

globals().update(wrapped(vars(numpy.linalg)))


def T(x: Any) -> Any:
    """Matrices transposed."""
    return numpy.swapaxes(x, -1, -2)


_dot = numpy.matmul


@primitive
def _symmetric(a: AnyArray) -> AnyArray:
    """Return a matrix that is symmetric: so are its gradients."""
    return a


def _symmetrized(g: AnyArray) -> AnyArray:
    return (g + numpy.conj(numpy.swapaxes(g, -1, -2))) / 2


defvjp(_symmetric, lambda ans, a: _symmetrized)
defjvp(_symmetric, lambda t, ans, a: _symmetrized(t))


def cholesky(a: TensorLike, **options: Any) -> AnyArray:
    """NumPy's; the gradient is symmetric, where NumPy reads one triangle only."""
    return numpy.linalg.cholesky(_symmetric(a), **options)
