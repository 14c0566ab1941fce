"""A self-test of the C extension before the first operation: three operations and their gradients, in Python and in C.

``chainrule/__init__.py`` registers it. ``native`` calls it once, and keeps the fast path off if the results differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.messages import errors
from chainrule._src.tape import engine
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.tensor import Tensor, wrap


def register_self_test() -> None:
    """Register the self-test, which C calls before the first operation that runs in the default mode."""
    if LOOPS is not None:
        LOOPS.test_first(_test)


def run_self_test() -> None:
    """Run the self-test now, unless an operation has run it."""
    if LOOPS is not None:
        LOOPS.switch_on(LOOPS.switch_on(False))


def _test() -> None:
    """Switch on the fast path in C, if it records the same nodes and computes the same gradients as Python."""
    try:
        expected = _leaves()
        LOOPS.switch_on(True)
        found = _leaves()
        problem = "" if found == expected else f"they record {found} where Python records {expected}"
    except Exception as error:  # on any failure, operations run in Python
        problem = f"they raise {type(error).__name__}: {error}"
    if problem:
        LOOPS.switch_on(False)
        native.refuse(f"operations run in Python, because in C {problem}")
        errors.warn(native.slow_reason(), RuntimeWarning)


def _leaves() -> list[Any]:
    """Run three operations and a backward pass. Return the fields of their nodes, and the gradients."""
    x, y = wrap(np.array([[0.3, -0.0], [2.0, 1e-3]])), wrap(np.array([0.7, -1.9]))
    x._edge, y._edge = Leaf(x), Leaf(y)
    end: Any = ((x * y).tanh() + x).sum()
    notes: list[Any] = [_bits(end)]
    edges = [end._edge]
    first = end._edge.seq
    for edge in edges:
        if type(edge) is not Leaf:
            notes += [edge.prim.name, edge.params, edge.in_avals, edge.hooks, edge.seq - first, edge.code, edge.lasti]
            notes += [
                [_bits(value) for value in edge.saved],
                [type(operand_edge).__name__ for operand_edge in edge.edges],
            ]
            edges += edge.edges
    engine.sweep([end._edge], [np.ones(())], retain_graph=False, create_graph=False)
    return [*notes, _bits(x._grad), _bits(y._grad), x._edge.added]


def _bits(x: Any) -> tuple[object, ...]:
    data = x._raw if isinstance(x, Tensor) else x
    return (type(data).__name__, data.dtype.str, data.shape, data.tobytes())
