"""``JacobianTrace``: run a function once on ``Jac`` values, which record the steps that Jacobians are propagated through.

``api`` and ``prepared`` make a ``JacobianTrace``.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.api.array import unwrap_array
from chainrule._src.arrays.libraries import is_foreign
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.tree import TreeSpec
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.interpreters.jac import Jac, JacStep
from chainrule._src.jacobians.accumulate import Accumulation, steps_of
from chainrule._src.jacobians.products import resolve_to_inputs
from chainrule._src.jacobians.terms import Term, Variable, merge_terms
from chainrule._src.messages import errors
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.levels import Level, open_level, restoring_levels
from chainrule._src.tape.protocol import as_plain_array
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap
from chainrule._src.transforms.flat_function import FlatFunction, on_tape, primal_of, result_of


class JacobianCall(NamedTuple):
    """The call that computed a structured Jacobian, so that ``explain`` can compute it again.

    Attributes:
        function, x: the function and its argument.
        output, input: the indices of the output and of the input.
        strategy: the strategy that computed it.
        memory: most bytes of one step's entries.
        name: default name of the result.
    """

    function: AnyFunction
    x: Any
    output: int
    input: int
    strategy: str
    memory: int
    name: str


class JacobianTrace:
    """A call ``function(x)``, and the Jacobians of its results.

    Attributes:
        call: ``function`` as a function of the leaves of ``x``.
        arrays: whether the caller passed NumPy arrays, so that results are arrays.
        points: the leaves of ``x`` as the caller passed them; ``inner`` is their structure.
        variables: one for each point.
        results: the leaves of the function's result, as values of the trace; ``outer`` is their structure.
        strategy: the strategy that computed the Jacobians; set afterwards.
    """

    outer: TreeSpec
    strategy: str

    @restoring_levels
    def __init__(
        self, function: AnyFunction, x: object, create_graph: bool | None = False, api: str = "jacobian"
    ) -> None:
        self.function, self.x = function, x
        self.call = call = FlatFunction(function, x, api)
        self.points, self.inner, self.arrays = call.points, call.inner, call.takes_arrays
        leaves = [check_in_memory(leaf) for leaf in call.leaves()]
        self.create_graph = on_tape(leaves) if create_graph is None else create_graph
        primals = [primal_of(leaf, self.create_graph, api) for leaf in leaves]
        self.variables = [Variable(tuple(shape_of(p)), dtype_of(p)) for p in primals]
        with open_level(api, Jac) as level:
            pairs = zip(primals, self.variables, strict=True)
            returned = call.at([wrap(Jac(primal, variable, level)) for primal, variable in pairs])
            self.outer = call.outer
            self.results = [_result(check_in_memory(unwrap_array(y)), level) for y in returned]
            for y in self.results:
                check_in_memory(getattr(y, "primal", None))

    @functools.cached_property
    def steps(self) -> list[JacStep]:
        """The operations that the results depend on, oldest first."""
        return steps_of(self.results)

    def terms(self, memory: int) -> list[list[list[Term]]]:
        """Return the terms of the Jacobian for each result, for each variable; ``memory`` limits the bytes of each step."""
        found = Accumulation(self.results, memory // 8, steps=self.steps)
        by_input = [resolve_to_inputs(found.terms_of(y), y.shape) for y in self.results]
        return [
            [terms_of_input(terms, variable, y.dtype.kind == "c") for variable in self.variables]
            for y, terms in zip(self.results, by_input, strict=True)
        ]


def check_in_memory(x: object) -> Any:
    """Return x unchanged; raise TypeError if it is an array of another library, or a tensor of one."""
    data = getattr(x, "_raw", x)
    if type(data) is Foreign or is_foreign(type(data)):
        raise errors.layout_foreign(as_plain_array(data))
    return x


def terms_of_input(by_variable: dict[Variable, list[Term]], variable: Variable, complex_result: bool) -> list[Term]:
    """Return the terms of one input; for a complex input, combine the terms of its parts.

    They are the complex derivative of a complex result, if it exists, and the gradients of the elements of a real result, with
    the conventions of ``backward``.
    """
    if variable.dtype.kind != "c":
        return by_variable.get(variable, [])
    real, imag = [by_variable.get(part, []) for part in variable.parts]
    turn = -1j if complex_result else 1j
    return merge_terms(
        [Term(variable, t.cols, np.real(t.vals), t.rows) for t in real]
        + [Term(variable, t.cols, np.real(t.vals) * turn, t.rows) for t in imag]
    )


def _result(y: Any, level: Level) -> Jac:
    """Return a result as a traced value; a result that does not depend on the arguments becomes a constant."""
    y = result_of(y)
    if dtype_of(y).kind not in "fc":
        raise errors.jacobian_integer_output(tensor_of(y))
    data = y._raw if isinstance(y, Tensor) else y
    return data if type(data) is Jac and data.level == level else Jac(y, None, level)
