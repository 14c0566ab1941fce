"""Decompositions of the matrices in the last two axes: eigenvalues, singular values, QR; pseudoinverse and exponential.

``ops.linalg`` applies the primitives.

The formulas are from Giles (2008), see ``linalg``; Townsend (2016) for the thin SVD; Walter and Lehmann (2012) for QR;
Golub and Pereyra (1973) for the pseudoinverse; Najfeld and Havel (1995) for the exponential.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.messages import errors
from chainrule._src.rules.kinds import call, opaque
from chainrule._src.table.linalg import H, eye, hermitian, is_zero, over, over_transposed

ndarray = np.ndarray
raw = np.linalg

# -- eigenvalues and singular values ---------------------------------------------------------------------------------


def _did_not_converge(function: str, x: AnyArray) -> errors.LinAlgError:
    why = (
        "contained non-finite values"
        if not np.isfinite(x).all()
        else "is ill-conditioned or has too many repeated values"
    )
    return errors.LinAlgError(f"{function}: The algorithm failed to converge because the input matrix {why}.")


def _gaps(w: AnyArray) -> AnyArray:
    """Return w_j − w_i, with 1 on the diagonal."""
    return w[..., None, :] - w[..., :, None] + eye(shape_of(w)[-1], w)


def _diagonal(x: AnyArray) -> AnyArray:
    return np.diagonal(x, axis1=-2, axis2=-1)


def _off_diagonal(x: AnyArray) -> AnyArray:
    """Set the diagonals of matrices to zero."""
    return x * (1 - eye(shape_of(x)[-1], x))


def _as_diagonal(w: AnyArray) -> AnyArray:
    return w[..., :, None] * eye(shape_of(w)[-1], w)


def _cast_like(x: AnyArray, y: AnyArray) -> AnyArray:
    """Cast x to the dtype of y: a matrix product needs one dtype."""
    return x if x.dtype == y.dtype else x.astype(y.dtype)


def _eigh_vjp(g: tuple[AnyArray, ...], w: AnyArray, v: AnyArray) -> AnyArray:
    gw, gv = g
    if is_zero(gv):
        return hermitian((v * gw[..., None, :]) @ H(v))
    inner = H(v) @ _cast_like(gv, v)
    if is_array(inner) and inner.dtype.kind == "c" and np.abs(_diagonal(inner).imag).max(initial=0) > 1e-2:
        raise errors.ill_defined_phase("linalg_eigh", "eigenvectors")
    return hermitian(v @ (_off_diagonal(inner / _gaps(w)) + _as_diagonal(gw)) @ H(v))


def _eigh_jvp(t: AnyArray, w: AnyArray, v: AnyArray) -> tuple[AnyArray, ...]:
    inner = H(v) @ hermitian(t) @ v
    return np.real(_diagonal(inner)), v @ _off_diagonal(inner / _gaps(w))


@opaque(
    vjp=_eigh_vjp,
    jvp=_eigh_jvp,
    outputs=("w", "v"),
    formula=(
        "(lambda G: (G + H(G)) / 2)(v @ (np.eye(w.shape[-1]) * g[0][..., :, None] + (1 - np.eye(w.shape[-1]))"
        " * (H(v) @ g[1]) / (w[..., None, :] - w[..., :, None] + np.eye(w.shape[-1]))) @ H(v))"
    ),
    aliases={"x": "A", "w": "eigenvalues", "v": "eigenvectors"},
    naming="LinalgEighBackward0",
    samples=[  # (complex eigenvectors are determined up to a phase only, on which a random cotangent would depend)
        call((3, 3), make="hermitian", UPLO="L", complex=False),
        call((2, 3, 3), make="hermitian", UPLO="U", complex=False),
    ],
    promotion="float",
    structure="ab:k,ij",
    remedy="the derivative of eigenvectors divides by differences of eigenvalues, and two of them are equal",
)
def eigh(x: AnyArray, *, UPLO: str) -> tuple[AnyArray, AnyArray]:
    """Return eigenvalues (ascending) and eigenvectors (in columns) of Hermitian matrices, read from one triangle.

    The gradient is Hermitian. Eigenvectors of equal eigenvalues are not determined, so their derivatives are infinite.
    Derivatives of the eigenvalues stay finite.
    """
    try:
        w, v = raw.eigh(x, UPLO)
    except raw.LinAlgError:
        raise _did_not_converge("linalg.eigh", x) from None
    return w, v


def _skew(x: AnyArray) -> AnyArray:
    return x - H(x)


def _svd_vjp(
    g: tuple[AnyArray, ...], u: AnyArray, s: AnyArray, vh: AnyArray, x_shape: tuple[int, ...], *, full_matrices: bool
) -> AnyArray:
    gu, gs, gvh = g
    m, n = x_shape[-2:]
    k = min(m, n)
    if full_matrices:
        for rest in (gu[..., k:], gvh[..., k:, :]):
            if is_array(rest) and rest.any():
                raise errors.svd_extra_columns()
        u, vh, gu, gvh = u[..., :k], vh[..., :k, :], gu[..., :k], gvh[..., :k, :]
    no_u, no_v = is_zero(gu), is_zero(gvh)
    if no_u and no_v:
        return (u * gs[..., None, :]) @ vh
    gaps = _gaps(s * s)
    core = _as_diagonal(gs)
    columns, rows = s[..., None, :], s[..., :, None]
    left = None if no_u else H(u) @ _cast_like(gu, u)
    right = None if no_v else vh @ H(_cast_like(gvh, vh))
    if left is not None:
        core = core + _off_diagonal(_skew(left) / gaps * columns)
    if right is not None:
        core = core + _off_diagonal(rows * (_skew(right) / gaps))
    if u.dtype.kind == "c":
        core = core + _as_diagonal(_phases(left, right, s))
    result = u @ core @ vh
    if left is not None and m > k:
        result = result + ((gu - u @ left) / columns) @ vh
    if right is not None and n > k:
        result = result + u @ ((gvh - H(right) @ vh) / rows)
    return result


def _phases(left: AnyArray, right: AnyArray, s: AnyArray) -> AnyArray:
    """Return the term for the relative phase of each pair of singular vectors. The loss must not depend on a common phase."""
    a = 0 if left is None else np.imag(_diagonal(left))
    b = 0 if right is None else np.imag(_diagonal(right))
    if is_array(a + b) and np.abs(a + b).max(initial=0) > 1e-2:
        raise errors.ill_defined_phase("svd", "singular vectors")
    return 1j * ((a - b) / (2 * s))


def _svd_jvp(
    t: AnyArray, u: AnyArray, s: AnyArray, vh: AnyArray, x_shape: tuple[int, ...], *, full_matrices: bool
) -> tuple[AnyArray, ...]:
    m, n = x_shape[-2:]
    k = min(m, n)
    more_u, more_vh = u[..., k:], vh[..., k:, :]
    u, vh = u[..., :k], vh[..., :k, :]
    columns, rows = s[..., None, :], s[..., :, None]
    tv = t @ H(vh)
    inner = H(u) @ tv
    gaps = _gaps(s * s)
    off_diagonal = _off_diagonal(inner)
    wide, tall = off_diagonal * columns, rows * off_diagonal
    du = (wide + H(wide)) / gaps
    dv = (tall + H(tall)) / gaps
    if u.dtype.kind == "c":
        phase = _as_diagonal(1j * (np.imag(_diagonal(inner)) / (2 * s)))
        du, dv = du + phase, dv - phase
    du, dvh = u @ du, H(dv) @ vh
    if m > k:
        du = du + (tv - u @ inner) / columns
    if n > k:
        dvh = dvh + (H(u) @ t - inner @ vh) / rows
    if full_matrices:  # the extra vectors are not determined, so they have no derivative
        du = np.concatenate([du, more_u * np.nan], axis=-1)
        dvh = np.concatenate([dvh, more_vh * np.nan], axis=-2)
    return du, np.real(_diagonal(inner)), dvh


_SVD_TEXT = (
    "u @ (np.eye(s.shape[-1]) * g[1][..., None]"
    " + (lambda P: (P - H(P)) / F * s[..., None, :])(H(u) @ g[0])"
    " + (lambda P: s[..., None] * (P - H(P)) / F)(vh @ H(g[2]))) @ vh"
    " + (g[0] - u @ H(u) @ g[0]) / s[..., None, :] @ vh + u @ ((g[2] - g[2] @ H(vh) @ vh) / s[..., None])"
)


@opaque(
    vjp=_svd_vjp,
    jvp=_svd_jvp,
    outputs=("u", "s", "vh"),
    formula="(lambda F: " + _SVD_TEXT + ")(s[..., None, :] ** 2 - s[..., None] ** 2 + np.eye(s.shape[-1]))",
    aliases={"x": "A", "u": "U", "s": "S", "vh": "Vh"},
    naming="LinalgSvdBackward0",
    samples=[  # (complex singular vectors are determined up to a phase only, on which a random cotangent would depend)
        call((3, 3), full_matrices=False, complex=False),
        call((4, 2), full_matrices=False, complex=False),
        call((2, 2, 3), full_matrices=False, complex=False),
    ],
    promotion="float",
    structure="ab:ij,k,lm",
    remedy="the derivative of singular vectors divides by differences of singular values, and two of them are equal",
)
def svd(x: AnyArray, *, full_matrices: bool) -> tuple[AnyArray, ...] | None:
    """Return the singular value decomposition u @ diag(s) @ vh.

    Singular vectors of equal singular values are not determined, so their derivatives are infinite.
    """
    try:
        u, s, vh = raw.svd(x, full_matrices)
    except raw.LinAlgError:
        raise _did_not_converge("linalg.svd", x) from None
    return u, s, vh


# -- qr --------------------------------------------------------------------------------------------------------------


def _tall_vjp(gq: AnyArray, gr: AnyArray, q: AnyArray, r: AnyArray) -> AnyArray | None:
    m = gr @ H(r) - H(q) @ gq
    upper = np.triu(m) - 0.5 * m * eye(shape_of(m)[-1], m)
    return over_transposed(gq + q @ (upper + H(upper)), r)


def _qr_vjp(
    g: tuple[AnyArray, ...], q: AnyArray, r: AnyArray, x_shape: tuple[int, ...], *, mode: str
) -> AnyArray | None:
    gq, gr = g
    m, n = x_shape[-2:]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols. Use mode='reduced': "
            "the extra columns of Q are not determined."
        )
    gq = _cast_like(gq, q)
    if m >= n:
        return _tall_vjp(gq, gr, q, r)
    first, rest = r[..., :m], r[..., m:]  # A = [A₁ A₂]: A₁ = q·first, and rest = qᴴ·A₂
    g_first, g_rest = gr[..., :m], gr[..., m:]
    left = _tall_vjp(gq + q @ rest @ H(g_rest), g_first, q, first)
    return np.concatenate([left, q @ g_rest], axis=-1)


def _tall_jvp(t: AnyArray, q: AnyArray, r: AnyArray) -> tuple[AnyArray, AnyArray]:
    scaled = over(t, r)
    m = H(q) @ scaled
    symmetric = m + H(m)
    d = np.triu(symmetric) - 0.5 * symmetric * eye(shape_of(m)[-1], m)
    return scaled - q @ d, d @ r


def _qr_jvp(t: AnyArray, q: AnyArray, r: AnyArray, x_shape: tuple[int, ...], *, mode: str) -> tuple[AnyArray, AnyArray]:
    m, n = x_shape[-2:]
    if mode == "complete" and m > n:
        raise errors.unsupported_rule(
            "qr", "JVP", "the extra columns of mode='complete' are not determined; use mode='reduced'"
        )
    if m >= n:
        return _tall_jvp(t, q, r)
    dq, d_first = _tall_jvp(t[..., :m], q, r[..., :m])
    d_rest = H(dq) @ q @ r[..., m:] + H(q) @ t[..., m:]
    return dq, np.concatenate([d_first, d_rest], axis=-1)


@opaque(
    vjp=_qr_vjp,
    jvp=_qr_jvp,
    outputs=("q", "r"),
    formula=(
        "(lambda q, r, gq, gr, tail: np.concatenate([(lambda M: (gq + q @ (M + H(M))) @ np.linalg.inv(H(r)))"
        "((lambda M: np.triu(M) * (1 - 0.5 * np.eye(M.shape[-1])))(gr @ H(r) - H(q) @ gq)), tail], axis=-1))"
        "(q, r[..., :q.shape[-1]], g[0] + q @ r[..., q.shape[-1]:] @ H(g[1][..., q.shape[-1]:]),"
        " g[1][..., :q.shape[-1]], q @ g[1][..., q.shape[-1]:])"
    ),
    aliases={"x": "A", "q": "Q", "r": "R"},
    naming="LinalgQrBackward0",
    samples=[
        call((3, 3), make="general", mode="reduced"),
        call((4, 2), make="general", mode="reduced"),
        call((2, 2, 3), make="general", mode="reduced"),
    ],
    promotion="float",
    structure="ab:ij,kl",
)
def qr(x: AnyArray, *, mode: str) -> tuple[AnyArray, ...]:
    """Return the QR decomposition: a matrix q with orthonormal columns and an upper triangular r."""
    q, r = raw.qr(x, mode)
    return q, r


# -- pseudoinverse ---------------------------------------------------------------------------------------------------


def _pinv_vjp(g: AnyArray, x: AnyArray, out: AnyArray) -> AnyArray:
    ph, gh = H(out), H(g)
    return -(ph @ g @ ph) + (gh - x @ (out @ gh)) @ out @ ph + ph @ out @ (gh - (gh @ out) @ x)


def _pinv_jvp(t: AnyArray, x: AnyArray, out: AnyArray) -> AnyArray:
    ph, th = H(out), H(t)
    return -(out @ t @ out) + out @ ph @ (th - (th @ x) @ out) + (th - out @ (x @ th)) @ ph @ out


@opaque(
    vjp=_pinv_vjp,
    jvp=_pinv_jvp,
    formula=(
        "-H(out) @ g @ H(out) + (np.eye(x.shape[-2]) - x @ out) @ H(g) @ out @ H(out)"
        " + H(out) @ out @ H(g) @ (np.eye(x.shape[-1]) - out @ x)"
    ),
    naming="LinalgPinvBackward0",
    samples=[call((3, 2), make="general", atol=0.0, rtol=1e-15), call((2, 2, 3), make="general", atol=0.0, rtol=1e-15)],
    promotion="float",
    structure="ab:ij",
)
def pinv(x: AnyArray, *, atol: float, rtol: TensorLike) -> AnyArray | None:
    """Return the Moore–Penrose pseudoinverse; singular values up to max(atol, rtol·largest) count as zero."""
    if 0 in x.shape[-2:]:
        return np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    u, s, vh = svd.value(x, full_matrices=False)
    nonzero = s > np.maximum(atol, rtol * s[..., :1])
    inverse = np.where(nonzero, 1 / np.where(nonzero, s, 1), 0).astype(s.dtype)
    return (H(vh) * inverse[..., None, :]) @ H(u)


# -- exponential -----------------------------------------------------------------------------------------------------

#: The Padé approximant of degree 13 and the norm up to which it is exact in float64: Higham (2005), "The scaling and
#: squaring method for the matrix exponential revisited".
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_THETA = 5.371920351148152


def _pade(a: AnyArray) -> AnyArray:
    b, eye = _PADE, np.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    return raw.solve(even - odd, even + odd)


def _directional(x: AnyArray, t: AnyArray) -> AnyArray:
    """Return the derivative of exp at x in direction t: the upper right block of exp([[x, t], [0, x]])."""
    n = shape_of(x)[-1]
    upper = np.concatenate([x, t], axis=-1)
    lower = np.concatenate([np.zeros_like(x), x], axis=-1)
    return matrix_exp(np.concatenate([upper, lower], axis=-2))[..., :n, n:]


@opaque(
    vjp=lambda g, x: _directional(H(x), g),
    jvp=lambda t, x: _directional(x, t),
    formula=(
        "matrix_exp(np.concatenate([np.concatenate([H(x), g], -1), np.concatenate([0 * g, H(x)], -1)], -2))"
        "[..., :x.shape[-1], x.shape[-1]:]"
    ),
    naming="LinalgMatrixExpBackward0",
    samples=[call((3, 3)), call((2, 2, 2))],
    promotion="float",
    structure="ab:ij",
)
def matrix_exp(x: Any) -> AnyArray:
    """Return the matrix exponential Σ xᵏ/k!, computed by scaling and squaring."""
    if not x.size:
        return x.copy()
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    norms = np.abs(wide).sum(-2).max(-1)
    if not np.isfinite(norms).all():
        return np.full_like(x, np.nan)
    halvings = np.maximum(np.ceil(np.log2(np.maximum(norms, 1e-300) / _THETA)), 0).astype(int)
    out = _pade(wide / np.exp2(halvings)[..., None, None])
    for k in range(int(halvings.max())):
        out = np.where((halvings > k)[..., None, None], out @ out, out)
    if not norms.all():  # the matrix is 0, so the series ends with its first term
        out = np.where((norms > 0)[..., None, None], out, np.eye(x.shape[-1]))
    return out.astype(x.dtype)
