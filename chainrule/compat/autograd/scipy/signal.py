"""``autograd.scipy.signal``: convolution along some axes, with contraction of others."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_letters
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray

__all__ = [
    "convolve",
]

#: mode -> the numbers of zeros before and after an array, for a window of size n
_PADS: dict[str, Callable[[int], tuple[int, int]]] = {
    "full": lambda n: (n - 1, n - 1),
    "same": lambda n: (n // 2, (n - 1) // 2),
    "valid": lambda n: (0, 0),
}


def convolve(A: Any, B: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full") -> AnyArray:
    """Convolve two arrays along pairs of axes, and contract other pairs.

    Args:
        axes: the axes of A and those of B to convolve, in pairs; by default all.
        dot_axes: the axes of A and those of B to sum over.
        mode: ``"full"``, ``"valid"`` or ``"same"``, as in ``scipy.signal.convolve``.

    Returns:
        An array of A's other axes, B's other axes, and the convolved ones.
    """
    if mode not in _PADS:
        raise AssertionError(f"Mode {mode} undefined, it can be one of 'valid', 'full', and 'same'")
    axes = [range(A.ndim), range(A.ndim)] if axes is None else axes
    dot_axes = ((), ()) if dot_axes is None else dot_axes
    sizes = [(A.shape[i], B.shape[j]) for i, j in zip(*axes, strict=True)]
    if mode == "valid" and not all(m >= n for m, n in sizes):
        if any(m > n for m, n in sizes):
            raise ValueError("One array must be larger than the other along all convolved dimensions")
        return _slide(B, A, axes[::-1], dot_axes[::-1], [(0, 0)] * len(sizes), swapped=True)
    return _slide(A, B, axes, dot_axes, [_PADS[mode](n) for _, n in sizes])


def _slide(long: Any, short: Any, axes: Any, dot_axes: Any, pads: Any, swapped: bool = False) -> AnyArray:
    """Convolve by one ``einsum`` of the windows of a padded array with the reversed other array."""
    widths = [(0, 0)] * long.ndim
    flip = [slice(None)] * short.ndim
    for i, j, pad in zip(*axes, pads):
        widths[i], flip[j] = pad, slice(None, None, -1)
    shape = tuple(short.shape[j] for j in axes[1])
    windows = sliding_window_view(np.pad(long, widths), shape, axis=tuple(axes[0]))

    letters = iter(ascii_letters)
    of_long, of_short = [[next(letters) for _ in range(x.ndim)] for x in (long, short)]
    for i, j in zip(*dot_axes, strict=True):
        of_short[j] = of_long[i]
    alone_long, alone_short = (
        [letter for i, letter in enumerate(of) if i not in (*axes[k], *dot_axes[k])]
        for k, of in enumerate((of_long, of_short))
    )
    result = alone_short + alone_long if swapped else alone_long + alone_short
    result += [of_long[i] for i in axes[0]]
    moved = [of_short[j] for j in axes[1]]  # a window's axes are at the end
    return np.einsum(f"{''.join(of_long + moved)},{''.join(of_short)}->{''.join(result)}", windows, short[tuple(flip)])


show(globals())
