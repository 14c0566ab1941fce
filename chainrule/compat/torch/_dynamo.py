"""``torch._dynamo``: the part that ``torch.compiler`` has, too."""

from chainrule.compiler import allow_in_graph, disable, is_compiling, reset

__all__ = ["allow_in_graph", "disable", "is_compiling", "reset"]
