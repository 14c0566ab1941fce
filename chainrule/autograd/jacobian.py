"""Dense Jacobians, many rows or columns in one pass, under a limit on memory.

Reverse mode sweeps a computed graph once for a whole batch of rows: the cotangent is a ``Batched`` identity. Forward
mode runs the function once for a whole batch of columns: its arguments are ``Dual``, whose primals are computed once while
their tangents are a ``Batched`` identity. How many go in one pass is decided by what a pass with one of them makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.autograd.backward import grad
from chainrule.core import engine
from chainrule.core.levels import entered
from chainrule.core.modes import enable_grad, recording
from chainrule.core.node import Leaf
from chainrule.core.protocol import ArrayLike
from chainrule.core.shapes import shape_of
from chainrule.core.tensor import Tensor, wrap
from chainrule.core.watch import Watch
from chainrule.interpreters.batched import Batched
from chainrule.interpreters.dual import Dual
from chainrule.table.shape import alias
from chainrule.tree import tree_flatten, tree_unflatten

ndarray = np.ndarray

#: Bytes that one batched pass may produce, unless the caller says otherwise.
MEMORY = 256 * 2**20


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
    limits = _Limits(chunk_size, memory)
    if callable(y) and not isinstance(y, Tensor):
        return _of_function(y, x, mode, create_graph, limits)
    if mode == "forward":
        raise errors.jacobian_needs_function()
    return _of_tensors(y, x, bool(create_graph), limits)


class _Limits:
    """How many rows or columns go in one pass."""

    __slots__ = ("chunk_size", "memory")

    def __init__(self, chunk_size: int | None = None, memory: int = MEMORY) -> None:
        self.chunk_size = chunk_size
        self.memory = memory

    def chunk(self, count: int, bound: int, measure: Callable[[], int]) -> int:
        """The size of a pass, where one of ``count`` makes at most ``bound`` bytes, exactly ``measure()``."""
        if self.chunk_size is not None:
            return min(self.chunk_size, count)
        if count == 1 or bound * count <= self.memory:
            return count
        return max(1, min(count, int(self.memory // max(measure(), 1))))


# -- computed tensors ------------------------------------------------------------------------------------------------


def _of_tensors(y: Any, x: Any, create_graph: bool, limits: _Limits) -> Any:
    ys, outer = tree_flatten(y)
    xs, inner = tree_flatten(x)
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


def reverse(y: Tensor, xs: Sequence[Tensor], create_graph: bool = False, limits: _Limits | None = None) -> list[Tensor]:
    """∂y/∂x for every x, which must require grad; zeros where y does not depend on it."""
    if y.dtype.kind != "c":
        return rows(y, xs, create_graph, limits)
    parts = [np.conj(part) for part in rows(y, xs, create_graph, limits)]
    if all(x.dtype.kind == "c" for x in xs):
        return parts
    imaginary = rows(y, xs, create_graph, limits, 1j)
    return [p if x.dtype.kind == "c" else p + 1j * i for x, p, i in zip(xs, parts, imaginary)]


def rows(
    y: Tensor, xs: Sequence[Tensor], create_graph: bool = False, limits: _Limits | None = None, unit: complex = 1
) -> list[Tensor]:
    """What a cotangent that is ``unit`` in one element of y and zero in the others pulls back to, for every element."""
    n = y.numel()
    if n == 0:
        return [wrap(np.zeros((*y.shape, *x.shape), x.dtype)) for x in xs]
    limits = limits or _Limits()
    sweep = _sweeper(y, xs, unit, create_graph)
    meter = _Meter()
    bound = _bound([x._data for x in (y, *xs)], engine.reachable([y._edge]) if y._edge is not None else [])

    def measure() -> int:
        with meter:
            sweep(0, 1)
        return meter.bytes + 2 * y.nbytes

    try:
        step = limits.chunk(n, bound, measure)
        return _gather(sweep, n, step, y.shape, xs, create_graph)
    except (NotImplementedError, RuntimeError, TypeError) as error:  # what no batch can go through, or what fails anyway
        found = _gather(_one_by_one(y, xs, unit, create_graph), n, 1, y.shape, xs, create_graph)
        errors.warn_unbatched(error)
        return found


def _sweeper(y: Tensor, xs: Sequence[Tensor], unit: complex, create_graph: bool) -> Callable[[int, int], list[Any]]:
    """``(first, last) -> cotangents of xs``, with a leading axis for the rows, by one batched sweep."""
    n, shape, dtype = y.numel(), tuple(y.shape), y.dtype
    plain = y._edge is not None and all(x._edge is not None for x in xs)
    order = engine.reachable([y._edge]) if plain else []
    targets = [x._edge for x in xs]

    def sweep(first: int, last: int) -> list[Any]:
        seeds = np.zeros((last - first, n), dtype)
        seeds[np.arange(last - first), np.arange(first, last)] = unit
        seeds = seeds.reshape(-1, *shape)
        if not plain:
            found: Any = grad(
                y, list(xs), wrap(seeds), True, create_graph, allow_unused=True, is_grads_batched=True
            )
            return list(found)
        with entered("jacobian", _shared, size=last - first, leaves=False) as level:
            g: Any = Batched(seeds, level)
            found = engine.sweep(
                [y._edge],
                [wrap(g) if create_graph else g],
                targets,
                retain_graph=True,
                create_graph=create_graph,
                accumulate=False,
                order=list(order),
            )
            return [None if f is None else _spread(f, last - first, level) for f in found]

    return sweep


def _one_by_one(y: Tensor, xs: Sequence[Tensor], unit: complex, create_graph: bool) -> Callable[[int, int], list[Any]]:
    """As ``_sweeper``, without batching."""

    def sweep(first: int, last: int) -> list[Any]:
        seed = np.zeros(y.shape, y.dtype)
        seed.reshape(-1)[first] = unit
        found = grad(y, list(xs), wrap(seed), True, create_graph, allow_unused=True)
        return [None if g is None else g[None] for g in found]

    return sweep


def _gather(
    sweep: Callable[[int, int], list[Any]],
    n: int,
    step: int,
    shape: tuple[int, ...],
    xs: Sequence[Tensor],
    create_graph: bool,
) -> list[Tensor]:
    """All rows, pass by pass: written into one array each, or joined where they are not plain arrays."""
    results: list[Any] = [None] * len(xs)
    pieces: list[list[Any]] = [[] for _ in xs]
    for first in range(0, n, step):
        last = min(first + step, n)
        for k, (x, part) in enumerate(zip(xs, sweep(first, last))):
            data = part._data if isinstance(part, Tensor) and part._edge is None else part
            if data is None:
                data = np.zeros((last - first, *x.shape), x.dtype)
            if type(data) is not ndarray or pieces[k]:
                pieces[k].append(data)
            elif first == 0 and last == n:
                results[k] = data if data.flags.owndata else data.copy()
            else:
                if results[k] is None:
                    results[k] = np.empty((n, *data.shape[1:]), data.dtype)
                results[k][first:last] = data
    joined = [np.concatenate(p) if p else r for p, r in zip(pieces, results)]
    return [_tensor(j.reshape((*shape, *x.shape)) if type(j) is ndarray else np.reshape(j, (*shape, *x.shape)))
            for j, x in zip(joined, xs)]


# -- functions -------------------------------------------------------------------------------------------------------


def _of_function(function: Callable[..., Any], x: Any, mode: str, create_graph: bool | None, limits: _Limits) -> Any:
    leaves, inner = tree_flatten(x)
    if not leaves:
        raise errors.jacobian_of_nothing("x")
    if create_graph is None:
        create_graph = recording() and any(isinstance(leaf, Tensor) and leaf._edge is not None for leaf in leaves)
    several = type(x) is tuple
    arrays = not any(isinstance(leaf, (Tensor, ArrayLike)) for leaf in leaves)
    sources = [_source(leaf, create_graph) for leaf in leaves]
    structure: list[Any] = []

    def flat(*args: Tensor) -> list[Any]:
        tree = tree_unflatten(list(args), inner)
        outputs, outer = tree_flatten(function(*tree) if several else function(tree))
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
        return leaf if create_graph and leaf.requires_grad else wrap(leaf._data) if leaf._edge is not None else leaf
    return wrap(leaf)


def _output(out: Any) -> Any:
    if not isinstance(out, (Tensor, ArrayLike)):
        out = np.asarray(out)
        if out.dtype.kind not in "fciub":
            raise errors.jacobian_output(out)
    return out if isinstance(out, Tensor) else wrap(out)


def _form(part: Any, arrays: bool) -> Any:
    return part._data if arrays and part._edge is None and type(part._data) is ndarray else part


def _by_either(
    flat: Callable[..., list[Any]], sources: list[Tensor], n: int, mode: str, create_graph: bool, limits: _Limits
) -> list[list[Tensor]]:
    """Rows from the graph of one call; or columns, where ``mode`` leaves the choice and there are fewer of those."""
    starts = [_start(s, create_graph) for s in sources]
    with enable_grad():
        ys = flat(*starts)
    for y in ys:
        if y.dtype.kind not in "fc":
            raise errors.jacobian_integer_output(y)
    real_x = all(s.dtype.kind == "f" for s in sources)
    if mode == "auto" and real_x and n < sum(y.numel() for y in ys if y.requires_grad):
        del starts
        bound = _bound([x._data for x in (*ys, *sources)], engine.reachable([y._edge for y in ys if y._edge is not None]))
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
    fresh = wrap(source._data)
    fresh._edge = Leaf(fresh)
    return fresh


def forward(
    flat: Callable[..., list[Any]],
    sources: Sequence[Tensor],
    create_graph: bool = False,
    limits: _Limits | None = None,
    bound: int | None = None,
) -> list[list[Tensor]]:
    """For every output of ``flat`` ∂y/∂x for every x, by forward mode."""
    limits = limits or _Limits()
    meter = _Meter()
    columns: list[list[Any]] = []
    for k, source in enumerate(sources):
        m = source.numel()

        def measure(k: int = k) -> int:
            with meter:
                meter.bytes = 0
                _columns(flat, sources, k, 0, 1, create_graph)
            return meter.bytes

        step = limits.chunk(m, limits.memory if bound is None else bound, measure) if m else 1
        sides: list[_Beside] = []
        for first in range(0, max(m, 1), step):
            blocks = _columns(flat, sources, k, first, min(first + step, m), create_graph)
            sides = sides or [_Beside(m) for _ in blocks]
            for side in sides:
                side.add(blocks.pop(0))
        columns.append([side.whole(tuple(source.shape)) for side in sides])
    return [list(row) for row in zip(*columns)]


def _columns(
    flat: Callable[..., list[Any]], sources: Sequence[Tensor], k: int, first: int, last: int, create_graph: bool
) -> list[Any]:
    """For every output its derivatives along elements ``first`` to ``last`` of input ``k``, along a leading axis."""
    source = sources[k]
    count = last - first
    block = np.zeros((count, source.numel()), source.dtype)
    block[np.arange(count), np.arange(first, last)] = 1
    block = block.reshape(count, *source.shape)
    with entered("jacobian", _shared, size=count, leaves=False) as inner, entered("jacobian", _still) as outer:
        args = []
        for i, s in enumerate(sources):
            data = s if s._edge is not None else s._data
            args.append(wrap(Dual(data, Batched(block, inner) if i == k else None, outer)))
        results = []
        for y in flat(*args):
            if y.dtype.kind not in "fc":
                raise errors.jacobian_integer_output(y)
            if source.dtype.kind == "c" and y.dtype.kind != "c":
                raise errors.jacobian_complex_forward()
            data = y._data
            t = data.tangent if type(data) is Dual and data.level == outer else None
            results.append(np.zeros((count, *y.shape), y.dtype) if t is None else _spread(t, count, inner))
    return results


class _Beside:
    """Blocks of columns, each along a leading axis, put side by side: the last axes of the whole are the input's."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.at = 0
        self.array: Any = None
        self.blocks: list[Any] = []

    def add(self, block: Any) -> None:
        if type(block) is not ndarray or self.blocks:
            self.blocks.append(block)
            return
        if self.array is None:
            self.array = np.empty((*block.shape[1:], self.columns), block.dtype)
        self.array[..., self.at : self.at + len(block)] = np.moveaxis(block, 0, -1)
        self.at += len(block)

    def whole(self, shape: tuple[int, ...]) -> Tensor:
        if not self.blocks:
            return wrap(self.array.reshape((*self.array.shape[:-1], *shape)))
        done = [] if self.array is None else [self.array[..., : self.at]]
        whole = np.concatenate([*done, *[np.moveaxis(block, 0, -1) for block in self.blocks]], -1)
        return _tensor(np.reshape(whole, (*shape_of(whole)[:-1], *shape)))


# -- parts of both ---------------------------------------------------------------------------------------------------


def _shared(data: Any, level: Any) -> Batched:
    return Batched(data, level, True)


def _still(data: Any, level: Any) -> Dual:
    return Dual(data, None, level)


def _tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else wrap(x)


def _spread(value: Any, count: int, level: Any) -> Any:
    """The examples of a value along a leading axis, also where it turned out to be the same for all."""
    data = value._data if isinstance(value, Tensor) and type(value._data) is Batched else value
    if type(data) is Batched and data.level == level:
        return data.spread(count)
    return np.broadcast_to(value, (count, *shape_of(value)))


def _bound(values: Sequence[Any], order: Sequence[Any]) -> int:
    """More bytes than one pass makes: every node as large as the largest array in sight, with room for temporaries."""
    largest = max(_size(value) for value in values)
    for node in order:
        for value in getattr(node, "saved", None) or ():
            for part in value if type(value) in (tuple, list) else (value,):
                if hasattr(part, "shape"):
                    largest = max(largest, _size(part))
        for shape, _ in getattr(node, "fits", None) or ():
            size = 1
            for length in shape:
                size *= length
            largest = max(largest, size)
    return 16 * largest * (2 * len(order) + 2)


def _size(value: Any) -> int:
    size = 1
    for length in shape_of(value):
        size *= length
    return size


class _Meter(Watch):
    """Adds up what the rules of one pass make."""

    def __init__(self) -> None:
        self.bytes = 0

    def backward(self, node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
        grads = super().backward(node, g, saved, edges)
        self.bytes += sum(_bytes(part) for part in grads if part is not None)
        return grads

    def tangent(self, prim: Any, primals: Any, tangents: Any, out: Any, params: dict[str, Any]) -> Any:
        t = super().tangent(prim, primals, tangents, out, params)
        for part in t if isinstance(t, tuple) else (t,):
            self.bytes += 0 if part is None else _bytes(part)
        return t


def _bytes(value: Any) -> int:
    return 2 * _size(value) * int(getattr(value, "dtype", np.dtype(float)).itemsize)


