"""Rows and columns of a dense Jacobian, many in one pass, under a limit on memory.

Rows: a computed graph is swept once for a whole batch of them, with a ``Batched`` identity as the cotangent. Columns: the
function runs once for a whole batch of them on ``Dual`` arguments, whose primals are computed once while their tangents
are a ``Batched`` identity. How many go in one pass is decided by what a pass with one of them makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.autograd.backward import grad
from chainrule.core import engine
from chainrule.core.levels import entered, within
from chainrule.core.modes import SPECIAL
from chainrule.core.node import Leaf, Node
from chainrule.core.shapes import shape_of
from chainrule.core.tensor import Tensor, wrap, wrapped
from chainrule.core.versions import CLOCK
from chainrule.core.watch import Watch
from chainrule.interpreters.batched import Batched
from chainrule.interpreters.dual import Dual

ndarray = np.ndarray

#: Bytes that one batched pass may produce, unless the caller says otherwise.
MEMORY = 256 * 2**20


class Limits:
    """How many rows or columns go in one pass."""

    __slots__ = ("chunk_size", "memory")

    def __init__(self, chunk_size: int | None = None, memory: int = MEMORY) -> None:
        self.chunk_size = chunk_size
        self.memory = memory

    def chunk(self, count: int, bound: int | None, measure: Callable[[], int]) -> int:
        """The size of a pass, where one of ``count`` makes at most ``bound`` bytes, exactly ``measure()``."""
        if self.chunk_size is not None:
            return min(self.chunk_size, count)
        if count == 1 or (bound is not None and bound * count <= self.memory):
            return count
        return max(1, min(count, int(self.memory // max(measure(), 1))))


# -- rows, by reverse mode -------------------------------------------------------------------------------------------


@within
def rows(
    y: Tensor, xs: Sequence[Tensor], create_graph: bool = False, limits: Limits | None = None, unit: complex = 1
) -> list[Tensor]:
    """What a cotangent that is ``unit`` in one element of y and zero in the others pulls back to, for every element."""
    n = y.numel()
    if n == 0:
        return [wrap(np.zeros((*y.shape, *x.shape), x.dtype)) for x in xs]
    limits = limits or Limits()
    sweep = _sweeper(y, xs, unit, create_graph)
    meter = _Meter()

    def measure() -> int:
        with meter:
            sweep(0, 1)
        return meter.bytes + 2 * y.nbytes

    try:
        step = limits.chunk(n, bound_of([y]) if y._edge is not None else None, measure)
        return _gather(sweep, n, step, y.shape, xs, create_graph)
    except (NotImplementedError, RuntimeError, TypeError) as error:  # a rule takes no batches, or fails anyway
        found = _gather(_one_by_one(y, xs, unit, create_graph), n, 1, y.shape, xs, create_graph)
        errors.warn_unbatched(error)
        return found


def _sweeper(y: Tensor, xs: Sequence[Tensor], unit: complex, create_graph: bool) -> Callable[[int, int], list[Any]]:
    """``(first, last) -> cotangents of xs``, with a leading axis for the rows, by one batched sweep."""
    n, shape, dtype = y.numel(), tuple(y.shape), y.dtype
    plain = _on_tape(y, xs)
    targets = [x._edge for x in xs]
    root, diagonal = y._edge, np.full(shape, unit, dtype)
    if plain and not create_graph:
        root, diagonal = _through_elementwise(root, diagonal, targets)
    order = engine.reachable([root]) if plain else []

    def sweep(first: int, last: int) -> list[Any]:
        seeds = np.zeros((last - first, n), dtype)
        seeds[np.arange(last - first), np.arange(first, last)] = diagonal.reshape(-1)[first:last]
        seeds = seeds.reshape(-1, *shape)
        if not plain:
            found: Any = grad(y, list(xs), wrap(seeds), True, create_graph, allow_unused=True, is_grads_batched=True)
            return list(found)
        with entered("jacobian", Batched, size=last - first, lift_leaves=False) as level:
            found = _pulled(root, Batched(seeds, level), targets, create_graph, list(order))
            return [None if f is None else _spread(f, last - first, level) for f in found]

    return sweep


def _on_tape(y: Tensor, xs: Sequence[Tensor]) -> bool:
    return y._edge is not None and all(x._edge is not None for x in xs)


def _pulled(root: Any, g: Any, targets: Sequence[Any], create_graph: bool, order: list[Any] | None = None) -> list[Any]:
    """The cotangents of the targets; nothing is freed, and no ``.grad`` is written."""
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


def _through_elementwise(edge: Any, diagonal: Any, targets: Sequence[Any]) -> tuple[Any, Any]:
    """Go down the tape as long as every element comes from one: all rows together are then one diagonal."""
    while (
        isinstance(edge, Node)
        and edge.prim.kind == "elementwise"
        and edge.in_avals is None
        and edge.hooks is None
        and type(edge.saved) is tuple
        and not SPECIAL
        and edge not in targets
    ):
        used = [i for i, below in enumerate(edge.edges) if below is not None]
        if len(used) != 1:
            break
        if CLOCK.latest > edge.seq:
            engine.check_saved(edge)
        diagonal = edge.pullback(edge, diagonal, edge.saved, edge.edges)[used[0]]
        edge = edge.edges[used[0]]
    return edge, diagonal


def _one_by_one(y: Tensor, xs: Sequence[Tensor], unit: complex, create_graph: bool) -> Callable[[int, int], list[Any]]:
    """As ``_sweeper``, without batching."""

    def sweep(first: int, last: int) -> list[Any]:
        seed = np.zeros(y.shape, y.dtype)
        seed.reshape(-1)[first] = unit
        found: Any
        if _on_tape(y, xs):
            found = _pulled(y._edge, seed, [x._edge for x in xs], create_graph)
        else:
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
    taken: list[ndarray[Any, Any]] = []
    for first in range(0, n, step):
        last = min(first + step, n)
        for k, (x, part) in enumerate(zip(xs, sweep(first, last))):
            data = part._raw if isinstance(part, Tensor) and part._edge is None else part
            if data is None:
                data = np.zeros((last - first, *x.shape), x.dtype)
            if type(data) is not ndarray or pieces[k]:
                if results[k] is not None:
                    pieces[k].append(results[k][:first])
                    results[k] = None
                pieces[k].append(data)
            elif first == 0 and last == n:
                results[k] = _own(data, taken)
            else:
                if results[k] is None:
                    results[k] = np.empty((n, *data.shape[1:]), data.dtype)
                results[k][first:last] = data
    joined = [np.concatenate(p) if p else r for p, r in zip(pieces, results)]
    return [
        wrapped(j.reshape((*shape, *x.shape)) if type(j) is ndarray else np.reshape(j, (*shape, *x.shape)))
        for j, x in zip(joined, xs)
    ]


def _own(array: ndarray[Any, Any], taken: list[ndarray[Any, Any]]) -> ndarray[Any, Any]:
    """The array, or a copy where it shares its memory with one in ``taken`` or is a part of something larger."""
    whole: Any = array
    while type(whole.base) is ndarray:
        whole = whole.base
    if whole.base is not None or whole.nbytes != array.nbytes or any(whole is other for other in taken):
        return array.copy()
    taken.append(whole)
    return array


# -- columns, by forward mode ----------------------------------------------------------------------------------------


def forward(
    flat: Callable[..., Sequence[Any]],
    sources: Sequence[Tensor],
    create_graph: bool = False,
    limits: Limits | None = None,
    bound: int | None = None,
) -> list[list[Tensor]]:
    """For every output of ``flat`` ∂y/∂x for every x, by forward mode."""
    limits = limits or Limits()
    meter = _Meter()
    columns: list[list[Any]] = []
    for k, source in enumerate(sources):
        m = source.numel()

        def measure(k: int = k) -> int:
            with meter:
                meter.bytes = 0
                _columns(flat, sources, k, 0, 1, create_graph)
            return meter.bytes

        step = limits.chunk(m, bound, measure) if m else 1
        sides: list[_Beside] = []
        for first in range(0, max(m, 1), step):
            blocks = _columns(flat, sources, k, first, min(first + step, m), create_graph)
            sides = sides or [_Beside(m) for _ in blocks]
            for side in sides:
                side.add(blocks.pop(0))
        columns.append([side.whole(tuple(source.shape)) for side in sides])
    return [list(row) for row in zip(*columns)]


@within
def _columns(
    flat: Callable[..., Sequence[Any]], sources: Sequence[Tensor], k: int, first: int, last: int, create_graph: bool
) -> list[Any]:
    """For every output its derivatives along elements ``first`` to ``last`` of input ``k``, along a leading axis."""
    source = sources[k]
    count = last - first
    block = np.zeros((count, source.numel()), source.dtype)
    block[np.arange(count), np.arange(first, last)] = 1
    block = block.reshape(count, *source.shape)
    with entered("jacobian", Batched, size=count, lift_leaves=False) as inner, entered("jacobian", Dual) as outer:
        args = []
        for i, s in enumerate(sources):
            data = s if s._edge is not None else s._raw
            args.append(wrap(Dual(data, Batched(block, inner) if i == k else None, outer)))
        results = []
        for y in flat(*args):
            if y.dtype.kind not in "fc":
                raise errors.jacobian_integer_output(y)
            if source.dtype.kind == "c" and y.dtype.kind != "c":
                raise errors.jacobian_complex_forward()
            data = y._raw
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
        return wrapped(np.reshape(whole, (*shape_of(whole)[:-1], *shape)))


# -- parts of both ---------------------------------------------------------------------------------------------------


def _spread(value: Any, count: int, level: Any) -> Any:
    """The examples of a value along a leading axis, also where it turned out to be the same for all."""
    data = value._raw if isinstance(value, Tensor) and type(value._raw) is Batched else value
    if type(data) is Batched and data.level == level:
        return data.spread(count)
    return np.broadcast_to(value, (count, *shape_of(value)))


def bound_of(ys: Sequence[Tensor]) -> int | None:
    """More bytes than one pass over the graph of ``ys`` makes; None where the graph does not tell.

    A cotangent has the shape of what it belongs to. That of a leaf is known; that of an operation's result is what the
    next operation noted about its operands, or what an elementwise operation shares with them.
    """
    roots = [y for y in ys if y._edge is not None]
    sizes = {y._edge: y.numel() for y in roots}
    total = 0
    for node in reversed(engine.reachable(sizes)):
        size = _size(node.data) if type(node) is Leaf else sizes.get(node)
        if size is None:
            return None
        total += size
        if isinstance(node, Node):
            in_avals = node.in_avals or (None,) * len(node.edges)
            for edge, fit in zip(node.edges, in_avals):
                if edge is not None and type(edge) is not Leaf:
                    below = _product(fit[0]) if fit is not None else _size_below(node, edge, size)
                    if below is not None:
                        sizes[edge] = max(below, sizes.get(edge, 0))
    return 16 * 4 * total


def _size_below(node: Node, edge: Any, size: int) -> int | None:
    """The size of an operand that the node noted nothing about."""
    if node.prim.kind == "elementwise":
        return size
    if isinstance(edge, Node) and edge.prim.kind == "elementwise" and type(edge.saved) is tuple:
        return max([_size(value) for value in edge.saved if hasattr(value, "shape")], default=None)
    return None


def _product(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _size(value: Any) -> int:
    return _product(shape_of(value))


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
