"""The Array API standard, 2024.12: NumPy's functions for Arrays and tensors, returning Arrays.

``x.__array_namespace__()`` of an Array or a Tensor returns this module, for libraries written against the standard.
NumPy's main namespace conforms to the standard, and its functions accept Arrays. This module creates new arrays as Arrays
and converts tensors to Arrays, which have NumPy's promotion and methods (``x.size`` is a number).

>>> import chainrule as cr
>>> x = cr.tensor([1., 2., 3.], requires_grad=True)
>>> xp = x.__array_namespace__()
>>> y = xp.sum(xp.square(xp.asarray(x)))
>>> y.backward()
>>> y.size, x.grad
(1, tensor([2., 4., 6.]))
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, SupportsIndex

import numpy as np

from chainrule._src.api.array import Array, array_of, holds, is_plain
from chainrule._src.api.declare import OPERATIONS
from chainrule._src.api.public_modules import show
from chainrule._src.arrays import gpu
from chainrule._src.arrays.device import DeviceLike, check_device
from chainrule._src.arrays.dtype import dtype as Dtype
from chainrule._src.arrays.libraries import is_foreign
from chainrule._src.arrays.types import AnyFunction, DTypeLike, NumpyDType, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import dlpack
from chainrule._src.tape.protocol import as_plain_array, find, find_ufunc
from chainrule._src.tape.tensor import Tensor, wrap

__array_api_version__ = "2024.12"
_VERSIONS = ("2021.12", "2022.12", "2023.12", __array_api_version__)


def namespace(api_version: str | None = None) -> ModuleType:
    """Return this module if it conforms to the given version of the standard.

    Raises:
        ValueError: the version is unknown or later.
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"unsupported version of the Array API: {api_version!r}; supported are {', '.join(_VERSIONS)}")
    return sys.modules[__name__]


# -- arguments and results ---------------------------------------------------------------------------------------------


_UNCHANGED = frozenset({Array, int, float, bool, type(None)})


def _as_argument(x: Any) -> Any:
    """Return an argument of a NumPy function with tensors converted to Arrays, also in lists."""
    if type(x) in _UNCHANGED:
        return x
    if isinstance(x, Tensor):
        return array_of(x)
    if isinstance(x, Dtype):
        return x.dtype
    if is_foreign(type(x)):
        return array_of(wrap(as_plain_array(x)))
    return type(x)([_as_argument(item) for item in x]) if type(x) in (list, tuple) else x


def _as_result(x: object) -> Any:
    """Return a result with NumPy arrays and scalars converted to Arrays."""
    if type(x) is Array:
        return x
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc":
        return array_of(wrap(np.asarray(x)))
    if isinstance(x, tuple):
        parts = [_as_result(part) for part in x]
        return x._make(parts) if hasattr(x, "_make") else tuple(parts)
    return [_as_result(part) for part in x] if type(x) is list else x


def _on_arrays(function: AnyFunction) -> AnyFunction:
    """Wrap a NumPy function so that it accepts Arrays and tensors and returns Arrays."""

    @functools.wraps(function)
    def call(*args: Any, device: str | None = None, **kwargs: SupportsIndex) -> Any:
        check_device(device)
        prepare = _as_argument if _has_rule(function) else _as_plain
        result = _as_result(function(*map(prepare, args), **{name: prepare(x) for name, x in kwargs.items()}))
        return result if device is None else result.to_device(device)

    return call


def _has_rule(function: AnyFunction) -> bool:
    if hasattr(function, "takes_arrays"):
        return True
    return (find_ufunc(function) if isinstance(function, np.ufunc) else find(function)) is not None


def _as_plain(x: object) -> Any:
    """Return an argument of a function without a rule, with constants converted to NumPy arrays."""
    x = _as_argument(x)
    if isinstance(x, (list, tuple)):
        return type(x)([_as_plain(item) for item in x])
    return np.asarray(x._tensor._array()) if isinstance(x, Array) and is_plain(x) else x


def _functions_of(module: ModuleType) -> Params:
    """Return the public names of a NumPy module except submodules, with functions wrapped by ``_on_arrays``."""
    found = {}
    for name in set(module.__all__) - getattr(module, "__numpy_submodules__", set()):
        value = getattr(module, name)
        found[name] = _on_arrays(value) if callable(value) and not isinstance(value, type) else value
    return found


def _extension(module: ModuleType) -> ModuleType:
    extension = ModuleType(f"{__name__}.{module.__name__.rpartition('.')[2]}", module.__doc__)
    extension.__dict__.update(_functions_of(module))
    return extension


# -- constructors ------------------------------------------------------------------------------------------------------


def asarray(obj: object, /, *, dtype: DTypeLike = None, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """Return an Array from numbers, nested sequences, an array or a tensor.

    Args:
        obj: the data. The Array of a tensor shares its graph and its memory.
        dtype: the dtype, if it differs.
        device: the device; None leaves it unchanged.
        copy: whether to copy the memory; None copies only if necessary.

    Raises:
        ValueError: ``copy=False``, and a copy is necessary.
    """
    check_device(device)
    x, dtype = _as_argument(obj), _as_argument(dtype)
    if not isinstance(x, Array):
        x = _as_array(x, dtype, copy)
    elif dtype is not None and x.dtype != dtype:
        if copy is False:
            raise ValueError(f"an array of {x.dtype} cannot be converted to {np.dtype(dtype)} without a copy")
        x = _on_arrays(np.astype)(x, dtype)
    elif copy:
        x = x.copy()
    return x if device is None else x.to_device(device)


def _as_array(x: object, dtype: DTypeLike, copy: bool | None) -> Array:
    if isinstance(x, (list, tuple)) and holds(x, Array):
        if copy is False:
            raise ValueError("a list of arrays cannot be converted to one array without a copy")
        return Array(x, dtype)
    array = np.asarray(as_plain_array(x), dtype, copy=copy)
    if array.dtype.kind not in "biufc":
        raise errors.not_numbers(x, array.dtype)
    return array_of(wrap(array))


def from_dlpack(x: object, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """Return an Array that shares the memory of another library's array. See :func:`chainrule.from_dlpack`."""
    return array_of(dlpack.from_dlpack(x, device=device, copy=copy))


# -- functions that differ between the standard and NumPy --------------------------------------------------------------


def broadcast_arrays(*arrays: object) -> list[Array]:
    """Return views of the arrays, broadcast to their common shape."""
    return [asarray(x) for x in np.broadcast_arrays(*map(_as_argument, arrays))]


def clip(x: TensorLike, /, min: object = None, max: object = None) -> Array:
    """Clamp the elements between the bounds; None means no bound."""
    return asarray(np.clip(_as_argument(x), _as_argument(min), _as_argument(max)))


def sort(x: TensorLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the elements sorted along an axis."""
    ascending = np.sort(_as_argument(x), axis=axis)
    return asarray(np.flip(ascending, axis) if descending else ascending)


def argsort(x: TensorLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the indices that sort the elements along an axis, stably."""
    x = _as_argument(x)
    if not descending:
        return asarray(np.argsort(x, axis=axis, stable=True))
    order = np.argsort(np.flip(x, axis), axis=axis, stable=True)
    return asarray(np.flip(np.shape(x)[axis] - 1 - order, axis))


class __array_namespace_info__:
    """The capabilities, devices and dtypes of this namespace, in NumPy's format."""

    def __init__(self) -> None:
        self._numpy = np.__array_namespace_info__()  # since NumPy 2.1

    def capabilities(self) -> Any:
        """Return the optional capabilities: boolean indexing and data-dependent shapes."""
        return self._numpy.capabilities()

    def default_device(self) -> str:
        """Return the device of arrays created without a device."""
        return "cpu"

    def devices(self) -> list[str]:
        """Return all devices."""
        return ["cpu", *[f"cuda:{number}" for number in range(gpu.device_count())]]

    def default_dtypes(self, *, device: DeviceLike = None) -> Any:
        """Return the default dtypes by kind."""
        check_device(device)
        return self._numpy.default_dtypes()

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> Any:
        """Return the supported dtypes by name, of all kinds or of the given ones."""
        check_device(device)
        return self._numpy.dtypes(kind=kind)


def finfo(type: object, /) -> SimpleNamespace:
    """Return the properties of a floating-point dtype, or of an array's dtype, as Python numbers."""
    known = np.finfo(_dtype_of(type))
    numbers = {name: float(getattr(known, name)) for name in ("eps", "max", "min", "smallest_normal", "tiny")}
    return SimpleNamespace(bits=known.bits, dtype=known.dtype, **numbers)


def iinfo(type: DTypeLike, /) -> Any:
    """Return the ``bits``, ``min`` and ``max`` of an integer dtype, or of an array's dtype."""
    return np.iinfo(_dtype_of(type))


def _dtype_of(x: Any) -> NumpyDType:
    return np.dtype(x if isinstance(x, type) else getattr(x, "dtype", x))


def _frequencies(function: AnyFunction) -> Callable[..., Array]:
    @functools.wraps(function)
    def call(n: int, /, *, d: float = 1.0, dtype: DTypeLike = None, device: DeviceLike = None) -> Array:
        return asarray(function(n, d), dtype=dtype, device=device)

    del call.__wrapped__
    return call


#: from here on ``bool``, ``all`` and other builtin names in this module refer to NumPy's
_NUMPY = _functions_of(np)
globals().update({name: value for name, value in _NUMPY.items() if name not in globals()})
fft, linalg = _extension(np.fft), _extension(np.linalg)
for _function in (np.fft.fftfreq, np.fft.rfftfreq):
    setattr(fft, _function.__name__, _frequencies(_function))


def __getattr__(name: str) -> Any:
    """Return ``special``, SciPy's special functions, on first use: SciPy's own dispatch looks them up here."""
    if name == "special" and importlib.util.find_spec("scipy") is not None:
        functions = {**importlib.import_module("chainrule._src.ops.scipy_special").UFUNCS_OF_SCIPY, "sinc": np.sinc}
        functions |= {key: OPERATIONS[f"special.{key}"].public for key in ("multigammaln", "polygamma")}
        globals()[name] = SimpleNamespace(**{key: _on_arrays(function) for key, function in functions.items()})
        return globals()[name]
    if name in getattr(np, "__numpy_submodules__", ()):
        return getattr(np, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = sorted({"asarray", "fft", "linalg", *_NUMPY})

show(globals())
