"""Render arrays of an explanation as HTML tables, with shapes in the captions and one number format for a whole array.

``page``, ``sections`` and ``notebooks`` call ``array_table``; ``picture`` calls ``text_rows``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import JSONObject
from chainrule._src.explaining.markup import escape

MOST_DECIMALS = 4
DIGITS = 3  # minimum number of significant digits without a power of ten, unless the decimals are exact
EXACT = 3e-8  # relative error up to which decimals are exact, about that of float32
FIGURE, POINT = "\u2007", "\u2008"  # spaces as wide as a digit and as a point
TALL, SHOWN = 16, 8  # maximum number of rows of a table that is shown whole; number of rows shown of a longer table


def flat_numbers(data: float | Sequence[float]) -> list[float]:
    """Return the numbers of a nested list in row-major order; "nan" and "inf" become floats, other text stays text."""
    if isinstance(data, list):
        return [number for item in data for number in flat_numbers(item)]
    return [number_of(data)]


def number_of(item: Any) -> Any:
    if item is None or isinstance(item, bool):
        return float(bool(item))
    if isinstance(item, str):
        try:
            return float(item)
        except ValueError:
            return item
    return float(item)


def is_real(numbers: Sequence[float]) -> bool:
    return all(isinstance(item, float) for item in numbers)


def decimals_of(numbers: Sequence[float]) -> int:
    """Return the number of decimals that are needed to show every number, at most four."""
    wanted = 0
    for item in numbers:
        if not isinstance(item, float) or not math.isfinite(item):
            continue
        while wanted < MOST_DECIMALS and abs(round(item, wanted) - item) > EXACT * abs(item):
            wanted += 1
    return wanted


def format_number(item: float, places: int, *, single: bool = False) -> str:
    """Format a number with ``places`` decimals (fewer beyond the precision of float32), or with a power of ten.

    Powers of ten are for large numbers, and for small ones that would have fewer than three significant digits.

    >>> format_number(-0.0004012, 4), format_number(0.0004, 4), format_number(0.0123456, 4)
    ('−4.012e−4', '0.0004', '0.0123')
    """
    if not isinstance(item, float):
        return str(item)
    if math.isnan(item):
        return "nan"
    if math.isinf(item):
        return "inf" if item > 0 else "−inf"
    size = abs(item)
    decimals = min(places, max(8 - len(str(int(size))), 0)) if single else places
    if size >= 1e9 or (size < 10 ** (DIGITS - 1 - decimals) and abs(round(item, decimals) - item) > EXACT * size):
        mantissa, exponent = f"{item:.3e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        text = f"{item:.{decimals}f}" + FIGURE * (places - decimals) + POINT * (places > decimals == 0)
    if not float(text):
        text = text.lstrip("-")
    return text.replace("-", "−")


def format_cells(array: JSONObject) -> list[str]:
    """Format the numbers of an array, all in one format."""
    numbers = flat_numbers(array["data"])
    places, single = decimals_of(numbers), array.get("dtype") == "float32"
    return [format_number(item, places, single=single) for item in numbers]


def text_rows(array: JSONObject) -> list[str]:
    """Return the rows of an array as text with aligned columns, for a monospaced font."""
    texts = [cell.replace(FIGURE, " ").replace(POINT, " ") for cell in format_cells(array)]
    width = array["shape"][-1] if array["shape"] else 1
    columns = [max(map(len, texts[j::width])) for j in range(width)]
    rows = (texts[i : i + width] for i in range(0, len(texts), width))
    return ["  ".join(cell.rjust(n) for cell, n in zip(row, columns)) for row in rows]


def tuple_text(shape: Sequence[int]) -> str:
    return str(tuple(shape))


def index_text(flat_index: int, shape: Sequence[int]) -> str:
    """Return the index of a flat position in row-major order, as "[1, 2]"."""
    return str([int(i) for i in np.unravel_index(flat_index, tuple(shape))]) if shape else ""


def array_table(array: JSONObject, caption: str, *, key: str = "", label: str, live: bool = False) -> str:
    """Return an array as a table in a scrolling box; a long array is truncated to its first rows.

    Args:
        array: `{"shape", "data", "truncated"}`.
        caption: markup of the caption, without the shape.
        key: the key by which the script updates the array's numbers.
        label: the name of the box for a screen reader, as text.
        live: whether the script makes the cells editable.
    """
    shape, data_shape = array["shape"], _data_shape(array["data"])
    texts, width = format_cells(array), data_shape[-1] if data_shape else 1
    rows = len(texts) // (width or 1)
    shown = rows if live or rows <= TALL else min(SHOWN, data_shape[-2])
    marks = f" data-key='{escape(key)}'" if key and not array["truncated"] else ""
    marks += " data-edit=''" * live + " data-single=''" * (array.get("dtype") == "float32")
    full = f"{caption} <span class='shape'>{tuple_text(shape)}</span>"
    if array["truncated"] or shown < rows:
        full += " <span class='note'>the first numbers</span>"
    body = "<tbody><tr><td class='empty'>no elements</td></tr></tbody>"
    if texts:
        body = "".join(_rows(texts, data_shape, shown, width, array["shape"]))
    return (
        f"<div class='scroll' role='group' tabindex='0' aria-label='{escape(label)}, shape {tuple_text(shape)}'>"
        f"<table class='numbers'{marks}><caption>{full}</caption>{body}</table></div>"
    )


def _rows(texts: list[str], data_shape: list[int], shown: int, width: int, shape: Sequence[int]) -> Iterator[str]:
    wider, named = bool(data_shape) and width < shape[-1], len(data_shape) > 1
    if data_shape:
        heads = "".join(f"<th scope='col'>{j}</th>" for j in range(width)) + "<th scope='col'>…</th>" * wider
        yield f"<thead><tr>{'<td></td>' * named}{heads}</tr></thead>"
    yield "<tbody>"
    for row in range(shown):
        line = "".join(f"<td>{escape(cell)}</td>" for cell in texts[row * width : (row + 1) * width])
        first = len(data_shape) > 2 and row and row % data_shape[-2] == 0
        head = f"<th scope='row'>{index_text(row, data_shape[:-1])[1:-1]}</th>" if named else ""
        yield f"<tr{' class=group' * bool(first)}>{head}{line}{'<td class=more>…</td>' * wider}</tr>"
    if named and shown < math.prod(shape[:-1]):
        yield f"<tr><th scope='row'>⋮</th><td class='more' colspan='{width + wider}'>…</td></tr>"
    yield "</tbody>"


def _data_shape(data: object) -> list[int]:
    """Return the shape of the (possibly truncated) data of an array."""
    shape = []
    while isinstance(data, list):
        shape.append(len(data))
        data = data[0] if data else None
    return shape
