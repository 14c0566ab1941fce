"""Optimizers for nested arrays. They take a function ``grad(x, i)``, the gradient in iteration i."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule.compat.autograd.misc.flatten import flatten
from chainrule.compat.autograd.wrap_util import wraps

__all__ = [
    "adam",
    "rmsprop",
    "sgd",
    "unflatten_optimizer",
]


def unflatten_optimizer(optimize: AnyFunction) -> AnyFunction:
    """Convert an optimizer of vectors to an optimizer of nested arrays."""

    @wraps(optimize)
    def of_nested(
        grad: AnyFunction,
        x0: dict[str, TensorLike],
        callback: AnyFunction | None = None,
        *args: object,
        **kwargs: object,
    ) -> object:
        vector, unflatten = flatten(x0)

        def step(x: AnyArray, i: int) -> Any:
            nested = unflatten(x)
            g = grad(nested, i)
            if callback:
                callback(nested, i, g)
            return flatten(g)[0]

        return unflatten(optimize(step, vector, None, *args, **kwargs))

    return of_nested


@unflatten_optimizer
def sgd(
    grad: AnyFunction,
    x: AnyArray,
    callback: object = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> AnyArray:
    """Run gradient descent with momentum: v ← mass v − (1 − mass) g, x ← x + step_size v."""
    velocity = np.zeros_like(x)
    for i in range(num_iters):
        velocity = mass * velocity - (1 - mass) * grad(x, i)
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: AnyFunction, x: AnyArray, callback: object = None, num_iters: int = 100, step_size: float = 0.1, gamma: float = 0.9,
    eps: float = 1e-8,
) -> AnyArray:  # fmt: skip
    """Run RMSprop: divide steps by the root of a running mean of the squared gradient."""
    mean_square = np.ones_like(x)
    for i in range(num_iters):
        g = grad(x, i)
        mean_square = gamma * mean_square + (1 - gamma) * g**2
        x = x - step_size * g / (np.sqrt(mean_square) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: AnyFunction, x: AnyArray, callback: object = None, num_iters: int = 100, step_size: float = 0.001, b1: float = 0.9,
    b2: float = 0.999, eps: float = 1e-8,
) -> AnyArray:  # fmt: skip
    """Run Adam (Kingma and Ba, https://arxiv.org/abs/1412.6980, algorithm 1)."""
    mean, mean_square = np.zeros_like(x), np.zeros_like(x)
    for i in range(1, num_iters + 1):
        g = grad(x, i - 1)
        mean = b1 * mean + (1 - b1) * g
        mean_square = b2 * mean_square + (1 - b2) * g**2
        x = x - step_size * (mean / (1 - b1**i)) / (np.sqrt(mean_square / (1 - b2**i)) + eps)
    return x


show(globals())
