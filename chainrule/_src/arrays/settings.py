"""Settings that PyTorch's programs make: those that hold here are taken, others say why not."""

from __future__ import annotations

from typing import Any

from chainrule._src import config
from chainrule._src.arrays.device import DeviceLike, default_device, device, set_default
from chainrule._src.arrays.dtypes import set_default_dtype


def get_default_device() -> device:
    """Where new tensors are: on the CPU, unless a program says otherwise."""
    return default_device()


def set_default_device(device: DeviceLike) -> None:
    """Have this thread's new tensors on a device, such as "cuda"; what ``device=`` or ``with device(...)`` say goes before.

    Raises:
        RuntimeError: the device is not to be had.
    """
    set_default(device)


def set_default_tensor_type(t: Any) -> None:
    """PyTorch's old :func:`set_default_dtype`: ``FloatTensor`` or ``DoubleTensor``, or the name of one."""
    kinds = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16"}
    name = t.rpartition(".")[2] if isinstance(t, str) else t.__name__
    if name not in kinds:
        raise TypeError(f"invalid type object: only floating-point types are supported as the default type, not {name}")
    set_default_dtype(kinds[name])


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Nothing to do: the same program computes the same numbers."""


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether the same program computes the same numbers: True."""
    return True


def set_float32_matmul_precision(precision: str) -> None:
    """Nothing to do: products of float32 matrices are as exact as float32 is, which "high" and "medium" allow, too."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', 'medium'")


def get_float32_matmul_precision() -> str:
    """How exact products of float32 matrices are: "highest"."""
    return "highest"


def set_num_threads(count: int) -> None:
    """How many threads share a large step of a compiled function; the environment's ``CHAINRULE_THREADS`` says it first.

    Products of matrices are the BLAS's, which has threads of its own (``OMP_NUM_THREADS`` in the environment, or the
    library threadpoolctl). Results do not depend on either number.

    Args:
        count: at least 1.

    Raises:
        RuntimeError: it is not a positive integer.

    Example:
        >>> import chainrule as cr
        >>> before = cr.get_num_threads()
        >>> cr.set_num_threads(2)
        >>> cr.get_num_threads()
        2
        >>> cr.set_num_threads(before)
    """
    if type(count) is not int or count < 1:
        raise RuntimeError(f"set_num_threads expects a positive integer, but got {count!r}")
    config.THREADS.choose(count)


def get_num_threads() -> int:
    """How many threads share a large step of a compiled function: what was set, or as many as this process may use."""
    return config.THREADS.count
