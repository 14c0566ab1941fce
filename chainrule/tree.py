"""Trees: nested containers with arrays (or any other objects) as leaves.

Transformations flatten their arguments into a list of leaves and a :class:`TreeSpec`, which describes the containers, and
unflatten their results. Dictionaries, lists, tuples, named tuples, dataclasses, deques and registered classes are
containers, and None is an empty container; any other object is a leaf.
"""

from chainrule._src.api.public_modules import show
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
