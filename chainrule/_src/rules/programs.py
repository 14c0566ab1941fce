"""Lower a primitive's value, VJP rule or JVP rule to a short program of ufunc inner loops, which C then runs for small arrays.

C calls ``trace_value``, ``trace_rule`` and ``trace_tangent`` when it first meets a primitive. A rule is NumPy code: run once
on symbols, it shows which ufuncs it calls on which values. The program is then compared with the rule bit by bit, on samples that include
zeros of both signs, infinities and NaNs. If they agree, C runs the program from then on. Rules stay in Python if they call
anything but ufuncs, ``np.where`` and ``astype``, or if they read shapes or numbers.

Symbols count as arrays for ``arrays.any_array.is_array``, so a rule takes the branch that it takes for arrays. If the rule
will be recorded (``create_graph``), symbols do not count as arrays, because tensors do not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from functools import partial
from types import NotImplementedType
from typing import Any, NoReturn

import numpy as np

from chainrule._src.arrays.any_array import scalar_to_array
from chainrule._src.arrays.types import AnyFunction, DTypeLike, NumpyArray, NumpyDType, Params
from chainrule._src.rules.primitive import Primitive

ndarray = np.ndarray
#: index ranges of a program's values, as in native/eager.h: inputs, constants, results of steps
INPUTS, CONSTANTS, STEPS = 8, 8, 24
KINDS = (np.dtype(np.float32), np.dtype(np.float64))
_MASK = np.dtype(bool)
_CASTS = {
    (KINDS[0], KINDS[1]): "cast fd",
    (KINDS[1], KINDS[0]): "cast df",
    (_MASK, KINDS[0]): "cast ?f",
    (_MASK, KINDS[1]): "cast ?d",
}
DIRECT_MOST = 8192  # largest number of elements for which programs run on whole arrays, as in native/eager.h


class Untraceable(Exception):
    """The rule cannot be lowered to a program."""


class _SymbolSize:
    """The size of a symbol. A comparison with a number limits the size of arrays that the program is valid for."""

    def __init__(self, program: LoopProgram) -> None:
        self.program = program

    def __le__(self, other: object) -> bool:
        if isinstance(other, int) and other >= DIRECT_MOST:
            self.program.max_size = min(self.program.max_size, other)
            return True
        raise Untraceable

    def __ge__(self, other: object) -> bool:
        if not isinstance(other, int) or other < DIRECT_MOST // 4:
            raise Untraceable
        self.program.max_size = min(self.program.max_size, other - 1)
        return False

    def _refuse(self, *args: object) -> NoReturn:
        raise Untraceable

    __lt__ = __gt__ = __eq__ = __bool__ = __int__ = __index__ = __add__ = __sub__ = __mul__ = __truediv__ = _refuse


class _Shape:
    """The shape of a symbol. Without a symbol: the shape of the operand to which the rule's result must be summed."""

    def __init__(self, value: Symbol | None) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Shape) or self.value is None or other.value is not None:
            raise Untraceable
        self.value.program.unbroadcast_values.append(self.value.number)
        return True

    def __ne__(self, other: object) -> bool:
        if not (isinstance(other, _Shape) and self.value is not None and self.value.program.one_shape):
            raise Untraceable
        return False

    def _refuse(self, *args: object) -> NoReturn:
        raise Untraceable

    __len__ = __getitem__ = __iter__ = __bool__ = __add__ = _refuse


#: the axes of a value: all; all, with the last of length 1; all but the last
FULL, ROWS, DROPPED = range(3)


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """A value of a program: it stands for an array and records the operations applied to it."""

    def __init__(self, program: LoopProgram, number: int, dtype: NumpyDType, axes: int = FULL) -> None:
        self.program, self.number, self.dtype, self.axes = program, number, dtype, axes

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Symbol, ...] | None = None, **kwargs: object
    ) -> Symbol:
        if ufunc.nout != 1 or (out is not None and (len(out) != 1 or out[0] is not inputs[0])):
            raise Untraceable
        if method == "reduce" and kwargs.pop("axis", None) in (-1, (-1,)) and kwargs == {"keepdims": True}:
            return self.program.reduce(ufunc, inputs[0])
        if method != "__call__" or kwargs:
            raise Untraceable
        if ufunc.signature == "(n),(n)->()":
            return self.program.along_rows(ufunc, inputs)
        if ufunc.signature is not None or ufunc.nin > 2:
            raise Untraceable
        result = self.program.call(ufunc, inputs)
        if out is None:
            return result
        if (result.dtype, result.axes) != (self.dtype, out[0].axes):
            raise Untraceable
        out[0].number = result.number  # an in-place write: the symbol now stands for the new value
        return out[0]

    def __getitem__(self, index: object) -> Symbol:
        if self.axes != DROPPED or index != (Ellipsis, None):
            raise Untraceable
        return type(self)(self.program, self.number, self.dtype, ROWS)

    def __array_function__(
        self, function: AnyFunction, types: Collection[type], args: tuple[object, ...], kwargs: Params
    ) -> Symbol:
        if function is not np.where or kwargs or len(args) != 3:
            raise Untraceable
        return self.program.where(*args)

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Symbol:
        return self.program.cast(self, np.dtype(dtype))

    @property
    def shape(self) -> _Shape:
        return _Shape(self)

    @property
    def size(self) -> _SymbolSize:
        return _SymbolSize(self.program)

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise Untraceable

    __pow__ = __rpow__ = _refuse  # arrays have special cases for powers
    __bool__ = __array__ = __float__ = __int__ = __index__ = __iter__ = __len__ = _refuse


class ArrayValue(Symbol):
    """A symbol that counts as an array in rules (see ``any_array.is_array``)."""

    stands_for_array = True

    def as_array(self) -> Symbol:
        return self


class Number(float):
    """Stands for any saved Python number. It can only be an operand together with a symbol; any other use is refused."""

    number: int

    def _with(self, other: object) -> NotImplementedType:
        if isinstance(other, Symbol):
            return NotImplemented
        raise Untraceable

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _with

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> NotImplementedType:
        if any(isinstance(x, Symbol) for x in inputs):
            return NotImplemented
        raise Untraceable

    def _refuse(self, *args: object) -> NoReturn:
        raise Untraceable

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __neg__ = __pos__ = __abs__ = _refuse
    __pow__ = __rpow__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __int__ = __round__ = is_integer = _refuse


class LoopProgram:
    """A straight-line program: steps, constants, the result's index, and the largest size it is valid for.

    A step is (ufunc or name, index of its inner loop, operands, item size, form). The form is "" or the kind of reduction along
    the last axis: "add", "maximum", "rows".
    """

    def __init__(self, dtype: NumpyDType, recorded: bool) -> None:
        self.dtype = dtype
        self.recorded = recorded
        self.steps: list[tuple[Any, int, tuple[int, ...], int, str]] = []
        self.constants: list[object] = []
        self.unbroadcast_values: list[int] = []  # values that were summed to an operand's shape
        self.one_shape = False  # whether shapes of values are assumed to be equal
        self.result = 0
        self.max_size = sys.maxsize

    def input(self, number: int, mask: bool = False) -> Symbol:
        return (Symbol if self.recorded else ArrayValue)(self, number, _MASK if mask else self.dtype)

    def any_number(self, number: int) -> Number:
        stand_in = Number("nan")
        stand_in.number = number
        return stand_in

    def call(self, ufunc: np.ufunc, inputs: tuple[object, ...]) -> Symbol:
        kinds = [x.dtype if isinstance(x, Symbol) else float if type(x) is Number else type(x) for x in inputs]
        if not all(isinstance(k, np.dtype) or k is float or k is int for k in kinds):
            raise Untraceable
        found = ufunc.resolve_dtypes((*kinds, None))
        operands = tuple([self._operand(x, to) for x, to in zip(inputs, found, strict=False)])
        types = "".join([d.char for d in found[:-1]]) + "->" + found[-1].char
        if len(ufunc.types) != ufunc.ntypes or types not in ufunc.types:
            raise Untraceable
        axes = {x.axes for x in inputs if isinstance(x, Symbol)}
        if DROPPED in axes:
            raise Untraceable
        return self._step(ufunc, ufunc.types.index(types), operands, found[-1], min(axes))

    def reduce(self, ufunc: np.ufunc, x: object) -> Symbol:
        """Add a sum or a maximum along the last axis, which is kept with length 1."""
        if (
            ufunc not in (np.add, np.maximum)
            or not isinstance(x, Symbol)
            or x.axes != FULL
            or x.dtype not in KINDS
            or self.recorded
        ):
            raise Untraceable
        which = "add" if ufunc is np.add else "maximum"
        return self._step(
            ufunc, ufunc.types.index(x.dtype.char * 2 + "->" + x.dtype.char), (x.number,), x.dtype, ROWS, which
        )

    def along_rows(self, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Symbol:
        """Add a row-by-row inner product, as in ``np.vecdot``."""
        if self.recorded or not all(isinstance(x, Symbol) and x.axes == FULL and x.dtype in KINDS for x in inputs):
            raise Untraceable
        (dtype,) = {x.dtype for x in inputs}
        index = ufunc.types.index(dtype.char * 2 + "->" + dtype.char)
        return self._step(ufunc, index, tuple([x.number for x in inputs]), dtype, DROPPED, "rows")

    def where(self, mask: object, x: object, y: object) -> Symbol:
        if not isinstance(mask, Symbol) or mask.dtype != _MASK or self.recorded:
            raise Untraceable
        dtypes = {z.dtype for z in (x, y) if isinstance(z, Symbol)}
        if len(dtypes) != 1 or not all(isinstance(z, Symbol) or type(z) in (float, int) for z in (x, y)):
            raise Untraceable
        (dtype,) = dtypes
        if dtype not in KINDS or any(z.axes != FULL for z in (mask, x, y) if isinstance(z, Symbol)):
            raise Untraceable
        return self._step(
            "where " + dtype.char, 0, (mask.number, self._operand(x, dtype), self._operand(y, dtype)), dtype
        )

    def cast(self, x: Symbol, to: NumpyDType) -> Symbol:
        if x.dtype == to:
            return x
        if (x.dtype, to) not in _CASTS or self.recorded:
            raise Untraceable
        return self._step(_CASTS[x.dtype, to], 0, (x.number,), to, x.axes)

    def _operand(self, x: object, to: NumpyDType) -> int:
        if isinstance(x, Symbol):
            return self.cast(x, to).number
        if to != self.dtype:
            raise Untraceable
        if type(x) is Number:
            return x.number
        for i, constant in enumerate(self.constants):
            if type(constant) is type(x) and repr(constant) == repr(x):
                return INPUTS + i
        if len(self.constants) == CONSTANTS:
            raise Untraceable
        self.constants.append(x)
        return INPUTS + len(self.constants) - 1

    def _step(
        self,
        what: np.ufunc | str,
        index: int,
        operands: tuple[int, ...],
        dtype: NumpyDType,
        axes: int = FULL,
        form: str = "",
    ) -> Symbol:
        if len(self.steps) == STEPS or dtype not in (*KINDS, _MASK):
            raise Untraceable
        self.steps.append((what, index, operands, dtype.itemsize, form))
        return (Symbol if self.recorded else ArrayValue)(self, INPUTS + CONSTANTS + len(self.steps) - 1, dtype, axes)

    def finish(self, result: object) -> LoopProgram:
        if not isinstance(result, Symbol) or result.dtype != self.dtype or result.axes != FULL:
            raise Untraceable
        if 0 < result.number < INPUTS + CONSTANTS:
            raise Untraceable
        self.result = result.number
        return self

    def for_c(self) -> tuple[object, ...]:
        return (tuple(self.steps), tuple(self.constants), self.result, self.max_size)

    def run(self, inputs: list[Any]) -> NumpyArray:
        """Compute the program's result with NumPy."""
        values = dict(enumerate(inputs)) | {INPUTS + i: c for i, c in enumerate(self.constants)}
        for i, (what, _, operands, _, form) in enumerate(self.steps):
            args = [values[n] for n in operands]
            if form in ("add", "maximum"):
                result = what.reduce(*args, axis=-1, keepdims=True)
            elif form == "rows":
                result = what(*args)[..., None]
            elif isinstance(what, np.ufunc):
                result = what(*args)
            elif what.startswith("where"):
                result = np.where(*args)
            else:
                result = args[0].astype({"f": np.float32, "d": np.float64}[what[-1]])
            values[INPUTS + CONSTANTS + i] = result
        return values[self.result]


class _NodeStandIn:
    """The attributes of a node that a pullback reads."""

    def __init__(self, params: Params, in_avals: Any) -> None:
        self.params = params
        self.in_avals = in_avals


_SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, np.inf, -np.inf, np.nan, 800.0, 1e-40, 2.0, -0.3, 0.7, 7.25]


_SAMPLE_NUMBERS = (0.45, 1.7, -0.6, 2.25)  # sample values for numbers that stand for any number


def _samples(dtype: NumpyDType, count: int) -> list[Any]:
    """Return arrays that combine the special numbers: all pairs for the first two, and many combinations for the others."""
    positions = np.arange(len(_SPECIAL) ** 2)
    index_arrays = [
        positions % 17,
        positions // 17,
        positions * 5 + 3,
        positions * 11 + 7,
        positions * 7 + 1,
        positions * 13 + 5,
        positions * 3 + 2,
        positions * 9 + 4,
    ]
    return [np.array(_SPECIAL, dtype)[indices % len(_SPECIAL)] for indices in index_arrays[:count]]


def _as_rows(sample: Any) -> Any:
    """Arrange a sample's numbers in rows, so that special numbers occur in some of the rows only."""
    rows = np.tile(sample[::-1].reshape(17, 17), (2, 1))
    rows[4:] = np.where(np.isfinite(rows[4:]) & (np.abs(rows[4:]) < 100), rows[4:], 0.25)
    return rows * np.linspace(0.3, 1.4, 17, dtype=rows.dtype)


def _agree(expected: Any, found: Any) -> bool:
    expected = scalar_to_array(expected)
    if type(expected) is not ndarray or expected.dtype != found.dtype or expected.shape != found.shape:
        return False
    return bool(
        np.all(
            (expected.view(f"i{expected.itemsize}") == found.view(f"i{found.itemsize}"))
            | (np.isnan(expected) & np.isnan(found))
        )
    )


class _Inputs:
    """The inputs and parameters of a function: symbols for tracing, and samples for comparing.

    Args:
        numbers: for each input its value if it is a number, else False. The last entries are the numbers among the parameters.
        masks: a bit for each input that is a mask.
        general: trace for any numbers, not for the given ones.
    """

    def __init__(
        self, program: LoopProgram, numbers: tuple[Any, ...], masks: int, params: Params, general: bool
    ) -> None:
        with np.errstate(all="ignore"):
            samples = _samples(program.dtype, len(numbers))
            if "axis" in params:
                samples = [_as_rows(x) for x in samples]
        self.stand_ins: list[Any] = []
        self.samples: list[Any] = []
        for i, number in enumerate(numbers):
            mask = bool(masks >> i & 1)
            if number is False:
                self.stand_ins.append(program.input(i, mask))
                self.samples.append(samples[i] > 0 if mask else samples[i])
            else:
                self.stand_ins.append(program.any_number(i) if general else number)
                self.samples.append(_SAMPLE_NUMBERS[i % len(_SAMPLE_NUMBERS)] if general else number)
        self.params, self.sample_params = dict(params), dict(params)
        at = len(numbers) - sum(type(x) in (int, float) for x in params.values())
        self.operands = slice(at)
        for name, value in params.items():
            if type(value) in (int, float):
                self.params[name], self.sample_params[name] = self.stand_ins[at], self.samples[at]
                at += 1

    def agree(self, program: LoopProgram, value: AnyFunction) -> bool:
        """Return whether the program and the function give the same bits on the samples."""
        with np.errstate(all="ignore"):
            return _agree(value(*self.samples[self.operands], **self.sample_params), program.run(self.samples))


def _general_modes(numbers: tuple[Any, ...]) -> tuple[bool, ...]:
    """Return the modes to try: with numbers among the inputs, first general and then specific to them."""
    return (True, False) if any(x is not False for x in numbers) else (False,)


def _cache_key_numbers(numbers: tuple[Any, ...], general: bool) -> tuple[Any, ...]:
    return tuple([None if number is not False and general else number for number in numbers])


def trace_value(
    prim: Primitive, kind: int, numbers: tuple[Any, ...], masks: int, params: Params
) -> tuple[Any, ...] | None:
    """Lower the value of an elementwise primitive to a program; return None if that is impossible.

    Args:
        kind: index in ``KINDS`` of the dtype of the array operands and the result.
        numbers: for each operand its value if it is a number, else False; then the numbers among the parameters.
        masks: a bit for each operand that is a mask.

    Returns:
        The numbers that the program is valid for (None for any number), and the program.
    """
    for general in _general_modes(numbers):
        found = _trace_or_none(partial(_value, prim, KINDS[kind], numbers, masks, params, general))
        if found is not None:
            return found
    return None


def _value(
    prim: Primitive,
    dtype: NumpyDType,
    numbers: tuple[Any, ...],
    masks: int,
    params: Params,
    general: bool,
) -> tuple[Any, ...]:
    if prim.variadic or len(numbers) > INPUTS:
        raise Untraceable
    program = LoopProgram(dtype, False)
    inputs = _Inputs(program, numbers, masks, params, general)
    program.finish(prim.value(*inputs.stand_ins[inputs.operands], **inputs.params))
    if not program.result or not inputs.agree(program, prim.value):
        raise Untraceable
    return _cache_key_numbers(numbers, general), program.for_c()


def trace_rule(
    prim: Primitive,
    operand: int,
    kind: int,
    broadcast: bool,
    recorded: bool,
    numbers: tuple[Any, ...],
    masks: int,
    params: Params,
) -> tuple[Any, ...] | None:
    """Lower the rule of an elementwise primitive for one operand to a program; return None if that is impossible.

    Args:
        kind: index in ``KINDS`` of the dtype of the cotangent, the saved values and the result.
        broadcast: whether operands were broadcast: then the result must be summed to the operand's shape.
        recorded: whether the rule runs on tensors.
        numbers: for the cotangent and each saved value its value if it is a number, else False; then the numbers among the
            parameters.
        masks: a bit for each input that is a mask.

    Returns:
        The numbers that the program is valid for (None for any number), and the program.
    """
    for general in _general_modes(numbers):
        rule = partial(_rule, prim, operand, KINDS[kind], bool(broadcast), bool(recorded), numbers, masks, params)
        found = _trace_or_none(partial(rule, general))
        if found is not None:
            return found
    return None


def _rule(
    prim: Primitive,
    operand: int,
    dtype: NumpyDType,
    broadcast: bool,
    recorded: bool,
    numbers: tuple[Any, ...],
    masks: int,
    params: Params,
    general: bool,
) -> tuple[Any, ...]:
    if prim.shared is not None or prim.variadic or prim.pullback is None or len(numbers) > INPUTS:
        raise Untraceable
    program = LoopProgram(dtype, recorded)
    inputs = _Inputs(program, numbers, masks, params, general)
    pullback = prim.pullback
    edges = tuple([True if i == operand else None for i in range(len(prim.operands))])

    def rule(g: Any, *saved: Any, avals: Any, **params: Any) -> Any:
        return pullback(_NodeStandIn(params, avals), g, saved, edges)[operand]

    avals = ((_Shape(None), dtype),) * len(prim.operands) if broadcast else None
    program.finish(rule(*inputs.stand_ins[inputs.operands], avals=avals, **inputs.params))
    if program.unbroadcast_values != ([program.result] if broadcast else []):
        raise Untraceable
    if not recorded:
        shape = inputs.samples[0].shape
        avals = ((shape, dtype),) * len(prim.operands) if broadcast else None
        if not inputs.agree(program, partial(rule, avals=avals)):
            raise Untraceable
    return _cache_key_numbers(numbers, general), program.for_c()


def trace_tangent(
    prim: Primitive, present: int, kind: int, recorded: bool, numbers: tuple[Any, ...], masks: int, params: Params
) -> tuple[Any, ...] | None:
    """Lower the JVP rule of an elementwise primitive to a program; return None if that is impossible.

    The program is valid where its result has the shape of the value.

    Args:
        present: a bit for each operand that has a tangent.
        kind: index in ``KINDS`` of the dtype of all arrays.
        recorded: whether the rule runs on values that are not plain arrays.
        numbers: for each present tangent, each operand and the value: its value if it is a number, else False; then the
            numbers among the parameters.
        masks: a bit for each input that is a mask.

    Returns:
        The numbers that the program is valid for (None for any number), and the program.
    """
    for general in _general_modes(numbers):
        found = _trace_or_none(
            partial(_tangent, prim, present, KINDS[kind], bool(recorded), numbers, masks, params, general)
        )
        if found is not None:
            return found
    return None


def _tangent(
    prim: Primitive,
    present: int,
    dtype: NumpyDType,
    recorded: bool,
    numbers: tuple[Any, ...],
    masks: int,
    params: Params,
    general: bool,
) -> tuple[Any, ...]:
    if prim.variadic or len(numbers) > INPUTS:
        raise Untraceable
    program = LoopProgram(dtype, recorded)
    program.one_shape = True
    inputs = _Inputs(program, numbers, masks, params, general)
    n, count = len(prim.operands), present.bit_count()

    def rule(*values: Any, **params: Any) -> Any:
        tangents = iter(values[:count])
        spread = [next(tangents) if present >> i & 1 else None for i in range(n)]
        return prim.jvp(values[count : count + n], spread, values[count + n], params)

    program.finish(rule(*inputs.stand_ins[inputs.operands], **inputs.params))
    if not recorded and not inputs.agree(program, rule):
        raise Untraceable
    return _cache_key_numbers(numbers, general), program.for_c()


def _trace_or_none(trace: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...] | None:
    try:
        with np.errstate(all="raise"):  # numbers are computed once, here, where a warning would be lost
            return trace()
    except Exception:  # a rule may fail in any way on symbols
        return None
