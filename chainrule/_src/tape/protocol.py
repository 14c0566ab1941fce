"""NumPy's calls, for anything that is not a plain array.

``np.exp(t)`` and ``np.sum(t, axis=0)`` arrive here through ``__array_ufunc__`` and ``__array_function__`` and leave
as operations of ours. Two dictionaries say which; the table and the operations fill them at import.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.libraries import is_container, is_foreign
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, Casting, DTypeLike, NumpyArray, NumpyDType, Params
from chainrule._src.messages import errors

ndarray = np.ndarray
_OBJECT = np.dtype(object)

#: ufunc -> what computes it on array-likes, with NumPy's semantics.
UFUNCS: dict[np.ufunc, AnyFunction] = {}
#: ufunc -> what computes it with its operands exchanged: ``2 - x`` belongs to x, and x comes first on the tape.
EXCHANGED: dict[np.ufunc, AnyFunction] = {}
#: (ufunc, method) -> what computes it: ``np.add.reduce`` and its kin.
UFUNC_METHODS: dict[tuple[np.ufunc, str], AnyFunction] = {}
#: NumPy function -> what computes it on array-likes, with NumPy's signature.
FUNCTIONS: dict[AnyFunction | str, AnyFunction] = {}
#: module of NumPy or SciPy -> the modules that implement its rarer functions. They load when one is first called.
LATER: dict[str, tuple[str, ...]] = {}


#: functions of NumPy's whose operations and parameters depend on shapes, dtypes and static arguments alone, never on numbers
BY_SHAPE: dict[AnyFunction, bool] = {}
#: NumPy function that calls functions of the user's -> its parameter that takes one of them, or a list of them
CALLBACKS: dict[AnyFunction, str] = {}


def implements(
    *numpy_functions: AnyFunction, by_shape: bool = False, callback: str = ""
) -> Callable[[AnyFunction], AnyFunction]:
    """Decorate a function with NumPy's signature as the implementation of those NumPy functions.

    Args:
        by_shape: see ``BY_SHAPE``.
        callback: see ``CALLBACKS``.
    """

    def register(function: AnyFunction) -> AnyFunction:
        for numpy_function in numpy_functions:
            FUNCTIONS[numpy_function] = function
            if by_shape:
                BY_SHAPE[numpy_function] = True
            if callback:
                CALLBACKS[numpy_function] = callback
        return function

    return register


def load(module: str) -> None:
    """Have all that implements functions of a module of NumPy or SciPy."""
    for name in LATER[module]:
        importlib.import_module(name)


def array_ufunc(
    self: object, ufunc: np.ufunc, method: str, *inputs: object, out: object = None, **kwargs: object
) -> Any:
    if method == "__call__" and out is None and not kwargs:
        row = UFUNCS.get(ufunc)
        if row is not None:
            if len(inputs) == 1 and type(data := getattr(self, "_raw", None)) is ndarray and data.dtype.kind == "f":
                return (getattr(row, "function", None) or row)(self)
            inputs = tuple([x.item() if isinstance(x, np.generic) else x for x in inputs])  # weak, on either side
            fast = getattr(row, "function", None)
            if fast is not None and one_float_dtype(inputs):  # NumPy's and PyTorch's promotion agree here
                exchanged = EXCHANGED.get(ufunc) if type(inputs[0]) is float or type(inputs[0]) is int else None
                return fast(*inputs) if exchanged is None else exchanged(inputs[1], inputs[0])
            return NotImplemented if _holds_ours(inputs) else row(*map(plain, inputs))
    if _holds_ours(inputs):
        return NotImplemented
    result = call_ufunc(ufunc, method, inputs, out, kwargs)
    if out is None:
        return result
    return _put(ufunc.__name__, out, result, kwargs.get("casting", "same_kind"), fixed_axes(ufunc, method))


def fixed_axes(function: Any, method: str) -> int:
    """How many axes at the end ``out`` must have like the result, which is broadcast along all others; -1: it must have its shape."""
    if isinstance(function, np.ufunc) and method in ("__call__", "outer"):
        return 0 if function.signature is None else len(re.findall(r"\w+", function.signature.split("->")[1]))
    return 0 if function is np.clip else -1


def _holds_ours(inputs: tuple[object, ...]) -> bool:
    """Whether an operand is a container of arrays (xarray's, pint's), whose own operation it is then."""
    return any(map(is_container, map(type, inputs)))


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Any, out: object, kwargs: Params) -> Any:
    """What a ufunc gives with any of its methods and keywords; ``out`` is only read here, for ``where=``."""
    inputs = tuple(map(plain, inputs))
    function = _computes(ufunc, method)
    if function is None:
        load("numpy")
        if "scipy.special" in sys.modules:
            load("scipy.special")
        function = _computes(ufunc, method)
    if function is None:
        raise errors.no_rule_for_numpy(ufunc.__name__ + ("" if method == "__call__" else "." + method), inputs)
    if method != "__call__":
        return function(*inputs, **kwargs)
    kwargs = {key: value for key, value in kwargs.items() if key != "subok"}
    order = kwargs.pop("order", "K")
    if order not in ("K", None) and method == "__call__":
        return _in_order(ufunc.__name__, call_ufunc(ufunc, method, inputs, out, kwargs), order)
    dtype, casting = kwargs.pop("dtype", None), kwargs.pop("casting", "same_kind")
    if dtype is not None and np.dtype(dtype) == _OBJECT:  # NumPy's own functions, of an array of objects that we are in
        dtype = None
    where = kwargs.pop("where", True)
    if "axis" in kwargs and ufunc.signature == "(n),(n)->()":
        axis = kwargs.pop("axis")
        inputs = tuple([np.moveaxis(x, axis, -1) for x in inputs])
    if kwargs:
        raise errors.numpy_keyword(ufunc.__name__, next(iter(kwargs)))
    if dtype is not None or casting != "same_kind":
        inputs, dtype = _in_dtype(ufunc, inputs, dtype, casting)
    if where is True:
        result = function(*inputs)
        if dtype is None:
            return result
        if isinstance(result, tuple):
            return tuple([np.astype(part, np.dtype(dtype)) for part in result])
        return np.astype(result, np.dtype(dtype))
    if out is None:
        raise errors.numpy_keyword(ufunc.__name__, "where' without 'out")
    result = function(*_harmless(ufunc, inputs, where))
    parts = result if isinstance(result, tuple) else (result,)
    outs = out if isinstance(out, tuple) else (out,)
    kept = tuple([np.where(where, y, o) for y, o in zip(parts, outs, strict=True)])
    return kept if isinstance(result, tuple) else kept[0]


def _in_order(name: str, result: object, order: str) -> Any:
    """A result in rows ("C") or columns ("F")."""
    if isinstance(result, tuple):
        return tuple([_in_order(name, part, order) for part in result])
    if len(getattr(result, "shape", ())) < 2:
        return result
    if order not in ("C", "F"):
        raise errors.numpy_keyword(name, f"order={order!r}")
    copy: Any = np.copy
    return copy(result, order)


def _harmless(ufunc: np.ufunc, inputs: Any, where: AnyArray) -> list[Any]:
    """The operands of a ufunc, and others where it does not compute: there, an infinite partial would make 0 nan."""
    point = _inner_point(ufunc)
    strong = [dtype_of(x) for x in inputs if type(x) not in (int, float, complex, bool)]
    found = []
    for x in inputs:
        if type(x) in (int, float, complex):  # as weak beside the others as it was
            x = np.asarray(x, np.result_type(*strong, x))
        kind = dtype_of(x).kind
        found.append(np.where(where, x, point if kind in "fc" else max(1, int(point))) if kind in "fciu" else x)
    return found


@functools.cache
def _inner_point(ufunc: np.ufunc) -> float:
    """A number at which, for every operand, a ufunc and its derivatives are finite."""
    with np.errstate(all="ignore"), contextlib.suppress(TypeError):  # it takes integers alone
        return 0.5 if np.isfinite(ufunc(*(0.5,) * ufunc.nin)).all() else 2.0
    return 1.0


def _in_dtype(ufunc: np.ufunc, inputs: Any, dtype: DTypeLike, casting: Casting) -> tuple[list[Any], NumpyDType]:
    """The operands cast as ``dtype=`` and ``casting=`` ask for, and the dtype of the result.

    Raises:
        TypeError: NumPy has no such loop, or ``casting`` forbids it.
    """
    given = [
        type(x) if type(x) in (int, float, complex) else dtype_of(np.asarray(x) if type(x) is bool else x)
        for x in inputs
    ]
    asked = (*[None] * ufunc.nin, *[None if dtype is None else np.dtype(dtype)] * ufunc.nout)
    found = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout), signature=asked, casting=casting)
    cast = [x if type(x) in (int, float, complex) else np.astype(x, to) for x, to in zip(inputs, found, strict=False)]
    return cast, found[-1]


def _computes(ufunc: np.ufunc, method: str) -> AnyFunction | None:
    return UFUNCS.get(ufunc) if method == "__call__" else UFUNC_METHODS.get((ufunc, method))


def one_float_dtype(inputs: tuple[object, ...]) -> bool:
    """Whether the inputs are tensors of one floating dtype, and numbers."""
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
    ours = FUNCTIONS.get(function) or implementation(function, (*args, *kwargs.values()))
    result, out = call_function(function.__name__, ours, args, kwargs)
    return result if out is None else _put(function.__name__, out, result, fixed=fixed_axes(function, ""))


#: Keywords of NumPy's functions that change nothing about the numbers.
_HARMLESS = frozenset({"casting", "order", "subok", "optimize", "kind", "stable", "overwrite_input", "device"})


def call_function(name: str, ours: AnyFunction, args: Sequence[object], kwargs: Params) -> tuple[Any, Any]:
    """What an implementation gives, and the ``out`` that was passed. No keyword is passed over silently."""
    names, out_at, takes_any = _signature(ours)
    out = None
    if 0 <= out_at < len(args):
        out, args = args[out_at], (*args[:out_at], None, *args[out_at + 1 :])
    if not kwargs:
        return ours(*args), out
    kwargs = dict(kwargs)
    out = kwargs.pop("out", out)
    if takes_any or names.issuperset(kwargs):
        return ours(*args, **kwargs), out
    dtype = kwargs.pop("dtype", None) if "dtype" not in names else None
    order = kwargs.get("order", "K") if "order" not in names else "K"
    for keyword in [k for k in kwargs if k not in names]:
        if keyword not in _HARMLESS:
            raise errors.numpy_keyword(name, keyword)
        del kwargs[keyword]
    result = ours(*args, **kwargs)
    result = result if dtype is None else np.astype(result, np.dtype(dtype))
    return (result if order not in ("C", "F", "A") else _in_order(name, result, order)), out


@functools.cache
def _signature(function: AnyFunction) -> tuple[frozenset[str], int, bool]:
    """The names of a function's parameters, the position of ``out`` (-1: it has none), and whether it takes any keyword."""
    parameters = inspect.signature(function).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    out = parameters.get("out")
    by_position = out is not None and out.kind is out.POSITIONAL_OR_KEYWORD
    return frozenset(parameters), list(parameters).index("out") if by_position else -1, takes_any


def out_position(function: AnyFunction) -> int:
    """At which position an implementation takes ``out``; -1: by no position."""
    return _signature(function)[1]


def implementation(function: AnyFunction, operands: tuple[object, ...]) -> AnyFunction:
    """What computes a NumPy function on array-likes, loaded if need be.

    Raises:
        NotImplementedError: nothing does.
    """
    ours = FUNCTIONS.get(function)
    if ours is None:
        load(function.__module__ if function.__module__ in LATER else "numpy")
        ours = FUNCTIONS.get(function)
    if ours is None:
        raise errors.no_rule_for_numpy(function.__name__, operands)
    return ours


def _put(name: str, out: object, result: AnyArray, casting: Any = "same_kind", fixed: int = -1) -> AnyArray:
    """NumPy's ``out=``: it must be a tensor, which the result is written into, recorded."""
    target = out[0] if isinstance(out, tuple) else out
    if not hasattr(target, "copy_"):
        raise errors.out_is_plain_array(name, target)
    check_out(name, target, result, casting, fixed)
    return target.copy_(result)


def check_out(name: str, target: Any, result: AnyArray, casting: Casting, fixed: int) -> None:
    """Raise if a result does not fit the shape of what ``out=`` names, or may not be cast to its dtype, as NumPy does.

    Args:
        fixed: see ``fixed_axes``.
    """
    shape, wanted = shape_of(result), shape_of(target)
    pairs = enumerate(zip(shape[::-1], wanted[::-1], strict=False))
    stretches = len(shape) <= len(wanted) and all(n == m or (n == 1 and k >= fixed) for k, (n, m) in pairs)
    if shape != wanted and (fixed < 0 or not stretches):
        raise errors.array_output_shape(f"np.{name}(out=)", tuple(wanted), tuple(shape))
    have, want = dtype_of(result), dtype_of(target)
    if not np.can_cast(have, want, casting):
        raise TypeError(f"Cannot cast ufunc {name!r} output from {have!r} to {want!r} with casting rule {casting!r}")


def plain(x: Any) -> Any:
    """An array of a subclass, and what can only be an array (a Series of pandas'), as an ordinary array of its memory.

    Another library's array is ``Foreign``. Anything else is returned as it is.

    Raises:
        TypeError: a matrix or a masked array of NumPy's, whose operations mean something else; a sparse matrix of SciPy's.
    """
    if type(x) is ndarray:
        return x
    kind: Any = type(x)
    if is_foreign(kind):
        return FOREIGN[0](x)
    if is_container(kind) and hasattr(x, "dims"):
        return plain(x.data)  # xarray's: of the values alone
    if not isinstance(x, ndarray):
        data = hasattr(x, "__array__") and not (hasattr(x, "__array_function__") or isinstance(x, (np.generic, type)))
        if not data and kind.__module__.startswith("scipy.sparse."):
            raise errors.sparse_in_function(x)
        return np.asarray(x) if data else x
    if _means_else(kind):
        raise errors.special_array(kind)
    return np.asarray(x)


#: what stands around other libraries' arrays: ``tape.foreign.Foreign``, which is a class of what is below
FOREIGN: list[Callable[[Any], ArrayLike]] = []


def as_is(x: object) -> Any:
    """As ``np.asarray``, but for another library's array, which is not read."""
    found = plain(x)
    return found if isinstance(found, ArrayLike) else np.asarray(found)


def as_array(x: object, dtype: DTypeLike = None) -> NumpyArray:
    """``np.asarray``, but for what ``plain`` refuses."""
    return np.asarray(plain(x), dtype)


def check_kinds(kinds: Any) -> None:
    """Raise for what ``plain`` refuses among the types of a function's operands."""
    for kind in kinds:
        if kind is not ndarray and issubclass(kind, ndarray) and _means_else(kind):
            raise errors.special_array(kind)


@functools.cache
def _means_else(kind: Any) -> bool:
    """Whether a subclass of ndarray is one of NumPy's that compute something else. (Loading numpy.ma takes a while.)"""
    return any((c.__module__, c.__name__) in _ELSE for c in kind.__mro__)


_ELSE = {("numpy", "matrix"), ("numpy.ma", "MaskedArray")}


def detached(x: object) -> Any:
    """Any value, cut off from every derivative: tensors and interpreters' values know how; arrays are."""
    if isinstance(x, ArrayLike):
        return x.detached()
    return x.detach() if hasattr(x, "detach") else x


def memory_of(x: Any) -> NumpyArray:
    """The array that a tensor or an array-like has its values in, whatever is around it."""
    while not isinstance(x, np.ndarray):
        x = x.inside if isinstance(x, ArrayLike) else x._raw
    return x


def holds_of(x: Any, question: Callable[[Any], object]) -> bool:
    """Whether something is so for the numbers of any value, of all examples at once. A recording relies on the answer.

    Args:
        question: from an array to an array of one boolean, always the same function (or an equal one).
    """
    while not isinstance(x, (np.ndarray, np.generic)):
        if getattr(type(x), "stands_for_array", False):
            return bool(x.on_numbers(question))
        x = x.inside if isinstance(x, ArrayLike) else x._raw
    return bool(question(x))


def strides_of(x: Any) -> tuple[int, ...]:
    """The ``own_strides`` of a tensor, an array-like or an array."""
    data = getattr(x, "_raw", x)
    return tuple(data.own_strides if isinstance(data, ArrayLike) else data.strides)


def on_numbers(x: Any, function: Callable[[Any], Any]) -> Any:
    """What a function of plain arrays gives for any value: one without a derivative, that leaves leading axes alone."""
    if isinstance(x, np.ndarray):
        return function(x)
    return x.on_numbers(function) if isinstance(x, ArrayLike) else on_numbers(x._raw, function)


class ArrayLike(np.lib.mixins.NDArrayOperatorsMixin):
    """Base of the interpreters' values: everything a rule may ask of an array, in terms of NumPy's functions."""

    __slots__ = ()
    __array_priority__ = 100.0
    __array_ufunc__ = array_ufunc
    __array_function__ = array_function

    wraps = False  # whether what is inside are the same values, of a lower level, and maybe of all examples
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
        """The value as an argument of a transformation, for which every number is an array."""
        return self

    def detached(self) -> Any:
        """The value cut off from every derivative that is being taken of it."""
        raise NotImplementedError

    def as_variable(self) -> Any:
        """The value as one that a derivative is taken by."""
        return self

    @property
    def inside(self) -> AnyArray:
        """What this holds the values in: an array, a tensor or another array-like."""
        raise NotImplementedError

    def with_inside(self, inside: AnyArray) -> Any:
        """Return this value with other ``inside``, of the same shape and dtype."""
        raise NotImplementedError

    def on_numbers(self, function: Callable[[Any], object]) -> Any:
        """See the function of this name."""
        raise NotImplementedError

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps between neighbours in memory, in bytes, as NumPy counts them."""
        inside = self.inside
        around = inside if isinstance(inside, ArrayLike) else memory_of(inside)
        return around.strides[-len(self.shape) :] if self.shape else ()

    @property
    def own_strides(self) -> tuple[int, ...]:
        """The strides, without what lies between the elements that belongs to others: to other examples of a vmap."""
        return self.strides

    def concrete(self) -> NumpyArray | None:
        """The plain array of the values, for code that does better with the numbers; None where there is no single one."""
        return None

    def read(self) -> NumpyArray | None:
        """The plain array of the values, for code that cannot do without the numbers; None where there is no single one."""
        return self.concrete()

    @property
    def readable(self) -> bool:
        """Whether there are numbers to read."""
        return self.concrete() is not None

    @property
    def moving(self) -> bool:
        """Whether it carries a derivative, a tangent or a history, at any level."""
        inside = self.inside
        return bool(getattr(inside, "moving", False) or getattr(inside, "requires_grad", False))

    @property
    def recorded(self) -> Any:
        """The tensor inside whose history is the history of a tensor around this; None where there is none."""
        return None

    @classmethod
    def with_numbers(cls, x: Any, numbers: Any, level: Any) -> Any:
        """See ``tape.inplace``: one of the two is a value of this kind and level, the other may be of a lower one."""
        raise NotImplementedError

    def requiring(self, tensor: object, value: bool) -> bool:
        """Set ``requires_grad`` of a tensor around this, where that is not for the tensor itself to do: then True."""
        return False

    shown: Any = None  # the plain array that a value prints as

    notes_holders = False  # whether ``held_by`` wants to be called

    def held_by(self, tensor: object) -> None:
        """Called when a tensor gets this as its data."""

    def described(self, suffixes: list[str]) -> str:
        """What a tensor around this prints as."""
        return f"tensor({self!r})"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: object) -> AnyArray:
        return FUNCTIONS["getitem"](self, index)

    def __array__(self, dtype: NumpyDType | None = None, copy: object = None) -> NumpyArray:
        raise errors.escaped_to_numpy(type(self).__name__)
