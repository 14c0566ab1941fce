"""``torch.nn``, as far as it is functions: :mod:`chainrule.nn.functional`, and :func:`Parameter`."""

from chainrule import errors
from chainrule.nn import functional
from chainrule.nn.parameter import Parameter

__all__ = ["Parameter", "functional"]


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
