"""Hand-written NumPy code, without the cost of automatic differentiation."""

from __future__ import annotations

from typing import Any

import numpy as np

import calls
import inputs
from peers import numpy as by_hand
from works import Makers, Run

VERSION = by_hand.VERSION


def value_and_grad(x: Any) -> list[Any]:
    low, high = x[:-1], x[1:]
    off, left = high - low**2, 1.0 - low
    gradient = np.zeros_like(x)
    gradient[:-1] = -400.0 * low * off - 2.0 * left
    gradient[1:] += 200.0 * off
    return [(100.0 * off**2 + left**2).sum(), gradient]


def rosenbrock(size: int) -> Run:
    x = inputs.rosenbrock(size)
    return lambda: value_and_grad(x)


def lbfgs(size: int) -> Run:
    return calls.lbfgs_run(value_and_grad, size)


WORKS: Makers = {
    "chain": by_hand.chain,
    "mlp": by_hand.mlp,
    "rosenbrock": rosenbrock,
    "lbfgs": lbfgs,
}
