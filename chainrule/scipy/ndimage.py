"""Image filters with the names of ``scipy.ndimage``, differentiable with respect to the image.

The filters are linear and are applied axis by axis.

>>> import numpy as np
>>> import chainrule as cr
>>> image = np.eye(3)
>>> blurred = lambda image: np.sum(cr.scipy.ndimage.gaussian_filter(image, 1.0)[1] ** 2)
>>> cr.grad(blurred)(image).shape
(3, 3)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, AnyFunction, Dims, TensorLike
from chainrule.scipy.along import linear_along_axis
from chainrule.scipy.interpolate import multilinear

__all__ = [
    "convolve1d",
    "correlate1d",
    "gaussian_filter",
    "gaussian_filter1d",
    "laplace",
    "map_coordinates",
    "prewitt",
    "sobel",
    "uniform_filter",
    "uniform_filter1d",
]


def _one_axis(name: str) -> AnyFunction:
    def filtered(input: object, *args: Any, axis: int = -1, **options: Any) -> AnyArray:
        if options.get("cval"):
            raise NotImplementedError(f"{name}(cval=...): only cval=0 is differentiable")
        return linear_along_axis("ndimage", name, input, axis, *args, **options)

    filtered.__name__ = filtered.__qualname__ = name
    filtered.__doc__ = f"""Compute ``scipy.ndimage.{name}``, differentiable with respect to the input; ``axis`` is a keyword argument."""
    return filtered


convolve1d, correlate1d = _one_axis("convolve1d"), _one_axis("correlate1d")
gaussian_filter1d, uniform_filter1d = _one_axis("gaussian_filter1d"), _one_axis("uniform_filter1d")


def gaussian_filter(
    input: TensorLike, sigma: object, order: object = 0, mode: str = "reflect", truncate: float = 4.0, axes: Dims = None
) -> Any:
    """Compute ``scipy.ndimage.gaussian_filter``, differentiable with respect to the input.

    ``sigma`` and ``order`` are numbers, or have one for each axis.
    """
    axes = _axes(input, axes)
    for axis, s, k in zip(axes, _each(sigma, axes), _each(order, axes), strict=True):
        input = gaussian_filter1d(input, s, axis=axis, order=k, mode=mode, truncate=truncate) if s > 0 else input
    return input


def uniform_filter(input: TensorLike, size: object = 3, mode: str = "reflect", axes: Dims = None) -> Any:
    """Compute ``scipy.ndimage.uniform_filter``, differentiable with respect to the input; size may differ between axes."""
    axes = _axes(input, axes)
    for axis, n in zip(axes, _each(size, axes), strict=True):
        input = uniform_filter1d(input, n, axis=axis, mode=mode) if n > 1 else input
    return input


def sobel(input: TensorLike, axis: int = -1, mode: str = "reflect") -> AnyArray:
    """Compute ``scipy.ndimage.sobel``: differences along an axis, smoothed along the others; differentiable in the input."""
    return _smoothed_derivative(input, axis, mode, [1, 2, 1])


def prewitt(input: TensorLike, axis: int = -1, mode: str = "reflect") -> AnyArray:
    """Compute ``scipy.ndimage.prewitt``, differentiable with respect to the input."""
    return _smoothed_derivative(input, axis, mode, [1, 1, 1])


def _smoothed_derivative(input: TensorLike, axis: int, mode: str, weights: Sequence[float]) -> AnyArray:
    ndim = np.ndim(input)
    found = correlate1d(input, [-1, 0, 1], axis=axis, mode=mode)
    for other in range(ndim):
        if other != axis % ndim:
            found = correlate1d(found, weights, axis=other, mode=mode)
    return found


def laplace(input: TensorLike, mode: str = "reflect") -> AnyArray:
    """Compute ``scipy.ndimage.laplace``: the sum of second differences along all axes; differentiable in the input."""
    return sum(correlate1d(input, [1, -2, 1], axis=axis, mode=mode) for axis in range(np.ndim(input)))


def map_coordinates(
    input: TensorLike, coordinates: AnyArray, order: int = 1, mode: str = "constant", cval: float = 0.0
) -> AnyArray:
    """Compute ``scipy.ndimage.map_coordinates`` of order 1, differentiable with respect to the input and the coordinates.

    Args:
        input: the values at integer coordinates.
        coordinates: the evaluation points, (input.ndim, ...).
        order: 1. (SciPy's default is 3.)
        mode: "constant" (``cval`` outside) or "nearest".

    Raises:
        NotImplementedError: another order or mode.
    """
    if order != 1 or mode not in ("constant", "nearest"):
        raise NotImplementedError("map_coordinates() is differentiable for order=1 with mode 'constant' or 'nearest'")
    last = [n - 1 for n in np.shape(input)]
    points = [coordinates[k] for k in range(len(last))]
    inside = [np.clip(x, 0, high) for x, high in zip(points, last, strict=True)]
    found = multilinear([np.arange(high + 1.0) for high in last], input, inside)
    if mode == "nearest":
        return found
    for x, high in zip(points, last, strict=True):
        found = np.where((x < 0) | (x > high), cval, found)
    return found


def _axes(input: TensorLike, axes: Any) -> list[int]:
    ndim = np.ndim(input)
    return list(range(ndim)) if axes is None else [axis % ndim for axis in np.atleast_1d(axes)]


def _each(value: Any, axes: list[int]) -> list[Any]:
    """Return a list with one number for each axis."""
    return [value] * len(axes) if np.ndim(value) == 0 else list(value)


show(globals())
