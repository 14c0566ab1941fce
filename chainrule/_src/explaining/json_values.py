"""Convert arrays, numbers and values of an explanation to plain Python values, for JSON.

``to_dict`` and ``explanation_data`` call these functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, JSONObject, NumpyArray
from chainrule._src.explaining.values import Value

_CELLS = 256  # most elements of an array that is written whole; of a larger one only a corner is written
_EDGE = 4  # length of a corner along each axis


def array_dict(x: NumpyArray) -> JSONObject:
    """Return ``{"shape", "dtype", "data", "truncated"}``; of a large array only the corner with the lowest indices."""
    x = np.asarray(x)
    cut = x.size > _CELLS
    shown = x[tuple(slice(_EDGE) for _ in x.shape)] if cut else x
    return {"shape": list(x.shape), "dtype": str(x.dtype), "data": json_numbers(shown), "truncated": cut}


def json_numbers(x: AnyArray) -> Any:
    """Return nested lists of numbers; nan, infinities and complex numbers become text, because JSON has no such numbers."""
    if isinstance(x, np.ndarray) and x.ndim:
        if x.dtype.kind in "biu" or (x.dtype.kind == "f" and bool(np.isfinite(x).all())):
            return x.tolist()
        return [json_numbers(part) for part in x]
    item = x.item() if isinstance(x, (np.ndarray, np.generic)) else x
    if isinstance(item, float) and not math.isfinite(item):
        return "nan" if item != item else "inf" if item > 0 else "-inf"
    if isinstance(item, complex):
        return f"{item.real:.6g}{item.imag:+.6g}j"
    return item


def attributes_dict(of: object, *names: str) -> dict[str, int | str | None]:
    """Return some attributes of an object."""
    return {name: getattr(of, name) for name in names}


def line_dict(where: object) -> JSONObject | None:
    """Return the file, number and text of a source line."""
    return None if where is None else attributes_dict(where, "file", "line", "text")


def value_dict(v: Value) -> JSONObject:
    """Return a value with its numbers and its cotangent's numbers."""
    return {
        **attributes_dict(v, "name", "bar", "role", "why_constant"),
        "shape": list(v.shape),
        "dtype": str(v.dtype),
        "data": None if v.data is None else array_dict(v.data),
        "gradient": None if v.gradient is None else array_dict(v.gradient),
        "line": line_dict(v.line),
    }


def finite_or_none(x: float) -> float | None:
    """Return a number for JSON: None if it is not finite."""
    return x if math.isfinite(x) else None
