"""torch.compile, which generates C++ and needs a compiler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

import calls
from callers.torch import in_hand

VERSION = f"torch.compile {torch.__version__}"


def value_and_grad(f: Any) -> Any:
    gradient_first = torch.func.grad_and_value(f)
    return lambda *arguments: gradient_first(*arguments)[::-1]


func = SimpleNamespace(grad=torch.func.grad, value_and_grad=value_and_grad, jvp=torch.func.jvp, vmap=torch.func.vmap)
WORKS = calls.works(torch, func, torch.compile, given=torch.from_numpy, taken=in_hand)

torch.compile(lambda x: x + 1)(
    torch.ones(1)
)  # loads the compiler, which is not part of a first call; fails without one
