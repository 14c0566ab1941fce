"""PyTorch: backward() of a scalar, torch.func for Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from adbench_programs import Program, Tools, derivative, python_loop, works

VERSION = f"torch {torch.__version__}"


def given(array: Any) -> Any:
    return torch.from_numpy(array)


def derive(program: Program) -> Callable[..., Any]:
    if program.jacobian:
        return derivative(program, torch.func)

    def gradient(*parameters: Any) -> Any:
        leaves = [x.detach().requires_grad_() for x in parameters]
        return torch.autograd.grad(program.f(*leaves), leaves)

    return gradient


tools = Tools(torch, given, lambda step, carry, xs: python_loop(torch, step, carry, xs))
WORKS = works(tools, derive, given)
