"""What transformations ask of their arguments, and the forms they give their results."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.core.array import Array, array_of, unfaced
from chainrule.core.modes import recording
from chainrule.core.protocol import ArrayLike, plain
from chainrule.core.tensor import Tensor, wrap
from chainrule.tree import tree_flatten
from chainrule.types.dtypes import native

ndarray = np.ndarray
_NUMBERS = (float, int, complex)


def is_array(x: Any) -> bool:
    return isinstance(x, (Tensor, Array, ndarray, np.generic, ArrayLike))


def data_of(x: Any) -> Any:
    """The array-like behind a tensor, an array or a number."""
    if type(x) is Tensor or isinstance(x, Tensor):
        return x._raw
    if type(x) is Array:
        return x._tensor._raw
    if isinstance(x, ArrayLike):
        return x
    if isinstance(x, ndarray):
        return native(plain(x))
    if isinstance(x, (np.generic, *_NUMBERS)):
        return np.asarray(x)
    raise ValueError(
        f"Thing passed to transform API must be Tensor, got {type(x)}: pass arrays, tensors or numbers, or containers of "
        "them" + (", such as its to_numpy()" if hasattr(x, "to_numpy") else "")
    )


def bare(x: Any) -> Any:
    """A tensor's data where nothing is recorded by it, else the tensor."""
    if type(x) is Array:
        x = x._tensor
    if isinstance(x, Tensor):
        return x._raw if x._edge is None or not recording() else x
    return data_of(x)


def has_tensor(leaves: list[Any]) -> bool:
    """Whether the caller works with tensors (and gets them back) rather than with NumPy arrays."""
    return any(isinstance(x, Tensor) for x in leaves)


def dressed(x: Any, tensors: bool, taken: set[int] | None = None) -> Any:
    """A result in the caller's form: a tensor, or for callers with arrays an ndarray (0-d for a number).

    What is recorded, because it depends on something outside, is an Array for them. With ``taken``, an ndarray is made their
    ``own``.
    """
    if isinstance(x, Tensor):
        if x._edge is not None:
            return x if tensors else array_of(x)
        if tensors:
            return x
        x = x._raw
    if isinstance(x, np.generic):
        x = np.asarray(x)
    if tensors:
        return wrap(x)
    if taken is not None:
        x = own(x, taken)
    return x if type(x) is ndarray else array_of(wrap(x))


def own(x: Any, taken: set[int]) -> Any:
    """A result with plain memory of its own: no view, and none of the arrays in ``taken``, which it becomes one of."""
    if type(x) is ndarray:
        if x.base is not None or id(x) in taken:
            x = x.copy()
        taken.add(id(x))
    return x


def chosen(argnums: Any, args: tuple[Any, ...]) -> tuple[int, ...]:
    """``argnums`` as positions from the left.

    Raises:
        RuntimeError: not an int or a tuple of them, out of range, none at all, or one twice.
    """
    if isinstance(argnums, int):
        return (_position(argnums, args),)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    positions = tuple([_position(argnum, args) for argnum in argnums])
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {positions}")
    return positions


def _position(argnum: Any, args: tuple[Any, ...]) -> int:
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    n = len(args)
    if not -n <= argnum < n:
        raise RuntimeError(f"Got argnum={argnum}, but only {n} positional inputs")
    return argnum % n


def with_aux(result: Any, api: str) -> tuple[Any, Any]:
    """The two parts of what a function returned that said it has auxiliary output."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def outputs_of(result: Any, api: str, call: str) -> tuple[list[Any], Any]:
    """The leaves and the structure of what a function returned, which must be tensors (or arrays)."""
    leaves, spec = tree_flatten(result)
    if not leaves:
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {result!r})")
    for i, y in enumerate(leaves):
        y = leaves[i] = unfaced(y)
        if not is_array(y):
            raise RuntimeError(
                f"{api}: expected {call} to return only tensors, got unsupported type {type(y)}. Numbers that come out of "
                "float(), .item() or the math module have no derivatives; what else is to be returned can be, as "
                "(output, aux), with has_aux=True."
            )
        if not isinstance(y, Tensor):
            leaves[i] = wrap(y)
    return leaves, spec


def real_only(api: str, what: str, leaves: list[Any]) -> None:
    """Jacobians of complex functions depend on a convention that the caller should choose."""
    for i, x in enumerate(leaves):
        if getattr(x, "dtype", None) is not None and x.dtype.kind == "c":
            raise RuntimeError(
                f"{api}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}. Write the "
                "function of real and imaginary part (view_as_real, view_as_complex), or use vjp and jvp, which take "
                "complex numbers."
            )
