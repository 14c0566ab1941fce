"""Device-independent GPU queries, like ``torch.accelerator``.

>>> import chainrule as torch
>>> torch.accelerator.current_accelerator() if torch.accelerator.is_available() else "cpu"  # without a GPU
'cpu'
"""

from __future__ import annotations

from chainrule._src.api.public_modules import show
from chainrule._src.arrays import gpu
from chainrule._src.arrays.device import device

__all__ = ["current_accelerator", "device_count", "is_available"]


def is_available() -> bool:
    """Return whether CuPy is installed and finds a GPU."""
    return gpu.device_count() > 0


def device_count() -> int:
    """Return the number of GPUs."""
    return gpu.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the GPU device, or None without a GPU. ``check_available`` is accepted and ignored: it is always checked."""
    return device("cuda") if is_available() else None


show(globals())
