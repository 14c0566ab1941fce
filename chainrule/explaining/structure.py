"""What local Jacobians look like, in words; and their values, for looking at. They are never built otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.rows import kinds

ndarray = np.ndarray
_T = "ᵀ"


def of(arrow: Any) -> tuple[str, str]:
    """A short name for a local Jacobian's structure, and a sentence about it."""
    prim = arrow.step.record.node.prim
    out, x = arrow.step.output.name, arrow.input.name
    if prim.kind == "function":
        return "dense", f"what ∂{out}/∂{x} looks like is up to your own rule"
    if prim.kind == "elementwise":
        return _elementwise(arrow, prim, out, x)
    if prim.structure == "diagonal":
        return "diagonal", f"the identity: {out} has {x}'s elements"
    if prim.name == "linear":
        return _linear(arrow, out, x)
    if "->" in prim.structure:
        return _product(arrow, prim.structure, out, x)
    if prim.structure in ("sum", "mean"):
        return _sum(arrow, prim.structure == "mean", out, x)
    if prim.structure == "selection":
        return "selection", f"a selection: every element of {out} is an element of {x}, or does not depend on {x}"
    if prim.structure == "axis":
        return (
            "block diagonal",
            f"one block for each slice of {x} along axis {_axis(arrow.step.params['axis'])}, zero elsewhere",
        )
    if prim.structure == "matrix" and len(arrow.input.shape) > 2:
        return "block diagonal", f"one block for each matrix of the stack {x}, zero elsewhere"
    if prim.kind == "linear":
        return "dense", f"constant: {out} is linear in {x}, so ∂{out}/∂{x} does not depend on {x}'s numbers"
    return "dense", f"every element of {out} can depend on every element of {x}"


def _axis(axis: Any) -> str:
    return str(axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis)


def _sum(arrow: Any, mean: bool, out: str, x: str) -> tuple[str, str]:
    scale, value = ("the mean", "1/n") if mean else ("the sum", "1")
    n = int(np.prod(arrow.input.shape)) // max(int(np.prod(arrow.step.output.shape)), 1)
    entries = f"1/{n}" if mean else "ones"
    rows = "rows of " if arrow.step.output.shape not in ((), (1,) * len(arrow.input.shape)) else ""
    return (
        rows + entries if rows or not mean else f"all {entries}",
        f"rows of {value}: every element of {out} is {scale} of some elements of {x}, each of which counts once",
    )


def _elementwise(arrow: Any, prim: Any, out: str, x: str) -> tuple[str, str]:
    partial = prim.partials.get(prim.operands[arrow.position])
    if arrow.input.shape != arrow.step.output.shape:
        return (
            "stretched diagonal",
            f"diagonal, but for {x}'s stretching: an element of {out} depends on the one element of {x} that was put there",
        )
    if not callable(partial) and partial == 1:
        return "diagonal", f"the identity: ∂{out}/∂{x} is 1 on the diagonal, 0 elsewhere"
    return "diagonal", f"diagonal: an element of {out} depends on the same element of {x} only"


def _product(arrow: Any, subscripts: str, out: str, x: str) -> tuple[str, str]:
    """Kronecker products, for arrays flattened row by row."""
    values = arrow.step.operand_values
    first = arrow.position == 0
    other = values.get(1 if first else 0)
    o = other.name if other is not None else ("B" if first else "A")
    batch = len(arrow.step.output.shape) - len(subscripts.split("->")[1])
    known = {
        "ik,kj->ij": (f"I ⊗ {o}{_T}", f"{o} ⊗ I"),
        "ik,k->i": (f"I ⊗ {o}{_T}", o),
        "k,kj->j": (f"{o}{_T}", f"{o}{_T} ⊗ I"),
        "i,i->": (f"{o}{_T}", f"{o}{_T}"),
    }
    if subscripts not in known:
        return "contraction", f"∂{out}/∂{x} holds {o}'s elements (subscripts {subscripts})"
    text = known[subscripts][0 if first else 1]
    if batch > 0 and len(arrow.input.shape) == len(arrow.step.output.shape):
        return (
            f"block diagonal of {text}",
            f"one block {text} for each matrix of the stack, rows flattened one after another",
        )
    return text, f"{text}: {out} is linear in {x}; arrays are flattened row by row"


def _linear(arrow: Any, out: str, x: str) -> tuple[str, str]:
    values = arrow.step.operand_values
    names = [values[i].name if i in values else "" for i in range(3)]
    text = (f"I ⊗ {names[1]}", f"{names[0]} ⊗ I, with its columns in another order", "1 ⊗ I")[arrow.position]
    return text, f"{text}: {out} is linear in {x}; arrays are flattened row by row"


def unbroadcast(arrow: Any) -> str | None:
    """How an operand was stretched, and what that means for its cotangent."""
    prim = arrow.step.record.node.prim
    out, x = arrow.step.output, arrow.input
    if prim.kind != "elementwise" and prim.name != "expand":
        return None
    if out.shape == x.shape:
        return None
    extra = len(out.shape) - len(x.shape)
    axes = [*range(extra), *(extra + i for i, n in enumerate(x.shape) if n == 1 and out.shape[extra + i] != 1)]
    if not axes:
        return None
    word = f"axis {axes[0]}" if len(axes) == 1 else f"axes {', '.join(map(str, axes))}"
    return f"{x.name} was stretched {x.shape} → {out.shape}: its cotangent is summed over {word}"


def jacobian(arrow: Any, limit: int) -> Any:
    """∂output/∂input by pulling back one unit after another."""
    if arrow.jacobian_size > limit:
        return None
    record = arrow.step.record
    node, out, x = record.node, arrow.step.output, arrow.input
    edges = tuple(edge if i == arrow.position else None for i, edge in enumerate(record.edges))
    copy = arrow.step.all_values.copy
    saved = tuple(tuple(map(copy, v)) if type(v) is tuple else copy(v) for v in record.saved)
    real = out.dtype.kind != "c" and x.dtype.kind != "c"

    def pull(g: Any) -> Any:
        given: Any = g
        if len(node.prim.outputs) > 1:
            index = getattr(out.edge, "index", 0)
            given = tuple(
                g if i == index else None if part is None else np.zeros_like(part) for i, part in enumerate(record.g)
            )
        with np.errstate(all="ignore"):
            found = node.pullback(node, given, saved, edges)[arrow.position]
        return np.zeros(x.shape, x.dtype) if found is None else kinds.unbroadcast(np.asarray(found), x.shape, x.dtype)

    if node.prim.kind == "elementwise" and real and out.shape == x.shape:
        diagonal = pull(np.ones(out.shape, out.dtype)).reshape(-1)
        return np.diag(diagonal).reshape(arrow.jacobian_shape)
    size = int(np.prod(out.shape))
    rows = np.zeros((size, *x.shape), x.dtype)
    for i in range(size):
        unit = np.zeros(size, out.dtype)
        unit[i] = 1
        rows[i] = pull(unit.reshape(out.shape))
    if out.dtype.kind == "c":
        rows = np.conj(rows)
    return rows.reshape(arrow.jacobian_shape)
