"""Check and convert the arguments of transformations, and convert their results to the caller's types.

The other modules of ``transforms`` and ``jacobians`` call these functions.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np

from chainrule._src.api.array import Array, array_of, as_arrays, is_objects, plain_or_stacked, unwrap_array
from chainrule._src.arrays.any_array import is_array as is_plain
from chainrule._src.arrays.any_array import is_recorded
from chainrule._src.arrays.dtypes import to_native_byte_order
from chainrule._src.arrays.libraries import is_container, is_foreign
from chainrule._src.arrays.tree import TreeSpec, leaf_paths, leaves_like, tree_flatten, tree_leaves, tree_unflatten
from chainrule._src.arrays.types import AnyFunction, NumpyDType
from chainrule._src.messages import errors
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.foreign_operands import is_table, numbers_of
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.protocol import ArrayLike, as_plain_array
from chainrule._src.tape.tensor import Tensor, wrap

ndarray = np.ndarray
F = TypeVar("F", bound=AnyFunction)


def names_keywords(function: F) -> F:
    """Decorate a function so that an unknown keyword raises TypeError with a suggestion."""
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        for name in kwargs:
            if name not in own:
                raise errors.unknown_keyword(function.__name__, name, own)
        return function(*args, **kwargs)

    return cast("F", call)


def array_like(tree: object) -> Any:
    """Convert a list or tuple of numbers to an array, as SciPy's solvers do; return other trees unchanged."""
    if type(tree) in (list, tuple) and tree and _numbers(tree):
        found = np.array(tree)
        return found.astype(float) if found.dtype.kind == "i" else found
    return tree


def _numbers(tree: Any) -> bool:
    if type(tree) in (list, tuple):
        return all(map(_numbers, tree))
    return isinstance(tree, (int, float, complex, np.generic))


def plain_type(x: object) -> type | None:
    """Return the eager type of a traced value (``float``, a NumPy scalar type or ``ndarray``); None if x is not traced."""
    return trace_hooks.eager_type(x._tensor._raw) if type(x) is Array else None


def is_array(x: object) -> bool:
    if plain_type(x) is float:
        return False
    known = isinstance(x, (Tensor, Array, ndarray, np.generic, ArrayLike))
    return known or is_foreign(type(x)) or is_table(x)


def data_of(x: object) -> Any:
    """Return the array-like of a tensor, an array or a number."""
    if type(x) is ndarray:
        return to_native_byte_order(x)
    if isinstance(x, Tensor):
        return x._raw
    if type(x) is Array:
        raw = x._tensor._raw
        return raw if type(raw) is ndarray else raw.as_argument()
    if isinstance(x, ArrayLike):
        return x
    if is_foreign(type(x)):
        return as_plain_array(x)
    if isinstance(x, ndarray):
        return to_native_byte_order(as_plain_array(x))
    if isinstance(x, (np.generic, float, int, complex)):
        return np.asarray(x)
    numbers = numbers_of(x)
    if numbers is not None:
        return numbers
    raise ValueError(
        f"Thing passed to transform API must be Tensor, got {type(x)}: pass arrays, tensors or numbers, or containers of "
        "them" + _instead(x)
    )


def _instead(x: object) -> str:
    if hasattr(x, "magnitude"):
        return (
            ": its magnitude, as in grad(lambda m: f(Quantity(m, q.units)).magnitude)(q.magnitude). Attach the gradient's unit "
            "yourself: the unit of the result over that of the argument"
        )
    if hasattr(x, "to_numpy"):
        return ", for example its to_numpy()"
    return ", for example chainrule.from_dlpack(x)" if hasattr(x, "__dlpack__") else ""


def data_if_unrecorded(x: object) -> Any:
    """Return a tensor's data if it is not recorded, else the tensor."""
    if type(x) is Array:
        x = x._tensor
    if isinstance(x, Tensor):
        return x._raw if x._edge is None or not is_recording() else x
    return data_of(x)


def tensor_in(x: object) -> Any:
    """Replace an Array by its tensor."""
    return x if type(x) is Tensor or plain_type(x) is float else unwrap_array(x)


def without_objects(tree: object) -> Any:
    """Replace arrays of objects that hold Arrays by Arrays, in the result of a function.

    This stacks the elements. The stack is an operation, so it must run inside the level, in its mode.
    """
    if type(tree) is Tensor or type(tree) is Array:
        return tree
    leaves, spec = tree_flatten(tree)
    if not any([is_objects(leaf) for leaf in leaves]):
        return tree
    return tree_unflatten([as_arrays(plain_or_stacked(x)) if is_objects(x) else x for x in leaves], spec)


def without_labels(x: object) -> Any:
    """Return the data of an xarray object that holds a single array."""
    if not is_container(type(x)):
        return x
    leaves = tree_leaves(x)
    return leaves[0] if len(leaves) == 1 else x


def interpreter_content(x: Tensor) -> Any:
    """Return a tensor as the content of an interpreter's value: the tensor if it is on the tape, else its data."""
    return x._raw if x._edge is None else x


def has_tensor(leaves: Sequence[object]) -> bool:
    """Return whether the caller passed tensors, so that results are tensors, not NumPy arrays."""
    return any([isinstance(x, Tensor) for x in leaves])


def as_caller_type(x: object, tensors: bool, foreign: set[int] | None = None) -> Any:
    """Convert a result to the caller's type: a tensor, or an ndarray (0-d for a number) if the caller passed arrays.

    A result that is on the tape becomes an Array instead of an ndarray. With ``foreign``, an ndarray becomes an
    ``own_copy``.
    """
    if isinstance(x, Tensor):
        if x._edge is not None:
            return x if tensors else array_of(x)
        if tensors:
            return x
        x = x._raw
    elif tensors:
        return wrap(x)
    if isinstance(x, np.generic):
        x = np.asarray(x)
    else:
        x = trace_hooks.as_array(x)
    if foreign is not None:
        x = own_copy(x, foreign)
    return x if type(x) is ndarray else x.payload if type(x) is Foreign else array_of(wrap(x))


def own_copy(x: Any, foreign: set[int]) -> Any:
    """Return a result with its own memory: copy it if it is a view or in ``foreign``, and add it to ``foreign``."""
    if is_plain(x):
        if (x.base is not None if type(x) is ndarray else x.is_view) or array_id(x) in foreign:
            x = x.copy()
        foreign.add(array_id(x))
    return x


def array_id(x: Any) -> int:
    """Return the id of an array; for a traced array, the id of the underlying array."""
    if plain_type(x) is ndarray:
        x = x._tensor._raw
    return id(x.array if is_recorded(x) else x)


def positions_of(argnums: int | tuple[int, ...], args: tuple[object, ...]) -> tuple[int, ...]:
    """Return ``argnums`` as non-negative positions.

    Raises:
        RuntimeError: ``argnums`` is not an int or a tuple of ints, is empty, out of range, or has duplicates.
    """
    if type(argnums) is int and 0 <= argnums < len(args):
        return (argnums,)
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(
            f"argnums must be int or Tuple[int, ...], got: {type(argnums)}. A transformation returns a function of the "
            "arguments: write grad(f)(x), not grad(f, x)"
        )
    several = argnums if isinstance(argnums, tuple) else (argnums,)
    if not several:
        raise RuntimeError("argnums must be non-empty")
    n = len(args)
    for argnum in several:
        if not isinstance(argnum, int):
            raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
        if not -n <= argnum < n:
            raise RuntimeError(f"Got argnum={argnum}, but only {n} positional inputs (counted from 0)")
    positions = tuple([argnum % n for argnum in several])
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {positions}")
    return positions


def split_aux(result: object, api: str) -> tuple[Any, Any]:
    """Return output and auxiliary output of a function with ``has_aux``; raise if its result is not such a pair."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def flatten_outputs(result: object, api: str, call: str) -> tuple[list[Tensor], TreeSpec]:
    """Return the leaves and the structure of a function's result; raise if a leaf is neither a tensor nor an array."""
    leaves, spec = tree_flatten(result)
    if not leaves:
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {result!r})")
    for i, y in enumerate(leaves):
        y = leaves[i] = tensor_in(y)
        if is_objects(data := getattr(y, "_raw", y)):
            raise errors.array_of_objects(data, f"{api}: expected {call} to return arrays of numbers, got")
        if not isinstance(y, Tensor):
            if not is_array(y):
                raise RuntimeError(
                    f"{api}: expected {call} to return only tensors, got unsupported type {type(y)}. Results of float(), "
                    ".item() or the math module have no derivatives; for further results, return (output, aux) and pass "
                    "has_aux=True."
                )
            leaves[i] = wrap(y)
    return leaves, spec


def flatten_like(spec: TreeSpec, tree: object, message: str) -> list[Any]:
    """Return the leaves of a tree with the structure ``spec``.

    Raises:
        RuntimeError: the tree has another structure; ``message`` may contain ``{spec}`` and ``{got}``.
    """
    try:
        return [tensor_in(x) for x in leaves_like(spec, tree, strict=True)]
    except ValueError as error:
        raise RuntimeError(f"{message.format(spec=spec, got=tree_flatten(tree)[1])}: {error}") from None


def tangent_like(primal: object, tangent: object, index: int, spec: TreeSpec) -> Any:
    """Return the tangent of a primal, cast to its dtype; ``index`` is the primal's position among the leaves.

    Raises:
        ValueError: primal or tangent does not have a floating point or complex dtype.
        RuntimeError: their shapes differ, or only the tangent is complex.
    """
    primal, tangent = tensor_in(primal), tensor_in(tangent)
    p, t = data_of(primal), data_of(tangent)
    for what, dtype in (("primal", p.dtype), ("tangent", t.dtype)):
        if dtype.kind not in "fc":
            raise not_floating(what, dtype, _primal_at(spec, index))
    if tuple(p.shape) != tuple(t.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(p.shape)} while the given forward gradient is of size {list(t.shape)}"
            f"{_primal_at(spec, index)}."
        )
    if t.dtype == p.dtype:
        return tangent if is_array(tangent) else t
    if t.dtype.kind == "c" and p.dtype.kind != "c":
        at = _primal_at(spec, index)
        raise RuntimeError(f"jvp: the tangent{at} is complex ({t.dtype}), but its primal is real ({p.dtype})")
    cast: Any = tangent if isinstance(tangent, (Tensor, ArrayLike)) else t
    return np.astype(cast, p.dtype)


def _primal_at(spec: TreeSpec, index: int) -> str:
    return f" (primals{leaf_paths(spec)[index]})"


def not_floating(what: str, dtype: NumpyDType, where: str = "") -> ValueError:
    return ValueError(
        f"Expected {what} to be floating point or complex, but got: {dtype}{where}. Use .float() or .double()."
    )


def check_randomness(randomness: str) -> None:
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def check_real(api: str, what: str, leaves: list[Any]) -> None:
    """Raise if a leaf is complex: Jacobians of complex functions depend on a convention that the caller must choose."""
    for i, x in enumerate(leaves):
        if getattr(x, "dtype", None) is not None and x.dtype.kind == "c":
            raise RuntimeError(
                f"{api}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}. Write the "
                "function in terms of real and imaginary parts (view_as_real, view_as_complex), or use vjp and jvp, which "
                "take complex numbers."
            )
