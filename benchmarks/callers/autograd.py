"""HIPS autograd, for complete optimizer runs and the functions that these call."""

from __future__ import annotations

from importlib.metadata import version

from autograd import value_and_grad

import calls
import inputs
from works import Makers, Run

VERSION = f"autograd {version('autograd')}"
both = value_and_grad(calls.rosenbrock)


def rosenbrock(size: int) -> Run:
    x = inputs.rosenbrock(size)
    return lambda: list(both(x))


def lbfgs(size: int) -> Run:
    return calls.lbfgs_run(both, size)


WORKS: Makers = {"rosenbrock": rosenbrock, "lbfgs": lbfgs}
