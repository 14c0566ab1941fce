"""asdex: the pattern from JAX's program, a colouring, products compiled by XLA. A cold call includes all steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import asdex
import jax
import numpy as np

from jacobian_problems import Entries, Run, problem, works

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore", asdex.DenseColoringWarning)
VERSION = f"asdex {version('asdex')}"


def derivative(kind: str, f: Any, x: Any, layout: str) -> Any:
    make: Any = asdex.hessian if kind == "rosenbrock" else asdex.jacobian
    return make(lambda x: f(x), x, output_format=layout)


def cold(kind: str, sizes: tuple[int, ...]) -> Run:
    f, x = problem(kind, sizes, jax.numpy, jax.numpy.asarray)
    return lambda: [Entries(derivative(kind, f, x, "bcoo")(x).data.block_until_ready())]


def prepared(layout: str) -> Callable[[str, tuple[int, ...]], Run]:
    def make(kind: str, sizes: tuple[int, ...]) -> Run:
        f, x = problem(kind, sizes, jax.numpy, jax.numpy.asarray)
        again = jax.jit(derivative(kind, f, x, layout))
        if layout == "dense":
            return lambda: [Entries(again(x).block_until_ready())]
        return lambda: [Entries(again(x).data.block_until_ready())]

    return make


WORKS = works({"cold": cold, "prepared": prepared("bcoo"), "prepared dense": prepared("dense")})

# its internal compilation and JAX's initialization are not part of a first call
asdex.jacobian(lambda x: x[1:] * x[:-1], np.ones(4))(np.ones(4))
asdex.hessian(lambda x: (x[1:] * x[:-1]).sum(), np.ones(4))(np.ones(4))
