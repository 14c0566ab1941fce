"""Describe the structure of local Jacobians (``describe_structure``), and build small ones for display (``local_jacobian``).

``steps`` and ``jacobian_terms`` call these functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.explaining.formula import broadcast_axes
from chainrule._src.explaining.step_data import ArrowData
from chainrule._src.rules import kinds
from chainrule._src.rules.structure import structure_of

_PRODUCTS = {  # Jacobians of a product with respect to its left and right operand; o is the other operand
    "ik,kj->ij": ("I ⊗ {o}ᵀ", "{o} ⊗ I"),
    "ik,k->i": ("I ⊗ {o}ᵀ", "{o}"),
    "k,kj->j": ("{o}ᵀ", "{o}ᵀ ⊗ I"),
    "i,i->": ("{o}ᵀ", "{o}ᵀ"),
}


def describe_structure(arrow: Any) -> tuple[str, str]:
    """Return a short name for a local Jacobian's structure, and a sentence about it."""
    prim = arrow.step.prim
    structure = structure_of(prim, arrow.position, arrow.step.params)
    out, x = arrow.step.output, arrow.input
    by, every = f"∂{out.name}/∂{x.name}", f"every element of {out.name}"
    if prim.kind == "function":
        return "dense", f"the structure of {by} depends on your own rule"
    if prim.kind == "elementwise" and x.shape != out.shape:
        which = f"an element of {out.name} depends on the one element of {x.name} that was broadcast to it"
        return "stretched diagonal", f"diagonal, except for broadcasting: {which}"
    if prim.kind == "elementwise":
        partial = prim.partials.get(prim.operands[arrow.position])
        if not callable(partial) and partial == 1:
            return "diagonal", f"the identity: {by} is 1 on the diagonal, 0 elsewhere"
        return "diagonal", f"diagonal: an element of {out.name} depends on the same element of {x.name} only"
    if structure == "diagonal" and prim.kind == "linear":
        return "diagonal", f"the identity: {out.name} has {x.name}'s elements"
    if structure == "diagonal":
        return "diagonal", f"diagonal: an element of {out.name} depends on the same element of {x.name} only"
    if "->" in structure:
        return _product(arrow, by, structure)
    if structure in ("sum", "mean"):
        scale, value = ("the mean", "1/n") if structure == "mean" else ("the sum", "1")
        entries = f"1/{math.prod(x.shape) // max(math.prod(out.shape), 1)}" if structure == "mean" else "ones"
        short = f"rows of {entries}" if math.prod(out.shape) != 1 else "all " * (structure == "mean") + entries
        return short, f"rows of {value}: {every} is {scale} of different elements of {x.name}"
    if structure == "selection":
        return "selection", f"a selection: {every} is an element of {x.name}, or does not depend on {x.name}"
    if structure == "scatter":
        added = "is added to" if prim.kind == "linear" else "contributes to"
        return "scatter", f"a transposed selection: each element of {x.name} {added} one element of {out.name}, or none"
    if structure in ("axis", "scan"):
        params = arrow.step.params
        axis = params["axes"] if "axes" in params else params["axis"]
        axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
        block = "block" if structure == "axis" else "lower triangular block"
        return "block diagonal", f"one {block} for each slice of {x.name} along axis {axis}, zero elsewhere"
    if structure == "entries":
        return (
            "sparse",
            f"the entries of a sparse product: {every} depends on the elements of {x.name} that its row multiplies",
        )
    own = structure.partition(":")[0]
    if ":" in structure and len(x.shape) > len(own):
        part = {0: "element", 1: "vector", 2: "matrix"}.get(len(own), "part")
        stack = f"the stack {x.name}" if own else x.name
        return "block diagonal", f"one block for each {part} of {stack}, zero elsewhere"
    if prim.kind == "linear":
        return "dense", f"constant: {out.name} is linear in {x.name}, so {by} does not depend on {x.name}'s numbers"
    return "dense", f"{every} can depend on every element of {x.name}"


def _product(arrow: ArrowData, by: str, structure: str) -> tuple[str, str]:
    """Describe a product's Jacobian as a Kronecker product, for arrays flattened in row-major order."""
    values, prim = arrow.step.operand_values, arrow.step.prim
    out, x = arrow.step.output, arrow.input
    linear = f"{out.name} is linear in {x.name}; arrays are flattened in row-major order"
    if prim.name == "linear":
        first, second = (values[i].name if i in values else "" for i in range(2))
        text = (f"I ⊗ {second}", f"{first} ⊗ I, with permuted columns", "1 ⊗ I")[arrow.position]
        return text, f"{text}: {linear}"
    other = values.get(1 - arrow.position)
    o = other.name if other is not None else "AB"[1 - arrow.position]
    if structure not in _PRODUCTS:
        return "contraction", f"the entries of {by} are elements of {o} (subscripts {structure})"
    text = _PRODUCTS[structure][arrow.position].format(o=o)
    stacked = len(out.shape) > len(structure.split("->")[1])
    if stacked and len(x.shape) == len(out.shape):
        sentence = f"one block {text} for each matrix of the stack; matrices are flattened in row-major order"
        return f"block diagonal of {text}", sentence
    return text, f"{text}: {linear}"


def broadcast_text(arrow: ArrowData) -> str | None:
    """Return a sentence on the broadcasting of an operand and the sum in its cotangent; None without broadcasting."""
    prim, out, x = arrow.step.prim, arrow.step.output, arrow.input
    axes = [axis for part in broadcast_axes(out.shape, x.shape) for axis in part]
    if (prim.kind != "elementwise" and prim.name != "expand") or not axes:
        return None
    word = f"axis {axes[0]}" if len(axes) == 1 else f"axes {', '.join(map(str, axes))}"
    return f"{x.name} was broadcast {x.shape} → {out.shape}: its cotangent is summed over {word}"


def local_jacobian(arrow: ArrowData, limit: int) -> Any:
    """Build ∂output/∂input by pulling back one unit vector after another."""
    if arrow.jacobian_size > limit:
        return None
    record = arrow.step.record
    node, out, x = record.node, arrow.step.output, arrow.input
    edges = tuple(edge if i == arrow.position else None for i, edge in enumerate(record.edges))
    saved = arrow.step.saved()

    def pull(g: object) -> Any:
        if len(node.prim.outputs) > 1:
            others = [None if part is None else np.zeros_like(part) for part in record.g]
            others[getattr(out.edge, "index", 0)] = g
            g = tuple(others)
        with np.errstate(all="ignore"):
            found = node.pullback(node, g, saved, edges)[arrow.position]
        return np.zeros(x.shape, x.dtype) if found is None else kinds.unbroadcast(np.asarray(found), x.shape, x.dtype)

    if node.prim.kind == "elementwise" and "c" not in (out.dtype.kind, x.dtype.kind) and out.shape == x.shape:
        return np.diag(pull(np.ones(out.shape, out.dtype)).reshape(-1)).reshape(arrow.jacobian_shape)
    units = np.eye(math.prod(out.shape), dtype=out.dtype)
    rows = np.zeros((len(units), *x.shape), x.dtype)
    for i, unit in enumerate(units):
        rows[i] = pull(unit.reshape(out.shape))
    return (np.conj(rows) if out.dtype.kind == "c" else rows).reshape(arrow.jacobian_shape)
