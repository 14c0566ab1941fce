"""PyTorch's functions that make tensors: from data, constants and ranges.

``op`` makes these functions public: ``chainrule.tensor``, ``chainrule.full_like`` …
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.api.declare import op
from chainrule._src.api.making import make_tensor
from chainrule._src.arrays.device import DeviceLike, gpu_of
from chainrule._src.arrays.dtypes import as_dtype, default_dtype, get_default_complex_dtype
from chainrule._src.arrays.size import Size
from chainrule._src.arrays.types import AnyArray, AnyFunction, DTypeLike, NumpyArray, NumpyDType, ShapeLike, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops.arguments import new_array, number_in, placed, tensor_of, with_creation_keywords
from chainrule._src.ops.shaping import _ints
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.tensor import Tensor, wrap


@op(arrays=False)
def tensor(
    data: Any, *, dtype: DTypeLike = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Return a tensor with a copy of the data.

    Args:
        data: a number, nested lists of numbers, or an array. Python floats get the default dtype (float32); NumPy data
            keeps its dtype.
        dtype: another dtype.
        requires_grad: whether to compute the gradient with respect to it.

    Raises:
        RuntimeError: ``data`` contains tensors that require grad (copying would cut the graph: use ``stack``), or
            the dtype is not floating or complex and ``requires_grad`` is true.

    >>> import chainrule as cr
    >>> cr.tensor([1., 2.], requires_grad=True)
    tensor([1., 2.], requires_grad=True)
    """
    return _to(make_tensor(data, dtype, False, True), device, data, requires_grad)


@op(arrays=False)
def as_tensor(data: Any, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Return a tensor that shares the data's memory where possible; a tensor is returned unchanged (with its graph)."""
    if type(data) is Array:
        data = data._tensor
    if isinstance(data, Tensor):
        out = data if dtype is None or data.dtype == as_dtype(dtype) else data.to(as_dtype(dtype))
    else:
        out = make_tensor(data, dtype, False, False)
    return _to(out, device, data)


def _to(result: Tensor, device: DeviceLike, data: object, requires_grad: bool = False) -> Tensor:
    """Put a tensor on a device; by default, numbers go to the default device, and arrays stay where they are."""
    if device is not None or not (hasattr(data, "shape") or hasattr(data, "__dlpack__")):
        result = placed(result, gpu_of(device))
    if requires_grad:
        result.requires_grad = requires_grad
    return result


@op(arrays=False)
def asarray(
    obj: Any, *, dtype: DTypeLike = None, device: DeviceLike = None, copy: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor from data, as :func:`as_tensor` with NumPy's arguments."""
    out = tensor(obj, dtype=dtype, device=device) if copy else as_tensor(obj, dtype, device)
    return out.requires_grad_() if requires_grad else out


_AS_THEY_ARE = frozenset(map(np.dtype, ("f4", "f8", "c8", "c16", "i4", "i8", "u1", "?")))


@op(arrays=False)
def from_numpy(array: Any) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array.

    Raises:
        TypeError: the argument is not an array.
    """
    if type(array) is np.ndarray and array.dtype in _AS_THEY_ARE:
        return wrap(array)
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    return make_tensor(array, None, False, False)


@op(arrays=False)
def frombuffer(
    buffer: object, *, dtype: DTypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Return a vector that shares the memory of an object with a buffer; read-only buffers such as bytes are copied."""
    array = np.frombuffer(buffer, as_dtype(dtype), count, offset)
    return _wrap_new(array if array.flags.writeable else array.copy(), requires_grad)


@op(arrays=False)
@with_creation_keywords
def scalar_tensor(s: Any, *, dtype: DTypeLike = None, device: DeviceLike = None, requires_grad: bool = False) -> Tensor:
    """Return a 0-d tensor of the default dtype."""
    return tensor(s, dtype=dtype or default_dtype(), requires_grad=requires_grad)


def _wrap_new(array: AnyArray, requires_grad: bool) -> Tensor:
    out = wrap(array)
    if requires_grad:
        out.requires_grad = requires_grad
    return out


def _float_or(dtype: DTypeLike) -> NumpyDType:
    return default_dtype() if dtype is None else as_dtype(dtype)


def _sizes(name: str, size: Any) -> tuple[int, ...]:
    shape = _ints(name, size)
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def _declared(function: AnyFunction, name: str, doc: str, names: str = "", arrays: bool = True) -> AnyFunction:
    """Declare one of several functions that differ in the NumPy function they call."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return op(names, arrays=arrays)(with_creation_keywords(function))


def _of_size(name: str, doc: str) -> Any:
    def function(
        *size: ShapeLike, dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: object = None
    ) -> Tensor:
        return _wrap_new(new_array(name, device, _sizes(name, size), _float_or(dtype)), requires_grad)

    return _declared(function, name, doc, arrays=False)


zeros = _of_size("zeros", "Return zeros of a shape.")
ones = _of_size("ones", "Return ones of a shape.")
empty = _of_size("empty", "Return uninitialized memory of a shape.")


@op(arrays=False)
@with_creation_keywords
def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor filled with one value. The value's kind determines the dtype: any float gives the default dtype."""
    value = fill_value._array() if isinstance(fill_value, Tensor) else fill_value
    if dtype is None:
        dtype = tensor(value.item() if isinstance(value, (np.generic, np.ndarray)) else value).dtype
    value = number_in(value, as_dtype(dtype))
    return _wrap_new(new_array("full", device, _sizes("full", (size,)), value[()], value.dtype), requires_grad)


def _like(name: str, what: str) -> Any:
    ones = name == "ones_like"

    def like(
        input: Tensor,
        *,
        dtype: DTypeLike = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: object = None,
    ) -> Tensor:
        x = tensor_of(name, input)
        shape, kind = tuple(x.shape), x.dtype if dtype is None else as_dtype(dtype)
        if type(x._raw) is Foreign and not x.is_cuda and device is None:
            function = np.ones_like if ones else np.zeros_like
            return _wrap_new(function(x._raw, dtype=np.dtype(kind)), requires_grad)
        return _wrap_new(new_array(name.removesuffix("_like"), device, shape, np.dtype(kind)), requires_grad)

    return _declared(like, name, f"Return {what} with another tensor's shape and dtype.")


zeros_like = _like("zeros_like", "zeros")
ones_like = _like("ones_like", "ones")
empty_like = _like("empty_like", "uninitialized memory")


@op()
@with_creation_keywords
def full_like(
    input: Tensor, fill_value: object, *, dtype: DTypeLike = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor filled with one value, with another tensor's shape and dtype."""
    value = fill_value._array() if isinstance(fill_value, Tensor) else fill_value
    input = tensor_of("full_like", input)
    value = number_in(value, input.dtype if dtype is None else as_dtype(dtype))
    if type(input._raw) is Foreign and not input.is_cuda and device is None:
        return _wrap_new(np.full_like(input._raw, value[()], dtype=value.dtype), requires_grad)
    return _wrap_new(new_array("full", device, tuple(input.shape), value[()], value.dtype), requires_grad)


@op(arrays=False)
@with_creation_keywords
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return the identity matrix (n rows, m columns)."""
    rows, columns = _sizes("eye", (n, n if m is None else m))
    return _wrap_new(new_array("eye", device, rows, columns, 0, _float_or(dtype)), requires_grad)


def _number(x: AnyArray) -> Any:
    return x.item() if isinstance(x, Tensor) else x


@op(arrays=False)
@with_creation_keywords
def arange(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: DTypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the numbers from ``start`` (0) up to but excluding ``end``. Integers give int64, floats the default dtype."""
    start, end, step = _number(start), _number(end), _number(step)
    if end is None:
        start, end = 0, start
    for bound in (start, end, step):
        if not isinstance(bound, (int, float, np.number)):
            raise TypeError(f"arange(): bounds and step must be numbers, not {type(bound).__name__}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (np.isfinite(start) and np.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: from {start} to {end} by {step}")
    all_integers = all(isinstance(v, (int, np.integer)) for v in (start, end, step))
    kind = as_dtype(dtype) if dtype is not None else np.dtype(np.int64) if all_integers else default_dtype()
    if kind == np.int64:
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero: int64 numbers need a step of at least 1")
    n = int(np.ceil((end - start) / step))
    if kind.kind in "iu":  # PyTorch computes the count first, and then converts start and step to integers
        start, step = int(start), int(step)
    return _wrap_new((start + step * new_array("arange", device, n)).astype(kind), requires_grad)


@op(arrays=False)
@with_creation_keywords
def linspace(
    start: TensorLike,
    end: TensorLike,
    steps: int,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``steps`` evenly spaced numbers from ``start`` to ``end``, both included."""
    return _evenly_spaced(np.linspace, start, end, steps, dtype, requires_grad)


@op(arrays=False)
@with_creation_keywords
def logspace(
    start: TensorLike,
    end: TensorLike,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``steps`` numbers from base**start to base**end, evenly spaced in the exponent."""
    return _evenly_spaced(np.logspace, start, end, steps, dtype, requires_grad, base=base)


def _whole_steps(start: int, end: int, steps: int) -> NumpyArray:
    """Return evenly spaced numbers, counted from both ends as PyTorch does for integers, so that truncation agrees."""
    i = np.arange(steps)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    return np.where(i < steps // 2, start + step * i, end - step * (steps - 1 - i)) if steps > 1 else start + step * i


def _evenly_spaced(
    function: AnyFunction, start: Any, end: Any, steps: int, dtype: DTypeLike, requires_grad: bool, **options: Any
) -> Tensor:
    if not isinstance(steps, (int, np.integer)):
        raise TypeError(f"{function.__name__}(): argument 'steps' must be int, not {type(steps).__name__}")
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, but got {steps}")
    start, end = _number(start), _number(end)
    if dtype is not None and as_dtype(dtype).kind in "iu":
        powers = _whole_steps(int(start), int(end), steps)
        values = powers if function is np.linspace else np.power(float(options["base"]), powers)
        return _wrap_new(values.astype(as_dtype(dtype)), requires_grad)
    array = function(start, end, steps, **options)
    if dtype is None and array.dtype.kind == "c":
        return _wrap_new(array.astype(get_default_complex_dtype()), requires_grad)
    return _wrap_new(array.astype(_float_or(dtype)), requires_grad)


@op(arrays=False)
@with_creation_keywords
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Return the row and column indices of the lower triangle."""
    return wrap(np.stack(np.tril_indices(row, offset, col)).astype(np.int64 if dtype is None else as_dtype(dtype)))


@op(arrays=False)
@with_creation_keywords
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """Return the row and column indices of the upper triangle."""
    return wrap(np.stack(np.triu_indices(row, offset, col)).astype(np.int64 if dtype is None else as_dtype(dtype)))


@op(arrays=False)
def Variable(data: object, requires_grad: bool = False, volatile: object = None) -> Tensor:
    """Return a leaf that shares a tensor's memory (PyTorch's old constructor of tensors that may require grad)."""
    if not isinstance(data, Tensor):
        raise errors.variable_data(data)
    return _wrap_new(data._raw, requires_grad)


Variable.__module__ = "chainrule.autograd"


def _typed(name: str, dtype: DTypeLike) -> AnyFunction:
    def make(*args: object) -> Tensor:
        if not args:
            return wrap(np.empty(0, dtype))
        if all(isinstance(a, int) for a in args):
            return wrap(np.zeros(_sizes(name, args), dtype))
        return make_tensor(args[0], dtype, False, True)

    vars(make)["dtype"] = np.dtype(dtype)  # for tensor.type(FloatTensor)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = (
        f"Return a tensor of dtype {np.dtype(dtype)} from data, or zeros of given sizes (an old constructor)."
    )
    return make


FloatTensor, DoubleTensor = _typed("FloatTensor", np.float32), _typed("DoubleTensor", np.float64)
HalfTensor, LongTensor = _typed("HalfTensor", np.float16), _typed("LongTensor", np.int64)
IntTensor, ShortTensor = _typed("IntTensor", np.int32), _typed("ShortTensor", np.int16)
CharTensor, ByteTensor = _typed("CharTensor", np.int8), _typed("ByteTensor", np.uint8)
BoolTensor = _typed("BoolTensor", np.bool_)


@op("Tensor.new_tensor")
@with_creation_keywords
def new_tensor(
    self: Tensor, data: object, *, dtype: DTypeLike = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor from data, with this tensor's dtype."""
    return make_tensor(data, self.dtype if dtype is None else dtype, requires_grad, True)


@op("Tensor.new")
def new(self: Tensor, *args: object) -> Tensor:
    """Return :func:`new_empty` of a size, or :func:`new_tensor` of data (PyTorch's old name for both)."""
    if len(args) == 1 and not isinstance(args[0], (int, Size)):
        return new_tensor(self, args[0])
    return new_empty(self, *args or (0,))


def _new_of_size(name: str, what: str) -> Any:
    def method(
        self: Tensor, *size: ShapeLike, dtype: DTypeLike = None, device: Any = None, requires_grad: bool = False
    ) -> Tensor:
        kind = np.dtype(self.dtype if dtype is None else as_dtype(dtype))
        return _wrap_new(new_array(name.removeprefix("new_"), device, _sizes(name, size), kind), requires_grad)

    return _declared(method, name, f"Return {what} with this tensor's dtype.", f"Tensor.{name}")


new_zeros = _new_of_size("new_zeros", "zeros")
new_ones = _new_of_size("new_ones", "ones")
new_empty = _new_of_size("new_empty", "uninitialized memory")


@op("Tensor.new_full")
@with_creation_keywords
def new_full(
    self: Tensor,
    size: ShapeLike,
    fill_value: object,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor filled with one value, with this tensor's dtype."""
    return full(size, fill_value, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad)
