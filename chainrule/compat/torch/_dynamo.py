"""``torch._dynamo``: the part that ``torch.compiler`` has, too, and settings, which change nothing."""

from types import SimpleNamespace

from chainrule.compiler import allow_in_graph, disable, is_compiling, reset

__all__ = ["allow_in_graph", "config", "disable", "is_compiling", "reset"]

#: what programs set here is about how PyTorch compiles
config = SimpleNamespace()
