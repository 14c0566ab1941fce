"""Dense Jacobians ∂y/∂x of functions and of computed tensors: all rows by reverse mode, or all columns by forward mode.

``chainrule.jacobian`` calls ``jacobian_of_function`` and ``jacobian_of_tensors``. ``autograd.functional.jacobian`` has its own checks, and
calls ``reverse_jacobian`` and ``forward_jacobian``. Every block of the result has the shape ``(*y.shape, *x.shape)``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import as_tensors, unwrap_array
from chainrule._src.api.grad_mode import inference_mode
from chainrule._src.arrays.tree import tree_flatten, unflatten_rows
from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule._src.messages import errors
from chainrule._src.messages.kinds import NanFound
from chainrule._src.tape import engine
from chainrule._src.tape.fp_warnings import at_users_line
from chainrule._src.tape.levels import restoring_levels
from chainrule._src.tape.modes import ACTIVE_MODES, is_recording
from chainrule._src.tape.node import Node, next_seq
from chainrule._src.tape.saved import check_saved
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap
from chainrule._src.tape.versions import CLOCK
from chainrule._src.transforms.arguments import as_caller_type, interpreter_content
from chainrule._src.transforms.backward import grad
from chainrule._src.transforms.dense import Limits, check_sizes, compute_columns, compute_rows, pass_bound, push_basis
from chainrule._src.transforms.flat_function import FlatFunction, on_tape, primal_of, result_of
from chainrule._src.transforms.trace import fresh_leaf

ndarray = np.ndarray


def jacobian_of_tensors(y: object, x: object, create_graph: bool = False, limits: Limits | None = None) -> Any:
    """Compute ∂y/∂x for each tensor in a tree ``y`` and each in a tree ``x`` that it was computed from, row by row.

    Returns:
        The tree of ``y``, with a tree of ``x`` for each leaf.

    Raises:
        TypeError: a leaf is not a tensor.
        RuntimeError: a tensor does not require grad.
        ValueError: ``y`` or ``x`` is empty, or a Jacobian is too large.
    """
    ys, outer = tree_flatten(as_tensors(y))
    xs, inner = tree_flatten(as_tensors(x))
    if not ys or not xs:
        raise errors.jacobian_of_nothing("x" if ys else "y")
    for what, tensors, without_grad in (("y", ys, errors.no_grad_fn), ("x", xs, errors.input_requires_no_grad)):
        for i, t in enumerate(tensors):
            if not isinstance(t, Tensor):
                raise errors.jacobian_of_value(t) if what == "y" else errors.not_a_tensor("jacobian", what, t)
            if not t.requires_grad:
                raise without_grad(i, t)
    limits = limits or Limits()
    check_sizes(ys, xs, limits.memory)
    return unflatten_rows([_reverse_real_or_complex(t, xs, create_graph, limits) for t in ys], inner, outer)


@restoring_levels
def jacobian_of_function(function: AnyFunction, x: Any, mode: str, create_graph: bool | None, limits: Limits) -> Any:
    """Compute the Jacobian of ``function`` at a tree ``x`` by rows or columns, without using its structure.

    Args:
        x: the argument; a tuple holds several.
        mode: "forward" (columns), "reverse" (rows), or "auto" (fewer passes).
        create_graph: record the result. None: record it if ``x``, or another value that the function uses, is on the tape.

    Returns:
        The tree of the function's result, with a tree of ``x`` for each leaf.

    Raises:
        TypeError: ``x`` or the result has an integer dtype.
        ValueError: ``x`` or the result is empty, or a Jacobian is too large.
    """
    call = FlatFunction(function, x)
    leaves = call.leaves()
    linked = create_graph is None and is_recording()
    if create_graph is None:
        create_graph = on_tape(leaves)
    sources = [tensor_of(primal_of(leaf, create_graph)) for leaf in leaves]

    def flat(*args: Tensor) -> list[Any]:
        found = [tensor_of(result_of(unwrap_array(out))) for out in call.at(args)]
        check_sizes(found, sources, limits.memory)
        return found

    n = sum([s.numel() for s in sources])
    if mode == "forward" or (mode == "auto" and n == 1 and sources[0].dtype.kind != "c"):
        found = forward_jacobian(flat, sources, limits)
    else:
        found = _by_rows_or_columns(flat, sources, n, mode, create_graph, linked, limits)
    tensors = not call.takes_arrays
    return unflatten_rows([[as_caller_type(part, tensors) for part in row] for row in found], call.inner, call.outer)


def _by_rows_or_columns(
    flat: Callable[..., list[Any]],
    sources: list[Tensor],
    n: int,
    mode: str,
    create_graph: bool,
    linked: bool,
    limits: Limits,
) -> list[list[Tensor]]:
    """Compute the rows from the graph of one call; or the columns, if ``mode`` is "auto" and there are fewer columns.

    With ``linked``, the result is recorded if the function used other tensors that are on the tape.
    """
    began = next_seq()
    with inference_mode(False):
        starts = [fresh_leaf(s, create_graph) for s in sources]
        ys = flat(*starts)
    for y in ys:
        if y.dtype.kind not in "fc":
            raise errors.jacobian_integer_output(y)
    real_x = all(s.dtype.kind == "f" for s in sources)
    if mode == "auto" and real_x and n < sum([y.numel() for y in ys if y.requires_grad]):
        bound = pass_bound(ys)
        del starts, ys
        return forward_jacobian(flat, sources, limits, bound)
    if linked and not create_graph:
        roots = [y._edge for y in ys if y._edge is not None]
        create_graph = engine.reaches_outside(roots, began, [start._edge for start in starts])
    return [
        _reverse_real_or_complex(y, starts, create_graph, limits)
        if y.requires_grad
        else [wrap(np.zeros((*y.shape, *s.shape), np.result_type(y.dtype, s.dtype))) for s in sources]
        for y in ys
    ]


# -- all rows, all columns --------------------------------------------------------------------------------------------


def _reverse_real_or_complex(y: Tensor, xs: Sequence[Tensor], create_graph: bool, limits: Limits) -> list[Tensor]:
    """Return ∂y/∂x for every x, which must require grad; for complex y and real x from two sets of rows."""
    if y.dtype.kind != "c":
        return reverse_jacobian(y, xs, create_graph, limits)
    parts: list[Any] = [np.conj(part) for part in reverse_jacobian(y, xs, create_graph, limits)]
    if all(x.dtype.kind == "c" for x in xs):
        return parts
    imaginary = reverse_jacobian(y, xs, create_graph, limits, 1j)
    return [p if x.dtype.kind == "c" else p + 1j * i for x, p, i in zip(xs, parts, imaginary)]


def reverse_jacobian(
    y: Tensor, xs: Sequence[Tensor], create_graph: bool = False, limits: Limits | None = None, unit: complex = 1
) -> list[Tensor]:
    """Compute ∂y/∂x for every x in batches of rows: of cotangents that are ``unit`` at one element and zero elsewhere."""
    n = y.numel()
    root, targets = y._edge, [x._edge for x in xs]
    pull_many = None
    if root is None or None in targets:  # for duals, only their primals and tangents are on the tape

        def pull(g: TensorLike, more: bool, batched: bool = False) -> Sequence[Any]:
            found: tuple[Any, ...] = grad(
                y, list(xs), wrap(g), True, create_graph, allow_unused=True, is_grads_batched=batched
            )
            return found

        pull_many = functools.partial(pull, batched=True)
    else:
        if not create_graph:
            root, unit = _through_elementwise(root, np.full(y.shape, unit, y.dtype), targets)
        order = engine.reachable([root])

        def pull(g: TensorLike, more: bool, batched: bool = False) -> Sequence[Any]:
            return engine.sweep(
                [root],
                [wrap(g) if create_graph else g],
                targets,
                retain_graph=True,
                create_graph=create_graph,
                accumulate=False,
                retain_grads=False,
                order=order,
            )

    try:
        bound = pass_bound([y]) if y._edge is not None and n > 1 else None
        one = functools.partial(pull, np.zeros(y.shape, y.dtype), True)
        step = (limits or Limits()).chunk(n, bound, one, 2 * y.nbytes)
        found = compute_rows(pull, y, xs, step, "jacobian", unit, pull_many=pull_many)
    except NanFound:
        raise
    except (NotImplementedError, RuntimeError, TypeError) as error:
        # A rule does not support batches, or it fails in any case, and then again in the next line.
        found = compute_rows(pull, y, xs, 1, "jacobian", unit)
        errors.warn_unbatched(error)
    return [tensor_of(x) for x in found]


def _through_elementwise(edge: object, diagonal: AnyArray, targets: Sequence[object]) -> tuple[Any, Any]:
    """Pull the rows back through elementwise operations of one operand: all rows together are a single diagonal.

    Returns:
        The first edge at which this ends, and the diagonal there.
    """
    while (
        isinstance(edge, Node)
        and edge.prim.kind == "elementwise"
        and edge.in_avals is None
        and edge.hooks is None
        and type(edge.saved) is tuple
        and not ACTIVE_MODES
        and edge not in targets
    ):
        used = [i for i, operand in enumerate(edge.edges) if operand is not None]
        if len(used) != 1:
            break
        if CLOCK.latest > edge.seq:
            check_saved(edge)
        below = at_users_line(_call_pullback, edge, diagonal)[used[0]]
        if type(below) is not ndarray:  # inside a transformation
            break
        edge, diagonal = edge.edges[used[0]], below
    return edge, diagonal


def _call_pullback(node: Node, g: AnyArray) -> tuple[Any, ...]:
    return node.pullback(node, g, node.saved, node.edges)


def forward_jacobian(
    flat: Callable[..., Sequence[Any]],
    sources: Sequence[Tensor],
    limits: Limits | None = None,
    bound: int | None = None,
) -> list[list[Tensor]]:
    """Compute ∂y/∂x by forward mode, for every output y of ``flat`` and every source x."""
    primals = [interpreter_content(s) for s in sources]
    complex_source = any(s.dtype.kind == "c" for s in sources)

    def checked(*duals: Tensor) -> Sequence[Any]:
        outputs = flat(*duals)
        for y in outputs:
            if y.dtype.kind not in "fc":
                raise errors.jacobian_integer_output(y)
            if complex_source and y.dtype.kind != "c":
                raise errors.jacobian_complex_forward()
        return outputs

    def spans() -> Iterator[tuple[int, int]]:
        """Yield ranges of columns, each within one source, so the other sources need no tangents."""
        at = 0
        for source in sources:
            end = at + source.numel()
            one = functools.partial(push_basis, checked, primals, at, at + 1, "jacobian")
            step = (limits or Limits()).chunk(end - at, bound, one)
            for first in range(at, end, step):
                yield first, min(first + step, end)
            at = end
        if not at:
            yield 0, 0

    found, _ = compute_columns(checked, primals, spans(), "jacobian", lift_leaves=False)
    return [[tensor_of(x) for x in row] for row in found]
