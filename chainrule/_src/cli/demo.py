"""``chainrule demo``: show and run a short tour."""

from __future__ import annotations

import ast
import linecache
from argparse import Namespace
from typing import Any

from chainrule._src.arrays.types import Params
from chainrule._src.cli.outcome import OK
from chainrule._src.cli.show import Console

#: The title and program of each part of the tour. The value of a program's last line is printed.
TOUR = (
    (
        "A gradient of a NumPy program: X.grad, as in PyTorch",
        """\
import numpy as np
import chainrule as cr

X = cr.tensor(np.array([[2., 1, -3], [-3, 4, 2]]), requires_grad=True)
W = cr.tensor(np.array([[3., 2, 1, -1], [2, 1, 3, 2], [3, 2, 1, -2]]))
Y = np.exp(X @ W)
G = cr.tensor([[2, 3, -3, 9], [-8, 1, 4, 6]])
Y.backward(G, retain_graph=True)
X.grad
""",
    ),
    (
        "The same gradient, explained step by step",
        """\
cr.explain(Y, grad=G, wrt=X)
""",
    ),
    (
        "A second derivative: sin'' is -sin",
        """\
t = cr.tensor(np.linspace(0, 3, 4))
cr.vmap(cr.func.grad(cr.func.grad(cr.sin)))(t) + cr.sin(t)
""",
    ),
    (
        "A fit of a exp(-b t) by the Gauss-Newton method, with exact Jacobians",
        """\
t = np.linspace(0, 4, 20)
data = 2.5 * np.exp(-1.3 * t)

def residuals(p):
    return p[0] * np.exp(-p[1] * t) - data

p = cr.tensor(np.array([1., 0.5]))
for step in range(8):
    J = cr.func.jacrev(residuals)(p)
    p = p - cr.linalg.solve(J.T @ J, J.T @ residuals(p))
p
""",
    ),
)


def run(options: Namespace) -> int:
    """Show and run the tour."""
    show = Console()
    names: Params = {"__name__": "__demo__"}
    for number, (title, source) in enumerate(TOUR, 1):
        show.heading(("" if number == 1 else "\n") + f"{number}. {title}")
        show.line()
        for line in source.splitlines():
            show.line(f"    {line}".rstrip(), "cyan")
        show.line()
        _show(show, _run(source, f"<demo {number}>", names))
    show.heading("\nMore")
    show.pairs(
        [
            ("chainrule explain script.py", "explain the gradients that a script computes"),
            ("chainrule ops", "list all operations and their derivatives"),
            ("chainrule check file.py::function", "check the gradient of a function"),
        ]
    )
    return OK


def _run(source: str, file: str, names: Params) -> Any:
    """Run a part and return the value of its last line. Explanations read its source lines from ``linecache``."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    *statements, last = ast.parse(source).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(statements, []), file, "exec"), names)
    return eval(compile(ast.Expression(last.value), file, "eval"), names)


def _show(show: Console, value: object) -> None:
    if hasattr(value, "__rich_console__"):
        show.rich(value)
    else:
        for line in repr(value).splitlines():
            show.line(f"    {line}")
