"""``device``, ``layout``, ``memory_format``: where and how a tensor lies; here always on the CPU, as NumPy has it."""

from enum import Enum
from typing import Any

#: devices that PyTorch knows; a program may name one that it does not use
_TYPES = ("cpu", "cuda", "fpga", "hip", "hpu", "ipu", "lazy", "maia", "meta", "mps", "mtia", "vulkan", "xla", "xpu")


class device:
    """A device in PyTorch's spelling, so that code written with devices in mind runs. Tensors are on the CPU only.

    Args:
        type: ``"cpu"``, ``"cpu:0"`` or another device.
        index: a number for the device, or none; it has no meaning on the CPU.

    Raises:
        RuntimeError: there is no such type of device; or, when it is used, it is not the CPU.
        TypeError: if ``type`` is neither a string nor a device.

    Example:
        >>> device("cpu")
        device(type='cpu')
        >>> str(device("cpu", 0))
        'cpu:0'
        >>> device("cuda").type
        'cuda'
        >>> check_device("cuda")
        Traceback (most recent call last):
            ...
        RuntimeError: device 'cuda' is not available: this build computes on the CPU with NumPy; \
use device 'cpu', or leave the device out
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: "str | device", index: int | None = None) -> None:
        if isinstance(type, device):
            index = type.index if index is None else index
            type = type.type
        if isinstance(type, int) and not isinstance(type, bool):
            raise _unavailable(str(type))
        if not isinstance(type, str):
            raise TypeError(
                "device() received an invalid combination of arguments: expected a string "
                f"such as 'cpu', or a device, got {type.__class__.__name__} {type!r}"
            )
        name, colon, number = type.partition(":")
        if name not in _TYPES:
            raise RuntimeError(f"Expected one of {', '.join(_TYPES)} device type at start of device string: {name}")
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
        """Make this the default device within a block; the CPU already is."""
        check_device(self)
        return self

    def __exit__(self, *error: object) -> None:
        pass


def check_device(where: Any) -> None:
    """Raise for what is not the CPU (None is)."""
    if where is not None and (where if isinstance(where, device) else device(where)).type != "cpu":
        raise _unavailable(str(where))


def _unavailable(name: str) -> RuntimeError:
    return RuntimeError(
        f"device '{name}' is not available: this build computes on the CPU with NumPy; "
        "use device 'cpu', or leave the device out"
    )


class layout(Enum):
    """How a tensor's elements are found: by strides."""

    strided = "torch.strided"

    def __repr__(self) -> str:
        return self.value

    __str__ = __repr__


class memory_format(Enum):
    """In which order a copy lies in memory; a request, which changes no number."""

    contiguous_format = "torch.contiguous_format"
    preserve_format = "torch.preserve_format"

    def __repr__(self) -> str:
        return self.value

    __str__ = __repr__


strided = layout.strided
contiguous_format, preserve_format = memory_format
