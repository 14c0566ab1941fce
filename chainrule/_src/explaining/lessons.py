"""Remarks on common misunderstandings of one call of backward, in terms of its arrays (``Explanation.lessons``).

``entry`` calls ``lessons_of``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.explaining.diagnosis.names import place_of
from chainrule._src.explaining.recorded_pass import RecordedPass
from chainrule._src.explaining.steps import Step
from chainrule._src.messages.reading import expression_of
from chainrule._src.rules.structure import structure_of
from chainrule._src.tape.tensor import Tensor


class Lesson(NamedTuple):
    """A sentence about one call, and its kind.

    The kinds: "seed_is_output_grad", "ones_means_sum", "seed_is_an_input", "wrong_shape_would", "stretched_to_square" and
    "reduced_without_keepdims".
    """

    kind: str
    text: str


def lessons_of(e: RecordedPass, given: Sequence[object]) -> Iterator[Lesson]:
    """Yield the lessons of an explanation; ``given`` are the gradients that were passed (None: the default)."""
    if not e.steps:
        return
    for step in reversed(e.steps):
        yield from _broadcasting(e, step)
    for y, seed, passed in zip(e.outputs, e.seeds, given):
        meaning = f"∂{e.scalar}/∂{y.name}"
        if passed is not None:
            name = next((v.name for v in e.wrt if v is not y), "x")
            yield Lesson("seed_is_output_grad", f"{y.name}.grad = {meaning} is what you passed, not ∂{y.name}/∂{name}.")
            same = _leaf_with(e, passed, seed)
            if same is not None:
                text = (
                    f"The gradient you passed is {same.name} itself: {y.bar} = {same.name} multiplies the derivative."
                )
                yield Lesson(
                    "seed_is_an_input", f"{text} For the derivative of {y.name}.sum() alone pass ones_like({y.name})."
                )
        x = next((v for v in e.wrt if v.shape != y.shape and y.shape != () and v.gradient is not None), None)
        if x is not None:
            text = (
                f"A gradient of {x.name}'s shape {x.shape} would be refused: it is {meaning}, one number per element of"
            )
            yield Lesson("wrong_shape_would", f"{text} {y.name}, shape {y.shape}.")
    if all(seed.size and np.all(seed == 1) for seed in e.seeds) and any(seed.ndim for seed in e.seeds):
        how = "No gradient was given, so it is ones" if given[0] is None else "The gradient is ones"
        total = " + ".join(f"{y.name}.sum()" if y.shape else y.name for y in e.outputs)
        yield Lesson("ones_means_sum", f"{how}: this differentiates {e.scalar} = {total}.")


def _leaf_with(e: RecordedPass, passed: object, seed: AnyArray) -> Any:
    """Return the leaf that was passed as the gradient, or a leaf with the same numbers."""
    data = passed._raw if isinstance(passed, Tensor) else passed
    if np.all(seed == 1) or seed.size < 2:
        return None
    alike = [value for value in e.wrt if value.shape == seed.shape and value.data is not None]
    return next((v for v in alike if e._values.known.get(v.edge) is data or np.array_equal(v.data, seed)), None)


def _broadcasting(e: RecordedPass, step: Step) -> Iterator[Lesson]:
    """Yield lessons about operands of an elementwise operation that probably broadcast unintentionally."""
    node, shape = step.record.node, step.output.shape
    avals = node.in_avals
    n = shape[0] if len(shape) == 2 else 0
    if node.prim.kind != "elementwise" or avals is None or len(avals) != 2 or n < 2 or shape != (n, n):
        return
    shapes = [tuple(aval[0]) for aval in avals]
    for i, j in ((0, 1), (1, 0)):
        if shapes[j] != (n,):
            continue
        p, q = _source(step, i), _source(step, j)
        if shapes[i] == (n, 1) and not _gained_an_axis(e, step, i) and _is_summed(e, step):
            use = f"{q}.reshape({p}.shape)" if len(p) + len(q) <= 40 else f"{q}[:, None]"
            yield Lesson(
                "stretched_to_square",
                f"{p} {shapes[i]} and {q} {shapes[j]} are broadcast to {shape}: {step.op} combines every element of one with every "
                f"element of the other, and the result sums over all pairs. That is nearly always a mistake. Use {use}.",
            )
        whole, reduced = node.edges[i], node.edges[j]
        params = getattr(reduced, "params", {})
        rows = params.get("axis") == (-1,) and params.get("keepdims") is False
        if shapes[i] == (n, n) and rows and reduced is not None and whole is not None and reduced.edges[0] is whole:
            yield Lesson(
                "reduced_without_keepdims",
                f"{q}, of shape {shapes[j]}, has one number for each row of {p}, but is broadcast along its columns: {p} is "
                "square, so this raises no error. Use keepdims=True (keepdim=True for tensors).",
            )


def _source(step: Step, i: int) -> str:
    """Return the text for an operand of a binary operation: the name of its value, or its source if that is short."""
    value = step.operand_values.get(i)
    where = place_of(step.record.node)
    tree = expression_of(where.expression) if where is not None else None
    parts: list[ast.expr] = []
    if isinstance(tree, ast.BinOp):
        parts = [tree.left, tree.right]
    elif isinstance(tree, ast.Call):
        parts = tree.args
    text = ast.unparse(parts[i]) if len(parts) == 2 else ""
    if value is not None and value.edge is not None and not re.fullmatch(r"[tc]\d+", value.name):
        return value.name
    if not text or len(text) > 40:
        return value.name if value is not None and value.name else ("one operand", "the other operand")[i]
    return text if isinstance(parts[i], (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({text})"


_AXIS_ADDED = re.compile(r"None\b|newaxis|unsqueeze|expand_dims|reshape|view\(|\.outer\b")


def _gained_an_axis(e: RecordedPass, step: Step, i: int) -> bool:
    """Return whether the program itself made a column of a 1-D array, so that all pairs are intended."""
    where = place_of(step.record.node)
    if where is not None and _AXIS_ADDED.search(where.expression):
        return True
    edge = step.record.node.edges[i]
    if edge is None or not getattr(getattr(edge, "prim", None), "moves", False):
        return False
    values = [e._values.by_edge.get(below) for below in edge.edges if below is not None]
    return any(value is not None and len(value.shape) == 1 for value in values)


def _is_summed(e: RecordedPass, step: Step) -> bool:
    """Return whether a result is reduced to a number through sums, means and elementwise operations only."""
    waiting, seen = [step.output], set()
    while waiting:
        value = waiting.pop()
        if value.shape == ():
            return True
        for user in e.steps if value.id not in seen else ():
            for arrow in user.arrows:
                prim = user.record.node.prim
                sums = prim.kind == "elementwise" or structure_of(prim, arrow.position, user.record.node.params) in (
                    "sum",
                    "mean",
                )
                if arrow.input is value and sums:
                    waiting.append(user.output)
        seen.add(value.id)
    return False
