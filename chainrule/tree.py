"""Trees: containers nested in one another, with arrays (or anything else) at the leaves.

A transformation takes its arguments apart into a flat list of leaves and a :class:`TreeSpec`, the containers with the
leaves taken out, and puts its results back together. Dictionaries, lists, tuples, named tuples, dataclasses, deques and
registered classes are containers; None is a container of nothing; whatever else there is is a leaf.
"""

from chainrule._src.api.faces import show
from chainrule._src.arrays.tree import (
    TreeSpec,
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_map_with_path,
    tree_structure,
    tree_unflatten,
)

__all__ = [
    "TreeSpec",
    "register_pytree_node",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]

show(globals())
