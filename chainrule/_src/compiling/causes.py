"""The causes of missing traces, as the text of a warning: the difference from earlier calls, and advice.

``Compiled`` counts the cause of each new trace with ``missing_branch_cause``, ``changed_arguments_cause`` and
``changed_state_cause``. It warns with the most common one.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from chainrule._src.arrays.types import AnyFunction
from chainrule._src.compiling.tree import Tree
from chainrule._src.messages.source_locations import Where

ARGUMENTS = {
    "shape": "Pad it to a few shapes, or move the lines that depend on its shape out of the compiled function",
    "memory layout": "Pass it through np.ascontiguousarray",
    "dtype": "Convert it to one dtype",
    "value": "Pass a number that changes as a 0-d array, np.asarray(n), and an object that changes as its arrays",
    "type": "Always pass the same type",
    "requires_grad": "Always pass it with the same requires_grad",
}
STRUCTURE = "Pass containers of the same keys and lengths, or stack their elements into one array"
BRANCH = (
    "Compare arrays instead of numbers (`if x > 0`, not `if float(x) > 0`), choose with np.where instead of `if`, return arrays and "
    "convert them to numbers outside (`.item()`), build arrays with np.array or np.stack instead of writing elements, or move this "
    "part out of the compiled function"
)
STATE = "Pass what changes as an argument: an array or a tensor"


class Cause(NamedTuple):
    """The difference from earlier calls, and advice."""

    difference: str
    advice: str


def missing_branch_cause(where: Where) -> Cause:
    """Return the cause of a value read that no trace has a branch for."""
    return Cause(f"Python reads other values in {where.quoted or 'a value'}", BRANCH)


def changed_arguments_cause(function: AnyFunction, old: Sequence[Any], new: Sequence[Any]) -> Cause:
    """Return the cause of a signature that differs from that of the last trace."""
    if old[0] != new[0] or len(old) != len(new):
        return Cause("the arguments have another structure", STRUCTURE)
    if old[1] != new[1]:
        return Cause("the grad mode (torch.no_grad, inference_mode) is another one", "Set it inside the function")
    leaves = [i for i, (x, y) in enumerate(zip(old, new, strict=True)) if x != y and i > 1]
    if not leaves or leaves[0] > new[0].num_leaves + 1:
        return Cause("the arguments have another structure", STRUCTURE)
    x, y = old[leaves[0]], new[leaves[0]]
    aspect = "type"
    if x[0] is y[0] and len(x) == len(y):
        names = (
            ("type", "dtype", "shape", "memory layout", "requires_grad") if len(x) == 5 else ("type", "value", "value")
        )
        aspect = next(name for name, a, b in zip(names, x, y, strict=True) if a != b)
        if aspect == "memory layout" and x[2] != y[2]:
            aspect = "shape"
    return Cause(f"{_argument(function, new[0], leaves[0] - 2)} has another {aspect}", ARGUMENTS[aspect])


def _argument(function: AnyFunction, spec: Any, leaf: int) -> str:
    """Return the name of the argument that a leaf belongs to."""
    positional, keywords = spec.children
    try:
        names = [p.name for p in inspect.signature(function).parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        names = []
    for children, names_of_kind in ((positional, names), (keywords, list(keywords.context or ()))):
        for i, child in enumerate(children.children):
            if leaf < child.num_leaves:
                return f"the argument {names_of_kind[i]}" if i < len(names_of_kind) else f"argument {i + 1}"
            leaf -= child.num_leaves
    return "an argument"


def changed_state_cause(function: AnyFunction, tree: Tree, leaves: Sequence[Any]) -> Cause:
    """Return the cause of a failed guard on Python state."""
    for guard in tree.guard_sets.guards:
        try:
            holds = guard.holds()
        except Exception:  # a guarded object is gone
            holds = False
        if not holds:
            return Cause(f"{_guarded(function, guard)}, which it reads, has changed", STATE)
    if not all([state.holds(leaves) for state in tree.states]):
        return Cause(
            "a tensor has another requires_grad, .grad or hooks", "Set .grad to None, or keep it, before each call"
        )
    return Cause("a captured array has another layout", STATE)


def _guarded(function: AnyFunction, guard: Any) -> str:
    """Return the name of the object that a guard checks, or its type."""
    if type(guard.key) is str:
        return f"`{guard.key}`"
    function = inspect.unwrap(function)
    cells = zip(
        getattr(function, "__closure__", None) or (),
        function.__code__.co_freevars if hasattr(function, "__code__") else (),
    )
    name = next((name for cell, name in cells if cell is guard.target), None)
    return f"`{name}`" if name else f"an object of type {type(guard.target).__name__}"
