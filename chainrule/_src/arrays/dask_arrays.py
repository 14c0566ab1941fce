"""The ``Library`` of Dask's arrays: implementations for rules that keep the chunks, so that data is read once.

``libraries`` imports this module at the first Dask array, and ``tape/foreign.py`` calls the implementations.

Most functions are Dask's own. NumPy's signatures pass the shape of an operand. The implementations here use its chunks as well, and can
be fused with the elementwise steps around them.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import dask.array as da
import dask.base
import numpy as np
from dask.array.core import _HANDLED_FUNCTIONS
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArrayChunkShapeDep

from chainrule._src.arrays.dask_fusion import with_fused_tasks
from chainrule._src.arrays.library import Library
from chainrule._src.arrays.types import AnyArray, AnyFunction

Chunks = tuple[tuple[int, ...], ...]


class DaskShape(tuple[int, ...]):
    """A shape that also stores an array's chunks, so that arrays made with this shape get the same chunks."""

    chunks: Chunks

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


def shape_of(x: Any) -> DaskShape:
    shape = DaskShape(x.shape)
    shape.chunks = x.chunks
    return shape


def rechunk_like(x: Any, shape: Any) -> Any:
    """Rechunk an array like the array that a shape was taken from."""
    chunks = getattr(shape, "chunks", None)
    return x if chunks is None or x.chunks == chunks else x.rechunk(chunks)


def check_chunk_sizes(x: Any) -> None:
    if any(n != n for n in x.shape):
        raise ValueError(
            f"a Dask array whose chunks have unknown sizes, of shape {x.shape}: derivatives need the sizes. Compute them "
            "with x = x.compute_chunk_sizes(), or give them where the array is made (lengths=True)."
        )


@functools.cache
def lacks_function(function: AnyFunction) -> bool:
    """Return whether Dask has no function of this name in ``dask.array``, and would compute the arrays to call NumPy's."""
    module: Any = da
    for name in function.__module__.split(".")[1:]:
        module = getattr(module, name, None)
    own = getattr(module, function.__name__, function)
    return own is function and function not in _HANDLED_FUNCTIONS


def is_refusal(error: Exception) -> bool:
    """Return whether an error means that ``dask.array.linalg`` has no algorithm for a matrix."""
    return type(error) is ValueError and any(words in str(error) for words in ("chunk", "must be 2", "Dimension must"))


# -- implementations that keep the chunks ------------------------------------------------------------------------------


def broadcast_to(x: Any, shape: Any) -> Any:
    """Compute ``np.broadcast_to`` blockwise: Dask's own is a layer that is never fused."""
    chunks = getattr(shape, "chunks", None)
    if chunks is None:
        return da.broadcast_to(x, tuple(shape))
    x = da.asarray(x)
    letters = tuple(range(len(shape)))
    x_letters = letters[len(shape) - x.ndim :]
    fits = all(n == 1 or own == theirs for n, own, theirs in zip(x.shape, x.chunks, chunks[len(shape) - x.ndim :]))
    if not fits:
        return rechunk_like(da.broadcast_to(x, tuple(shape)), shape)
    return da.blockwise(
        np.broadcast_to,
        letters,
        x,
        x_letters,
        ArrayChunkShapeDep(chunks),
        letters,
        name="broadcast_to-" + tokenize(x, chunks),
        adjust_chunks=dict(enumerate(chunks)),
        align_arrays=False,
        dtype=x.dtype,
        meta=np.empty((0,) * len(shape), x.dtype),
    )


def _partial_product(x: AnyArray, y: AnyArray) -> Any:
    """Return the product of two blocks, with a leading axis to sum over."""
    return np.matmul(x, y)[None]


def matmul(x: Any, y: Any) -> Any:
    """Compute ``np.matmul`` from products of blocks, summed by a tree reduction if the contracted axis is chunked."""
    x, y = da.asarray(x), da.asarray(y)
    if not 1 <= x.ndim <= 2 or not 1 <= y.ndim <= 2 or x.shape[-1] != y.shape[0]:
        return da.matmul(x, y)
    left, right = "i" * (x.ndim - 1), "j" * (y.ndim - 1)
    operands = (x, left + "k", y, "k" + right)
    dtype = np.result_type(x, y)
    if x.numblocks[-1] == y.numblocks[0] == 1:
        return da.blockwise(np.matmul, left + right, *operands, dtype=dtype, concatenate=True)
    terms = da.blockwise(
        _partial_product, "k" + left + right, *operands, adjust_chunks={"k": 1}, dtype=dtype, concatenate=False
    )
    return terms.sum(axis=0)


def reshape(x: Any, shape: Any, *args: object, **kwargs: object) -> Any:
    """Compute ``np.reshape``; axes that neither merge nor split evenly go through one flat axis."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not x.size:
        return rechunk_like(da.from_array(np.empty(x.shape, x.dtype).reshape(sizes)), shape)
    try:
        return rechunk_like(da.reshape(x, sizes, *args, **kwargs), shape)
    except NotImplementedError:
        return rechunk_like(x.reshape(-1).reshape(sizes), shape)


def take(x: Any, indices: AnyArray, axis: int | None = None, **options: object) -> Any:
    """Compute ``np.take`` at indices with several axes by one ``take`` with a flat index."""
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis %= x.ndim
    index = np.asarray(indices)
    flat = x[(*(slice(None),) * axis, index.ravel())]
    return flat if index.ndim == 1 else reshape(flat, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


def _along(function: AnyFunction) -> Any:
    """Apply a function along one axis; each chunk is rechunked to contain whole lines."""

    def form(x: Any, axis: int = -1, **options: object) -> Any:
        x = x.rechunk({axis % x.ndim: -1})
        return x.map_blocks(function, axis=axis, dtype=function(np.ones(1, x.dtype)).dtype, **options)

    return form


def take_along_axis(x: Any, index: Any, axis: int) -> Any:
    """Compute ``np.take_along_axis`` in each chunk, with whole lines along the axis."""
    axis %= x.ndim
    unchunked = {k: -1 for k in range(x.ndim) if k == axis or x.shape[k] != index.shape[k]}
    x = x.rechunk(unchunked)
    index = da.asarray(index).rechunk({k: unchunked.get(k, x.chunks[k]) for k in range(x.ndim)})
    return da.map_blocks(np.take_along_axis, x, index, axis=axis, dtype=x.dtype, chunks=index.chunks)


# -- matrices ----------------------------------------------------------------------------------------------------------


def _blockwise_matrices(function: AnyFunction, signature: str, dtypes: Any = lambda dtype: (dtype,)) -> Any:
    """Apply a NumPy function of the matrices in the last two axes: each matrix becomes one block; other axes stay chunked.

    Dask's own decompositions search pivots within a block only, and lose digits, or fail, where NumPy's do not.
    """
    needs, gives = ([axes.strip("()").split(",") for axes in side.split("),(")] for side in signature.split("->"))

    def form(*operands: Any, **options: object) -> Any:
        arrays = [da.asarray(x) for x in operands]
        arrays = [x.rechunk({-k: -1 for k in range(1, len(axes) + 1)}) for x, axes in zip(arrays, needs)]
        before = max(x.ndim - len(axes) for x, axes in zip(arrays, needs))
        arrays = [_rechunk_like(x, len(axes), arrays[0], len(needs[0])) for x, axes in zip(arrays, needs)]
        dtype = np.result_type(*arrays, np.float32)
        meta = [np.empty((0,) * (before + sum(map(bool, axes))), of) for of, axes in zip(dtypes(dtype), gives)]
        sizes = {"p": min(arrays[0].shape[-2:])} if "p" in signature else None
        given = {"meta": tuple(meta) if len(meta) > 1 else meta[0], "output_sizes": sizes}
        return da.apply_gufunc(function, signature, *arrays, **given, **options)

    return form


def _rechunk_like(x: Any, core: int, y: Any, core_of_y: int) -> Any:
    """Rechunk x like y along the axes before the last ``core``, where both have the same length."""
    pairs = zip(range(x.ndim - core - 1, -1, -1), range(y.ndim - core_of_y - 1, -1, -1))
    return x.rechunk({i: y.chunks[k] for i, k in pairs if x.shape[i] == y.shape[k]})


def _real_dtype(dtype: Any) -> Any:
    return np.empty(0, dtype).real.dtype


def solve(a: Any, b: Any) -> Any:
    """Compute ``np.linalg.solve`` in one block."""
    if np.ndim(b) == 1:
        return _blockwise_matrices(_solve_vector, "(n,n),(n)->(n)")(a, b)
    return _blockwise_matrices(np.linalg.solve, "(n,n),(n,k)->(n,k)")(a, b)


def _solve_vector(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b[..., None])[..., 0]


def cholesky(a: Any) -> Any:
    """Compute ``np.linalg.cholesky``: blockwise by Dask, which needs no pivots; in one block if the chunks differ."""
    alike = a.ndim == 2 and len({*a.chunks[0], *a.chunks[1]}) == 1
    if alike and a.numblocks != (1, 1) and a.dtype.kind == "f":
        return da.linalg.cholesky(a, lower=True)
    return _blockwise_matrices(np.linalg.cholesky, "(n,n)->(n,n)")(a)


def svd(a: Any, full_matrices: bool = True) -> Any:
    """Compute ``np.linalg.svd``: by Dask, with its own signs, if one axis is chunked; else in one block."""
    thin = not full_matrices or a.shape[-1] == a.shape[-2]
    if not thin:
        raise NotImplementedError("full_matrices=True")
    if a.ndim == 2 and min(a.numblocks) == 1 < max(a.numblocks):
        return da.linalg.svd(a)
    return _blockwise_matrices(_thin_svd, "(m,n)->(m,p),(p),(p,n)", lambda dtype: (dtype, _real_dtype(dtype), dtype))(a)


def _thin_svd(a: Any) -> Any:
    return np.linalg.svd(a, full_matrices=False)


def eigh(a: Any, UPLO: str = "L") -> Any:
    """Compute ``np.linalg.eigh`` in one block."""
    return _blockwise_matrices(np.linalg.eigh, "(n,n)->(n),(n,n)", lambda dtype: (_real_dtype(dtype), dtype))(
        a, UPLO=UPLO
    )


def qr(a: Any, mode: str = "reduced") -> Any:
    """Compute ``np.linalg.qr`` in one block: Dask's blockwise result has other signs."""
    if mode != "reduced":
        raise NotImplementedError(f"mode={mode!r}")
    return _blockwise_matrices(np.linalg.qr, "(m,n)->(m,p),(p,n)", lambda dtype: (dtype, dtype))(a)


_MATRICES = {
    np.linalg.cholesky: cholesky,
    np.linalg.det: _blockwise_matrices(np.linalg.det, "(n,n)->()"),
    np.linalg.eigh: eigh,
    np.linalg.inv: _blockwise_matrices(np.linalg.inv, "(n,n)->(n,n)"),
    np.linalg.qr: qr,
    np.linalg.slogdet: _blockwise_matrices(
        np.linalg.slogdet, "(n,n)->(),()", lambda dtype: (dtype, _real_dtype(dtype))
    ),
    np.linalg.solve: solve,
    np.linalg.svd: svd,
}


# -- primitives that write by index, as blocks ---------------------------------------------------------------------------


def embed(x: Any, *, shape: Any, index: tuple[object, ...]) -> Any:
    """Return chunked zeros of a shape, with x at a basic index: each block is one task that reads one block."""
    chunks = getattr(shape, "chunks", None) or tuple((n,) for n in shape)
    x, slices = _with_all_axes(x, shape, index)
    taken = [_elements_per_chunk(*pair) for pair in zip(chunks, slices)]
    x = x.rechunk(tuple(tuple(len(part) for part in axis if part) or (0,) for axis in taken))
    sources = [np.cumsum([len(part) > 0 for part in axis]) - 1 for axis in taken]
    name = "embed-" + tokenize(x, chunks, slices)
    graph: dict[Any, Any] = {}
    for block in itertools.product(*[range(len(axis)) for axis in chunks]):
        parts = [axis[i] for axis, i in zip(taken, block)]
        size = tuple(axis[i] for axis, i in zip(chunks, block))
        if all(parts):
            source = [int(axis[i]) for axis, i in zip(sources, block)]
            where = tuple(slice(part.start, part.stop, part.step) for part in parts)
            graph[name, *block] = (_embed_block, (x.name, *source), size, where)
        else:
            graph[name, *block] = (np.zeros, size, x.dtype)
    return da.Array(HighLevelGraph.from_collections(name, graph, [x]), name, chunks, dtype=x.dtype)


def _embed_block(block: AnyArray, shape: tuple[int, ...], where: tuple[slice, ...]) -> Any:
    out = np.zeros(shape, block.dtype)
    out[where] = block
    return out


def _with_all_axes(x: Any, shape: Any, index: tuple[object, ...]) -> tuple[Any, list[range]]:
    """Return x with one axis for each axis of a shape, and the indices along each axis that x contains, ascending."""
    items = list(index)
    named = len(items) - sum(item is None or item is Ellipsis for item in items)
    at = items.index(Ellipsis) if Ellipsis in items else len(items)
    items[at : at + 1] = [slice(None)] * (len(shape) - named)
    back: list[Any] = []
    contained = []
    lengths = iter(shape)
    for item in items:
        if item is None:
            back.append(0)
            continue
        n = next(lengths)
        indices = range(n)[item] if isinstance(item, slice) else range(item % n, item % n + 1)
        downwards = indices.step < 0
        back.append(slice(None, None, -1 if downwards else 1) if isinstance(item, slice) else None)
        contained.append(indices[::-1] if downwards else indices)
    return x[tuple(back)], contained


def _elements_per_chunk(chunks: tuple[int, ...], contained: range) -> list[range]:
    """Return for each chunk of an axis the indices of its elements in ``contained``."""
    taken = []
    begin = 0
    for n in chunks:
        skipped = max(0, -((contained.start - begin) // contained.step))
        first = contained.start - begin + skipped * contained.step
        taken.append(range(first, max(first, min(contained.stop - begin, n)), contained.step))
        begin += n
    return taken


def compute_arrays(arrays: list[Any]) -> list[Any]:
    """Compute arrays, with one task for all operations on a block: see ``dask_fusion``."""
    return list(map(np.asarray, dask.base.compute(*with_fused_tasks(arrays), optimize_graph=False)))


LIBRARY = Library(
    "Dask",
    lambda x: compute_arrays([x])[0],
    "{x}.compute()",
    lacks_function,
    shape_of,
    check_chunk_sizes,
    own={
        np.broadcast_to: broadcast_to,
        np.matmul: matmul,
        np.reshape: reshape,
        np.take: take,
        np.take_along_axis: take_along_axis,
        np.sort: _along(np.sort),
        np.argsort: _along(np.argsort),
        **_MATRICES,
    },
    refuses=is_refusal,
    elementwise=da.core.elemwise,
    rows={"embed": embed},
    like=rechunk_like,
    all_to_numpy=compute_arrays,
)
