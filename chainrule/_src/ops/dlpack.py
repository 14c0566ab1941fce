"""DLPack: the memory of a tensor handed to another library, or another library's taken, without a copy.

Memory of a GPU is CuPy's to hand over and to take.
https://dmlc.github.io/dlpack/latest/ describes the capsules. NumPy makes and reads them; since 2.1 it knows those of version 1,
which can say that memory is not to be written to.
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
from chainrule._src.tape.protocol import check_kinds, plain
from chainrule._src.tape.tensor import Tensor, attach, wrap

#: DLPack's number of a device's type, and which one of these it is; the types of memory of NVIDIA's GPUs.
CPU = (1, 0)
CUDA = (2, 13)
_HAS_VERSIONS = not np.__version__.startswith("2.0.")


def export(
    tensor: Tensor, *, stream: object = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """Return a DLPack capsule of a tensor's memory.

    Args:
        stream: None on the CPU; on a GPU, the stream in which the consumer will read, as CUDA numbers it.
        max_version: the latest version of DLPack that the consumer reads, as ``(major, minor)``; None: before 1.
        dl_device: the device to bring it to, as ``__dlpack_device__`` says it.
        copy: whether the consumer wants memory of its own; None: only where it must be (what may not be written to, for a
            consumer that cannot be told so), and False: never.

    Raises:
        BufferError: the tensor carries a derivative, which memory alone would lose; or what is asked for cannot be done.
    """
    if tensor.requires_grad or getattr(tensor._raw, "moving", False):
        raise errors.dlpack_of_derivative(tensor)
    if isinstance(tensor._raw, Foreign):
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return _shared(tensor._raw).__dlpack__(**{key: value for key, value in options.items() if value is not None})
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
    """Where a tensor's memory is, by DLPack's numbers."""
    if isinstance(tensor._raw, Foreign):
        kind, number = _shared(tensor._raw).__dlpack_device__()
        return int(kind), int(number)
    return CPU


def _shared(x: Foreign) -> Any:
    """Another library's array, which can hand over its memory itself."""
    if not hasattr(x.payload, "__dlpack__"):
        raise errors.foreign_has_no_memory(x)
    return x.payload


@op(arrays=False)
def from_dlpack(ext_tensor: Any, *, device: DeviceLike = None, copy: object = None) -> Tensor:
    """Return a tensor that shares the memory of another library's array.

    Args:
        ext_tensor: anything with ``__dlpack__`` and ``__dlpack_device__``.
        device: where to bring it; None: it stays where it is.
        copy: whether to copy the memory; None: where it must be.

    Raises:
        TypeError: it has no ``__dlpack__``. (A capsule is what PyTorch took in former times.)
        BufferError: it carries a derivative, or its memory is on a device that tensors cannot be on.

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
    check_kinds([type(ext_tensor)])  # of masked arrays DLPack has the numbers alone
    kind, number = ext_tensor.__dlpack_device__()
    if kind == CPU[0]:
        out = wrap(to_array(np.from_dlpack(ext_tensor), None, bool(copy)))
    elif kind in CUDA and not gpu.why_not():
        array = gpu.library().from_dlpack(ext_tensor)
        out = wrap(plain(array.copy() if copy else array))
    else:
        raise BufferError(
            f"the memory of this {type(ext_tensor).__module__}.{type(ext_tensor).__name__} is on DLPack's device "
            f"{(int(kind), int(number))}, which tensors cannot be on here: bring it to the CPU first, as x.cpu() or "
            "cupy.asnumpy(x) do"
        )
    moved = out if device is None else out.to(device)
    if moved is not out and copy is False:
        raise BufferError(f"from_dlpack(): memory on {out.device} cannot come to {device} without a copy")
    return moved


attach(__dlpack__=export, __dlpack_device__=device)
