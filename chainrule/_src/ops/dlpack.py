"""DLPack: share a tensor's memory with other libraries, in both directions, without a copy.

CuPy exports and imports GPU memory, and NumPy host memory. https://dmlc.github.io/dlpack/latest/ describes the capsules.
Since 2.1, NumPy supports those of version 1, which can mark memory as read-only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.making import to_array
from chainrule._src.arrays import gpu
from chainrule._src.arrays.device import DeviceLike, gpu_of
from chainrule._src.messages import errors
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.protocol import as_plain_array, check_kinds
from chainrule._src.tape.tensor import Tensor, attach_methods, wrap

#: (DLPack's device type, device number) of the CPU; DLPack's device types of NVIDIA GPU memory.
CPU = (1, 0)
CUDA = (2, 13)
_HAS_VERSIONS = not np.__version__.startswith("2.0.")


def export(
    tensor: Tensor, *, stream: object = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """Return a DLPack capsule of a tensor's memory.

    Args:
        stream: None on the CPU; on a GPU, the CUDA stream in which the consumer will read.
        max_version: the latest version of DLPack that the consumer supports, as ``(major, minor)``; None: before 1.
        dl_device: the device to copy it to, in the form of ``__dlpack_device__``.
        copy: whether the consumer needs a copy. None: only if necessary (read-only memory, for a consumer that does not
            support the read-only flag). False: never.

        Raises:
        BufferError: the tensor carries a derivative, which the memory alone would lose; or the request is not supported.
    """
    if tensor.requires_grad or getattr(tensor._raw, "moving", False):
        raise errors.dlpack_of_derivative(tensor)
    if isinstance(tensor._raw, Foreign):
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return _exportable(tensor._raw).__dlpack__(
            **{key: value for key, value in options.items() if value is not None}
        )
    if stream is not None:
        raise BufferError(f"a tensor on the CPU is in no stream, got stream={stream!r}: leave it out")
    if dl_device is not None and tuple(dl_device) != CPU:
        raise BufferError(f"a tensor on the CPU cannot be exported to DLPack's device {tuple(dl_device)}")
    array = tensor._array()
    versioned = _HAS_VERSIONS and max_version is not None and max_version[0] >= 1
    if versioned:
        return array.__dlpack__(max_version=max_version, copy=copy)
    if not array.flags.writeable and copy is None:
        copy = True
    return (array.copy() if copy else array).__dlpack__()


def device(tensor: Tensor) -> tuple[int, int]:
    """Return DLPack's device type and number of a tensor's memory."""
    if isinstance(tensor._raw, Foreign):
        kind, number = _exportable(tensor._raw).__dlpack_device__()
        return int(kind), int(number)
    return CPU


def _exportable(x: Foreign) -> Any:
    """Return another library's array, which exports its own memory."""
    if not hasattr(x.payload, "__dlpack__"):
        raise errors.foreign_has_no_memory(x)
    return x.payload


@op(arrays=False)
def from_dlpack(ext_tensor: Any, *, device: DeviceLike = None, copy: object = None) -> Tensor:
    """Return a tensor that shares the memory of another library's array.

    Args:
        ext_tensor: anything with ``__dlpack__`` and ``__dlpack_device__``.
        device: the device to copy it to; None: it stays where it is.
        copy: whether to copy the memory; None: only if necessary.

    Raises:
        TypeError: it has no ``__dlpack__``. (Capsules, as in old versions of PyTorch, are not supported.)
        BufferError: it carries a derivative, or its memory is on a device that tensors do not support.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([1., 2.])
    >>> t = cr.from_dlpack(x)
    >>> t.mul_(2)
    tensor([2., 4.], dtype=torch.float64)
    >>> x
    array([2., 4.])
    """
    gpu_of(device)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(f"from_dlpack() takes an array with __dlpack__, not {type(ext_tensor).__name__}")
    check_kinds([type(ext_tensor)])  # a masked array's capsule would lose the mask
    kind, number = ext_tensor.__dlpack_device__()
    if kind == CPU[0]:
        out = wrap(to_array(np.from_dlpack(ext_tensor), None, bool(copy)))
    elif kind in CUDA and not gpu.why_unavailable():
        array = gpu.cupy_module().from_dlpack(ext_tensor)
        out = wrap(as_plain_array(array.copy() if copy else array))
    else:
        raise BufferError(
            f"the memory of this {type(ext_tensor).__module__}.{type(ext_tensor).__name__} is on DLPack's device "
            f"{(int(kind), int(number))}, which tensors do not support here: copy it to the CPU first, with x.cpu() or "
            "cupy.asnumpy(x)"
        )
    result = out if device is None else out.to(device)
    if result is not out and copy is False:
        raise BufferError(f"from_dlpack(): memory on {out.device} cannot come to {device} without a copy")
    return result


attach_methods(__dlpack__=export, __dlpack_device__=device)
