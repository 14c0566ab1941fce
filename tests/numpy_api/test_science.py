"""Typical scientific programs in plain NumPy: value, gradient, tangent, second derivatives, ``vmap``.

The functions are written without regard to automatic differentiation. Values are compared with NumPy's, gradients with
differences, second derivatives with differences of gradients, ``vmap`` with a loop.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from chainrule.func import grad, hessian, jacrev, jvp, value_and_grad, vmap
from chainrule.tree import tree_flatten, tree_unflatten

special = pytest.importorskip("scipy.special")
R = np.random.default_rng(0).normal
PROGRAMS: list[Any] = []


def program(*args: Any) -> Callable[[Any], Any]:
    """Register a program with arguments for the tests; it is differentiated with respect to all of them."""

    def add(f: Any) -> Any:
        PROGRAMS.append(pytest.param(f, args, id=f.__name__))
        return f

    return add


xs = np.linspace(0, 2, 7)
ys = np.sin(xs)


@program(R(size=4))
def polyfit_loss(c):
    return np.sum((np.polyval(c, xs) - ys) ** 2)


@program(R(size=2), np.array(0.3))
def curve_fit_exp(ab, s):
    a, b = ab
    model = a * np.exp(-b * xs) + s
    res = model - ys
    return np.sqrt(np.mean(res**2))


@program(np.array([0.1, 0.5]), np.array(0.9))
def kalman(q, r):
    F = np.array([[1.0, 0.1], [0.0, 1.0]])
    H = np.array([[1.0, 0.0]])
    x = np.zeros((2, 1))
    Pm = np.eye(2)
    Q = np.diag(q)
    Rm = np.array([[1.0]]) * r
    ll = 0.0
    for z in ys:
        x = F @ x
        Pm = F @ Pm @ F.T + Q
        y = z - H @ x
        S = H @ Pm @ H.T + Rm
        K = Pm @ H.T @ np.linalg.inv(S)
        x = x + K @ y
        Pm = (np.eye(2) - K @ H) @ Pm
        ll += -0.5 * (np.log(np.linalg.det(2 * np.pi * S)) + (y.T @ np.linalg.inv(S) @ y)[0, 0])
    return ll


def lotka(y, t, p_):
    a, b, c, d = p_
    return np.array([a * y[0] - b * y[0] * y[1], -c * y[1] + d * y[0] * y[1]])


@program(np.array([1.0, 0.5, 0.7, 0.3]), np.array([1.0, 0.5]))
def rk4(p_, y0):
    h = 0.1
    y = y0
    out = []
    for _ in range(10):
        k1 = lotka(y, 0, p_)
        k2 = lotka(y + h / 2 * k1, 0, p_)
        k3 = lotka(y + h / 2 * k2, 0, p_)
        k4 = lotka(y + h * k3, 0, p_)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out.append(y)
    return np.sum(np.array(out, like=y) ** 2)


@program(np.array([1.0, 0.5]), np.array(0.4))
def euler_array(y0, mu):
    y = np.array([y0[0], y0[1]])
    for _ in range(5):
        x, v = y
        y = y + 0.1 * np.array([v, mu * (1 - x**2) * v - x])
    return np.sum(y)


@program(np.array([1.0, 0.5]), np.array(0.4))
def euler_fill(y0, mu):
    y = np.zeros((6, 2)) * y0
    y[0] = y0
    for k in range(5):
        y[k + 1, 0] = y[k, 0] + 0.1 * y[k, 1]
        y[k + 1, 1] = y[k, 1] - mu * np.sin(y[k, 0])
    return np.trapezoid(y[:, 0])


@program(R(size=12), np.array(0.2))
def heat(u0, alpha):
    u = u0.copy()
    for _ in range(8):
        u[1:-1] += alpha * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0] = 0.0
        u[-1] = u[-2]
    return np.sum(u**2)


@program(R(size=(6, 6)), np.array(0.1))
def heat2d(u, a):
    u = u.copy()
    for _ in range(3):
        un = u.copy()
        u[1:-1, 1:-1] = un[1:-1, 1:-1] + a * (
            un[2:, 1:-1] + un[:-2, 1:-1] + un[1:-1, 2:] + un[1:-1, :-2] - 4 * un[1:-1, 1:-1]
        )
    return np.linalg.norm(u)


@program(np.abs(R(size=4)) + 0.5)
def fem(k):
    n = 5
    K = np.zeros((n, n)) + 0 * k[0]
    for e in range(4):
        ix = [e, e + 1]
        ke = k[e] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        K[np.ix_(ix, ix)] += ke
    f = np.zeros(n)
    f[-1] = 1.0
    free = np.arange(1, n)
    u = np.zeros_like(K[0])
    u[free] = np.linalg.solve(K[np.ix_(free, free)], f[free])
    return f @ u


@program(np.abs(R(size=4)) + 0.5)
def fem_addat(k):
    K = np.zeros_like(k, shape=(5, 5))
    i = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    ke = k[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    np.add.at(K, (i[:, :, None], i[:, None, :]), ke)
    return np.linalg.slogdet(K + np.eye(5))[1]


@program(np.array([0.3, -0.2, -1.0]), R(size=(5, 2)))
def gp(theta, X):
    amp, ls, noise = np.exp(theta)
    d2 = np.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=-1)
    K = amp * np.exp(-0.5 * d2 / ls**2) + noise * np.eye(len(X))
    L = np.linalg.cholesky(K)
    y = np.arange(5.0) / 5
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return -0.5 * y @ alpha - np.sum(np.log(np.diag(L))) - len(y) / 2 * np.log(2 * np.pi)


def lse(a, axis=None):
    m = np.max(a, axis=axis, keepdims=True)
    return np.squeeze(m + np.log(np.sum(np.exp(a - m), axis=axis, keepdims=True)), axis=axis)


@program(R(size=(3, 3)), R(size=(3, 4)), R(size=3))
def hmm(A, B, pi):
    logA = A - lse(A, axis=1)[:, None]
    logB = B - lse(B, 1)[:, np.newaxis]
    logpi = pi - lse(pi)
    obs = [0, 2, 3, 1, 1]
    alpha = logpi + logB[:, obs[0]]
    for o in obs[1:]:
        alpha = lse(alpha[:, None] + logA, axis=0) + logB[:, o]
    return lse(alpha)


X = R(size=(8, 3))
yl = (R(size=8) > 0).astype(float)


@program(R(size=3), np.array(0.1))
def logistic(w, b):
    z = X @ w + b
    pr = 1 / (1 + np.exp(-z))
    return -np.mean(yl * np.log(pr) + (1 - yl) * np.log(1 - pr)) + 0.01 * np.dot(w, w)


@program(R(size=(3, 4)))
def softmax_ce(W):
    logits = X @ W
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    pr = e / e.sum(axis=1, keepdims=True)
    lab = np.arange(8) % 4
    onehot = np.eye(4)[lab]
    return -np.log(pr[np.arange(8), lab]).mean() + np.sum(onehot * pr)


@program(R(size=(6, 3)))
def pca(Y):
    Yc = Y - Y.mean(axis=0)
    s = np.linalg.svd(Yc, full_matrices=False)[1]
    return s[0] ** 2 / np.sum(s**2)


@program(R(size=(6, 3)))
def pca_cov(Y):
    C = np.cov(Y, rowvar=False)
    w, v = np.linalg.eigh(C)
    order = np.argsort(w)[::-1]
    proj = Y @ v[:, order][:, :2]
    return np.sum(proj**2) + w[order][0]


@program({"W1": R(size=(3, 5)), "b1": R(size=5), "layers": [R(size=(5, 1)), R(size=1)]})
def mlp(params):
    h = np.tanh(X @ params["W1"] + params["b1"])
    h = np.where(h > 0, h, 0.1 * h)
    W, b = params["layers"]
    out = h @ W + b
    return np.mean((out[:, 0] - yl) ** 2) + sum(np.sum(v**2) for k, v in params.items() if k != "layers")


@program(np.array(100.0), np.array(105.0), np.array(1.0), np.array(0.05), np.array(0.2))
def black_scholes(S, K, T, r, sigma):
    d1 = (np.log(S / K) + (r + sigma**2 / 2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)
    N = lambda x: 0.5 * (1 + special.erf(x / np.sqrt(2)))
    return S * N(d1) - K * np.exp(-r * T) * special.ndtr(d2)


@program(R(size=(5, 3)) * 2)
def lj(x):
    i, j = np.triu_indices(len(x), k=1)
    d = x[i] - x[j]
    r2 = np.einsum("ij,ij->i", d, d)
    s6 = 1 / r2**3
    return 4 * np.sum(s6**2 - s6)


@program(np.linspace(0, 3, 4), np.linspace(1, 2, 3))
def mesh(a, b):
    A, B = np.meshgrid(a, b, indexing="ij")
    return np.sum(np.sin(A) * B) + np.outer(a, b).sum() + np.hypot(A, B).mean()


@program(R(size=8), R(size=3))
def conv_hand(x, k):
    out = np.zeros(len(x) - len(k) + 1, dtype=x.dtype) + 0 * x[0]
    for i in range(len(out)):
        out[i] = np.dot(x[i : i + len(k)], k[::-1])
    return np.sum((out - np.convolve(x, k, mode="valid") * 2) ** 2)


@program(np.array(2.0), np.array(5.0))
def newton(x0, a):
    x = x0
    n = 0
    while abs(x * x - a) > 1e-13 and n < 50:
        x = x - (x * x - a) / (2 * x)
        n += 1
    return x


@program(R(size=6))
def bspline(c):
    t = np.r_[0, 0, 0, 1, 2, 3, 4, 4, 4.0]

    def B(i, k, x):
        if k == 0:
            return np.where((t[i] <= x) & (x < t[i + 1]), 1.0, 0.0)
        a = 0.0 if t[i + k] == t[i] else (x - t[i]) / (t[i + k] - t[i]) * B(i, k - 1, x)
        b = 0.0 if t[i + k + 1] == t[i + 1] else (t[i + k + 1] - x) / (t[i + k + 1] - t[i + 1]) * B(i + 1, k - 1, x)
        return a + b

    x = np.linspace(0, 3.9, 9)
    s = sum(c[i] * B(i, 2, x) for i in range(6))
    return np.sum(s**2)


@program(R(size=4), R(size=3))
def quaternion(q, v):
    q = q / np.linalg.norm(q)
    w, u = q[0], q[1:]
    r = v + 2 * np.cross(u, np.cross(u, v) + w * v)
    return r @ np.array([1.0, 2.0, 3.0])


@program(np.array([0.1, 0.2, 0.3]))
def rotation_matrix(a):
    cx, cy, cz = np.cos(a)
    sx, sy, sz = np.sin(a)
    Rz = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    Ry = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    Rx = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    return np.sum((Rz @ Ry @ Rx) @ np.array([1.0, 2.0, 3.0]))


@program(R(size=16), R(size=9))
def fft_filter(x, h):
    f = np.fft.rfft(x)
    y = np.fft.irfft(f * h, n=len(x))
    return np.sum(y**2) + np.abs(np.fft.fft(x)[2]) ** 2 + np.angle(f[1])


@program(np.abs(R(size=5)) + 0.1)
def cumprods(r):
    w = np.cumprod(1 + r)
    d = np.diff(np.log(w))
    peak = np.maximum.accumulate(w)
    return np.sum(w) + np.prod(d) + np.min(w / peak - 1) + np.cumsum(r[::-1])[::-1].sum()


@program(R(size=(4, 5)))
def dtw(D):
    n, m = D.shape
    C = np.full((n + 1, m + 1), np.inf) * np.ones_like(D[0, 0])
    C[0, 0] = 0.0
    for i in range(n):
        for j in range(m):
            C[i + 1, j + 1] = D[i, j] ** 2 + min(C[i, j], C[i, j + 1], C[i + 1, j])
    return C[n, m]


@program(R(size=(4, 5)))
def soft_dtw_lists(D):
    n, m = D.shape
    C = [[None] * (m + 1) for _ in range(n + 1)]
    for i in range(n + 1):
        for j in range(m + 1):
            C[i][j] = 0.0 if i == j == 0 else 1e3
    for i in range(n):
        for j in range(m):
            C[i + 1][j + 1] = D[i, j] ** 2 - np.log(np.exp(-C[i][j]) + np.exp(-C[i][j + 1]) + np.exp(-C[i + 1][j]))
    return C[n][m]


@program(R(size=6))
def ranking(s):
    rel = np.array([3.0, 1.0, 0.0, 2.0, 1.0, 0.0])
    diff = s[:, None] - s
    mask = rel[:, None] > rel
    hinge = np.log1p(np.exp(-diff[mask]))
    return hinge.sum() + np.sort(s)[-3:].sum() + np.median(s) + np.percentile(s, 30)


@program(np.array(5.0), np.array(1e-1), np.array(0.2))
def impedance(Rr, L, C):
    w = np.array([1.0, 2.0, 5.0])
    Z = Rr + 1j * w * L + 1 / (1j * w * C)
    H = Rr / Z
    return np.sum(20 * np.log10(np.abs(H))) + np.sum(np.real(H * np.conj(H))) + np.sum(H.imag)


@program(R(size=5))
def rosen(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


@program(R(size=(5, 2)), R(size=(3, 2)))
def kmeans_soft(X_, C):
    d = np.linalg.norm(X_[:, None] - C[None], axis=2)
    return np.sum(np.min(d, axis=1)) + np.mean(d[np.arange(5), np.argmin(d, axis=1)] ** 2)


@program(R(size=(3, 2)), np.abs(R(size=2)) + 0.2, np.abs(R(size=2)) + 0.1)
def gmm(mu_like, s, w):
    x = np.linspace(-2, 2, 6)
    mu = mu_like[0]
    w = w / w.sum()
    logp = -0.5 * ((x[:, None] - mu) / s) ** 2 - np.log(s) - 0.5 * np.log(2 * np.pi)
    return np.logaddexp(logp[:, 0] + np.log(w[0]), logp[:, 1] + np.log(w[1])).sum()


@program(R(size=7))
def tv_huber(u):
    d = np.diff(u)
    a = np.abs(d)
    hub = np.where(a < 0.5, 0.5 * d**2, 0.5 * (a - 0.25))
    return hub.sum() + np.sum(np.sqrt(d**2 + 1e-3)) + np.gradient(u, 0.1).var()


@program(np.array([5.0, 3.0]), np.array(2.0))
def poisson_ll(lam, b):
    k = np.array([3.0, 4.0])
    return np.sum(k * np.log(lam) - lam - special.gammaln(k + 1)) + special.gammaln(b * lam).sum()


@program(R(size=(4, 4)))
def gauss_elim(A):
    A = A + 4 * np.eye(4)
    n = len(A)
    b = np.ones(n)
    M = np.hstack([A, b.reshape(-1, 1)])
    for i in range(n):
        M[i] = M[i] / M[i, i]
        for j in range(i + 1, n):
            M[j] -= M[j, i] * M[i]
    x = np.zeros(n) + 0 * A[0]
    for i in range(n - 1, -1, -1):
        x[i] = M[i, -1] - M[i, i + 1 : n] @ x[i + 1 : n]
    return np.sum(x**2)


@program(R(size=(5, 5)))
def cholesky_hand(B):
    A = B @ B.T + 5 * np.eye(5)
    L = np.zeros_like(A)
    for i in range(5):
        for j in range(i + 1):
            s = A[i, j] - np.sum(L[i, :j] * L[j, :j])
            L[i, j] = np.sqrt(s) if i == j else s / L[j, j]
    return np.log(L.diagonal()).sum() * 2


@program(R(size=(3, 3)))
def power_iteration(A):
    A = A @ A.T
    v = np.ones(3)
    for _ in range(40):
        v = A @ v
        v /= np.linalg.norm(v)
    return v @ A @ v


@program(R(size=6))
def interp_table(y):
    return (
        np.interp(np.array([0.3, 1.7, 4.2]), np.arange(6.0), y).sum()
        + np.trapezoid(y, dx=0.5)
        + np.polyfit(np.arange(6.0), y, 2)[0]
    )


@program(R(size=10))
def autocorr(x):
    x = x - x.mean()
    n = len(x)
    r = np.correlate(x, x, mode="full")[n - 1 :]
    return (r / r[0])[1:4].sum() + np.corrcoef(x[:-1], x[1:])[0, 1]


@program(R(size=(4, 4)))
def game_of_roll(u):
    lap = np.roll(u, 1, 0) + np.roll(u, -1, axis=0) + np.roll(u, 1, axis=1) + np.roll(u, -1, axis=1) - 4 * u
    return (
        np.sum(lap * np.tanh(u))
        + np.pad(u, 1, mode="edge").sum()
        + np.tile(u, (2, 1)).mean()
        + np.kron(u[:2, :2], np.ones((2, 2))).std()
    )


@program(R(size=4), R(size=4))
def vectors(a, b):
    cosang = np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))
    return (
        np.arccos(np.clip(cosang, -1, 1))
        + np.arctan2(a[1], b[0])
        + np.vdot(a, b)
        + np.inner(a, b)
        + np.linalg.norm(a - b, 1)
        + np.linalg.norm(a, np.inf)
    )


@program(R(size=(4, 3)))
def layer_norm_attention(Q):
    mu = Q.mean(-1, keepdims=True)
    sd = Q.std(-1, keepdims=True)
    Q = (Q - mu) / (sd + 1e-5)
    S = Q @ Q.T / np.sqrt(Q.shape[-1])
    S = np.where(np.tril(np.ones((4, 4))) == 1, S, -np.inf)
    Aw = np.exp(S - S.max(-1, keepdims=True))
    Aw /= Aw.sum(-1, keepdims=True)
    return np.sum((Aw @ Q) ** 2 * np.arange(3))


@program(R(size=(2, 5, 5)), R(size=(2, 3, 3)))
def conv2d_windows(x, k):
    w = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    y = np.einsum("cijkl,ckl->ij", w, k)
    y = np.maximum(y, 0)
    return y[:2, :2].reshape(1, 2, 1, 2).max(axis=(1, 3)).sum() + np.tensordot(x, x, axes=3)


@program(np.array([0.4, 0.3]), np.array([[0.9, 0.1], [0.2, 0.8]]))
def markov(p0, T):
    T = T / T.sum(axis=1)[:, None]
    pi = p0
    for _ in range(4):
        pi = pi @ T
    return -np.sum(pi * np.log(pi)) + np.linalg.matrix_power(T, 3)[0, 1]


@program(np.array([1.0, 2.0]), np.array(0.7))
def pendulum_energy(q, m):
    T = 0.5 * m * (q[1]) ** 2
    V = m * 9.81 * (1 - np.cos(q[0]))
    return T - V if T > 0 else V


@program(R(size=5))
def histogram_soft(x):
    edges = np.linspace(-2, 2, 5)
    h = np.sum(special.expit((x[:, None] - edges[:-1]) / 0.1) - special.expit((x[:, None] - edges[1:]) / 0.1), axis=0)
    pdf = h / h.sum()
    return -(pdf * np.log(pdf + 1e-12)).sum()


@program(R(size=3))
def chebyshev(c):
    x = np.linspace(-1, 1, 5)
    T = [np.ones_like(x), x]
    for _ in range(2, 3):
        T.append(2 * x * T[-1] - T[-2])
    V = np.column_stack(T)
    return np.sum((V @ c - np.exp(x)) ** 2) + np.vander(x, 3) @ c @ x


@program(np.array([0.5, 1.5]), np.array([2.0, 3.0]))
def verlet(x, v):
    traj = np.empty((5, 2), dtype=x.dtype) * x
    a = -x
    for n in range(5):
        v_half = v + 0.05 * a
        x = x + 0.1 * v_half
        a = -x / (1 + np.sum(x**2))
        v = v_half + 0.05 * a
        traj[n] = x
    return np.nansum(traj[-1] ** 2) + np.ptp(traj[:, 0])


@program(np.abs(R(size=4)) + 0.1)
def portfolio(w):
    w = w / np.sum(w)
    C = np.array([[0.1, 0.02, 0.01, 0], [0.02, 0.2, 0, 0.03], [0.01, 0, 0.15, 0.01], [0, 0.03, 0.01, 0.12]])
    mu = np.array([0.05, 0.1, 0.07, 0.06])
    var = w.T.dot(C).dot(w)
    return (mu @ w - 0.02) / np.sqrt(var) - np.sum(np.square(w))


@program(R(size=6))
def ewma(x):
    s = x[0]
    hist = [s]
    for v in x[1:]:
        s = 0.3 * v + 0.7 * s
        hist.append(s)
    hist = np.array(hist)
    return np.sum(hist**2)


@program(R(size=6))
def argmax_pick(x):
    i = int(np.argmax(x))
    lo, hi = max(0, i - 1), min(len(x), i + 2)
    return x[lo:hi].sum() + sorted(x)[0] * 2 + max(x) + sum(x) + np.unique(x)[1] + x[x.argsort()[:2]].prod()


# -- comparisons ----------------------------------------------------------------------------------------------------


class Flat:
    """A program as a function of one vector."""

    def __init__(self, f: Any, args: Any) -> None:
        self.f, self.args = f, args
        self.leaves, self.spec = tree_flatten(args)
        self.point = np.concatenate([np.ravel(x) for x in self.leaves])

    def split(self, v: Any) -> Any:
        cuts = np.cumsum([x.size for x in self.leaves])
        parts = [
            v[end - x.size : end].reshape(x.shape) if x.shape else v[end - 1]
            for x, end in zip(self.leaves, cuts, strict=True)
        ]
        return tree_unflatten(parts, self.spec)

    def __call__(self, v: Any) -> Any:
        return self.f(*self.split(v))

    def gradient(self, v: Any) -> Any:
        found = grad(self.f, tuple(range(len(self.args))))(
            *[np.array(x) if np.isscalar(x) else x for x in self.split(v.copy())]
        )
        return np.concatenate([np.ravel(x) for x in tree_flatten(found)[0]])


def differences(f: Any, v: Any, step: float) -> Any:
    return np.array([(f(v + d) - f(v - d)) / (2 * step) for d in step * np.eye(len(v))])


def close(found: Any, expected: Any, tolerance: float) -> None:
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_derivatives(f: Any, args: Any) -> None:
    flat = Flat(f, args)
    kept = copy.deepcopy(args)
    value, found = value_and_grad(f, tuple(range(len(args))))(*args)
    np.testing.assert_allclose(value, f(*copy.deepcopy(args)), rtol=1e-14)
    leaves = tree_flatten(found)[0]
    assert [(type(g), g.shape, g.dtype) for g in leaves] == [(np.ndarray, x.shape, x.dtype) for x in flat.leaves]
    slope = differences(flat, flat.point, 1e-6)
    close(flat.gradient(flat.point), slope, 1e-5)
    direction = np.cos(np.arange(len(flat.point)))
    close(jvp(flat, (flat.point,), (direction,))[1], slope @ direction, 1e-5)
    curvature = differences(flat.gradient, flat.point, 1e-5)
    close(hessian(flat)(flat.point), curvature, 1e-4)
    close(jacrev(grad(flat))(flat.point), curvature, 1e-4)
    for x, y in zip(tree_flatten(kept)[0], flat.leaves, strict=True):
        np.testing.assert_array_equal(x, y)  # without side effects


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_vmap(f: Any, args: Any) -> None:
    flat = Flat(f, args)
    rows = np.stack([flat.point, flat.point * 1.05, flat.point * 0.98])
    if f.__name__ in BRANCHES:
        with pytest.raises(RuntimeError, match=r"vmap: (the truth|int\(\)) of an array.*test_science"):
            vmap(flat)(rows.copy())
        return
    close(vmap(flat)(rows.copy()), [flat(row) for row in rows], 1e-13)
    close(vmap(grad(flat))(rows.copy()), [flat.gradient(row) for row in rows], 1e-12)


BRANCHES = ("newton", "dtw", "pendulum_energy", "argmax_pick")  # on values, which differ between the examples of vmap
