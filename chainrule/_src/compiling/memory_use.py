"""Measure the memory that a compiled function keeps alive.

``Compiled.memory`` and ``tree`` call ``reachable_nbytes``; ``Compiled`` evicts traces by its results.
"""

from __future__ import annotations

import gc
import sys
import types

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.compiling.function_trace import Captured
from chainrule._src.compiling.guards.guards import Copy, Guard, GuardKind, GuardSets
from chainrule._src.compiling.keys import Same
from chainrule._src.interpreters.templates import TemplateStep
from chainrule._src.native import AVAILABLE, Runner
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray

#: types of objects that belong to the user's program, or to all traces
_PROGRAM_TYPES = (
    type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.MethodType, np.ufunc, np.dtype,
    Primitive, Tensor, Array, Captured, Same, TemplateStep,
)  # fmt: skip


def reachable_nbytes(*things: object) -> int:
    """Return the bytes of all objects reachable from some objects: arrays, native code and arenas, copies in guards."""
    total = 0
    seen: set[int] = set()
    todo = list(things)
    while todo:
        x = todo.pop()
        if id(x) in seen or isinstance(x, _PROGRAM_TYPES):
            continue
        seen.add(id(x))
        total += sys.getsizeof(x)
        if isinstance(x, GuardSets):
            todo += x._sets
        elif isinstance(x, Guard):
            values = [x.value] if x.kind >= GuardKind.ELEMENTS else []  # other values belong to the program
            for value in values:
                if type(value) is tuple:
                    values += value
                    total += sys.getsizeof(value)
                elif isinstance(value, (bytes, Copy)):
                    todo.append(value)
        elif isinstance(x, ndarray):
            if x.base is not None:
                todo.append(x.base)
        elif AVAILABLE and type(x) is Runner:
            nbytes, constants = x.memory_use()
            total += nbytes
            todo += constants
        else:
            todo += gc.get_referents(x)
    return total
