"""The ``Library`` of unyt's quantities: functions that keep units, and functions that need pure numbers.

``libraries`` imports this module at the first quantity.

A gradient has the unit of the result divided by the unit of the argument, because rules
multiply and divide quantities. unyt itself drops units silently in some functions. Here, functions of pure numbers refuse
quantities with a unit, and zeros and ones have no unit.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import unyt
from unyt._array_functions import _HANDLED_FUNCTIONS

from chainrule._src.arrays.library import Library
from chainrule._src.arrays.types import AnyFunction


def _has_unit(x: Any) -> bool:
    return hasattr(x, "units") and not x.units.is_dimensionless


def _to_number(x: Any) -> Any:
    """Convert a dimensionless quantity to an ndarray; unyt raises for any other."""
    if not hasattr(x, "units"):
        return x
    return np.asarray(x) if x.units.base_value == 1 and x.units.is_dimensionless else x.to_value("dimensionless")


def _for_pure_numbers(function: AnyFunction) -> AnyFunction:
    """Wrap a function of pure numbers: unyt itself would drop units, and the derivative would have none."""
    return lambda *args, **kwargs: function(*map(_to_number, args), **kwargs)


def _unit_among(args: Any) -> Any:
    return next((x.units for x in args if _has_unit(x)), None)


def _in_one_unit(function: AnyFunction) -> AnyFunction:
    """Wrap a function whose operands have one unit; zeros and NaN have any unit, and other pure numbers have none."""

    def form(*args: object, **kwargs: object) -> Any:
        parts = args[0] if isinstance(args[0], (tuple, list)) else args
        units = _unit_among(parts)
        if units is not None:
            parts = [x if _has_unit(x) or _is_mask(x) else _zero_in(x, units, function) for x in parts]
            args = (parts, *args[1:]) if isinstance(args[0], (tuple, list)) else tuple(parts)
        return function(*args, **kwargs)

    return form


def _is_mask(x: Any) -> bool:
    return getattr(getattr(x, "dtype", None), "kind", "") == "b"


def _zero_in(x: Any, units: Any, function: AnyFunction) -> Any:
    if np.any(np.nan_to_num(_to_number(x))):
        raise _no_unit(getattr(function, "func", function), units)
    return unyt.unyt_array(_to_number(x), units)


def _no_unit(function: AnyFunction, units: Any) -> Exception:
    """Return unyt's error for one operand with a unit and another without."""
    return unyt.exceptions.UnitOperationError(function, units, unyt.dimensionless)


def _multiply(x: Any, y: Any) -> Any:
    """Multiply; unyt casts a quantity to the other operand's dtype, which would drop imaginary parts."""
    if any(getattr(a, "dtype", np.dtype(type(a))).kind == "c" for a in (x, y)):
        x, y = (a if hasattr(a, "units") else np.asarray(a) for a in (x, y))
        x, y = (a.astype(np.result_type(x.dtype, y.dtype)) for a in (x, y))
    return np.multiply(x, y)


def _power(x: Any, y: Any) -> Any:
    if not _has_unit(x):
        return np.power(_to_number(x), _to_number(y))
    y = _to_number(y)
    if np.ndim(y):
        raise _no_unit(np.power, x.units)
    return np.power(x, float(y))


def _where(condition: Any, *choices: Any) -> Any:
    return _in_one_unit(functools.partial(np.where, np.asarray(condition)))(*choices)


def _clip(x: Any, a_min: Any = None, a_max: Any = None, **bounds: object) -> Any:
    low, high = bounds.get("min", a_min), bounds.get("max", a_max)
    x = x if low is None else _in_one_unit(np.maximum)(x, low)
    return x if high is None else _in_one_unit(np.minimum)(x, high)


def _pad(x: Any, pad_width: Any, mode: str = "constant", **options: object) -> Any:
    """Pad a quantity with zeros or a quantity."""
    value = options.get("constant_values", 0)
    if _has_unit(x) and not _has_unit(value) and np.any(np.asarray(value)):
        raise _no_unit(np.pad, x.units)
    return np.pad(x, pad_width, mode, **options)


def _with_unit(function: AnyFunction) -> AnyFunction:
    def form(x: Any, *args: tuple[object, ...], **kwargs: object) -> Any:
        plain = function(np.asarray(x), *args, **kwargs)
        return unyt.unyt_array(plain, x.units) if hasattr(x, "units") else plain

    return form


def _without_unit(function: AnyFunction) -> AnyFunction:
    """Return zeros or ones without a unit: zero has any unit, and a factor of one has none."""
    return lambda x, *args, **kwargs: function(np.asarray(x), *args, **kwargs)


_PURE = (
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan,
    np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh, np.logaddexp, np.logaddexp2, np.sinc, np.i0, np.deg2rad,
    np.rad2deg, np.heaviside, np.frexp, np.ldexp, np.spacing, np.rint,
)  # fmt: skip
_OF_ONE_UNIT = (
    np.maximum, np.minimum, np.fmax, np.fmin, np.greater, np.greater_equal, np.less, np.less_equal,
    np.concatenate, np.stack, np.add, np.subtract, np.hypot, np.arctan2,
)  # fmt: skip
#: NumPy's own functions that keep the units of a subclass in unyt
_KEEP_UNITS = {
    "reshape", "transpose", "swapaxes", "moveaxis", "rollaxis", "expand_dims", "squeeze", "ravel", "flip", "roll",
    "split", "diagonal", "sum", "max", "min", "mean", "sort", "argsort", "argmax", "argmin", "any", "all", "nonzero",
    "count_nonzero", "real", "imag", "repeat", "tile", "astype", "cumsum", "matrix_transpose", "permute_dims",
    "amax", "amin", "shape", "size", "ndim", "take_along_axis", "trace", "array_split", "atleast_1d", "atleast_2d",
    "compress", "delete", "isreal",
}  # fmt: skip


_OWN: dict[Any, AnyFunction] = {
    **{function: _for_pure_numbers(function) for function in _PURE},
    **{function: _in_one_unit(function) for function in _OF_ONE_UNIT},
    np.multiply: _multiply,
    np.power: _power,
    np.float_power: _power,
    np.where: _where,
    np.copy: lambda x, order="K", subok=False: x.copy(order),
    np.pad: _pad,
    np.clip: _clip,
    np.broadcast_to: _with_unit(np.broadcast_to),
    np.nan_to_num: _with_unit(np.nan_to_num),
    np.zeros_like: _without_unit(np.zeros_like),
    np.ones_like: _without_unit(np.ones_like),
}


@functools.cache
def _lacks(function: AnyFunction) -> bool:
    """Return whether NumPy's own code would run, which may drop units."""
    return function not in _HANDLED_FUNCTIONS and function.__name__ not in _KEEP_UNITS


LIBRARY = Library(
    "unyt",
    lambda x: np.asarray(x.value),
    "{x}.value",
    lacks=_lacks,
    own=_OWN,
    elementwise=lambda function, *args: function(*map(_to_number, args)),
)
