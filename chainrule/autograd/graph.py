"""The graph itself: its nodes and edges, and what happens to the values it saves for the backward pass.

A pair of hooks decides how saved values are kept: ``saved_tensors_hooks`` takes yours, ``save_to_disk`` writes them to
files, ``allow_mutation_on_saved_tensors`` copies them when they are about to be overwritten.
"""

from chainrule._src.api.faces import show
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
