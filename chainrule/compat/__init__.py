"""Run programs written for HIPS autograd or PyTorch with chainrule, without changes.

After ``chainrule.compat.install("autograd")``, ``import autograd.numpy as np`` and ``from autograd import grad`` import
``chainrule.compat.autograd``, which has HIPS autograd's names and semantics.

>>> import chainrule.compat.autograd.numpy as np
>>> from chainrule.compat.autograd import grad
>>> float(grad(lambda x: np.sin(x) * x)(0.0))
0.0
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from chainrule._src.api.public_modules import show
from chainrule._src.messages import errors
from chainrule._src.tape.tensor import Tensor

__all__ = ["install", "run"]

#: Library name to the package that implements its names.
_PACKAGES = {"autograd": "chainrule.compat.autograd", "torch": "chainrule", "functorch": "chainrule.func"}


#: The package with PyTorch's private modules that programs import.
_PRIVATE = "chainrule.compat.torch"

#: Modules whose names another module has.
_MOVED = {
    "torch.nn.utils.stateless": "chainrule.func",
    "torch.distributions.relaxed_categorical": "chainrule.distributions.one_hot_categorical",
}


def _module(name: str) -> ModuleType | None:
    """Import and return a module, or None if it does not exist."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):  # SciPy, for autograd.scipy
            raise
        return None


def _torch() -> ModuleType:
    """Return the module ``torch``: chainrule's names, with the version of the PyTorch release whose API they follow."""
    public: Any = sys.modules["chainrule"]
    module = ModuleType("torch", public.__doc__)
    own = {"__name__", "__package__", "__loader__", "__spec__", "__doc__"}
    vars(module).update({name: value for name, value in vars(public).items() if name not in own})
    for private, names in (("version", ["__version__"]), ("private_functions", None), ("tensor_sequences", None)):
        source = importlib.import_module(f"{_PRIVATE}.{private}")
        vars(module).update({name: getattr(source, name) for name in names or source.__all__})

    def lookup(name: str) -> Any:
        if not hasattr(public, name):
            raise errors.unknown_name(name, dir(public), "torch")
        value = getattr(public, name)
        return _unsupported().add_placeholders(name, value) if isinstance(value, ModuleType) else value

    vars(module).update(__path__=[], __getattr__=lookup)
    return _unsupported().add_placeholders("", module)


def _is_family(name: str) -> bool:
    """Return whether a name in ``torch.distributions`` is that of the module of a class, such as ``half_normal``."""
    return name.replace("_", "").lower() in map(str.lower, sys.modules["chainrule.distributions"].__all__)


def _torch_module(path: str, chainrule_name: str) -> ModuleType | None:
    """Return the module for ``torch.path``, or None if there is none."""
    if not path:
        return _torch()
    module = _module(chainrule_name)
    if module is None and path.startswith("distributions.") and _is_family(path.rpartition(".")[2]):
        module = sys.modules["chainrule.distributions"]
    module = module or _module(f"{_PRIVATE}.{path}") or _unsupported().placeholder_module(path)
    return None if module is None else _unsupported().add_placeholders(path, module)


def _unsupported() -> Any:
    return importlib.import_module(f"{_PRIVATE}.unsupported")


class _Finder:
    """An import finder that maps ``autograd.x`` to the module ``chainrule.compat.autograd.x``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name.partition(".")[0] != self.name:
            return None
        rest = name.removeprefix(self.name)
        chainrule_name = _MOVED.get(name, _PACKAGES[self.name] + rest)
        module = _torch_module(rest[1:], chainrule_name) if self.name == "torch" else _module(chainrule_name)
        if module is None:
            if self.name == "torch":
                raise _missing_module(name, chainrule_name)
            return None
        loader: Any = self
        spec = ModuleSpec(name, loader, is_package=hasattr(module, "__path__"))
        spec.loader_state = module, getattr(module, "__spec__", None)
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return spec.loader_state[0]

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        if spec is not None and spec.loader is self and spec.loader_state[1] is not None:
            module.__spec__ = spec.loader_state[1]  # the module keeps its own spec


def install(name: str) -> None:
    """Make ``import name`` and ``from name.… import …`` import chainrule's implementation of that library.

    Args:
        name: ``"autograd"`` for programs written for HIPS autograd, ``"torch"`` for PyTorch programs (also installs
            ``"functorch"``).

    Raises:
        ValueError: the library is not supported.
        RuntimeError: the original library is already imported.
    """
    if name not in _PACKAGES:
        raise ValueError(
            f"chainrule.compat has no names of {name!r}; it has those of {', '.join(map(repr, _PACKAGES))}"
        )
    if any(isinstance(finder, _Finder) and finder.name == name for finder in sys.meta_path):
        return
    if name in sys.modules:
        raise RuntimeError(
            f"{name} is imported already, from {getattr(sys.modules[name], '__file__', 'elsewhere')}: call "
            f"chainrule.compat.install({name!r}) before the program imports it"
        )
    sys.meta_path.insert(0, _Finder(name))
    package = _PACKAGES[name]
    if name == "torch":
        importlib.import_module(f"{package}.autograd")
    for loaded, module in [*sys.modules.items()]:
        if loaded.startswith(
            package + "."
        ):  # a second import would overwrite autograd.gradcheck, which is both a function and a module
            sys.modules[name + loaded.removeprefix(package)] = module
    if name == "torch":
        install("functorch")
        for private in (
            "_C",
            "_dynamo",
            "nn.modules",
            "nn.parallel",
            "nn.utils.stateless",
            "overrides",
            "types",
            "utils.hooks",
            "version",
        ):
            importlib.import_module(f"torch.{private}")  # programs access it as an attribute
        for public in ("autograd.functional", "optim.lbfgs"):
            _add_private_names(public)
        Tensor.__module__ = "torch"  # programs read it to detect the library of a tensor
    if name == "autograd":
        importlib.import_module(f"{package}.numpy.numpy_boxes").named_as("autograd.numpy.numpy_boxes")


def _add_private_names(public: str) -> None:
    """Add the private names that other libraries import from PyTorch's module of the same name."""
    private = importlib.import_module(f"chainrule.compat.torch.{public.replace('.', '_')}")
    private_names = {
        name: value for name, value in vars(private).items() if getattr(value, "__module__", "") == private.__name__
    }
    vars(importlib.import_module(f"chainrule.{public}")).update(private_names)


def _missing_module(name: str, chainrule_name: str) -> ModuleNotFoundError:
    parent, _, last = chainrule_name.rpartition(".")
    hint = errors.name_hint(last, [], parent)
    return ModuleNotFoundError(
        f"No module named {name!r}: chainrule replaces it, but has no {chainrule_name}{hint}", name=name
    )


def run(name: str, argv: list[str]) -> None:
    """Run ``script.py args...`` or ``-m module args...`` with chainrule in place of a library."""
    if not argv or argv == ["-m"] or argv[0] in ("-h", "--help"):
        raise SystemExit(f"usage: python -m chainrule.compat.{name} [-m module | script.py] [args...]")
    install(name)
    if argv[0] == "-m":
        sys.argv = argv[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path.insert(0, os.path.dirname(os.path.abspath(argv[0])))
        runpy.run_path(argv[0], run_name="__main__")


show(globals())
