"""Signal processing, with the names of ``torch.signal``: window functions."""

from chainrule._src.api.public_modules import show
from chainrule.signal import windows

__all__ = ["windows"]

show(globals())
