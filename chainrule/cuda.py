"""What programs ask before they choose a device: here there is none but the CPU.

>>> import chainrule as torch
>>> torch.device("cuda" if torch.cuda.is_available() else "cpu")
device(type='cpu')
"""

from __future__ import annotations

from chainrule import errors


def is_available() -> bool:
    """Whether tensors can be on a GPU: False."""
    return False


def device_count() -> int:
    """How many GPUs there are for tensors: 0."""
    return 0


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, ["is_available", "device_count"], __name__)
