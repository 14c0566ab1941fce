"""Compute dense Jacobians: rows by reverse mode, columns by forward mode, in batches.

``jacobian`` and ``jacrev`` call ``compute_rows`` and ``compute_columns``.

A batch of rows is one sweep of a graph, with a ``Batched`` identity as the cotangent. A batch of columns is one run of the function
on ``Dual`` arguments, whose tangents are a ``Batched`` identity. If the caller does not give the batch size, ``Limits`` measures the
memory of a pass.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.api.watch import Watch
from chainrule._src.arrays.any_array import is_recorded
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, NumpyArray, NumpyDType, Params, TensorLike
from chainrule._src.interpreters.batched import Batched
from chainrule._src.messages import errors
from chainrule._src.rules.batching import reshape_any
from chainrule._src.tape import engine
from chainrule._src.tape.levels import open_level, restoring_levels
from chainrule._src.tape.node import Leaf, Node
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.pushforward import JvpRun, exit_level

ndarray = np.ndarray


@restoring_levels
def pull_batch(
    pull: Callable[[list[Any]], Sequence[Any]], cotangents: list[AnyArray], api: str, lift_leaves: bool = False
) -> list[AnyArray | None]:
    """Apply ``pull`` to a batch of cotangents with a leading batch axis; the results have it, too."""
    with open_level(api, Batched, shape_of(cotangents[0])[0], "same", lift_leaves) as level:
        found = pull([Batched(g, level) for g in cotangents])
        return [None if g is None else exit_level(g, level) for g in found]


def compute_rows(
    pull: Callable[[Any, bool], Sequence[AnyArray | None]],
    y: AnyArray,
    inputs: Sequence[AnyArray],
    step: int,
    api: str,
    unit: TensorLike = 1,
    lift_leaves: bool = False,
    pull_many: Callable[[Any, bool], Sequence[AnyArray | None]] | None = None,
) -> list[AnyArray]:
    """Compute ∂y/∂x for every input x, of shape (*y.shape, *x.shape), ``step`` rows at a time.

    Args:
        pull: ``pull(cotangent, more)`` takes an array-like of y's shape, and whether it will be called again; returns for
            each input an array-like of its shape, or None for zeros.
        y, inputs: only their shapes and dtypes are used.
        api, lift_leaves: as for ``open_level``.
        unit: the nonzero element of a row's cotangent: a number, or an array with one for each element of y.
        pull_many: like ``pull``, for several cotangents along a leading axis; by default, a batched ``pull``.
    """
    shape, dtype = shape_of(y), dtype_of(y)
    n = math.prod(shape)
    units = unit.reshape(-1) if isinstance(unit, ndarray) else None
    blocks = [_Block(y, x) for x in inputs]
    arrays: list[AnyArray] = []
    for first in range(0, n, step):
        last = min(first + step, n)
        more = last < n
        cotangents = np.zeros((last - first, n), dtype)
        cotangents.reshape(-1)[first :: n + 1] = unit if units is None else units[first:last]
        if last - first == 1:  # a single row needs no batching rule
            found = pull(cotangents.reshape(shape), more)
            if n > 1:
                found = [None if g is None else g[None] for g in found]
        elif pull_many is not None:
            found = pull_many(cotangents.reshape(-1, *shape), more)
        else:

            def pull_one(gs: list[AnyArray], more: bool = more) -> Sequence[AnyArray | None]:
                return pull(gs[0], more)

            found = pull_batch(pull_one, [cotangents.reshape(-1, *shape)], api, lift_leaves)
        for block, part in zip(blocks, found, strict=True):
            block.add(first, last, part, arrays)
    return [block.joined() for block in blocks]


def compute_columns(
    func: Callable[..., Sequence[AnyArray]],
    primals: Sequence[AnyArray],
    spans: Iterable[tuple[int, int]],
    api: str,
    randomness: str = "same",
    lift_leaves: bool = True,
) -> tuple[list[list[AnyArray]], JvpRun]:
    """Compute ∂y/∂x for every output y of ``func`` and every primal x, of shape (*y.shape, *x.shape); also return the last pass.

    Args:
        func: takes a tensor for each primal, returns tensors.
        primals: arrays, or tensors that are on the tape.
        spans: ranges ``(first, last)`` of elements (of all primals, concatenated) whose columns are computed in one pass.
        api, randomness, lift_leaves: as for ``JvpRun``.
    """
    jacobian: list[list[_Block]] = []
    arrays: list[AnyArray] = []
    for first, last in spans:
        run = push_basis(func, primals, first, last, api, randomness=randomness, lift_leaves=lift_leaves)
        if not jacobian:
            jacobian = [[_Block(y, x, by_columns=True) for x in primals] for y in run.result]
        for y, blocks in zip(run.result, jacobian, strict=True):
            found = run.tangents(y)
            begin = 0
            for block in blocks:
                low, high = max(begin, first), min(begin + block.count, last)
                if low < high:
                    whole = found is None or (low, high) == (first, last)
                    part = found if whole else found[low - first : high - first]
                    block.add(low - begin, high - begin, part, arrays)
                begin += block.count
    return [[block.joined() for block in blocks] for blocks in jacobian], run


def push_basis(
    func: Callable[..., Sequence[Any]], primals: Sequence[TensorLike], first: int, last: int, api: str, **options: Any
) -> JvpRun:
    """Run one pass with the unit tangents of the primals' elements ``first`` to ``last`` (exclusive)."""
    tangents = []
    begin = 0
    for p in primals:
        tangents.append(_basis(p, first - begin, last - begin))
        begin += math.prod(shape_of(p))
    return JvpRun(func, primals, tangents, api, last - first, **options)


def _basis(primal: TensorLike, first: int, last: int) -> AnyArray | None:
    """Return a primal's part of the unit vectors ``first`` to ``last``, relative to its first element; None if it has none."""
    shape = shape_of(primal)
    n = math.prod(shape)
    if last <= 0 or first >= max(n, 1):
        return None
    basis = np.zeros((last - first, n), dtype_of(primal))
    if n:
        begin = max(first, 0)
        basis.reshape(-1)[(begin - first) * n + begin :: n + 1][: n - begin] = 1
    return basis.reshape(last - first, *shape)


class _Block:
    """∂y/∂x for one y and one x, collected a few rows (or columns) at a time.

    The parts are written into one array, or concatenated if they are not plain arrays.
    """

    __slots__ = ("array", "by_columns", "count", "like", "pieces", "shape")

    def __init__(self, y: object, x: AnyArray, by_columns: bool = False) -> None:
        self.by_columns = by_columns
        self.like = y if by_columns else x  # a row has the shape of x, a column that of y
        self.count = math.prod(shape_of(x if by_columns else y))
        self.shape = (*shape_of(y), *shape_of(x))
        self.array: Any = None
        self.pieces: list[Any] = []

    def add(self, first: int, last: int, part: AnyArray | None, others: list[AnyArray]) -> None:
        """Store rows (or columns) ``first`` to ``last``, given along the leading axis of ``part`` (None: zeros).

        ``others`` are arrays that other blocks already use as their memory.
        """
        if isinstance(part, Tensor) and part._edge is None:
            part = part._raw
        if part is None:
            part = np.zeros((last - first, *shape_of(self.like)), dtype_of(self.like))
        if type(part) is not ndarray or self.pieces:
            if self.array is not None:
                self.pieces.append(self.array[:first])
                self.array = None
            self.pieces.append(part)
        elif last - first == self.count and not self.by_columns:
            self.array = _own(part, others)
        else:
            if self.array is None:
                self.array = self._empty(part.dtype)
            self.array[first:last] = part

    def _empty(self, dtype: NumpyDType) -> AnyArray:
        """Allocate memory for all rows, or for all columns."""
        if self.by_columns:
            array = np.empty((*shape_of(self.like), self.count), dtype)
            return array.transpose((-1, *range(array.ndim - 1)))
        return np.empty((self.count, *shape_of(self.like)), dtype)

    def joined(self) -> AnyArray:
        """Return the Jacobian of shape (*y.shape, *x.shape)."""
        found = self.array
        if self.pieces:
            found = self.pieces[0] if len(self.pieces) == 1 else np.concatenate(self.pieces)
        elif found is None:  # no elements
            found = self._empty(dtype_of(self.like))
        if self.by_columns:
            plain = type(found) is ndarray
            found = found.transpose((*range(1, found.ndim), 0)) if plain else np.moveaxis(found, 0, -1)
        if is_recorded(found) and not found.flags.c_contiguous:
            found = found.copy()
        return found if shape_of(found) == self.shape else reshape_any(found, self.shape)


def _own(array: NumpyArray, others: list[AnyArray]) -> NumpyArray:
    """Return the array, or a copy if it shares its memory with one in ``others`` or is a part of a larger array."""
    whole: NumpyArray = array
    while type(whole.base) is ndarray:
        whole = whole.base
    if whole.base is not None or whole.nbytes != array.nbytes or any(whole is other for other in others):
        return array.copy()
    others.append(whole)
    return array


# -- batch sizes -----------------------------------------------------------------------------------------------------

#: Default limit of bytes that one batched pass may produce.
MEMORY = 256 * 2**20


_OTHER_LAYOUTS = (
    "For a function, jacobian(f, x, layout='csr') or layout='structured' computes only its entries, and layout='operator' "
    "products with vectors; or raise the limit, which is 16 times memory="
)


def result_limit(memory: int) -> int:
    """Return the most bytes that a dense Jacobian may take if one pass may produce ``memory`` bytes."""
    return 16 * max(memory, MEMORY)


def check_size(
    y_shape: tuple[int, ...], x_shape: tuple[int, ...], dtype: NumpyDType, limit: int, hint: str = _OTHER_LAYOUTS
) -> None:
    """Raise ValueError if a dense Jacobian takes more bytes than a limit; ``hint`` is the suggestion in the message."""
    m, n = math.prod(y_shape), math.prod(x_shape)
    size = m * n * np.dtype(dtype).itemsize
    if size > limit:
        raise errors.jacobian_too_large(m, n, tuple(y_shape), tuple(x_shape), _in_words(size), _in_words(limit), hint)


def check_sizes(ys: Iterable[object], xs: Sequence[object], memory: int) -> None:
    """Raise ValueError if the dense Jacobian of a value with respect to another takes too much for a limit of a pass."""
    for y, x in itertools.product(ys, xs):
        check_size(shape_of(y), shape_of(x), dtype_of(y), result_limit(memory))


def _in_words(count: float) -> str:
    power = 3 if count >= 2**30 else 2
    return f"{count / 1024**power:,.3g} {'GiB' if power == 3 else 'MiB'}"


class Limits(NamedTuple):
    """The limits on the number of rows or columns in one pass."""

    chunk_size: int | None = None
    memory: int = MEMORY

    def chunk(self, count: int, bound: int | None, run_one: Callable[[], object], extra: int = 0) -> int:
        """Return the batch size for ``count`` rows: ``bound`` is an upper bound of the bytes of one, ``run_one`` measures them."""
        if self.chunk_size is not None:
            return max(1, min(self.chunk_size, count))
        if count <= 1 or (bound is not None and bound * count <= self.memory):
            return max(1, count)
        with _Meter() as meter:
            run_one()
        return max(1, min(count, int(self.memory // max(meter.bytes + extra, 1))))


class _Meter(Watch):
    """Adds up the bytes that the rules of one pass produce."""

    def __init__(self) -> None:
        self.bytes = 0

    def backward(
        self, node: Node, g: AnyArray, saved: tuple[TensorLike | None, ...], edges: tuple[object, ...]
    ) -> tuple[AnyArray | None, ...]:
        grads = super().backward(node, g, saved, edges)
        self.bytes += sum([_bytes(part) for part in grads if part is not None])
        return grads

    def tangent(
        self, prim: Any, primals: list[TensorLike], tangents: list[AnyArray | None], out: TensorLike, params: Params
    ) -> Any:
        t = super().tangent(prim, primals, tangents, out, params)
        self.bytes += sum([_bytes(part) for part in (t if isinstance(t, tuple) else (t,)) if part is not None])
        return t


def _bytes(value: TensorLike) -> int:
    return 2 * _size(value) * int(getattr(value, "dtype", np.dtype(float)).itemsize)


def pass_bound(ys: Sequence[Tensor]) -> int:
    """Estimate an upper bound of the bytes that a pass over the graph of ``ys`` produces.

    A cotangent has the shape of its value. No value is assumed to be larger than the largest known array: an output, a leaf, a
    saved value, or an operand whose shape a node stores.
    """
    order = engine.reachable([y._edge for y in ys if y._edge is not None])
    sizes = [y.numel() for y in ys]
    for node in order:
        if type(node) is Leaf:
            sizes.append(_size(node.data))
        elif isinstance(node, Node):
            sizes += [math.prod(shape) for shape, _ in node.in_avals or ()]
            sizes += [_size(value) for value in node.saved if hasattr(value, "shape")]
    return 16 * 4 * len(order) * max(sizes)


def _size(value: TensorLike) -> int:
    return math.prod(shape_of(value))
