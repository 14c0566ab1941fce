"""The arguments and results of a function whose Jacobian is computed: trees of arrays and tensors, as flat lists.

``jacobian`` (dense), ``JacobianTrace`` (structured) and ``jacobian_operators`` use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chainrule._src.api.array import in_api_of_argument, unwrap_array
from chainrule._src.arrays.tree import TreeSpec, tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.messages import errors
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.protocol import ArrayLike, as_data_array
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.arguments import interpreter_content


class FlatFunction:
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

    def leaves(self) -> list[Any]:
        """Return the points, with tensors instead of Arrays."""
        return [unwrap_array(leaf) for leaf in self.points]

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
        return self([in_api_of_argument(x, point) for x, point in zip(tensors, self.points, strict=True)])


def on_tape(leaves: Iterable[object]) -> bool:
    """Return whether operations are recorded, and a leaf is a tensor on the tape."""
    return is_recording() and any([isinstance(leaf, Tensor) and leaf._edge is not None for leaf in leaves])


def primal_of(leaf: Any, create_graph: bool, api: str = "jacobian") -> Any:
    """Return an argument as an array-like; with ``create_graph``, a tensor that is on the tape stays a tensor.

    Raises:
        TypeError: the argument contains no floating point or complex numbers.
    """
    if not isinstance(leaf, (Tensor, ArrayLike)):
        leaf = as_data_array(leaf)
    if leaf.dtype.kind not in "fc":
        raise errors.jacobian_integers(leaf.dtype, api)
    if isinstance(leaf, Tensor):
        return interpreter_content(leaf) if create_graph else leaf._raw
    return leaf


def result_of(out: Any) -> Any:
    """Return a result as an array-like or a tensor.

    Raises:
        TypeError: the result contains no numbers.
    """
    if not isinstance(out, (Tensor, ArrayLike)):
        out = as_data_array(out)
        if out.dtype.kind not in "fciub":
            raise errors.jacobian_output(out)
    return out
