"""HTML for notebooks of tensors, arrays and compiled functions, and the cell magic ``%%explain`` (``%load_ext chainrule``).

IPython and the methods ``_repr_html_`` of these classes call it.

The HTML is escaped, small, and has no scripts.
"""

from __future__ import annotations

import ast
import importlib
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.compiling.inspection import PlanOfCall
from chainrule._src.explaining.contributions import WAYS
from chainrule._src.explaining.json_values import array_dict
from chainrule._src.explaining.markup import escape
from chainrule._src.explaining.tables import array_table

_ROWS = 48  # most lines of plans that are shown
_STYLE = (
    "<style>.chainrule-array table.numbers{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".chainrule-array table.numbers caption{text-align:left;white-space:nowrap;opacity:.75}"
    ".chainrule-array table.numbers :is(td,th){text-align:right;padding:0 .5em}</style>"
)


def array_html(x: Any) -> str | None:
    """Return a table of a tensor's or Array's numbers (a corner of a large one); None if it is not an ndarray of numbers."""
    tensor = x._tensor if isinstance(x, Array) else x
    if type(tensor._raw) is not np.ndarray or tensor._raw.dtype.kind not in "biufc":
        return None
    kind = type(x).__name__ if isinstance(x, Array) else "tensor"
    facts = [f"<b>{escape(kind)}</b>", escape(tensor._raw.dtype), *map(escape, tensor._history())]
    shown = array_table(array_dict(tensor._raw), ", ".join(facts), label=kind)
    return f"<div class='chainrule-array'>{_STYLE}{shown}</div>"


def compiled_html(compiled: Any) -> str:
    """Return the report of a compiled function, and the steps of its first plans."""
    account = str(compiled.explain())
    first, *others = account.split("\n")
    rows, left = [], _ROWS
    for path in [path for trees in compiled._trees.values() for tree in trees for path in tree.paths()]:
        lines = str(PlanOfCall(path)).split("\n")
        rows.append(
            "\n".join(lines[:left] + [f"… {len(lines) - left} more lines (print its plan)"] * (len(lines) > left))
        )
        left -= len(lines)
        if left <= 0:
            break
    shown = "".join(f"<pre style='margin:.4em 0;overflow-x:auto'>{escape(text)}</pre>" for text in rows)
    more = f"<pre style='margin:.4em 0;overflow-x:auto'>{escape(chr(10).join(others))}</pre>" if others else ""
    plan = f"<details{' open' * (len(rows) == 1)}><summary>plan</summary>{shown}</details>" if rows else ""
    return f"<div><b>{escape(first)}</b>{more}{plan}</div>"


def load_ipython_extension(shell: Any) -> None:
    """Register ``%%explain``; ``%load_ext chainrule`` calls this function."""
    shell.register_magic_function(lambda line, cell: explain_cell(shell, line, cell), "cell", "explain")


def explain_cell(shell: Any, line: str, cell: str) -> Any:
    """Run a cell, and explain the tensor that is its last expression, or that its last line assigns.

    Args:
        shell: the IPython shell.
        line: the text after ``%%explain``: empty, or "term", "line" or "module" (see ``explain``).

    Raises:
        ValueError: ``line`` is another text, or the cell does not end with a value.
    """
    by = line.strip() or None
    if by is not None and by not in WAYS:
        raise ValueError(f"%%explain {by}: use {', '.join(WAYS)}, or %%explain alone")
    name = shell.compile.cache(cell)
    tree = ast.parse(cell, name)
    last = tree.body[-1] if tree.body else None
    target = last.targets[0] if isinstance(last, ast.Assign) else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
        value: ast.expr = last.value
    elif isinstance(target, ast.Name):
        value = ast.copy_location(ast.Name(target.id, ast.Load()), target)
    else:
        raise ValueError(
            "%%explain: the cell's last line is neither an expression nor an assignment: end the cell with the tensor"
        )
    exec(compile(tree, name, "exec"), shell.user_ns)
    # Call `explain` from the cell's namespace, because it searches the caller's variables for the names of tensors.
    call = ast.Expression(ast.copy_location(ast.Call(ast.Name("__explain__", ast.Load()), [value], []), value))
    shell.user_ns["__explain__"] = lambda Y: importlib.import_module("chainrule._src.explaining.entry").explain(
        Y, by=by
    )
    try:
        return eval(compile(ast.fix_missing_locations(call), name, "eval"), shell.user_ns)
    finally:
        del shell.user_ns["__explain__"]
