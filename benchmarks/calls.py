"""Calls of compiled gradients, written once for all libraries with NumPy's functions and JAX's transformations.

A call takes NumPy arrays, like a call by an optimizer, and includes the conversion of its results to NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

import inputs
from works import Makers, Run

Arrays = Sequence[Any]


def in_hand(results: Arrays) -> list[Any]:
    return [np.asarray(result) for result in results]


def chain_loss(xp: Any) -> Callable[..., Any]:
    def loss(x: Any) -> Any:
        y = x
        for _ in range(20):
            y = xp.tanh(y * x)
        return y.sum()

    return loss


def mlp_loss(xp: Any) -> Callable[..., Any]:
    def loss(W1: Any, W2: Any, W3: Any, b1: Any, b2: Any, b3: Any, x: Any, target: Any) -> Any:
        h = xp.tanh(x @ W1 + b1)
        h = xp.tanh(h @ W2 + b2)
        return ((h @ W3 + b3 - target) ** 2).mean()

    return loss


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def lotka_volterra_slope(xp: Any, parameters: Any) -> Callable[[Any], Any]:
    a, b, c, d = parameters[0], parameters[1], parameters[2], parameters[3]

    def slope(z: Any) -> Any:
        prey, predators = z[0], z[1]
        return xp.stack([prey * (a - b * predators), predators * (d * prey - c)])

    return slope


def runge_kutta(slope: Callable[[Any], Any], z: Any, h: float) -> Any:
    k1 = slope(z)
    k2 = slope(z + h / 2 * k1)
    k3 = slope(z + h / 2 * k2)
    k4 = slope(z + h * k3)
    return z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lotka_volterra_loss(xp: Any, start: Any, observed: Any, h: float) -> Callable[[Any], Any]:
    """Return the misfit of a four-parameter model, integrated by the classical Runge–Kutta method."""

    def loss(parameters: Any) -> Any:
        slope = lotka_volterra_slope(xp, parameters)
        z, path = start, []
        for _ in range(len(observed)):
            z = runge_kutta(slope, z, h)
            path.append(z)
        return ((xp.stack(path) - observed) ** 2).mean()

    return loss


def lbfgs_run(value_and_grad: Any, size: int) -> Run:
    """Return a complete run of SciPy's L-BFGS; without `value_and_grad` it uses finite differences."""
    x0 = inputs.rosenbrock(size)
    if value_and_grad is None:
        return lambda: [minimize(rosenbrock, x0, method="L-BFGS-B", options={"maxfun": 1_000_000}).x]
    return lambda: [minimize(value_and_grad, x0, jac=True, method="L-BFGS-B").x]


def works(
    xp: Any,
    func: Any,
    compiled: Callable[[Any], Any],
    given: Callable[[Any], Any] = lambda array: array,
    taken: Callable[[Arrays], Arrays] = in_hand,
) -> Makers:
    """Return the makers of all works. `given` converts arrays before the measurement; `taken` is part of the call."""

    def call(f: Callable[..., Arrays], *arrays: Any) -> Run:
        g, arguments = compiled(f), [given(array) for array in arrays]
        return lambda: taken(g(*arguments))

    def chain(size: int) -> Run:
        return call(func.grad(chain_loss(xp), (0,)), inputs.chain(size))

    def network(*sizes: int) -> tuple[Any, Any, list[Any]]:
        x, target, weights, biases = inputs.mlp(*sizes)
        return x, target, [*weights, *biases]

    def mlp(*sizes: int) -> Run:
        x, target, parameters = network(*sizes)
        return call(func.grad(mlp_loss(xp), tuple(range(6))), *parameters, x, target)

    def hvp(*sizes: int) -> Run:
        x, target, parameters = network(*sizes)
        x, target = given(x), given(target)
        gradient = func.grad(mlp_loss(xp), tuple(range(6)))

        def product(*arrays: Any) -> Any:
            return func.jvp(lambda *each: gradient(*each, x, target), arrays[:6], arrays[6:])[1]

        return call(product, *parameters, *parameters)

    def per_sample(*sizes: int) -> Run:
        x, target, parameters = network(*sizes)
        gradient = func.grad(mlp_loss(xp), tuple(range(6)))

        def gradients(*arrays: Any) -> Any:
            return func.vmap(lambda one, its_target: gradient(*arrays[:6], one, its_target))(*arrays[6:])

        return call(gradients, *parameters, x, target)

    def value_and_grad(size: int) -> Run:
        return call(func.value_and_grad(rosenbrock), inputs.rosenbrock(size))

    def lbfgs(size: int) -> Run:
        g = compiled(func.value_and_grad(rosenbrock))
        return lbfgs_run(lambda x: taken(g(given(x))), size)

    def lotka_volterra(steps: int) -> Run:
        parameters, start, observed, h = inputs.lotka_volterra(steps)
        loss = lotka_volterra_loss(xp, given(start), given(observed), h)
        return call(func.grad(loss, (0,)), parameters)

    return {
        "chain": chain,
        "mlp": mlp,
        "hvp": hvp,
        "per_sample": per_sample,
        "rosenbrock": value_and_grad,
        "lbfgs": lbfgs,
        "lotka_volterra": lotka_volterra,
    }
