"""``torch._dynamo``: the functions shared with ``torch.compiler``, and settings without effect."""

from types import SimpleNamespace

from chainrule.compiler import allow_in_graph, disable, is_compiling, reset

__all__ = ["allow_in_graph", "config", "disable", "is_compiling", "reset"]

#: Settings of PyTorch's compiler; they have no effect here.
config = SimpleNamespace()
