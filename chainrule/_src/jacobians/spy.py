"""Draw the positions of a matrix's entries: as text for a terminal, and as SVG.

``Jacobian.spy_text`` and ``explaining`` call ``matrix_text`` and ``matrix_svg``.

A large matrix is divided into cells, which are shaded by the fraction of elements that are entries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

ndarray = np.ndarray

#: most rows and columns of a matrix that is written with one character for each element
_SMALL = (24, 32)
#: most dots in a text picture, and most cells in an SVG picture, in each direction
_DOTS, _CELLS = 64, 128
#: fewest cells in a direction (if the matrix has as many elements), even if this distorts the proportions
_LEAST = 12
_LEVELS = 4
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#: the bits of the dots in a braille character, by row and column
_BRAILLE = np.array([[1, 8], [2, 16], [4, 32], [64, 128]])


def cell_densities(rows: object, cols: object, shape: tuple[int, int], most: int) -> Any:
    """Return the density of each cell of a matrix, from 0 to 1, with at most ``most`` cells in each direction.

    Args:
        rows, cols: the positions of the entries, ``(nnz,)`` each; duplicates count once.
        shape: of the matrix.

    >>> cell_densities([0, 1, 1], [0, 0, 1], (2, 2), 8)
    array([[1., 0.],
           [1., 1.]])
    """
    m, n = shape
    scale = max(m, n, most) / most
    height, width = (min(k, max(math.ceil(k / scale), min(k, _LEAST))) for k in (m, n))
    if not m or not n:
        return np.zeros((height, width))
    positions = np.asarray(rows, np.int64) * n + np.asarray(cols, np.int64)
    if not (positions[1:] > positions[:-1]).all():
        positions = np.unique(positions)
    above, left = (positions // n) * height // m, (positions % n) * width // n
    counts = np.bincount(above * width + left, minlength=height * width).reshape(height, width)
    return counts / np.outer(_lengths(m, height), _lengths(n, width))


def _lengths(count: int, parts: int) -> Any:
    """Return the number of elements in each of ``parts`` ranges of ``count`` elements."""
    return np.bincount(np.arange(count) * parts // count, minlength=parts)


def part_letter(k: int) -> str:
    """Return the letter of the k-th part of a matrix."""
    return _LETTERS[k] if k < len(_LETTERS) else f"{_LETTERS[k % len(_LETTERS)]}{k // len(_LETTERS)}"


def matrix_text(rows: Any, cols: Any, shape: tuple[int, int], part: Any = None) -> str:
    """Return the picture as text: a square for each entry of a small matrix, a dot for each nonempty cell of a large one.

    Args:
        rows, cols: the positions of the entries, ``(nnz,)`` each.
        shape: of the matrix.
        part: for each entry the number of its part, or -1; the part's letter replaces the square.

    >>> print(matrix_text([0, 1, 1, 2, 2], [0, 0, 1, 1, 2], (3, 3)))
    ┌───────┐
    │ ■ · · │
    │ ■ ■ · │
    │ · ■ ■ │
    └───────┘
    """
    m, n = shape
    if m <= _SMALL[0] and n <= _SMALL[1]:
        marks = np.full(shape, "·")
        marks[rows, cols] = "■"
        if part is not None:
            own = part >= 0
            marks[rows[own], cols[own]] = np.array(list(_LETTERS))[part[own] % len(_LETTERS)]
        return _framed([" " + "".join(f"{mark} " for mark in row) for row in marks], 2 * n + 1)
    filled = cell_densities(rows, cols, shape, _DOTS) > 0
    height, width = filled.shape
    padded = np.zeros((-(-height // 4) * 4, -(-width // 2) * 2), bool)
    padded[:height, :width] = filled
    letters = padded.reshape(padded.shape[0] // 4, 4, padded.shape[1] // 2, 2)
    codes = np.einsum("hawb,ab->hw", letters.astype(int), _BRAILLE)
    return _framed(["".join(chr(0x2800 + code) for code in row) for row in codes], codes.shape[1])


def _framed(lines: list[str], width: int) -> str:
    return "\n".join([f"┌{'─' * width}┐", *[f"│{line}│" for line in lines], f"└{'─' * width}┘"])


def matrix_svg(
    rows: Any,
    cols: Any,
    shape: tuple[int, int],
    *,
    size: int = 300,
    title: str = "",
    part: Any = None,
    colours: Sequence[str] = (),
) -> str:
    """Return the picture as an SVG element in the current text colour; denser cells are darker.

    Args:
        rows, cols: the positions of the entries, ``(nnz,)`` each.
        shape: of the matrix.
        size: the longer side, in pixels.
        title: the text alternative, without markup.
        part: for each entry the number of its part, or -1.
        colours: of the parts. Their paths have the classes "part-0", "part-1" ...
    """
    rows, cols = np.asarray(rows), np.asarray(cols)
    if part is None:
        drawn = [_shaded(cell_densities(rows, cols, shape, _CELLS), 'fill="currentColor"')]
    else:
        drawn = [
            _shaded(cell_densities(rows[of], cols[of], shape, _CELLS), f'class="part-{k}" fill="{colour}"')
            for k, colour in [(-1, "currentColor"), *enumerate(colours)]
            if (of := part == k).any()
        ]
    height, width = cell_densities([], [], shape, _CELLS).shape
    high, wide = (size * k / max(height, width, 1) for k in (height, width))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="spy" overflow="visible" role="img" aria-label="{title}" width="{wide:.4g}" '
        f'height="{high:.4g}" viewBox="0 0 {width} {height}" preserveAspectRatio="none" shape-rendering="crispEdges">'
        f"<title>{title}</title>{''.join(drawn)}"
        f'<rect width="{width}" height="{height}" fill="none" stroke="currentColor" stroke-opacity="0.5" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )


def _shaded(fill: Any, attributes: str) -> str:
    """Return a path for each level of density."""
    shades = np.ceil(np.sqrt(fill) * _LEVELS).astype(int)
    return "".join(
        [
            f'<path {attributes} fill-opacity="{(level + 1) / (_LEVELS + 1):.2g}" d="{path}"/>'
            for level in range(1, _LEVELS + 1)
            if (path := _runs(shades == level))
        ]
    )


def _runs(marked: Any) -> str:
    """Return the path of all horizontal runs of marked cells."""
    edges = np.diff(np.pad(marked, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    tops, begins = np.nonzero(edges == 1)
    _, ends = np.nonzero(edges == -1)
    return "".join([f"M{x} {y}h{end - x}v1h{x - end}z" for y, x, end in zip(tops, begins, ends, strict=True)])
