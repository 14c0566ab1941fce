"""Functions that restore objects which a function changed while it was traced. ``log`` registers them."""

from __future__ import annotations

from collections import OrderedDict, deque
from types import CellType, WrapperDescriptorType
from typing import Any

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.guards.guards import MISSING
from chainrule._src.compiling.guards.objects import attribute_or_missing, has_class


def put_array(x: NumpyArray, values: NumpyArray) -> None:
    if x.flags.writeable:
        x[...] = values


def put_list(x: list[Any] | deque[Any], values: list[object]) -> None:
    kind: Any = list if has_class(x, list) else deque
    kind.clear(x)
    kind.extend(x, values)


def ordered_items(x: dict[Any, Any]) -> list[tuple[object, object]]:
    """Return keys and values in order. An OrderedDict has an order of its own, besides that of the dict."""
    return list(_kind_of(x).items(x))


def _kind_of(x: dict[Any, Any]) -> Any:
    return OrderedDict if has_class(x, OrderedDict) else dict


def put_dict(x: dict[Any, Any], values: list[tuple[object, object]]) -> None:
    kind = _kind_of(x)
    kind.clear(x)
    for key, value in values:
        kind.__setitem__(x, key, value)


def put_set(x: set[Any], values: Any) -> None:
    set.clear(x)
    set.update(x, values)


def put_item(x: dict[object, object], key: object, value: object) -> None:
    if value is MISSING:
        x.pop(key, None)
    else:
        x[key] = value


def put_attribute(x: object, name: str, value: object) -> None:
    in_c: Any = next(
        base for base in type(x).__mro__ if has_class(vars(base).get("__setattr__"), WrapperDescriptorType)
    )
    if value is not MISSING:
        in_c.__setattr__(x, name, value)
    elif attribute_or_missing(x, name) is not MISSING:
        in_c.__delattr__(x, name)


def put_cell(cell: CellType, value: object) -> None:
    if value is MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = value
