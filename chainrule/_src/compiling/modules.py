"""Compiled modules: called, they run what was recorded; for all else they are the module that was compiled."""

from __future__ import annotations

from typing import Any

from chainrule.nn.module import Module


class OptimizedModule(Module):
    """A module that computes what another does, faster. It owns that one, and has its attributes.

    Attributes:
        _orig_mod: the module that was compiled.
    """

    def __init__(self, compiled: Any) -> None:
        super().__init__()
        self.__dict__["_compiled"] = compiled
        self._orig_mod = compiled.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self._compiled(*args, **kwargs)

    @property
    def training(self) -> bool:  # type: ignore[override]
        """As the module that was compiled."""
        return self._orig_mod.training  # type: ignore[no-any-return]

    @training.setter
    def training(self, value: bool) -> None:
        self._orig_mod.training = value

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod" or name.startswith("__"):
            return super().__getattr__(name)
        module = self._orig_mod
        return getattr(module if hasattr(module, name) else self._compiled, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod":
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __reduce__(self) -> Any:
        return of_module, (self._compiled,)


def of_module(compiled: Any) -> Any:
    """The compiled module, if it is one that was compiled; else the compiled function."""
    return OptimizedModule(compiled) if isinstance(compiled.function, Module) else compiled
