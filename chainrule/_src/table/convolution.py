"""Convolutions over any number of axes, and ``im2col`` and ``col2im``.

``nn.convolution`` applies the primitives.

A convolution is one matrix product of the weight and the input's windows, copied to columns. It is trilinear,
Σ cotangent · weight · windows(x), and has three primitives: the output, the cotangent of the input, and the cotangent of
the weight. The derivatives of each are the other two, so all orders and both modes follow. Windows are views. Their columns
are copied for a few examples at a time, or for a few rows of a large example. Convolutions of single channels are computed
without columns (``table.depthwise``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Ints, NumpyDType, Params
from chainrule._src.rules.batching import broadcast_batch, reshape_any
from chainrule._src.rules.kinds import call, linear, opaque
from chainrule._src.rules.primitive import Primitive
from chainrule._src.rules.rules import conjugate
from chainrule._src.table.depthwise import depthwise, depthwise_input, depthwise_weight, is_depthwise
from chainrule._src.tape.foreign import Foreign, copy_in_library, in_row_order, zeros_on_device_of

ndarray = np.ndarray
_COLUMNS = 1 << 21  # largest number of column elements copied at a time


def windows_along(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Return how many windows fit along an axis."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _counts(spatial: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    return tuple(map(windows_along, spatial, kernel, stride, padding, dilation))


def _padded(x: AnyArray, padding: Ints) -> AnyArray:
    if not any(padding):
        return x
    spatial = x.shape[2:]
    out = zeros_on_device_of(x, (*x.shape[:2], *[n + 2 * p for n, p in zip(spatial, padding, strict=True)]), x.dtype)
    out[(slice(None), slice(None), *[slice(p, p + n) for n, p in zip(spatial, padding, strict=True)])] = x
    return out


def _windows(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Any:
    """Return a view (n, channels, *kernel, *counts) of the padded input."""
    counts = _counts(x.shape[2:], kernel, stride, padding, dilation)
    x = _padded(x, padding)
    inner = tuple(s * d for s, d in zip(x.strides[2:], dilation, strict=True))
    outer = tuple(s * d for s, d in zip(x.strides[2:], stride, strict=True))
    shape, strides = (*x.shape[:2], *kernel, *counts), (*x.strides[:2], *inner, *outer)
    return _view(x, shape, strides)


def _view(x: AnyArray, shape: Ints, strides: Ints) -> AnyArray:
    if type(x) is Foreign:
        return x.strided(shape, strides)
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)


def _columns(windows: AnyArray, groups: int, k: int) -> AnyArray:
    """Reshape windows over k axes to columns (n, groups, channels/groups·kernel, counts)."""
    n, channels = windows.shape[:2]
    rows = channels // groups * math.prod(windows.shape[2 : 2 + k])
    return windows.reshape(n, groups, rows, math.prod(windows.shape[2 + k :]))


def _channels_last(channels: int, groups: int, kernel: Ints, counts: Ints) -> bool:
    """Return whether a channels-last layout copies windows in longer contiguous runs."""
    return groups == 1 and channels * kernel[-1] > counts[-1]


def _rows_of_windows(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Any:
    """Copy windows to rows (n·counts, kernel·channels): one row per window, with its channels last."""
    n, channels, *spatial = x.shape
    counts = _counts(tuple(spatial), kernel, stride, padding, dilation)
    padded = zeros_on_device_of(x, (n, *[m + 2 * p for m, p in zip(spatial, padding, strict=True)], channels), x.dtype)
    padded[(slice(None), *[slice(p, p + m) for p, m in zip(padding, spatial, strict=True)])] = np.moveaxis(x, 1, -1)
    first, *steps, last = padded.strides
    inner = tuple(s * d for s, d in zip(steps, dilation, strict=True))
    outer = tuple(s * d for s, d in zip(steps, stride, strict=True))
    shape, strides = (n, *counts, *kernel, channels), (first, *outer, *inner, last)
    windows = _view(padded, shape, strides)
    return windows.reshape(n * math.prod(counts), -1)


def _add_windows(padded: Any, columns: Any, first: int, stride: Ints, dilation: Ints) -> None:
    """Add windows (n, channels, *kernel, *counts) into a padded array, from window row ``first`` on."""
    k = len(stride)
    kernel, counts = columns.shape[2 : 2 + k], columns.shape[2 + k :]
    if 0 in counts:
        return
    begin = (first * stride[0], *(0,) * (k - 1))
    for at in np.ndindex(*kernel):
        start = [b + a * d for b, a, d in zip(begin, at, dilation, strict=True)]
        where = [slice(a, a + s * (c - 1) + 1, s) for a, s, c in zip(start, stride, counts, strict=True)]
        padded[(slice(None), slice(None), *where)] += columns[(slice(None), slice(None), *at)]


def _padded_zeros(x: AnyArray, lead: Ints, size: Ints, padding: Ints, dtype: NumpyDType) -> AnyArray:
    """Return zeros of a padded shape, into which windows are added."""
    return zeros_on_device_of(x, (*lead, *[n + 2 * p for n, p in zip(size, padding, strict=True)]), dtype)


def _without_padding(padded: AnyArray, size: Ints, padding: Ints) -> AnyArray:
    """Return the part inside the padding."""
    where = [slice(p, p + n) for n, p in zip(size, padding, strict=True)]
    return in_row_order(padded[(slice(None), slice(None), *where)])


def _pieces(n: int, each: int, counts: Ints) -> Iterator[tuple[slice, slice, slice]]:
    """Yield (examples, window rows, the same as one flat slice) such that the columns of each piece stay small.

    A piece is several examples, or some window rows of one example whose columns alone (``each`` elements) are too many.
    """
    step = max(1, _COLUMNS // max(each, 1))
    rows = max(1, min(counts[0], counts[0] * _COLUMNS // max(each, 1)))
    across = math.prod(counts[1:])
    for i in range(0, n, step):
        for a in range(0, counts[0], rows):
            yield slice(i, i + step), slice(a, a + rows), slice(a * across, (a + rows) * across)


def _as_convolution(
    weight: AnyArray, counts: Ints, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Params | None:
    """Express a transposed convolution of stride 1 as a convolution: return the flipped weight and the parameters, or None.

    Reading windows is faster than adding them, unless there are many more of them.
    """
    reach = tuple(d * (k - 1) for k, d in zip(weight.shape[2:], dilation, strict=True))
    outer_padding = tuple(r - p for r, p in zip(reach, padding, strict=True))
    fits = all(c + r - 2 * p == n for c, r, p, n in zip(counts, reach, padding, size, strict=True))
    out, channels = weight.shape[0] // groups, weight.shape[1]
    if any(s != 1 for s in stride) or min(outer_padding) < 0 or not fits or out > 4 * channels:
        return None
    flipped = weight[(slice(None), slice(None), *(slice(None, None, -1),) * len(reach))]
    flipped = flipped.reshape(groups, out, channels, *weight.shape[2:]).swapaxes(1, 2)
    flipped = flipped.reshape(groups * channels, out, *weight.shape[2:])
    return {"weight": flipped, "stride": stride, "padding": outer_padding, "dilation": dilation, "groups": groups}


def _product(x: AnyArray, y: AnyArray) -> AnyArray:
    """Return x @ y; outer products, as in a convolution of single channels, are computed by multiplication."""
    return x * y if x.shape[-1] == 1 else np.matmul(x, y)


# -- batching --------------------------------------------------------------------------------------------------------


def _as_examples(x: AnyArray) -> AnyArray:
    shape = shape_of(x)
    return reshape_any(x, (shape[0] * shape[1], *shape[2:]))


def _as_channels(x: Any, batched: bool, size: int) -> Any:
    """Reshape a stack (size, n, channels, …) to (n, size·channels, …): each stack item becomes groups of its own."""
    x = np.moveaxis(x if batched else broadcast_batch(x, size), 0, 1)
    shape = shape_of(x)
    return reshape_any(x, (shape[0], shape[1] * shape[2], *shape[3:]))


def _empty_result(prim: Primitive, payloads: AnyArray, batched: AnyArray, params: Params) -> Any:
    """Return an empty result of the right shape and dtype for a batch of size 0."""
    one = [np.zeros(shape_of(p)[b:], p.dtype) for p, b in zip(payloads, batched, strict=True)]
    out = prim.value(*one, **params)
    return np.zeros((0, *out.shape), out.dtype)


def _batched(prim: Primitive, payloads: list[AnyArray], batched: list[bool], size: int, params: Params) -> AnyArray:
    """Batch a convolution: with one weight, merge the batch axis into the examples; else into the groups."""
    if not size:
        return _empty_result(prim, payloads, batched, params)
    x, weight = payloads
    if not batched[1]:
        out = prim(_as_examples(x), weight, **params)
        return reshape_any(out, (size, shape_of(x)[1], *shape_of(out)[1:]))
    weight = _as_examples(weight)
    out = prim(_as_channels(x, batched[0], size), weight, **{**params, "groups": params["groups"] * size})
    n, channels, *rest = shape_of(out)
    return np.moveaxis(reshape_any(out, (n, size, channels // size, *rest)), 1, 0)


def _batched_weight(
    prim: Primitive, payloads: list[AnyArray], batched: list[bool], size: int, params: Params
) -> AnyArray:
    if not size:
        return _empty_result(prim, payloads, batched, params)
    x, y = (_as_channels(p, b, size) for p, b in zip(payloads, batched, strict=True))
    out = prim(x, y, **{**params, "groups": params["groups"] * size})
    shape = shape_of(out)
    return reshape_any(out, (size, shape[0] // size, *shape[1:]))


def cropped(x: AnyArray, shape: Ints) -> AnyArray:
    """Crop x to a shape: drop windows that fit only because ``output_padding`` is larger than the stride."""
    if shape_of(x) == shape:
        return x
    return x[(slice(None), slice(None), *[slice(n) for n in shape[2:]])]


def _axes(pattern: str, params: Mapping[str, Any]) -> str:
    """Fill in letters for the axes of the kernel (#) and of the window positions (@) in a structure."""
    k = len(params["stride"])
    return pattern.replace("#", "klmrst"[:k]).replace("@", "pquvwx"[:k])


# -- the three primitives --------------------------------------------------------------------------------------------

_ONE = {"stride": (1,), "padding": (0,), "dilation": (1,), "groups": 1}
_WIDE = {"stride": (2,), "padding": (1,), "dilation": (2,), "groups": 2}
_TWO = {"stride": (1, 2), "padding": (1, 0), "dilation": (1, 1), "groups": 1}


@opaque(
    vjp={
        "x": lambda g, weight, x_shape, **params: convolution_input(g, conjugate(weight), size=x_shape[2:], **params),
        "weight": lambda g, x, weight_shape, **params: convolution_weight(
            g, conjugate(x), kernel=weight_shape[2:], **params
        ),
    },
    multilinear=True,
    batch=_batched,
    samples=[
        call((2, 2, 4), (3, 2, 2), **_ONE),
        call((1, 4, 6), (2, 2, 3), **_WIDE),
        call((1, 1, 3, 4), (2, 1, 2, 2), **_TWO),
    ],
    promotion="none",
    structure={"x": "windows", "weight": lambda params: _axes("oc#:no@", params)},
)
def convolution(x: Any, weight: Any, *, stride: Any, padding: Any, dilation: Any, groups: Any) -> Any:
    """Return the products of every window of x (n, channels, …) with each weight (out, channels/groups, …)."""
    kernel = weight.shape[2:]
    n, out = x.shape[0], weight.shape[0]
    counts = _counts(x.shape[2:], kernel, stride, padding, dilation)
    if is_depthwise(x, weight, x.shape[1], groups, out):
        return depthwise(x, weight, stride, padding, dilation, counts)
    if _channels_last(x.shape[1], groups, kernel, counts):
        result = zeros_on_device_of(x, (n, out, *counts), np.result_type(x.dtype, weight.dtype))
        matrix = np.moveaxis(weight, 1, -1).reshape(out, -1)
        for part, _, _ in _pieces(n, math.prod(weight.shape[1:]) * math.prod(counts), (1,)):
            rows = _rows_of_windows(x[part], kernel, stride, padding, dilation)
            result[part] = np.moveaxis((rows @ matrix.T).reshape(-1, *counts, out), -1, 1)
        return result
    windows = _windows(x, kernel, stride, padding, dilation)
    matrix = weight.reshape(groups, out // groups, math.prod(weight.shape[1:]))
    result = zeros_on_device_of(x, (n, groups, out // groups, math.prod(counts)), np.result_type(x.dtype, weight.dtype))
    lead = (slice(None),) * (1 + len(kernel))
    for part, rows, line in _pieces(n, math.prod(windows.shape[1:]), counts):
        columns = _columns(windows[(part, *lead, rows)], groups, len(kernel))
        np.matmul(matrix, columns, out=result[part, :, :, line])
    return result.reshape(n, out, *counts)


@opaque(
    vjp={
        "x": lambda g, weight, x_shape, *, size, **params: cropped(
            convolution(g, conjugate(weight), **params), x_shape
        ),
        "weight": lambda g, x, weight_shape, *, size, **params: convolution_weight(
            conjugate(x), g, kernel=weight_shape[2:], **params
        ),
    },
    multilinear=True,
    batch=_batched,
    naming="ConvolutionBackward0",
    samples=[
        call((2, 3, 3), (3, 2, 2), size=(4,), **_ONE),
        call((1, 2, 2), (2, 2, 3), size=(6,), **_WIDE),
        call((1, 2, 1), (2, 2, 3), size=(6,), **_WIDE),
        call((1, 2, 4, 2), (2, 1, 2, 2), size=(3, 4), **_TWO),
    ],
    promotion="none",
    structure="windows",
)
def convolution_input(
    x: AnyArray,
    weight: AnyArray,
    *,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> AnyArray | None:
    """Apply the transpose of a convolution in its input: every element of x (n, out, …) adds a weight to a window."""
    kernel = weight.shape[2:]
    n, out, *counts = x.shape
    channels = weight.shape[1] * groups
    if is_depthwise(x, weight, channels, groups, out):
        return depthwise_input(x, weight, stride, padding, dilation, size, channels)
    as_convolution = _as_convolution(weight, tuple(counts), size, stride, padding, dilation, groups)
    if as_convolution is not None:
        return convolution.value(x, **as_convolution)
    matrix = weight.reshape(groups, out // groups, math.prod(weight.shape[1:])).mT
    x_matrix = x.reshape(n, groups, out // groups, math.prod(counts))
    padded = _padded_zeros(x, (n, channels), size, padding, np.result_type(x.dtype, weight.dtype))
    for part, rows, line in _pieces(n, channels * math.prod(kernel) * math.prod(counts), counts):
        columns = _product(matrix, x_matrix[part, :, :, line])
        columns = columns.reshape(columns.shape[0], channels, *kernel, -1, *counts[1:])
        _add_windows(padded[part], columns, rows.start, stride, dilation)
    return _without_padding(padded, size, padding)


@opaque(
    vjp={
        "x": lambda g, y, x_shape, *, kernel, **params: cropped(convolution(conjugate(y), g, **params), x_shape),
        "y": lambda g, x, y_shape, *, kernel, **params: convolution_input(conjugate(x), g, size=y_shape[2:], **params),
    },
    multilinear=True,
    batch=_batched_weight,
    naming="ConvolutionBackwardBackward0",
    samples=[
        call((2, 3, 3), (2, 2, 4), kernel=(2,), **_ONE),
        call((1, 2, 2), (1, 4, 6), kernel=(3,), **_WIDE),
        call((1, 2, 4, 2), (1, 1, 3, 4), kernel=(2, 2), **_TWO),
    ],
    promotion="none",
    structure={"x": lambda params: _axes("no@:oc#", params), "y": "windows"},
)
def convolution_weight(x: Any, y: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: Any) -> Any:
    """Apply the transpose of a convolution in its weight: sum products of x (n, out, …) with the windows of y."""
    n, out, *counts = x.shape
    rows = y.shape[1] // groups * math.prod(kernel)
    if is_depthwise(x, y, y.shape[1], groups, out):
        return depthwise_weight(x, y, stride, padding, dilation, kernel)
    fitting = _counts(y.shape[2:], kernel, stride, padding, dilation)
    if _channels_last(y.shape[1], groups, kernel, fitting) and fitting == tuple(counts):
        result = zeros_on_device_of(x, (out, rows), np.result_type(x.dtype, y.dtype))
        for part, _, _ in _pieces(n, rows * math.prod(counts), (1,)):
            values = np.moveaxis(x[part], 1, 0).reshape(out, -1)
            result += values @ _rows_of_windows(y[part], kernel, stride, padding, dilation)
        return in_row_order(np.moveaxis(result.reshape(out, *kernel, y.shape[1]), -1, 1))
    windows = _windows(y, kernel, stride, padding, dilation)
    lead = (slice(None),) * (1 + len(kernel))
    windows = windows[(slice(None), *lead, *[slice(c) for c in counts])]
    x_matrix = x.reshape(n, groups, out // groups, math.prod(counts))
    result = zeros_on_device_of(x, (groups, out // groups, rows), np.result_type(x.dtype, y.dtype))
    for part, at, line in _pieces(n, math.prod(windows.shape[1:]), tuple(counts)):
        columns = np.moveaxis(windows[(part, *lead, at)], 0, 1 + len(kernel))  # merge the examples: one product
        values = np.moveaxis(x_matrix[part, :, :, line], 0, 2).reshape(groups, out // groups, -1)
        result += np.matmul(values, columns.reshape(groups, rows, -1).mT)
    return result.reshape(out, y.shape[1] // groups, *kernel)


# -- blocks ----------------------------------------------------------------------------------------------------------


def _examples_first(
    prim: Primitive, payloads: list[AnyArray], batched: list[bool], size: int, params: Params
) -> AnyArray:
    (x,) = payloads
    out = prim(_as_examples(x), **params)
    return reshape_any(out, (size, shape_of(x)[1], *shape_of(out)[1:]))


_BLOCKS = {"kernel": (2, 2), "stride": (1, 2), "padding": (1, 0), "dilation": (1, 2)}


@linear(
    transpose=lambda g, x_shape, **params: col2im(g, size=x_shape[2:], **params),
    batch=_examples_first,
    naming="Im2ColBackward0",
    samples=[call((1, 2, 3, 4), **_BLOCKS)],
    structure="selection",
)
def im2col(
    x: AnyArray,
    *,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> AnyArray | None:
    """Return the windows of x (n, channels, …) as columns: (n, channels·kernel, windows)."""
    windows = _windows(x, kernel, stride, padding, dilation)
    out = _columns(windows, 1, len(kernel))[:, 0]
    return (
        copy_in_library(out) if type(x) is Foreign or np.may_share_memory(out, x) else out
    )  # windows of one element are views


@linear(
    transpose=lambda g, *, size, **params: im2col(g, **params),
    batch=_examples_first,
    naming="Col2ImBackward0",
    samples=[call((1, 8, 4), size=(3, 4), **_BLOCKS)],
    structure="scatter",
)
def col2im(
    x: AnyArray,
    *,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> AnyArray | None:
    """Apply the transpose of ``im2col``: add each column of x (n, channels·kernel, windows) at its window's position."""
    counts = _counts(size, kernel, stride, padding, dilation)
    channels = x.shape[1] // math.prod(kernel)
    padded = _padded_zeros(x, (x.shape[0], channels), size, padding, x.dtype)
    _add_windows(padded, x.reshape(x.shape[0], channels, *kernel, *counts), 0, stride, dilation)
    return _without_padding(padded, size, padding)
