"""Helpers for the arguments of operations: tensors, their dtypes, ``dim``, and keywords of functions that make tensors.

The functions of ``ops`` and ``nn`` call these helpers.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from chainrule._src.api.declare import store_results
from chainrule._src.api.operands import operand, wrap_around
from chainrule._src.arrays import device as devices
from chainrule._src.arrays import dtypes
from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.device import check_device, gpu_of
from chainrule._src.arrays.types import AnyFunction, Dims, DTypeLike, NumpyArray, Params
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.foreign import Foreign, gpu_number
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.tensor import Tensor, wrap

ndarray = np.ndarray
F = TypeVar("F", bound=AnyFunction)


def tensor_of(name: str, x: Any, accepts: str = "biufc") -> Tensor:
    """Return the operand as a tensor: wrap arrays; raise for numbers, other objects and dtypes that are not accepted."""
    if not isinstance(x, Tensor):
        x = operand(name, 0, x)
        if not hasattr(x, "dtype"):
            raise errors.wrong_operand(name, 0, x)
    else:
        trace_hooks.lift(x)
    if x.dtype.kind not in accepts:
        raise errors.no_kernel(name, x.dtype, accepts)
    tensor: Tensor = x
    return tensor


def takes_tensors(function: F) -> F:
    """Wrap a function so that, where it fails because an argument is not a tensor, the error names that argument."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        try:
            return function(*args, **kwargs)
        except (AttributeError, KeyError, TypeError):
            wrong = errors.no_tensor(function, args, kwargs)
            if wrong is None:
                raise
            try:
                raise wrong from None
            finally:
                del wrong  # its traceback holds this frame, and with it all arguments

    return call  # type: ignore[return-value]


def axes_of(name: str, dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return ``dim`` as axes counted from the end; None and () mean all axes."""
    if dim is None:
        return tuple(range(-ndim, 0))
    if isinstance(dim, (tuple, list)):
        if not dim:
            return tuple(range(-ndim, 0))
        found = [errors.check_dim(name, d, ndim) for d in dim]
        if len(set(found)) != len(found):
            raise RuntimeError(f"dim {found[-1]} appears multiple times in the list of dims: {name} got {dim}")
        return tuple(f - ndim for f in found) if ndim else ()
    index = errors.check_dim(name, dim, ndim)
    return (index - ndim,) if ndim else ()


def axis_of(name: str, dim: SupportsIndex, ndim: int) -> int | None:
    """Return one ``dim`` as an axis counted from the end; None for a 0-d tensor."""
    index = errors.check_dim(name, dim, ndim)
    return index - ndim if ndim else None


def to_float(x: Any, dtype: DTypeLike = None) -> Tensor:
    """Cast a tensor to ``dtype``; without one, cast integers and booleans to the default float."""
    if dtype is not None:
        return cast(x, dtypes.as_dtype(dtype))
    return cast(x, dtypes.default_dtype()) if x.dtype.kind in "iub" else x


def to_sum_dtype(x: Any, dtype: DTypeLike = None) -> Tensor:
    """Cast a tensor to the dtype that PyTorch sums and multiplies in: int64 for integers and booleans."""
    if dtype is not None:
        return cast(x, dtypes.as_dtype(dtype))
    return cast(x, dtypes.int64) if x.dtype.kind in "iub" else x


def cast_source(name: str, source: Tensor, destination: Tensor) -> Tensor:
    """Cast values that an operation writes into a tensor to its dtype.

    Raises:
        RuntimeError: the values require a gradient, and the destination has an integer dtype.
    """
    if source.requires_grad and destination.dtype.kind not in "fc" and is_recording():
        raise errors.no_gradient_in_dtype(name, destination.dtype)
    return cast(source, destination.dtype)


def number_in(value: Any, dtype: Any) -> NumpyArray:
    """Return a number as a 0-d array of a dtype; negative numbers wrap around in unsigned dtypes.

    Raises:
        RuntimeError: the number is out of the dtype's range, or complex and the dtype real.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, complex) and dtype.kind != "c":
        raise errors.complex_into_real(dtype)
    if type(value) is int and dtype.kind in "iu" and dtype.itemsize < 8:
        info = np.iinfo(dtype)
        if not (-info.max if dtype.kind == "u" else info.min) <= value <= info.max:
            raise RuntimeError(
                f"value cannot be converted to type {dtype}_t without overflow: {value} is not between {info.min} and "
                f"{info.max}"
            )
        value = wrap_around(value, dtype)
    return np.asarray(value).astype(dtype)


def with_creation_keywords(function: F) -> F:
    """Add to a function that makes tensors the keywords that all such functions have.

    ``out=`` also determines the default dtype, and ``size=`` can replace separate sizes. ``device`` is by default the device of
    the first argument if that is a tensor. ``layout``, ``pin_memory`` and ``memory_format`` each allow one value only.
    """
    sizes = function.__code__.co_flags & inspect.CO_VARARGS
    follows = function.__code__.co_varnames[:1] in (("self",), ("input",))

    @functools.wraps(function)
    def call(*args: object, out: Any = None, **kwargs: Any) -> Any:
        device = kwargs.pop("device", None) if kwargs else None
        if kwargs:
            for name in ("layout", "pin_memory", "memory_format"):
                kwargs.pop(name, None)
            if sizes and "size" in kwargs:
                args = (*args, kwargs.pop("size"))
        if out is None:
            gpu = gpu_number(args[0]) if device is None and follows and args else gpu_of(device)
            return function(*args, **kwargs) if gpu is None else _on_gpu(gpu, function, args, kwargs)
        check_device(device)
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = getattr(out, "dtype", None)
        return store_results(function.__name__, function(*args, **kwargs), out)

    return call  # type: ignore[return-value]


def _on_gpu(gpu: int, function: AnyFunction, args: tuple[object, ...], kwargs: Params) -> Tensor:
    """Call a function that makes a tensor, and put the result on a GPU; the function may use ``device`` to make it there."""
    requires_grad = kwargs.pop("requires_grad", False)
    result = placed(function(*args, **kwargs, device=gpu), gpu)
    return result.requires_grad_(requires_grad) if requires_grad else result


def placed(x: Tensor, gpu: int | None) -> Tensor:
    """Copy a tensor to the GPU with this number, or (None) to host memory; return it if it is there. The copy is recorded."""
    source = gpu_number(x)
    return x if source == gpu else bind(TABLE["to_device"], (x,), {"source": source, "target": gpu})


def constant_on_device_of(x: Any, constant: Any) -> Tensor:
    """Return a constant or computed values as a tensor on the device of another tensor."""
    return placed(wrap(constant), None if type(x._raw) is ndarray else gpu_number(x))


def numbers_of(x: Tensor) -> NumpyArray | None:
    """Return a tensor's values from any device; None in a transformation or for lazy arrays, where they are not available."""
    if is_array(x._raw):
        return x._raw
    return x._raw.read() if type(x._raw) is Foreign and x.is_cuda else None


def new_array(function: str, gpu: int | None, *args: object) -> Any:
    """Call a NumPy function that makes an array, on the GPU with this number, or (None) in host memory."""
    return getattr(np, function)(*args) if gpu is None else devices.gpu().construct_array(function, gpu, *args)
