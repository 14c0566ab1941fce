"""``torch.signal``: windows for signals."""

from chainrule.signal import windows

__all__ = ["windows"]
