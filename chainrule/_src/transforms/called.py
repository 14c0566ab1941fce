"""``Called``: adapt a user's function of trees to a function of leaves, for Jacobians."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chainrule._src.api.array import faced
from chainrule._src.arrays.tree import TreeSpec, tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.messages import errors
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor


class Called:
    """A function of ``x``; a tuple ``x`` holds several arguments.

    Attributes:
        points: the leaves of ``x`` as the caller passed them; ``inner`` is their structure.
        outer: the structure of the function's result; set by the first call.

    Raises:
        ValueError: ``x`` contains no arrays.
    """

    outer: TreeSpec

    def __init__(self, function: AnyFunction, x: object, api: str = "jacobian") -> None:
        self.function = function
        self.several = type(x) is tuple
        self.points, self.inner = tree_flatten(x)
        if not self.points:
            raise errors.jacobian_of_nothing("x", api)

    @property
    def takes_arrays(self) -> bool:
        """Whether the caller passed NumPy arrays, so that results are arrays."""
        return not any([isinstance(leaf, (Tensor, ArrayLike)) for leaf in self.points])

    def __call__(self, leaves: Sequence[object]) -> list[AnyArray]:
        """Call the function, and return the leaves of the result.

        Raises:
            ValueError: the result has no leaves.
        """
        tree = tree_unflatten(leaves, self.inner)
        result = self.function(*tree) if self.several else self.function(tree)
        returned, self.outer = tree_flatten(result)
        if not returned:
            raise errors.jacobian_no_result(self.function, result)
        return returned

    def at(self, tensors: Iterable[Tensor]) -> list[AnyArray]:
        """Call the function with tensors, converted to the types of the points (tensors or Arrays); return the leaves."""
        return self([faced(x, point) for x, point in zip(tensors, self.points, strict=True)])
