"""Signal processing, with the names of ``torch.signal``: window functions."""

from chainrule.signal import windows

__all__ = ["windows"]
