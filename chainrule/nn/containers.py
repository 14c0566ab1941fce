"""Modules that hold modules: one after the other, in a list, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chainrule.nn.module import Module


class DataParallel(Module):
    """A module as it is: with one device there is nothing to divide, as in PyTorch on the CPU.

    Args:
        module: what is called.
        device_ids, output_device, dim: accepted.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*args, **kwargs)


class ModuleDict(Module):
    """A dictionary of modules, which belong to the module that has it as an attribute."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        for name, module in (modules or {}).items():
            self.register_module(name, module)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.register_module(key, module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()  # type: ignore[no-any-return]

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()  # type: ignore[no-any-return]

    def items(self) -> Iterable[tuple[str, Module]]:
        """The names with the modules."""
        return self._modules.items()  # type: ignore[no-any-return]


class ModuleList(Module):
    """A list of modules, which belong to the module that has it as an attribute."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add several modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def __getitem__(self, index: int | slice) -> Any:
        found = [*self._modules.values()][index]
        return ModuleList(found) if isinstance(index, slice) else found

    def __setitem__(self, index: int, module: Module) -> None:
        self.register_module([*self._modules][index], module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())


class Sequential(ModuleList):
    """Modules one after the other: each is called with what the one before it gave.

    Args:
        args: modules, or one dictionary of them by name.

    >>> import chainrule as cr
    >>> cr.nn.Sequential(cr.nn.Linear(3, 2), cr.nn.ReLU())
    Sequential(
      (0): Linear(in_features=3, out_features=2, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        named = args[0] if len(args) == 1 and isinstance(args[0], Mapping) else {}
        super().__init__(() if named else args)
        for name, module in named.items():
            self.register_module(name, module)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Sequential(dict([*self._modules.items()][index]))
        return super().__getitem__(index)

    def forward(self, input: Any) -> Any:
        """What the last module gives."""
        for module in self:
            input = module(input)
        return input
