"""Hand-written forward and backward passes in NumPy, without the cost of recording.

Results overwrite arrays that are no longer needed, as in careful hand-written code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import inputs
from works import Makers, Run

VERSION = f"NumPy {np.__version__}"


def _tanh_vjp(g: inputs.Array, out: inputs.Array) -> inputs.Array:
    """Return g * (1 - out**2), computed in place in g."""
    slope = out * out
    np.subtract(1, slope, out=slope)
    g *= slope
    return g


def chain(size: int) -> Run:
    x = inputs.chain(size)

    def run() -> Any:
        y, inner, outs = x, [], []
        for _ in range(20):
            inner.append(y)
            y = y * x
            np.tanh(y, out=y)
            outs.append(y)
        y.sum()
        g, total = np.ones_like(x), np.zeros_like(x)
        for y, out in zip(reversed(inner), reversed(outs), strict=True):
            g = _tanh_vjp(g, out)
            total += g * y
            g *= x
        total += g
        return [total]

    return run


def mlp(batch: int, n_in: int, hidden: int, n_out: int) -> Run:
    x, target, (W1, W2, W3), (b1, b2, b3) = inputs.mlp(batch, n_in, hidden, n_out)

    def run() -> Any:
        h1 = x @ W1
        h1 += b1
        np.tanh(h1, out=h1)
        h2 = h1 @ W2
        h2 += b2
        np.tanh(h2, out=h2)
        error = h2 @ W3
        error += b3
        error -= target
        (error * error).mean()

        g = error
        g *= 2 / error.size
        dW3, db3 = h2.T @ g, g.sum(0)
        g = _tanh_vjp(g @ W3.T, h2)
        dW2, db2 = h1.T @ g, g.sum(0)
        g = _tanh_vjp(g @ W2.T, h1)
        dW1, db1 = x.T @ g, g.sum(0)
        return [dW1, dW2, dW3, db1, db2, db3]

    return run


def attention(batch: int, length: int, width: int) -> Run:
    x, Wq, Wk, Wv = inputs.attention(batch, length, width)
    flat = x.reshape(-1, width)
    scale = np.float32(width**-0.5)

    def project(W: inputs.Array) -> inputs.Array:
        return (flat @ W).reshape(x.shape)

    def run() -> Any:
        q, k, v = project(Wq), project(Wk), project(Wv)
        a = q @ k.mT
        a *= scale
        a -= a.max(-1, keepdims=True)
        np.exp(a, out=a)
        a /= a.sum(-1, keepdims=True)
        out = a @ v
        (out * out).mean()

        g = out
        g *= 2 / out.size
        dv = a.mT @ g
        da = g @ v.mT
        da -= (da * a).sum(-1, keepdims=True)
        da *= a
        da *= scale
        dq, dk, dv = (d.reshape(-1, width) for d in (da @ k, da.mT @ q, dv))
        dx = dq @ Wq.T
        dx += dk @ Wk.T
        dx += dv @ Wv.T
        return [dx.reshape(x.shape), flat.T @ dq, flat.T @ dk, flat.T @ dv]

    return run


WORKS: Makers = {"chain": chain, "mlp": mlp, "attention": attention}
