"""Operations whose modules are imported on the first use of one of their names.

``deferred_names`` lists the names per module: functions (``cov``, ``linalg.inv``) and methods (``Tensor.cov``). The top level
of ``chainrule`` looks up a missing function here. Importing a module replaces the placeholders of its methods. NumPy functions
that these modules implement are found through ``protocol.LATER``.
"""

from __future__ import annotations

import importlib
from typing import Any

from chainrule._src.api import declare
from chainrule._src.api.declare import METHODS, OPERATIONS, DeferredMethod
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.ops.deferred_names import NAMES
from chainrule._src.rules.registry import DEFERRED, import_deferred
from chainrule._src.tape.protocol import LATER
from chainrule._src.tape.tensor import Tensor, attach_methods

_METHOD = "Tensor."


def _method(name: str) -> Any:
    """Import the module of a method, which declares or attaches it, and return the method."""
    importlib.import_module(_MODULES[_METHOD + name])
    return METHODS[name].method(name) if name in METHODS else vars(Tensor)[name]


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
_OPS = "chainrule._src.ops"
LATER["numpy"] = tuple(
    f"{_OPS}.numpy_{name}"
    for name in "reductions functions moves calculus grids samples selections writing ufuncs".split()  # noqa: SIM905
)
LATER["numpy.linalg"] = (f"{_OPS}.linalg.numpy_functions", f"{_OPS}.linalg.factors", f"{_OPS}.numpy_grids")
LATER["numpy.fft"] = (f"{_OPS}.fft.numpy_functions",)  # NumPy also loads numpy.fft at first use
LATER["scipy.special"] = (f"{_OPS}.scipy_special",)  # at that time SciPy is loaded
attach_methods(
    **{
        name.removeprefix(_METHOD): DeferredMethod(name.removeprefix(_METHOD), _method)
        for name in _MODULES
        if name.startswith(_METHOD)
    }
)
