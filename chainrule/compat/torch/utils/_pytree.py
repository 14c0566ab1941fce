"""``torch.utils._pytree``: trees whose leaves include None and dataclasses, unlike those of ``chainrule.tree``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from typing import Any

from chainrule import tree
from chainrule.tree import TreeSpec, register_pytree_node, tree_unflatten

__all__ = [
    "PyTree", "TreeSpec", "register_pytree_node", "tree_any", "tree_all", "tree_flatten", "tree_leaves", "tree_map",
    "tree_map_only", "tree_structure", "tree_unflatten",
]  # fmt: skip

PyTree = Any
Predicate = Callable[[Any], bool]


def _is_leaf(is_leaf: Predicate | None) -> Predicate:
    return lambda x: x is None or is_dataclass(x) or hasattr(x, "__array__") or (is_leaf is not None and is_leaf(x))


def tree_flatten(tree_: Any, is_leaf: Predicate | None = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree and its structure."""
    return tree.tree_flatten(tree_, _is_leaf(is_leaf))


def tree_leaves(tree_: Any, is_leaf: Predicate | None = None) -> list[Any]:
    """Return the leaves of a tree."""
    return tree_flatten(tree_, is_leaf)[0]


def tree_structure(tree_: Any, is_leaf: Predicate | None = None) -> TreeSpec:
    """Return the structure of a tree."""
    return tree_flatten(tree_, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree_: Any, *rests: Any, is_leaf: Predicate | None = None) -> Any:
    """Return the tree of ``func(leaf, ...)``, for the leaves of trees of the same structure."""
    return tree.tree_map(func, tree_, *rests, is_leaf=_is_leaf(is_leaf))


def tree_map_only(kind: Any, func: Callable[..., Any], tree_: Any, is_leaf: Predicate | None = None) -> Any:
    """Return the tree with ``func`` applied to the leaves of a class, or of a tuple of classes."""
    return tree_map(lambda x: func(x) if isinstance(x, kind) else x, tree_, is_leaf=is_leaf)


def tree_any(pred: Predicate, tree_: Any, is_leaf: Predicate | None = None) -> bool:
    """Return whether a predicate holds for some leaf."""
    return any(_of_leaves(pred, tree_, is_leaf))


def tree_all(pred: Predicate, tree_: Any, is_leaf: Predicate | None = None) -> bool:
    """Return whether a predicate holds for all leaves."""
    return all(_of_leaves(pred, tree_, is_leaf))


def _of_leaves(pred: Predicate, tree_: Any, is_leaf: Predicate | None) -> Iterable[Any]:
    return map(pred, tree_leaves(tree_, is_leaf))
