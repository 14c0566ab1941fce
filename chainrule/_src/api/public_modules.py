"""``show``: complete a public module, so that ``dir``, ``help``, error messages and pickling use its public names.

``show`` adds ``__getattr__`` at run time. Type checkers therefore report misspelt names, which a ``__getattr__`` in the
source of a module would hide.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from chainrule._src.messages import errors


def shown(x: object, home: str) -> Any:
    """Return a public object; set a function's ``__module__`` unless another public module has exported it before.

    Classes set it themselves, in their first line (``__module__ = "chainrule.jacobians"``): instances may exist before the
    public module is loaded.
    """
    if type(x) is FunctionType and x.__module__.startswith("chainrule._src."):
        x.__module__ = home
    return x


def show(module: dict[str, Any], later: Mapping[str, str] | None = None) -> None:
    """Complete a public module, given its ``globals()``. The last statement of the module calls this function.

    - The functions in ``__all__`` get the module's name as their ``__module__``, for ``help`` and pickling.
    - ``dir()`` lists ``__all__``, and neither imports nor helpers.
    - Names in ``later`` load on first use. Other missing names raise AttributeError with a suggestion.

    Args:
        module: the globals of the module. A ``__getattr__`` or ``__dir__`` that it defines itself is kept.
        later: the names that load on first use, and the modules that hold them. The name of a submodule stands for the
            submodule itself.
    """
    home, names, later = module["__name__"], module["__all__"], later or {}
    for name in names:
        shown(module.get(name), home)

    def __getattr__(name: str) -> Any:
        if name not in later:
            raise errors.unknown_name(name, [*names, *later], home)
        found = importlib.import_module(later[name])
        return found if later[name] == f"{home}.{name}" else shown(getattr(found, name), home)

    def __dir__() -> list[str]:
        return sorted({*names, *[name for name in module if name.startswith("__") and name.endswith("__")]})

    module.setdefault("__getattr__", __getattr__)
    module.setdefault("__dir__", __dir__)
