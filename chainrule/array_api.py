"""The Array API standard, 2024.12: NumPy's functions, which take Arrays and tensors and give Arrays.

This module is what ``x.__array_namespace__()`` gives for an Array and for a Tensor, and what libraries that are written
against the standard compute with. NumPy's main namespace conforms to it, and its functions compute on Arrays already. What is
left for this module is that arrays are made as Arrays, and that tensors are taken by their NumPy face, with NumPy's
promotion and methods, so that ``x.size`` is a number.

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
from chainrule._src.arrays import gpu
from chainrule._src.arrays.device import DeviceLike, check_device
from chainrule._src.arrays.dtype import dtype as Dtype
from chainrule._src.arrays.libraries import is_foreign
from chainrule._src.arrays.types import AnyFunction, DTypeLike, NumpyDType, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import dlpack
from chainrule._src.tape.protocol import FUNCTIONS, LATER, UFUNCS, load, plain
from chainrule._src.tape.tensor import Tensor, wrap

__array_api_version__ = "2024.12"
_VERSIONS = ("2021.12", "2022.12", "2023.12", __array_api_version__)


def namespace(api_version: str | None = None) -> ModuleType:
    """This module, for a version of the standard that it conforms to.

    Raises:
        ValueError: there is no such version, or it came later.
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"no such version of the Array API here: {api_version!r}; there are {', '.join(_VERSIONS)}")
    return sys.modules[__name__]


# -- arguments and results ---------------------------------------------------------------------------------------------


_AS_THEY_ARE = frozenset({Array, int, float, bool, type(None)})


def _as_argument(x: Any) -> Any:
    """Return an argument as NumPy's function is to have it: tensors by their other face, also in lists."""
    if type(x) in _AS_THEY_ARE:
        return x
    if isinstance(x, Tensor):
        return array_of(x)
    if isinstance(x, Dtype):
        return x.dtype
    if is_foreign(type(x)):
        return array_of(wrap(plain(x)))
    return type(x)([_as_argument(item) for item in x]) if type(x) in (list, tuple) else x


def _as_result(x: object) -> Any:
    """Return a result with Arrays for arrays and for NumPy's numbers."""
    if type(x) is Array:
        return x
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc":
        return array_of(wrap(np.asarray(x)))
    if isinstance(x, tuple):
        parts = [_as_result(part) for part in x]
        return x._make(parts) if hasattr(x, "_make") else tuple(parts)
    return [_as_result(part) for part in x] if type(x) is list else x


def _on_arrays(function: AnyFunction) -> AnyFunction:
    """Return a function of NumPy's that takes Arrays and tensors, and gives Arrays."""

    @functools.wraps(function)
    def call(*args: Any, device: str | None = None, **kwargs: SupportsIndex) -> Any:
        check_device(device)
        prepare = _as_argument if _has_rule(function) else _as_plain
        result = _as_result(function(*map(prepare, args), **{name: prepare(x) for name, x in kwargs.items()}))
        return result if device is None else result.to_device(device)

    return call


def _has_rule(function: object) -> bool:
    if hasattr(function, "takes_arrays"):
        return True
    known: Any = UFUNCS if isinstance(function, np.ufunc) else FUNCTIONS
    if function not in known:
        load(function.__module__ if getattr(function, "__module__", "") in LATER else "numpy")
    return function in known


def _as_plain(x: object) -> Any:
    """Return an argument of a function without a rule: constants are no more than their numbers."""
    x = _as_argument(x)
    if isinstance(x, (list, tuple)):
        return type(x)([_as_plain(item) for item in x])
    return np.asarray(x._tensor._array()) if isinstance(x, Array) and is_plain(x) else x


def _functions_of(module: ModuleType) -> Params:
    """Return the public names of a module of NumPy's, but for modules inside; functions are ``_on_arrays``."""
    found = {}
    for name in set(module.__all__) - getattr(module, "__numpy_submodules__", set()):
        value = getattr(module, name)
        found[name] = _on_arrays(value) if callable(value) and not isinstance(value, type) else value
    return found


def _extension(module: ModuleType) -> ModuleType:
    extension = ModuleType(f"{__name__}.{module.__name__.rpartition('.')[2]}", module.__doc__)
    extension.__dict__.update(_functions_of(module))
    return extension


# -- making arrays -----------------------------------------------------------------------------------------------------


def asarray(obj: object, /, *, dtype: DTypeLike = None, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """Return an Array of numbers, nested sequences, an array or a tensor.

    Args:
        obj: what to make it of. A tensor's other face shares its tape and its memory.
        dtype: another dtype.
        device: where to bring it; None: it stays where it is.
        copy: whether it has memory of its own; None: only where it must.

    Raises:
        ValueError: ``copy=False``, and it cannot be had without a copy.
    """
    check_device(device)
    x, dtype = _as_argument(obj), _as_argument(dtype)
    if not isinstance(x, Array):
        x = _as_array(x, dtype, copy)
    elif dtype is not None and x.dtype != dtype:
        if copy is False:
            raise ValueError(f"an array of {x.dtype} cannot be one of {np.dtype(dtype)} without a copy")
        x = _on_arrays(np.astype)(x, dtype)
    elif copy:
        x = x.copy()
    return x if device is None else x.to_device(device)


def _as_array(x: object, dtype: DTypeLike, copy: bool | None) -> Array:
    if isinstance(x, (list, tuple)) and holds(x, Array):
        if copy is False:
            raise ValueError("arrays in a list cannot be one array without a copy")
        return Array(x, dtype)
    array = np.asarray(plain(x), dtype, copy=copy)
    if array.dtype.kind not in "biufc":
        raise errors.not_numbers(x, array.dtype)
    return array_of(wrap(array))


def from_dlpack(x: object, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """Return an Array that shares the memory of another library's array. See :func:`chainrule.from_dlpack`."""
    return array_of(dlpack.from_dlpack(x, device=device, copy=copy))


# -- functions that the standard has otherwise than NumPy --------------------------------------------------------------


def broadcast_arrays(*arrays: object) -> list[Array]:
    """Views of the arrays in their common shape."""
    return [asarray(x) for x in np.broadcast_arrays(*map(_as_argument, arrays))]


def clip(x: TensorLike, /, min: object = None, max: object = None) -> Array:
    """Return the elements that lie between the bounds, and for others the bound that is next; None is no bound."""
    return asarray(np.clip(_as_argument(x), _as_argument(min), _as_argument(max)))


def sort(x: TensorLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the elements in order along an axis."""
    in_order = np.sort(_as_argument(x), axis=axis)
    return asarray(np.flip(in_order, axis) if descending else in_order)


def argsort(x: TensorLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Where the elements in order along an axis come from. Equal elements stay as they were."""
    x = _as_argument(x)
    if not descending:
        return asarray(np.argsort(x, axis=axis, stable=True))
    from_last = np.argsort(np.flip(x, axis), axis=axis, stable=True)
    return asarray(np.flip(np.shape(x)[axis] - 1 - from_last, axis))


class __array_namespace_info__:
    """What this namespace can do, and which devices and dtypes it has: as NumPy says it."""

    def __init__(self) -> None:
        self._numpy = np.__array_namespace_info__()  # NumPy 2.1 has it

    def capabilities(self) -> Any:
        """What libraries may count on: masks as indices, and shapes that depend on values."""
        return self._numpy.capabilities()

    def default_device(self) -> str:
        """Return the device of arrays for which none is said."""
        return "cpu"

    def devices(self) -> list[str]:
        """Return all devices."""
        return ["cpu", *[f"cuda:{number}" for number in range(gpu.count())]]

    def default_dtypes(self, *, device: DeviceLike = None) -> Any:
        """Return the dtypes that numbers get where none is said, by kind."""
        check_device(device)
        return self._numpy.default_dtypes()

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> Any:
        """Return the dtypes that there are, by name; those of a kind, or of several."""
        check_device(device)
        return self._numpy.dtypes(kind=kind)


def finfo(type: object, /) -> SimpleNamespace:
    """What is known of a floating-point dtype, or that of an array, in Python's numbers."""
    known = np.finfo(_dtype_of(type))
    numbers = {name: float(getattr(known, name)) for name in ("eps", "max", "min", "smallest_normal", "tiny")}
    return SimpleNamespace(bits=known.bits, dtype=known.dtype, **numbers)


def iinfo(type: DTypeLike, /) -> Any:
    """What is known of an integer dtype, or that of an array: its ``bits``, ``min`` and ``max``."""
    return np.iinfo(_dtype_of(type))


def _dtype_of(x: Any) -> NumpyDType:
    return np.dtype(x if isinstance(x, type) else getattr(x, "dtype", x))


def _frequencies(function: AnyFunction) -> Callable[..., Array]:
    @functools.wraps(function)
    def call(n: int, /, *, d: float = 1.0, dtype: DTypeLike = None, device: DeviceLike = None) -> Array:
        return asarray(function(n, d), dtype=dtype, device=device)

    del call.__wrapped__
    return call


#: from here on ``bool``, ``all`` and other names of this module are NumPy's
_NUMPY = _functions_of(np)
globals().update({name: value for name, value in _NUMPY.items() if name not in globals()})
fft, linalg = _extension(np.fft), _extension(np.linalg)
for _function in (np.fft.fftfreq, np.fft.rfftfreq):
    setattr(fft, _function.__name__, _frequencies(_function))


def __getattr__(name: str) -> Any:
    """``special``: SciPy's special functions, which load with SciPy. (Where SciPy dispatches, it asks for them so.)"""
    if name == "special" and importlib.util.find_spec("scipy") is not None:
        functions = {**importlib.import_module("chainrule._src.ops.scipy_special").UFUNCS_OF_SCIPY, "sinc": np.sinc}
        functions |= {key: OPERATIONS[f"special.{key}"].public for key in ("multigammaln", "polygamma")}
        globals()[name] = SimpleNamespace(**{key: _on_arrays(function) for key, function in functions.items()})
        return globals()[name]
    if name in getattr(np, "__numpy_submodules__", ()):
        return getattr(np, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({"asarray", "fft", "linalg", "__array_api_version__", "__array_namespace_info__", *_NUMPY})
