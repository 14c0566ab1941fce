"""Turn axes that an operation mixes or sums over into slots of terms. ``propagation`` calls these functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Shape
from chainrule._src.interpreters.jac import JacStep
from chainrule._src.jacobians.terms import IndexArray, Term
from chainrule._src.rules.structure import letters_of, structure_of

# -- sums ----------------------------------------------------------------------------------------------------------------


def sum_over_axes(term: Term, axes: tuple[int, ...], keep: bool) -> Term:
    """Return a term of a sum over axes: add values along axes where columns are constant; other axes become slots."""
    alike = tuple([a for a in axes if is_constant_along(term.cols, (a + 1,))])
    if not alike:
        return axes_to_slots(term, axes, keep)
    vals = term.vals
    known = shape_of(vals)
    count = math.prod([term.cols.shape[a + 1] for a in alike if not known or known[a + 1] == 1])
    if known:
        vals = np.add.reduce(vals, axis=tuple([a + 1 for a in alike]), keepdims=True)
    if count != 1:
        vals = vals * count
    index = tuple([slice(None), *[slice(0, 1) if a in alike else slice(None) for a in range(term.cols.ndim - 1)]])
    return axes_to_slots(Term(term.source, term.cols[index], vals), axes, keep)


def axes_to_slots(term: Term, axes: tuple[int, ...], keep: bool) -> Term:
    """Turn some axes of a term's rows into slots."""

    def moved(array: Any) -> Any:
        shape = shape_of(array)
        front = np.moveaxis(array, [a + 1 for a in axes], range(len(axes)))
        rest = tuple([1 if a in axes else n for a, n in enumerate(shape[1:]) if keep or a not in axes])
        return np.reshape(front, (math.prod([shape[a + 1] for a in axes]) * shape[0], *rest))

    vals = term.vals
    known = shape_of(vals)
    if known:
        fixed = all(known[a + 1] == 1 for a in axes) and known[0] == 1
        if not fixed:
            full = tuple([term.cols.shape[k] if k == 0 or k - 1 in axes else n for k, n in enumerate(known)])
            vals = np.broadcast_to(vals, full)
        vals = moved(vals)
    return Term(term.source, moved(term.cols), vals)


# -- blocks --------------------------------------------------------------------------------------------------------------


def mixed_axes(step: JacStep, i: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return the axes of operand i that an operation mixes, and the resulting axes of each output; other axes correspond."""
    structure = structure_of(step.prim, i, step.params)
    n = len(shape_of(step.operands[i]))
    ranks = [len(shape_of(out)) for out in step.outs]
    letters = [letters_of(structure, i, step.params, n, m, k) for k, m in enumerate(ranks)]
    if None in letters:
        return tuple(range(-n, 0)), [tuple(range(-m, 0)) for m in ranks]
    pairs = [pair for pair in letters if pair is not None]
    ins = [tuple([k - len(mine) for k, c in enumerate(mine) if c not in out]) for mine, out in pairs]
    return ins[0], [tuple([k - len(out) for k, c in enumerate(out) if c not in mine]) for mine, out in pairs]


def is_constant_along(cols: IndexArray, ins: tuple[int, ...]) -> bool:
    """Return whether the columns of a term are constant along axes of its rows."""
    return all(cols.strides[a] == 0 or cols.shape[a] == 1 for a in ins)


def drop_constant_axes(cols: IndexArray, ins: tuple[int, ...]) -> IndexArray:
    """Return cols without the axes along which they are constant."""
    index: list[Any] = [slice(None)] * cols.ndim
    for a in ins:
        index[a] = 0
    return cols[tuple(index)]


def broadcast_along(cols: IndexArray, shape: Shape, axes: tuple[int, ...]) -> IndexArray:
    """Broadcast cols of the corresponding axes along the axes that an operation made."""
    slots = cols.shape[0]
    n = len(shape)
    made = [a + n for a in axes]
    rest = [k for k in range(n) if k not in made]
    front = (1,) * (len(rest) - (cols.ndim - 1))
    laid = cols.reshape(slots, *front, *cols.shape[1:])
    laid = laid.reshape(slots, *[1 if k in made else laid.shape[1 + rest.index(k)] for k in range(n)])
    return np.broadcast_to(laid, (slots, *shape))


def move_axes_last(vals: Any, axes: tuple[int, ...]) -> Any:
    """Move some of the output's axes of (slots, *out) to the end."""
    n = len(shape_of(vals))
    return np.moveaxis(vals, [a + n for a in axes], range(n - len(axes), n)) if axes else vals


def multiply_by_blocks(term: Term, ins: tuple[int, ...], block: object, shape: Shape, axes: tuple[int, ...]) -> Term:
    """Multiply a term by local Jacobians (in, *rest, *out): the mixed axes become slots."""
    ndim = term.cols.ndim
    slots = term.slots
    k = math.prod([term.cols.shape[a] for a in ins])
    front = np.moveaxis(term.cols, [a + ndim for a in ins], range(len(ins)))
    rest_in = front.shape[len(ins) + 1 :]
    cols = broadcast_along(front.reshape(k * slots, *rest_in), shape, axes)
    rest = len(shape) - len(axes)
    vals = term.vals
    if known := shape_of(vals):
        if any(known[a] != 1 for a in ins):
            vals = np.broadcast_to(
                vals, tuple([term.cols.shape[a] if a - ndim in ins else n for a, n in enumerate(known)])
            )
        vals = np.moveaxis(vals, [a + ndim for a in ins], range(len(ins)))
        have = shape_of(vals)
        vals = np.reshape(
            vals,
            (
                math.prod(have[: len(ins)]),
                have[len(ins)],
                *(1,) * (rest - len(rest_in)),
                *have[len(ins) + 1 :],
                *(1,) * len(axes),
            ),
        )
    pair = block if isinstance(block, tuple) else (block,)
    laid = [
        np.reshape(b, (k, 1, *shape_of(b)[len(shape_of(b)) - len(shape) :]))
        for b in (_flat_ins(b, len(shape)) for b in pair)
    ]
    if len(laid) == 2:
        product = np.real(vals) * laid[0] + np.imag(vals) * laid[1]
    else:
        product = laid[0] if isinstance(vals, (int, float)) and vals == 1 else vals * laid[0]
    made = shape_of(product)
    if slots > 1 and made[1] == 1:
        product = np.broadcast_to(product, (made[0], slots, *made[2:]))
        made = shape_of(product)
    product = np.reshape(product, (k * slots, *made[2:]))
    n = len(shape)
    product = np.moveaxis(product, range(1 + rest, 1 + n), [a + n + 1 for a in axes]) if axes else product
    return Term(term.source, cols, product)


def _flat_ins(block: AnyArray, n: int) -> Any:
    """Flatten the mixed axes of a block into one."""
    shape = shape_of(block)
    return np.reshape(block, (math.prod(shape[: len(shape) - n]), *shape[len(shape) - n :]))
