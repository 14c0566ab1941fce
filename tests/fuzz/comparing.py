"""Compare compiled functions with eager execution, bit for bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule as cr
from chainrule._src.arrays.any_array import with_strides
from chainrule._src.compiling.compiled import TRIES
from chainrule._src.interpreters.same_bits import same_bits
from chainrule.tree import tree_flatten, tree_map


def arrays_of(result: Any) -> list[Any]:
    """Return the leaves of a result as arrays."""
    return [
        x if x is None or isinstance(x, str) else np.array(x.detach() if isinstance(x, cr.Tensor) else x)
        for x in tree_flatten(result)[0]
    ]


def difference(ours: Any, eager: Any) -> str:
    """Describe the first difference between two results in a few words; "" if they are equal."""
    if tree_flatten(ours)[1] != tree_flatten(eager)[1]:
        return f"the structure {tree_flatten(ours)[1]} for {tree_flatten(eager)[1]}"
    for x, y in zip(arrays_of(ours), arrays_of(eager), strict=True):
        if x is None or isinstance(x, str):
            if x != y:
                return f"{x} for {y}"
        elif x.dtype != y.dtype or x.shape != y.shape:
            return f"{x.dtype}{x.shape} for {y.dtype}{y.shape}"
        elif not same_bits(x, y):
            return f"{x.tolist()} for {y.tolist()}"[:300]
    return ""


def compare(function: Callable[..., Any], *calls: tuple[Any, ...]) -> str:
    """Describe how a compiled function of arrays differs from eager execution; "" if it does not.

    Args:
        calls: arguments of several calls, of the same shapes and dtypes. The first is the one that is recorded and the
            first that is replayed.
    """
    runs: list[Any] = []

    def noted(*args: Any) -> Any:
        runs.append(args)
        return function(*args)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.filterwarnings("always", message="compile")
        eager = [_outcome(function, _own(args)) for args in calls]
        compiled = cr.compile(function, max_slowdown=None)  # trace each new kind of call at once
        for k, (args, expected) in enumerate([(calls[0], eager[0]), *zip(calls, eager, strict=True)]):
            compiled.function = noted if k == 1 else function
            found = _difference(_outcome(compiled, _own(args)), expected)
            if found:
                return f"{('recorded', 'replayed', 'with other numbers')[min(k, 2)]}: {found}"
            if isinstance(expected, Exception):
                return ""
            if warned:
                return f"not compiled: {warned[0].message}"
            if runs:
                for _ in range(
                    TRIES
                ):  # differences that may vary between calls are tried again and reported at the end
                    runs.clear()
                    _outcome(compiled, _own(args))
                if runs:
                    return f"not compiled: {warned[0].message}" if warned else "not replayed"
    return ""


def _own(args: Any) -> Any:
    """Copy arguments with their layout, because the function may write to them."""

    def own(x: Any) -> Any:
        if isinstance(x, cr.Tensor):
            return cr.from_numpy(_copied(x.detach().numpy())).requires_grad_(x.requires_grad)
        return _copied(x) if isinstance(x, np.ndarray) else x

    return tree_map(own, args)


def _copied(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return with_strides(x, x.strides)


def _outcome(function: Callable[..., Any], args: Any) -> Any:
    """Return the result of a call and its arguments after the call, or the exception."""
    cr.manual_seed(7)
    try:
        return function(*args), args
    except Exception as error:
        return error


def _difference(ours: Any, eager: Any) -> str:
    if isinstance(ours, Exception) or isinstance(eager, Exception):
        if type(ours) is type(eager):
            return ""
        return f"{type(ours).__name__} for {type(eager).__name__}: {ours if isinstance(ours, Exception) else eager}"
    return difference(ours, eager)
