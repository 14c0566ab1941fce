"""Join, repeat, flip, roll and pad tensors along axes. Composites are recorded as the primitives they consist of.

``op`` makes these functions public: ``chainrule.tile``, ``chainrule.cat`` …
"""

from __future__ import annotations

import builtins
import operator
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.operands import operand
from chainrule._src.arrays import promotion
from chainrule._src.arrays.any_array import is_array, lies_within
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, Dims, IntoArray, NumpyArray, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops.arguments import placed, takes_tensors, tensor_of
from chainrule._src.ops.shaping import _ints, apart, expand, reshape, transpose, unsqueeze
from chainrule._src.table import indexing
from chainrule._src.table import shape as primitives
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.foreign import gpu_number
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.ties import tie_cotangents

ndarray = np.ndarray


@op("Tensor.repeat")
def repeat(input: TensorLike, *times: Any, repeats: Any = None) -> Tensor:
    """Repeat the tensor along every axis (``np.tile``)."""
    x = tensor_of("repeat", input)
    times = _ints("repeat", times if repeats is None else (repeats,))
    if len(times) < x.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
            f"{len(times)} repeats for shape {tuple(x.shape)}"
        )
    if builtins.any(n < 0 for n in times):
        raise RuntimeError(f"Trying to create tensor with negative dimension {builtins.min(times)}")
    shape = (1,) * (len(times) - x.ndim) + tuple(x._raw.shape)
    paired = [n for length in shape for n in (1, length)]
    interleaved_shape = [n for r, length in zip(times, shape, strict=True) for n in (r, length)]
    joined = [r * length for r, length in zip(times, shape, strict=True)]
    return apart(reshape(expand(reshape(x, *paired), *interleaved_shape), *joined), x)


@op(method=True, sample="rand(3), (2, 2)")
@takes_tensors
def tile(input: Tensor, *times: Any, dims: Dims = None) -> Tensor:
    """Repeat the tensor as :func:`repeat` does, with missing repeats counted as 1."""
    times = _ints("tile", times if dims is None else (dims,))
    return repeat(input, *(1,) * (input.ndim - len(times)), *times)


@op(method=True, sample="rand(2, 3), 2")
def repeat_interleave(
    input: TensorLike | None = None, repeats: object = None, dim: int | None = None, *, output_size: object = None
) -> Tensor:
    """Repeat every element (or entry along ``dim``) in place.

    Args:
        repeats: the number of repeats; one for all, or one for each entry. Given alone, the numbers 0, 1, 2 … are repeated.
        output_size: the expected length of the result, which is checked.

    >>> import chainrule as cr
    >>> cr.repeat_interleave(cr.tensor([5., 6.]), 2)
    tensor([5., 5., 6., 6.])
    >>> cr.repeat_interleave(cr.tensor([1, 0, 2]))
    tensor([0, 2, 2])
    """
    if repeats is None or input is None:
        return _indices_of_repeats(input if repeats is None else repeats, output_size)
    x = tensor_of("repeat_interleave", input)
    if dim is None:
        x, dim = reshape(x, -1), 0
    d = errors.check_dim("repeat_interleave", dim, x.ndim)
    counts = repeats._array() if isinstance(repeats, Tensor) else np.asarray(repeats)
    n = x._raw.shape[d]
    if counts.ndim == 1 and len(counts) not in (1, n):
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {len(counts)} and "
            f"input.size({d}) = {n}"
        )
    _check_repeats(counts)
    index = repeat_indices(n, counts)
    if output_size is not None and output_size != len(index):
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {len(index)} but got {output_size}")
    return index_select(x, d, placed(wrap(index), gpu_number(x)))


def _indices_of_repeats(repeats: object, output_size: object) -> Tensor:
    """Return 0 … n − 1, each repeated as often as the corresponding number says."""
    if not isinstance(repeats, Tensor):
        kind = type(repeats).__name__
        raise TypeError(f"repeat_interleave(): argument 'repeats' (position 1) must be Tensor, not {kind}")
    counts = repeats._array()
    if counts.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    _check_repeats(counts)
    index = repeat_indices(len(counts), counts)
    if output_size is not None and output_size != len(index):
        raise RuntimeError(
            f"allocated size does not match required size: repeat_interleave gives {len(index)} elements, and output_size is "
            f"{output_size}"
        )
    return placed(wrap(index.astype(counts.dtype)), gpu_number(repeats))


def _check_repeats(counts: AnyArray) -> None:
    if counts.dtype.kind not in "iu" or (counts < 0).any():
        raise RuntimeError("repeats must be non-negative integers (int32 or int64)")


def repeat_indices(n: int, counts: IntoArray) -> NumpyArray:
    """Return 0 … n − 1, each repeated ``counts`` times.

    Raises:
        ValueError: the result would be too long. (NumPy writes out of bounds if the length overflows.)
    """
    counts = np.asarray(counts)
    total = (
        builtins.sum(counts.tolist() if counts.size == n != 1 else [n * int(k) for k in counts.reshape(-1)])
        if counts.dtype.kind in "iu"
        else 0
    )
    if total > np.iinfo(np.intp).max // 8:
        raise ValueError(f"Maximum allowed dimension exceeded: repeating gives {total} elements")
    return np.repeat(np.arange(n), counts)


@op(method=True, cached=True)
def flip(input: TensorLike, *axes: Any, dims: object = None) -> Tensor:
    """Reverse the order of the elements along axes (a copy)."""
    x = tensor_of("flip", input)
    order = [errors.check_dim("flip", d, x.ndim) for d in _ints("flip", axes if dims is None else (dims,))]
    if len(set(order)) != len(order):
        raise errors.repeated_dim(order[-1])
    return bind(primitives.flip, (x,), {"axis": tuple(a - x.ndim for a in order)}) if x.ndim else primitives.clone(x)


@op(method=True, cached=True)
def fliplr(input: TensorLike) -> Tensor:
    """Reverse the order of the columns."""
    if tensor_of("fliplr", input).ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@op(method=True, cached=True)
def flipud(input: TensorLike) -> Tensor:
    """Reverse the order of the rows."""
    if not tensor_of("flipud", input).ndim:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@op(method=True)
def rot90(input: TensorLike, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Rotate by k quarter turns in the plane of two axes (a copy)."""
    x = tensor_of("rot90", input)
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if x.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {x.ndim}")
    a, b = (errors.check_dim("rot90", d, x.ndim) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    if not isinstance(k, (int, np.integer)):
        raise TypeError(f"rot90(): argument 'k' must be int, not {type(k).__name__}")
    k = k % 4
    if k == 0:
        return primitives.clone(x)
    if k == 2:
        return flip(x, a, b)
    return flip(transpose(x, a, b), a if k == 1 else b)


def _integers(argument: str, value: Any) -> tuple[int, ...]:
    """Return an argument of ``roll``, an integer or several, as a tuple."""
    try:
        return tuple(map(operator.index, value if isinstance(value, (tuple, list)) else (value,)))
    except TypeError:
        raise TypeError(f"roll(): argument '{argument}' must be tuple of ints, not {type(value).__name__}") from None


@op(method=True)
def roll(input: Any, shifts: object, dims: Dims = None) -> Tensor:
    """Shift the elements cyclically along axes; without ``dims``, shift the flattened elements."""
    x = tensor_of("roll", input)
    shift, axes = _integers("shifts", shifts), () if dims is None else _integers("dims", dims)
    if not shift:
        raise RuntimeError("`shifts` required: roll() was called without a shift")
    if len(shift) != (len(axes) or 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shift)}, dims:{len(axes)}")
    if not axes:
        flat = bind(primitives.roll, (reshape(x, x.numel()),), {"shift": shift, "axis": (-1,)})
        return primitives.unsafe_view(flat, shape=tuple(x._raw.shape))
    if not x.ndim:
        raise errors.no_dimensions(axes[0])
    axes = tuple(errors.check_dim("roll", d, x.ndim) - x.ndim for d in axes)
    return bind(primitives.roll, (x,), {"shift": shift, "axis": axes})


def _tensor_list(function: str, tensors: object) -> list[Tensor]:
    if isinstance(tensors, (Tensor, ndarray)):
        raise TypeError(
            f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}: "
            f"write {function}([a, b])"
        )
    xs = list(tensors)
    dtype = xs[0]._raw.dtype if xs and type(xs[0]) is Tensor else None
    for x in xs:
        if type(x) is not Tensor or x._raw.dtype is not dtype:
            break
    else:
        if xs:
            return xs
    xs = [operand(function, i, x) for i, x in enumerate(xs)]
    if not xs:
        if function == "cat":
            raise ValueError("cat(): expected a non-empty list of Tensors")
        raise RuntimeError(f"{function} expects a non-empty TensorList")
    for i, x in enumerate(xs):
        if not hasattr(x, "dtype"):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    if builtins.all(x.dtype == xs[0].dtype for x in xs):
        return xs
    target = xs[0].dtype
    zero = xs[0].ndim == 0
    for x in xs[1:]:
        target = promotion.result_dtype(target, zero, x.dtype, x.ndim == 0)
        zero = zero and x.ndim == 0
    return [cast(x, target) for x in xs]


@op("cat concat concatenate", out=True, cached=True)
def cat(tensors: object, dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Concatenate tensors along ``dim``.

    Raises:
        RuntimeError: the shapes differ in another axis.
    """
    xs = _tensor_list("cat", tensors)
    dim = dim if axis is None else axis
    shapes = [shape_of(x) for x in xs]
    full = xs
    if (0,) in shapes and any(len(shape) != 1 for shape in shapes):  # empty vectors can be concatenated with any shape
        full = [x for x, shape in zip(xs, shapes, strict=True) if shape != (0,)]
        shapes = [shape for shape in shapes if shape != (0,)]
    a = shapes[0]
    n = len(a)
    if n == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated: use stack")
    d = errors.check_dim("cat", dim, n)
    for i, b in enumerate(shapes):
        if len(a) != len(b):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(a)} and {len(b)}")
        for k in range(n):
            if k != d and a[k] != b[k]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {a[k]} but got size {b[k]} "
                    f"for tensor number {i} in the list: shapes {tuple(a)} and {tuple(b)}."
                )
    return bind(primitives.cat, tuple(full), {"axis": d - n})


concat = concatenate = cat


@op(out=True, cached=True)
def stack(tensors: object, dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Stack tensors of one shape along a new axis.

    >>> import chainrule as cr
    >>> cr.stack([cr.tensor(1.), cr.tensor(2.)])
    tensor([1., 2.])
    """
    xs = _tensor_list("stack", tensors)
    dim = dim if axis is None else axis
    shape = shape_of(xs[0])
    for i, x in enumerate(xs):
        if shape_of(x) != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(shape_of(x))} at entry {i}"
            )
    n = len(shape) + 1
    return bind(primitives.stack, tuple(xs), {"axis": errors.check_dim("stack", dim, n) - n})


def _checked_nonempty(name: str, tensors: Any) -> Any:
    if not len(tensors):
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


@op(out=True)
def hstack(tensors: object) -> Tensor:
    """Stack horizontally: concatenate along the second axis (vectors along the first)."""
    xs = [atleast_1d(x) for x in _checked_nonempty("hstack", tensors)]
    return cat(xs, 0 if xs[0].ndim == 1 else 1)


@op("vstack row_stack", out=True)
def vstack(tensors: object) -> Tensor:
    """Stack vertically: concatenate along the first axis (vectors become rows)."""
    return cat([atleast_2d(x) for x in _checked_nonempty("vstack", tensors)], 0)


row_stack = vstack


@op(out=True)
def dstack(tensors: object) -> Tensor:
    """Concatenate along the third axis."""
    return cat([atleast_3d(x) for x in _checked_nonempty("dstack", tensors)], 2)


@op(out=True)
def column_stack(tensors: object) -> Tensor:
    """Stack vectors as columns of a matrix; concatenate matrices along the second axis."""
    parts = [tensor_of("column_stack", x) for x in _checked_nonempty("column_stack", tensors)]
    return cat([reshape(x, x.numel(), 1) if x.ndim <= 1 else x for x in parts], 1)


@op()
def atleast_1d(*tensors: TensorLike) -> Tensor:
    """Convert numbers to vectors of length 1; return other tensors unchanged."""
    return _map_tensors(tensors, lambda x: x if x.ndim else reshape(x, 1))


@op()
def atleast_2d(*tensors: TensorLike) -> Any:
    """Convert numbers and vectors to matrices of one row; return other tensors unchanged."""
    return _map_tensors(tensors, lambda x: x if x.ndim > 1 else unsqueeze(x, 0) if x.ndim else reshape(x, 1, 1))


@op()
def atleast_3d(*tensors: TensorLike) -> Tensor:
    """Add axes of length 1 so that each tensor has at least three axes."""

    def widen(x: AnyArray) -> AnyArray:
        if x.ndim >= 3:
            return x
        return unsqueeze(x, -1) if x.ndim == 2 else reshape(x, 1, -1, 1)

    return _map_tensors(tensors, widen)


def _map_tensors(tensors: Any, function: AnyFunction) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(function(tensor_of("atleast", x)) for x in tensors[0])
    done = tuple(function(tensor_of("atleast", x)) for x in tensors)
    return done[0] if len(done) == 1 else done


@op("nn.functional.pad")
def pad(input: TensorLike, pad: Any, mode: str = "constant", value: TensorLike | None = None) -> Tensor:
    """Pad the last axes: with ``(left, right)`` of the last axis, then of the one before, and so on.

    Args:
        mode: "constant" (filled with ``value``; negative widths crop), "reflect", "replicate" or "circular".
    """
    x = tensor_of("pad", input)
    widths = [int(w) for w in pad]
    if len(widths) % 2 or len(widths) // 2 > x.ndim:
        raise RuntimeError(
            "Padding length must be divisible by 2 and at most twice the number of dimensions of the input; got "
            f"{len(widths)} for {x.ndim} dimensions"
        )
    pairs = tuple((widths[i], widths[i + 1]) for i in range(len(widths) - 2, -1, -2))
    for (a, b), n in zip(pairs, x._raw.shape[x.ndim - len(pairs) :], strict=True):
        if n + a + b < 0:
            raise RuntimeError(
                f"The input size {n}, plus negative padding {a} and {b}, resulted in a negative output size"
            )
    if mode == "constant":
        return bind(primitives.pad, (x,), {"widths": pairs, "value": 0.0 if value is None else value})
    kinds = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in kinds:
        raise NotImplementedError(f"Unrecognised padding mode {mode}: use constant, reflect, replicate or circular")
    if x.ndim - len(pairs) not in (1, 2):
        raise NotImplementedError(
            f"Padding size {len(widths)} is not supported for {x.ndim}D input tensor: mode {mode!r} pads the axes after the "
            "axis of channels; add an axis of examples with unsqueeze(0) first"
        )
    for k, (a, b) in enumerate(pairs):
        d = x.ndim - len(pairs) + k
        n = x._raw.shape[d]
        if mode == "reflect" and (a >= n or b >= n):
            raise RuntimeError(
                f"Padding size should be less than the corresponding input dimension, but got: padding ({a}, {b}) at "
                f"dimension {d} of input {list(x.shape)}"
            )
        if mode == "circular" and (a > n or b > n):
            raise RuntimeError(
                "Padding value causes wrapping around more than once: circular padding takes at most the size, "
                f"{n} in dimension {d}, and got ({a}, {b})"
            )
        if a or b:
            kept = (
                slice(max(-a, 0), n - max(-b, 0)) if mode == "circular" else slice(None)
            )  # wrap only the cropped part
            at = np.pad(np.arange(n)[kept], (max(a, 0), max(b, 0)), mode=kinds[mode])
            x = index_select(x, d, at if mode == "circular" else at[max(-a, 0) : len(at) - max(-b, 0)])
    if x is input:
        return primitives.clone(x)
    return x if mode == "circular" else tie_cotangents(x)


@op(sample="rand(2, 3), (1, 1)")
def constant_pad_nd(input: TensorLike, pad: object, value: TensorLike = 0) -> Tensor:
    """Pad with a constant, as ``pad`` does."""
    return pad_(input, pad, value=value)


pad_ = pad


@op(method=True, out=True)
def index_select(input: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """Return the entries at indices along ``dim`` (a copy; indices may repeat)."""
    x = tensor_of("index_select", input)
    where: Any = index if isinstance(index, (Tensor, ndarray, ArrayLike)) else np.asarray(index)
    if where.dtype.kind not in "iu":
        raise RuntimeError(f"index_select(): Expected dtype int32 or int64 for index, but got {where.dtype}")
    if where.ndim > 1:
        raise IndexError(f"index_select(): Index is supposed to be a vector, but got shape {tuple(where.shape)}")
    if not x.ndim:
        return primitives.clone(x)
    d = errors.check_dim("index_select", dim, x.ndim)
    n = x._raw.shape[d]
    plain = where._raw if isinstance(where, Tensor) else where
    if is_array(plain) and not lies_within(plain, 0, n - 1):
        raise IndexError(f"index out of range in self: index_select along a dimension of size {n}")
    if where.ndim == 0:
        where = where.reshape(1)
    return bind(indexing.take, (x, where), {"axis": d - x.ndim})
