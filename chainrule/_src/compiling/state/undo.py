"""Putting back what a function has changed while it was recorded."""

from __future__ import annotations

from types import CellType
from typing import Any

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.state.guards import MISSING
from chainrule._src.compiling.state.objects import attribute_or_missing, isa


def put_array(x: NumpyArray, values: NumpyArray) -> None:
    if x.flags.writeable:
        x[...] = values


def put_list(x: list[float], values: list[float]) -> None:
    x.clear()
    x.extend(values)


def put_dict(x: dict[object, object], values: list[tuple[object, object]]) -> None:
    dict.clear(x)
    for key, value in values:
        dict.__setitem__(x, key, value)


def put_set(x: set[Any], values: Any) -> None:
    x.clear()
    x.update(values)


def put_item(x: dict[object, object], key: object, value: object) -> None:
    if value is MISSING:
        x.pop(key, None)
    else:
        x[key] = value


def put_attribute(x: object, name: str, value: object) -> None:
    if value is not MISSING:
        (type if isa(x, type) else object).__setattr__(x, name, value)
    elif attribute_or_missing(x, name) is not MISSING:
        (type if isa(x, type) else object).__delattr__(x, name)


def put_cell(cell: CellType, value: object) -> None:
    if value is MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = value
