"""``torch.signal``: windows for signals."""

from chainrule import errors
from chainrule.signal import windows

__all__ = ["windows"]


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
