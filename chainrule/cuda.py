"""What programs ask before they choose a device: here there is none but the CPU.

>>> import chainrule as torch
>>> torch.device("cuda" if torch.cuda.is_available() else "cpu")
device(type='cpu')
"""

from __future__ import annotations

from typing import Any

from chainrule import errors


def is_available() -> bool:
    """Whether tensors can be on a GPU: False."""
    return False


def device_count() -> int:
    """How many GPUs there are for tensors: 0."""
    return 0


def is_initialized() -> bool:
    """Whether a GPU is in use: False."""
    return False


def memory_allocated(device: Any = None) -> int:
    """How many bytes of GPUs' memory tensors have: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing to do: no GPU draws random numbers."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Nothing to do: no GPU keeps memory."""


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, ["is_available", "device_count"], __name__)
