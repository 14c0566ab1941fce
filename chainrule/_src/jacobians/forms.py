"""Convert between the user's containers of arrays and the vector of a solver (``Form``), and collect ``Arguments``.

``implicit`` and ``scipy.sparse.linalg`` make a ``Form``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, in_api_of_argument
from chainrule._src.arrays.tree import leaf_paths, tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, tensor_of
from chainrule._src.tape.versions import saveable_array
from chainrule._src.transforms.arguments import array_like, data_of, tensor_in

ndarray = np.ndarray


class Form:
    """The structure of x: packs its arrays into one vector, and unpacks them."""

    def __init__(self, x0: Any, what: str, api: str) -> None:
        self.api = api
        self.leaves, self.spec = tree_flatten(array_like(x0))
        self.start = [to_tensor(x) for x in self.leaves]
        for x, path in zip(self.start, leaf_paths(self.spec), strict=True):
            if x._raw.dtype.kind != "f":
                raise TypeError(
                    f"{api}(): {what}{path} has dtype {x.dtype}: a differentiable solution must have a floating point "
                    "dtype" + (" (split complex numbers into two parts)" if x._raw.dtype.kind == "c" else "")
                )
        self.shapes = [tuple(x._raw.shape) for x in self.start]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.size = sum(self.sizes)
        if not self.size:
            raise ValueError(f"{api}(): {what} contains no numbers: there is nothing to solve for")
        self.dtypes = [x._raw.dtype for x in self.start]
        self.dtype = np.result_type(*self.dtypes)
        self.is_vector = self.spec.num_leaves == 1 and self.spec.kind is None and len(self.shapes[0]) == 1

    def pack(self, tree: object, what: str) -> ndarray:
        """Pack plain arrays in the structure of x into one vector; raise ValueError for another structure or shape."""
        leaves, spec = tree_flatten(tree)
        if spec != self.spec:
            raise ValueError(f"{self.api}(): {what} has the structure {spec}, but x0 has {self.spec}")
        parts = [data_of(tensor_in(x)) for x in leaves]
        for part, shape, path in zip(parts, self.shapes, leaf_paths(spec), strict=True):
            if tuple(part.shape) != shape and (shape or part.size != 1):  # SciPy's solvers return a number as a vector
                raise ValueError(f"{self.api}(): {what}{path} has shape {part.shape}, but x0{path} has {shape}")
        return np.concatenate([np.reshape(part, -1) for part in parts]).astype(self.dtype)

    def parts(self, x: Tensor) -> list[Tensor]:
        """Split a vector into the arrays of x."""
        if self.is_vector:
            return [x]
        ends = itertools.accumulate(self.sizes)
        along = zip(ends, self.sizes, self.shapes, self.dtypes, strict=True)
        return [x[end - size : end].reshape(shape).astype(dtype) for end, size, shape, dtype in along]

    def unpack(self, x: object) -> Any:
        """Return a vector in the structure of x, with the types that the user's functions expect."""
        parts = self.parts(x if type(x) is Tensor else tensor_of(x))
        return tree_unflatten(
            [in_api_of_argument(part, leaf) for part, leaf in zip(parts, self.leaves, strict=True)], self.spec
        )

    def flat(self, f: AnyFunction) -> AnyFunction:
        """Convert a function of x to a function from vector to vector."""

        def function(x: object, *args: object) -> Any:
            leaves = [to_tensor(y) for y in tree_flatten(f(self.unpack(x), *args))[0]]
            if len(leaves) == 1 and len(leaves[0]._raw.shape) == 1:
                return leaves[0]
            return np.concatenate([np.reshape(y, -1) for y in leaves])

        return function

    def scalar(self, f: AnyFunction) -> AnyFunction:
        """Convert a scalar function of x to a function of a vector."""
        return lambda x, *args: f(self.unpack(x), *args)


class Arguments:
    """The arguments of a solution: ``operands`` can be differentiated and mapped over, other leaves are passed unchanged."""

    def __init__(self, args: tuple[object, ...]) -> None:
        self.leaves, self.spec = tree_flatten(args)
        self.at = [i for i, x in enumerate(self.leaves) if _is_operand(x)]
        self.operands = [to_tensor(self.leaves[i]) for i in self.at]

    def with_tensors(self, tensors: Sequence[Any], plain: bool = False) -> Any:
        """Return the arguments with the operands replaced by tensors; with ``plain``, by arrays if arrays were given."""
        leaves = list(self.leaves)
        for i, x in zip(self.at, tensors, strict=True):
            bare = plain and not isinstance(leaves[i], (Tensor, ArrayLike))
            leaves[i] = x._raw if bare else in_api_of_argument(x, leaves[i])
        return tree_unflatten(leaves, self.spec)


def _is_operand(x: object) -> bool:
    if isinstance(x, (Tensor, Array, ArrayLike)):
        return True
    return isinstance(x, (ndarray, np.generic)) and x.dtype.kind in "fc"


def to_tensor(x: object) -> Tensor:
    """Convert an array, tensor or number to a tensor."""
    tensor = tensor_in(x)
    if isinstance(tensor, Tensor):
        return tensor
    data = data_of(tensor)
    return tensor_of(saveable_array(data) if type(data) is ndarray and data is x else data)
