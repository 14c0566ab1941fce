"""GPU computation with CuPy, which is imported at the first use of a GPU.

``device``, ``cupy_arrays`` and the functions that make tensors call this module.

This module handles the differences between NumPy and CuPy: indices out of range, matrices without a decomposition, and
NumPy arrays in calls with CuPy arrays.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction, Params

ndarray = np.ndarray

#: NumPy functions that read at indices along an axis; for indices out of range CuPy wraps around
_READS = {np.take: "indices", np.take_along_axis: "indices"}


@functools.cache
def _import_cupy() -> Any:
    """Return the module CuPy, or the reason why it cannot be imported."""
    try:
        return importlib.import_module("cupy")
    except Exception as error:  # a CUDA library that fails to load is an ImportError or an OSError
        return f"CuPy cannot be imported ({error})"


def why_unavailable() -> str:
    """Return why no GPU is available; an empty text if one is."""
    cupy = _import_cupy()
    if isinstance(cupy, str):
        return cupy
    try:
        return "" if cupy.cuda.runtime.getDeviceCount() else "CuPy finds no GPU"
    except Exception as error:  # CuPy's own class, which cannot be named before CuPy is imported
        return f"CuPy finds no GPU ({error})"


def device_count() -> int:
    """Return how many GPUs CuPy finds: 0 if it is not installed."""
    return 0 if why_unavailable() else int(_import_cupy().cuda.runtime.getDeviceCount())


def cupy_module() -> Any:
    """Return the module ``cupy``, which must be imported already."""
    return sys.modules["cupy"]


def cupy_device(number: int) -> Any:
    """Return CuPy's device object of a GPU; as a context manager it makes new arrays there."""
    return cupy_module().cuda.Device(number)


def current_device() -> int:
    """Return the number of the GPU on which new arrays are made."""
    return int(cupy_module().cuda.runtime.getDevice())


def construct_array(function: str, number: int, *args: object) -> Any:
    """Call one of CuPy's array constructors (such as ``zeros``) on a GPU."""
    with cupy_device(number):
        return getattr(cupy_module(), function)(*args)


def copy_to(x: Any, gpu: int | None) -> Any:
    """Copy a NumPy or CuPy array to a GPU, or (None) to host memory; return it unchanged if it is there."""
    if gpu is None:
        return x if isinstance(x, ndarray) else x.get()
    if not isinstance(x, ndarray) and x.device.id == gpu:
        return x
    with cupy_device(gpu):
        return cupy_module().array(x)


# -- random numbers ----------------------------------------------------------------------------------------------------

_SEEDS: dict[int | None, int] = {}  # by GPU number; None: for GPUs without a seed of their own
_SOURCES: dict[int, Any] = {}


def seed_generators(value: int, gpus: Iterable[int] | None = None) -> None:
    """Seed the generators of GPUs (None: of all GPUs); they restart at the next draw."""
    if gpus is None:
        _SEEDS.clear()
        _SOURCES.clear()
        _SEEDS[None] = value
    else:
        for number in gpus:
            _SEEDS[number] = value
            _SOURCES.pop(number, None)


def draw_random(method: str, number: int, *args: object) -> Any:
    """Call a method of CuPy's random generator on a GPU."""
    with cupy_device(number):
        if number not in _SOURCES:
            value = _SEEDS.get(number, _SEEDS.get(None))
            _SOURCES[number] = cupy_module().random.default_rng(None if value is None else value % 2**63)
        return getattr(_SOURCES[number], method)(*args)


# -- differences between CuPy and NumPy --------------------------------------------------------------------------------


def call_cupy(function: AnyFunction, x: Any, args: tuple[Any, ...], kwargs: Params) -> Any:
    """Call the CuPy counterpart of a NumPy function, on the GPU of the array ``x``.

    NumPy arrays among the arguments are constants of a rule (masks, indices, a seed). They are copied to that GPU.

    Raises:
        IndexError: indices are out of range for an axis (CuPy would wrap them around).
        numpy.linalg.LinAlgError: a matrix cannot be decomposed (CuPy would return NaN).
    """
    with x.device:
        args, kwargs = _on_gpu(args), _on_gpu(kwargs)
        if function in _READS:
            _check_indices(args, kwargs)
        if function is np.where and not hasattr(args[0], "device"):  # a bool: CuPy needs an array
            args = (cupy_module().asarray(args[0]), *args[1:])
        if getattr(function, "__name__", "") == "at":
            return _ufunc_at(function.__self__.__name__, *args)  # type: ignore[attr-defined]
        if isinstance(function, np.ufunc) and function.__name__.startswith("_"):  # a SciPy ufunc under its public name
            function = getattr(_special_functions(), function.__name__[1:], function)
        if getattr(function, "__module__", "") != "numpy.linalg":
            return function(*args, **kwargs)
        if function is np.linalg.solve and args[1].ndim > 1:
            args = _broadcast_stacks(*args)
        with importlib.import_module("cupyx").errstate(linalg="raise"):
            return function(*args, **kwargs)


def _broadcast_stacks(a: Any, b: Any) -> tuple[Any, Any]:
    """Broadcast matrices and right-hand sides to one stack shape, because CuPy does not."""
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    broadcast = cupy_module().broadcast_to
    return broadcast(a, (*stack, *a.shape[-2:])), broadcast(b, (*stack, *b.shape[-2:]))


def _on_gpu(x: Any) -> Any:
    kind = type(x)
    if kind is ndarray:
        return cupy_module().asarray(x)
    if kind is tuple or kind is list:
        return kind([_on_gpu(item) for item in x])
    return {key: _on_gpu(item) for key, item in x.items()} if kind is dict else x


def _ufunc_at(name: str, out: Any, index: Any, values: Any) -> None:
    """Compute ``np.add.at`` with repeated indices; CuPy supports some dtypes, and others are cast to those.

    (CuPy's own dispatch of ``np.add.at`` does not accept a tuple as an index.)
    """
    cupy = cupy_module()
    at = getattr(cupy, name).at
    if out.dtype.kind != "c" and (out.dtype.itemsize > 2 or out.dtype.kind == "f"):
        return at(out, index, values)
    if name != "add":
        raise NotImplementedError(f"{name}.at of {out.dtype}")
    values = cupy.asarray(values)
    if out.dtype.kind != "c":
        int64_out = cupy.zeros(out.shape, np.int64)
        at(int64_out, index, values.astype(np.int64))
        out += int64_out.astype(out.dtype)
        return None
    parts = []
    for part in (values.real, values.imag):
        parts.append(cupy.zeros(out.shape, part.dtype))
        at(parts[-1], index, cupy.ascontiguousarray(part))
    out += parts[0] + 1j * parts[1]
    return None


def _special_functions() -> Any:
    return importlib.import_module("cupyx.scipy.special")


def call_elementwise(function: AnyFunction, *args: Any) -> Any:
    """Call CuPy's counterpart of one of our functions (``erf``, ``i0``), found by its name."""
    own = getattr(_special_functions(), function.__name__.strip("_"), None)
    if own is None:
        raise NotImplementedError
    with args[0].device:
        return own(*args)


def strided_view(x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Return a strided view of an array's memory."""
    return cupy_module().lib.stride_tricks.as_strided(x, shape, strides)


def _check_indices(args: tuple[Any, ...], kwargs: Params) -> None:
    array, index, axis = (*args, *kwargs.values())[:3] if len(args) + len(kwargs) > 2 else (*args[:2], None)
    _check_range(index, array.size if axis is None else array.shape[axis], axis or 0)


def _check_range(index: Any, n: int, axis: int) -> None:
    if index.size:
        low, high = int(index.min()), int(index.max())
        if low < -n or high >= n:
            raise IndexError(
                f"index {low if low < -n else high} is out of bounds for axis {axis} with size {n} (checked here, because "
                "the GPU does not check)"
            )


def element_at(x: Any, index: Any) -> Any:
    """Return ``x[index]``, after checking that integer arrays are in range.

    Raises:
        IndexError: an index is out of range.
    """
    parts = index if isinstance(index, tuple) else (index,)
    if any(hasattr(part, "dtype") for part in parts):
        axis = 0
        for part in parts:
            if part is Ellipsis:
                axis = len(x.shape) - sum(map(_axes_consumed, parts)) + axis
            elif hasattr(part, "dtype") and part.dtype != np.bool_:
                _check_range(part, x.shape[axis], axis)
            axis += _axes_consumed(part)
    with x.device:
        return x[index]


def _axes_consumed(part: Any) -> int:
    """Return how many axes an item of an index consumes."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    return part.ndim if getattr(part, "dtype", None) == np.bool_ else 1
