"""NumPy's functions that move elements, for tensors and other array-likes: reshape, join, split, pad, index.

NumPy calls them through ``__array_function__`` (``tape.protocol``).
"""

from __future__ import annotations

import builtins
import itertools
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, Dims, DTypeLike, IntoArray, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import joining, matrices, shaping, splitting
from chainrule._src.ops.numpy_layout import in_memory_order, resolved_order, to_numpy_layout, to_order
from chainrule._src.ops.numpy_lists import asarray_or_tensor, operands, promotion_operand
from chainrule._src.ops.numpy_reductions import checked_axes, flattened, in_dtype, sliced
from chainrule._src.rules.batching import apply_primitive, each_example
from chainrule._src.rules.kinds import discrete
from chainrule._src.table import indexing
from chainrule._src.table import shape as primitives
from chainrule._src.table.any_index import read_any
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.protocol import as_array, implements, memory_of
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.view import make_read_only

ndarray = np.ndarray


@implements(np.reshape, by_shape=True)
def _reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    if copy is not None:
        found = _reshape(a, shape, order, newshape=newshape)
        if copy is False and not np.may_share_memory(memory_of(found), memory_of(a)):
            raise ValueError("Unable to avoid creating a copy while reshaping.")
        return np.copy(found) if copy else found
    target = shape if shape is not None else newshape
    target = (target,) if isinstance(target, (int, np.integer)) else tuple(target)
    if order == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    order = resolved_order(a, order)
    if order == "F":  # the C order of the transpose
        return np.transpose(_reshape(np.transpose(a), target[::-1]))
    if isinstance(a, Tensor):
        return shaping.reshape(a, target)
    return primitives.view(a, shape=shaping._resolved_shape("reshape", tuple(shape_of(a)), target))


@implements(np.ravel, by_shape=True)
def _ravel(a: AnyArray, order: str = "C") -> AnyArray:
    order = resolved_order(a, order)
    if order == "K":
        a, order = in_memory_order(a), "C"
    if order == "C" and isinstance(a, Tensor):
        return shaping.ravel(a)  # in C order, so tensors that are not contiguous are copied
    return _reshape(a, (-1,), order)


@implements(np.transpose, np.permute_dims, by_shape=True)
def _transpose(a: AnyArray, axes: Any = None) -> AnyArray:
    n = len(shape_of(a))
    order = tuple(range(n - 1, -1, -1)) if axes is None else normalize_axis_tuple(axes, n)
    if len(order) != n:
        raise ValueError("axes don't match array")
    return bind(primitives.permute, (a,), {"axes": order})


@implements(np.matrix_transpose, by_shape=True)
def _matrix_transpose(x: AnyArray, /) -> AnyArray:
    if len(shape_of(x)) < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {len(shape_of(x))}")
    return _swapaxes(x, -1, -2)


@implements(np.swapaxes, by_shape=True)
def _swapaxes(a: AnyArray, axis1: int, axis2: int) -> AnyArray:
    n = len(shape_of(a))
    first, second = normalize_axis_index(axis1, n), normalize_axis_index(axis2, n)
    return bind(primitives.transpose, (a,), {"axis0": first - n, "axis1": second - n})


@implements(np.moveaxis, by_shape=True)
def _moveaxis(a: AnyArray, source: Any, destination: Any) -> AnyArray:
    n = len(shape_of(a))
    src = normalize_axis_tuple(source, n, "source")
    dst = normalize_axis_tuple(destination, n, "destination")
    if len(src) != len(dst):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [k for k in range(n) if k not in src]
    for d, s in builtins.sorted(zip(dst, src, strict=True)):
        order.insert(int(d), int(s))
    return bind(primitives.permute, (a,), {"axes": tuple(order)})


@implements(np.rollaxis, by_shape=True)
def _rollaxis(a: AnyArray, axis: int, start: int = 0) -> AnyArray:
    n = len(shape_of(a))
    axis, start = normalize_axis_index(axis, n), normalize_axis_index(start, n + 1)
    return _moveaxis(a, axis, start - 1 if axis < start else start)


@implements(np.expand_dims, by_shape=True)
def _expand_dims(a: AnyArray, axis: Dims) -> AnyArray:
    axes = axis if isinstance(axis, tuple) else (axis,)
    n = len(shape_of(a)) + len(axes)
    return bind(primitives.unsqueeze, (a,), {"axis": tuple(k - n for k in normalize_axis_tuple(axes, n))})


@implements(np.squeeze, by_shape=True)
def _squeeze(a: AnyArray, axis: Any = None) -> AnyArray:
    shape = shape_of(a)
    n = len(shape)
    axes = tuple(k for k in range(n) if shape[k] == 1) if axis is None else normalize_axis_tuple(axis, n)
    for k in axes:
        if shape[k] != 1:
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return bind(primitives.squeeze, (a,), {"axis": tuple(k - n for k in axes)})


@implements(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> AnyArray:
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of broadcast shape must be non-negative")
    return make_read_only(
        bind(primitives.alias, (array,), {}) if tuple(shape_of(array)) == shape else _expanded(array, shape)
    )


def _expanded(array: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    return bind(primitives.expand, (array,), {"shape": shape}) if tuple(shape_of(array)) != shape else array


@implements(np.broadcast_arrays)
def _broadcast_arrays(*args: Any, subok: bool = False) -> tuple[AnyArray, ...]:
    shape = np.broadcast_shapes(*[np.shape(a) for a in args])
    return tuple(_expanded(asarray_or_tensor(a), shape) for a in args)


@implements(np.flip, by_shape=True)
def _flip(m: AnyArray, axis: Any = None) -> AnyArray:
    n = len(shape_of(m))
    axes = checked_axes(_tuple(axis), n)  # a view, as in NumPy
    return bind(
        indexing.getitem, (m,), {"index": tuple(slice(None, None, -1 if k in axes else None) for k in range(-n, 0))}
    )


def _tuple(x: AnyArray) -> Any:
    return tuple(x) if isinstance(x, list) else x


implements(np.fliplr, by_shape=True)(lambda m: _flip(m, 1))
implements(np.flipud, by_shape=True)(lambda m: _flip(m, 0))


@implements(np.roll, by_shape=True)
def _roll(a: AnyArray, shift: Any, axis: Any = None) -> AnyArray:
    if axis is None:
        return np.reshape(_roll(np.reshape(a, (-1,)), shift, 0), shape_of(a))
    shift, axis = _tuple(shift), _tuple(axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    return bind(primitives.roll, (a,), {"shift": shifts, "axis": checked_axes(axes, len(shape_of(a)))})


@implements(np.rot90, by_shape=True)
def _rot90(m: TensorLike, k: int = 1, axes: Any = (0, 1)) -> AnyArray:
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    a, b = checked_axes(tuple(axes), len(shape_of(m)))
    if a == b:
        raise ValueError("Axes must be different.")
    if k % 2 == 0:
        return np.flip(m, (a, b) if k % 4 else ())
    return np.swapaxes(np.flip(m, b), a, b) if k % 4 == 1 else np.flip(np.swapaxes(m, a, b), b)


@implements(np.concatenate, by_shape=True)
def _concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: object = "same_kind"
) -> Any:
    arrays = [asarray_or_tensor(a) for a in arrays]
    _check_casts(arrays, dtype, casting)
    if axis is None:
        arrays, axis = [np.reshape(a, (-1,)) for a in arrays], 0
    n = len(shape_of(arrays[0]))
    return in_dtype(bind(primitives.cat, tuple(arrays), {"axis": normalize_axis_index(axis, n) - n}), dtype)


def _check_casts(arrays: list[AnyArray], dtype: Any, casting: Any) -> None:
    """Raise NumPy's error if arrays cannot be cast as ``dtype=`` requires."""
    for a in arrays if dtype is not None else ():
        if not np.can_cast(dtype_of(a), dtype, casting):
            raise errors.forbidden_cast(dtype_of(a), np.dtype(dtype), casting)


@implements(np.stack, by_shape=True)
def _stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    arrays = [asarray_or_tensor(a) for a in arrays]
    _check_casts(arrays, dtype, casting)
    n = len(shape_of(arrays[0])) + 1
    return in_dtype(bind(primitives.stack, tuple(arrays), {"axis": normalize_axis_index(axis, n) - n}), dtype)


implements(np.atleast_1d)(lambda *arys: joining._map_tensors(arys, lambda x: x if shape_of(x) else np.reshape(x, (1,))))
implements(np.atleast_2d)(
    lambda *arys: joining._map_tensors(arys, lambda x: x if len(shape_of(x)) > 1 else np.reshape(x, (1, -1)))
)


@implements(np.vstack, by_shape=True)
def _vstack(tup: Any, **options: Any) -> AnyArray:
    return np.concatenate([np.atleast_2d(asarray_or_tensor(a)) for a in tup], axis=0, **options)


@implements(np.hstack, by_shape=True)
def _hstack(tup: Any, **options: object) -> AnyArray:
    arrays = [np.atleast_1d(asarray_or_tensor(a)) for a in tup]
    return np.concatenate(arrays, axis=0 if len(np.shape(arrays[0])) == 1 else 1, **options)


@implements(np.column_stack, by_shape=True)
def _column_stack(tup: Any) -> AnyArray:
    arrays = [asarray_or_tensor(a) for a in tup]
    return np.concatenate([np.reshape(a, (-1, 1)) if len(np.shape(a)) < 2 else a for a in arrays], axis=1)


@implements(np.append, by_shape=True)
def _append(arr: IntoArray, values: TensorLike, axis: int | None = None) -> AnyArray:
    return np.concatenate([arr, values], axis=axis)


@implements(np.split)
def _split(ary: AnyArray, indices_or_sections: IntoArray, axis: int = 0) -> list[AnyArray]:
    if isinstance(indices_or_sections, (int, np.integer)) and shape_of(ary)[axis] % indices_or_sections:
        raise ValueError(
            f"array split does not result in an equal division: {shape_of(ary)[axis]} in {indices_or_sections} parts. "
            "np.array_split makes parts of unequal length"
        )
    return _array_split(ary, indices_or_sections, axis)


@implements(np.array_split)
def _array_split(ary: AnyArray, indices_or_sections: Any, axis: int = 0) -> list[AnyArray]:
    n = shape_of(ary)[axis]
    if isinstance(indices_or_sections, (int, np.integer)):
        if indices_or_sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        cuts = splitting.even_cuts("array_split", n, int(indices_or_sections))
    else:
        cuts = [0, *indices_or_sections, n]
    lead = (slice(None),) * normalize_axis_index(axis, len(shape_of(ary)))
    return [ary[(*lead, slice(a, b))] for a, b in itertools.pairwise(cuts)]


@implements(np.tile)
def _tile(A: Any, reps: Any) -> AnyArray:
    return joining.tile(A, *((reps,) if isinstance(reps, int) else reps))


@implements(np.repeat)
def _repeat(a: AnyArray, repeats: IntoArray, axis: int | None = None) -> AnyArray:
    a, axis = flattened(a, axis)
    index = joining.repeat_indices(shape_of(a)[axis], repeats)
    return bind(indexing.take, (a, index), {"axis": axis})


@implements(np.pad, by_shape=True)
def _pad(array: AnyArray, pad_width: Any, mode: str = "constant", **kwargs: object) -> AnyArray:
    n = len(shape_of(array))
    if isinstance(pad_width, dict):  # axis -> widths
        by_axis: list[Any] = [0] * n
        for axis, width in pad_width.items():
            by_axis[axis] = width
        pad_width = [np.broadcast_to(width, (2,)) for width in by_axis]
    widths = tuple((int(a), int(b)) for a, b in np.broadcast_to(pad_width, (n, 2)))
    if any(min(ends) < 0 for ends in widths):
        raise ValueError("index can't contain negative values")
    if mode in _PADDING_MODES:
        return to_numpy_layout(_PADDING_MODES[mode](array, widths, **kwargs), array)
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap") or kwargs.get("reflect_type", "even") != "even":
        odd = kwargs.get("reflect_type", "even") != "even"
        raise errors.numpy_keyword("pad", f"reflect_type={kwargs['reflect_type']!r}" if odd else f"mode={mode!r}")
    return to_numpy_layout(_padded(array, widths, mode, kwargs), array)


def _padded(array: AnyArray, widths: tuple[tuple[int, int], ...], mode: str, kwargs: Params) -> AnyArray:
    n = len(widths)
    if mode == "constant":
        value = kwargs.pop("constant_values", 0)
        if kwargs:
            raise ValueError(f"unsupported keyword arguments for mode 'constant': {set(kwargs)}")
        if np.ndim(value) == 0:
            return primitives.pad(array, widths=widths, value=value)
        for k, ends in enumerate(np.broadcast_to(value, (n, 2)).tolist()):  # the last axis determines the corners
            for side, end in enumerate(ends):
                one_side = tuple(
                    (*((widths[k][0], 0), (0, widths[k][1]))[side],) if i == k else (0, 0) for i in range(n)
                )
                array = primitives.pad(array, widths=one_side, value=end)
        return array
    for k, (a, b) in enumerate(widths):
        if a or b:
            index = np.pad(np.arange(shape_of(array)[k]), (a, b), mode=mode, **kwargs)
            array = bind(indexing.take, (array, index), {"axis": k - n})
    return array


def _statistic_padding(function: AnyFunction) -> Any:
    """Pad with a statistic of the first and last elements along an axis, or of all."""

    def pad(array: AnyArray, widths: tuple[tuple[int, int], ...], stat_length: IntoArray | None = None) -> AnyArray:
        n, dtype = len(widths), dtype_of(array)
        lengths = np.broadcast_to(max(shape_of(array)) if stat_length is None else stat_length, (n, 2)).tolist()
        for k, (first, last) in enumerate(lengths):
            size = shape_of(array)[k]
            parts = [array]
            for side, part in ((0, sliced(array, 0, first, k)), (1, sliced(array, max(size - last, 0), size, k))):
                end = function(part, axis=k, keepdims=True)
                end = in_dtype(np.round(end) if dtype.kind in "iu" else end, dtype)
                shape = tuple(widths[k][side] if i == k else m for i, m in enumerate(shape_of(end)))
                parts.insert(side * len(parts), np.broadcast_to(end, shape))
            array = np.concatenate(parts, axis=k)
        return array

    return pad


def _ramps(array: AnyArray, widths: tuple[tuple[int, int], ...], end_values: IntoArray = 0) -> AnyArray:
    """Pad with linear ramps from end values to the edge elements."""
    for k, ends in enumerate(np.broadcast_to(end_values, (len(widths), 2))):
        edges = (sliced(array, 0, 1, k), sliced(array, shape_of(array)[k] - 1, None, k))
        ramps = [
            np.linspace(end, np.squeeze(edge, k), width, endpoint=False, dtype=dtype_of(array), axis=k)
            for end, edge, width in zip(ends, edges, widths[k], strict=True)
        ]
        array = np.concatenate([ramps[0], array, np.flip(ramps[1], k)], axis=k)
    return array


#: modes of np.pad that compute the padding from the elements
_PADDING_MODES = {
    "mean": _statistic_padding(np.mean),
    "maximum": _statistic_padding(np.max),
    "minimum": _statistic_padding(np.min),
    "linear_ramp": _ramps,
}


@implements(np.tril, by_shape=True)
def _tril(m: AnyArray, k: int = 0) -> AnyArray:
    return bind(primitives.tril, (_square(m),), {"k": k})


@implements(np.triu, by_shape=True)
def _triu(m: AnyArray, k: int = 0) -> AnyArray:
    return bind(primitives.triu, (_square(m),), {"k": k})


def _square(m: AnyArray) -> AnyArray:
    """Broadcast a vector to a square matrix, as NumPy's ``tril`` and ``triu`` do."""
    n = shape_of(m)
    return np.broadcast_to(m, (n[0], n[0])) if len(n) == 1 else m


@implements(np.diagonal, by_shape=True)
def _diagonal(a: AnyArray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> AnyArray:
    n = len(shape_of(a))
    if n < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = normalize_axis_index(axis1, n), normalize_axis_index(axis2, n)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    return make_read_only(bind(primitives.diagonal, (a,), {"offset": offset, "axis1": first - n, "axis2": second - n}))


@implements(np.diag, by_shape=True)
def _diag(v: AnyArray, k: int = 0) -> AnyArray:
    if len(shape_of(v)) == 2:
        return _diagonal(v, k)
    if len(shape_of(v)) != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = shape_of(v)[0] + builtins.abs(k)
    return bind(primitives.undiagonal, (v,), {"offset": k, "axis1": -2, "axis2": -1, "sizes": (n, n)})


@implements(np.trace, by_shape=True)
def _trace(
    a: AnyArray, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike = None, out: object = None
) -> AnyArray:
    return np.sum(_diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


@implements(np.meshgrid)
def _meshgrid(*xi: object, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[AnyArray]:
    vectors: list[Any] = [np.reshape(x, -1) if isinstance(x, Tensor) else wrap(as_array(x).reshape(-1)) for x in xi]
    grids: Any
    if sparse:
        order = [1, 0, *range(2, len(xi))] if indexing == "xy" and len(xi) > 1 else list(range(len(xi)))
        grids = [
            np.reshape(x, [-1 if i == at else 1 for i in range(len(xi))]) for x, at in zip(vectors, order, strict=True)
        ]
    else:
        grids = matrices.meshgrid(*vectors, indexing=indexing)
    return [g.clone() for g in grids] if copy else list(grids)


@implements(np.take)
def _take(a: AnyArray, indices: AnyArray, axis: int | None = None, out: object = None, mode: str = "raise") -> AnyArray:
    a, axis = flattened(a, axis)
    indices = indices if hasattr(indices, "shape") else np.asarray(indices)
    if mode != "raise":
        if mode not in ("wrap", "clip"):
            raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
        n = shape_of(a)[axis]
        indices = np.remainder(indices, n) if mode == "wrap" else np.clip(indices, 0, n - 1)
    return bind(indexing.take, (a, indices), {"axis": axis})


@implements(np.take_along_axis)
def _take_along_axis(arr: AnyArray, indices: AnyArray, axis: int = -1) -> AnyArray:
    if not hasattr(indices, "dtype") or indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    arr, axis = flattened(arr, axis)
    return bind(indexing.gather, (arr, indices), {"axis": axis})


# -- shorthands -------------------------------------------------------------------------------------------------------


implements(np.atleast_3d)(lambda *arys: joining.atleast_3d(*arys))
implements(np.diagflat, by_shape=True)(lambda v, k=0: _diag(np.reshape(v, (-1,)), k))


@implements(np.dstack, by_shape=True)
def _dstack(tup: Any) -> AnyArray:
    return np.concatenate([np.atleast_3d(asarray_or_tensor(a)) for a in tup], axis=2)


@implements(np.block, by_shape=True)
def _block(arrays: object) -> AnyArray:
    return _join_nested(arrays)[0] if isinstance(arrays, list) else np.copy(arrays)


def _join_nested(part: Any) -> tuple[Any, int]:
    """Join innermost lists along the last axis, the lists around them along the axis before, and so on."""
    if not isinstance(part, list):
        return part, 0
    parts = [_join_nested(p) for p in part]
    level = max(d for _, d in parts) + 1
    blocks = [np.atleast_1d(p) if level == 1 else np.atleast_2d(p) for p, _ in parts]
    return np.concatenate(blocks, axis=-level), level


@implements(np.hsplit)
def _hsplit(ary: object, indices_or_sections: object) -> Any:
    return np.split(ary, indices_or_sections, axis=0 if len(shape_of(ary)) == 1 else 1)


@implements(np.vsplit)
def _vsplit(ary: object, indices_or_sections: object) -> Any:
    if len(shape_of(ary)) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return np.split(ary, indices_or_sections, axis=0)


@implements(np.dsplit)
def _dsplit(ary: object, indices_or_sections: object) -> Any:
    return np.split(ary, indices_or_sections, axis=2)


if hasattr(np, "unstack"):

    @implements(np.unstack)
    def _unstack(x: Any, /, *, axis: int = 0) -> Any:
        first = np.moveaxis(x, axis, 0)
        return tuple(first[i] for i in range(shape_of(first)[0]))


@implements(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    conditions, values = list(map(asarray_or_tensor, condlist)), [*choicelist, default]
    if len(conditions) != len(values) - 1:
        raise ValueError("list of cases must be same length as list of conditions")
    if not conditions:
        raise ValueError("select with an empty condition list is not possible")
    for i, condition in enumerate(conditions):
        if dtype_of(condition) != np.bool_:
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    values = [x if type(x) in (int, float, complex) else asarray_or_tensor(x) for x in values]
    dtype = np.result_type(*map(promotion_operand, values))
    for x in values[:-1]:
        if not np.can_cast(dtype_of(np.asarray(x) if type(x) in (int, float, complex) else x), dtype, "same_kind"):
            raise errors.forbidden_cast(dtype_of(np.asarray(x)), dtype, "same_kind")
    *choices, result = [cast(x, dtype) if hasattr(x, "shape") else np.asarray(x, dtype) for x in values]
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = np.where(condition, choice, result)
    return to_order(result, "C")


@implements(np.delete)
def _delete(arr: TensorLike, obj: Any, axis: int | None = None) -> AnyArray:
    arr, along = flattened(arr, axis)
    obj = plain(obj) if isinstance(obj, Tensor) else obj
    left = np.delete(np.arange(shape_of(arr)[along]), obj)
    if not isinstance(obj, slice) and (np.size(obj) != 1 or np.asarray(obj).dtype == bool):  # NumPy indexes with a mask
        return read_any(arr, (*(slice(None),) * (along % len(shape_of(arr))), left), "K")
    return to_numpy_layout(bind(indexing.take, (arr, left), {"axis": along}), arr)


@implements(np.compress)
def _compress(condition: IntoArray, a: AnyArray, axis: int | None = None, out: object = None) -> AnyArray:
    a, along = flattened(a, axis)
    return bind(indexing.take, (a, np.flatnonzero(plain(condition))), {"axis": along})


@implements(np.extract)
def _extract(condition: AnyArray, arr: AnyArray) -> AnyArray:
    return _compress(np.ravel(plain(condition)), arr)


def plain(x: IntoArray) -> Any:
    """Return the values, for results without a derivative. Values that are not computed yet are an error."""
    found = _payload_or_numpy(x) if isinstance(x, Tensor) else np.asarray(x)
    return found.inside if type(found) is Foreign else found


def _payload_or_numpy(x: Tensor) -> AnyArray:
    """Return the array of a tensor; an array of another library is returned as it is."""
    return x._raw if type(x._raw) is Foreign else x.detach().numpy()


def _implement_without_derivative(function: AnyFunction) -> None:
    """Implement a function with integer or boolean results: compute it on the values, and wrap the results."""

    def call(*args: object, **kwargs: object) -> Any:
        args = tuple(_payload_or_numpy(a) if isinstance(a, Tensor) else a for a in args)
        kwargs = {name: _payload_or_numpy(a) if isinstance(a, Tensor) else a for name, a in kwargs.items()}
        result = function(*args, **kwargs)
        return tuple(wrap(r) for r in result) if isinstance(result, tuple) else wrap(result)

    implements(function)(call)


implements(np.diag_indices_from)(lambda arr: np.diag_indices_from(np.empty(shape_of(arr))))
implements(np.tril_indices_from)(lambda arr, k=0: np.tril_indices_from(np.empty(shape_of(arr)), k))
implements(np.triu_indices_from)(lambda arr, k=0: np.triu_indices_from(np.empty(shape_of(arr)), k))

for _function in (np.nonzero, np.argwhere, np.flatnonzero, np.digitize, np.isneginf, np.isposinf):
    _implement_without_derivative(_function)


def _inserted_batch(prim: Any, payloads: Any, batched: Any, size: int, params: Params) -> AnyArray:
    return (
        each_example(prim, payloads, batched, size, params) if batched[0] else apply_primitive(prim, payloads, params)
    )


@discrete(listed=False, batch=_inserted_batch)
def inserted(x: AnyArray, y: AnyArray, *, side: str) -> AnyArray:
    """Return where the elements of y would be inserted into a sorted vector."""
    return np.searchsorted(x, y, side)


@implements(np.searchsorted)
def _searchsorted(a: Any, v: AnyArray, side: str = "left", sorter: AnyArray | None = None) -> AnyArray:
    a, v = operands(a, v)
    return bind(inserted, (a if sorter is None else np.take(a, plain(sorter)), v), {"side": side})
