"""Why a call has no trace: what differs from the calls that have one, in the words of a warning."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from chainrule._src.arrays.types import AnyFunction
from chainrule._src.compiling.tree import Tree
from chainrule._src.messages.places import Where

ARGUMENTS = {
    "shape": "Pad it to a few shapes, or leave the lines that depend on its shape out of the compiled function",
    "memory layout": "Pass np.ascontiguousarray of it",
    "dtype": "Convert it to one dtype",
    "value": "Pass a number that changes as an array without axes, np.asarray(n), and an object that changes as its arrays",
    "type": "Pass it as one type",
    "requires_grad": "Pass it with the same requires_grad",
}
STRUCTURE = "Pass containers of the same keys and lengths, or stack what is in them into one array"
BRANCH = (
    "Compare arrays instead of numbers (`if x > 0`, not `if float(x) > 0`), choose with np.where instead of `if`, return arrays and "
    "make numbers of them outside (`.item()`), make arrays of values with np.array or np.stack instead of writing into one, or leave "
    "this part out of the compiled function"
)
STATE = "Pass what changes as an argument: an array or a tensor"


class Cause(NamedTuple):
    """What differs, and what to do about it."""

    difference: str
    advice: str


def branch(where: Where) -> Cause:
    """The cause where a value was read that no trace has read."""
    return Cause(f"Python reads other values in {where.quoted or 'a value'}", BRANCH)


def arguments(function: AnyFunction, old: Sequence[Any], new: Sequence[Any]) -> Cause:
    """The cause where the signature of a call is another one than that of a trace."""
    if old[0] != new[0] or len(old) != len(new):
        return Cause("the arguments have another structure", STRUCTURE)
    if old[1] != new[1]:
        return Cause(
            "the mode of recording (torch.no_grad, inference_mode) is another one", "Set it within the function"
        )
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
    """The name of the argument that a leaf belongs to."""
    positional, keywords = spec.children
    try:
        names = [p.name for p in inspect.signature(function).parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        names = []
    for children, known in ((positional, names), (keywords, list(keywords.context or ()))):
        for i, child in enumerate(children.children):
            if leaf < child.num_leaves:
                return f"the argument {known[i]}" if i < len(known) else f"argument {i + 1}"
            leaf -= child.num_leaves
    return "an argument"


def state(function: AnyFunction, tree: Tree, leaves: Sequence[Any]) -> Cause:
    """The cause where what a trace has read of Python's state is another one."""
    for guard in tree.references.guards:
        try:
            holds = guard.holds()
        except Exception:  # the object is gone
            holds = False
        if not holds:
            return Cause(f"{_read(function, guard)}, which it reads, is another one", STATE)
    if not all([state.holds(leaves) for state in tree.states]):
        return Cause(
            "a tensor has another requires_grad, .grad or hooks", "Set .grad to None, or keep it, before each call"
        )
    return Cause("an array that it reads has another layout", STATE)


def _read(function: AnyFunction, guard: Any) -> str:
    """What a guard looks at, by its name where it has one."""
    if type(guard.key) is str:
        return f"`{guard.key}`"
    function = inspect.unwrap(function)
    cells = zip(
        getattr(function, "__closure__", None) or (),
        function.__code__.co_freevars if hasattr(function, "__code__") else (),
    )
    name = next((name for cell, name in cells if cell is guard.thing), None)
    return f"`{name}`" if name else f"an object of type {type(guard.thing).__name__}"
