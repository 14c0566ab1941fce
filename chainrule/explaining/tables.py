"""Arrays of an explanation as HTML tables: shapes in the captions, one format for a whole array."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from chainrule.explaining.markup import escape

MOST_DECIMALS = 4


def flat(data: Any) -> list[Any]:
    """The numbers of a nested list in row-major order; "nan" and "inf" become floats, other text stays text."""
    if isinstance(data, list):
        return [number for item in data for number in flat(item)]
    return [number(data)]


def number(item: Any) -> Any:
    if item is None or isinstance(item, bool):
        return float(bool(item))
    if isinstance(item, str):
        try:
            return float(item)
        except ValueError:
            return item
    return float(item)


def is_real(numbers: Sequence[Any]) -> bool:
    return all(isinstance(item, float) for item in numbers)


def decimals(numbers: Sequence[Any]) -> int:
    """How many decimals show every number of the array, four at most."""
    wanted = 0
    for item in numbers:
        if not isinstance(item, float) or not math.isfinite(item):
            continue
        while wanted < MOST_DECIMALS and abs(round(item, wanted) - item) > 3e-8 * abs(item):
            wanted += 1
    return wanted


def written(item: Any, places: int) -> str:
    """A number with so many decimals, or in powers of ten where they would hide it."""
    if not isinstance(item, float):
        return str(item)
    if math.isnan(item):
        return "nan"
    if math.isinf(item):
        return "inf" if item > 0 else "−inf"
    size = abs(item)
    if size >= 1e9 or (0 < size < 0.5 * 10.0**-places):
        mantissa, exponent = f"{item:.3e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        text = f"{item:.{places}f}"
    if not float(text):
        text = text.lstrip("-")
    return text.replace("-", "−")


def text_rows(array: dict[str, Any]) -> list[str]:
    """The rows of an array in a monospaced face, its columns below one another."""
    numbers = flat(array["data"])
    cells = [written(item, decimals(numbers)) for item in numbers]
    width = array["shape"][-1] if array["shape"] else 1
    columns = [max(map(len, cells[j::width])) for j in range(width)]
    rows = (cells[i : i + width] for i in range(0, len(cells), width))
    return ["  ".join(cell.rjust(n) for cell, n in zip(row, columns)) for row in rows]


def shape_text(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def index_text(flat_index: int, shape: Sequence[int]) -> str:
    """The index of a position in row-major order, as "[1, 2]"."""
    index: list[str] = []
    for n in reversed(shape):
        flat_index, at = divmod(flat_index, n)
        index.append(str(at))
    return f"[{', '.join(reversed(index))}]" if shape else ""


def table(array: dict[str, Any], caption: str, *, key: str = "", label: str, live: bool = False) -> str:
    """One array as a table in a box that scrolls by itself.

    Args:
        array: `{"shape", "data", "truncated"}`.
        caption: markup of the caption, without the shape.
        key: where a script finds the array's numbers when they change.
        label: the box's name for a screen reader, as text.
        live: the cells can be edited where scripts run.
    """
    shape, numbers = array["shape"], flat(array["data"])
    full = f"{caption} <span class='shape'>{shape_text(shape)}</span>"
    places = decimals(numbers)
    marks = f" data-key='{escape(key)}'" if key and not array["truncated"] else ""
    marks += " data-edit=''" if live else ""
    classes = "numbers" + (" zero-d" if not shape else "")
    if array["truncated"]:
        full += " <span class='note'>only the first numbers are shown</span>"
    if not numbers:
        body = "<tbody><tr><td class='empty'>no elements</td></tr></tbody>"
    else:
        body = "".join(_rows(array, [written(item, places) for item in numbers]))
    return (
        f"<div class='scroll' role='group' tabindex='0' aria-label='{escape(label)}, shape {shape_text(shape)}'>"
        f"<table class='{classes}'{marks}><caption>{full}</caption>{body}</table></div>"
    )


def _rows(array: dict[str, Any], cells: list[str]) -> Iterator[str]:
    shown = corner(array["data"])
    width = shown[-1] if shown else 1
    cut = bool(array["truncated"]) and bool(shown)
    more_columns = cut and shown[-1] < array["shape"][-1]
    more_rows = cut and any(here < there for here, there in zip(shown[:-1], array["shape"][:-1], strict=True))
    if shown:
        heads = "".join(f"<th scope='col'>{j}</th>" for j in range(width))
        heads += "<th scope='col'>…</th>" if more_columns else ""
        corner_cell = "<td></td>" if len(shown) > 1 else ""
        yield f"<thead><tr>{corner_cell}{heads}</tr></thead>"
    yield "<tbody>"
    for row in range(len(cells) // width):
        head = ""
        if len(shown) > 1:
            name = index_text(row, shown[:-1]).strip("[]")
            first = len(shown) > 2 and row and row % shown[-2] == 0
            head = f"<th scope='row'>{name}</th>"
            yield "<tr class='group'>" if first else "<tr>"
        else:
            yield "<tr>"
        line = "".join(f"<td>{escape(cell)}</td>" for cell in cells[row * width : (row + 1) * width])
        yield head + line + ("<td class='more'>…</td>" if more_columns else "") + "</tr>"
    if more_rows:
        yield f"<tr><th scope='row'>⋮</th><td class='more' colspan='{width + more_columns}'>…</td></tr>"
    yield "</tbody>"


def corner(data: Any) -> list[int]:
    """The shape of what is there of an array."""
    shape = []
    while isinstance(data, list):
        shape.append(len(data))
        data = data[0] if data else None
    return shape
