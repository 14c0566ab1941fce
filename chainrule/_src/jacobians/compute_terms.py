"""Compute the terms of a function's Jacobian by a strategy, with fallbacks to other strategies.

``api`` calls ``terms_of``, ``dense_jacobian``, ``terms_by_colours`` and ``plan_for``; ``prepared`` calls ``terms_to_repeat``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.array import unwrap_array
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.tree import tree_leaves, unflatten_rows
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, TensorLike
from chainrule._src.jacobians import assemble
from chainrule._src.jacobians.checking import function_of_leaves
from chainrule._src.jacobians.colouring import colour_pattern, compute_entries, pattern_of, term_of
from chainrule._src.jacobians.plan_cache import lookup_plan
from chainrule._src.jacobians.reverse import Transposes, reverse_dense, reverse_terms, transposed_jacobians
from chainrule._src.jacobians.sketches import products_cost
from chainrule._src.jacobians.strategy import (
    FORWARD,
    JVPS,
    REVERSE,
    VJPS,
    Plan,
    choose_strategy,
    make_plan,
    strategy_to_repeat,
)
from chainrule._src.jacobians.terms import Term, TermGrid, Unstructured, Variable, flatten_array
from chainrule._src.jacobians.trace import JacobianTrace
from chainrule._src.messages import errors
from chainrule._src.messages.kinds import NanFound, NoForwardMode
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import LOCAL, is_recording
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.arguments import as_caller_type, data_of
from chainrule._src.transforms.dense import Limits, check_sizes
from chainrule._src.transforms.grad import vjp
from chainrule._src.transforms.jacobian import jacobian_of_function
from chainrule._src.transforms.jvp import jvp
from chainrule._src.transforms.vmap import vmap

ndarray = np.ndarray
#: the mode of the strategies that compute all rows or columns
MODES: dict[str | None, str] = {VJPS: "reverse", JVPS: "forward"}
ITEMSIZE = 8  # bytes of a number, in estimates
#: number of elements of the input, and of the Jacobian, from which on dense Jacobians may use structure
MANY, SMALL = 64, 1 << 15


def terms_of(
    trace: JacobianTrace, *, api: str, memory: int, strategy: str | None = None, wants_dense: bool = False
) -> TermGrid:
    """Return the terms of the Jacobian of the traced function.

    Args:
        memory: most bytes of a step, and of a dense Jacobian computed as a fallback.
        strategy: the user's choice, without fallback.
        wants_dense: whether the terms will be made a dense array in any case.

    Raises:
        RuntimeError: no strategy works within the memory.
    """
    m, n = _size(trace)
    fits = wants_dense or m * n * ITEMSIZE <= memory
    first = strategy or choose_strategy(
        trace.steps, trace.results, trace.variables, dense=wants_dense, limit=memory // ITEMSIZE
    )
    others = [] if strategy is not None else [candidate for candidate in (FORWARD, REVERSE) if candidate != first]
    why: Exception | None = None
    for candidate in (first, *others):
        if candidate in (VJPS, JVPS) and not fits:
            why = why or Unstructured(f"{candidate} compute the whole Jacobian")
            continue
        try:
            return _terms_by(candidate, trace, memory)
        except Unstructured as reason:
            why = why or reason
        except NanFound:
            raise
        except Exception as reason:  # a custom function's rule may not support these values; f itself did not fail
            if strategy is not None or candidate in (VJPS, JVPS):
                raise
            why = why or reason
    if strategy is not None or not fits:
        raise _too_much(api, why, trace, memory)
    return _terms_by(VJPS if m <= n or isinstance(why, NoForwardMode) else JVPS, trace, memory)


def terms_to_repeat(trace: JacobianTrace, *, api: str, memory: int) -> TermGrid:
    """Return the terms of ``terms_of`` for a compiled plan; compute their entries by products if the plan runs faster."""
    found = terms_of(trace, api=api, memory=memory)
    m, n = _size(trace)
    dtypes = {y.dtype for y in trace.results} | {v.dtype for v in trace.variables}
    if m * n < SMALL or m * n * ITEMSIZE > memory or [dtype.kind for dtype in dtypes] != ["f"]:
        return found
    vals = [term.vals for row in found for terms in row for term in terms]
    if trace.strategy != FORWARD or any([isinstance(v, Tensor) and v._edge is not None for v in vals]):
        return found  # the terms depend on values on the tape, and products would lose that
    products_strategy = strategy_to_repeat(trace.steps, trace.results, trace.variables, memory // ITEMSIZE)
    if products_strategy is None:
        return found
    try:
        products = _terms_by(products_strategy, trace, memory)
    except Exception:  # an operation has no JVP rule, or no batching rule
        trace.strategy = FORWARD
        return found
    return [
        [
            [_at_entries(whole, assemble.EntryPattern.of(terms, y.shape, whole.source.size))]
            for terms, (whole,) in zip(row, wholes, strict=True)
        ]
        for y, row, wholes in zip(trace.results, found, products, strict=True)
    ]


def _at_entries(whole: Term, pattern: assemble.EntryPattern) -> Term:
    """Return the entries of a pattern, from a term with all columns."""
    rows, cols = pattern.row_numbers(), pattern.indices.astype(np.intp)
    values = np.take(flatten_array(whole.full_vals()), cols * pattern.shape[0] + rows)
    return Term(whole.source, cols[None], np.reshape(values, (1, -1)), rows)


def _terms_by(strategy: str, trace: JacobianTrace, memory: int) -> TermGrid:
    trace.strategy = strategy
    if strategy == FORWARD:
        return trace.terms(memory)
    if strategy == REVERSE:
        return reverse_terms(_transposes(trace, memory), trace.variables)
    found = jacobian_of_function(trace.function, trace.x, MODES[strategy], trace.create_graph, Limits(memory=memory))
    parts = iter(tree_leaves(found))
    return [[[_term_of_columns(next(parts), v, y.shape)] for v in trace.variables] for y in trace.results]


def terms_by_colours(trace: JacobianTrace, sparsity: object, memory: int) -> TermGrid:
    """Return the terms of a Jacobian with a known pattern, computed by few products with vectors.

    Args:
        sparsity: the pattern: a sparse array, or an array.

    Raises:
        ValueError: there are several outputs or inputs, or one is complex; the result would be recorded; or the pattern has
            another shape.
    """
    if len(trace.results) != 1 or len(trace.variables) != 1:
        raise errors.jacobian_sparsity(f"got {len(trace.results)} and {len(trace.variables)}")
    (y,), (variable,) = trace.results, trace.variables
    if trace.create_graph or "c" in (y.dtype.kind, variable.dtype.kind):
        raise errors.jacobian_sparsity("it must be real, and off the tape")
    pattern = pattern_of(sparsity, (math.prod(y.shape), variable.size))
    flat, (point,) = function_of_leaves(trace)
    colours = colour_pattern(pattern)
    trace.strategy = "products by colours"
    step = max(1, memory // (ITEMSIZE * 8 * max(*pattern.shape, 1)))

    def push(tangents: object) -> Any:
        return jvp(flat, (point,), (tangents,))[1][0]

    if not colours.of_rows:
        try:
            values = compute_entries(pattern, colours, _batch(push, point), variable.shape, variable.dtype, step)
            return [[[term_of(pattern, variable, values)]]]
        except NoForwardMode:
            colours = colour_pattern(pattern, True)
    outputs, pull = vjp(flat, point)
    values = compute_entries(
        pattern, colours, _batch(lambda g: pull((g,))[0], outputs[0]), tuple(y.shape), y.dtype, step
    )
    return [[[term_of(pattern, variable, values)]]]


def _batch(product: Callable[[Any], Any], like: AnyArray) -> Callable[[Any], Any]:
    """Return a function that multiplies a batch of vectors; it loops if a rule does not support batches."""

    def products(vectors: NumpyArray) -> Any:
        given = wrap(vectors) if isinstance(like, Tensor) else vectors
        try:
            found = vmap(product)(given)
        except NoForwardMode:
            raise
        except (NotImplementedError, RuntimeError, TypeError):
            found = np.stack([data_of(unwrap_array(product(v))) for v in given])
        return data_of(unwrap_array(found))

    return products


def _transposes(trace: JacobianTrace, memory: int) -> list[Transposes]:
    args = trace.x if type(trace.x) is tuple else (trace.x,)
    return transposed_jacobians(trace.function, args, trace.variables, memory // ITEMSIZE, trace.create_graph)


def dense_jacobian(
    function: AnyFunction, x: TensorLike | tuple[TensorLike, ...] | dict[str, AnyArray], memory: int
) -> Any:
    """Compute the dense Jacobian of a large function by its structure; return None if products with vectors cost less.

    Also return None if the result is recorded or inside another transformation, which only products support.
    """
    if not _is_plain(x):
        return None
    try:
        trace = JacobianTrace(function, x, False)
    except Exception:  # products with vectors will raise the error
        return None
    m, n = _size(trace)
    dtypes = {y.dtype for y in trace.results} | {v.dtype for v in trace.variables}
    if m * n < SMALL or len(dtypes) > 1:
        return None
    check_sizes(trace.results, trace.variables, memory)
    lookup = lookup_plan(trace, memory)
    terms = None if lookup is None else lookup.terms("dense")
    try:
        if terms is None:
            strategy = choose_strategy(
                trace.steps, trace.results, trace.variables, dense=True, limit=memory // ITEMSIZE
            )
            products = min(
                [products_cost(trace.steps, a, b, memory // ITEMSIZE).operations for a, b in ((m, n), (n, m))]
            )
            memory = min(
                memory, ITEMSIZE * max(int(products), SMALL)
            )  # a step that makes more is more work than products
            if strategy == FORWARD:
                trace.strategy = FORWARD
                terms = trace.terms(memory)
                if lookup is not None:
                    lookup.note_propagated(terms)
            elif strategy == REVERSE:
                blocks = reverse_dense(_transposes(trace, memory), trace.variables)
            else:
                return None
        if terms is not None:
            blocks = [
                [
                    assemble.dense_of_terms(own, y.shape, v.shape, y.dtype)
                    for own, v in zip(row, trace.variables, strict=True)
                ]
                for y, row in zip(trace.results, terms, strict=True)
            ]
    except (Unstructured, NotImplementedError):
        return None
    rows = [[_as_caller(part, trace.arrays) for part in row] for row in blocks]
    return unflatten_rows(rows, trace.inner, trace.outer)


def plan_for(function: AnyFunction, x: object, wants_dense: bool, strategy: str | None, memory: int) -> Plan:
    """Return the plan for the Jacobian of ``function`` at ``x``."""
    trace = JacobianTrace(function, x)
    m, n = _size(trace)
    small = wants_dense and strategy is None and (not _is_plain(x) or m * n < SMALL)
    if small:
        strategy = JVPS if n < m else VJPS
    plan = make_plan(trace.results, trace.variables, dense=wants_dense, limit=memory // ITEMSIZE, strategy=strategy)
    if small:
        plan.why = "because it is small or recorded"
    return plan


def _as_caller(block: object, arrays: bool) -> Any:
    """Convert a block to the caller's type; for arrays, detach a result that depends on a tensor on the tape."""
    if not arrays and isinstance(block, Tensor):
        block = block._raw
    return as_caller_type(block, not arrays)


def _is_plain(x: object) -> bool:
    """Return whether x has many real numbers, off the tape and outside of transformations."""
    count = 0
    for leaf in tree_leaves(x):
        tensor = unwrap_array(leaf)
        data = tensor._raw if isinstance(tensor, Tensor) else tensor
        if type(data) is not ndarray or data.dtype.kind != "f":
            return False
        if isinstance(tensor, Tensor) and tensor._edge is not None and is_recording():
            return False
        count += data.size
    return count >= MANY and not STACK.levels and LOCAL.watch is None and not trace_hooks.is_tracing()


def _term_of_columns(found: AnyArray, source: Variable, shape: tuple[int, ...]) -> Term:
    """Convert a dense Jacobian (*shape, *source) to a term with a slot for every element of the source."""
    found = unwrap_array(found)
    if isinstance(found, Tensor) and found._edge is None:
        found = found._raw
    every = source.seed.reshape(source.size, *(1,) * len(shape))
    columns = np.moveaxis(np.reshape(found, (*shape, source.size)), -1, 0)
    return Term(source, np.broadcast_to(every, (source.size, *shape)), columns)


def _size(trace: JacobianTrace) -> tuple[int, int]:
    return sum([math.prod(shape_of(y)) for y in trace.results]), sum([v.size for v in trace.variables])


def _too_much(api: str, reason: Exception | None, trace: JacobianTrace, memory: int) -> Exception:
    m, n = _size(trace)
    made: Exception = errors.jacobian_unstructured(
        api, str(reason), f"{m:,}", f"{n:,}", in_bytes(m * n * ITEMSIZE), in_bytes(memory)
    )
    return made


def in_bytes(count: int) -> str:
    """Format a number of bytes: ``298 GiB``."""
    power = min(max(count, 1).bit_length() // 10, len(_UNITS) - 1)
    return f"{count / 1024**power:.3g} {_UNITS[power]}"


_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
