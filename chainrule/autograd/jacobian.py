"""``jacobian``: all of ∂y/∂x, of functions and of computed tensors, by rows or by columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.autograd.dense import MEMORY, Limits, bound_of, forward, rows
from chainrule.core.array import array_of, as_tensors, faced, unfaced
from chainrule.core.modes import inference_mode, recording
from chainrule.core.node import Leaf
from chainrule.core.protocol import ArrayLike
from chainrule.core.tensor import Tensor, wrap, wrapped
from chainrule.table.shape import alias
from chainrule.tree import tree_flatten, tree_unflatten

ndarray = np.ndarray


def jacobian(
    y: Any,
    x: Any,
    *,
    mode: str = "auto",
    create_graph: bool | None = None,
    chunk_size: int | None = None,
    memory: int = MEMORY,
) -> Any:
    """The generalized Jacobian ∂y/∂x, of shape ``(*y.shape, *x.shape)``: of tensors already computed, or of a function.

    Args:
        y: a tensor that was computed from ``x`` (or a tree of them), or a function of ``x``. The graph of computed tensors
            is kept, and ``.grad`` is left alone.
        x: with tensors: one that requires grad, or a tree of them. With a function: an array, tensor or number, or a tree
            of them; a tuple holds several arguments.
        mode: for a function: "forward" computes a column at a time, "reverse" a row at a time, "auto" whatever there are
            fewer of.
        create_graph: record the result, so that it can be differentiated itself. By default that of a function is where
            ``x`` is on the tape, and that of tensors is not.
        chunk_size: how many rows or columns to compute in one batched pass.
        memory: otherwise, as many as keep what one pass produces below this number of bytes. The result itself is extra.

    Returns:
        A tensor; arrays where a function was given only arrays. With several outputs or inputs, in the outputs' tree one
        Jacobian for each input in the inputs' tree. For complex ``x`` and ``y`` it is the complex derivative, which the
        function must have; for complex ``x`` and real ``y`` the gradient of each element, as ``backward`` defines it.

    Raises:
        RuntimeError: ``y`` does not depend on anything that requires grad, or ``x`` does not require grad.
        TypeError: integers.

    >>> import chainrule as cr
    >>> b = cr.tensor([4., 5., 6.], requires_grad=True)
    >>> c = cr.tensor([1., 2., 3.]) * b
    >>> cr.jacobian(c, b)
    tensor([[1., 0., 0.],
            [0., 2., 0.],
            [0., 0., 3.]])
    >>> import numpy as np
    >>> cr.jacobian(lambda x: np.outer(x, x)[0], np.array([1., 2.]))
    array([[2., 0.],
           [2., 1.]])
    """
    if mode not in ("auto", "forward", "reverse"):
        raise ValueError(f"jacobian(): mode is 'auto', 'forward' or 'reverse', not {mode!r}")
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f"jacobian(): chunk_size must be a positive int, not {chunk_size!r}")
    limits = Limits(chunk_size, memory)
    if callable(y) and not isinstance(y, Tensor):
        return _of_function(y, x, mode, create_graph, limits)
    if mode == "forward":
        raise errors.jacobian_needs_function()
    return _of_tensors(y, x, bool(create_graph), limits)


def _of_tensors(y: Any, x: Any, create_graph: bool, limits: Limits) -> Any:
    ys, outer = tree_flatten(as_tensors(y))
    xs, inner = tree_flatten(as_tensors(x))
    if not ys or not xs:
        raise errors.jacobian_of_nothing("y" if not ys else "x")
    for i, t in enumerate(ys):
        if not isinstance(t, Tensor):
            raise errors.not_a_tensor("jacobian", "y", t)
        if not t.requires_grad:
            raise errors.no_grad_fn(i, t)
    for i, t in enumerate(xs):
        if not isinstance(t, Tensor):
            raise errors.not_a_tensor("jacobian", "x", t)
        if not t.requires_grad:
            raise errors.input_requires_no_grad(i, t)
    jacobians = [tree_unflatten(reverse(t, xs, create_graph, limits), inner) for t in ys]
    return tree_unflatten(jacobians, outer)


def reverse(y: Tensor, xs: Sequence[Tensor], create_graph: bool = False, limits: Limits | None = None) -> list[Tensor]:
    """∂y/∂x for every x, which must require grad; zeros where y does not depend on it."""
    if y.dtype.kind != "c":
        return rows(y, xs, create_graph, limits)
    parts: list[Any] = [np.conj(part) for part in rows(y, xs, create_graph, limits)]
    if all(x.dtype.kind == "c" for x in xs):
        return parts
    imaginary = rows(y, xs, create_graph, limits, 1j)
    return [p if x.dtype.kind == "c" else p + 1j * i for x, p, i in zip(xs, parts, imaginary)]


def _of_function(function: Callable[..., Any], x: Any, mode: str, create_graph: bool | None, limits: Limits) -> Any:
    given, inner = tree_flatten(x)
    if not given:
        raise errors.jacobian_of_nothing("x")
    leaves = [unfaced(leaf) for leaf in given]
    if create_graph is None:
        create_graph = recording() and any(isinstance(leaf, Tensor) and leaf._edge is not None for leaf in leaves)
    several = type(x) is tuple
    arrays = not any(isinstance(leaf, (Tensor, ArrayLike)) for leaf in given)
    sources = [_source(leaf, create_graph) for leaf in leaves]
    structure: list[Any] = []

    def flat(*args: Tensor) -> list[Any]:
        tree = tree_unflatten([faced(arg, leaf) for arg, leaf in zip(args, given, strict=True)], inner)
        outputs, outer = tree_flatten(function(*tree) if several else function(tree))
        outputs = [unfaced(out) for out in outputs]
        if not outputs:
            raise errors.jacobian_of_nothing("the function's result")
        structure[:] = [outer]
        return [_output(out) for out in outputs]

    n = sum(s.numel() for s in sources)
    if mode == "forward" or (mode == "auto" and n == 1 and sources[0].dtype.kind != "c"):
        found = forward(flat, sources, create_graph, limits)
    else:
        found = _by_either(flat, sources, n, mode, create_graph, limits)
    shaped = [tree_unflatten([_form(part, arrays) for part in row], inner) for row in found]
    return tree_unflatten(shaped, structure[0])


def _source(leaf: Any, create_graph: bool) -> Tensor:
    """An argument as a tensor, on the tape only where the result is to be."""
    if not isinstance(leaf, (Tensor, ArrayLike)):
        leaf = np.asarray(leaf)
    dtype = leaf.dtype
    if dtype.kind not in "fc":
        raise errors.jacobian_integers(dtype)
    if isinstance(leaf, Tensor):
        return leaf if create_graph and leaf.requires_grad else wrap(leaf._raw) if leaf._edge is not None else leaf
    return wrap(leaf)


def _output(out: Any) -> Any:
    if not isinstance(out, (Tensor, ArrayLike)):
        out = np.asarray(out)
        if out.dtype.kind not in "fciub":
            raise errors.jacobian_output(out)
    return wrapped(out)


def _form(part: Any, arrays: bool) -> Any:
    if not arrays:
        return part
    return part._raw if part._edge is None and type(part._raw) is ndarray else array_of(part)


def _by_either(
    flat: Callable[..., list[Any]], sources: list[Tensor], n: int, mode: str, create_graph: bool, limits: Limits
) -> list[list[Tensor]]:
    """Rows from the graph of one call; or columns, where ``mode`` leaves the choice and there are fewer of those."""
    with inference_mode(False):
        starts = [_start(s, create_graph) for s in sources]
        ys = flat(*starts)
    for y in ys:
        if y.dtype.kind not in "fc":
            raise errors.jacobian_integer_output(y)
    real_x = all(s.dtype.kind == "f" for s in sources)
    if mode == "auto" and real_x and n < sum(y.numel() for y in ys if y.requires_grad):
        del starts
        bound = bound_of(ys)
        del ys
        return forward(flat, sources, create_graph, limits, bound)
    return [
        reverse(y, starts, create_graph, limits)
        if y.requires_grad
        else [wrap(np.zeros((*y.shape, *s.shape), np.result_type(y.dtype, s.dtype))) for s in sources]
        for y in ys
    ]


def _start(source: Tensor, create_graph: bool) -> Tensor:
    if create_graph and source.requires_grad and recording():
        return alias(source)  # type: ignore[no-any-return]
    fresh = wrap(source._raw)
    fresh._edge = Leaf(fresh)
    return fresh
