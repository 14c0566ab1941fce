"""Inspect the graph's nodes and edges, and control how it stores the values saved for the backward pass.

A pair of hooks packs and unpacks saved values. ``saved_tensors_hooks`` sets your own pair, ``save_to_disk`` writes the
values to files, and ``allow_mutation_on_saved_tensors`` copies them before they are overwritten.
"""

from chainrule._src.api.public_modules import show
from chainrule._src.transforms.backward import GradientEdge
from chainrule._src.transforms.graph import (
    Node,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    register_multi_grad_hook,
    save_on_cpu,
    save_to_disk,
    saved_tensors_hooks,
    set_copy_on_write,
)

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "save_to_disk",
    "saved_tensors_hooks",
    "set_copy_on_write",
]

show(globals())
