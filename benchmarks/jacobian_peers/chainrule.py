"""chainrule. Only prepared Jacobians are cached: each other call gets a new function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import chainrule
from jacobian_problems import Entries, Run, problem, works

VERSION = f"chainrule {chainrule.__version__}"


def entries(J: Any) -> Entries:
    return Entries(J.data if hasattr(J, "indptr") else J)


class Structured(Entries):
    """A structured Jacobian, converted to an array only for comparisons."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self.entries = self.entries.to_scipy("csr").data
        return super().__array__(dtype, copy)


def laid_out(layout: str) -> Callable[[str, tuple[int, ...]], Run]:
    def make(kind: str, sizes: tuple[int, ...]) -> Run:
        f, x = problem(kind, sizes)
        derivative: Any = chainrule.hessian if kind == "rosenbrock" else chainrule.jacobian
        return lambda: [entries(derivative(lambda x: f(x), x, layout=layout))]

    return make


def structured(kind: str, sizes: tuple[int, ...]) -> Run:
    f, x = problem(kind, sizes)
    derivative: Any = chainrule.hessian if kind == "rosenbrock" else chainrule.jacobian
    if kind in ("exp", "mlp"):  # all blocks as one array
        return lambda: [Entries(derivative(lambda x: f(x), x, layout="structured").blocks)]
    return lambda: [Structured(derivative(lambda x: f(x), x, layout="structured"))]


def prepared(layout: str) -> Callable[[str, tuple[int, ...]], Run]:
    def make(kind: str, sizes: tuple[int, ...]) -> Run:
        f, x = problem(kind, sizes)
        if kind == "rosenbrock":
            f = chainrule.grad(f)
        again = chainrule.prepare_jacobian(f, x, layout=layout)
        return lambda: [entries(again(x))]

    return make


WORKS = works(
    {
        "csr": laid_out("csr"),
        "dense": laid_out("dense"),
        "structured": structured,
        "prepared": prepared("csr"),
        "prepared dense": prepared("dense"),
    }
)
