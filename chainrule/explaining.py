"""Explanations: what a backward pass computes, as text, picture and page. Loaded when first asked for."""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "Arrow": "steps",
    "Contribution": "contributions",
    "Contributions": "contributions",
    "Explanation": "explanation",
    "Graph": "graph",
    "JacobianExplanation": "jacobian_terms",
    "Step": "steps",
    "Value": "steps",
    "explain": "entry",
    "record_lines": "lines",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"chainrule._src.explaining.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
