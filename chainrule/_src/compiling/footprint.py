"""How much memory a compiled function keeps alive."""

from __future__ import annotations

import gc
import sys
import types

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.compiling.recording import Captured
from chainrule._src.compiling.state.guards import References
from chainrule._src.native import AVAILABLE, Runner
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray

#: what is there without it: the program, and what the program's arrays are
_OTHERS = (
    type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.MethodType, np.ufunc, np.dtype,
    Primitive, Tensor, Array, Captured,
)  # fmt: skip


def footprint(*things: object) -> int:
    """Bytes of all that some objects lead to: other objects, arrays, code and arenas of the native part."""
    total = 0
    seen: set[int] = set()
    todo = list(things)
    while todo:
        x = todo.pop()
        if id(x) in seen or isinstance(x, _OTHERS):
            continue
        seen.add(id(x))
        total += sys.getsizeof(x)
        if isinstance(x, References):
            continue  # what was read is the program's
        if isinstance(x, ndarray):
            if x.base is not None:
                todo.append(x.base)
        elif AVAILABLE and type(x) is Runner:
            nbytes, constants = x.kept()
            total += nbytes
            todo += constants
        else:
            todo += gc.get_referents(x)
    return total
