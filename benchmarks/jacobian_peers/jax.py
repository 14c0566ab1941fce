"""jax.jit of dense Jacobians, called with NumPy arrays, after compilation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from jacobian_problems import Entries, Run, problem, works

jax.config.update("jax_enable_x64", True)
VERSION = f"jax {jax.__version__}"


def by(transform: Any) -> Callable[[str, tuple[int, ...]], Run]:
    def make(kind: str, sizes: tuple[int, ...]) -> Run:
        f, x = problem(kind, sizes, jax.numpy, jax.numpy.asarray)
        derivative = jax.jit((jax.hessian if kind == "rosenbrock" else transform)(f))
        return lambda: [Entries(derivative(x).block_until_ready())]

    return make


WORKS = works({"jacfwd": by(jax.jacfwd), "jacrev": by(jax.jacrev)})
