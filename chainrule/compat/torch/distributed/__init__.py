"""``torch.distributed`` as PyTorch has it where it was built without: it says that it is not available."""

from chainrule._src.messages import errors

__all__ = ["ProcessGroup", "is_available", "is_initialized"]


class ProcessGroup:
    """What signatures name; there is none."""


def is_available() -> bool:
    """False: there is one process."""
    return False


def is_initialized() -> bool:
    """False: there is no group of processes."""
    return False


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
