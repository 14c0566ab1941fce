"""Discrete Fourier transforms over any axes: three linear maps, whose transposes are transforms again.

``ops.fft.numpy_functions`` applies the primitives.

The unscaled transform over n points is a symmetric matrix F with FᴴF = n·I, and the inverse is Fᴴ/n. The transpose is the
transform in the other direction with the same scale. ``norm`` assigns the scale to a direction, so the transpose needs the
opposite ``norm``.

The spectrum of real numbers is Hermitian, so half of its last axis is enough. The transforms to and from this half are
transposes of each other up to multiplicities: frequency 0, and n/2 for even n, occur once in the whole spectrum. Every other
frequency also stands for its conjugate, and occurs twice.
"""

from __future__ import annotations

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, NumpyDType, Params
from chainrule._src.rules.kinds import call, linear
from chainrule._src.tape.node import Node

raw = np.fft

#: The ``norm`` that gives the other direction the same scale.
OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
_OTHER = "'forward' if norm == 'backward' else 'backward' if norm == 'forward' else 'ortho'"


def multiplicity(n: int, axis: int) -> AnyArray:
    """Return how often each frequency of the half spectrum occurs in the spectrum of n points, along ``axis``."""
    times = np.full((n // 2 + 1, *(1,) * (-axis - 1)), 2.0, np.float32)  # exact, and float32 does not widen a dtype
    times[0] = 1.0
    if n % 2 == 0:
        times[-1] = 1.0
    return times


def _name(params: Params, node: Node) -> str:
    real = node is not None and node.in_avals is not None and node.in_avals[0][1].kind == "f"
    return "FftR2CBackward0" if real else "FftC2CBackward0"


@linear(
    transpose=lambda g, *, axes, norm, inverse: fft_c2c(g, axes=axes, norm=OTHER[norm], inverse=not inverse),
    formula=f"np.fft.fftn(g, axes=axes, norm={_OTHER}) if inverse else np.fft.ifftn(g, axes=axes, norm={_OTHER})",
    naming=_name,
    samples=[
        call((4,), axes=(-1,), norm="backward", inverse=False),
        call((2, 3), axes=(-1,), norm="ortho", inverse=True),
        call((3, 2), axes=(-2,), norm="forward", inverse=False),
        call((2, 3), axes=(-2, -1), norm="backward", inverse=True),
        call((2, 1, 3), axes=(-1, -3), norm="forward", inverse=True),
        call((0, 3), axes=(-1,), norm="backward", inverse=False),
        call((1,), axes=(-1,), norm="ortho", inverse=False),
    ],
    structure="axis",
)
def fft_c2c(x: AnyArray, *, axes: tuple[int, ...], norm: str, inverse: bool) -> AnyArray:
    """Return the Fourier transform over axes, or its inverse."""
    if len(axes) == 1:
        return (raw.ifft if inverse else raw.fft)(x, None, axes[0], norm)
    return (raw.ifftn if inverse else raw.fftn)(x, None, axes, norm)


@linear(
    transpose=lambda g, x_shape, *, axes, norm: fft_c2r(
        g / multiplicity(x_shape[axes[-1]], axes[-1]), axes=axes, norm=OTHER[norm], n=x_shape[axes[-1]]
    ),
    formula=f"np.fft.ifftn(g, s=tuple(x_shape[a] for a in axes), axes=axes, norm={_OTHER})",
    naming="FftR2CBackward0",
    samples=[
        call((4,), axes=(-1,), norm="backward"),
        call((2, 3), axes=(-1,), norm="ortho"),
        call((4, 2), axes=(-2,), norm="forward"),
        call((2, 4), axes=(-2, -1), norm="forward"),
        call((3, 1, 2), axes=(-1, -3), norm="backward"),
        call((0, 3), axes=(-1,), norm="backward"),
        call((1,), axes=(-1,), norm="backward"),
        call((2,), axes=(-1,), norm="ortho"),
    ],
    accepts="f",
    structure="axis",
)
def fft_r2c(x: AnyArray, *, axes: tuple[int, ...], norm: str) -> AnyArray:
    """Return half of the Fourier transform of real numbers over axes, up to frequency n/2 of the last axis."""
    if len(axes) == 1:
        return raw.rfft(x, None, axes[0], norm)
    return raw.rfftn(x, None, axes, norm)


def _c2r_transpose(g: AnyArray, x_dtype: NumpyDType, *, axes: tuple[int, ...], norm: str, n: int) -> AnyArray:
    spectrum = fft_r2c(g, axes=axes, norm=OTHER[norm]) * multiplicity(n, axes[-1])
    return spectrum if x_dtype.kind == "c" else np.real(spectrum)


@linear(
    transpose=_c2r_transpose,
    formula=f"np.fft.rfftn(g, axes=axes, norm={_OTHER}) * multiplicity(n, axes[-1])",
    naming="FftC2RBackward0",
    samples=[
        call((3,), axes=(-1,), norm="backward", n=4),
        call((2, 3), axes=(-1,), norm="ortho", n=5),
        call((3, 2), axes=(-2,), norm="forward", n=4),
        call((2, 3), axes=(-2, -1), norm="forward", n=4),
        call((2, 1, 3), axes=(-1, -3), norm="backward", n=3),
        call((0, 3), axes=(-1,), norm="backward", n=4),
        call((1,), axes=(-1,), norm="backward", n=1),
        call((2,), axes=(-1,), norm="ortho", n=2),
    ],
    structure="axis",
)
def fft_c2r(x: AnyArray, *, axes: tuple[int, ...], norm: str, n: int) -> AnyArray:
    """Return the inverse transform of half a spectrum over axes, to n real points along the last axis.

    The imaginary parts at frequencies 0 and n/2 of that axis are ignored; their gradient is 0.
    """
    if len(axes) == 1:
        return raw.irfft(x, n, axes[0], norm)
    shape = shape_of(x)
    return raw.irfftn(x, (*[shape[a] for a in axes[:-1]], n), axes, norm)
