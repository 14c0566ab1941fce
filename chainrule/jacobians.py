"""Structured Jacobians: with the entries that exist, at the cost of those entries."""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "Jacobian": "result",
    "JacobianOperator": "operator",
    "Plan": "strategy",
    "PreparedJacobian": "prepared",
    "hessian": "api",
    "jacobian": "api",
    "jacobian_plan": "api",
    "prepare_jacobian": "prepared",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"chainrule._src.jacobians.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
