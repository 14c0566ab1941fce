"""``torch.nn.parallel``: ``DataParallel``, for one device; the other names are placeholders."""

from chainrule.nn import DataParallel

__all__ = ["DataParallel"]
