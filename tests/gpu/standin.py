"""A module like CuPy, of NumPy: no GPU is needed, and what CuPy refuses, this refuses.

An array holds its elements where nothing but ``.get()`` reaches them. What is there, and with which parameters, is what
``names.txt`` lists (CuPy's own, by ``tools/cupy_names.py``). As CuPy's source has it:

- nothing becomes a NumPy array, or comes from one, without a word: ``np.asarray(x)`` and ``x + array`` are TypeErrors;
- every result is an array, of no dimensions too; never a number of NumPy's;
- indices outside of an axis are counted around it, without an error; ``put`` with one place twice may keep either value;
- ``add.at`` is for some dtypes; other ufuncs cannot be reduced or accumulated;
- decompositions that fail give nan, unless ``cupyx.errstate(linalg="raise")`` is on.

It is stricter than CuPy where that is simpler: an array of NumPy's is taken by ``array``, ``asarray`` and indices alone.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import itertools
import pathlib
import types
from typing import Any

import numpy as np
import scipy.special

_SCALARS = (bool, int, float, complex, np.bool_, np.number)
DEVICES = 2
_CURRENT = [0]
_ADDS = frozenset("efdilqILQ")  # the dtypes of add.at
_AT = {
    "add": _ADDS, "subtract": frozenset("iI"), "maximum": _ADDS - {"e"}, "minimum": _ADDS - {"e"},
    "bitwise_and": frozenset("ilqILQ"), "bitwise_or": frozenset("ilqILQ"), "bitwise_xor": frozenset("ilqILQ"),
}  # fmt: skip


#: functions of complex numbers in SciPy, of real ones in CuPy
_REAL = {"erf", "erfc", "erfcx", "exp1", "expi", "log_ndtr", "ndtr"}


class Device:
    """``cupy.cuda.Device``."""

    def __init__(self, device: Any = None) -> None:
        self.id = _CURRENT[-1] if device is None else int(device)
        if not 0 <= self.id < DEVICES:
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Device) and self.id == other.id

    __hash__ = None  # type: ignore[assignment]

    def __enter__(self) -> Device:
        _CURRENT.append(self.id)
        return self

    def __exit__(self, *error: Any) -> None:
        _CURRENT.pop()

    def use(self) -> None:
        _CURRENT[-1] = self.id

    def synchronize(self) -> None:
        pass

    @property
    def mem_info(self) -> tuple[int, int]:
        return 2**30, 2**34

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


class ndarray:
    """``cupy.ndarray``."""

    __module__ = "cupy"
    __slots__ = ("__weakref__", "_device", "_host")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shape: Any, dtype: Any = float) -> None:
        self._host = np.empty(shape, dtype)
        self._device = _CURRENT[-1]

    # -- what CuPy forbids, and how its arrays leave the GPU ---------------------------------------------------------

    def __array__(self, dtype: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
        )

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        return self._host.copy(order)

    def item(self) -> Any:
        if self._host.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self._host.item()

    def tolist(self) -> Any:
        return self._host.tolist()

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __float__(self) -> float:
        return float(self._host)

    def __complex__(self) -> complex:
        return complex(self._host)

    def __index__(self) -> int:
        return self._host.__index__()

    def __repr__(self) -> str:
        return repr(self._host)

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> Any:
        return array, (self.get(),)

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.copy()

    # -- attributes and methods --------------------------------------------------------------------------------------

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    strides = property(lambda self: self._host.strides)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    flags = property(lambda self: self._host.flags)
    device = property(lambda self: Device(self._device))
    data = property(lambda self: types.SimpleNamespace(ptr=self._host.ctypes.data, device_id=self._device))
    T = property(lambda self: _out(self._host.T))
    mT = property(lambda self: _out(self._host.mT))
    real = property(lambda self: _out(self._host.real))
    imag = property(lambda self: _out(self._host.imag))

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(f"'ndarray' object has no attribute '{name}'")
        return functools.partial(_method, self, name)

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True
    ) -> ndarray:
        return _out(self._host.astype(dtype, order, copy=copy))

    def fill(self, value: Any) -> None:
        self._host.fill(_inside(value) if isinstance(value, ndarray) else _number(value))

    def __getitem__(self, index: Any) -> ndarray:
        index = _index(index, self.shape)
        found = self._host[index]
        return _out(found if isinstance(found, np.ndarray) else self._host[(*index, Ellipsis)])

    def __setitem__(self, index: Any, value: Any) -> None:
        value = _inside(value) if isinstance(value, ndarray) else _number(value)
        self._host[_index(index, self.shape)] = value

    # -- DLPack ------------------------------------------------------------------------------------------------------

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self._device

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if dl_device not in (None, (1, 0), self.__dlpack_device__()):
            raise BufferError("unsupported device requested.")
        if isinstance(stream, int) and stream < -1:
            raise ValueError(
                f"On CUDA, the valid stream for the DLPack protocol is -1, 1, 2, or any larger value, but {stream}"
            )
        if dl_device == (1, 0):
            return self._host.copy().__dlpack__(max_version=max_version)
        return Capsule(self, stream)

    # -- NumPy's protocols -------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        inout = inputs
        if "out" in kwargs:
            (kwargs["out"],) = kwargs["out"]
            inout += (kwargs["out"],)
        if method not in ("__call__", "outer", "at", "reduce", "accumulate", "reduceat"):
            return NotImplemented
        function = vars(cupy).get(ufunc.__name__) or vars(special).get(ufunc.__name__)
        if function is None:
            return NotImplemented
        if not all(type(x) in _PLAIN_TYPES or isinstance(x, (ndarray, np.ndarray)) for x in inout):
            return NotImplemented
        if ufunc.__name__ in ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"):
            inputs = tuple(x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in inputs)
        return (function if method == "__call__" else getattr(function, method))(*inputs, **kwargs)

    def __array_function__(self, function: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        own = cupy
        for name in (*function.__module__.split(".")[1:], function.__name__):
            own = getattr(own, name, None)
        if own is None or own is function or not all(issubclass(kind, (ndarray, np.ndarray)) for kind in kinds):
            return NotImplemented
        return own(*args, **kwargs)


def _binary(name: str) -> tuple[Any, Any]:
    ufunc = getattr(np, name)

    def method(x: Any, y: Any) -> Any:
        return NotImplemented if getattr(type(y), "__array_ufunc__", ...) is None else ufunc(x, y)

    def reflected(x: Any, y: Any) -> Any:
        return NotImplemented if getattr(type(y), "__array_ufunc__", ...) is None else ufunc(y, x)

    return method, reflected


def _unary(ufunc: Any) -> Any:
    return lambda x: ufunc(x)


def _assigning(name: str) -> Any:
    def method(x: Any, y: Any) -> Any:
        return getattr(np, name)(x, y, out=x)

    return method


for _symbol, _name in {
    "add": "add", "sub": "subtract", "mul": "multiply", "matmul": "matmul", "truediv": "divide", "mod": "remainder",
    "floordiv": "floor_divide", "pow": "power", "lshift": "left_shift", "rshift": "right_shift", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor",
}.items():  # fmt: skip
    _method_, _reflected_ = _binary(_name)
    setattr(ndarray, f"__{_symbol}__", _method_)
    setattr(ndarray, f"__r{_symbol}__", _reflected_)
    setattr(ndarray, f"__i{_symbol}__", _assigning(_name))
for _symbol, _name in {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"
}.items():  # fmt: skip
    setattr(ndarray, f"__{_symbol}__", _binary(_name)[0])
for _symbol, _name in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
    setattr(ndarray, f"__{_symbol}__", _unary(getattr(np, _name)))


def _out(x: Any) -> Any:
    """What NumPy gave, as CuPy would give it."""
    if isinstance(x, tuple):
        return tuple([_out(item) for item in x])  # without names
    if isinstance(x, list):
        return [_out(item) for item in x]
    if not isinstance(x, (np.ndarray, np.generic)):
        return x
    made = ndarray.__new__(ndarray)
    made._host = x if isinstance(x, np.ndarray) else np.asarray(x)
    made._device = _CURRENT[-1]
    return made


def _inside(x: ndarray) -> Any:
    if x._device != _CURRENT[-1]:
        raise ValueError(
            f"The device where the array resides ({x._device}) is different from the current device ({_CURRENT[-1]}). "
            "Peer access is unavailable between these devices."
        )
    return x._host


def _number(x: Any) -> Any:
    if isinstance(x, np.ndarray) and x.ndim == 0:
        return x[()]
    if not isinstance(x, _SCALARS):
        raise TypeError(f"Unsupported type {type(x)}")
    return x


def _in(x: Any) -> Any:
    """An argument as NumPy can have it. Arrays of NumPy's cannot come in."""
    if isinstance(x, ndarray):
        return _inside(x)
    if isinstance(x, np.ndarray) or (type(x).__module__.startswith("chainrule") and hasattr(x, "shape")):
        raise TypeError(f"Unsupported type {type(x)}")
    if isinstance(x, (tuple, list)):
        return type(x)([_in(item) for item in x])
    return {key: _in(value) for key, value in x.items()} if isinstance(x, dict) else x


def _axes(item: Any) -> int:
    return item.ndim if getattr(item, "dtype", None) == np.dtype(bool) else 1


def _index(index: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index of NumPy's, with integers in arrays counted around."""
    items = [
        _inside(i) if isinstance(i, ndarray) else np.asarray(i, None if len(i) else int) if isinstance(i, list) else i
        for i in (index if isinstance(index, tuple) else (index,))
    ]
    if any(type(i).__module__.startswith("chainrule") for i in items):
        raise IndexError(
            "only integers, slices, ellipsis, numpy.newaxis and integer or boolean arrays are valid indices"
        )
    taken = [0 if i is None or i is Ellipsis else _axes(i) for i in items]
    axis, found = 0, []
    for item, n in zip(items, taken, strict=True):
        if isinstance(item, np.ndarray) and item.dtype.kind in "iu" and shape[axis]:
            item = np.remainder(item, shape[axis])
        axis = len(shape) - (sum(taken) - axis) if item is Ellipsis else axis + n
        found.append(item)
    return tuple(found)


# -- functions ---------------------------------------------------------------------------------------------------------


class ufunc:
    """A ufunc of CuPy's."""

    def __init__(self, name: str, nin: int, nout: int, numpy: Any) -> None:
        self.__name__ = self.name = name
        self.nin, self.nout, self.numpy = nin, nout, numpy

    def __call__(self, *args: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind") -> Any:
        if not self.nin <= len(args) <= self.nin + self.nout:
            raise TypeError(f"Wrong number of arguments for {self.name!r}")
        if len(args) > self.nin:
            out = args[self.nin]
        inputs = [_inside(x) if isinstance(x, ndarray) else self._scalar(x) for x in args[: self.nin]]
        options = {} if dtype is None else {"dtype": dtype}
        if self.name in _REAL and any(np.iscomplexobj(x) for x in inputs):
            raise TypeError(f"Wrong type ({inputs[0].dtype}) of arguments for cupy_{self.name}")
        with np.errstate(all="ignore"):
            if out is None:
                return _out(self.numpy(*inputs, **options))
            out = out[0] if isinstance(out, tuple) else out
            self.numpy(*inputs, out=_inside(out), casting=casting, **options)
            return out

    def _scalar(self, x: Any) -> Any:
        if not isinstance(x, _SCALARS):
            raise TypeError(f"Unsupported type {type(x)}")
        return x

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        if self.name not in _AT:
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        if a.dtype.char not in _AT[self.name]:
            raise TypeError(f"cupy.{self.name}.at does not support {a.dtype}")
        self.numpy.at(_inside(a), _index(indices, a.shape), _inside(b) if isinstance(b, ndarray) else _number(b))

    def outer(self, a: Any, b: Any) -> Any:
        return _out(self.numpy.outer(_in(a), _in(b)))

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if self.name not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.name}.reduce` is not supported yet")
        return _out(self.numpy.reduce(_in(array), axis=axis, dtype=dtype, keepdims=keepdims))

    def accumulate(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.name not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.name}.accumulate` is not supported yet")
        return _out(self.numpy.accumulate(_in(array), axis=axis, dtype=dtype))


#: where a number is no array for CuPy: it calls methods of what it gets
_ARRAYS_ONLY = {
    "a", "b", "arr", "array", "x1", "x2", "m", "condition", "tup", "ary", "v", "element", "test_elements", "c", "indices",
}  # fmt: skip
_NUMBERS_TOO = {"isclose", "allclose", "outer", "full_like", "isscalar", "ndim", "shape", "result_type"}


def _function(name: str, text: str, numpy: Any) -> Any:
    """A function of CuPy's: its parameters, and what NumPy computes for them."""
    signature = _signature(text)

    def function(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments  # a TypeError for what CuPy does not know
        for parameter, x in given.items():
            if parameter in _ARRAYS_ONLY and name not in _NUMBERS_TOO:
                for item in x if isinstance(x, (tuple, list)) else [x]:
                    if isinstance(item, _SCALARS) and not (name == "take" or (name == "clip" and parameter != "a")):
                        raise AttributeError(f"'{type(item).__name__}' object has no attribute 'dtype'")
        if name in ("full", "full_like") and np.ndim(getattr(given["fill_value"], "_host", given["fill_value"])):
            raise ValueError("non-scalar cupy.ndarray cannot be used for fill")
        out = kwargs.pop("out", None)
        args, kwargs = _in(list(args)), _in(kwargs)
        if name in ("take", "take_along_axis"):
            args, kwargs = _around(name, args, kwargs)
        if name in ("sort", "argsort") and given.get("kind") not in (None, "stable"):
            raise ValueError("CuPy sorts in one way: kind must be None or 'stable'")
        with np.errstate(all="ignore"):
            result = _out(numpy(*args, **kwargs))
        if out is None:
            return result
        _inside(out)[...] = result._host
        return out

    function.__name__ = name
    return function


def _around(name: str, args: Any, kwargs: Any) -> Any:
    """The arguments of ``take``, with indices counted around the axis."""
    bound = dict(zip(("a", "indices", "axis"), args, strict=False)) | kwargs
    a, axis = bound["a"], bound.get("axis")
    n = a.size if axis is None else a.shape[axis]
    bound["indices"] = np.remainder(bound["indices"], n) if n else bound["indices"]
    return [], bound if name == "take" else {"arr": a, "indices": bound["indices"], "axis": axis}


def _signature(text: str) -> inspect.Signature:
    """The signature that a line of ``names.txt`` writes; a default is only there or not."""
    clean = text.replace("_ndarray_base ", "").replace("int ", "").replace("bool ", "")
    for kind in ("'float'", "'int'", "'numpy.float64'"):
        clean = clean.replace(f"<class {kind}>", "None")
    given: Any = ast.parse(f"lambda {clean[1:-1]}: 0", mode="eval").body
    arguments = given.args
    parameter = inspect.Parameter
    found = []
    positional = [*arguments.posonlyargs, *arguments.args]
    first = len(positional) - len(arguments.defaults)
    for i, argument in enumerate(positional):
        kind = parameter.POSITIONAL_ONLY if i < len(arguments.posonlyargs) else parameter.POSITIONAL_OR_KEYWORD
        found.append(parameter(argument.arg, kind, default=None if i >= first else parameter.empty))
    if arguments.vararg:
        found.append(parameter(arguments.vararg.arg, parameter.VAR_POSITIONAL))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(
            parameter(argument.arg, parameter.KEYWORD_ONLY, default=parameter.empty if default is None else None)
        )
    if arguments.kwarg:
        found.append(parameter(arguments.kwarg.arg, parameter.VAR_KEYWORD))
    return inspect.Signature(found)


def _method(self: ndarray, name: str, *args: Any, **kwargs: Any) -> Any:
    result = getattr(self._host, name)(*_in(args), **_in(kwargs))
    return self if result is None else _out(result)


# -- modules -----------------------------------------------------------------------------------------------------------


def array(obj: Any, dtype: Any = None, copy: Any = True, order: str = "K", ndmin: int = 0, **options: Any) -> ndarray:
    """``cupy.array``: of numbers, nested sequences and NumPy's arrays."""
    if isinstance(obj, ndarray):
        made = (
            _out(obj._host) if dtype in (None, obj.dtype) and not copy else _out(obj._host.astype(dtype or obj.dtype))
        )
        if made._host is obj._host:
            made._device = obj._device
        return made
    if isinstance(obj, (list, tuple)) and any(isinstance(x, ndarray) for x in obj):
        return _out(np.stack([_inside(x) for x in obj]).astype(dtype or obj[0].dtype))
    return _out(np.array(obj, dtype, ndmin=ndmin, order="C"))


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False) -> ndarray:
    """``cupy.asarray``."""
    return a if isinstance(a, ndarray) and dtype in (None, a.dtype) and not copy else array(a, dtype, bool(copy))


class Capsule:
    """What ``__dlpack__`` of an array on the GPU gives: only ``from_dlpack`` opens it."""

    def __init__(self, x: ndarray, stream: Any) -> None:
        self.x, self.stream = x, stream


def from_dlpack(array: Any, *, device: Any = None, copy: Any = None) -> ndarray:
    """``cupy.from_dlpack``: the same memory."""
    kind, number = array.__dlpack_device__()
    if kind == 1:
        return _out(np.from_dlpack(array).copy())
    if kind != 2:
        raise BufferError(f"Unsupported device type {kind}")
    with Device(number):
        capsule = array.__dlpack__(stream=1, max_version=(1, 0))  # the default stream, as CUDA counts it
        assert isinstance(capsule, Capsule)
        found = _out(capsule.x._host)
    return found


class _NoGPU:
    """A source of random numbers on the GPU, which here is NumPy's."""

    def __init__(self, seed: Any) -> None:
        self._rng = np.random.Generator(np.random.PCG64(seed))

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return _out(self._rng.random(size, dtype))

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return _out(self._rng.standard_normal(size, dtype))

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        return _out(self._rng.integers(low, high, size, dtype, endpoint))


_FAILING = {"cholesky", "inv", "solve", "svd", "eigh", "eigvalsh", "eig", "eigvals", "qr"}
_LINALG = ["ignore"]


@contextlib.contextmanager
def errstate(
    *, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None, linalg: Any = None
) -> Any:
    """``cupyx.errstate``."""
    _LINALG.append(_LINALG[-1] if linalg is None else linalg)
    try:
        yield
    finally:
        _LINALG.pop()


def _may_fail(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(np.dtype(getattr(x, "dtype", "f8")).char == "e" for x in args):
            raise TypeError("array type float16 is unsupported in linalg")
        if function.__name__ == "solve" and args[1].ndim > 1 and args[0].shape[:-1] != args[1].shape[:-1]:
            raise ValueError("a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b")
        try:
            return function(*args, **kwargs)
        except np.linalg.LinAlgError:
            if _LINALG[-1] == "raise":
                raise
            return _out(np.full_like(_inside(args[0]), np.nan))

    return call


_HERE = pathlib.Path(__file__).parent
_PLAIN_TYPES = {bool, int, float, complex, np.bool_, *(np.dtype(c).type for c in "bBhHiIlLqQefdFD")}
_NUMPY = {"cupy": np, "cupy.linalg": np.linalg, "cupy.fft": np.fft, "cupyx.scipy.special": scipy.special}


def _fill(module: Any, lines: list[str]) -> None:
    numpy: Any = np.lib.stride_tricks if module.__name__.endswith("tricks") else _NUMPY[module.__name__]
    for line in lines:
        name, *rest = line.split(" ") if "(" not in line else (line.partition("(")[0],)
        own = getattr(numpy, name, None) or getattr(scipy.special, name, None)
        if not callable(own) or hasattr(module, name):
            continue
        if rest == ["="]:
            setattr(module, name, own)
        elif rest:
            setattr(module, name, ufunc(name, int(rest[1]), int(rest[2]), own))
        else:
            setattr(module, name, _function(name, line[len(name) :], own))
            if module.__name__ == "cupy.linalg" and name in _FAILING:
                setattr(module, name, _may_fail(getattr(module, name)))


def _sections() -> dict[str, list[str]]:
    text = (_HERE / "names.txt").read_text().splitlines()[1:]
    starts = [i for i, line in enumerate(text) if line.startswith("[")] + [len(text)]
    return {text[i][1:-1]: text[i + 1 : j] for i, j in itertools.pairwise(starts)}


def _pool() -> Any:
    return types.SimpleNamespace(used_bytes=lambda: 4096, total_bytes=lambda: 8192, free_all_blocks=lambda: None)


_NAMES = _sections()
_METHODS = frozenset(_NAMES.pop("cupy.ndarray"))
cupy, cupyx, special = (types.ModuleType(name) for name in ("cupy", "cupyx", "cupyx.scipy.special"))
for _part in ("linalg", "fft", "cuda", "random", "lib"):
    setattr(cupy, _part, types.ModuleType(f"cupy.{_part}"))
cupy.lib.stride_tricks = types.ModuleType("cupy.lib.stride_tricks")
cupyx.scipy = types.ModuleType("cupyx.scipy")
cupyx.scipy.special = special
cupyx.errstate = errstate
for _function_ in (array, asarray, from_dlpack):
    setattr(cupy, _function_.__name__, _function_)
cupy.ndarray = ndarray
cupy.is_available = lambda: True
cupy.get_default_memory_pool = _pool
cupy.get_default_pinned_memory_pool = _pool
for _section, _lines in _NAMES.items():
    _target = special if _section == "cupyx.scipy.special" else functools.reduce(getattr, _section.split(".")[1:], cupy)
    _fill(_target, _lines)
cupy.cuda.Device = Device
cupy.cuda.is_available = lambda: True
cupy.cuda.get_current_stream = lambda: types.SimpleNamespace(ptr=0, synchronize=lambda: None)
cupy.cuda.runtime = types.SimpleNamespace(
    getDeviceCount=lambda: DEVICES,
    getDevice=lambda: _CURRENT[-1],
    getDeviceProperties=lambda device: {
        "name": b"a stand-in, of NumPy",
        "totalGlobalMem": 2**34,
        "major": 9,
        "minor": 0,
    },
    deviceSynchronize=lambda: None,
    CUDARuntimeError=RuntimeError,
)
cupy.random.default_rng = _NoGPU
cupy.random.seed = lambda seed=None: None

MODULES = {
    "cupy": cupy,
    "cupyx": cupyx,
    "cupyx.scipy": cupyx.scipy,
    "cupyx.scipy.special": special,
    **{f"cupy.{name}": getattr(cupy, name) for name in ("linalg", "fft", "cuda", "random")},
}
