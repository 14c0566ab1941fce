"""GPUs: whether there are any, which, and their memory. What there is, CuPy says; without it there is the CPU alone.

>>> import chainrule as torch
>>> torch.device("cuda" if torch.cuda.is_available() else "cpu")  # on a computer without a GPU
device(type='cpu')
"""

from __future__ import annotations

from typing import Any

from chainrule._src.arrays import gpu
from chainrule._src.arrays.device import DeviceLike, gpu_of
from chainrule._src.arrays.device import device as Device
from chainrule._src.messages import errors


def is_available() -> bool:
    """Return whether tensors can be on a GPU: CuPy is installed, and finds one."""
    return gpu.count() > 0


def device_count() -> int:
    """How many GPUs there are for tensors."""
    return gpu.count()


def is_initialized() -> bool:
    """Return whether there is a GPU that could be in use."""
    return is_available()


def init() -> None:
    """Nothing to do, where there is a GPU: CuPy starts with its first array.

    Raises:
        RuntimeError: there is none.
    """
    _number(None)


def _number(device: DeviceLike) -> int:
    """Return the number of a GPU that a user names: a number, a device, or None for the current one."""
    if isinstance(device, int):
        device = Device("cuda", device)
    number = gpu_of("cuda" if device is None else device)
    if number is None:
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return number


def current_device() -> int:
    """Return the number of the GPU that new tensors on "cuda" are made on."""
    return _number(None)


def set_device(device: DeviceLike) -> None:
    """Have new tensors on "cuda" on another GPU."""
    gpu.device(_number(device)).use()


def get_device_name(device: DeviceLike = None) -> str:
    """What the maker calls a GPU."""
    return str(_properties(device)["name"].decode())


def _properties(device: DeviceLike) -> Any:
    number = _number(device)
    return gpu.library().cuda.runtime.getDeviceProperties(number)


def get_device_capability(device: DeviceLike = None) -> tuple[int, int]:
    """Return the major and minor number of what a GPU can do."""
    properties = _properties(device)
    return int(properties["major"]), int(properties["minor"])


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Return the free bytes and all bytes of a GPU."""
    free, total = gpu.device(_number(device)).mem_info
    return int(free), int(total)


def memory_allocated(device: DeviceLike = None) -> int:
    """How many bytes of a GPU's memory arrays have, of CuPy's pool; 0 without a GPU."""
    return _pooled("used_bytes", device)


def memory_reserved(device: DeviceLike = None) -> int:
    """How many bytes of a GPU's memory CuPy's pool has, used or kept; 0 without a GPU."""
    return _pooled("total_bytes", device)


def _pooled(method: str, device: DeviceLike) -> int:
    if not gpu.count():
        return 0
    with gpu.device(_number(device)):
        return int(getattr(gpu.library().get_default_memory_pool(), method)())


def empty_cache() -> None:
    """Give the memory that CuPy keeps for later arrays back to the GPUs; nothing to do without one."""
    if gpu.count():
        gpu.library().get_default_memory_pool().free_all_blocks()
        gpu.library().get_default_pinned_memory_pool().free_all_blocks()


def synchronize(device: DeviceLike = None) -> None:
    """Wait until a GPU has computed what it was asked to.

    Raises:
        RuntimeError: there is no GPU.
    """
    gpu.device(_number(device)).synchronize()


def manual_seed(seed: int) -> None:
    """Start the random numbers of the current GPU anew, from a seed; nothing to do without one."""
    if gpu.count():
        gpu.seed(seed, [gpu.current()])


def manual_seed_all(seed: int) -> None:
    """As :func:`manual_seed`, of all GPUs."""
    gpu.seed(seed, range(gpu.count()))


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, ["is_available", "device_count"], __name__)
