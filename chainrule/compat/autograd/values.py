"""Conversion of values between programs, rules and the tape.

``tracing``, ``extend`` and ``numpy.wrapping`` call these functions.

Gradients of complex values follow HIPS autograd's convention: they are the conjugates of chainrule's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import Array, array_of, has_derivative, plain_or_stacked
from chainrule._src.arrays.tree import TreeSpec, tree_leaves, tree_map, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.arguments import is_array


def getval(x: object) -> Any:
    """Return the plain value of an Array, without derivatives; return other objects unchanged."""
    if type(x) is not Array:
        return x
    raw = x.tensor._raw
    value = raw if isinstance(raw, np.ndarray) else raw.read()
    if value is None:
        raise TypeError("getval() of an array inside vmap: it represents a batch of values, not a single one")
    return value[()]


def isbox(x: TensorLike) -> bool:
    """Return whether a value carries derivatives of an active transformation."""
    return type(x) is Array and has_derivative(x)


def conjugate(x: TensorLike) -> TensorLike:
    """Convert between chainrule's and HIPS autograd's gradients of complex values, by conjugation."""
    return np.conj(x) if np.iscomplexobj(x) else x


def to_scalars(x: object) -> Any:
    """Convert 0-d arrays in a result to NumPy scalars."""
    return tree_map(lambda leaf: leaf[()] if isinstance(leaf, np.ndarray) and not leaf.ndim else leaf, x)


def differentiable(x: object) -> AnyArray | None:
    """Convert a value for differentiation: integers become floats; raise for other dtypes than floats and complex."""
    if isinstance(x, (Array, Tensor)):
        return x
    value = np.asarray(x)
    if value.dtype.kind in "iub":
        return value.astype(float)
    if value.dtype.kind not in "fc":
        raise TypeError(f"Can't differentiate w.r.t. type {type(x)}")
    return value


def constant(y: Any) -> bool:
    """Return whether a result does not depend on any differentiated value."""
    return not any(isinstance(leaf, Tensor) or isbox(leaf) for leaf in tree_leaves(y))


def stack_objects(x: TensorLike | AnyFunction) -> TensorLike | AnyFunction:
    """Convert an object array of Arrays to one Array."""
    found = plain_or_stacked(x)
    return array_of(found) if isinstance(found, Tensor) and found is not x else found


def zeros_like(x: object) -> AnyArray:
    return tree_map(lambda leaf: np.zeros_like(differentiable(getval(leaf)))[()], x)


def match_containers(spec: TreeSpec, x: Any) -> Any:
    """Convert a gradient to the containers of its argument; a rule may return a tuple or an array for a list."""
    if not spec.num_leaves:  # an empty list: ignore the rule's result
        return tree_unflatten([], spec)
    sequence = isinstance(x, (list, tuple))
    if spec.kind is None:
        if sequence:
            return Array(x)
        return np.asarray(x) if hasattr(x, "__array__") and not is_array(x) else x  # another library's
    if issubclass(spec.kind, (list, tuple)) and (sequence or (np.ndim(x) and len(x) == len(spec.children))):
        parts = [match_containers(child, part) for child, part in zip(spec.children, x)] + list(x[len(spec.children) :])
        return getattr(spec.kind, "_make", spec.kind)(parts)  # leaves_like raises if the lengths differ
    if isinstance(x, dict) and issubclass(spec.kind, dict) and list(x) == list(spec.context):
        return spec.kind(zip(x, map(match_containers, spec.children, x.values())))
    return x
