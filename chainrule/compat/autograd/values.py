"""Values as programs, rules and the tape get them. Gradients of complex values are HIPS autograd's, the conjugates of chainrule's."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import Array, array_of, carries, plain_or_stacked
from chainrule._src.arrays.tree import TreeSpec, tree_leaves, tree_map, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.arguments import is_array


def getval(x: object) -> Any:
    """Return the plain value of an Array, without its derivatives; anything else as it is."""
    if type(x) is not Array:
        return x
    raw = x.tensor._raw
    value = raw if isinstance(raw, np.ndarray) else raw.read()
    if value is None:
        raise TypeError("getval() of an array inside vmap: it stands for many values, and has none of its own")
    return value[()]


def isbox(x: TensorLike) -> bool:
    """Return whether a value is followed by a derivative that is being taken."""
    return type(x) is Array and carries(x)


def conjugate(x: TensorLike) -> TensorLike:
    """From chainrule's gradient of a complex value to HIPS autograd's, and back."""
    return np.conj(x) if np.iscomplexobj(x) else x


def shown(x: object) -> Any:
    """Return a result as programs get it: NumPy's scalars for 0-d arrays."""
    return tree_map(lambda leaf: leaf[()] if isinstance(leaf, np.ndarray) and not leaf.ndim else leaf, x)


def differentiable(x: object) -> AnyArray | None:
    """What is differentiated by: floats and complex numbers; integers become floats."""
    if isinstance(x, (Array, Tensor)):
        return x
    value = np.asarray(x)
    if value.dtype.kind in "iub":
        return value.astype(float)
    if value.dtype.kind not in "fc":
        raise TypeError(f"Can't differentiate w.r.t. type {type(x)}")
    return value


def constant(y: Any) -> bool:
    """Return whether a result depends on nothing that is differentiated."""
    return not any(isinstance(leaf, Tensor) or isbox(leaf) for leaf in tree_leaves(y))


def stacked(x: TensorLike | AnyFunction) -> TensorLike | AnyFunction:
    """Return an array of objects that are Arrays as one Array."""
    found = plain_or_stacked(x)
    return array_of(found) if isinstance(found, Tensor) and found is not x else found


def zeros_like(x: object) -> AnyArray:
    return tree_map(lambda leaf: np.zeros_like(differentiable(getval(leaf)))[()], x)


def in_containers(spec: TreeSpec, x: Any) -> Any:
    """Return a gradient in the containers of what it is a gradient of: for a list it may be a tuple or an array."""
    if not spec.num_leaves:  # an empty list, of which a rule may say anything
        return tree_unflatten([], spec)
    sequence = isinstance(x, (list, tuple))
    if spec.kind is None:
        if sequence:
            return Array(x)
        return np.asarray(x) if hasattr(x, "__array__") and not is_array(x) else x  # another library's
    if issubclass(spec.kind, (list, tuple)) and (sequence or (np.ndim(x) and len(x) == len(spec.children))):
        parts = [in_containers(child, part) for child, part in zip(spec.children, x)] + list(x[len(spec.children) :])
        return getattr(spec.kind, "_make", spec.kind)(parts)  # too many or too few: leaves_like tells
    if isinstance(x, dict) and issubclass(spec.kind, dict) and list(x) == list(spec.context):
        return spec.kind(zip(x, map(in_containers, spec.children, x.values())))
    return x
