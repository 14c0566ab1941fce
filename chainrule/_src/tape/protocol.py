"""NumPy's protocols: NumPy functions called on tensors and other array-likes.

``np.exp(t)`` and ``np.sum(t, axis=0)`` arrive here through ``__array_ufunc__`` and ``__array_function__``. They are looked
up in ``UFUNCS``, which the op table fills at import, and in ``FUNCTIONS``, which ``find`` fills from the modules in ``LATER``.
The implementation is called. ``ArrayLike`` is the base class of the interpreters' values.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.libraries import is_container, is_foreign
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, Casting, DTypeLike, NumpyArray, NumpyDType, Params
from chainrule._src.messages import errors

ndarray = np.ndarray
_OBJECT = np.dtype(object)

#: ufunc -> implementation for array-likes, with NumPy's semantics.
UFUNCS: dict[np.ufunc, AnyFunction] = {}
#: ufunc -> implementation with exchanged operands: ``2 - x`` is recorded with x as the first operand.
EXCHANGED: dict[np.ufunc, AnyFunction] = {}
#: (ufunc, method) -> implementation of ``np.add.reduce`` and similar methods.
UFUNC_METHODS: dict[tuple[np.ufunc, str], AnyFunction] = {}
#: NumPy function -> implementation for array-likes, with NumPy's signature.
FUNCTIONS: dict[AnyFunction | str, AnyFunction] = {}
#: module of NumPy or SciPy -> modules that implement its functions; ``find`` imports them in this order.
LATER: dict[str, tuple[str, ...]] = {}

#: NumPy functions whose operations and parameters depend on shapes, dtypes and static arguments, never on values
BY_SHAPE: dict[AnyFunction, bool] = {}
#: NumPy function that calls user functions -> its parameter for one of them or a list of them
CALLBACKS: dict[AnyFunction, str] = {}


#: module in ``LATER`` -> its entries, until the module is complete: another thread must not call a part of a module.
_DECLARED: dict[str, list[tuple[dict[Any, Any], AnyFunction, Any]]] = {}


def implements(
    *numpy_functions: AnyFunction, by_shape: bool = False, callback: str = ""
) -> Callable[[AnyFunction], AnyFunction]:
    """Declare the decorated function, which has NumPy's signature, as the implementation of these NumPy functions.

    Args:
        by_shape: see ``BY_SHAPE``.
        callback: see ``CALLBACKS``.
    """
    entries = _DECLARED.setdefault(sys._getframe(1).f_globals["__name__"], [])

    def declare(function: AnyFunction) -> AnyFunction:
        for numpy_function in numpy_functions:
            if by_shape:
                entries.append((BY_SHAPE, numpy_function, True))
            if callback:
                entries.append((CALLBACKS, numpy_function, callback))
            entries.append((FUNCTIONS, numpy_function, function))
        return function

    return declare


def import_implementations(*modules: str) -> Iterator[str]:
    """Import the modules that implement functions of NumPy's or SciPy's ``modules``. Yield after each one."""
    for module in modules:
        for name in LATER[module]:
            importlib.import_module(name)
            for table, function, content in _DECLARED.get(name, ()):
                table[function] = content
            _DECLARED.pop(name, None)
            yield name


def find(function: AnyFunction) -> AnyFunction | None:
    """Return the implementation of a NumPy function, after importing its module if necessary; None if it has none."""
    found = FUNCTIONS.get(function)
    if found is None:
        module = getattr(function, "__module__", "")
        for _ in import_implementations(module if module in LATER else "numpy"):
            if (found := FUNCTIONS.get(function)) is not None:
                break
    return found


def find_ufunc(ufunc: np.ufunc, method: str = "__call__") -> AnyFunction | None:
    """Return the implementation of a ufunc or of its method, after importing its module if necessary; None if it has none."""
    table: dict[Any, AnyFunction] = UFUNCS if method == "__call__" else UFUNC_METHODS
    key = ufunc if method == "__call__" else (ufunc, method)
    found = table.get(key)
    if found is None:
        for _ in import_implementations("numpy", *(["scipy.special"] if "scipy.special" in sys.modules else [])):
            if (found := table.get(key)) is not None:
                break
    return found


def array_ufunc(
    self: object, ufunc: np.ufunc, method: str, *inputs: object, out: object = None, **kwargs: object
) -> Any:
    if method == "__call__" and out is None and not kwargs:
        operation = UFUNCS.get(ufunc) or find_ufunc(ufunc)
        if operation is not None:
            if len(inputs) == 1 and type(data := getattr(self, "_raw", None)) is ndarray and data.dtype.kind == "f":
                return (getattr(operation, "function", None) or operation)(self)
            inputs = tuple([x.item() if isinstance(x, np.generic) else x for x in inputs])  # makes scalars weakly typed
            fast = getattr(operation, "function", None)
            if fast is not None and one_float_dtype(inputs):  # NumPy's and PyTorch's promotion agree here
                exchanged = EXCHANGED.get(ufunc) if type(inputs[0]) is float or type(inputs[0]) is int else None
                return fast(*inputs) if exchanged is None else exchanged(inputs[1], inputs[0])
            return NotImplemented if _any_container(inputs) else operation(*map(as_plain_array, inputs))
    if _any_container(inputs):
        return NotImplemented
    result = call_ufunc(ufunc, method, inputs, out, kwargs)
    if out is None:
        return result
    return _put(ufunc.__name__, out, result, kwargs.get("casting", "same_kind"), fixed_axes(ufunc, method))


def fixed_axes(function: Any, method: str) -> int:
    """Return the number of trailing axes of ``out`` that must equal the result's, which is broadcast along the others.

    -1: ``out`` must have the shape of the result.
    """
    if isinstance(function, np.ufunc) and method in ("__call__", "outer"):
        return 0 if function.signature is None else len(re.findall(r"\w+", function.signature.split("->")[1]))
    return 0 if function is np.clip else -1


def _any_container(inputs: tuple[object, ...]) -> bool:
    """Return whether an operand is a container of arrays (xarray, pint), which then handles the operation."""
    return any(map(is_container, map(type, inputs)))


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Any, out: object, kwargs: Params) -> Any:
    """Compute a ufunc with any method and keywords. ``out`` supplies the elements that ``where=`` excludes."""
    inputs = tuple(map(as_plain_array, inputs))
    function = find_ufunc(ufunc, method)
    if function is None:
        raise errors.no_rule_for_numpy(ufunc.__name__ + ("" if method == "__call__" else "." + method), inputs)
    if method != "__call__":
        return function(*inputs, **kwargs)
    kwargs = {key: value for key, value in kwargs.items() if key != "subok"}
    order = kwargs.pop("order", "K")
    if order not in ("K", None) and method == "__call__":
        return _in_order(ufunc.__name__, call_ufunc(ufunc, method, inputs, out, kwargs), order)
    dtype, casting = kwargs.pop("dtype", None), kwargs.pop("casting", "same_kind")
    if dtype is not None and np.dtype(dtype) == _OBJECT:  # a NumPy function on an object array that contains tensors
        dtype = None
    where = kwargs.pop("where", True)
    if "axis" in kwargs and ufunc.signature == "(n),(n)->()":
        axis = kwargs.pop("axis")
        inputs = tuple([np.moveaxis(x, axis, -1) for x in inputs])
    if kwargs:
        raise errors.numpy_keyword(ufunc.__name__, next(iter(kwargs)))
    if dtype is not None or casting != "same_kind":
        inputs, dtype = _cast_operands(ufunc, inputs, dtype, casting)
    if where is True:
        result = function(*inputs)
        if dtype is None:
            return result
        if isinstance(result, tuple):
            return tuple([np.astype(part, np.dtype(dtype)) for part in result])
        return np.astype(result, np.dtype(dtype))
    if out is None:
        raise errors.numpy_keyword(ufunc.__name__, "where' without 'out")
    result = function(*_masked_operands(ufunc, inputs, where))
    parts = result if isinstance(result, tuple) else (result,)
    outs = out if isinstance(out, tuple) else (out,)
    merged = tuple([np.where(where, y, o) for y, o in zip(parts, outs, strict=True)])
    return merged if isinstance(result, tuple) else merged[0]


def _in_order(name: str, result: object, order: str) -> Any:
    """Return a result in memory order "C" or "F"."""
    if isinstance(result, tuple):
        return tuple([_in_order(name, part, order) for part in result])
    if len(getattr(result, "shape", ())) < 2:
        return result
    if order not in ("C", "F"):
        raise errors.numpy_keyword(name, f"order={order!r}")
    copy: Any = np.copy
    return copy(result, order)


def _masked_operands(ufunc: np.ufunc, inputs: Any, where: AnyArray) -> list[Any]:
    """Return the operands with a safe value where ``where`` is False: an infinite partial times 0 there would be nan."""
    point = _safe_point(ufunc)
    strong = [dtype_of(x) for x in inputs if type(x) not in (int, float, complex, bool)]
    found = []
    for x in inputs:
        if type(x) in (int, float, complex):  # keeps the promotion of Python numbers
            x = np.asarray(x, np.result_type(*strong, x))
        kind = dtype_of(x).kind
        found.append(np.where(where, x, point if kind in "fc" else max(1, int(point))) if kind in "fciu" else x)
    return found


@functools.cache
def _safe_point(ufunc: np.ufunc) -> float:
    """Return a number at which, for every operand, a ufunc and its derivatives are finite."""
    with np.errstate(all="ignore"), contextlib.suppress(TypeError):  # a ufunc of integers
        return 0.5 if np.isfinite(ufunc(*(0.5,) * ufunc.nin)).all() else 2.0
    return 1.0


def _cast_operands(ufunc: np.ufunc, inputs: Any, dtype: DTypeLike, casting: Casting) -> tuple[list[Any], NumpyDType]:
    """Return the operands, cast for ``dtype=`` and ``casting=``, and the dtype of the result.

    Raises:
        TypeError: NumPy has no inner loop of these dtypes, or ``casting`` forbids it.
    """
    in_dtypes = [
        type(x) if type(x) in (int, float, complex) else dtype_of(np.asarray(x) if type(x) is bool else x)
        for x in inputs
    ]
    signature = (*[None] * ufunc.nin, *[None if dtype is None else np.dtype(dtype)] * ufunc.nout)
    dtypes = ufunc.resolve_dtypes((*in_dtypes, *[None] * ufunc.nout), signature=signature, casting=casting)
    cast = [x if type(x) in (int, float, complex) else np.astype(x, to) for x, to in zip(inputs, dtypes, strict=False)]
    return cast, dtypes[-1]


def one_float_dtype(inputs: tuple[object, ...]) -> bool:
    """Return whether the inputs are numbers and tensors of one floating dtype."""
    dtype = None
    for x in inputs:
        if type(x) is not float and type(x) is not int:
            data = getattr(x, "_raw", None)
            if data is None or data.dtype.kind != "f" or (dtype is not None and data.dtype is not dtype):
                return False
            dtype = data.dtype
    return dtype is not None


def array_function(self: object, function: AnyFunction, types: Any, args: tuple[object, ...], kwargs: Params) -> Any:
    check_kinds(types)
    if any(map(is_container, types)):
        return NotImplemented
    found = FUNCTIONS.get(function) or implementation_of(function, (*args, *kwargs.values()))
    result, out = call_function(function.__name__, found, args, kwargs)
    return result if out is None else _put(function.__name__, out, result, fixed=fixed_axes(function, ""))


#: Keywords of NumPy functions that do not change the values of the result.
_IGNORED_KEYWORDS = frozenset({"casting", "order", "subok", "optimize", "kind", "stable", "overwrite_input", "device"})


def call_function(name: str, function: AnyFunction, args: Sequence[object], kwargs: Params) -> tuple[Any, Any]:
    """Call an implementation. Return its result and the ``out`` that was passed.

    Raises:
        NotImplementedError: the implementation lacks a keyword that may change values.
    """
    names, out_index, takes_any = _signature(function)
    out = None
    if 0 <= out_index < len(args):
        out, args = args[out_index], (*args[:out_index], None, *args[out_index + 1 :])
    if not kwargs:
        return function(*args), out
    kwargs = dict(kwargs)
    out = kwargs.pop("out", out)
    if takes_any or names.issuperset(kwargs):
        return function(*args, **kwargs), out
    dtype = kwargs.pop("dtype", None) if "dtype" not in names else None
    order = kwargs.get("order", "K") if "order" not in names else "K"
    for keyword in [k for k in kwargs if k not in names]:
        if keyword not in _IGNORED_KEYWORDS:
            raise errors.numpy_keyword(name, keyword)
        del kwargs[keyword]
    result = function(*args, **kwargs)
    result = result if dtype is None else np.astype(result, np.dtype(dtype))
    return (result if order not in ("C", "F", "A") else _in_order(name, result, order)), out


@functools.cache
def _signature(function: AnyFunction) -> tuple[frozenset[str], int, bool]:
    """Return a function's parameter names, the position of ``out`` (-1 if none), and whether it has ``**kwargs``."""
    parameters = inspect.signature(function).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    out = parameters.get("out")
    by_position = out is not None and out.kind is out.POSITIONAL_OR_KEYWORD
    return frozenset(parameters), list(parameters).index("out") if by_position else -1, takes_any


def out_position(function: AnyFunction) -> int:
    """Return the position of the parameter ``out`` of an implementation; -1 if it has no position."""
    return _signature(function)[1]


def implementation_of(function: AnyFunction, operands: tuple[object, ...]) -> AnyFunction:
    """Return the implementation of a NumPy function.

    Raises:
        NotImplementedError: the function has no implementation.
    """
    found = find(function)
    if found is None:
        raise errors.no_rule_for_numpy(function.__name__, operands)
    return found


def _put(name: str, out: object, result: AnyArray, casting: Any = "same_kind", fixed: int = -1) -> AnyArray:
    """Write a result into the tensor passed as ``out=``, recorded."""
    target = out[0] if isinstance(out, tuple) else out
    if not hasattr(target, "copy_"):
        raise errors.out_is_plain_array(name, target)
    check_out(name, target, result, casting, fixed)
    return target.copy_(result)


def check_out(name: str, target: Any, result: AnyArray, casting: Casting, fixed: int) -> None:
    """Raise if a result does not fit the shape of the ``out=`` argument, or cannot be cast to its dtype, as NumPy does.

    Args:
        fixed: see ``fixed_axes``.
    """
    shape, target_shape = shape_of(result), shape_of(target)
    pairs = enumerate(zip(shape[::-1], target_shape[::-1], strict=False))
    broadcasts = len(shape) <= len(target_shape) and all(n == m or (n == 1 and k >= fixed) for k, (n, m) in pairs)
    if shape != target_shape and (fixed < 0 or not broadcasts):
        raise errors.array_output_shape(f"np.{name}(out=)", tuple(target_shape), tuple(shape))
    dtype, target_dtype = dtype_of(result), dtype_of(target)
    if not np.can_cast(dtype, target_dtype, casting):
        raise TypeError(
            f"Cannot cast ufunc {name!r} output from {dtype!r} to {target_dtype!r} with casting rule {casting!r}"
        )


def as_plain_array(x: Any) -> Any:
    """Return an exact ndarray of the same memory for subclasses of ndarray and for objects with ``__array__`` (pandas).

    Wrap another library's array in ``Foreign``. Return any other object unchanged.

    Raises:
        TypeError: for np.matrix and np.ma arrays, whose operators have different meanings, and for SciPy sparse matrices.
    """
    if type(x) is ndarray:
        return x
    kind: Any = type(x)
    if is_foreign(kind):
        return FOREIGN[0](x)
    if is_container(kind) and hasattr(x, "dims"):
        return as_plain_array(x.data)  # an xarray object: its values
    if not isinstance(x, ndarray):
        is_data = hasattr(x, "__array__") and not (
            hasattr(x, "__array_function__") or isinstance(x, (np.generic, type))
        )
        if not is_data and kind.__module__.startswith("scipy.sparse."):
            raise errors.sparse_in_function(x)
        return np.asarray(x) if is_data else x
    if _has_other_operators(kind):
        raise errors.special_array(kind)
    return np.asarray(x)


#: the wrapper of other libraries' arrays: ``tape.foreign.Foreign``, which derives from ``ArrayLike``
FOREIGN: list[Callable[[Any], ArrayLike]] = []


def as_data_array(x: object) -> Any:
    """Return ``np.asarray(x)``; wrap another library's array without converting it."""
    found = as_plain_array(x)
    return found if isinstance(found, ArrayLike) else np.asarray(found)


def as_array(x: object, dtype: DTypeLike = None) -> NumpyArray:
    """Return ``np.asarray(x, dtype)``; raise for the types for which ``as_plain_array`` raises."""
    return np.asarray(as_plain_array(x), dtype)


def check_kinds(kinds: Any) -> None:
    """Raise if the types of a function's operands include a subclass of ndarray for which ``as_plain_array`` raises."""
    for kind in kinds:
        if kind is not ndarray and issubclass(kind, ndarray) and _has_other_operators(kind):
            raise errors.special_array(kind)


@functools.cache
def _has_other_operators(kind: Any) -> bool:
    """Return whether a type derives from np.matrix or MaskedArray. (Compares names, because numpy.ma is slow to import.)"""
    return any((c.__module__, c.__name__) in _OTHER_OPERATORS for c in kind.__mro__)


_OTHER_OPERATORS = {("numpy", "matrix"), ("numpy.ma", "MaskedArray")}


def strip_derivatives(x: object) -> Any:
    """Return a value without derivatives at any level."""
    if isinstance(x, ArrayLike):
        return x.detached()
    return x.detach() if hasattr(x, "detach") else x


def memory_of(x: Any) -> NumpyArray:
    """Return the innermost array, which holds the values of a tensor or an array-like."""
    while not isinstance(x, np.ndarray):
        x = x.inside if isinstance(x, ArrayLike) else x._raw
    return x


def predicate_holds(x: Any, question: Callable[[Any], object]) -> bool:
    """Evaluate a predicate on the values of ``x``, of all examples at once. A trace is guarded on the result.

    Args:
        question: a function from an array to an array of one boolean; equal in each call.
    """
    while not isinstance(x, (np.ndarray, np.generic)):
        if getattr(type(x), "stands_for_array", False):
            return bool(x.on_numbers(question))
        x = x.inside if isinstance(x, ArrayLike) else x._raw
    return bool(question(x))


def strides_of(x: Any) -> tuple[int, ...]:
    """Return the ``own_strides`` of a tensor, an array-like or an array."""
    data = getattr(x, "_raw", x)
    return tuple(data.own_strides if isinstance(data, ArrayLike) else data.strides)


def on_numbers(x: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function of arrays to the values of ``x``, without derivatives. It must support additional leading axes."""
    if isinstance(x, np.ndarray):
        return function(x)
    return x.on_numbers(function) if isinstance(x, ArrayLike) else on_numbers(x._raw, function)


class ArrayLike(np.lib.mixins.NDArrayOperatorsMixin):
    """Base class of the interpreters' values: the array interface that rules use, implemented by NumPy functions."""

    __slots__ = ()
    __array_priority__ = 100.0
    __array_ufunc__ = array_ufunc
    __array_function__ = array_function

    wraps = False  # whether ``inside`` has the same values at a lower level, possibly those of all examples
    level: int
    shape: tuple[int, ...]
    dtype: NumpyDType

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def mT(self) -> AnyArray:
        return np.swapaxes(self, -1, -2)

    @property
    def T(self) -> AnyArray:
        return np.transpose(self)

    def astype(self, dtype: NumpyDType, copy: bool = True) -> Any:
        return self if self.dtype == dtype else np.astype(self, dtype)  # type: ignore[call-overload]

    def as_argument(self) -> Any:
        """Return the value as an argument of a transformation, which treats numbers as arrays."""
        return self

    def detached(self) -> Any:
        """Return the value without derivatives at any level."""
        raise NotImplementedError

    def as_variable(self) -> Any:
        """Return the value as an independent variable of a derivative."""
        return self

    @property
    def inside(self) -> AnyArray:
        """The array, tensor or array-like that holds the values."""
        raise NotImplementedError

    def with_inside(self, inside: AnyArray) -> Any:
        """Return this value with another ``inside`` of the same shape and dtype."""
        raise NotImplementedError

    def on_numbers(self, function: Callable[[Any], object]) -> Any:
        """See the function ``on_numbers``."""
        raise NotImplementedError

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in bytes, as in NumPy."""
        inside = self.inside
        memory = inside if isinstance(inside, ArrayLike) else memory_of(inside)
        return memory.strides[-len(self.shape) :] if self.shape else ()

    @property
    def own_strides(self) -> tuple[int, ...]:
        """The strides of one example's value, as if the other examples of a vmap were not interleaved with it."""
        return self.strides

    def concrete(self) -> NumpyArray | None:
        """Return the values as an ndarray, for code that can use them; None if there is no single array."""
        return None

    def read(self) -> NumpyArray | None:
        """Return the values as an ndarray, for code that requires them; None if there is no single array."""
        return self.concrete()

    @property
    def readable(self) -> bool:
        """Whether ``concrete`` returns an array."""
        return self.concrete() is not None

    @property
    def moving(self) -> bool:
        """Whether the value has a tangent or a history, at any level."""
        inside = self.inside
        return bool(getattr(inside, "moving", False) or getattr(inside, "requires_grad", False))

    @property
    def recorded(self) -> Any:
        """The inner tensor whose history is the history of a tensor with this data; None if there is none."""
        return None

    @classmethod
    def with_numbers(cls, x: Any, numbers: Any, level: Any) -> Any:
        """Implement ``tape.inplace.with_numbers`` if ``x`` or ``numbers`` is of this type and level. The other may be of a lower level."""
        raise NotImplementedError

    def set_requires_grad(self, tensor: object, value: bool) -> bool:
        """Set ``requires_grad`` of a tensor with this data, and return True; False if the tensor must set it itself."""
        return False

    shown: Any = None  # the array that is printed for the value

    tracks_tensors = False  # whether ``track_tensor`` must be called

    def track_tensor(self, tensor: object) -> None:
        """Register a tensor that gets this value as its data."""

    def described(self, suffixes: list[str]) -> str:
        """Return the printed form of a tensor with this data."""
        return f"tensor({self!r})"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: object) -> AnyArray:
        return FUNCTIONS["getitem"](self, index)

    def __array__(self, dtype: NumpyDType | None = None, copy: object = None) -> NumpyArray:
        raise errors.escaped_to_numpy(type(self).__name__)
