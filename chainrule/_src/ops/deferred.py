"""Operations whose modules are imported on the first use of one of their names.

``deferred_names`` lists the names per module: functions (``cov``, ``linalg.inv``) and methods (``Tensor.cov``). The top level
of ``chainrule`` looks up a missing function here. Importing a module replaces the placeholders of its methods. NumPy functions
that these modules implement are found through ``protocol.LATER``.
"""

from __future__ import annotations

import importlib
from typing import Any

from chainrule._src.api import declare
from chainrule._src.api.declare import OPERATIONS, DeferredMethod
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.ops.deferred_names import NAMES
from chainrule._src.rules.registry import DEFERRED, import_deferred
from chainrule._src.tape.protocol import LATER
from chainrule._src.tape.tensor import Tensor, attach_methods

_METHOD = "Tensor."


def _method(name: str) -> Any:
    """Import the module of a method, which attaches it to Tensor, and return the method."""
    importlib.import_module(_MODULES[_METHOD + name])
    getattr(Tensor, name)  # if the module declares an operation, this makes the method
    return vars(Tensor)[name]


def _modules_by_name() -> dict[str, str]:
    return {name: module for module, names in NAMES.items() for name in names.split()}


_MODULES = _modules_by_name()
#: the deferred functions of the top level
FUNCTIONS = frozenset(name for name in _MODULES if "." not in name)


def function(name: str) -> AnyFunction:
    """Return a deferred function of the top level, as users call it."""
    importlib.import_module(_MODULES[name])
    return OPERATIONS[name].public


def namespace(prefix: str) -> dict[str, AnyFunction]:
    """Return the public functions of a namespace (``"linalg."``)."""
    for name, module in _MODULES.items():
        if name.startswith(prefix):
            importlib.import_module(module)
    return declare.namespace(prefix)


def import_all() -> None:
    """Import all deferred modules and make all methods: a class that changes during a trace cannot be guarded."""
    import_deferred()
    for name, method in list(vars(Tensor).items()):
        if type(method) is DeferredMethod:
            getattr(Tensor, name)


DEFERRED.extend(NAMES)
LATER["numpy.linalg"] = ("chainrule._src.ops.linalg.numpy_functions", "chainrule._src.ops.linalg.factors")
attach_methods(
    **{
        name.removeprefix(_METHOD): DeferredMethod(name.removeprefix(_METHOD), _method)
        for name in _MODULES
        if name.startswith(_METHOD)
    }
)
