"""Convert between the user's containers of arrays and the float64 vectors of SciPy's solvers.

The solvers of this package make a ``Packing`` of x0.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, in_api_of_argument, unwrap_array
from chainrule._src.arrays.libraries import is_foreign
from chainrule._src.arrays.tree import leaf_paths, tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, DTypeLike, TensorLike
from chainrule._src.messages import errors
from chainrule._src.tape.foreign import Foreign, in_memory
from chainrule._src.tape.foreign_operands import numbers_of
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.protocol import ArrayLike, as_plain_array
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.arguments import array_like

ndarray = np.ndarray
FloatVector = np.ndarray[Any, np.dtype[np.float64]]


def _real(x: TensorLike) -> Any:
    """Convert a Python int to float; integer arrays are rejected later."""
    return float(x) if type(x) is int else x


class Packing:
    """The layout of a tree's arrays, concatenated to one vector.

    Args:
        tree: an array, tensor or number, or a container of them. A list or tuple of numbers is an array.
        what: its name in error messages.
        kinds: the dtype kinds that the arrays may have.

    Raises:
        TypeError: a leaf is not an array, or not of floating-point dtype.
        ValueError: the tree has no elements.
    """

    def __init__(self, tree: object, what: str, kinds: str = "f") -> None:
        self.what = what
        self.leaves, self.spec = tree_flatten(array_like(tree))
        self.paths = leaf_paths(self.spec)
        values = [plain_value(_real(x), what + path) for x, path in zip(self.leaves, self.paths, strict=True)]
        for value, path in zip(values, self.paths, strict=True):
            if value.dtype.kind not in kinds:
                raise TypeError(
                    f"{what}{path} is of dtype {value.dtype}: the solver takes non-integer steps. Start "
                    "from floating-point numbers, such as x0.astype(float)"
                    + (" (complex numbers as two real ones)" if value.dtype.kind == "c" else "")
                )
        self.values = values
        self.shapes = [value.shape for value in values]
        self.dtypes = [value.dtype for value in values]
        self.sizes = [value.size for value in values]
        self.ends = np.cumsum(self.sizes).tolist()
        self.size: int = sum(self.sizes)
        if not self.size:
            raise ValueError(f"{what} holds no numbers: there is nothing to solve for")
        complexes = [dtype.kind == "c" for dtype in self.dtypes]
        if any(complexes) and not all(complexes):
            raise TypeError(f"{what} has complex and real arrays, but the solver needs one kind: make all complex")
        self.dtype = np.dtype(complex if any(complexes) else float)
        self.start = self.pack(values)

    @property
    def is_vector(self) -> bool:
        """Return whether the tree is one vector of float64 itself."""
        return (
            self.spec.kind is None
            and len(self.shapes[0]) == 1
            and self.dtypes[0] == self.dtype
            and not isinstance(self.leaves[0], (Tensor, ArrayLike))
        )

    def pack(self, values: Sequence[AnyArray]) -> FloatVector:
        """Concatenate plain arrays, one for each leaf, to one vector."""
        return np.concatenate([np.reshape(value, -1) for value in values]).astype(self.dtype)

    def pack_like(self, tree: object, what: str) -> FloatVector:
        """Convert a tree of the same structure and shapes to one vector.

        Raises:
            ValueError: the structure, or the shape of a leaf, differs.
        """
        leaves, spec = tree_flatten(array_like(tree))
        if spec != self.spec:
            raise ValueError(f"{what} has the structure {spec}, but {self.what} has {self.spec}")
        values = []
        for x, shape, path in zip(leaves, self.shapes, self.paths, strict=True):
            value = plain_value(x, what + path)
            if value.shape != shape:
                raise ValueError(f"{what}{path} has shape {value.shape}, but {self.what}{path} has {shape}")
            values.append(value)
        return self.pack(values)

    def unpack(self, x: Any) -> Any:
        """Convert a vector to the tree, with leaves of the user's types (recorded if the vector is).

        Axes of ``x`` after the first follow the axes of each leaf.
        """
        if self.is_vector:
            return x
        parts = []
        more = x.shape[1:]
        for shape, dtype, end, size, leaf in zip(
            self.shapes, self.dtypes, self.ends, self.sizes, self.leaves, strict=True
        ):
            part = x if size == self.size else x[end - size : end]
            part = part.reshape((*shape, *more)) if shape != (size,) else part
            parts.append(_like_leaf(part if dtype == self.dtype else part.astype(dtype), leaf))
        return tree_unflatten(parts, self.spec)

    def results(self, x: ndarray, axis: int = 0, dtype: DTypeLike = None) -> Any:
        """Convert an array with the vector's layout along ``axis`` to the tree, as copies.

        In each leaf, the leaf's own axes replace that axis. ``dtype`` overrides the dtypes of the leaves.
        """
        parts = np.split(x, self.ends[:-1], axis)
        found = []
        for part, shape, own, leaf in zip(parts, self.shapes, self.dtypes, self.leaves, strict=True):
            full = part.reshape((*x.shape[:axis], *shape, *x.shape[axis + 1 :]))
            found.append(_like_leaf(np.array(full, dtype or own), leaf))
        return tree_unflatten(found, self.spec)


def plain_value(x: object, what: str) -> ndarray:
    """Return the values of an array, tensor or number as a plain array, without derivatives.

    Raises:
        TypeError: the value is none of these, or another library's array that cannot be converted to NumPy's.
        RuntimeError: the value is inside a transformation.
    """
    tensor = unwrap_array(x)
    value = tensor._raw if isinstance(tensor, Tensor) else tensor
    if is_foreign(type(value)):
        value = as_plain_array(value)
    if type(value) is Foreign:
        raise errors.foreign_to_numpy(value)
    if isinstance(value, ArrayLike):
        raise RuntimeError(
            f"{what} is inside a transformation (vmap, jvp, compile ...), but SciPy needs concrete values. Use "
            "chainrule.implicit, whose solutions can be differentiated and batched"
        )
    if isinstance(value, ndarray):
        return value
    if isinstance(value, (int, float, complex, np.generic)):
        return np.asarray(value)
    numbers = numbers_of(value)
    if numbers is not None:
        return numbers
    raise TypeError(f"{what} is a {type(x).__name__}: expected arrays, tensors or numbers, or containers of them")


def _like_leaf(part: TensorLike, leaf: AnyArray) -> AnyArray:
    """Convert a part of the vector to the type of the user's leaf: a tensor or an array."""
    if type(part) is Array:
        return in_api_of_argument(part._tensor, leaf)
    if isinstance(part, Tensor):
        return in_api_of_argument(part, leaf)
    return wrap(np.asarray(part)) if isinstance(leaf, (Tensor, ArrayLike)) else np.asarray(part)


def flat_output(y: TensorLike, what: str, *more: int) -> AnyArray:
    """Concatenate a function's result (an array or a container of arrays) to one vector, with recording.

    ``more`` are the lengths of trailing axes that all arrays share; these axes are kept.

    Raises:
        TypeError: the result contains no arrays, or values that are not arrays.
    """
    leaves = in_memory(tree_flatten(y)[0])
    if not leaves:
        raise TypeError(f"{what} returned {y!r}: expected an array, a tensor or a number, or a container of them")
    for leaf in leaves:
        if not isinstance(leaf, (Tensor, Array, ndarray, np.generic, ArrayLike, int, float, complex)):
            raise TypeError(
                f"{what} returned a {type(leaf).__name__}: expected an array, a tensor or a number, or a container of them"
            )
    if len(leaves) == 1:
        (leaf,) = leaves
        return leaf if len(np.shape(leaf)) == 1 + len(more) else np.reshape(leaf, (-1, *more))
    return np.concatenate([np.reshape(leaf, (-1, *more)) for leaf in leaves])


def output_value(y: TensorLike, what: str) -> ndarray:
    """Return a value that the solution depends on, such as a function's result, as a plain array.

    Raises:
        RuntimeError: the value has derivatives, which SciPy's solver would drop.
    """
    tensor = unwrap_array(y)
    if isinstance(tensor, Tensor) and (
        (isinstance(tensor._raw, ArrayLike) and type(tensor._raw) is not Foreign)
        or (tensor._edge is not None and is_recording())
    ):
        raise RuntimeError(
            f"{what} depends on a differentiated value, but SciPy's solvers are not differentiable: call the solver with "
            "detach()ed tensors or in no_grad(), or use chainrule.implicit, whose solutions have derivatives"
        )
    return plain_value(in_memory([tensor._raw if isinstance(tensor, Tensor) else tensor])[0], what)


def plain_vector(y: TensorLike, what: str) -> FloatVector:
    """Convert a function's result to a float64 (or complex) vector for SciPy."""
    vector = output_value(flat_output(y, what), what)
    return vector if vector.dtype.kind == "c" else np.asarray(vector, float)


def plain_matrix(matrix: object) -> Any:
    """Convert a user's matrix for SciPy; SciPy's own classes are returned unchanged."""
    if isinstance(matrix, (Tensor, Array, ArrayLike)):
        return plain_value(matrix, "the matrix")
    return np.asarray(matrix) if isinstance(matrix, (list, tuple)) else matrix


def flat_function(fun: AnyFunction, packing: Packing, args: tuple[object, ...], what: str) -> AnyFunction:
    """Convert a function of the tree to a differentiable function from vector to vector."""

    @functools.wraps(fun)
    def flat(x: AnyArray) -> AnyArray:
        return flat_output(fun(packing.unpack(x), *args), what)

    return flat


def arguments(args: object) -> tuple[TensorLike, ...]:
    """Return SciPy's ``args`` as a tuple; a single argument may be given without one."""
    return args if type(args) is tuple else (args,)


def function_name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)
