"""PyTorch's global settings: the default device and dtype, threads, and settings that have no effect here.

The top level of ``chainrule`` exports these functions.
"""

from __future__ import annotations

from typing import Any

from chainrule._src import config
from chainrule._src.arrays.device import DeviceLike, default_device, device, set_default
from chainrule._src.arrays.dtypes import set_default_dtype


def get_default_device() -> device:
    """Return the device of new tensors: the CPU by default."""
    return default_device()


def set_default_device(device: DeviceLike) -> None:
    """Set this thread's device for new tensors, such as "cuda"; ``device=`` and ``with device(...)`` have precedence.

    Raises:
        RuntimeError: the device is not available.
    """
    set_default(device)


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype like PyTorch's older function: by ``FloatTensor``, ``DoubleTensor`` or a name of one."""
    kinds = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16"}
    name = t.rpartition(".")[2] if isinstance(t, str) else t.__name__
    if name not in kinds:
        raise TypeError(f"invalid type object: only floating-point types are supported as the default type, not {name}")
    set_default_dtype(kinds[name])


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Do nothing: the same program always computes the same numbers."""


def are_deterministic_algorithms_enabled() -> bool:
    """Return True: the same program always computes the same numbers."""
    return True


def set_float32_matmul_precision(precision: str) -> None:
    """Do nothing: float32 matrix products always have full float32 precision, which "high" and "medium" allow, too."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', 'medium'")


def get_float32_matmul_precision() -> str:
    """Return the precision of float32 matrix products: "highest"."""
    return "highest"


def set_num_threads(count: int) -> None:
    """Set how many threads share a large step of a compiled function; the default is ``CHAINRULE_THREADS`` in the environment.

    Matrix products run in the BLAS, which has its own number of threads (``OMP_NUM_THREADS`` in the environment, or the
    library threadpoolctl). Results do not depend on either number.

    Args:
        count: at least 1.

    Raises:
        RuntimeError: ``count`` is not a positive integer.

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
    """Return how many threads share a large step of a compiled function; by default, as many as this process may use."""
    return config.THREADS.count
