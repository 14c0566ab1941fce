"""Finite differences, and how well they can agree with a derivative.

The central difference ``(8(f(h) − f(−h)) − (f(2h) − f(−2h))) / 12h`` is off by h⁴·|f⁽⁵⁾|/30 because it is cut off and
by about 1.5·ε·|f|/h because f is rounded. In float64 with h = 10⁻³ these are 3·10⁻¹⁴·|f⁽⁵⁾| and 3·10⁻¹³·|f|. The
domains of the table keep functions so far from their singularities that |f⁽⁵⁾| is below 10⁶ (and that of a rule as
well, whose differences give the second derivative), so 10⁻⁷, relative to the largest number compared, is what a
correct rule can be held to. A wrong factor, sign, axis or missing term is off by more than 10⁻³.

Two ways of computing the same thing exactly (batch and loop, J and Jᵀ, a formula and its rule) differ by rounding only:
a few hundred operations of ε = 2·10⁻¹⁶ each, so 10⁻¹¹.
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


def central(f: Callable[[Any], list[Any]], x: TensorLike, direction: TensorLike, step: float) -> list[TensorLike]:
    """The central differences ``(f(h) − f(−h)) / 2h`` of several numbers or arrays along a direction."""
    above = f(np.asarray(x + step * direction))
    below = f(np.asarray(x - step * direction))
    return [np.subtract(a, b) / (2 * step) for a, b in zip(above, below, strict=True)]


def along(f: Callable[[Any], Any], x: TensorLike, direction: TensorLike, step: float = STEP) -> Any:
    """The derivative of ``f`` (to a number or an array) at ``x`` along a direction."""
    return all_of(lambda moved: [f(moved)], x, direction, step)[0]


def all_of(f: Callable[[Any], list[Any]], x: TensorLike, direction: TensorLike, step: float = STEP) -> list[Any]:
    """The derivatives of several numbers or arrays at ``x`` along a direction."""
    one, two = (central(f, x, direction, h) for h in (step, 2 * step))
    return [(4 * a - b) / 3 for a, b in zip(one, two, strict=True)]


def all_along(f: Callable[[Any], Any], x: TensorLike, directions: Iterable[AnyArray]) -> AnyArray:
    """The derivatives along each of the directions, as a vector."""
    return np.array([along(f, x, d) for d in directions], np.float64)


def units_of(x: Tensor) -> tuple[complex, ...]:
    """The real, and for complex numbers the imaginary, unit."""
    return (1j, 1.0) if x.dtype.kind == "c" else (1.0,)


def unit_vectors(shape: tuple[int, ...], unit: complex, dtype: NumpyDType) -> Iterator[Any]:
    """Arrays of a shape that are ``unit`` in one element and 0 in the others."""
    for index in np.ndindex(tuple(shape)):
        vector = np.zeros(shape, dtype)
        vector[index] = unit
        yield vector


def normal(rng: np.random.Generator, shape: tuple[int, ...], complex_: bool) -> AnyArray:
    x = np.asarray(rng.normal(size=shape))
    return np.asarray(x + 1j * rng.normal(size=shape)) if complex_ else x


def normal_like(x: AnyArray, seed: int) -> AnyArray:
    """Random numbers of an array's shape and dtype."""
    return normal(np.random.default_rng((seed, x.size, 11)), x.shape, x.dtype.kind == "c").astype(x.dtype)


def inner(a: TensorLike, b: TensorLike) -> float:
    """The real inner product Re Σ conj(a)·b: what a gradient a means for a step b."""
    return float(np.real(np.sum(np.conj(a) * b)))


def worst(got: object, expected: TensorLike, tolerance: float) -> tuple[Any, Any, Any] | None:
    """Where two arrays differ most, relative to the larger of 1 and their largest element; None if nowhere by too much.

    nan agrees with nan, and an infinity with itself.
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
