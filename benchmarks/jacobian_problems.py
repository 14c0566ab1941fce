"""The problems of tests/jacobians for all libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.jacobians import problems
from tests.jacobians.problems import Problem

Given = Callable[[Any], Any]
Run = Callable[[], Any]
Makers = dict[str, Callable[..., Run]]

PROBLEMS: dict[str, Callable[..., Problem]] = {
    "brusselator": lambda xp, given, n: problems.brusselator(n, xp),
    "euler": lambda xp, given, n, steps: problems.euler_steps(n, steps, xp),
    "bratu": lambda xp, given, n: problems.bratu(n, xp),
    "mlp": lambda xp, given, *sizes: problems.mlp(*sizes, xp=xp, given=given),
    "exp": lambda xp, given, *sizes: problems.exp_of_product(*sizes, xp=xp, given=given),
    "times": lambda xp, given, n: problems.times(n, given),
    "outer": lambda xp, given, n: problems.outer(n, given),
    "arrowhead": lambda xp, given, n: problems.arrowhead(n, xp),
    "linear": lambda xp, given, m, n: problems.matrix_vector(m, n, given),
    "sine": lambda xp, given, m, n: problems.sine_of_product(m, n, xp, given),
    "rosenbrock": lambda xp, given, n: problems.rosenbrock(n),
    "cameras": lambda xp, given, *sizes: problems.bundle_adjustment(*sizes, xp=xp, given=given),
}


def problem(kind: str, sizes: tuple[int, ...], xp: Any = np, given: Given = np.asarray) -> Problem:
    return PROBLEMS[kind](xp, given, *sizes)


class Entries:
    """A Jacobian, dense or sparse, reduced to the sum of absolute values for comparisons between workers."""

    def __init__(self, entries: Any) -> None:
        self.entries = entries

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(np.abs(np.asarray(self.entries)).sum(), dtype)


def works(routes: dict[str, Callable[[str, tuple[int, ...]], Run]]) -> Makers:
    """Return the makers of all problems by all routes, named ``problem/route``; unsupported ones raise when created."""

    def maker(kind: str, route: str) -> Callable[..., Run]:
        return lambda *sizes: routes[route](kind, sizes)

    return {f"{kind}/{route}": maker(kind, route) for kind in PROBLEMS for route in routes}
