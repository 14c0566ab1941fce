"""Eigenvalues and eigenvectors of general square matrices; the results are always complex.

``ops.linalg.factors`` applies the primitive.

The formulas are from Boeddeker and others (2017), "On the computation of complex-valued gradients with application
to statistically optimum beamforming". Eigenvectors have length 1; LAPACK chooses their phases.
"""

from __future__ import annotations

import numpy as np

from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray
from chainrule._src.messages import errors
from chainrule._src.rules.kinds import call, opaque
from chainrule._src.table.decompositions import _as_diagonal, _diagonal, _did_not_converge, _gaps, _off_diagonal
from chainrule._src.table.linalg import H, is_zero, solve

ndarray = np.ndarray


def _largest(v: AnyArray) -> AnyArray:
    """Return a mask of each eigenvector's largest element, which LAPACK makes real."""
    n = shape_of(v)[-1]
    if not n:
        return np.zeros(shape_of(v), bool)
    return np.argmax(np.absolute(v), axis=-2)[..., None, :] == np.arange(n)[:, None]


def settled(gv: AnyArray, v: AnyArray, strict: bool) -> AnyArray:
    """Remove from the eigenvectors' cotangent its component along their phases, which the largest elements determine."""
    off = np.imag(np.sum(np.conjugate(v) * gv, axis=-2))
    if strict and is_array(off) and np.abs(off).max(initial=0) > 1e-2:
        raise errors.ill_defined_phase("linalg_eig", "eigenvectors")
    at = _largest(v)
    return gv - np.where(at, 1j * off[..., None, :] / np.conjugate(np.where(at, v, 1)), 0)


def _eig_vjp(g: tuple[AnyArray, ...], w: AnyArray, v: AnyArray, *, strict: bool) -> AnyArray:
    gw, gv = g
    if is_zero(gv):
        return solve(H(v), gw[..., :, None] * H(v))
    inner = H(v) @ settled(gv, v, strict)
    ratio = (inner - H(v) @ (v * np.real(_diagonal(inner))[..., None, :])) / np.conjugate(_gaps(w))
    return solve(H(v), (_off_diagonal(ratio) + _as_diagonal(gw)) @ H(v))


def _eig_jvp(t: AnyArray, w: AnyArray, v: AnyArray) -> tuple[AnyArray, ...]:
    inner = solve(v, t.astype(v.dtype) @ v)
    dv = v @ _off_diagonal(inner / _gaps(w))
    at = _largest(v)
    along = np.real(np.sum(np.conjugate(v) * dv, axis=-2))
    turn = np.imag(np.sum(np.where(at, dv / np.where(at, v, 1), 0), axis=-2))
    return _diagonal(inner), dv - v * (along + 1j * turn)[..., None, :]


@opaque(
    vjp=_eig_vjp,
    jvp=_eig_jvp,
    outputs=("w", "v"),
    formula=(
        "np.linalg.solve(H(v), (lambda P: np.eye(w.shape[-1]) * g[0][..., None] + (1 - np.eye(w.shape[-1]))"
        " * (P - H(v) @ (v * np.real(np.diagonal(P, 0, -2, -1))[..., None, :]))"
        " / np.conjugate(w[..., None, :] - w[..., None] + np.eye(w.shape[-1])))(H(v) @ settled(g[1], v, strict)) @ H(v))"
    ),
    aliases={"x": "A", "w": "eigenvalues", "v": "eigenvectors"},
    naming="LinalgEigBackward0",
    samples=[call((3, 3), strict=False), call((2, 2, 2), strict=False)],
    promotion="float",
    structure="ab:k,ij",
    remedy="the derivative of eigenvectors divides by differences of eigenvalues, and two of them are equal",
)
def eig(x: AnyArray, *, strict: bool) -> tuple[AnyArray, ...] | None:
    """Return eigenvalues, in no order, and eigenvectors of length 1 (in columns), as complex numbers.

    Eigenvectors of equal eigenvalues are not determined, so their derivatives are infinite. With ``strict``, a loss that
    depends on the eigenvectors' phases is an error.
    """
    dtype = np.result_type(x.dtype, np.complex64)
    try:
        w, v = np.linalg.eig(x)
    except np.linalg.LinAlgError:
        raise _did_not_converge("linalg.eig", x) from None
    return w.astype(dtype), v.astype(dtype)
