"""The terms of a function's Jacobian by any of the strategies, and what is done where one of them cannot go on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.array import unfaced
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.tree import tree_leaves, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, TensorLike
from chainrule._src.jacobians import assemble
from chainrule._src.jacobians.checking import of_leaves
from chainrule._src.jacobians.colouring import coloured, entries, pattern_of, term_of
from chainrule._src.jacobians.reverse import Transposes, reverse_dense, reverse_terms, transposes
from chainrule._src.jacobians.sketches import products_cost
from chainrule._src.jacobians.strategy import FORWARD, JVPS, REVERSE, VJPS, Plan, chosen, planned, to_repeat
from chainrule._src.jacobians.terms import Term, Unstructured, Variable, flat
from chainrule._src.jacobians.trace import JacobianTrace
from chainrule._src.messages import errors
from chainrule._src.messages.kinds import NanFound, NoForwardMode
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import LOCAL, recording
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms import jacobian as dense
from chainrule._src.transforms.arguments import as_caller_type, data_of
from chainrule._src.transforms.dense import check_size, largest
from chainrule._src.transforms.grad import vjp
from chainrule._src.transforms.jvp import jvp
from chainrule._src.transforms.vmap import vmap

ndarray = np.ndarray
#: for each output, for each input
TermGrid = list[list[list[Term]]]
ITEMSIZE = 8  # bytes of a number, in estimates
#: elements of the input, and of the Jacobian, from which its structure is looked at without being asked for
MANY, SMALL = 64, 1 << 15


def terms_of(
    trace: JacobianTrace,
    function: AnyFunction,
    x: TensorLike | tuple[AnyArray, ...],
    *,
    api: str,
    memory: int,
    strategy: str | None = None,
    wants_dense: bool = False,
) -> TermGrid:
    """The terms of the Jacobian of ``function`` at ``x``.

    Args:
        trace: of that call.
        memory: bytes that a step may take, and a Jacobian that is computed as a whole because it must be.
        strategy: the user's choice; it is the only way then.
        wants_dense: whether the terms will be made a dense array in any case.

    Raises:
        RuntimeError: there is no way within the memory.
    """
    m, n = _size(trace)
    fits = wants_dense or m * n * ITEMSIZE <= memory
    first = strategy or chosen(trace.steps, trace.results, trace.variables, dense=wants_dense, limit=memory // ITEMSIZE)
    others = [] if strategy is not None else [way for way in (FORWARD, REVERSE) if way != first]
    why: Exception | None = None
    for way in (first, *others):
        if way in (VJPS, JVPS) and not fits:
            why = why or Unstructured(f"{way} compute all of the Jacobian")
            continue
        try:
            return _by(way, trace, function, x, memory)
        except Unstructured as reason:
            why = why or reason
        except NanFound:
            raise
        except Exception as reason:  # a custom function's rule may take no such values, and f itself did not fail
            if strategy is not None or way in (VJPS, JVPS):
                raise
            why = why or reason
    if strategy is not None or not fits:
        raise _too_much(api, why, trace, memory)
    return _by(VJPS if m <= n or isinstance(why, NoForwardMode) else JVPS, trace, function, x, memory)


def terms_to_repeat(
    trace: JacobianTrace, function: AnyFunction, x: tuple[AnyArray, ...], *, api: str, memory: int
) -> TermGrid:
    """The terms of ``terms_of`` for a plan: in their places are the numbers of products, where repeating these costs less."""
    found = terms_of(trace, function, x, api=api, memory=memory)
    m, n = _size(trace)
    dtypes = {y.dtype for y in trace.results} | {v.dtype for v in trace.variables}
    if m * n < SMALL or m * n * ITEMSIZE > memory or [dtype.kind for dtype in dtypes] != ["f"]:
        return found
    vals = [term.vals for row in found for terms in row for term in terms]
    if trace.strategy != FORWARD or any([isinstance(v, Tensor) and v._edge is not None for v in vals]):
        return found  # which depend on what is on the tape, and products would not show it
    way = to_repeat(trace.steps, trace.results, trace.variables, memory // ITEMSIZE)
    if way is None:
        return found
    try:
        products = _by(way, trace, function, x, memory)
    except Exception:  # an operation has no forward mode, or takes no batches
        trace.strategy = FORWARD
        return found
    return [
        [
            [_in_places(whole, assemble.EntryPattern.of(terms, y.shape, whole.source.size))]
            for terms, (whole,) in zip(row, wholes, strict=True)
        ]
        for y, row, wholes in zip(trace.results, found, products, strict=True)
    ]


def _in_places(whole: Term, pattern: assemble.EntryPattern) -> Term:
    """The entries of a pattern, of a term with all columns."""
    rows, cols = pattern.row_numbers(), pattern.indices.astype(np.intp)
    values = np.take(flat(whole.full_vals()), cols * pattern.shape[0] + rows)
    return Term(whole.source, cols[None], np.reshape(values, (1, -1)), rows)


def _by(
    way: str, trace: JacobianTrace, function: AnyFunction, x: TensorLike | tuple[AnyArray, ...], memory: int
) -> TermGrid:
    trace.strategy = way
    if way == FORWARD:
        return trace.terms(memory)
    if way == REVERSE:
        return reverse_terms(_transposes(trace, function, x, memory), trace.variables)
    mode = "reverse" if way == VJPS else "forward"
    found = dense.jacobian(function, x, mode=mode, create_graph=trace.create_graph, memory=memory)
    parts = iter(tree_leaves(found))
    return [[[_term_of_columns(next(parts), v, y.shape)] for v in trace.variables] for y in trace.results]


def terms_by_colours(trace: JacobianTrace, function: AnyFunction, x: object, sparsity: object, memory: int) -> TermGrid:
    """The terms of a Jacobian whose pattern is known: products with few vectors give its entries.

    Args:
        sparsity: the pattern: a sparse array, or an array.

    Raises:
        ValueError: there are several outputs or inputs, or something is complex or to be recorded; the pattern has another shape.
    """
    if len(trace.results) != 1 or len(trace.variables) != 1:
        raise errors.jacobian_sparsity(f"there are {len(trace.results)} and {len(trace.variables)}")
    (y,), (variable,) = trace.results, trace.variables
    if trace.create_graph or "c" in (y.dtype.kind, variable.dtype.kind):
        raise errors.jacobian_sparsity("it is real, and off the tape")
    pattern = pattern_of(sparsity, (math.prod(y.shape), variable.size))
    flat, (point,) = of_leaves(trace, function, x)
    colours = coloured(pattern)
    trace.strategy = "products by colours"
    step = max(1, memory // (ITEMSIZE * 8 * max(*pattern.shape, 1)))

    def push(tangents: object) -> Any:
        return jvp(flat, (point,), (tangents,))[1][0]

    if not colours.of_rows:
        try:
            values = entries(pattern, colours, _batch(push, point), variable.shape, variable.dtype, step)
            return [[[term_of(pattern, variable, values)]]]
        except NoForwardMode:
            colours = coloured(pattern, True)
    outputs, pull = vjp(flat, point)
    values = entries(pattern, colours, _batch(lambda g: pull((g,))[0], outputs[0]), tuple(y.shape), y.dtype, step)
    return [[[term_of(pattern, variable, values)]]]


def _batch(product: Callable[[Any], Any], like: AnyArray) -> Callable[[Any], Any]:
    """Products of several vectors at once; one by one, where a rule takes no batches."""

    def products(vectors: NumpyArray) -> Any:
        given = wrap(vectors) if isinstance(like, Tensor) else vectors
        try:
            found = vmap(product)(given)
        except NoForwardMode:
            raise
        except (NotImplementedError, RuntimeError, TypeError):
            found = np.stack([data_of(unfaced(product(v))) for v in given])
        return data_of(unfaced(found))

    return products


def _transposes(trace: JacobianTrace, function: AnyFunction, x: object, memory: int) -> list[Transposes]:
    args = x if type(x) is tuple else (x,)
    return transposes(function, args, trace.variables, memory // ITEMSIZE, trace.create_graph)


def dense_jacobian(
    function: AnyFunction, x: TensorLike | tuple[TensorLike, ...] | dict[str, AnyArray], memory: int
) -> Any:
    """The dense Jacobian of a large function by its structure; None where products with vectors cost less.

    It is None, too, where these do what terms do not: record, count as another transformation's operations.
    """
    if not _is_plain(x):
        return None
    try:
        trace = JacobianTrace(function, x, False)
    except Exception:  # products with vectors will say what is wrong, if anything is
        return None
    m, n = _size(trace)
    dtypes = {y.dtype for y in trace.results} | {v.dtype for v in trace.variables}
    if m * n < SMALL or len(dtypes) > 1:
        return None
    for y in trace.results:
        for v in trace.variables:
            check_size(y.shape, v.shape, y.dtype, largest(memory))
    way = chosen(trace.steps, trace.results, trace.variables, dense=True, limit=memory // ITEMSIZE)
    products = min([products_cost(trace.steps, a, b, memory // ITEMSIZE).operations for a, b in ((m, n), (n, m))])
    memory = min(memory, ITEMSIZE * max(int(products), SMALL))  # a step that makes more is more work than products
    try:
        if way == FORWARD:
            blocks = [
                [
                    assemble.dense(terms, y.shape, v.shape, y.dtype)
                    for terms, v in zip(row, trace.variables, strict=True)
                ]
                for y, row in zip(trace.results, trace.terms(memory), strict=True)
            ]
        elif way == REVERSE:
            blocks = reverse_dense(_transposes(trace, function, x, memory), trace.variables)
        else:
            return None
    except (Unstructured, NotImplementedError):
        return None
    rows = [tree_unflatten([_faced(part, trace.arrays) for part in row], trace.inner) for row in blocks]
    return tree_unflatten(rows, trace.outer)


def plan_of(function: AnyFunction, x: object, wants_dense: bool, strategy: str | None, memory: int) -> Plan:
    """How the Jacobian of ``function`` at ``x`` is computed."""
    trace = JacobianTrace(function, x)
    m, n = _size(trace)
    small = wants_dense and strategy is None and (not _is_plain(x) or m * n < SMALL)
    if small:
        strategy = JVPS if n < m else VJPS
    plan = planned(trace.results, trace.variables, dense=wants_dense, limit=memory // ITEMSIZE, strategy=strategy)
    if small:
        plan.why = "as it is small or recorded"
    return plan


def _faced(block: object, arrays: bool) -> Any:
    """A block in the caller's face; what depends on a tensor of the caller's that is on the tape is taken off."""
    if not arrays and isinstance(block, Tensor):
        block = block._raw
    return as_caller_type(block, not arrays)


def _is_plain(x: object) -> bool:
    """Whether there are many real numbers, on no tape and in no transformation."""
    count = 0
    for leaf in tree_leaves(x):
        tensor = unfaced(leaf)
        data = tensor._raw if isinstance(tensor, Tensor) else tensor
        if type(data) is not ndarray or data.dtype.kind != "f":
            return False
        if isinstance(tensor, Tensor) and tensor._edge is not None and recording():
            return False
        count += data.size
    return count >= MANY and not STACK.levels and LOCAL.watch is None and LOCAL.recorder is None


def _term_of_columns(found: AnyArray, source: Variable, shape: tuple[int, ...]) -> Term:
    """A dense Jacobian (*shape, *source) as a term: every element of the source is a slot."""
    found = unfaced(found)
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
    """A number of bytes for people."""
    power = min(max(count, 1).bit_length() // 10, len(_UNITS) - 1)
    return f"{count / 1024**power:.3g} {_UNITS[power]}"


_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
