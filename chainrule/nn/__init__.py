"""``torch.nn``, as far as it is functions: :mod:`chainrule.nn.functional`, and :func:`Parameter`."""

from chainrule.nn import functional
from chainrule.nn.parameter import Parameter

__all__ = ["Parameter", "functional"]
