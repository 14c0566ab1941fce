"""Pooling: the mean or the maximum of every window, with PyTorch's names and arguments.

``chainrule.nn.functional`` exports these functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.declare import op, op_each_axes
from chainrule._src.arrays.any_array import is_array, lies_within
from chainrule._src.arrays.types import AnyArray, Ints, NumpyArray, ShapeLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import gathering, joining, products, reductions, shaping
from chainrule._src.ops.arguments import constant_on_device_of, tensor_of
from chainrule._src.table import pooling as primitives
from chainrule._src.table import shape as moves
from chainrule._src.table import windows
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.protocol import as_array
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.ties import tie_cotangents
from chainrule.nn.spatial import add_batch_axis, each_axis, int_argument, tensor_argument


def _format_ints(values: Ints) -> str:
    """Return one number as text if all are equal, else the tuple."""
    return str(values[0]) if len(set(values)) == 1 else str(values)


def _input(function: str, x: AnyArray, axes: int) -> None:
    """Check that the input has a channel axis and ``axes`` non-empty axes to pool over."""
    if x.ndim not in (axes + 1, axes + 2) or 0 in x.shape[x.ndim - axes - 1 :]:
        raise errors.pool_input(function, x, axes)


class _Windows:
    """The checked kernel, stride, padding and dilation of each axis, and the number of windows."""

    def __init__(
        self,
        function: str,
        x: AnyArray,
        axes: int,
        kernel: object,
        stride: object,
        padding: object,
        dilation: object,
        ceil: bool,
    ) -> None:
        self.kernel = each_axis(function, "kernel_size", kernel, axes)
        empty = stride is None or (isinstance(stride, (tuple, list)) and not stride)
        self.stride = self.kernel if empty else each_axis(function, "stride", stride, axes)
        self.padding = each_axis(function, "padding", padding, axes)
        self.dilation = each_axis(function, "dilation", dilation, axes)
        self.size = tuple(x.shape[x.ndim - axes :])
        for name in ("kernel_size", "stride", "dilation"):
            values = self.kernel if name == "kernel_size" else getattr(self, name)
            if min(values) <= 0:
                raise RuntimeError(f"{function}: {name} must be greater than zero, but got {_format_ints(values)}")
        if min(self.padding) < 0:
            raise RuntimeError(f"{function}: pad must be non-negative, but got {_format_ints(self.padding)}")
        if any(2 * p > d * (k - 1) + 1 for k, p, d in zip(self.kernel, self.padding, self.dilation, strict=True)):
            raise RuntimeError(
                f"{function}: pad should be at most half of effective kernel size, but got pad={_format_ints(self.padding)}, "
                f"kernel_size={_format_ints(self.kernel)} and dilation={_format_ints(self.dilation)}"
            )
        self.counts = tuple(self._count(i, ceil) for i in range(axes))
        if min(self.counts) < 1:
            raise errors.too_small_output(function, x, self.counts)

    def _count(self, i: int, ceil: bool) -> int:
        n, s, p = self.size[i], self.stride[i], self.padding[i]
        last_start = n + 2 * p - self.dilation[i] * (self.kernel[i] - 1) - 1
        count = (last_start + (s - 1 if ceil else 0)) // s + 1
        if ceil and (count - 1) * s >= n + p:  # the last window must start inside
            count -= 1
        return count

    def places(self) -> tuple[Any, ...]:
        """Return for each axis the indices of its windows' elements, −1 outside of the input."""
        found = []
        for n, c, k, s, p, d in zip(
            self.size, self.counts, self.kernel, self.stride, self.padding, self.dilation, strict=True
        ):
            at = np.arange(c)[:, None] * s - p + np.arange(k) * d
            found.append(np.where((at >= 0) & (at < n), at, -1))
        return tuple(found)


# -- maximum ---------------------------------------------------------------------------------------------------------


def _window_maxima(x: Tensor, places: tuple[AnyArray, ...], return_indices: bool) -> Tensor | tuple[Tensor, ...]:
    axes = len(places)
    flat = shaping.flatten(x, x.ndim - axes)
    where = bind(primitives.window_argmax, (x.detach(),), {"places": places})
    empty = np.zeros((), bool)
    for i, p in enumerate(places):
        empty = empty | (p < 0).all(1).reshape(-1, *(1,) * (axes - 1 - i))
    found = ew.where(constant_on_device_of(where, empty), 0, where) if empty.any() else where
    out = gathering.gather(flat, -1, shaping.flatten(found, where.ndim - axes))
    out = moves.unsafe_view(out, shape=tuple(where.shape))
    if empty.any():  # windows that lie entirely in the padding
        out = ew.where(
            constant_on_device_of(out, empty), -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min, out
        )
    return (tie_cotangents(out), found) if return_indices else tie_cotangents(out)


@op_each_axes(
    "nn.functional.max_pool{}d max_pool{}d", ("rand(1, 2, 6), 2", "rand(1, 2, 4, 4), 2", "rand(1, 1, 4, 4, 4), 2")
)
def max_pool(
    axes: int, input: Tensor, kernel_size: ShapeLike, stride: ShapeLike | None = None, padding: ShapeLike = 0, dilation: ShapeLike = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """Return the maximum of every window along the last axis. Of equal elements the first gets the gradient.

    Args:
        input: (n, channels, length), or without n.
        stride: ``kernel_size`` by default.
        padding: the number of elements by which windows extend beyond both ends, at most half of a window. Padding
            is never the maximum.
        ceil_mode: add a last window that extends beyond the end.
        return_indices: return ``(values, indices)``.

    >>> import chainrule as cr
    >>> cr.nn.functional.max_pool1d(cr.tensor([[1., 3., 2., 5.]]), 2)
    tensor([[3., 5.]])
    """
    function = f"max_pool{axes}d"
    x = tensor_of(function, input, "iuf")
    _input(function, x, axes)
    windows_ = _Windows(function, x, axes, kernel_size, stride, padding, dilation, ceil_mode)
    return _window_maxima(x, windows_.places(), return_indices)


def _bounds(size: int, count: int) -> tuple[Any, Any]:
    """Return the starts and ends of adaptive pooling's windows."""
    i = np.arange(count)
    return i * size // count, -(-(i + 1) * size // count)


def _output_size(function: str, x: AnyArray, output_size: object, axes: int) -> Ints:
    if x.ndim not in (axes + 1, axes + 2):
        raise errors.adaptive_rank(function, x, axes, isinstance(output_size, (tuple, list)) and axes > 1)
    spatial = tuple(x.shape[x.ndim - axes :])
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * axes
    if len(given) != axes:
        raise errors.window_numbers(function, "output_size", output_size, axes)
    size = tuple(
        n if s is None else int_argument(function, "output_size", s) for n, s in zip(spatial, given, strict=True)
    )
    if min(size) < 0:
        raise RuntimeError(f"{function}: elements of output_size must be greater than or equal to 0, but got {size}")
    if 0 in spatial:
        raise RuntimeError(
            f"{function}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(x.shape)}"
        )
    return size


@op_each_axes(
    "nn.functional.adaptive_max_pool{}d", ("rand(1, 2, 6), 2", "rand(1, 2, 4, 4), 2", "rand(1, 1, 4, 4, 4), 2")
)
def adaptive_max_pool(axes: int, input: Tensor, output_size: object, return_indices: bool = False) -> Any:
    """Return the maxima of ``output_size`` windows that cover the last axis (each axis) evenly; None keeps a size."""
    function = f"adaptive_max_pool{axes}d"
    x = tensor_of(function, input, "f")
    places = []
    for n, count in zip(x.shape[x.ndim - axes :], _output_size(function, x, output_size, axes), strict=True):
        start, end = _bounds(n, count)
        at = start[:, None] + np.arange(int((end - start).max(initial=0)))
        places.append(np.where(at < end[:, None], at, -1))
    return _window_maxima(x, tuple(places), return_indices)


# -- mean ------------------------------------------------------------------------------------------------------------


def _window_sums(x: AnyArray, w: _Windows) -> AnyArray:
    """Return the sum of every window, computed axis by axis over a strided view."""
    axes = len(w.kernel)
    widths = []
    for n, c, k, s, p in zip(w.size, w.counts, w.kernel, w.stride, w.padding, strict=True):
        widths.append((p, max((c - 1) * s + k - n - p, 0)))
    if any(a or b for a, b in widths):
        x = joining.pad(x, [v for pair in reversed(widths) for v in pair])
    for i in range(axes):
        params = {"axis": i - axes, "size": w.kernel[i], "step": w.stride[i]}
        x = reductions.sum(bind(windows.unfold, (x,), params), -1)
        x = x[(..., slice(w.counts[i]), *(slice(None),) * (axes - 1 - i))]
    return x


def _element_counts(w: _Windows, count_include_pad: bool) -> Any:
    """Return the number of elements that count in each window."""
    found: Any = np.ones(())
    for n, c, k, s, p in zip(w.size, w.counts, w.kernel, w.stride, w.padding, strict=True):
        start = np.arange(c) * s - p
        end = np.minimum(start + k, n + p)
        along = end - start if count_include_pad else np.minimum(end, n) - np.maximum(start, 0)
        found = found[..., None] * along
    return found


def _avg_pool(
    axes: int,
    input: Tensor,
    kernel: object,
    stride: object,
    padding: object,
    ceil: bool,
    include: bool,
    divisor: object,
) -> Tensor:
    function = f"avg_pool{axes}d"
    x = tensor_of(function, input, "iufc")
    _input(function, x, axes)
    w = _Windows(function, x, axes, kernel, stride, padding, 1, ceil)
    if divisor == 0:
        raise RuntimeError(f"{function}: divisor must be not zero")
    sizes = _element_counts(w, include) if divisor is None else np.asarray(divisor)
    whole = x.dtype.kind in "iu"
    return tie_cotangents(
        ew.div(
            _window_sums(x, w),
            constant_on_device_of(x, sizes.astype(x.dtype)),
            rounding_mode="trunc" if whole else None,
        )
    )


@op("nn.functional.avg_pool1d avg_pool1d", sample="rand(1, 2, 6), 2")
def avg_pool1d(
    input: Tensor, kernel_size: object, stride: object = None, padding: object = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """Return the mean of every window along the last axis.

    Args:
        input: (n, channels, length), or without n.
        stride: ``kernel_size`` by default.
        padding: the number of zeros on both sides, at most half of a window.
        ceil_mode: add a last window that extends beyond the end.
        count_include_pad: whether the zeros of ``padding`` count as elements.

    >>> import chainrule as cr
    >>> cr.nn.functional.avg_pool1d(cr.tensor([[1., 3., 2., 6.]]), 2)
    tensor([[2., 4.]])
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@op(sample="rand(1, 2, 4, 4), 2")
def avg_pool2d(
    input: Tensor, kernel_size: object, stride: object = None, padding: object = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Compute :func:`avg_pool1d`, over the last two axes; ``divisor_override`` replaces the number of elements."""
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@op(sample="rand(1, 1, 4, 4, 4), 2")
def avg_pool3d(
    input: Tensor, kernel_size: object, stride: object = None, padding: object = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Compute :func:`avg_pool2d`, over the last three axes."""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def apply_along_axis(x: Any, axis: int, matrix: Any) -> Tensor:
    """Multiply the vectors along an axis (counted from the end) by a constant matrix (new, old)."""
    matrix = constant_on_device_of(x, as_array(matrix, x.dtype))
    if axis == -2:
        return products.matmul(matrix, x)
    if axis == -1:
        return products.matmul(x, matrix.mT)
    return shaping.movedim(products.matmul(shaping.movedim(x, axis, -1), matrix.mT), -1, axis)


def averaging_matrix(size: int, count: int) -> NumpyArray:
    """Return the matrix (new, old) of the means over windows that cover an axis evenly."""
    start, end = _bounds(size, count)
    at = np.arange(size)
    inside = (at >= start[:, None]) & (at < end[:, None])
    return inside / np.maximum(inside.sum(1, keepdims=True), 1)


def _adaptive_avg(axes: int, input: Tensor, output_size: object) -> Tensor:
    function = f"adaptive_avg_pool{axes}d"
    x = tensor_of(function, input, "fc")
    counts = _output_size(function, x, output_size, axes)
    for i, count in enumerate(counts):
        n = x.shape[i - axes]
        if count != n:
            x = apply_along_axis(x, i - axes, averaging_matrix(n, count))
    x = x if x is not input else shaping.clone(x)
    return x if set(counts) == {1} else tie_cotangents(x)  # for output size 1, PyTorch records `mean`


@op("nn.functional.adaptive_avg_pool1d adaptive_avg_pool1d", sample="rand(1, 2, 6), 2")
def adaptive_avg_pool1d(input: Tensor, output_size: object) -> Tensor:
    """Return the means of ``output_size`` windows that cover the last axis (each axis) evenly; None keeps a size.

    >>> import chainrule as cr
    >>> cr.nn.functional.adaptive_avg_pool1d(cr.tensor([[1., 3., 2., 6.]]), 2)
    tensor([[2., 4.]])
    """
    return _adaptive_avg(1, input, output_size)


@op(sample="rand(1, 2, 4, 4), 2")
def adaptive_avg_pool2d(input: Tensor, output_size: object) -> Tensor:
    """Compute :func:`adaptive_avg_pool1d`, over the last two axes; None keeps a size."""
    return _adaptive_avg(2, input, output_size)


@op(sample="rand(1, 1, 4, 4, 4), 2")
def adaptive_avg_pool3d(input: Tensor, output_size: object) -> Tensor:
    """Compute :func:`adaptive_avg_pool1d`, over the last three axes; None keeps a size."""
    return _adaptive_avg(3, input, output_size)


@op_each_axes("nn.functional.lp_pool{}d", ("rand(1, 2, 6), 2, 3", "rand(1, 4, 4), 2, 2", "rand(1, 1, 2, 4, 4), 2, 2"))
def lp_pool(
    axes: int, input: Tensor, norm_type: float, kernel_size: object, stride: object = None, ceil_mode: bool = False
) -> Tensor:
    """Return (Σ xᵖ)^(1/p) over every window along the last axis; for p = ±∞ the maximum (or minimum) of |x|.

    Where a sum is 0, the gradient is 0.
    """
    p = norm_type
    if isinstance(p, (int, float)) and math.isinf(p):
        side = math.copysign(1, p)
        return side * max_pool(axes, ew.abs(input) * side, kernel_size, stride, 0, 1, ceil_mode, False)
    elements = math.prod(each_axis(f"lp_pool{axes}d", "kernel_size", kernel_size, axes))
    mean = _avg_pool(axes, input**p, kernel_size, stride, 0, ceil_mode, True, None)
    return (ew.where(mean == 0, 0.0, mean) * elements) ** (1 / p)


# -- unpooling -------------------------------------------------------------------------------------------------------


@op_each_axes(
    "nn.functional.max_unpool{}d",
    (
        "rand(1, 2, 3), zeros(1, 2, 3).long(), 2",
        "rand(1, 2, 2, 2), zeros(1, 2, 2, 2).long(), 2",
        "rand(1, 1, 2, 2, 2), zeros(1, 1, 2, 2, 2).long(), 2",
    ),
)
def max_unpool(
    axes: int, input: Tensor, indices: Tensor, kernel_size: object, stride: object = None, padding: object = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Write the maxima from :func:`max_pool1d` to their indices, with zeros elsewhere."""
    function = f"max_unpool{axes}d"
    x, indices = tensor_of(function, input), tensor_argument(function, "indices", indices)
    add_batch_axis(function, x, axes)
    kernel = each_axis(function, "kernel_size", kernel_size, axes)
    step = kernel if stride is None else each_axis(function, "stride", stride, axes)
    pad = each_axis(function, "padding", padding, axes)
    spatial = x.shape[x.ndim - axes :]
    size = tuple((n - 1) * s - 2 * p + k for n, s, p, k in zip(spatial, step, pad, kernel, strict=True))
    if output_size is not None:
        asked = tuple(output_size)[-axes:]
        for want, usual, s in zip(asked, size, step, strict=True):
            if not usual - s < want < usual + s:
                raise ValueError(f"invalid output_size {asked}: each size must be within a stride {step} of {size}")
        size = asked
    if tuple(indices.shape) != tuple(x.shape):
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) but got indices tensor "
            f"with shape: {list(indices.shape)}"
        )
    if indices.dtype != np.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
    number = math.prod(size)
    if is_array(indices._raw) and not lies_within(indices._raw, 0, number - 1):
        outside = indices._raw[(indices._raw < 0) | (indices._raw >= number)]
        raise RuntimeError(
            f"Found an invalid max index: {outside[0]} (output volumes are of size {'x'.join(map(str, size))}): "
            f"{function} takes the indices that max_pool{axes}d returned"
        )
    lead = x.ndim - axes
    zeros = x.new_zeros((*x.shape[:lead], number))
    flat = zeros.scatter(-1, shaping.flatten(indices, lead), shaping.flatten(x, lead))
    return flat.reshape(*x.shape[:lead], *size)
