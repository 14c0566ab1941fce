"""Explanations of backward passes as text, picture and HTML page. This module is loaded on first use."""

from chainrule._src.api.public_modules import show
from chainrule._src.explaining.contributions import Contribution, Contributions
from chainrule._src.explaining.entry import explain
from chainrule._src.explaining.explanation import Explanation
from chainrule._src.explaining.graph import Graph
from chainrule._src.explaining.jacobian_explanation import JacobianExplanation
from chainrule._src.explaining.steps import Arrow, Step
from chainrule._src.explaining.values import Value

__all__ = [
    "Arrow",
    "Contribution",
    "Contributions",
    "Explanation",
    "Graph",
    "JacobianExplanation",
    "Step",
    "Value",
    "explain",
]

show(globals())
