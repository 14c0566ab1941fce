"""Methods and operators of ``Tensor``; attached to the class at import."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.dispatch_cache import with_cached_dispatch
from chainrule._src.api.functions import binary
from chainrule._src.api.in_place import in_place, set_to_view
from chainrule._src.api.operations import (
    assignment_operation,
    dispatch_by_rank,
    index_operation,
    ufunc_protocol,
    with_fast_path,
)
from chainrule._src.arrays.device import DeviceLike, gpu_of, strided
from chainrule._src.arrays.dtype import Dtype
from chainrule._src.arrays.dtypes import as_dtype, default_dtype
from chainrule._src.arrays.libraries import is_foreign
from chainrule._src.arrays.types import AnyArray, AnyFunction, DTypeLike, ShapeLike, TensorLike
from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.messages import errors
from chainrule._src.ops import creation, indexing, products, shaping
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import cast_source, number_in, placed, tensor_of
from chainrule._src.table import arithmetic, shape
from chainrule._src.table import indexing as table
from chainrule._src.tape import inplace, trace_hooks, view
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.eager import LOOPS, RECORDED
from chainrule._src.tape.foreign import gpu_number
from chainrule._src.tape.foreign_operands import operate_with_foreign
from chainrule._src.tape.levels import Level
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.overriding import operator_of, overridable, overrides_functions
from chainrule._src.tape.protocol import array_ufunc, as_array
from chainrule._src.tape.tensor import Tensor, attach_methods, wrap
from chainrule._src.tape.versions import note_write

ndarray = np.ndarray
_OPERANDS = (Tensor, int, float, complex, ndarray, np.generic)


# -- operators -------------------------------------------------------------------------------------------------------


def _is_operand(x: object) -> bool:
    return isinstance(x, _OPERANDS) or is_foreign(type(x))


def _operator(function: AnyFunction, symbol: str) -> AnyFunction:
    """Return a binary operator: if the other operand is not an array or number, it returns NotImplemented or defers to it."""

    def method(self: Tensor, other: TensorLike) -> Any:
        found = operator_of(symbol, self, other)
        if found is not NotImplemented:
            return found
        if type(other) is Tensor or _is_operand(other) or hasattr(other, "level"):
            return function(self, other)
        return operate_with_foreign(symbol, function, self, other)

    method.__doc__ = function.__doc__
    return method


def _reflected(function: AnyFunction, symbol: str) -> AnyFunction:
    def exchanged(self: Any, other: TensorLike) -> object:
        return function(other, self)

    def method(self: Tensor, other: TensorLike) -> Any:
        found = operator_of("r" + symbol, self, other) if overrides_functions(self) else NotImplemented
        if found is not NotImplemented:
            return found
        return (
            function(other, self) if _is_operand(other) else operate_with_foreign("r" + symbol, exchanged, self, other)
        )

    return method


def _reflected_div(other: TensorLike, self: Tensor) -> Tensor:
    return ew.mul(ew.reciprocal(self), other)  # the operations that PyTorch computes and records


def _augmented_assignment(name: str) -> AnyFunction:
    def method(self: Tensor, other: TensorLike) -> Any:
        if not _is_operand(other) and not hasattr(other, "level"):
            return NotImplemented
        return getattr(self, name)(other)

    return method


_add = binary(arithmetic.add, operator="add")
attach_methods(
    __add__=_add,
    __radd__=_add,  # as in PyTorch, the tensor is the first operand here, too
    __mul__=binary(arithmetic.mul, operator="mul"),
    __rmul__=binary(arithmetic.mul, operator="rmul"),
    __truediv__=binary(arithmetic.div, operator="truediv"),
    __rtruediv__=_reflected(_reflected_div, "truediv"),
    __rdiv__=_reflected(_reflected_div, "truediv"),
    __sub__=binary(arithmetic.sub, operator="sub"),
    __rsub__=binary(arithmetic.rsub, operator="rsub"),
    __neg__=ew.neg,
    __pos__=ew.positive,
    __abs__=ew.abs,
    __getitem__=index_operation(table.getitem, table.index, overridable(indexing.getitem, lambda: Tensor.__getitem__)),
    __setitem__=overridable(indexing.setitem, lambda: Tensor.__setitem__),
    __hash__=object.__hash__,
)
for _symbol, _function in {
    "floordiv": ew.floor_divide,
    "mod": ew.remainder,
    "pow": ew.pow,
    "matmul": products.matmul,
    "and": ew.bitwise_and,
    "or": ew.bitwise_or,
    "xor": ew.bitwise_xor,
    "lshift": ew.bitwise_left_shift,
    "rshift": ew.bitwise_right_shift,
}.items():
    attach_methods(
        **{f"__{_symbol}__": _operator(_function, _symbol), f"__r{_symbol}__": _reflected(_function, _symbol)}
    )
for _symbol in ("and", "or", "xor"):
    attach_methods(
        **{f"__{_symbol}__": with_fast_path(getattr(ew, f"bitwise_{_symbol}"), getattr(Tensor, f"__{_symbol}__"))}
    )
attach_methods(
    __pow__=with_fast_path(ew._pow, Tensor.__pow__),
    __matmul__=dispatch_by_rank(products.BY_RANKS, Tensor.__matmul__),
    matmul=dispatch_by_rank(products.BY_RANKS, Tensor.matmul),
    __array_ufunc__=ufunc_protocol(RECORDED, array_ufunc),
)
if (
    LOOPS is not None
):  # here, and not when a transformation is first used: threads that load the modules could block each other
    LOOPS.connect_levels(Dual, Batched, Level, (arithmetic.add, arithmetic.mul, arithmetic.div, shape.expand))
    for _values in (Dual, Batched):
        _values.__array_ufunc__ = ufunc_protocol(RECORDED, _values.__array_ufunc__)  # type: ignore[method-assign]
for _symbol in ("eq", "ne", "lt", "le", "gt", "ge"):
    _method = _operator(getattr(ew, _symbol), _symbol)
    attach_methods(**{f"__{_symbol}__": with_fast_path(getattr(ew, _symbol), _method)})
for _symbol, _name in {
    "add": "add_", "sub": "sub_", "mul": "mul_", "truediv": "div_", "pow": "pow_", "floordiv": "floor_divide_",
    "mod": "remainder_", "and": "bitwise_and_", "or": "bitwise_or_", "xor": "bitwise_xor_",
    "lshift": "bitwise_left_shift_", "rshift": "bitwise_right_shift_",
}.items():  # fmt: skip
    attach_methods(**{f"__i{_symbol}__": with_fast_path(getattr(Tensor, _name), _augmented_assignment(_name))})

# -- methods with the same name as a function ------------------------------------------------------------------------


@op("Tensor.where")
def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return this tensor's elements where the condition holds, else ``other``'s."""
    return ew.where(condition, self, other)


def _imag(self: Tensor) -> Tensor:
    """Return the imaginary part; for real dtypes zeros that share memory, because checks for arrays read this attribute."""
    return ew.imag(self) if self._raw.dtype.kind == "c" else wrap(np.broadcast_to(np.zeros((), self.dtype), self.shape))


def _fill(part: Tensor, value: TensorLike) -> None:
    """Write a value to a part of a tensor."""
    part[...] = value


def _overridable_property(name: str, getter: Any, setter: Any = None) -> property:
    """Return a property for which ``__torch_function__`` of subclasses is called, with ``Tensor.name.__get__``."""
    return property(overridable(getter, lambda: getattr(Tensor, name).__get__), setter)


attach_methods(
    T=_overridable_property("T", with_cached_dispatch(shaping.T)),
    mT=_overridable_property("mT", with_cached_dispatch(shaping.mT)),
    H=_overridable_property("H", shaping.adjoint),
    mH=_overridable_property("mH", shaping.adjoint),
    real=_overridable_property("real", ew.real, lambda self, value: _fill(ew.real(self), value)),
    imag=_overridable_property("imag", _imag, lambda self, value: _fill(ew.imag(self), value)),
)


@op()
def fill(input: Tensor, value: TensorLike) -> Tensor:
    """Return a copy filled with a number or a 0-d tensor; the gradient flows to the tensor."""
    x = tensor_of("fill", input)
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    number = cast_source("fill_", value, x) if isinstance(value, Tensor) else wrap(number_in(value, x.dtype))
    return table.index_put(x, number, index=(Ellipsis,), accumulate=False)


# -- in place --------------------------------------------------------------------------------------------------------


def _copy_source(self: Tensor, src: AnyArray, non_blocking: bool = False) -> Tensor:
    if not isinstance(src, Tensor):
        src = wrap(as_array(src))
    value = cast(shaping.expand(placed(src, gpu_number(self)), *self.shape), self.dtype)
    return table.index_put(self, value, index=(Ellipsis,), accumulate=False)


def _plain(self: Tensor, src: object) -> bool:
    source = getattr(src, "_raw", None)
    arrays = type(self._raw) is ndarray and (source is None or type(source) is ndarray)
    return arrays and not is_recording() and not trace_hooks.is_tracing()


_fill_recorded, _copy_recorded = in_place("fill_", fill), in_place("copy_", _copy_source)


@op("Tensor.fill_")
def fill_(self: Tensor, value: TensorLike) -> Tensor:
    """Fill with a number, in place."""
    at_once = type(self._raw) is ndarray and not isinstance(value, Tensor) and not trace_hooks.is_tracing()
    if at_once and not inplace.on_tape(self):
        inplace.check_writable(self, "fill_", same=True)
        self._raw[...] = value if type(value) is float else number_in(value, self._raw.dtype)
        note_write(self._raw, "fill_", errors.user_line())
        return self
    return _fill_recorded(self, value)


@op("Tensor.zero_")
def zero_(self: Tensor) -> Tensor:
    """Fill with zeros, in place."""
    return fill_(self, 0)


@op("Tensor.copy_")
def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Copy another tensor's elements (broadcast and cast) into this one, in place. Gradients flow to the source."""
    if _plain(self, other):
        inplace.check_writable(self, "copy_")
        source = other._raw if isinstance(other, Tensor) else as_array(other)
        try:
            np.copyto(self._raw, source, casting="unsafe")
        except ValueError:
            raise errors.in_place_shape("copy_", self.shape, source.shape) from None
        note_write(self._raw, "copy_", errors.user_line())
        return self
    return _copy_recorded(self, other)


@op("Tensor.fill_diagonal_")
def fill_diagonal_(self: Tensor, fill_value: TensorLike, wrap: bool = False) -> Tensor:
    """Fill the main diagonal, in place: all elements with equal indices. With ``wrap``, restart it below in tall matrices.

    Raises:
        RuntimeError: there are fewer than two dimensions, or more than two that are not of equal length.
    """
    ndim, shape = self.ndim, self.shape
    if ndim < 2:
        raise RuntimeError(f"fill_diagonal_: dimensions must be larger than 1, but the shape is {tuple(shape)}")
    if ndim > 2 and len(set(shape)) > 1:
        raise RuntimeError(
            f"fill_diagonal_: all dimensions of input must be of equal length, but they are {tuple(shape)}"
        )
    rows, columns = shape[0], shape[-1]
    length = min(rows, columns)
    indices = [np.arange(length)] * ndim
    if wrap and ndim == 2 and rows > columns + 1:
        flat = np.arange(0, rows * columns, columns + 1)
        indices = [flat // columns, flat % columns]
    self[tuple(indices)] = fill_value
    return self


@op("Tensor.resize_")
def resize_(self: Tensor, *size: ShapeLike, memory_format: object = None) -> Tensor:
    """Change the shape in place, with the same elements.

    Raises:
        RuntimeError: the shape has more or fewer elements.
    """
    shape = shaping._ints("resize_", size)
    if math.prod(shape) != self.numel():
        raise errors.no_resize("resize_", self, shape)
    return set_to_view(self, lambda x: shaping.reshape(x, shape), "resize_")


@op("Tensor.resize_as_")
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: object = None) -> Tensor:
    """Change the shape in place to that of another tensor, as :func:`resize_`."""
    return resize_(self, tuple(tensor_of("resize_as_", the_template).shape))


@op("Tensor.set_")
def set_(self: Tensor, source: Tensor) -> Tensor:
    """Give the tensor the memory, shape and dtype of another one, like an assignment to ``data``.

    Raises:
        RuntimeError: the tensor requires grad, outside of ``no_grad``.
    """
    if is_recording() and inplace.on_tape(self):
        inplace.check_history(self, "set_")
        raise RuntimeError("set_(): a result's history cannot be continued in other memory: assign to `data`")
    self.data = source
    return self


attach_methods(
    fill_=assignment_operation("fill_", fill_),
    zero_=assignment_operation("fill_", zero_, 0),
    copy_=assignment_operation("copy_", copy_, numbers=False),
)

# -- casts -----------------------------------------------------------------------------------------------------------

_DEVICES = ("cpu", "cuda", "mps", "meta")


@op("Tensor.to")
def to(
    self: Tensor,
    *args: object,
    dtype: DTypeLike = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: object = None,
) -> Tensor:
    """Convert the tensor to another dtype or device, or to those of another tensor; return it if nothing changes. Recorded.

    ``to(dtype)``, ``to("cuda")``, ``to("cuda:1", dtype)``, ``to(other)``. Gradients are copied back to the original device.

    Raises:
        RuntimeError: the device is not available.
    """
    for argument in args:
        if isinstance(argument, Tensor):
            dtype, device = argument.dtype, argument.device
        elif isinstance(argument, (np.dtype, Dtype, type)) or (
            isinstance(argument, str) and not argument.startswith(_DEVICES)
        ):
            dtype = argument
        elif isinstance(argument, bool):
            pass
        else:
            device = argument
    target = self.dtype if dtype is None else as_dtype(dtype)
    out = cast(self, target)
    if device is not None:
        out = placed(out, gpu_of(device))
    return shaping.clone(self) if copy and out is self else out


def _to_dtype(name: str, dtype: DTypeLike) -> AnyFunction:
    def method(self: Tensor, memory_format: object = None) -> Tensor:
        return cast(self, np.dtype(dtype))

    method.__name__ = name
    method.__doc__ = f"Cast the tensor to {np.dtype(dtype)}. Recorded."
    return overridable(method, lambda: getattr(Tensor, name))


attach_methods(
    float=_to_dtype("float", np.float32),
    double=_to_dtype("double", np.float64),
    half=_to_dtype("half", np.float16),
    long=_to_dtype("long", np.int64),
    int=_to_dtype("int", np.int32),
    short=_to_dtype("short", np.int16),
    char=_to_dtype("char", np.int8),
    byte=_to_dtype("byte", np.uint8),
    bool=_to_dtype("bool", np.bool_),
    cfloat=_to_dtype("cfloat", np.complex64),
    cdouble=_to_dtype("cdouble", np.complex128),
    type_as=lambda self, other: to(self, other),
    astype=lambda self, dtype, copy=True: to(self, dtype),
)


@op("Tensor.type")
def type_(self: Tensor, dtype: DTypeLike = None) -> Any:
    """Return the name of the tensor's type, or cast the tensor to another dtype."""
    if dtype is None:
        return "torch." + errors.tensor_type(self.dtype)
    if isinstance(dtype, str) and dtype.startswith("torch.") and dtype.endswith("Tensor"):
        dtype = Tensor if dtype == "torch.Tensor" else getattr(creation, dtype[len("torch.") :])
    if dtype is Tensor:
        return to(self, default_dtype())
    return to(self, getattr(dtype, "dtype", dtype))


@op("Tensor.is_nonzero")
def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is nonzero."""
    return bool(input)


def _invert(self: Tensor) -> Tensor:
    if self.dtype.kind not in "biu":
        raise TypeError(
            f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not on {self.dtype}: "
            "compare first, as in ~(x > 0)"
        )
    return ew.bitwise_not(self)


@op("Tensor.cpu")
def cpu(self: Tensor, memory_format: object = None) -> Tensor:
    """Return the tensor on the CPU (itself, if it is there)."""
    return placed(self, None)


@op("Tensor.cuda")
def cuda(self: Tensor, device: DeviceLike = None, non_blocking: bool = False, memory_format: object = None) -> Tensor:
    """Return the tensor on a GPU, by default on the current one (itself, if it is there).

    Raises:
        RuntimeError: there is no GPU.
    """
    return placed(self, gpu_of("cuda" if device is None else device))


@op("Tensor._is_view")
def is_view(self: Tensor) -> bool:
    """Return whether the tensor is a view of a base for autograd."""
    return self._view is not None


#: PyTorch's kinds of tensors that do not exist here
_KINDS_OF_TENSORS = (
    "is_ipu", "is_maia", "is_meta", "is_mkldnn", "is_mps", "is_mtia", "is_nested", "is_quantized", "is_sparse_csr",
    "is_vulkan", "is_xla", "is_xpu",
)  # fmt: skip

attach_methods(
    __invert__=_invert,
    _base=property(view.base_of),
    **dict.fromkeys(_KINDS_OF_TENSORS, False),
    layout=strided,
    name=None,
)
