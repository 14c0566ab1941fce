"""HIPS autograd, which computes Jacobians of these sizes by a backward pass for each row."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import autograd.numpy as anp
from autograd import grad

from adbench_programs import Program, Tools, python_loop, works

VERSION = f"autograd {version('autograd')}"


def derive(program: Program) -> Any:
    return grad(program.f, tuple(range(len(program.parameters))))


tools = Tools(anp, loop=lambda step, carry, xs: python_loop(anp, step, carry, xs))
WORKS = works(tools, derive)
WORKS = {kind: make for kind, make in WORKS.items() if kind not in ("ba", "hand")}
