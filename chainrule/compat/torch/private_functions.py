"""Private functions that other libraries call as attributes of ``torch``."""

from __future__ import annotations

import importlib
from typing import Any

from chainrule._src.tape.tensor import Tensor

__all__ = ["_is_all_true", "_sample_dirichlet", "_standard_gamma"]


def _family(name: str) -> Any:
    return getattr(importlib.import_module("chainrule.distributions"), name)


def _standard_gamma(input: Tensor) -> Tensor:
    """Draw gamma variables of rate 1, differentiable in their concentrations."""
    return _family("Gamma")(input, 1.0, validate_args=False).rsample()


def _sample_dirichlet(input: Tensor) -> Tensor:
    """Draw proportions, differentiable in their concentrations (last axis)."""
    return _family("Dirichlet")(input, validate_args=False).rsample()


def _is_all_true(input: Tensor) -> Tensor:
    """Return whether all elements are true."""
    return input.all()
