"""MyGrad with its defaults, which reset a gradient when its tensor enters a new graph. It has no double backward."""

from __future__ import annotations

from typing import Any

import mygrad as mg

import inputs
from works import Makers, Run

VERSION = f"mygrad {mg.__version__}"


def multiply(size: int, times: int) -> Run:
    x, z = map(mg.tensor, inputs.multiply(size))
    counter = range(times)

    def run() -> Any:
        for _ in counter:
            y = x * z
        return [y.data]

    return run


def chain(size: int) -> Run:
    x = mg.tensor(inputs.chain(size))

    def run() -> Any:
        y = x
        for _ in range(20):
            y = mg.tanh(y * x)
        y.sum().backward()
        return [x.grad]

    return run


def mlp(batch: int, n_in: int, hidden: int, n_out: int) -> Run:
    x, target, weights, biases = inputs.mlp(batch, n_in, hidden, n_out)
    W1, W2, W3 = map(mg.tensor, weights)
    b1, b2, b3 = map(mg.tensor, biases)

    def run() -> Any:
        h = mg.tanh(x @ W1 + b1)
        h = mg.tanh(h @ W2 + b2)
        error = h @ W3 + b3 - target
        (error * error).mean().backward()
        return [p.grad for p in (W1, W2, W3, b1, b2, b3)]

    return run


WORKS: Makers = {"multiply": multiply, "chain": chain, "mlp": mlp}
