"""``reduce``, ``accumulate``, ``reduceat`` and ``at`` for ufuncs without a primitive for them: repeated calls of the ufunc.

NumPy calls them through ``__array_function__`` (``tape.protocol``).

NumPy first computes the result for ones, to get errors, dtype and shape. If the result cannot carry a derivative, NumPy
computes it. Otherwise it is a fold, and each call in it is recorded like any other call of the ufunc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, DTypeLike, IntoArray, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops.numpy_calculus import as_arraylike, wrap_result
from chainrule._src.ops.numpy_reductions import NOTHING, accumulating, checked_axes, merged_first
from chainrule._src.ops.numpy_reductions import outer as _outer
from chainrule._src.ops.numpy_samples import concrete_or_same
from chainrule._src.ops.ordering import cummax, cummin
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.protocol import UFUNC_METHODS, UFUNCS, ArrayLike, call_ufunc, on_numbers
from chainrule._src.tape.tensor import Tensor

Call = AnyFunction


def _like(method: Call, a: AnyArray, *args: object, **options: object) -> AnyArray:
    """Return NumPy's result for ones in place of a."""
    with np.errstate(all="ignore"):
        return method(np.broadcast_to(np.ones((), a.dtype), tuple(shape_of(a))), *args, **options)


def _is_fold(a: AnyArray, like: AnyArray) -> bool:
    """Return whether the result must be computed by a fold: it is differentiable, or of another library's array."""
    return (a.dtype.kind in "fc" and like.dtype.kind in "fc") or isinstance(getattr(a, "_raw", a), Foreign)


def _reduce(ufunc: np.ufunc) -> Call:
    def reduce(
        a: AnyArray,
        axis: int | None = 0,
        dtype: DTypeLike = None,
        keepdims: bool = False,
        initial: TensorLike = NOTHING,
        where: TensorLike = True,
    ) -> AnyArray:
        a = as_arraylike(a)
        keep = keepdims is not NOTHING and bool(keepdims)
        options: Params = {} if initial is NOTHING else {"initial": None if initial is None else 1}
        masked = where is not True
        if masked:
            options["where"] = np.ones(shape_of(as_arraylike(where)), bool)
        like = _like(ufunc.reduce, a, axis=axis, dtype=dtype, keepdims=keep, **options)
        axes = checked_axes(axis, len(shape_of(a))) if shape_of(a) else ()
        if not _is_fold(a, like):
            options |= {} if initial is NOTHING else {"initial": concrete_or_same(initial, ufunc.__name__)}
            options |= {"where": concrete_or_same(where, ufunc.__name__)} if masked else {}
            along = axes if len(axes) != 1 else axes[0]
            return wrap_result(
                on_numbers(a, lambda x: np.asarray(ufunc.reduce(x, along, dtype=dtype, keepdims=keep, **options)))
            )
        begin = ufunc.identity if initial is NOTHING else initial
        parts = merged_first(cast(a, like.dtype), axes)
        masks = merged_first(np.broadcast_to(where, shape_of(a)), axes) if masked else None
        rest = tuple(shape_of(parts)[1:])
        count = shape_of(parts)[0]
        if begin is None:
            total, first = np.copy(parts[0, ...]) if count == 1 else parts[0, ...], 1  # the result must be a copy
        else:
            total, first = np.copy(np.broadcast_to(cast(as_arraylike(begin), like.dtype), rest)), 0
        for k in range(first, count):
            if masks is None:
                total = ufunc(total, parts[k, ...])
            else:
                total = call_ufunc(ufunc, "__call__", (total, parts[k, ...]), (total,), {"where": masks[k, ...]})
        return np.reshape(wrap_result(total), like.shape)

    return reduce


def _accumulate(ufunc: np.ufunc) -> Call:
    def accumulate(a: AnyArray, axis: int = 0, dtype: DTypeLike = None) -> AnyArray:
        a = as_arraylike(a)
        like = _like(ufunc.accumulate, a, axis, dtype)
        (along,) = checked_axes(axis, len(shape_of(a)))
        if not _is_fold(a, like):
            return wrap_result(on_numbers(a, lambda x: ufunc.accumulate(x, along, dtype)))
        parts = merged_first(cast(a, like.dtype), (along,))
        if not shape_of(parts)[0]:
            return wrap_result(like)
        totals = [parts[0, ...]]
        for k in range(1, shape_of(parts)[0]):
            totals.append(ufunc(totals[-1], parts[k, ...]))
        return np.stack(totals, axis=along)

    return accumulate


def _reduceat(ufunc: np.ufunc) -> Call:
    def reduceat(a: AnyArray, indices: IntoArray, axis: int = 0, dtype: DTypeLike = None) -> AnyArray:
        a = as_arraylike(a)
        starts = np.asarray(concrete_or_same(indices, f"np.{ufunc.__name__}.reduceat()"))
        like = _like(ufunc.reduceat, a, starts, axis, dtype)
        (along,) = checked_axes(axis, len(shape_of(a)))
        if not _is_fold(a, like):
            return wrap_result(on_numbers(a, lambda x: ufunc.reduceat(x, starts, along, dtype)))
        if not starts.size:
            return wrap_result(like)
        tail = (slice(None),) * (-along - 1)
        a = cast(a, like.dtype)
        ends = [*starts[1:], shape_of(a)[along]]
        sums = []
        for start, end in zip(starts.tolist(), ends, strict=True):
            if end - start < 2:
                sums.append(a[(..., start, *tail)])
            else:
                sums.append(call_ufunc(ufunc, "reduce", (a[(..., slice(start, end), *tail)],), None, {"axis": along}))
        return np.stack(sums, axis=along)

    return reduceat


def _at(ufunc: np.ufunc) -> Call:
    """Return ``at``: elements that are indexed several times are updated several times, one after the other."""

    def at(a: Any, indices: IntoArray, *operand: Any) -> None:
        name = f"{ufunc.__name__}.at"
        items = tuple(
            concrete_or_same(i, f"np.{name}()") for i in (indices if isinstance(indices, tuple) else (indices,))
        )
        others = [as_arraylike(b) for b in operand]
        if not isinstance(a, Tensor):
            if any(isinstance(b, (Tensor, ArrayLike)) and b.dtype.kind in "fc" for b in others):
                raise errors.out_is_plain_array(name, a)
            return ufunc.at(a, items, *[concrete_or_same(b, f"np.{name}()") for b in others])
        shape = tuple(shape_of(a))
        with np.errstate(all="ignore"):
            ufunc.at(np.ones(shape, a.dtype), items, *[np.ones(shape_of(b), b.dtype) for b in others])
        positions = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)[items]
        others = [np.reshape(np.broadcast_to(b, positions.shape), (-1,)) for b in others]
        positions = np.ravel(positions)
        order = np.argsort(positions, kind="stable")
        run = np.flatnonzero(np.append(True, np.diff(positions[order]) != 0)[: positions.size])
        turn = np.empty(positions.size, int)
        turn[order] = np.arange(positions.size) - np.repeat(run, np.diff(np.append(run, positions.size)))
        for k in range(turn.max(initial=-1) + 1):
            chosen = np.flatnonzero(turn == k)
            index = np.unravel_index(positions[chosen], shape) if shape else ()
            parts = [b[chosen] if shape else b[chosen[0]] for b in others]
            a[index] = cast(ufunc(a[index], *parts), a.dtype)

    return at


# -- ufuncs without a primitive --------------------------------------------------------------------------------------


def _frexp(x: Any) -> tuple[Any, Any]:
    x = as_arraylike(x)
    exponent = wrap_result(on_numbers(x, lambda x: np.frexp(x)[1]))
    half = exponent // 2
    return np.ldexp(np.ldexp(x, -half), half - exponent), exponent


def _step(ufunc: np.ufunc) -> Call:
    return lambda x: wrap_result(on_numbers(as_arraylike(x), ufunc))


UFUNCS[np.frexp] = _frexp
UFUNCS[np.spacing] = _step(np.spacing)
if hasattr(np, "bitwise_count"):  # since NumPy 2.0
    UFUNCS[np.bitwise_count] = _step(np.bitwise_count)


# -- registration ----------------------------------------------------------------------------------------------------


def _of_complex(primitive: Call, fold: Call) -> Call:
    return lambda a, *args, **options: (fold if as_arraylike(a).dtype.kind == "c" else primitive)(a, *args, **options)


def _running_extremum(function: Call) -> Call:
    return accumulating(lambda a, axis, dtype: function(a if dtype is None else np.astype(a, np.dtype(dtype)), axis)[0])


def _without(keyword: str, primitive: Call, fold: Call) -> Call:
    """Return a method that calls ``fold`` if a keyword is given, else ``primitive``."""
    return lambda *args, **options: (fold if options.get(keyword) is not None else primitive)(*args, **options)


for _ufunc in UFUNCS:
    if _ufunc.nout == 1 and _ufunc.signature is None:
        UFUNC_METHODS.setdefault((_ufunc, "at"), _at(_ufunc))
        if _ufunc.nin == 2:
            UFUNC_METHODS.setdefault((_ufunc, "reduce"), _reduce(_ufunc))
            UFUNC_METHODS.setdefault((_ufunc, "accumulate"), _accumulate(_ufunc))
            UFUNC_METHODS.setdefault((_ufunc, "reduceat"), _reduceat(_ufunc))
            UFUNC_METHODS.setdefault((_ufunc, "outer"), _outer(_ufunc))
UFUNC_METHODS[np.divmod, "outer"] = _outer(np.divmod)
for _ufunc, _running in ((np.maximum, _running_extremum(cummax)), (np.minimum, _running_extremum(cummin))):
    UFUNC_METHODS[_ufunc, "accumulate"] = _of_complex(_running, _accumulate(_ufunc))
    UFUNC_METHODS[_ufunc, "reduce"] = _without("dtype", UFUNC_METHODS[_ufunc, "reduce"], _reduce(_ufunc))
for _ufunc in (np.logical_and, np.logical_or):
    UFUNC_METHODS[_ufunc, "reduce"] = _without("initial", UFUNC_METHODS[_ufunc, "reduce"], _reduce(_ufunc))
