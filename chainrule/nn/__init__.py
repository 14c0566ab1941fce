"""``torch.nn``, as far as it is functions: :mod:`chainrule.nn.functional`, and :func:`Parameter`."""

from chainrule import errors
from chainrule.nn import functional
from chainrule.nn.parameter import Parameter

__all__ = ["Parameter", "functional"]


def __getattr__(name: str) -> object:
    if name.startswith("__"):  # what the import system asks for
        raise AttributeError(name)
    raise errors.no_such_name(name, __all__, __name__)
