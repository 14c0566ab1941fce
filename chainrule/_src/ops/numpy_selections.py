"""NumPy's insertions, partitions, choices and piecewise functions for tensors, and functions along an axis.

NumPy calls them through ``__array_function__`` (``tape.protocol``).

Each computes from plain values where elements go, and then moves them with primitives, which have transposes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, DTypeLike, IntoArray, Params
from chainrule._src.ops.numpy_calculus import as_arraylike, plain_values, read_values, take, wrap_result
from chainrule._src.ops.numpy_layout import to_numpy_layout, to_order, with_axis_order_of
from chainrule._src.ops.numpy_lists import promotion_operand
from chainrule._src.ops.numpy_reductions import checked_axes, flattened, with_same_layout
from chainrule._src.ops.numpy_samples import concrete_or_same, concrete_values
from chainrule._src.table import indexing
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.protocol import UFUNC_METHODS, implements, on_numbers, predicate_holds
from chainrule._src.tape.tensor import wrap
from chainrule._src.tape.view import copy_scalar_view

ndarray = np.ndarray


# -- elements moved --------------------------------------------------------------------------------------------------


@implements(np.insert)
def _insert(arr: AnyArray, obj: Any, values: IntoArray, axis: int | None = None) -> AnyArray:
    arr = as_arraylike(arr)
    arr, along = flattened(arr, axis)
    ndim = len(shape_of(arr))
    obj = concrete_or_same(obj, "np.insert()")
    values = cast(as_arraylike(values), arr.dtype)
    values = np.reshape(values, (*(1,) * (ndim - len(shape_of(values))), *shape_of(values)))
    n = shape_of(arr)[along]
    insertion_count = np.insert(np.empty(n), obj, 0).size - n  # the number of insertions, as NumPy interprets ``obj``
    if np.ndim(obj) == 0 and not isinstance(obj, slice):
        values = np.moveaxis(values, 0, along)
    if insertion_count == 1:
        insertion_count = shape_of(values)[along]
    order = np.insert(np.arange(n), obj, np.arange(n, n + insertion_count))
    shape = list(shape_of(arr))
    shape[along] = insertion_count
    found = take(np.concatenate([arr, np.broadcast_to(values, tuple(shape))], axis=along), order, along)
    return to_numpy_layout(found, arr)


@implements(np.resize)
def _resize(a: AnyArray, new_shape: Any) -> AnyArray:
    shape = (int(new_shape),) if isinstance(new_shape, (int, np.integer)) else tuple(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    flat = np.reshape(as_arraylike(a), (-1,))
    n, size = shape_of(flat)[0], int(np.prod(shape, dtype=int))
    if not n:
        return np.zeros_like(flat, shape=shape)
    return np.reshape(take(flat, np.arange(size) % n), shape)


@implements(np.trim_zeros)
def _trim_zeros(filt: AnyArray, trim: str = "fb", axis: int | None = None) -> AnyArray:
    trim = trim.lower()
    if trim not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    found = np.argwhere(concrete_values(filt, "np.trim_zeros()"))
    ndim = len(shape_of(filt))
    trimmed = {k % ndim for k in checked_axes(tuple(axis) if isinstance(axis, list) else axis, ndim)}
    cuts = [slice(None)] * ndim
    for k in trimmed:
        first, last = (int(found[:, k].min()), int(found[:, k].max()) + 1) if len(found) else (0, 0)
        cuts[k] = slice(
            first if "f" in trim or not len(found) else None, last if "b" in trim or not len(found) else None
        )
    return filt[tuple(cuts)]


@implements(np.argpartition)
def _argpartition(
    a: AnyArray, kth: IntoArray, axis: int = -1, kind: str = "introselect", order: str | None = None
) -> AnyArray:
    a, along = flattened(a, axis)
    values = plain_values(a)
    if values is None:  # inside vmap: a sorted array is partitioned at every index
        return np.argsort(a, axis=along)
    return wrap(np.argpartition(values, concrete_or_same(kth, "np.partition()"), along))


@implements(np.partition)
def _partition(
    a: AnyArray, kth: IntoArray, axis: int | None = -1, kind: str = "introselect", order: str | None = None
) -> AnyArray:
    if axis is not None:
        checked_axes(axis, len(shape_of(a)))  # also for 0-d arrays
    a, along = flattened(a, axis)
    return with_same_layout(lambda a, along: np.take_along_axis(a, _argpartition(a, kth, along), axis=along), a, along)


def _add_reduceat(a: AnyArray, indices: IntoArray, axis: int = 0, dtype: DTypeLike = None) -> AnyArray:
    """Sum the elements from each index to the next; where the next index is not larger, return the element."""
    along = checked_axes(axis, len(shape_of(a)))[0]
    n = shape_of(a)[along]
    starts = np.asarray(concrete_or_same(indices, "np.add.reduceat()"))
    if starts.size and not (starts.min() >= 0 and starts.max() < n):
        raise IndexError(
            f"index {starts.max() if starts.max() >= n else starts.min()} out-of-bounds in add.reduceat [0, {n})"
        )
    ends = np.append(starts[1:], n)
    lengths = np.where(ends > starts, ends - starts, 1)
    of = np.repeat(np.arange(starts.size), lengths)
    members = starts[of] + np.arange(of.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    if dtype is None:  # as in np.add.reduce, sums of small integers are wider
        dtype = np.add.reduce(np.zeros(1, a.dtype)).dtype
    a = cast(a, np.dtype(dtype))
    return bind(indexing.take_add, (take(a, members, along), of), {"axis": along, "length": starts.size})


UFUNC_METHODS[(np.add, "reduceat")] = _add_reduceat


# -- choices ---------------------------------------------------------------------------------------------------------


@implements(np.choose)
def _choose(a: IntoArray, choices: Any, out: object = None, mode: str = "raise") -> AnyArray:
    listed = isinstance(choices, (list, tuple))
    parts = list(choices) if listed else [choices[k] for k in range(shape_of(choices)[0])]
    kind = np.result_type(
        *[promotion_operand(p if type(p) in (int, float, complex) else as_arraylike(p)) for p in parts]
    )
    parts = list(map(as_arraylike, parts))
    a = as_arraylike(a)
    n = len(parts)
    if mode == "raise":
        values = plain_values(a)
        if values is not None and ((values < 0) | (values >= n)).any():
            raise ValueError("invalid entry in choice array")
    a = np.remainder(a, n) if mode == "wrap" else np.clip(a, 0, n - 1)
    shape = np.broadcast_shapes(shape_of(a), *[shape_of(p) for p in parts])
    stacked = np.stack([np.broadcast_to(cast(p, kind), shape) for p in parts])
    return copy_scalar_view(
        to_order(np.take_along_axis(stacked, np.expand_dims(np.broadcast_to(a, shape), 0), axis=0)[0], "C")
    )


@implements(np.real_if_close)
def _real_if_close(a: AnyArray, tol: float = 100) -> AnyArray:
    if a.dtype.kind != "c":
        return a
    limit = tol * np.finfo(a.dtype).eps if tol > 1 else tol
    return np.real(a) if (np.absolute(concrete_values(a, "np.real_if_close()").imag) < limit).all() else a


@implements(np.piecewise, callback="funclist")
def _piecewise(x: AnyArray, condlist: object, funclist: Any, *args: Any, **kw: Any) -> AnyArray:
    x = as_arraylike(x)
    conditions = [as_arraylike(c) for c in _conditions(condlist, len(shape_of(x)))]
    n = len(conditions)
    if len(funclist) == n + 1:
        conditions.append(~np.any(np.stack([cast(c, np.dtype(bool)) for c in conditions]), axis=0))
    elif len(funclist) != n:
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    y = np.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        y = _piece(y, x, condition, function, args, kw)
    return wrap_result(y)


def _conditions(condlist: Any, ndim: int) -> Any:
    """Return the list of conditions as NumPy interprets the argument: a list of conditions, or one condition."""
    if not isinstance(condlist, (list, tuple)) and not np.ndim(condlist):
        return [condlist]
    first = condlist[0]
    several = isinstance(first, list) or bool(shape_of(first) if hasattr(first, "shape") else ())
    return condlist if several or not ndim else [condlist]


def _piece(
    y: AnyArray, x: AnyArray, condition: AnyArray, function: IntoArray, args: tuple[int, ...], kw: Params
) -> Any:
    def value(part: AnyArray) -> AnyArray:
        return cast(as_arraylike(function(part, *args, **kw) if callable(function) else function), y.dtype)

    where = read_values(condition)
    if where is None:
        return _piece_of_each(y, x, cast(condition, np.dtype(bool)), value)
    where = np.broadcast_to(where.astype(bool), shape_of(x))
    if not where.any():
        return y
    return indexing.index_put(y, value(x[where]), index=(where,), accumulate=False)


def _piece_of_each(y: AnyArray, x: AnyArray, condition: AnyArray, value: Callable[[AnyArray], AnyArray]) -> AnyArray:
    """Evaluate ``_piece`` inside vmap, where every example selects its own elements.

    The function is called once for all examples that select the same number of elements. The other examples are filled with the
    elements of one of these, so that no derivative is taken where the function was not evaluated.
    """
    shape, n = shape_of(x), math.prod(shape_of(x))
    flat = np.reshape(x, (n,))
    selected = np.reshape(np.broadcast_to(condition, shape), (n,))
    count = np.sum(selected)
    rank = np.cumsum(selected) - 1
    order = np.argsort(~selected, kind="stable")
    values_and_marks = np.stack([np.where(selected, flat, flat), cast(selected, x.dtype)])
    for k in range(1, n + 1):
        if predicate_holds(count, functools.partial(_any_is, k)):
            some = on_numbers(values_and_marks, functools.partial(_selected_by_one, k))
            part = np.broadcast_to(value(np.where(count == k, take(flat, order[:k]), wrap_result(some))), (k,))
            found = take(part, np.clip(rank, 0, k - 1))
            y = np.where(np.reshape(selected & (count == k), shape), np.reshape(found, shape), y)
    return with_axis_order_of(y, x)


def _any_is(k: int, counts: ndarray) -> np.bool_:
    return np.any(counts == k)


def _selected_by_one(k: int, values_and_marks: ndarray) -> ndarray:
    """Return for every example the elements selected by the first example that selects k.

    ``values_and_marks`` has the shape (..., values and marks, n).
    """
    values, marks = np.moveaxis(values_and_marks, -2, 0).reshape(2, -1, values_and_marks.shape[-1])
    one = np.flatnonzero(np.count_nonzero(marks, axis=1) == k)[:1]
    chosen = values[one][marks[one] != 0] if one.size else np.zeros(k, values_and_marks.dtype)
    return np.broadcast_to(chosen, (*values_and_marks.shape[:-2], k)).copy()


# -- functions along axes --------------------------------------------------------------------------------------------


@implements(np.apply_along_axis, callback="func1d")
def _apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> AnyArray:
    arr = as_arraylike(arr)
    along = checked_axes(axis, len(shape_of(arr)))[0]
    axis_last = np.moveaxis(arr, along, -1)
    lead = shape_of(axis_last)[:-1]
    if not all(lead):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [as_arraylike(func1d(axis_last[(*index, ...)], *args, **kwargs)) for index in np.ndindex(*lead)]
    first = results[0]
    stacked = np.reshape(np.stack([cast(r, first.dtype) for r in results]), (*lead, *shape_of(first)))
    n, extra = len(lead), len(shape_of(first))
    position = along + n + 1
    stacked = to_order(stacked, "C")
    return wrap_result(np.moveaxis(stacked, range(n, n + extra), range(position, position + extra)))


@implements(np.apply_over_axes, callback="func")
def _apply_over_axes(func: Any, a: AnyArray, axes: object) -> AnyArray:
    ndim = len(shape_of(a))
    for axis in np.atleast_1d(axes).tolist():
        axis = axis + ndim if axis < 0 else axis
        result = as_arraylike(func(a, axis))
        if len(shape_of(result)) != ndim:
            result = np.expand_dims(result, axis)
        if len(shape_of(result)) != ndim:
            raise ValueError("function is not returning an array of the correct shape")
        a = result
    return a
