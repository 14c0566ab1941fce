"""``scipy.integrate.odeint``, with gradients by the adjoint equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray
from chainrule.compat.autograd.extend import defvjp_argnums, primitive
from chainrule.compat.autograd.misc.flatten import flatten
from chainrule.compat.autograd.tracing import make_vjp

__all__ = [
    "odeint",
]

odeint = primitive(scipy.integrate.odeint)


def _vjp(argnums: tuple[int, ...], ys: AnyArray, arguments: Any, options: Any) -> Callable[[Any], Any]:
    """Solve y, a = ∂L/∂y and ∂L/∂args together from the last time to the first: a′ = −(∂f/∂y)ᵀ a.

    At each output time, the gradient of the result at this time is added to a. Source: Froehlich, Loos, Hasenauer, "Scalable
    Inference of Ordinary Differential Equation Models of Biochemical Processes", https://arxiv.org/abs/1711.08079, section 2.4.2.
    """
    options = dict(options)
    func, y0, times = arguments[:3]
    args = arguments[3] if len(arguments) > 3 else options.pop("args", ())
    parameters, unflatten = flatten(args)
    n = len(y0)

    def backwards(state: AnyArray, t: float, parameters: AnyArray) -> AnyArray:
        def rate(given: tuple[AnyArray, ...]) -> object:
            y, t, parameters = given
            return func(y, t, *unflatten(parameters))

        pull, dy = make_vjp(rate, (state[:n], t, parameters))
        by_y, by_t, by_parameters = pull(-state[n : 2 * n])
        return np.concatenate([dy, by_y, np.reshape(by_t, (1,)), by_parameters])

    def vjp(g: AnyArray) -> list[Any]:
        adjoint, by_parameters, by_start = g[-1], np.zeros(len(parameters)), 0.0
        by_times = []
        for i in range(len(times) - 1, 0, -1):
            shift = np.sum(func(ys[i], times[i], *args) * g[i])
            by_times.append(shift)
            by_start = by_start - shift
            state = np.concatenate([ys[i], adjoint, np.reshape(by_start, (1,)), by_parameters])
            previous_state = odeint(backwards, state, times[[i, i - 1]], (parameters,), **options)[1]
            adjoint, by_start, by_parameters = (
                previous_state[n : 2 * n] + g[i - 1],
                previous_state[2 * n],
                previous_state[2 * n + 1 :],
            )
        found = (None, adjoint, np.stack([by_start, *by_times[::-1]]), unflatten(by_parameters))
        return [found[k] for k in argnums]

    return vjp


defvjp_argnums(odeint, _vjp)

show(globals())
