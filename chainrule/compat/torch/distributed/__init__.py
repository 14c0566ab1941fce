"""``torch.distributed``, as in a PyTorch build without distributed support."""

from chainrule._src.messages import errors

__all__ = ["ProcessGroup", "is_available", "is_initialized"]


class ProcessGroup:
    """A class for type annotations; there are no process groups."""


def is_available() -> bool:
    """Return False: there is only one process."""
    return False


def is_initialized() -> bool:
    """Return False: there is no process group."""
    return False


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
