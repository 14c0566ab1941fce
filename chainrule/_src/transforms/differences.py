"""Finite differences, and the tolerances for comparing them with derivatives.

``gradcheck`` and ``chainrule.testing`` call these functions.

The central difference ``(8(f(h) − f(−h)) − (f(2h) − f(−2h))) / 12h`` has a truncation error of h⁴·|f⁽⁵⁾|/30 and a rounding error
of about 1.5·ε·|f|/h. In float64 with h = 10⁻³ these are 3·10⁻¹⁴·|f⁽⁵⁾| and 3·10⁻¹³·|f|. The sample domains of the op table are
so far from singularities that |f⁽⁵⁾| is below 10⁶, also for rules, whose differences give second derivatives. So a correct rule
agrees to 10⁻⁷, relative to the largest number compared. A wrong factor, sign, axis or missing term differs by more than 10⁻³.

Two exact computations of the same value (batch and loop, J and Jᵀ, a formula and its rule) differ only by rounding: a few hundred
operations of ε = 2·10⁻¹⁶ each, so 10⁻¹¹.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, NumpyDType, TensorLike
from chainrule._src.tape.tensor import Tensor

STEP = 1e-3
DIFFERENCE_TOLERANCE = 1e-7
ROUNDING_TOLERANCE = 1e-11


def central_differences(
    f: Callable[[Any], list[Any]], x: TensorLike, direction: TensorLike, step: float
) -> list[TensorLike]:
    """Return the central differences ``(f(h) − f(−h)) / 2h`` of several numbers or arrays along a direction."""
    above = f(np.asarray(x + step * direction))
    below = f(np.asarray(x - step * direction))
    return [np.subtract(a, b) / (2 * step) for a, b in zip(above, below, strict=True)]


def directional_derivative(f: Callable[[Any], Any], x: TensorLike, direction: TensorLike, step: float = STEP) -> Any:
    """Return the derivative of ``f`` (a function to a number or an array) at ``x`` along a direction."""
    return all_of(lambda moved: [f(moved)], x, direction, step)[0]


def all_of(f: Callable[[Any], list[Any]], x: TensorLike, direction: TensorLike, step: float = STEP) -> list[Any]:
    """Return the derivatives of several numbers or arrays at ``x`` along a direction."""
    one, two = (central_differences(f, x, direction, h) for h in (step, 2 * step))
    return [(4 * a - b) / 3 for a, b in zip(one, two, strict=True)]


def all_along(f: Callable[[Any], Any], x: TensorLike, directions: Iterable[AnyArray]) -> AnyArray:
    """Return the derivatives along each direction, as a vector."""
    return np.array([directional_derivative(f, x, d) for d in directions], np.float64)


def units_of(x: Tensor) -> tuple[complex, ...]:
    """Return the real unit and, for a complex x, the imaginary unit."""
    return (1j, 1.0) if x.dtype.kind == "c" else (1.0,)


def unit_vectors(shape: tuple[int, ...], unit: complex, dtype: NumpyDType) -> Iterator[Any]:
    """Yield the arrays of a shape that are ``unit`` in one element and 0 in the others."""
    for index in np.ndindex(tuple(shape)):
        vector = np.zeros(shape, dtype)
        vector[index] = unit
        yield vector


def normal_sample(rng: np.random.Generator, shape: tuple[int, ...], complex_: bool) -> AnyArray:
    x = np.asarray(rng.normal(size=shape))
    return np.asarray(x + 1j * rng.normal(size=shape)) if complex_ else x


def normal_like(x: AnyArray, seed: int) -> AnyArray:
    """Return normal random numbers of an array's shape and dtype."""
    return normal_sample(np.random.default_rng((seed, x.size, 11)), x.shape, x.dtype.kind == "c").astype(x.dtype)


def real_inner_product(a: TensorLike, b: TensorLike) -> float:
    """Return the real inner product Re Σ conj(a)·b: the change along a step b, for a gradient a."""
    return float(np.real(np.sum(np.conj(a) * b)))


def largest_difference(got: object, expected: TensorLike, tolerance: float) -> tuple[Any, Any, Any] | None:
    """Return index and values of the largest difference of two arrays, relative to max(1, largest element).

    Return None if it is within the tolerance. nan equals nan, and an infinity equals itself.
    """
    got, expected = (a.astype(np.float64) if a.dtype.kind in "biu" else a for a in map(np.asarray, (got, expected)))
    if got.shape != expected.shape:
        return ("shape", got.shape, expected.shape)
    with np.errstate(invalid="ignore"):
        error = np.where((got == expected) | (np.isnan(got) & np.isnan(expected)), 0, np.abs(got - expected))
    error = np.where(np.isnan(error), np.inf, error)
    finite = np.abs(expected)[np.isfinite(expected)]
    if not error.size or error.max() <= tolerance * max(1.0, finite.max(initial=0)):
        return None
    index = tuple(int(i) for i in np.unravel_index(int(error.argmax()), error.shape))
    return (index, got[index], expected[index])
