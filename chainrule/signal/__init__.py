"""``torch.signal``: windows for signals."""

from chainrule import errors
from chainrule.signal import windows

__all__ = ["windows"]


def __getattr__(name: str) -> object:
    if name.startswith("__"):  # what the import system asks for
        raise AttributeError(name)
    raise errors.no_such_name(name, __all__, __name__)
