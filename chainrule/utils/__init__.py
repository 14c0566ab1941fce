"""Tools around autograd: :mod:`~chainrule.utils.checkpoint`, which trades time for memory."""

from chainrule import errors
from chainrule.utils import checkpoint

__all__ = ["checkpoint"]


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
