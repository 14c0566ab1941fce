"""``autograd.numpy.linalg``: functions of ``numpy.linalg`` that accept Arrays."""

from __future__ import annotations

from typing import Any

import numpy

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule.compat.autograd.extend import defjvp, defvjp, primitive
from chainrule.compat.autograd.numpy.wrapping import wrap_names

globals().update(wrap_names(vars(numpy.linalg)))
__all__ = [*numpy.linalg.__all__, "T"]


def T(x: Any) -> Any:
    """Transpose matrices (the last two axes)."""
    return numpy.swapaxes(x, -1, -2)


_dot = numpy.matmul


@primitive
def _symmetric(a: AnyArray) -> AnyArray:
    """Return a symmetric matrix unchanged; its rules symmetrize gradients and tangents."""
    return a


def _symmetrized(g: AnyArray) -> AnyArray:
    return (g + numpy.conj(numpy.swapaxes(g, -1, -2))) / 2


defvjp(_symmetric, lambda ans, a: _symmetrized)
defjvp(_symmetric, lambda t, ans, a: _symmetrized(t))


def cholesky(a: TensorLike, **options: Any) -> AnyArray:
    """Compute ``numpy.linalg.cholesky``, with a symmetric gradient, although NumPy reads only one triangle."""
    return numpy.linalg.cholesky(_symmetric(a), **options)


show(globals())
