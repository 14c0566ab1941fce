"""The float32 input arrays of the benchmarks, the same for all libraries."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float32]]


def chain(size: int) -> Array:
    """Return values in 0.5..1.5, whose powers stay in the normal range."""
    return np.random.default_rng(0).uniform(0.5, 1.5, size).astype(np.float32)


def multiply(size: int) -> tuple[Array, Array]:
    return chain(size), chain(size)


def _weights(rng: np.random.Generator, rows: int, columns: int) -> Array:
    return (rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)


def mlp(batch: int, inputs: int, hidden: int, outputs: int) -> tuple[Array, Array, list[Array], list[Array]]:
    """Return input, target, three weight matrices and three biases."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((batch, inputs)).astype(np.float32)
    target = rng.standard_normal((batch, outputs)).astype(np.float32)
    widths = [inputs, hidden, hidden, outputs]
    weights = [_weights(rng, rows, columns) for rows, columns in pairwise(widths)]
    biases = [(rng.standard_normal(width) / 10).astype(np.float32) for width in widths[1:]]
    return x, target, weights, biases


def attention(batch: int, length: int, width: int) -> tuple[Array, Array, Array, Array]:
    """Return a batch of sequences, and the projections to queries, keys and values."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((batch, length, width)).astype(np.float32)
    return x, _weights(rng, width, width), _weights(rng, width, width), _weights(rng, width, width)


def double(size: int) -> Array:
    return chain(size)


SCALAR = np.float64(2.0)


def small() -> dict[str, Array]:
    """Return the operands of single statements."""
    return {
        "u": chain(3), "v": chain(3), "M": chain(9).reshape(3, 3), "s": chain(1).reshape(()), "B": chain(32).reshape(8, 4), "r": chain(4)
    }  # fmt: skip


def cnn(batch: int, size: int) -> tuple[Array, Any, list[Array]]:
    """Return images, their classes, and weights and biases of two convolutions and a linear layer."""
    rng = np.random.default_rng(3)
    last = 32 * (size // 4) ** 2
    shapes = [(16, 1, 3, 3), (16,), (32, 16, 3, 3), (32,), (last, 10), (10,)]
    images = rng.standard_normal((batch, 1, size, size)).astype(np.float32)
    return images, rng.integers(0, 10, batch), [(rng.standard_normal(s) / 10).astype(np.float32) for s in shapes]


def depthwise(batch: int, channels: int, size: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(4)
    shapes = ((batch, channels, size, size), (channels, 1, 3, 3))
    x, weight = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return x, weight


def oscillator() -> tuple[Any, Any, Any]:
    return np.array([1.0, 0.0]), np.array(1.0), np.array(1.0)


def gaussian_process(points: int) -> tuple[Any, Any, Any]:
    """Return points, values, and the logarithms of length, scale and noise."""
    where = np.linspace(0, 5, points)
    return where, np.sin(where), np.log([1.0, 1.0, 0.1])


def square(size: int) -> Any:
    return np.random.default_rng(5).standard_normal((size, size))


def rosenbrock(size: int) -> Any:
    """Return the starting point of SciPy's tutorial, repeated. All optimizers converge from it in about 40 steps."""
    return np.resize([1.3, 0.7, 0.8, 1.9, 1.2], size)


def lotka_volterra(steps: int) -> tuple[Any, Any, Any, float]:
    """Return the initial parameters, the initial state, the observations after each step, and the time step."""
    h = 20.0 / steps
    times = h * np.arange(1, steps + 1)
    observed = np.stack([10 + 4 * np.sin(times), 5 + 2 * np.cos(times)], -1)
    return np.array([1.1, 0.4, 0.4, 0.1]), np.array([10.0, 5.0]), observed, h
