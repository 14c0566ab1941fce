"""Arrays of other libraries as tensor data: Dask, CuPy, pydata/sparse, unyt.

``Foreign`` wraps such an array as an array-like of this package; users never see it. NumPy calls of rules on it reach the
``__array_ufunc__`` and ``__array_function__`` of the wrapped array, so results are arrays of the same library: lazy, on
the GPU, sparse, with units. Its rank in ``dispatch`` is that of an ndarray. No operation converts a wrapped array to
NumPy implicitly. Where a conversion is necessary, an error names it.
"""

# ruff: noqa: SIM905 -- lists of names read better as words

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from types import NotImplementedType
from typing import Any, Literal

import numpy as np

from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.libraries import is_foreign, library_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, DTypeLike, NumpyArray, NumpyDType, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.tape.protocol import FOREIGN, ArrayLike, array_function, array_ufunc, as_plain_array

ndarray = np.ndarray

#: NumPy function -> an implementation by other NumPy functions, for libraries without the function
FORMS: dict[AnyFunction, AnyFunction] = {}

#: a ufunc's reduction or accumulation -> the NumPy function that other libraries implement
_REDUCTIONS: dict[tuple[np.ufunc, str], AnyFunction] = {
    (np.add, "reduce"): np.sum,
    (np.multiply, "reduce"): np.prod,
    (np.maximum, "reduce"): np.max,
    (np.minimum, "reduce"): np.min,
    (np.logical_and, "reduce"): np.all,
    (np.logical_or, "reduce"): np.any,
    (np.add, "accumulate"): np.cumsum,
    (np.multiply, "accumulate"): np.cumprod,
}


#: the identity of a reduction: this ``initial`` matters for empty arrays only
_IDENTITIES: dict[np.ufunc, float] = {np.maximum: -np.inf, np.minimum: np.inf}


class Foreign(ArrayLike):
    """Another library's array, as an array-like of this package.

    Attributes:
        payload: the array.
        library: the description of its library (see ``arrays.libraries``).
    """

    __slots__ = ("dtype", "library", "payload", "shape")
    level = 0  # the level of an ndarray

    def __init__(self, payload: Any) -> None:
        self.payload = payload
        kind: type = type(payload)
        self.library = library_of(kind)
        self.library.check(payload)
        self.shape = self.library.shape(payload)
        self.dtype = np.dtype(payload.dtype)

    # -- NumPy's calls -----------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: object = None, **kwargs: object) -> Any:
        if not all(map(_is_data, inputs)):
            return array_ufunc(self, ufunc, method, *inputs, out=out, **kwargs)
        if method == "__call__":
            return self._call(ufunc, inputs, kwargs, out)
        if method == "at" and self.library.strided is not None:
            return self._call(ufunc.at, inputs, kwargs, None)
        function = _REDUCTIONS.get((ufunc, method))
        if function is None:
            raise errors.foreign_lacks(self, f"{ufunc.__name__}.{method}")
        if method == "reduce":
            kwargs.setdefault("axis", 0)
            if (initial := kwargs.pop("initial", None)) is not None and not (
                inputs[0].size and initial == _IDENTITIES.get(ufunc)
            ):
                return ufunc(self._call(function, inputs, kwargs, out), initial)
        return self._call(function, inputs, kwargs, out)

    def __array_function__(self, function: AnyFunction, types: Any, args: tuple[object, ...], kwargs: Params) -> Any:
        if not all(map(_is_data_type, types)):
            return array_function(self, function, types, args, kwargs)
        kwargs = dict(kwargs)
        return self._call(function, args, kwargs, kwargs.pop("out", None))

    def _call(self, function: AnyFunction, args: tuple[object, ...], kwargs: Params, out: Any) -> Any:
        """Call a NumPy function on the library's arrays. If the library lacks it, call its form in ``FORMS``."""
        if out is not None and out is not Ellipsis:
            if are_writable(target := out[0] if isinstance(out, tuple) else out):
                target[...] = self._call(function, args, kwargs, None)
                return target
            raise errors.foreign_lacks(self, f"{function.__name__}(..., out=)")
        self._check_one_library((args, kwargs))
        library = self.library
        form = FORMS.get(function)
        own = library.own.get(function)
        if own is None and not isinstance(function, np.ufunc) and library.lacks(function):
            if form is None:
                raise errors.foreign_lacks(self, _name_of(function))
            return form(*args, **kwargs)
        if library.by_keyword:
            args, kwargs = _by_keyword(function, args, kwargs)
        try:
            if own is not None:
                return wrap_foreign_results(own(*_unwrapped(args), **_unwrapped(kwargs)))
            return wrap_foreign_results(library.call(function, self.payload, _unwrapped(args), _unwrapped(kwargs)))
        except Exception as error:
            if form is not None:
                return form(*args, **kwargs)
            if not self._means_lack(error):
                raise
            raise errors.foreign_lacks(self, _name_of(function), error) from error

    def _means_lack(self, error: Exception) -> bool:
        """Return whether an error means that the library lacks the function, or lacks it for such arrays."""
        lacking = isinstance(error, (TypeError, NotImplementedError, AttributeError, AssertionError))
        return lacking or self.library.refuses(error)

    def elementwise(self, function: AnyFunction, *others: object) -> AnyArray:
        """Apply a function of ndarrays elementwise to this array and the other operands, which broadcast."""
        if self.library.elementwise is None:
            raise errors.foreign_lacks(self, getattr(function, "__name__", "this function").strip("_"))
        return wrap_foreign_results(self.library.elementwise(function, self.payload, *_unwrapped(others)))

    def by_row(self, name: str, form: AnyFunction, **params: object) -> AnyArray:
        """Compute a primitive whose value writes into ndarrays: by the implementation of the library, or by ``form``."""
        own = self.library.rows.get(name)
        return form(self, **params) if own is None else wrap_foreign_results(own(self.payload, **params))

    def like(self, other: object) -> Foreign:
        """Return this array with the chunks of another array of the same shape."""
        rechunked = self.library.like(self.payload, getattr(other, "shape", None))
        return self if rechunked is self.payload else Foreign(rechunked)

    def _check_one_library(self, arguments: object) -> None:
        for x in _flat(arguments):
            if type(x) is Foreign and x.library is not self.library:
                raise errors.mixed_libraries(self, x)

    def __getattr__(self, name: str) -> Any:
        """Return an ndarray method as the NumPy function of the same name."""
        function = getattr(np, name, None)
        if name in _METHODS and function is not None:
            return functools.partial(function, self)
        raise AttributeError(f"a {type(self.payload).__name__} of {self.library.name} has no {name!r} in a rule")

    def _not_in_place(self, other: object) -> NotImplementedType:
        return NotImplemented  # Python then uses the operator without =

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = _not_in_place
    __imatmul__ = __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _not_in_place

    def __getitem__(self, index: object) -> AnyArray:
        items = tuple(map(_list_as_array, index)) if type(index) is tuple else (_list_as_array(index),)
        if any(map(_is_scalar_bool, items)):
            return self._take_positions(items)
        try:
            return wrap_foreign_results(self.library.element(self.payload, _unwrapped(_without_masks(items))))
        except Exception as error:
            if any(isinstance(item, ndarray) for item in items):
                return self._take_positions(items)
            if not self._means_lack(error):
                raise
            raise errors.foreign_lacks(self, "ndarray.__getitem__", error) from error

    def _take_positions(self, items: tuple[object, ...]) -> AnyArray:
        """Index by taking the selected positions from the flattened array, for indices with several arrays."""
        positions = np.arange(self.size).reshape(self.shape)[_without_masks(items)]
        return np.reshape(np.take(np.reshape(self, (self.size,)), positions.ravel(), axis=0), positions.shape)

    def __setitem__(self, index: object, value: object) -> None:
        if self.library.strided is None:
            raise errors.foreign_write(self)
        self.library.call(operator.setitem, self.payload, (self.payload, _unwrapped(index), _unwrapped(value)), {})

    def strided(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> AnyArray:
        """Return a view of this memory with this shape and these strides."""
        if self.library.strided is None:
            raise errors.foreign_lacks(self, "lib.stride_tricks.as_strided")
        return wrap_foreign_results(self.library.strided(self.payload, shape, strides))

    def reshape(self, *shape: int | tuple[int, ...]) -> AnyArray:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)

    def copy(self, order: str = "K") -> Foreign:
        return Foreign(self.payload.copy()) if hasattr(self.payload, "copy") else self

    def transpose(self, *axes: Any) -> AnyArray:
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) if axes else None)

    def astype(self, dtype: NumpyDType, copy: bool = True) -> AnyArray:
        if self.dtype == dtype:
            return self
        return wrap_foreign_results(self.library.call(lambda: self.payload.astype(dtype), self.payload, (), {}))

    @property
    def real(self) -> AnyArray:
        return wrap_foreign_results(np.real(self.payload)) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> AnyArray:
        return wrap_foreign_results(np.imag(self.payload))

    # -- the methods of ``ArrayLike`` --------------------------------------------------------------------------------------

    @classmethod
    def constant(cls, data: AnyArray, level: object) -> AnyArray:
        return data

    @property
    def inside(self) -> NumpyArray:
        """The values of an array on a GPU, for checks of memory layout. Other libraries raise, so that nothing is computed."""
        if self.library.gpu(self.payload) is None:
            raise errors.foreign_to_numpy(self)
        return self.read()

    @property
    def moving(self) -> bool:
        return False

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in bytes; those of a C-contiguous ndarray if the library has no strides."""
        if self.library.strided is not None:
            return tuple(self.payload.strides)
        steps = [self.dtype.itemsize]
        for n in reversed(self.shape[1:]):
            steps.insert(0, steps[0] * n)
        return tuple(steps[: len(self.shape)])

    def detached(self) -> Foreign:
        return self

    def on_numbers(self, function: Callable[[Any], Any]) -> Any:
        return function(self)

    @classmethod
    def with_numbers(cls, x: object, numbers: AnyArray, level: object) -> AnyArray:
        return numbers

    def read(self) -> NumpyArray:
        return np.asarray(self.library.to_numpy(self.payload))

    @property
    def readable(self) -> bool:
        return False

    @property
    def shown(self) -> NumpyArray | None:
        """The values of an array on a GPU, for printing; None for others, which may be large or not computed yet."""
        return None if self.library.gpu(self.payload) is None else self.read()

    def described(self, suffixes: list[str]) -> str:
        return f"tensor({', '.join([repr(self.payload), *suffixes])})"

    def _scalar(self) -> NumpyArray:
        """Return the only element of an array with strides (CuPy). Raise for others: a rule must not compute lazy values."""
        if self.library.strided is None:
            raise errors.foreign_to_numpy(self)
        return self.read()

    def __bool__(self) -> bool:
        return bool(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __repr__(self) -> str:
        return repr(self.payload)

    def __reduce__(self) -> tuple[object, ...]:
        return Foreign, (self.payload,)

    def __array__(self, dtype: object = None, copy: object = None) -> NumpyArray:
        raise errors.foreign_to_numpy(self)


#: methods of ndarrays that equal the NumPy functions of the same names
_METHODS = frozenset(
    "all any argmax argmin clip conj copy cumprod cumsum diagonal dot max mean min nonzero prod ravel repeat round "
    "searchsorted sort squeeze std sum swapaxes take trace var".split()
)


def _module_of(function: AnyFunction) -> str:
    return getattr(function, "__module__", None) or ""


def _name_of(function: AnyFunction) -> str:
    if isinstance(ufunc := getattr(function, "__self__", None), np.ufunc):
        return f"{ufunc.__name__}.{function.__name__}"
    module = _module_of(function).removeprefix("numpy").removeprefix(".")
    return f"{module}.{function.__name__}" if module and not module.startswith("_") else str(function.__name__)


def _by_keyword(function: AnyFunction, args: tuple[object, ...], kwargs: Params) -> tuple[tuple[object, ...], Params]:
    """Return the arguments with ``axis`` and all positional arguments after it as keyword arguments."""
    names = [] if isinstance(function, np.ufunc) else list(_parameters(function))
    start = next((k for k, name in enumerate(names[: len(args)]) if name == "axis"), len(args))
    named = {**dict(zip(names[start:], args[start:], strict=False)), **kwargs}
    return args[:start], {name: value for name, value in named.items() if value is not np._NoValue}


@functools.cache
def _parameters(function: AnyFunction) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _is_scalar_bool(item: object) -> bool:
    """Return whether an item of an index is one boolean, which adds an axis."""
    return isinstance(item, (bool, np.bool)) or (type(item) is ndarray and item.dtype == bool and not item.ndim)


def _list_as_array(item: object) -> object:
    """Convert a list in an index to an array."""
    return np.asarray(item) if isinstance(item, list) else item


def _without_masks(items: tuple[Any, ...]) -> Any:
    """Replace masks in an index by integer arrays, so that the result has a known size, and 0-d arrays by integers."""
    found: list[object] = []
    for item in items:
        if isinstance(item, ndarray) and item.dtype == bool and item.ndim:
            found += item.nonzero()
        else:
            is_integer = isinstance(item, (ndarray, np.integer)) and not item.ndim and not _is_scalar_bool(item)
            found.append(int(item) if is_integer else item)
    return tuple(found)


def wrap_foreign_results(x: Any) -> Any:
    """Wrap the arrays in a library function's result in ``Foreign``, also inside a tuple or a list."""
    if is_foreign(type(x)):
        return Foreign(x)
    if isinstance(x, np.generic):
        return np.asarray(x)
    if isinstance(x, (tuple, list)):
        return (
            type(x)(map(wrap_foreign_results, x)) if not hasattr(x, "_make") else x._make(map(wrap_foreign_results, x))
        )
    return x


def in_memory(values: list[Any]) -> list[Any]:
    """Return the values with other libraries' arrays converted to NumPy, for functions whose purpose is the numbers.

    Lazy arrays are computed together, so that shared work is done once.
    """
    found = [as_plain_array(x) if is_foreign(type(x)) else x for x in values]
    indices = [i for i, x in enumerate(found) if type(x) is Foreign]
    if not indices:
        return found
    library = found[indices[0]].library
    convert_all = library.all_to_numpy
    if convert_all is None or any(found[i].library is not library for i in indices):
        arrays = [found[i].read() for i in indices]
    else:
        arrays = convert_all([found[i].payload for i in indices])
    for i, array in zip(indices, arrays, strict=True):
        found[i] = array
    return found


def _unwrapped(x: Any) -> Any:
    """Return arguments with each ``Foreign`` replaced by its payload."""
    kind = type(x)
    if kind is Foreign:
        return x.payload
    if kind is tuple or kind is list:
        return kind([_unwrapped(item) for item in x])
    if kind is dict:
        return {key: _unwrapped(item) for key, item in x.items()}
    return x


def _flat(x: object) -> Iterator[object]:
    if isinstance(x, (tuple, list)):
        for item in x:
            yield from _flat(item)
    elif type(x) is dict:
        yield from _flat(tuple(x.values()))
    else:
        yield x


def _is_data(x: TensorLike) -> bool:
    return _is_data_type(type(x))


def _is_data_type(kind: type) -> bool:
    return (
        kind is Foreign
        or not hasattr(kind, "__array_ufunc__")
        or issubclass(kind, (ndarray, np.generic))
        or is_foreign(kind)
    )


def innermost_foreign(x: object) -> Foreign | None:
    """Return the ``Foreign`` inside a tensor or a transformation's value; None if its values are in an ndarray."""
    while x is not None and type(x) is not ndarray:
        if type(x) is Foreign:
            return x
        x = x.inside if isinstance(x, ArrayLike) else getattr(x, "_raw", None)
    return None


def gpu_number(x: object) -> int | None:
    """Return the number of the GPU that holds an array's or a tensor's values; None for main memory."""
    found = innermost_foreign(x)
    return None if found is None else found.library.gpu(found.payload)


def of_elements(function: AnyFunction) -> AnyFunction:
    """Decorate a primitive's value that needs ndarrays: for arrays of other libraries it is applied elementwise."""

    @functools.wraps(function)
    def value(x: TensorLike, *others: object) -> AnyArray:
        return x.elementwise(function, *others) if type(x) is Foreign else function(x, *others)

    return value


def are_writable(*xs: object) -> bool:
    """Return whether all are arrays whose memory a rule can write: those of NumPy and CuPy."""
    return all(is_array(x) or (type(x) is Foreign and x.library.strided is not None) for x in xs)


def is_foreign_index(index: object) -> bool:
    """Return whether an index is an array of another library, whose values are unknown while the operation is built."""
    return type(index) is Foreign and not are_writable(index)


def zeros_on_device_of(x: object, shape: Sequence[int], dtype: DTypeLike) -> Any:
    """Return zeros on the device and in the library of an array or a tensor."""
    found = innermost_foreign(x)
    return np.zeros(shape, dtype) if found is None else np.zeros_like(found, np.dtype(dtype), shape=tuple(shape))


def safe_divisor(x: TensorLike, zero: AnyArray) -> AnyArray:
    """Return x as a divisor: with 1, in the unit of x, at the elements where ``zero`` is True."""
    found = None if type(x) is ndarray else innermost_foreign(x)
    if found is None or (units := getattr(found.payload, "units", None)) is None:
        return np.where(zero, 1, x)
    return np.where(zero, wrap_foreign_results(found.dtype.type(1) * units), x)


def constant_like(x: AnyArray | None, constant: AnyArray) -> AnyArray:
    """Return a constant on the device and in the library of ``x``; unchanged if it is there already."""
    if type(x) is not Foreign or type(constant) is Foreign:
        return constant
    return zeros_on_device_of(x, constant.shape, constant.dtype) + constant


def in_row_order(x: AnyArray) -> AnyArray:
    """Return the array in C order; an ndarray is not copied if it is in C order."""
    return copy_in_library(x, "C") if type(x) is Foreign else np.ascontiguousarray(x)


def copy_in_library(x: AnyArray, order: Literal["K", "A", "C", "F"] = "K") -> Any:
    """Return a copy with its own memory, in the library of the array."""
    return np.copy(x, order) if type(x) is Foreign else np.array(x, order=order, copy=True)


def ones_of(data: AnyArray) -> AnyArray:
    """Return ones of the shape and dtype of an array-like, in its library."""
    if type(data) is Foreign:
        return np.ones_like(data)
    return np.ones(data.shape, data.dtype) if data.shape else np.array(1, data.dtype)


def _take(x: AnyArray, indices: AnyArray, axis: int | None = None, **options: object) -> AnyArray:
    """Compute ``np.take`` with indices of several axes by indices of one axis."""
    if axis is None:
        x, axis = np.reshape(x, (x.size,)), 0
    axis %= x.ndim
    indices = np.asarray(indices)
    flat = x[(*(slice(None),) * axis, indices.ravel())]
    return flat if indices.ndim == 1 else np.reshape(flat, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def _take_along_axis(x: AnyArray, indices: AnyArray, axis: int = -1) -> AnyArray:
    grid: list[AnyArray] = list(np.indices(indices.shape, sparse=True))
    grid[axis] = indices
    return x[tuple(grid)]


FORMS[np.take] = _take
FORMS[np.take_along_axis] = _take_along_axis
FORMS[np.astype] = lambda x, dtype, copy=True: x.astype(dtype)

FOREIGN.append(Foreign)
