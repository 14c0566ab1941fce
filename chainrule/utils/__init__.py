"""Tools around autograd: :mod:`~chainrule.utils.checkpoint`, which trades time for memory."""

from chainrule.utils import checkpoint

__all__ = ["checkpoint"]
