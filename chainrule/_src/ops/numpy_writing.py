"""NumPy's functions that write into their first argument, or to a file, for tensors.

NumPy calls them through ``__array_function__`` (``tape.protocol``).

Writes into an argument become in-place operations of the tensor, and are recorded as such. Files get plain numbers, so a
tensor that requires grad raises the error of ``np.asarray``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, Casting, IntoArray, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops.numpy_calculus import as_arraylike, take, wrap_result
from chainrule._src.ops.numpy_samples import concrete_or_same, concrete_values
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.protocol import UFUNC_METHODS, ArrayLike, implements
from chainrule._src.tape.tensor import Tensor

F = TypeVar("F", bound=AnyFunction)


def _writes(function: AnyFunction) -> Callable[[F], F]:
    """Register a function that writes into its first argument; plain arrays accept plain values and integer tensors only."""

    def register(ours: F) -> F:
        signature = inspect.signature(ours)
        name = getattr(function, "__name__", "")

        def call(*args: object, **kwargs: object) -> None:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            target, *others = bound.args
            if isinstance(target, Tensor):
                return ours(*args, **kwargs)
            if any(isinstance(x, (Tensor, ArrayLike)) and x.dtype.kind in "fc" for x in others):
                raise errors.out_is_plain_array(name, target)
            return function(target, *(concrete_or_same(x, f"np.{name}()") for x in others))

        implements(function)(call)
        return ours

    return register


def _write(target: Any, indices: Any, values: Any) -> None:
    """Write at indices into the raveled target. Of several values for one element, only the last is written."""
    values = np.reshape(cast(as_arraylike(values), target.dtype), (-1,))
    n = shape_of(values)[0]
    if not indices.size or not n:
        return
    _, back = np.unique(indices[::-1], return_index=True)
    last = indices.size - 1 - back
    values = wrap_result(values)[last % n]
    if not shape_of(target):
        target[...] = values[0]
    else:
        target[np.unravel_index(indices[last], tuple(shape_of(target)))] = values


@_writes(np.put)
def _put(a: AnyArray, ind: IntoArray, v: IntoArray, mode: str = "raise") -> None:
    indices = np.ravel(np.asarray(concrete_or_same(ind, "np.put()"))).astype(np.int64)
    n = int(np.prod(shape_of(a), dtype=int))
    if mode == "raise" and indices.size and not (-n <= indices.min() and indices.max() < n):
        bad = indices.max() if indices.max() >= n else indices.min()
        raise IndexError(f"index {bad} is out of bounds for axis 0 with size {n}")
    _write(a, np.clip(indices, 0, n - 1) if mode == "clip" else indices % n, v)


@_writes(np.place)
def _place(arr: Any, mask: Any, vals: Any) -> None:
    mask = _mask("place", arr, mask)
    vals = np.reshape(cast(as_arraylike(vals), arr.dtype), (-1,))
    n = shape_of(vals)[0]
    if n:
        turn = np.remainder(np.reshape(np.cumsum(mask), shape_of(arr)) - 1, n)
        arr.copy_(np.where(mask, take(wrap_result(vals), turn), arr))
    elif concrete_values(mask, "np.place()").any():
        raise ValueError("Cannot insert from an empty array!")


@_writes(np.putmask)
def _putmask(a: Any, /, mask: Any, values: Any) -> None:
    mask = _mask("putmask", a, mask)
    values = cast(as_arraylike(values), a.dtype)
    if all(shape_of(values)):
        a.copy_(np.where(mask, np.resize(values, tuple(shape_of(a))), a))


def _mask(name: str, target: AnyArray, mask: IntoArray) -> AnyArray:
    """Return a mask of the target's shape."""
    shape = tuple(shape_of(target))
    mask = cast(as_arraylike(mask), np.dtype(bool))
    if int(np.prod(shape_of(mask), dtype=int)) != int(np.prod(shape, dtype=int)):
        raise ValueError(f"{name}: mask and data must be the same size")
    return np.reshape(mask, shape)


@_writes(np.put_along_axis)
def _put_along_axis(arr: AnyArray, indices: AnyArray, values: TensorLike, axis: int | None = -1) -> None:
    shape = tuple(shape_of(arr))
    indices = np.asarray(concrete_or_same(indices, "np.put_along_axis()"))
    if axis is None:
        return _put(arr, indices, np.broadcast_to(values, indices.shape))
    if indices.ndim != len(shape):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    axis %= len(shape)
    broadcast_shape = tuple(m if k == axis else n for k, (m, n) in enumerate(zip(indices.shape, shape, strict=True)))
    grid = list(np.indices(broadcast_shape))
    grid[axis] = np.broadcast_to(indices, broadcast_shape)
    if grid[axis].size and not (-shape[axis] <= grid[axis].min() and grid[axis].max() < shape[axis]):
        raise IndexError(f"index is out of bounds for axis {axis} with size {shape[axis]}")
    grid[axis] = grid[axis] % shape[axis]
    return _write(arr, np.ravel(np.ravel_multi_index(tuple(grid), shape)), np.broadcast_to(values, broadcast_shape))


@_writes(np.fill_diagonal)
def _fill_diagonal(a: AnyArray, val: IntoArray, wrap: bool = False) -> None:
    shape = tuple(shape_of(a))
    if len(shape) < 2:
        raise ValueError("array must be at least 2-d")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    size = int(np.prod(shape, dtype=int))
    step = shape[1] + 1 if len(shape) == 2 else 1 + int(np.cumprod(shape[:-1]).sum())
    end = size if wrap or len(shape) > 2 else min(size, shape[1] * shape[1])
    _write(a, np.arange(0, end, step), val)


@_writes(np.copyto)
def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if type(src) not in (bool, int, float, complex):
        src = as_arraylike(src)
    _castable(src, dst, casting)
    values = cast(as_arraylike(src), dst.dtype)
    have, shape = shape_of(values), tuple(shape_of(dst))
    if (extra := len(have) - len(shape)) > 0:
        if have[:extra] != (1,) * extra:
            raise ValueError(f"could not broadcast input array from shape {have} into shape {shape}")
        values = np.reshape(values, have[extra:])
    dst.copy_(wrap_result(values if where is True else np.where(where, values, dst)))


def _castable(values: TensorLike, target: AnyArray, casting: Casting = "same_kind") -> None:
    dtype = getattr(values, "dtype", None)
    if dtype is None:
        dtype = np.result_type(values, target.dtype)
    if not np.can_cast(dtype, target.dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {np.dtype(dtype)!r} to {np.dtype(target.dtype)!r} according to the rule '{casting}'"
        )


# -- ufunc.at --------------------------------------------------------------------------------------------------------


def _adding(ufunc: np.ufunc, sign: int) -> AnyFunction:
    def at(a: Any, indices: IntoArray, b: Any) -> None:
        b = as_arraylike(b) if type(b) not in (bool, int, float, complex) else b
        ufunc.resolve_dtypes((dtype_of(a), dtype_of(as_arraylike(b)), None))
        _castable(b, a)
        values = cast(as_arraylike(b), a.dtype)
        items = indices if isinstance(indices, tuple) else (indices,)
        a.index_put_(items, wrap_result(values if sign > 0 else -values), accumulate=True)

    def call(a: Any, indices: IntoArray, b: Any) -> None:
        if isinstance(a, Tensor):
            at(a, indices, b)
        elif isinstance(b, (Tensor, ArrayLike)) and b.dtype.kind in "fc":
            raise errors.out_is_plain_array(f"{ufunc.__name__}.at", a)
        else:
            items = indices if isinstance(indices, tuple) else (indices,)
            ufunc.at(a, tuple(concrete_or_same(i, "np.add.at()") for i in items), concrete_or_same(b, "np.add.at()"))

    return call


UFUNC_METHODS[(np.add, "at")] = _adding(np.add, 1)
UFUNC_METHODS[(np.subtract, "at")] = _adding(np.subtract, -1)


# -- out of the program ----------------------------------------------------------------------------------------------


def _saving(function: AnyFunction) -> None:
    """Register a function that saves arrays to files: ``np.asarray`` raises for tensors that require grad."""

    def call(*args: object, **kwargs: object) -> None:
        plain = [np.asarray(a) if isinstance(a, Tensor) else a for a in args]
        return function(*plain, **{k: np.asarray(a) if isinstance(a, Tensor) else a for k, a in kwargs.items()})

    implements(function)(call)


for _function in (np.save, np.savez, np.savez_compressed, np.savetxt):
    _saving(_function)


@implements(np.array2string)
def _array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    return str(np.array2string(concrete_values(a, "np.array2string()"), *args, **kwargs))
