"""torch.func, which computes dense Jacobians by rows or by columns; and by blocks for independent examples, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.func import hessian, jacfwd, jacrev, vmap

from jacobian_problems import Entries, Run, problem, works

VERSION = f"torch {torch.__version__}"
torch.set_default_dtype(torch.float64)


def by(transform: Any) -> Callable[[str, tuple[int, ...]], Run]:
    def make(kind: str, sizes: tuple[int, ...]) -> Run:
        f, x = problem(kind, sizes, torch, torch.from_numpy)
        derivative, point = (hessian if kind == "rosenbrock" else transform)(f), torch.from_numpy(x)
        return lambda: [Entries(derivative(point))]

    return make


WORKS = works({"jacrev": by(jacrev), "jacfwd": by(jacfwd), "vmap(jacrev)": by(lambda f: vmap(jacrev(f)))})
