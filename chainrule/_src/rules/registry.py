"""``OpRegistry``: a dictionary of declarations, some of which are in modules that are imported on first use.

``ops.deferred`` appends the names of these modules to ``DEFERRED``. The op table and the registry of public operations are
registries. Both look complete: iteration, membership tests and missing keys import the deferred modules first.
"""

from __future__ import annotations

import importlib
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any, TypeVar

V = TypeVar("V")

#: names of modules that add entries to a registry when they are imported
DEFERRED: list[str] = []


def import_deferred() -> None:
    """Import all deferred modules. The import system waits for modules that another thread is importing."""
    for name in DEFERRED:
        importlib.import_module(name)


class OpRegistry(dict[str, V]):
    """A dictionary that imports the deferred modules before it is searched as a whole or for a key that it lacks."""

    def present(self) -> dict[str, V]:
        """Return the entries of the modules that are imported, as a new dictionary."""
        return dict(dict.items(self))

    def holds(self, key: str) -> bool:
        """Return whether a module that is imported has added this key."""
        return dict.__contains__(self, key)

    def __missing__(self, key: str) -> V:
        import_deferred()
        if dict.__contains__(self, key):
            return dict.__getitem__(self, key)
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        if not dict.__contains__(self, key):
            import_deferred()
        return dict.__contains__(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        if not dict.__contains__(self, key):
            import_deferred()
        return dict.get(self, key, default)

    def __iter__(self) -> Iterator[str]:
        import_deferred()
        return dict.__iter__(self)

    def __len__(self) -> int:
        import_deferred()
        return dict.__len__(self)

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        import_deferred()
        return dict.keys(self)

    def values(self) -> ValuesView[V]:  # type: ignore[override]
        import_deferred()
        return dict.values(self)

    def items(self) -> ItemsView[str, V]:  # type: ignore[override]
        import_deferred()
        return dict.items(self)
