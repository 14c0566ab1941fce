"""Dask's arrays: which graphs are made of rules, so that chunks stay chunks and data is read once.

Loaded when the first Dask array arrives. What Dask does well is Dask's; here are forms that follow the chunks of the
operand where NumPy's function knows its shape alone, and that can be fused with the elementwise steps around them.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.array.core import _HANDLED_FUNCTIONS
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArrayChunkShapeDep

from chainrule.backends.arrays import Library

Chunks = tuple[tuple[int, ...], ...]


class Shape(tuple):  # type: ignore[type-arg]
    """A shape that remembers how the array was cut into chunks, so that what is made of that shape is cut alike."""

    chunks: Chunks

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


def shape_of(x: Any) -> Shape:
    shape = Shape(x.shape)
    shape.chunks = x.chunks
    return shape


def like(x: Any, shape: Any) -> Any:
    """An array cut as a shape remembers that another one was."""
    chunks = getattr(shape, "chunks", None)
    return x if chunks is None or x.chunks == chunks else x.rechunk(chunks)


def check(x: Any) -> None:
    if any(n != n for n in x.shape):
        raise ValueError(
            f"a Dask array whose chunks have unknown sizes, of shape {x.shape}: derivatives need to know them. Compute the "
            "sizes with x = x.compute_chunk_sizes(), or give them where the array is made (lengths=True)."
        )


@functools.cache
def lacks(function: Any) -> bool:
    """Whether Dask would compute the arrays to call NumPy's function: it looks for one of that name in ``dask.array``."""
    module: Any = da
    for name in function.__module__.split(".")[1:]:
        module = getattr(module, name, None)
    own = getattr(module, function.__name__, function)
    return own is function and function not in _HANDLED_FUNCTIONS


# -- forms that follow the chunks --------------------------------------------------------------------------------------


def broadcast_to(x: Any, shape: Any) -> Any:
    """``np.broadcast_to``, blockwise: Dask's own is a layer that nothing is fused with."""
    chunks = getattr(shape, "chunks", None)
    if chunks is None:
        return da.broadcast_to(x, tuple(shape))
    x = da.asarray(x)
    letters = tuple(range(len(shape)))
    mine = letters[len(shape) - x.ndim :]
    fits = all(n == 1 or own == theirs for n, own, theirs in zip(x.shape, x.chunks, chunks[len(shape) - x.ndim :]))
    if not fits:
        return like(da.broadcast_to(x, tuple(shape)), shape)
    return da.blockwise(
        np.broadcast_to,
        letters,
        x,
        mine,
        ArrayChunkShapeDep(chunks),
        letters,
        name="broadcast_to-" + tokenize(x, chunks),
        adjust_chunks=dict(enumerate(chunks)),
        align_arrays=False,
        dtype=x.dtype,
        meta=np.empty((0,) * len(shape), x.dtype),
    )


def _partial_product(x: Any, y: Any) -> Any:
    """The product of one block with one block, with an axis in front to add over."""
    return np.matmul(x, y)[None]


def matmul(x: Any, y: Any) -> Any:
    """``np.matmul``: products of blocks, added by a tree where the axis that is summed is cut."""
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


def reshape(x: Any, shape: Any, *args: Any, **kwargs: Any) -> Any:
    return like(da.reshape(x, shape if isinstance(shape, int) else tuple(shape), *args, **kwargs), shape)


LIBRARY = Library(
    "Dask",
    lambda x: np.asarray(x.compute()),
    "{x}.compute()",
    lacks,
    shape_of,
    check,
    own={np.broadcast_to: broadcast_to, np.matmul: matmul, np.reshape: reshape},
    all_to_numpy=lambda arrays: list(map(np.asarray, dask.compute(*arrays))),
)
