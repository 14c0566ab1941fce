"""Resample images and signals: by nearest elements, or by a matrix product along each axis.

``chainrule.nn.functional`` exports these functions.

Linear, cubic and area interpolation are separable. Each axis has a small constant matrix (new, old): the weights of the
old elements in every new one. Gradients and tangents are products with the same matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.messages import errors
from chainrule._src.ops import joining, shaping
from chainrule._src.ops.arguments import constant_on_device_of, tensor_of
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.ties import tie_cotangents
from chainrule.nn.pooling import apply_along_axis, averaging_matrix

_AXES = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_MODES = ("nearest", "nearest-exact", "area", *_AXES)


# -- weights ---------------------------------------------------------------------------------------------------------


def _triangle(x: AnyArray) -> AnyArray:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(a: float) -> Callable[[AnyArray], AnyArray]:
    """Return the cubic convolution kernel of Keys (1981) with parameter a."""

    def kernel(x: AnyArray) -> AnyArray:
        x = np.abs(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = a * (((x - 5) * x + 8) * x - 4)
        return np.where(x <= 1, near, np.where(x < 2, far, 0))

    return kernel


def _step(old: int, new: int, align: bool, scale: float | None) -> float:
    """Return the distance between new elements, in units of old ones."""
    if align:
        return (old - 1) / (new - 1) if new > 1 else 0.0
    return 1 / scale if scale else old / new


def _interpolation(old: int, new: int, align: bool, scale: float | None, cubic: bool) -> NumpyArray:
    """Return the matrix (new, old) of linear or cubic interpolation; the elements at the ends are repeated."""
    step = _step(old, new, align, scale)
    at = np.arange(new) * step if align else (np.arange(new) + 0.5) * step - 0.5
    if not cubic:
        at = np.clip(at, 0, old - 1)
    first = np.floor(at).astype(int)
    kernel = _cubic(-0.75) if cubic else _triangle
    matrix = np.zeros((new, old))
    for tap in range(-1, 3) if cubic else range(2):
        np.add.at(matrix, (np.arange(new), np.clip(first + tap, 0, old - 1)), kernel(at - first - tap))
    return matrix


def _antialiased(old: int, new: int, align: bool, scale: float | None, cubic: bool) -> NumpyArray:
    """Compute :func:`_interpolation`, with a kernel as wide as the step, so that every old element contributes."""
    step = _step(old, new, align, scale)
    wide = max(step, 1.0)
    support = (2 if cubic else 1) * wide
    center = (step * (np.arange(new) + 0.5))[:, None]
    start = np.maximum((center - support + 0.5).astype(int), 0)
    end = np.minimum((center + support + 0.5).astype(int), old)
    at = np.arange(old)
    kernel = _cubic(-0.5) if cubic else _triangle
    weights = np.where((at >= start) & (at < end), kernel((at - center + 0.5) / wide), 0)
    return weights / weights.sum(1, keepdims=True)


def _nearest(old: int, new: int, scale: float | None, exact: bool) -> NumpyArray:
    """Return the index of the old element for each new one, in single precision as in PyTorch."""
    step = np.float32(1 / scale) if scale else np.float32(old) / np.float32(new)
    at = (np.arange(new, dtype=np.float32) + np.float32(0.5 if exact else 0)) * step
    return np.minimum(np.floor(at).astype(np.int64), old - 1)


# -- interpolation ---------------------------------------------------------------------------------------------------


def _sizes(x: AnyArray, size: Any, scale_factor: Any, recompute: bool) -> tuple[list[int], list[float | None]]:
    """Return the new sizes, and the given scale factors (None: use the ratio of the sizes)."""
    spatial = list(x.shape[2:])
    if (size is None) == (scale_factor is None):
        raise ValueError(
            "only one of size or scale_factor should be defined" if size is not None
            else "either size or scale_factor should be defined"
        )  # fmt: skip
    given = size if size is not None else scale_factor
    each = list(given) if isinstance(given, (tuple, list)) else [given] * len(spatial)
    if len(each) != len(spatial):
        raise ValueError(
            f"Input and {'output' if size is not None else 'scale_factor'} must have the same number of spatial "
            f"dimensions, but got input with spatial dimensions of {spatial} and {given}. The input is "
            "(n, channels, and the axes to resample)"
        )
    if size is None:
        new = [math.floor(n * float(s)) for n, s in zip(spatial, each, strict=True)]
        return _positive(x, new), [None if recompute else float(s) for s in each]
    if recompute:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if not all(hasattr(s, "__index__") for s in each):
        raise TypeError(
            f"expected size to be one of int or Tuple[int], but got size with types {[type(s) for s in each]}"
        )
    return _positive(x, [s.__index__() for s in each]), [None] * len(spatial)


def _positive(x: AnyArray, new: list[int]) -> list[int]:
    if min(new) <= 0 or min(x.shape[1:]) <= 0:
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(x.shape)} and output {new}"
        )
    return new


@op(sample="rand(1, 2, 4), 6, mode='linear'")
def interpolate(
    input: Tensor,
    size: object = None,
    scale_factor: object = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resample the input to another resolution.

    Args:
        input: (n, channels, and one, two or three axes to resample).
        size: the new sizes; or scale_factor: the factor for each axis.
        mode: "nearest", "nearest-exact", "area" (means), "linear" (one axis), "bilinear", "bicubic" (two),
            "trilinear" (three).
        align_corners: treat elements as points and keep the first and last; by default elements are areas.
        recompute_scale_factor: use the ratio of the sizes instead of the given factor.
        antialias: with "bilinear" and "bicubic", smooth when downsampling.

    Raises:
        ValueError: the sizes do not fit the input.
        NotImplementedError: the mode does not fit the number of axes.

    >>> import chainrule as cr
    >>> cr.nn.functional.interpolate(cr.tensor([[[0., 2.]]]), scale_factor=2, mode="linear")
    tensor([[[0.0000, 0.5000, 1.5000, 2.0000]]])
    """
    x = tensor_of("interpolate", input, "iuf")
    axes = x.ndim - 2
    if mode in ("nearest", "nearest-exact", "area") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if axes not in (1, 2, 3) or mode not in _MODES or _AXES.get(mode, axes) != axes:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{x.ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got "
            f"{mode}): linear takes one axis after (n, channels), bilinear and bicubic two, trilinear three"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    new, scales = _sizes(x, size, scale_factor, bool(recompute_scale_factor))
    for i, (count, scale) in enumerate(zip(new, scales, strict=True)):
        x = _resample_axis(x, i - axes, count, scale, mode, bool(align_corners), antialias)
    return x if x is not input else shaping.clone(x)


def _resample_axis(
    x: Tensor, axis: int, new: int, scale: float | None, mode: str, align: bool, antialias: bool
) -> Tensor:
    old = x.shape[axis]
    if mode.startswith("nearest"):
        return joining.index_select(
            x, axis, constant_on_device_of(x, _nearest(old, new, scale, mode == "nearest-exact"))
        )
    tensor_of(f"interpolate(mode={mode!r})", x, "f")
    if mode == "area":
        return x if new == old else tie_cotangents(apply_along_axis(x, axis, averaging_matrix(old, new)))
    if new == old and scale in (None, 1.0):
        return x
    weights = _antialiased if antialias else _interpolation
    return apply_along_axis(x, axis, weights(old, new, align, scale, mode == "bicubic"))


def _deprecated(name: str) -> None:
    errors.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


@op(sample="rand(1, 2, 4), 6")
def upsample(
    input: Tensor,
    size: object = None,
    scale_factor: object = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Deprecated: use :func:`interpolate`."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@op(sample="rand(1, 2, 4), 6")
def upsample_nearest(input: Tensor, size: object = None, scale_factor: object = None) -> Tensor:
    """Deprecated: use :func:`interpolate` with the mode "nearest"."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


@op(sample="rand(1, 2, 3, 4), (4, 6)")
def upsample_bilinear(input: Tensor, size: object = None, scale_factor: object = None) -> Tensor:
    """Deprecated: use :func:`interpolate` with the mode "bilinear" and ``align_corners=True``."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)
