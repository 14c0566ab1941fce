"""Wrap NumPy's functions to accept Arrays anywhere in their arguments.

Most of NumPy's functions dispatch on Arrays, but not on Arrays inside lists, and functions that create arrays do not dispatch
at all. The wrappers search the arguments for Arrays, including lists.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Iterator, Sequence, ValuesView
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, apply, holds
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params, TensorLike
from chainrule._src.tape.protocol import find
from chainrule.compat.autograd.extend import notrace_primitive
from chainrule.compat.autograd.values import getval

__all__ = [
    "c_",
    "clip",
    "fmax",
    "fmin",
    "full",
    "make_diagonal",
    "metadata",
    "r_",
    "row_stack",
    "where",
    "wrap_namespace",
]

_Dispatched = type(np.sum)
#: Parameters of NumPy's functions that are lists of arrays. A list in any other parameter is converted to an array.
_LISTS = frozenset({"arrays", "tup", "arys", "seq", "condlist", "choicelist", "choices", "operands", "xi", "keys"})


def takes_arrays(function: AnyFunction) -> AnyFunction:
    """Wrap NumPy's function to accept Arrays anywhere in its arguments."""
    dispatches = isinstance(function, _Dispatched) or find(function) is not None
    stacks = function in (np.array, np.asarray, np.asanyarray)

    @functools.wraps(function)
    def call(*args: object, **kwargs: Any) -> Any:
        if args and isinstance(args[0], (Iterator, ValuesView)):  # np.stack(map(f, x))
            args = (list(args[0]), *args[1:])
        if not holds(args, Array) and not (kwargs and holds(kwargs, Array)):
            return function(*args, **kwargs)
        if not stacks and any(isinstance(x, list | tuple) and holds(x, Array) for x in (*args, *kwargs.values())):
            args, kwargs = _stack_list_arguments(function, args, kwargs)
        return (apply if dispatches else _call)(function, *args, **kwargs)

    return call


_signature = functools.cache(inspect.signature)


def _call(function: AnyFunction, *args: object, **kwargs: object) -> Any:
    return function(*args, **kwargs)


def _stack_list_arguments(function: AnyFunction, args: Any, kwargs: Any) -> Any:
    """Return the arguments with lists of Arrays converted to Arrays, except for parameters in ``_LISTS``."""
    bound = _signature(function).bind(*args, **kwargs)
    for name, x in bound.arguments.items():
        if name not in _LISTS and isinstance(x, list | tuple) and holds(x, Array):
            several = bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            bound.arguments[name] = tuple(map(_as_array, x)) if several else _as_array(x)
    return bound.args, bound.kwargs


def _as_array(x: Sequence[TensorLike]) -> Any:
    return Array(x) if isinstance(x, list | tuple) and holds(x, Array) else x


def wrap_names(names: Params) -> dict[str, Any]:
    """Return a module's public names, with wrapped functions."""
    kinds = (_Dispatched, types.FunctionType, types.BuiltinFunctionType)
    return {
        name: takes_arrays(x) if isinstance(x, kinds) else x for name, x in names.items() if not name.startswith("_")
    }


def wrap_namespace(old: Params, new: Params) -> None:
    """Copy a module's public names into another namespace, with wrapped functions."""
    new.update(wrap_names(old))


# -- functions with semantics of HIPS autograd ----------------------------------------------------------------------------


def clip(a: AnyArray, a_min: TensorLike | None = None, a_max: TensorLike | None = None, **options: object) -> Any:
    """Compute ``np.clip``, with zero derivative for elements equal to a bound."""
    if type(a) is not Array or options or holds((a_min, a_max), Array):
        return takes_arrays(np.clip)(a, a_min, a_max, **options)
    inside = np.isnan(a) | ((a > (-np.inf if a_min is None else a_min)) & (a < (np.inf if a_max is None else a_max)))
    return np.where(inside, a, np.clip(getval(a), a_min, a_max))


def _extremum(function: AnyFunction, ties_halved: AnyFunction) -> AnyFunction:
    """Return np.fmax or np.fmin with half of the gradient for each of two equal elements."""

    def call(x: TensorLike, y: TensorLike, **options: object) -> Any:
        if options or not holds((x, y), Array):
            return function(x, y, **options)
        return np.where(np.isnan(x), y, np.where(np.isnan(y), x, ties_halved(x, y)))

    return call


fmax = _extremum(np.fmax, np.maximum)
fmin = _extremum(np.fmin, np.minimum)


def full(shape: Any, fill_value: Any, dtype: Any = None, **options: Any) -> AnyArray:
    if isinstance(fill_value, Array):
        return fill_value * np.ones(shape, fill_value.dtype if dtype is None else dtype)
    return np.full(shape, fill_value, dtype, **options)


def where(condition: object, *args: object, **kwargs: object) -> Any:
    """Compute ``np.where``; return Python numbers and lists if all arguments are such."""
    found = takes_arrays(np.where)(condition, *[*args, *kwargs.values()])
    given = (condition, *args, *kwargs.values())
    arrays = (Array, np.ndarray, np.generic)
    return found if len(given) == 1 or any(holds(given, kind) for kind in arrays) else found.tolist()


def make_diagonal(D: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> AnyArray:
    """Return matrices with the given diagonals, the inverse of ``np.diagonal(x, axis1=-1, axis2=-2)``."""
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError("make_diagonal() only supports offset=0, axis1=-1, axis2=-2")
    return np.expand_dims(D, -1) * np.eye(np.shape(D)[-1])


class _ConcatenateHelper:
    """``np.r_`` or ``np.c_``, with support for Arrays."""

    def __init__(self, plain: Any, join: AnyFunction) -> None:
        self.plain = plain
        self.join = join

    def __getitem__(self, parts: Any) -> Any:
        if not holds(parts, Array):
            return self.plain[parts]
        parts = parts if isinstance(parts, tuple) else (parts,)
        if any(isinstance(part, str) for part in parts):
            raise NotImplementedError(
                "a string in np.r_[...] or np.c_[...] of Arrays is not supported: use np.concatenate() with axis="
            )
        rows = [
            self.plain[part].ravel() if isinstance(part, slice) else np.atleast_1d(_as_array(part)) for part in parts
        ]
        return self.join(rows)


r_ = _ConcatenateHelper(np.r_, np.concatenate)
c_ = _ConcatenateHelper(np.c_, np.column_stack)


row_stack = np.vstack  # NumPy's old name


@notrace_primitive
def metadata(A: TensorLike) -> tuple[Any, ...]:
    return np.shape(A), np.ndim(A), np.result_type(A), np.iscomplexobj(A)
