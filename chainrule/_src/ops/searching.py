"""Find and count elements: nonzero, unique, searchsorted, histograms. Results depend on values, so few have gradients.

``op`` makes these functions public: ``chainrule.nonzero``, ``chainrule.nonzero_static`` …
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays import return_types
from chainrule._src.arrays.types import AnyArray, NumpyArray, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops.arguments import constant_on_device_of, takes_tensors, tensor_of
from chainrule._src.table import indexing as primitives
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.protocol import as_array
from chainrule._src.tape.tensor import Tensor, wrap

ndarray = np.ndarray


@op("nonzero argwhere", method=True, out=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the indices of the nonzero elements, as a matrix with one row each, or as one vector per axis."""
    input = tensor_of("nonzero", input)
    values = input._concrete("nonzero()")
    found = np.nonzero(values if input.ndim else values.reshape(1))
    if as_tuple:
        return tuple(constant_on_device_of(input, i.astype(np.int64)) for i in found)
    return constant_on_device_of(
        input, np.array(found if input.ndim else [], np.int64).reshape(input.ndim, len(found[0])).T
    )


argwhere = nonzero


@op(method=True, out=True, sample="rand(2, 3), size=6")
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Return the indices as :func:`nonzero` does, truncated or padded with ``fill_value`` to ``size`` rows."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    found = nonzero(input)._array()[:size]
    out = np.full((size, found.shape[1]), fill_value, np.int64)
    out[: len(found)] = found
    return constant_on_device_of(input, out)


@op(method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements, sorted. Of equal elements, the first gets the gradient."""
    x = tensor_of("unique", input)
    _check_entries("unique", x, dim)
    recorded = x._edge is not None
    options: Params = {"return_inverse": return_inverse, "return_counts": return_counts, "axis": dim}
    found: Any = np.unique(x._concrete("unique()"), return_index=recorded, equal_nan=False, **options)
    values, *others = found if isinstance(found, tuple) else (found,)
    result = _select(x, others.pop(0), dim) if recorded else constant_on_device_of(x, values)
    if return_inverse and dim is None:
        others[0] = others[0].reshape(input.shape)
    return (result, *map(wrap, others)) if others else result


def _check_entries(name: str, x: Tensor, dim: int | None) -> None:
    """Check that the tensor has entries along ``dim``."""
    if dim is None:
        return
    d = errors.check_dim(name, dim, x.ndim)
    if not x.ndim:
        raise errors.no_dimensions(dim)
    if 0 in (*x.shape[:d], *x.shape[d + 1 :]):
        raise RuntimeError(
            f"There are 0 sized dimensions, and they aren't selected, so {name} cannot be applied: got shape "
            f"{list(x.shape)} and dim {dim}"
        )


def _select(x: Tensor, indices: AnyArray, dim: int | None) -> Tensor:
    """Return the elements, or the entries along ``dim``, at indices."""
    return (
        x.reshape(-1)[constant_on_device_of(x, indices)]
        if dim is None
        else x.index_select(dim, constant_on_device_of(x, indices))
    )


@op(method=True)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the elements (or entries along ``dim``) without repetitions of the one before; the first of a run gets the gradient."""
    tensor = tensor_of("unique_consecutive", input)
    _check_entries("unique_consecutive", tensor, dim)
    x = tensor._concrete("unique_consecutive()")
    d = None if dim is None else errors.check_dim("unique_consecutive", dim, x.ndim)
    entries = x.reshape(-1) if d is None else np.moveaxis(x, d, 0)
    first = np.ones(len(entries), bool)
    changed = entries[1:] != entries[:-1]
    first[1:] = changed.any(axis=tuple(range(1, changed.ndim)))
    inverse = np.cumsum(first) - 1
    distinct = entries[first]
    parts: list[Any] = [distinct if d is None else np.moveaxis(distinct, 0, d)]
    if return_inverse:
        parts.append(inverse.reshape(x.shape) if d is None else inverse)
    if return_counts:
        parts.append(np.bincount(inverse, minlength=0) if len(inverse) else np.zeros(0, np.int64))
    found = (
        constant_on_device_of(tensor, np.ascontiguousarray(parts[0]))
        if tensor._edge is None
        else _select(tensor, np.flatnonzero(first), d)
    )
    return (
        (found, *[constant_on_device_of(tensor, np.asarray(p, order="C")) for p in parts[1:]])
        if len(parts) > 1
        else found
    )


# -- search in sorted vectors ----------------------------------------------------------------------------------------


@op(out=True, sample="tensor([0.2, 0.8]), rand(2, 3)")
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Return the indices along the last axis at which values must be inserted to keep it sorted.

    Args:
        sorted_sequence: a vector; or of shape (m..., n), for values of shape (m..., k).
        right: insert after equal elements rather than before them (the same as ``side="right"``).
        sorter: indices that sort the sequence, if it is not sorted.
    """
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if any(isinstance(x, Tensor) and not _is_single_array(x) for x in (sorted_sequence, input, sorter)):
        found = _count_before(sorted_sequence, input, right or side == "right", sorter)
        return found.to(np.int32) if out_int32 else found
    sequence = tensor_of("searchsorted", sorted_sequence)._concrete("searchsorted()")
    values = input._concrete("searchsorted()") if isinstance(input, Tensor) else np.asarray(input)
    _check_sequence(sequence, values, isinstance(input, Tensor) and values.ndim > 0)
    if sorter is not None:
        sequence = np.take_along_axis(sequence, _checked_sorter(sequence, sorter), -1)
    found = _insertions(sequence, values, "right" if right or side == "right" else "left")
    return constant_on_device_of(sorted_sequence, found.astype(np.int32 if out_int32 else np.int64))


def _is_single_array(x: Tensor) -> bool:
    return type(x._raw) is ndarray or x._raw.concrete() is not None


def _count_before(sequence: Tensor, values: Any, right: bool, sorter: Any) -> Tensor:
    """Count the elements before each value, where each example has its own sequence."""
    values = values if isinstance(values, Tensor) else wrap(as_array(values))
    _check_sequence(sequence, values, values.ndim > 0)
    if sorter is not None:
        sequence = sequence.take_along_dim(sorter, -1)
    if sequence.ndim > 1:
        sequence = sequence.unsqueeze(-2)
    values = values.unsqueeze(-1)
    beyond = sequence > values if right else sequence >= values
    return sequence.shape[-1] - beyond.sum(-1)


def _check_sequence(sequence: AnyArray, values: AnyArray, has_axes: bool) -> None:
    if not sequence.ndim:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if not has_axes and sequence.ndim != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({sequence.ndim}) and input value's dim({values.ndim}) numel({values.size})"
        )
    if sequence.ndim != 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(sequence.shape)} and input "
            f"value tensor {list(values.shape)}"
        )


def _checked_sorter(sequence: AnyArray, sorter: Tensor) -> NumpyArray:
    order = sorter._array()
    if order.dtype != np.int64:
        raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {order.dtype}")
    if order.shape != sequence.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sequence.shape)} and got sorter tensor {list(order.shape)}"
        )
    if order.size and (order.min() < 0 or order.max() >= sequence.shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")
    return order


def _insertions(sequence: AnyArray, values: AnyArray, side: str) -> Any:
    """Compute ``np.searchsorted`` along the last axis; NaN sorts last, as in PyTorch."""
    if sequence.ndim == 1:
        found = np.asarray(np.searchsorted(sequence, values, side=side))
    else:
        found = np.empty(values.shape, np.int64)
        for index in np.ndindex(sequence.shape[:-1]):
            found[index] = np.searchsorted(sequence[index], values[index], side=side)
    return np.where(np.isnan(values), sequence.shape[-1], found) if values.dtype.kind == "f" else found


@op(out=True, sample="rand(2, 3), tensor([0.2, 0.8])")
def bucketize(input: TensorLike, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Return the index of the bucket (between sorted boundaries) of every value."""
    boundaries = tensor_of("bucketize", boundaries)
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


# -- counts ----------------------------------------------------------------------------------------------------------


@op(method=True, sample="tensor([0, 2, 2]), rand(3)")
@takes_tensors
def bincount(input: Tensor, weights: object = None, minlength: int = 0) -> Tensor:
    """Return how often every non-negative integer occurs; with weights, the sum of their weights."""
    x = input._array()
    if x.ndim != 1 or x.dtype.kind not in "iu" or (x.size and x.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is None:
        return constant_on_device_of(input, np.bincount(x, minlength=minlength))
    weights = tensor_of("bincount", weights)
    if weights.shape != input.shape:
        raise RuntimeError(
            f"weights should be 1-d and have the same length as input, but got {list(weights.shape)} for "
            f"{list(input.shape)}"
        )
    if weights.dtype != np.float32:
        weights = cast(weights, np.dtype(np.float64))
    n = max(int(x.max()) + 1 if x.size else 0, minlength)
    return bind(primitives.take_add, (weights, input), {"axis": -1, "length": n})


def _range(name: str, x: Any, low: float, high: float, margin: float) -> tuple[float, float]:
    """Return the range of a histogram: that of the data if both ends are 0; with a margin if they are equal."""
    if low == high == 0:
        low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 1.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.{name}: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.{name}: max must be larger than min, but got [{low}, {high}]")
    return (low - margin, high + margin) if low == high else (low, high)


@op(method=True, out=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements are in each of ``bins`` equal intervals from ``min`` to ``max`` (both 0: the data's range)."""
    x = tensor_of("histc", input, "iuf")._concrete("histc()")
    if not isinstance(bins, (int, np.integer)):
        raise TypeError(f"histc(): argument 'bins' (position 2) must be int, not {type(bins).__name__}")
    if bins <= 0:
        raise RuntimeError(f"torch.histc(): bins must be > 0, but got {bins}")
    counts, _ = np.histogram(x[~np.isnan(x)] if x.dtype.kind == "f" else x, bins, _range("histc", x, min, max, 1))
    return constant_on_device_of(input, counts.astype(x.dtype))


@op(method=True)
def histogram(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """Return how many elements (or how much ``weight``) are in each bin, and the edges of the bins.

    ``bins`` is the number of bins over ``range`` (by default the data's), or a vector of edges.
    """
    x = tensor_of("histogram", input, "f")._concrete("histogram()")
    if isinstance(bins, Tensor):
        edges: Any = bins._array()
        if edges.ndim != 1:
            raise RuntimeError(f"histogram(): bins tensor should have one dimension, but got {edges.ndim} dimensions")
    else:
        if bins <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins}")
        low, high = range or (0, 0)
        edges = np.linspace(*_range("histogram", x, low, high, 0.5), bins + 1).astype(x.dtype)
    if weight is not None and weight.shape != input.shape:
        raise RuntimeError(
            "torch.histogram(): if weight tensor is provided it should have the same shape as the input tensor, but got "
            f"input with shape {list(input.shape)} and weight with shape {list(weight.shape)}"
        )
    weights = None if weight is None else weight._array().reshape(-1)
    counts, edges = np.histogram(x.reshape(-1), edges, weights=weights, density=density)
    return return_types.histogram(
        constant_on_device_of(input, counts.astype(x.dtype)), constant_on_device_of(input, edges.copy())
    )


@op(sample="rand(4, 2), [2, 3]")
def histogramdd(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """Return how many points, with coordinates along the last axis, are in each cell of a grid, and the grid's edges.

    ``bins`` is a number of bins, or for each coordinate a number or a vector of edges. ``range`` is a flat sequence of the
    lowest and highest value of each coordinate.
    """
    x = tensor_of("histogramdd", input, "f")._concrete("histogramdd()")
    points = x.reshape(-1, x.shape[-1])
    n = points.shape[1]
    counts = [bins] * n if isinstance(bins, int) else list(bins)
    if len(counts) != n:
        raise RuntimeError(f"histogramdd(): the points have {n} coordinates, but bins is for {len(counts)}")
    ends = np.reshape((0, 0) * n if range is None else range, (n, 2))
    edges = [
        b._array()
        if isinstance(b, Tensor)
        else np.linspace(*_range("histogramdd", along, low, high, 0.5), b + 1).astype(x.dtype)
        for b, along, (low, high) in zip(counts, points.T, ends, strict=True)
    ]
    weights = None if weight is None else weight._array().reshape(-1)
    found, _ = np.histogramdd(points, edges, weights=weights, density=density)
    counted = constant_on_device_of(input, found.astype(x.dtype))
    return return_types.histogramdd(counted, tuple(constant_on_device_of(input, e) for e in edges))


@op()
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Return whether each element is (with ``invert``, is not) one of the test elements. One argument may be a number.

    ``assume_unique`` asserts that neither has duplicates, which may be faster.
    """
    x, test = (t if isinstance(t, Tensor) else wrap(as_array(t)) for t in (elements, test_elements))
    if not (_is_single_array(x) and _is_single_array(test)):
        among = (x.unsqueeze(-1) == test.reshape(-1)).any(-1)
        return ~among if invert else among
    found = np.isin(x._array(), test._array(), assume_unique=assume_unique, invert=invert)
    return constant_on_device_of(x if isinstance(elements, Tensor) else test, np.asarray(found))
