"""``np.fft`` for tensors and other array-likes, with NumPy's signatures, and the transforms that ``chainrule.fft`` shares.

The six shared transforms take checked arguments: axes counted from the end, the number of points along each of them (of the
result; for transforms of real numbers, of the operand), and a ``norm``. All other transforms call these.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import from_end, shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, Dims, Ints
from chainrule._src.messages import errors
from chainrule._src.table import fft as primitives
from chainrule._src.table import shape
from chainrule._src.tape.protocol import implements

raw = np.fft


# -- shared with chainrule.fft ---------------------------------------------------------------------------------------


def resized(x: AnyArray, sizes: Ints, axes: Ints) -> AnyArray:
    """Truncate the operand at the end of axes, or pad it with zeros, to the sizes."""
    have = shape_of(x)
    cut: list[Any] = [slice(None)] * -min(axes)
    add = [(0, 0)] * len(cut)
    for n, axis in zip(sizes, axes, strict=True):
        if n < have[axis]:
            cut[axis] = slice(0, n)
        elif n > have[axis]:
            add[axis] = (0, n - have[axis])
    if any(c != slice(None) for c in cut):
        x = x[(..., *cut)]
    if any(after for _, after in add):
        x = shape.pad(x, widths=tuple(add), value=0.0)
    return x


def fft(x: AnyArray, sizes: Ints, axes: Ints, norm: str) -> AnyArray:
    return primitives.fft_c2c(resized(x, sizes, axes), axes=axes, norm=norm, inverse=False)


def ifft(x: AnyArray, sizes: Ints, axes: Ints, norm: str) -> AnyArray:
    return primitives.fft_c2c(resized(x, sizes, axes), axes=axes, norm=norm, inverse=True)


def rfft(x: AnyArray, sizes: Ints, axes: Ints, norm: str) -> AnyArray:
    return primitives.fft_r2c(resized(x, sizes, axes), axes=axes, norm=norm)


def irfft(x: AnyArray, sizes: Ints, axes: Ints, norm: str) -> AnyArray:
    half = (*sizes[:-1], sizes[-1] // 2 + 1)
    return primitives.fft_c2r(resized(x, half, axes), axes=axes, norm=norm, n=sizes[-1])


def hfft(x: AnyArray, sizes: Ints, axes: Ints, norm: str) -> AnyArray:
    return irfft(_conj(x), sizes, axes, primitives.OTHER[norm])


def ihfft(x: AnyArray, sizes: Ints, axes: Ints, norm: str) -> AnyArray:
    return _conj(rfft(x, sizes, axes, primitives.OTHER[norm]))


def _conj(x: AnyArray) -> AnyArray:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def default_points(transform: AnyFunction, x: AnyArray, axes: Ints) -> list[int]:
    """Return the default number of points of a transform along axes."""
    sizes = [shape_of(x)[axis] for axis in axes]
    if transform in (irfft, hfft):
        sizes[-1] = 2 * (sizes[-1] - 1)
    return sizes


def shifts(x: AnyArray, axes: Ints, back: bool) -> Ints:
    """Return the shifts that roll frequency 0 from the front of the axes to the middle, or back."""
    return tuple(-(shape_of(x)[a] // 2) if back else shape_of(x)[a] // 2 for a in axes)


# -- NumPy's functions -----------------------------------------------------------------------------------------------


def _axes(axis_list: Sequence[int], ndim: int) -> Ints:
    axes = tuple(int(axis) for axis in axis_list)
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise np.exceptions.AxisError(axis, ndim)
    return from_end(axes, ndim)


def _apply(
    transform: AnyFunction, a: AnyArray, requested_sizes: Sequence[int | None], axes: Ints, norm: Any
) -> AnyArray:
    norm = "backward" if norm is None else norm
    if norm not in primitives.OTHER:
        raise errors.fft_norm(norm, ValueError)
    if transform in (rfft, ihfft) and a.dtype.kind == "c":
        raise errors.fft_needs_real(f"np.fft.{transform.__name__}", a, TypeError)
    if a.dtype.kind in "iub":  # cast as NumPy does
        a = np.astype(a, np.dtype(np.float64))
    if len(set(axes)) < len(axes):
        return _one_by_one(transform, a, requested_sizes, axes, norm)
    usual = default_points(transform, a, axes)
    sizes = tuple(m if n is None else operator.index(n) for n, m in zip(requested_sizes, usual, strict=True))
    for n in sizes:
        if n < 1:
            raise errors.fft_points(transform.__name__, n, ValueError)
    return transform(a, sizes, axes, norm)


def _one_by_one(transform: AnyFunction, a: Any, sizes: Sequence[Any], axes: Ints, norm: str) -> Any:
    """Apply a transform in which an axis occurs twice: along one axis after another, in NumPy's order."""
    *first, last = zip(sizes, axes, strict=True)
    if transform is irfft:
        order = [*[(ifft, *each) for each in first], (irfft, *last)]
    else:
        order = [(transform, *last), *[(fft if transform is rfft else transform, *each) for each in reversed(first)]]
    for step, n, axis in order:
        a = _apply(step, a, (n,), (axis,), norm)
    return a


def _along(transform: AnyFunction) -> AnyFunction:
    def call(a: AnyArray, n: int | None = None, axis: int = -1, norm: object = None) -> AnyArray:
        return _apply(transform, a, (n,), _axes((axis,), len(shape_of(a))), norm)

    return call


def _over(transform: AnyFunction, default: tuple[int, ...] | None) -> AnyFunction:
    def call(a: Any, s: Any = None, axes: Any = default, norm: Any = None) -> Any:
        have = shape_of(a)
        if axes is None:
            axes = range(-len(have if s is None else s), 0)
        axes = _axes(axes, len(have))
        if s is not None and len(s) != len(axes):
            raise ValueError("Shape and axes have different lengths.")
        if not axes:
            if transform in (rfft, irfft):
                raise IndexError(f"np.fft.{transform.__name__}n: at least 1 axis must be transformed")
            return a
        if s is None:
            sizes = [*[have[axis] for axis in axes[:-1]], None if transform is irfft else have[axes[-1]]]
        else:
            sizes = [have[axis] if n == -1 else n for n, axis in zip(s, axes, strict=True)]
        return _apply(transform, a, sizes, axes, norm)

    return call


for _transform in (fft, ifft, rfft, irfft, hfft, ihfft):
    implements(getattr(raw, _transform.__name__))(_along(_transform))
for _transform in (fft, ifft, rfft, irfft):
    implements(getattr(raw, _transform.__name__ + "n"))(_over(_transform, None))
    implements(getattr(raw, _transform.__name__ + "2"))(_over(_transform, (-2, -1)))


def _shifted(x: AnyArray, axes: Dims, back: bool) -> AnyArray:
    ndim = len(shape_of(x))
    where: Any = range(-ndim, 0) if axes is None else (axes,) if isinstance(axes, (int, np.integer)) else axes
    over = _axes(where, ndim)
    return shape.roll(x, shift=shifts(x, over, back), axis=over) if over else x


@implements(raw.fftshift)
def _fftshift(x: AnyArray, axes: Any = None) -> Any:
    return _shifted(x, axes, False)


@implements(raw.ifftshift)
def _ifftshift(x: AnyArray, axes: Any = None) -> Any:
    return _shifted(x, axes, True)
