"""``device``, ``layout``, ``memory_format``: a tensor's device (the CPU, or a GPU with CuPy) and its memory layout.

``Tensor.device`` is a ``device``, and functions that make tensors call ``gpu_of``.
"""

import importlib
import threading
from enum import Enum
from typing import Any, TypeAlias

#: PyTorch's device types; a program may name one without using it
_TYPES = ("cpu", "cuda", "fpga", "hip", "hpu", "ipu", "lazy", "maia", "meta", "mps", "mtia", "vulkan", "xla", "xpu")


def gpu() -> Any:
    """Return ``arrays.gpu``, which is imported with the first device other than the CPU."""
    return importlib.import_module("chainrule._src.arrays.gpu")


class device:
    """A device in PyTorch's notation: the CPU, or a GPU if CuPy is installed and finds one.

    Args:
        type: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, the number of a GPU, or another device type that is never used.
        index: the number of the device; None for the current GPU. It has no meaning on the CPU.

    Raises:
        RuntimeError: there is no such type of device; or, at its first use, the device is not available.
        TypeError: if ``type`` is neither a string nor a device.

    Example:
        >>> device("cpu")
        device(type='cpu')
        >>> str(device("cpu", 0))
        'cpu:0'
        >>> device("cuda").type
        'cuda'
        >>> from chainrule import ones
        >>> ones(2, device="cuda")
        Traceback (most recent call last):
            ...
        RuntimeError: device 'cuda' is not available: this build computes on the CPU with NumPy; \
use device 'cpu', or leave the device out; an NVIDIA GPU needs CuPy (pip install chainrule[cuda]): ...
    """

    __module__ = "chainrule"
    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: "str | int | device", index: int | None = None) -> None:
        if isinstance(type, device):
            index = type.index if index is None else index
            type = type.type
        if isinstance(type, int) and not isinstance(type, bool):
            if not gpu().device_count():
                raise _unavailable(str(type))
            index, type = type, "cuda"
        if not isinstance(type, str):
            raise TypeError(
                "device() received an invalid combination of arguments: expected a string "
                f"such as 'cpu', or a device, got {type.__class__.__name__} {type!r}"
            )
        name, colon, number = type.partition(":")
        if name not in _TYPES:
            fix = ". An NVIDIA GPU is 'cuda'" if name.lower() == "gpu" else ""
            raise RuntimeError(
                f"Expected one of {', '.join(_TYPES)} device type at start of device string: {name}{fix}"
            )
        if colon:
            if index is not None:
                raise RuntimeError(
                    "type (string) must not include an index because index was passed "
                    f"explicitly: {type}; write device('{name}', {index})"
                )
            if not (number.isascii() and number.isdecimal()):
                raise RuntimeError(f"Invalid device string: '{type}'; write 'cpu' or 'cpu:0'")
            index = int(number)
        if index is not None and index < 0:
            raise RuntimeError("Device index must not be negative; leave it out for the CPU")
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a device is immutable: cannot set '{name}'; create a new device")

    def __repr__(self) -> str:
        number = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{number})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type,) if self.index is None else (self.type, self.index)

    def __enter__(self) -> "device":
        """Make this the default device within a block."""
        check_device(self)
        _DEFAULTS.within.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _DEFAULTS.within.pop()


#: the location of an array; None for host memory, or for that of the other arrays
DeviceLike: TypeAlias = device | str | int | None


class _Defaults(threading.local):
    """The default devices of a thread: ``set_default``'s, and those of the active ``with`` blocks."""

    def __init__(self) -> None:
        self.chosen: list[device] = []
        self.within: list[device] = []


_DEFAULTS = _Defaults()


def default_device() -> device:
    """Return this thread's default device for new tensors."""
    within = _DEFAULTS.within or _DEFAULTS.chosen
    return within[-1] if within else device("cpu")


def set_default(where: DeviceLike) -> None:
    """Set this thread's default device for new tensors (None: the CPU)."""
    check_device(where)
    _DEFAULTS.chosen = [] if where is None else [where if isinstance(where, device) else device(where)]


def gpu_of(where: DeviceLike) -> int | None:
    """Return the number of the GPU that ``where`` names (None: the default device); None for the CPU.

    Raises:
        RuntimeError: the device is not available.
    """
    if where is None:
        if not (_DEFAULTS.within or _DEFAULTS.chosen):
            return None
        where = default_device()
    named = where if isinstance(where, device) else device(where)
    if named.type == "cpu":
        return None
    if named.type != "cuda" or gpu().why_unavailable():
        raise _unavailable(str(where))
    if named.index is None:
        return gpu().current_device()
    if named.index >= gpu().device_count():
        raise RuntimeError(
            f"CUDA error: invalid device ordinal: {named} is requested, and there are {gpu().device_count()} GPUs, counted from 0"
        )
    return named.index


def check_device(where: DeviceLike) -> None:
    """Raise if a device is not available (None, the default, is)."""
    if where is not None:
        gpu_of(where)


def _unavailable(name: str) -> RuntimeError:
    more = (
        f"; an NVIDIA GPU needs CuPy (pip install chainrule[cuda]): {gpu().why_unavailable()}"
        if name[:4] == "cuda"
        else ""
    )
    return RuntimeError(
        f"device '{name}' is not available: this build computes on the CPU with NumPy; "
        f"use device 'cpu', or leave the device out{more}"
    )


class layout(Enum):
    """The memory layout of a tensor: always strided."""

    __module__ = "chainrule"
    strided = "torch.strided"

    def __repr__(self) -> str:
        return self.value

    __str__ = __repr__


class memory_format(Enum):
    """The requested memory order of a copy; it does not change any values."""

    __module__ = "chainrule"
    contiguous_format = "torch.contiguous_format"
    preserve_format = "torch.preserve_format"

    def __repr__(self) -> str:
        return self.value

    __str__ = __repr__


strided = layout.strided
contiguous_format, preserve_format = memory_format
