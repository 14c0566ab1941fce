"""The strategy "reverse terms": compute the transpose of the Jacobian from the VJP, which is linear in its cotangent.

A backward pass is traced with the cotangent as the variable. The derivative of an input's gradient with respect to the cotangent
is the transpose of the Jacobian. Terms are transposed by permuting the axes of their entries if these axes are those of the
output; otherwise the transposed term gets explicit rows. ``compute_terms`` calls the public functions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.api.array import unwrap_array
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyFunction, NumpyArray, Shape
from chainrule._src.interpreters.jac import Jac
from chainrule._src.jacobians.accumulate import Accumulation
from chainrule._src.jacobians.assemble import add_into, dense_of_terms, has_plain_vals
from chainrule._src.jacobians.products import resolve_to_inputs
from chainrule._src.jacobians.terms import Term, Unstructured, Variable, flatten_array
from chainrule._src.tape.levels import open_level
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.trace import Trace

ndarray = np.ndarray


class Transposes(NamedTuple):
    """The transposed Jacobians of one output.

    Attributes:
        rows: the variable of the transposes: the output's elements.
        terms: for each input, the terms of the transpose, a value with the input's shape.
    """

    rows: Variable
    terms: list[list[Term]]


def transposed_jacobians(
    function: AnyFunction, args: tuple[object, ...], variables: list[Variable], limit: int, create_graph: bool
) -> list[Transposes]:
    """Compute the transposed Jacobians of each output of ``function(*args)``.

    Args:
        variables: one for each leaf of the arguments.
        limit: most entries that one step may make.

    Raises:
        Unstructured: terms cannot be propagated through a step, or an input or output is complex.
    """
    trace = Trace("jacobian", function, range(len(args)), args, {})
    outputs, _ = trace.outputs()
    if any([dtype_of(x).kind == "c" for x in outputs]) or any([v.dtype.kind == "c" for v in variables]):
        raise Unstructured("reverse terms need real functions of real variables")
    return [_of_output(trace, y, variables, limit, create_graph) for y in outputs]


def reverse_terms(found: list[Transposes], variables: list[Variable]) -> list[list[list[Term]]]:
    """Return the terms of the Jacobian for each output, for each variable."""
    return [
        [
            [transpose_term(term, variable, rows) for term in terms]
            for terms, variable in zip(by_input, variables, strict=True)
        ]
        for rows, by_input in found
    ]


def reverse_dense(found: list[Transposes], variables: list[Variable]) -> list[list[Any]]:
    """Return the dense Jacobian for each output, for each variable."""
    return [
        [_dense(rows, terms, variable) for terms, variable in zip(by_input, variables, strict=True)]
        for rows, by_input in found
    ]


def _dense(rows: Variable, terms: list[Term], variable: Variable) -> Any:
    """Return the dense Jacobian of an output, from terms of its transpose."""
    shape = (*rows.shape, *variable.shape)
    by_strides = [term for term in terms if term.affine and term.rows is None and type(term.vals) is ndarray]
    others = [
        transpose_term(term, variable, rows) for term in terms if not any([term is other for other in by_strides])
    ]
    if not has_plain_vals(others):
        every = others + [transpose_term(term, variable, rows) for term in by_strides]
        return dense_of_terms(every, rows.shape, variable.shape, rows.dtype)
    J = np.zeros((rows.size, variable.size), rows.dtype)
    add_into(J, (others, rows.size, 0, 0))
    for k, term in enumerate(by_strides):
        view, vals = _entries_view(J, term), term.vals
        if view.strides[0] == 0 and term.slots > 1:  # all slots of a row have the same position
            vals = np.add.reduce(np.broadcast_to(vals, term.cols.shape), 0, keepdims=True)
            view = view[:1]
        if k or others:
            view += vals
        else:
            view[...] = vals
    return J.reshape(shape)


def _entries_view(J: NumpyArray, term: Term) -> NumpyArray:
    """Return the positions of the entries of a term of the transpose, as a strided view of the matrix."""
    row, step = J.strides
    cols = term.cols
    strides = [stride // cols.itemsize * row for stride in cols.strides]
    for axis in range(cols.ndim - 1, 0, -1):
        strides[axis] += step
        step *= cols.shape[axis]
    corner = int(cols[(0,) * cols.ndim]) * row if cols.size else 0
    return np.ndarray(cols.shape, J.dtype, J, corner, strides)


def _of_output(trace: Trace, y: Tensor, variables: list[Variable], limit: int, create_graph: bool) -> Transposes:
    rows, gradients = backward_of(trace, y, create_graph)
    known = Accumulation([g for g in gradients if type(g) is Jac], limit)
    by_input = [
        resolve_to_inputs(known.terms_of(g), v.shape).get(rows, []) if type(g) is Jac else []
        for g, v in zip(gradients, variables, strict=True)
    ]
    return Transposes(rows, by_input)


def backward_of(trace: Trace, y: Tensor, create_graph: bool) -> tuple[Variable, list[Any]]:
    """Return an output's cotangent as a variable, and the inputs' gradients as traced values that depend on it."""
    shape = tuple(shape_of(y))
    rows = Variable(shape, dtype_of(y))
    with open_level("jacobian", Jac) as level:
        cotangent = Jac(np.ones(shape, rows.dtype), rows, level)
        root = wrap(cotangent) if create_graph else cotangent
        return rows, [_raw(g) for g in trace.sweep_to_inputs([y], [root], True, create_graph)]


def _raw(x: object) -> Any:
    x = unwrap_array(x)
    return x._raw if isinstance(x, Tensor) else x


def transpose_term(term: Term, source: Variable, rows: Variable) -> Term:
    """Transpose a term: return a term of a value with the shape of ``rows``, with respect to ``source``.

    Args:
        term: a term of a value with the shape of ``source``, with respect to ``rows``.
    """
    split = None if term.rows is not None or not term.affine else _axes_of(term.cols, rows)
    own = source.seed if term.rows is None else term.rows
    if split is None:
        cols = np.broadcast_to(own, term.cols.shape).reshape(1, -1)
        return Term(source, cols, flatten_array(term.full_vals())[None], term.cols.reshape(-1))
    lengths, order = split

    def turned(x: Any, size: Shape) -> Any:
        """Rearrange (slots, *source) to (slots of the transpose, *rows)."""
        moved = np.transpose(np.reshape(x, size), order)
        have = shape_of(moved)
        kept = len(have) - len(rows.shape)
        return np.reshape(moved, (math.prod(have[:kept]), *have[kept:]))

    cols = np.broadcast_to(source.seed, term.cols.shape)
    vals = term.vals
    known = shape_of(vals)
    if known:
        vals = turned(vals if known == term.cols.shape else np.broadcast_to(vals, term.cols.shape), lengths)
    return Term(source, turned(cols, lengths), vals)


def _axes_of(cols: NumpyArray, rows: Variable) -> tuple[Shape, list[int]] | None:
    """Match the axes of a term's entries with those of ``rows``; along all other axes its columns must be constant.

    Returns:
        The lengths of all axes after splitting, and their order: the other axes, then those of ``rows``. None if the axes do
        not match.
    """
    itemsize = cols.itemsize
    wanted = [(k, n, s // itemsize) for k, (n, s) in enumerate(zip(rows.shape, rows.seed.strides)) if n != 1]
    lengths: list[int] = []
    order_of: dict[int, int] = {}
    others: list[int] = []
    for n, stride in zip(cols.shape, cols.strides, strict=True):
        if stride == 0 or n == 1:
            others.append(len(lengths))
            lengths.append(n)
            continue
        found = _run_of(wanted, n, stride // itemsize)
        if found is None or any([k in order_of for k, _ in found]):
            return None
        for k, length in found:
            order_of[k] = len(lengths)
            lengths.append(length)
    if len(order_of) != len(wanted):
        return None
    order = list(others)
    for k in range(len(rows.shape)):
        if k not in order_of:
            order_of[k] = len(lengths)
            lengths.append(1)
        order.append(order_of[k])
    return tuple(lengths), order


def _run_of(wanted: list[tuple[int, int, int]], n: int, stride: int) -> list[tuple[int, int]] | None:
    """Return the consecutive axes (number, length), outermost first, that one axis of a length and stride covers."""
    for last in range(len(wanted)):
        if wanted[last][2] != stride:
            continue
        product = 1
        for first in range(last, -1, -1):
            product *= wanted[first][1]
            if product == n:
                return [(k, length) for k, length, _ in wanted[first : last + 1]]
    return None
