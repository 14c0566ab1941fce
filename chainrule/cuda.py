"""GPU availability, properties and memory, as reported by CuPy. Without CuPy only the CPU is available.

>>> import chainrule as torch
>>> torch.device("cuda" if torch.cuda.is_available() else "cpu")  # on a computer without a GPU
device(type='cpu')
"""

from __future__ import annotations

from typing import Any

from chainrule._src.api.public_modules import show
from chainrule._src.arrays import gpu
from chainrule._src.arrays.device import DeviceLike, gpu_of
from chainrule._src.arrays.device import device as Device

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "init",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Return whether CuPy is installed and finds a GPU."""
    return gpu.device_count() > 0


def device_count() -> int:
    """Return the number of GPUs."""
    return gpu.device_count()


def is_initialized() -> bool:
    """Return whether a GPU is available."""
    return is_available()


def init() -> None:
    """Check that a GPU is available; CuPy initializes it on first use.

    Raises:
        RuntimeError: there is no GPU.
    """
    _number(None)


def _number(device: DeviceLike) -> int:
    """Return the index of a GPU given by an index, a device, or None for the current one."""
    if isinstance(device, int):
        device = Device("cuda", device)
    number = gpu_of("cuda" if device is None else device)
    if number is None:
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return number


def current_device() -> int:
    """Return the index of the current GPU, on which new tensors on "cuda" are created."""
    return _number(None)


def set_device(device: DeviceLike) -> None:
    """Set the current GPU, on which new tensors on "cuda" are created."""
    gpu.cupy_device(_number(device)).use()


def get_device_name(device: DeviceLike = None) -> str:
    """Return the product name of a GPU."""
    return str(_properties(device)["name"].decode())


def _properties(device: DeviceLike) -> Any:
    number = _number(device)
    return gpu.cupy_module().cuda.runtime.getDeviceProperties(number)


def get_device_capability(device: DeviceLike = None) -> tuple[int, int]:
    """Return the compute capability of a GPU as (major, minor)."""
    properties = _properties(device)
    return int(properties["major"]), int(properties["minor"])


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Return the free bytes and all bytes of a GPU."""
    free, total = gpu.cupy_device(_number(device)).mem_info
    return int(free), int(total)


def memory_allocated(device: DeviceLike = None) -> int:
    """Return the number of bytes that arrays occupy in CuPy's memory pool; 0 without a GPU."""
    return _pooled("used_bytes", device)


def memory_reserved(device: DeviceLike = None) -> int:
    """Return the size of CuPy's memory pool in bytes, used and free; 0 without a GPU."""
    return _pooled("total_bytes", device)


def _pooled(method: str, device: DeviceLike) -> int:
    if not gpu.device_count():
        return 0
    with gpu.cupy_device(_number(device)):
        return int(getattr(gpu.cupy_module().get_default_memory_pool(), method)())


def empty_cache() -> None:
    """Free the unused memory of CuPy's pools. Without a GPU it does nothing."""
    if gpu.device_count():
        gpu.cupy_module().get_default_memory_pool().free_all_blocks()
        gpu.cupy_module().get_default_pinned_memory_pool().free_all_blocks()


def synchronize(device: DeviceLike = None) -> None:
    """Wait until a GPU has completed its work.

    Raises:
        RuntimeError: there is no GPU.
    """
    gpu.cupy_device(_number(device)).synchronize()


def manual_seed(seed: int) -> None:
    """Seed the random numbers of the current GPU. Without a GPU it does nothing."""
    if gpu.device_count():
        gpu.seed_generators(seed, [gpu.current_device()])


def manual_seed_all(seed: int) -> None:
    """Seed the random numbers of all GPUs. Without a GPU it does nothing."""
    gpu.seed_generators(seed, range(gpu.device_count()))


show(globals())
