"""Tracing: an array-like whose NumPy calls are recorded.

``Traced(var, level)`` represents one array of a program that is being traced. It has a concrete value, so the program runs
normally. A :class:`~chainrule._src.interpreters.recorder.Recorder` computes each NumPy call on it with NumPy and appends
the call to the trace, so a replay of the calls gives the same bits. Primitives are recorded as the NumPy calls of their
``value`` function if these give the same bits, and otherwise as one call of ``value``.

When Python reads a value (``if x > 0``, ``float(x)``), the trace gets a guard, a
:class:`~chainrule._src.interpreters.trace_types.ValueGuard`. The trace is valid while the value read is the same. *Eager code*
below is the same function without ``compile``.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, Dims, NumpyArray, NumpyDType, Params, TensorLike
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.interpreters.trace_types import CallRecorder, Var
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.dispatch import INTERPRETERS
from chainrule._src.tape.levels import Level, is_level_closed
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.protocol import ArrayLike, array_function, array_ufunc
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray
_NUMBERS = (int, float, complex, np.generic)


def arrays_in(x: Any) -> Any:
    """Return arguments with each value of the level replaced by its array."""
    kind = type(x)
    if kind is Traced:
        return x.var.array[()] if x.scalar else x.var.array
    if kind is tuple or kind is list:
        return kind([x.var.array if type(x) is Traced and not x.scalar else arrays_in(x) for x in x])
    if kind is dict:
        return {key: arrays_in(item) for key, item in x.items()}
    return x


def flat_leaves(x: Any) -> list[Any]:
    """Return the items of nested containers."""
    if type(x) is dict:
        x = tuple(x.values())
    return [y for item in x for y in flat_leaves(item)] if type(x) in (tuple, list) else [x]


_NONE: Any = object()


class Traced(ArrayLike):
    """An array-like that represents one array, or NumPy scalar, of the program that is being traced."""

    __slots__ = ("dtype", "level", "plain", "scalar", "shape", "var")

    def __init__(self, var: Var, level: Any, plain: bool = False) -> None:
        self.var = var
        self.scalar = False
        self.plain = plain  # whether eager code has a plain array here, also inside functions that are differentiated
        self.level = level
        self.shape = var.shape
        self.dtype = var.dtype

    @classmethod
    def constant(cls, data: AnyArray, level: Level) -> Traced:
        """Return a value for an array of the surrounding program."""
        return level.recorder.traced(data)

    @property
    def inside(self) -> NumpyArray:
        return self.var.array

    @property
    def recorder(self) -> CallRecorder:
        level: Any = self.level
        if not level.alive:
            raise errors.escaped_recording(level)
        if level.recorder is not LOCAL.recorder:
            raise errors.recorded_elsewhere(level)
        return level.recorder

    def detached(self) -> Traced:
        return self

    def as_variable(self) -> Traced:
        variable = Traced(self.var, self.level)
        variable.scalar = self.scalar
        return variable

    def as_argument(self) -> Traced:
        recorder = self.recorder
        if self.var.number not in recorder.weak:
            return self
        return recorder.append_call(np.positive, "__call__", (self,), {}, (self.var.array,), False)

    def on_numbers(self, function: Callable[[Any], object]) -> Any:
        if type(function) is functools.partial and not function.args:
            return self.recorder.call(function.func, "", (self,), function.keywords)
        return self.recorder.call(function, "", (self,), {})

    @classmethod
    def with_numbers(cls, x: AnyArray, numbers: AnyArray, level: Level) -> Traced:
        return level.recorder.traced(numbers)

    readable = True

    def read(self) -> NumpyArray:
        return self.recorder.read(self)

    @property
    def shown(self) -> Any:
        if is_level_closed(self):
            return None
        as_plain = self.recorder.eager_type(self)
        values: Any = self.read()
        return values if as_plain in (None, ndarray) else values.item() if as_plain is float else values[()]

    def __repr__(self) -> str:
        return f"Traced({self.var!r}, {self.var.array!r})" if is_level_closed(self) else repr(self.read())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: object) -> Any:
        if out is None and method != "at" and all(map(_is_ours, inputs)) and not (kwargs and _foreign(kwargs)):
            return self.recorder.call(ufunc, method, inputs, kwargs)
        return array_ufunc(self, ufunc, method, *inputs, out=out, **kwargs)

    def __array_function__(self, function: AnyFunction, types: Any, args: tuple[object, ...], kwargs: Params) -> Any:
        if kwargs.get("out") is None and function not in _WRITERS and all(map(_is_plain_type, types)):
            return self.recorder.call(function, "", args, kwargs)
        return array_function(self, function, types, args, kwargs)

    def __getitem__(self, index: object) -> Any:
        if _foreign(index if type(index) is tuple else (index,)):
            return super().__getitem__(index)
        return self.recorder.call(operator.getitem, "", (self, index), {})

    def __pow__(self, other: TensorLike) -> Any:
        if not _is_ours(other):
            return super().__pow__(other)
        if self.scalar and _is_scalar(other):
            return self.recorder.call(scalar_pow, "", (self, other), {})
        is_number = type(other) in (int, float)
        # NumPy selects the ufunc by the value of a 0-d exponent
        if self.dtype.kind in "fc" and (is_number or np.ndim(other)):
            ufunc = _POWERS.get(other, np.power) if is_number else np.power
            operands = (self, other)[: ufunc.nin]
            arrays = arrays_in(operands)
            if same_bits(np.asarray(ufunc(*arrays)), np.asarray(self.var.array ** arrays_in(other))):
                return self.recorder.call(ufunc, "__call__", operands, {})
        return self.recorder.call(operator.pow, "", (self, other), {})

    def __rpow__(self, other: TensorLike) -> AnyArray:
        if not _is_ours(other):
            return super().__rpow__(other)
        return self.recorder.call(
            scalar_pow if self.scalar and _is_scalar(other) else operator.pow, "", (other, self), {}
        )

    def as_array(self) -> Traced:
        return Traced(self.var, self.level, self.plain) if self.scalar else self

    tracks_tensors = True

    def track_tensor(self, tensor: Any) -> None:
        if self.scalar:  # a tensor's data must be an array
            tensor._raw = self.as_array()

    def astype(self, dtype: NumpyDType, copy: bool = True) -> Traced:
        return self if self.dtype == dtype and not copy else self.recorder.call(np.astype, "", (self, dtype), {})

    def reshape(self, *shape: int | tuple[int, ...]) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)

    # attributes and methods of ndarrays that rules use

    stands_for_array = True

    @property
    def flags(self) -> Any:
        return self.var.array.flags

    @property
    def array(self) -> np.ndarray[Any, Any]:
        return self.var.array

    @property
    def is_view(self) -> bool:
        base = self.var.array.base
        return isinstance(base, ndarray) and base.dtype == self.dtype  # bases of bytes are buffers with a chosen layout

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def real(self) -> AnyArray:
        return np.real(self)

    @property
    def imag(self) -> AnyArray:
        return np.imag(self)

    def dot(self, other: TensorLike) -> AnyArray:
        return np.dot(self, other)

    def take(self, indices: AnyArray, axis: int | None = None) -> AnyArray:
        return np.take(self, indices, axis)

    def transpose(self, *axes: Any) -> AnyArray:
        return np.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> AnyArray:
        return np.swapaxes(self, axis1, axis2)

    def ravel(self) -> AnyArray:
        return np.ravel(self)

    def copy(self, order: Literal["K", "A", "C", "F"] = "C") -> AnyArray:
        return np.copy(self, order)

    def view(self, dtype: object) -> AnyArray:
        return self.recorder.call(_viewed, "", (self, dtype), {})

    def nonzero(self) -> tuple[AnyArray, ...]:
        return np.nonzero(self)

    def any(self, axis: Dims = None) -> AnyArray:
        return np.logical_or.reduce(self, axis=axis)

    def all(self, axis: Dims = None) -> AnyArray:
        return np.logical_and.reduce(self, axis=axis)

    def min(self, axis: Dims = None, initial: Any = _NONE) -> AnyArray:
        return np.minimum.reduce(self, axis=axis, **({} if initial is _NONE else {"initial": initial}))

    def max(self, axis: Dims = None, initial: Any = _NONE) -> AnyArray:
        return np.maximum.reduce(self, axis=axis, **({} if initial is _NONE else {"initial": initial}))

    def sum(self, axis: Dims = None) -> AnyArray:
        return np.add.reduce(self, axis=axis)

    def __bool__(self) -> bool:
        return bool(self.recorder.read(self))

    def __int__(self) -> int:
        return int(self.recorder.read(self))

    def __float__(self) -> float:
        return float(self.recorder.read(self))

    def __index__(self) -> int:
        return self.recorder.read(self).__index__()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[AnyArray]:
        return (self[i] for i in range(len(self)))


def _viewed(x: NumpyArray, dtype: object) -> NumpyArray:
    """Return the same memory as elements of another dtype."""
    return x.view(dtype)


def _in_place_operator(ufunc: np.ufunc) -> Callable[[Traced, object], Traced]:
    """Return an in-place operator for immutable traced values: it computes the same values in a new array."""

    def operate(self: Traced, other: object) -> Traced:
        return ufunc(self, other).astype(self.dtype, copy=False)

    return operate


for _name, _ufunc in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("truediv", np.true_divide)):
    setattr(Traced, f"__i{_name}__", _in_place_operator(_ufunc))


class _ScalarOperator:
    """An operator on NumPy scalars, which rounds complex numbers and powers differently from the ufunc."""

    def __init__(self, operator: AnyFunction, name: str) -> None:
        self.operator = operator
        self.__name__ = name

    def __call__(self, *operands: TensorLike) -> AnyArray:
        # with a Python number on the left, the result may be a Python number
        return np.asarray(self.operator(*[x[()] if type(x) is ndarray else x for x in operands]))[()]

    def __eq__(self, other: object) -> bool:
        return type(other) is _ScalarOperator and other.operator is self.operator

    def __hash__(self) -> int:
        return hash(self.operator)


def _is_scalar(x: TensorLike) -> bool:
    return bool(x.scalar) if type(x) is Traced else isinstance(x, _NUMBERS)


def _use_scalar_operator(operator: AnyFunction, name: str) -> None:
    """Make an operator of two complex scalars call the scalar operator rather than the ufunc."""
    on_scalars = _ScalarOperator(operator, name)
    on_arrays, on_arrays_exchanged = getattr(Traced, f"__{name}__"), getattr(Traced, f"__r{name}__", operator)

    def operate(self: Traced, other: TensorLike) -> AnyArray:
        if self.scalar and _is_scalar(other) and _is_complex(self, other):
            return self.recorder.call(on_scalars, "", (self, other), {})
        return on_arrays(self, other)

    def exchanged(self: Traced, other: TensorLike) -> AnyArray:
        if self.scalar and _is_scalar(other) and _is_complex(self, other):
            return self.recorder.call(on_scalars, "", (other, self), {})
        return on_arrays_exchanged(self, other)

    setattr(Traced, f"__{name}__", operate)
    if on_arrays_exchanged is not operator:
        setattr(Traced, f"__r{name}__", exchanged)


def _abs(self: Traced) -> AnyArray:
    if self.scalar and self.dtype.kind == "c":
        return self.recorder.call(_ScalarOperator(abs, "abs"), "", (self,), {})
    return np.absolute(self)


setattr(Traced, "__abs__", _abs)  # noqa: B010


def _is_complex(x: Traced, y: TensorLike) -> bool:
    return x.dtype.kind == "c" or isinstance(y, complex) or (hasattr(y, "dtype") and y.dtype.kind == "c")


#: the power of scalars, which NumPy computes by the C library
scalar_pow = _ScalarOperator(operator.pow, "pow")
scalar_square = _ScalarOperator(np.square, "square")
_use_scalar_operator(operator.mul, "mul")
_use_scalar_operator(operator.truediv, "truediv")
for _name in ("lt", "le", "gt", "ge"):  # complex numbers with nan compare differently
    _use_scalar_operator(getattr(operator, _name), _name)

#: the ufunc that NumPy calls for ``x ** n``
_POWERS: dict[object, np.ufunc] = {2: np.square, -1: np.reciprocal, 0.5: np.sqrt, 1: np.positive}


_WRITERS = frozenset({np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis})


def _is_ours(x: TensorLike) -> bool:
    return type(x) is Traced or type(x) is ndarray or isinstance(x, _NUMBERS) or x is None


def _is_plain_type(kind: type) -> bool:
    return kind is Traced or kind is ndarray


def _foreign(x: Any) -> bool:
    """Return whether the arguments contain a tensor or a value of another level."""
    if type(x) is dict:
        x = x.values()
    return any([type(item) is not Traced and isinstance(item, (Tensor, ArrayLike)) for item in x])


def _handle(prim: Primitive, operands: Sequence[TensorLike], params: Params, level: int) -> Any:
    for x in operands:
        if type(x) is Traced:
            return x.recorder.record_primitive(prim, operands, params)
    raise AssertionError("no operand is of this level")


INTERPRETERS[Traced] = _handle
