"""chainrule. Only prepared Jacobians are cached: each other call is a first call, without plans of earlier ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import chainrule
from chainrule._src.jacobians.plan_cache import clear_plans
from jacobian_problems import Entries, Run, problem, works

VERSION = f"chainrule {chainrule.__version__}"


def entries(J: Any) -> Entries:
    return Entries(J.data if hasattr(J, "indptr") else J)


class Structured(Entries):
    """A structured Jacobian, converted to an array only for comparisons."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self.entries = self.entries.to_scipy("csr").data
        return super().__array__(dtype, copy)


def first_call(kind: str, f: Callable[..., Any], x: Any, layout: str) -> Any:
    clear_plans()
    derivative: Any = chainrule.hessian if kind == "rosenbrock" else chainrule.jacobian
    return derivative(f, x, layout=layout)


def laid_out(layout: str) -> Callable[[str, tuple[int, ...]], Run]:
    def make(kind: str, sizes: tuple[int, ...]) -> Run:
        f, x = problem(kind, sizes)
        return lambda: [entries(first_call(kind, f, x, layout))]

    return make


def structured(kind: str, sizes: tuple[int, ...]) -> Run:
    f, x = problem(kind, sizes)
    if kind in ("exp", "mlp"):  # all blocks as one array
        return lambda: [Entries(first_call(kind, f, x, "structured").blocks)]
    return lambda: [Structured(first_call(kind, f, x, "structured"))]


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
