"""jax.jit with lax.scan, JAX's form for programs with many steps."""

from typing import Any

import jax

import calls
import inputs
from callers.jax import VERSION as JAX
from works import Makers, Run

VERSION = f"{JAX} with lax.scan"


def lotka_volterra(steps: int) -> Run:
    parameters, start, observed, h = inputs.lotka_volterra(steps)

    def loss(parameters: Any) -> Any:
        def step(z: Any, _: None) -> tuple[Any, Any]:
            z = calls.runge_kutta(calls.lotka_volterra_slope(jax.numpy, parameters), z, h)
            return z, z

        path = jax.lax.scan(step, jax.numpy.asarray(start), None, length=steps)[1]
        return ((path - observed) ** 2).mean()

    gradient = jax.jit(jax.grad(loss, (0,)))
    return lambda: calls.in_hand(gradient(parameters))


WORKS: Makers = {"lotka_volterra": lotka_volterra}
