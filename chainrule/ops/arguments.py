"""What the operations share about their arguments: the tensor, its dtype, and ``dim`` under both its names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from chainrule import errors
from chainrule.core.dispatch import cast
from chainrule.core.faces import around, operand
from chainrule.core.inplace import write_out
from chainrule.core.tensor import Tensor
from chainrule.types import dtypes
from chainrule.types.device import check_device

F = TypeVar("F", bound=Callable[..., Any])


def tensor_of(name: str, x: Any, accepts: str = "biufc") -> Any:
    """The operand as a tensor: arrays are wrapped, numbers and the rest refused, and so are other kinds of dtype."""
    if not isinstance(x, Tensor):
        x = operand(name, 0, x)
        if not hasattr(x, "dtype"):
            raise errors.wrong_operand(name, 0, x)
    if x.dtype.kind not in accepts:
        raise errors.no_kernel(name, x.dtype, accepts)
    return x


def takes_tensors(function: F) -> F:
    """Say which argument should have been a tensor, where a function fails because it is none. (It is called as it is.)"""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (AttributeError, KeyError, TypeError):
            wrong = errors.no_tensor(function, args, kwargs)
            if wrong is None:
                raise
            raise wrong from None

    return call  # type: ignore[return-value]


def axes_of(name: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """``dim`` as axes counted from the end; None and () are all of them."""
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


def axis_of(name: str, dim: Any, ndim: int) -> int | None:
    """One ``dim`` as an axis counted from the end; None for a 0-d tensor, which has none."""
    index = errors.check_dim(name, dim, ndim)
    return index - ndim if ndim else None


def floating(x: Any, dtype: Any = None) -> Any:
    """The tensor in ``dtype``; without one, integers and booleans become the default float."""
    if dtype is not None:
        return cast(x, dtypes.as_dtype(dtype))
    return cast(x, dtypes.default_dtype()) if x.dtype.kind in "iub" else x


def summed(x: Any, dtype: Any = None) -> Any:
    """The tensor in the dtype that PyTorch adds and multiplies in: int64 for integers and booleans."""
    if dtype is not None:
        return cast(x, dtypes.as_dtype(dtype))
    return cast(x, dtypes.int64) if x.dtype.kind in "iub" else x


def number_in(value: Any, dtype: Any) -> Any:
    """A number as a 0-d array of a dtype; below zero, unsigned integers count from their other end.

    Raises:
        RuntimeError: the dtype does not reach as far, or is real and the number complex.
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
        value = around(value, dtype)
    return np.asarray(value).astype(dtype)


#: NumPy's names for arguments, which PyTorch takes, too
_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


def numpy_names(scope: dict[str, Any], **more: dict[str, str]) -> None:
    """Let a module's public functions that have ``dim`` be called with NumPy's ``axis``, ``keepdims``, ``x`` or ``a``.

    ``more`` has other names for arguments of some functions: where overloads of PyTorch differ, or its methods.
    """
    renaming: dict[Any, Any] = {}  # a function may have two names
    for name, function in list(scope.items()):
        if type(function) is FunctionType and function.__module__ == scope["__name__"] and not name.startswith("_"):
            code = inspect.unwrap(function).__code__
            own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            also = dict(more.get(function.__name__, {}))
            if "dim" in own and "axis" not in own:
                also |= {theirs: ours for theirs, ours in _NUMPY_NAMES.items() if ours in own and theirs not in own}
            if also:
                scope[name] = renaming.setdefault(function, _renaming(function, also))


def _renaming(function: F, also: dict[str, str]) -> F:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return function(*args)
        for name in also.keys() & kwargs.keys():
            if also[name] in kwargs:
                raise TypeError(f"{function.__name__}() got {also[name]!r} twice: {name!r} is another name for it")
            kwargs[also[name]] = kwargs.pop(name)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def takes_out(function: F) -> F:
    """Give a function that returns one or several tensors the argument ``out=``."""

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return function(*args, **kwargs)
        return _into(function.__name__, function(*args, **kwargs), out)

    return call  # type: ignore[return-value]


def creates(function: F) -> F:
    """Give a function that makes new tensors the keywords that all such functions have.

    ``out=``, whose dtype it takes if the caller says nothing else, ``size=`` for sizes one by one, and ``device``,
    ``layout``, ``pin_memory`` and ``memory_format``, of which there is one each.
    """
    sizes = function.__code__.co_flags & inspect.CO_VARARGS

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if kwargs:
            check_device(kwargs.pop("device", None))
            for name in ("layout", "pin_memory", "memory_format"):
                kwargs.pop(name, None)
            if sizes and "size" in kwargs:
                args = (*args, kwargs.pop("size"))
        if out is None:
            return function(*args, **kwargs)
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = getattr(out, "dtype", None)
        return _into(function.__name__, function(*args, **kwargs), out)

    return call  # type: ignore[return-value]


def _into(name: str, result: Any, out: Any) -> Any:
    if not isinstance(result, tuple):
        return write_out(out, result)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(result)} Tensors, not {type(out).__name__}")
    written = [write_out(o, r) for o, r in zip(out, result, strict=True)]
    return type(result)(*written) if hasattr(result, "_fields") else tuple(written)
