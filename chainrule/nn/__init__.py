"""Neural networks, with the names of ``torch.nn``: functions in :mod:`chainrule.nn.functional`, and :class:`Module`."""

from typing import Any

from chainrule._src.messages import errors
from chainrule.nn import functional, init, recurrent, stateful, stateless, utils
from chainrule.nn.containers import DataParallel, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from chainrule.nn.module import Module
from chainrule.nn.parameter import Parameter

_LAYERS = {
    name: layer
    for module in (stateful, stateless, recurrent)
    for name, layer in vars(module).items()
    if isinstance(layer, type) and issubclass(layer, Module) and not name.startswith("_") and layer is not Module
}
globals().update(_LAYERS)

__all__ = [
    "DataParallel", "Module", "ModuleDict", "ModuleList", "Parameter", "ParameterDict", "ParameterList", "Sequential",
    "functional", "init", "utils",
    *sorted(_LAYERS),
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise errors.unknown_name(name, __all__, __name__)
