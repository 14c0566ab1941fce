"""A row's value and rules as short programs of NumPy's loops, for the eager path in C.

A rule is NumPy code. Run once on stand-ins, it says which ufuncs it calls on what; if their loops give the bits that the rule itself
gives, on samples with zeros of both signs, infinities and nans among them, C runs the loops from then on. A rule that does more than to
call ufuncs, ``np.where`` and ``astype`` stays Python's, and so does one that looks at shapes or at numbers.

The stand-ins answer to what ``arrays.any_array.is_array`` asks, as what ``compile`` records does: rules take the way with them that they
take with arrays. Where a rule is to be recorded (with ``create_graph``) they do not, as tensors do not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from types import NotImplementedType
from typing import Any, NoReturn

import numpy as np

from chainrule._src.arrays.any_array import unscalar
from chainrule._src.arrays.types import AnyFunction, DTypeLike, NumpyArray, NumpyDType, Params
from chainrule._src.rules.primitive import Primitive

ndarray = np.ndarray
#: numbers of a program's values, as in native/eager.h: inputs, constants, results of steps
INPUTS, CONSTANTS, STEPS = 8, 8, 24
KINDS = (np.dtype(np.float32), np.dtype(np.float64))
_MASK = np.dtype(bool)
_CASTS = {
    (KINDS[0], KINDS[1]): "cast fd",
    (KINDS[1], KINDS[0]): "cast df",
    (_MASK, KINDS[0]): "cast ?f",
    (_MASK, KINDS[1]): "cast ?d",
}
DIRECT_MOST = 8192  # elements up to which programs run, as in native/eager.h


class Untraceable(Exception):
    """The rule does more than a program can."""


class _Few:
    """The number of elements of a stand-in: no more than ``DIRECT_MOST``, or fewer, where a function asks for less."""

    def __init__(self, program: LoopProgram) -> None:
        self.program = program

    def __le__(self, other: object) -> bool:
        if isinstance(other, int) and other >= DIRECT_MOST:
            return True
        raise Untraceable

    def __ge__(self, other: object) -> bool:
        if not isinstance(other, int) or other < DIRECT_MOST // 4:
            raise Untraceable
        self.program.most = min(self.program.most, other - 1)
        return False

    def _refuse(self, *args: object) -> NoReturn:
        raise Untraceable

    __lt__ = __gt__ = __eq__ = __bool__ = __int__ = __index__ = __add__ = __sub__ = __mul__ = __truediv__ = _refuse


class _Shape:
    """The shape of a stand-in, or (without one) of an operand, to which a rule's result is summed down where they differ."""

    def __init__(self, value: Symbol | None) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Shape) or self.value is None or other.value is not None:
            raise Untraceable
        self.value.program.fitted.append(self.value.number)
        return True

    def _refuse(self, *args: object) -> NoReturn:
        raise Untraceable

    __ne__ = __len__ = __getitem__ = __iter__ = __bool__ = __add__ = _refuse


#: of how many axes a value is: of all; of all, the last of length 1; of all but the last
FULL, ROWS, DROPPED = range(3)


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """A value of a program: it stands for an array and notes what is done with it."""

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
        out[0].number = result.number  # written in place: what stands for the array stands for this from now on
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
    def size(self) -> _Few:
        return _Few(self.program)

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise Untraceable

    __pow__ = __rpow__ = _refuse  # of arrays these have short cuts
    __bool__ = __array__ = __float__ = __int__ = __index__ = __iter__ = __len__ = _refuse


class ArrayValue(Symbol):
    """A value that stands for an array, as rules ask."""

    stands_for_array = True

    def as_array(self) -> Symbol:
        return self


class Number(float):
    """Stands for any Python number that was saved: beside a value it is an operand, and nothing else may be done with it."""

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
    """Steps (ufunc or a name, which of its loops, operands, bytes of an element, form), constants, which value is the result, and up to
    how many elements it serves. The form of a step is "", or how it goes along the last axis: "add", "maximum", "rows".
    """

    def __init__(self, dtype: NumpyDType, recorded: bool) -> None:
        self.dtype = dtype
        self.recorded = recorded
        self.steps: list[tuple[Any, int, tuple[int, ...], int, str]] = []
        self.constants: list[object] = []
        self.fitted: list[int] = []  # the values that were summed down to an operand's shape
        self.result = 0
        self.most = DIRECT_MOST

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
        """A sum or a maximum along the last axis, which stays."""
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
        """A product of rows by rows, as ``np.vecdot``."""
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
        for i, known in enumerate(self.constants):
            if type(known) is type(x) and repr(known) == repr(x):
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
        return (tuple(self.steps), tuple(self.constants), self.result, self.most)

    def run(self, inputs: list[Any]) -> NumpyArray:
        """What the program gives, by NumPy."""
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


class _NodeReads:
    """What a pullback reads of a node."""

    def __init__(self, params: Params, in_avals: Any) -> None:
        self.params = params
        self.in_avals = in_avals


_SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, np.inf, -np.inf, np.nan, 800.0, 1e-40, 2.0, -0.3, 0.7, 7.25]


_ANY = (0.45, 1.7, -0.6, 2.25)  # for numbers that stand for any


def _samples(dtype: NumpyDType, count: int) -> list[Any]:
    """Arrays in which the special numbers meet each other: all pairs of the first two, and many more of the others."""
    places = np.arange(len(_SPECIAL) ** 2)
    steps = [
        places % 17,
        places // 17,
        places * 5 + 3,
        places * 11 + 7,
        places * 7 + 1,
        places * 13 + 5,
        places * 3 + 2,
        places * 9 + 4,
    ]
    return [np.array(_SPECIAL, dtype)[step % len(_SPECIAL)] for step in steps[:count]]


def _in_rows(sample: Any) -> Any:
    """Rows of a sample's numbers, some of which are special in some of the rows alone."""
    rows = np.tile(sample[::-1].reshape(17, 17), (2, 1))
    rows[4:] = np.where(np.isfinite(rows[4:]) & (np.abs(rows[4:]) < 100), rows[4:], 0.25)
    return rows * np.linspace(0.3, 1.4, 17, dtype=rows.dtype)


def _agree(expected: Any, found: Any) -> bool:
    expected = unscalar(expected)
    if type(expected) is not ndarray or expected.dtype != found.dtype or expected.shape != found.shape:
        return False
    return bool(
        np.all(
            (expected.view(f"i{expected.itemsize}") == found.view(f"i{found.itemsize}"))
            | (np.isnan(expected) & np.isnan(found))
        )
    )


class _Inputs:
    """What a function is traced with, and tried on: stand-ins and samples of its inputs, and of its parameters.

    Args:
        numbers: for each input that is a number, that; else False. The last are the numbers among the parameters.
        masks: bits of the inputs that are masks.
        general: numbers stand for any number.
    """

    def __init__(
        self, program: LoopProgram, numbers: tuple[Any, ...], masks: int, params: Params, general: bool
    ) -> None:
        with np.errstate(all="ignore"):
            samples = _samples(program.dtype, len(numbers))
            if "axis" in params:
                samples = [_in_rows(x) for x in samples]
        self.stand_ins: list[Any] = []
        self.samples: list[Any] = []
        for i, number in enumerate(numbers):
            mask = bool(masks >> i & 1)
            if number is False:
                self.stand_ins.append(program.input(i, mask))
                self.samples.append(samples[i] > 0 if mask else samples[i])
            else:
                self.stand_ins.append(program.any_number(i) if general else number)
                self.samples.append(_ANY[i % len(_ANY)] if general else number)
        self.params, self.sample_params = dict(params), dict(params)
        at = len(numbers) - sum(type(x) in (int, float) for x in params.values())
        self.operands = slice(at)
        for name, value in params.items():
            if type(value) in (int, float):
                self.params[name], self.sample_params[name] = self.stand_ins[at], self.samples[at]
                at += 1

    def agree(self, program: LoopProgram, value: AnyFunction) -> bool:
        """Whether a program gives what a function does, on the samples."""
        with np.errstate(all="ignore"):
            return _agree(value(*self.samples[self.operands], **self.sample_params), program.run(self.samples))


def _generally(numbers: tuple[Any, ...]) -> tuple[bool, ...]:
    """Whether to trace for any numbers first, and then for these."""
    return (True, False) if any(x is not False for x in numbers) else (False,)


def _which(numbers: tuple[Any, ...], general: bool) -> tuple[Any, ...]:
    return tuple([None if number is not False and general else number for number in numbers])


def trace_value(
    prim: Primitive, kind: int, numbers: tuple[Any, ...], masks: int, params: Params
) -> tuple[Any, ...] | None:
    """The value of an elementwise row as a program; None if it is none.

    Args:
        kind: of the operands that are arrays, and of the result.
        numbers: for each operand that is a number, that, else False; then the numbers among the parameters.
        masks: bits of the operands that are masks.

    Returns:
        The numbers that it is for, with None for any number, and the program.
    """
    for general in _generally(numbers):
        found = _tried(partial(_value, prim, KINDS[kind], numbers, masks, params, general))
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
    return _which(numbers, general), program.for_c()


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
    """An elementwise row's rule for one operand as a program; None if it is none.

    Args:
        kind: of the cotangent, the saved values and the result.
        broadcast: whether operands were broadcast: then the result is still to be summed down to the operand's shape.
        recorded: whether it is run on tensors.
        numbers: for the cotangent and each saved value that is a number, that, else False; then the numbers among the parameters.
        masks: bits of the inputs that are masks.

    Returns:
        The numbers that it is for, with None for any number, and the program.
    """
    for general in _generally(numbers):
        rule = partial(_rule, prim, operand, KINDS[kind], bool(broadcast), bool(recorded), numbers, masks, params)
        found = _tried(partial(rule, general))
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
        return pullback(_NodeReads(params, avals), g, saved, edges)[operand]

    avals = ((_Shape(None), dtype),) * len(prim.operands) if broadcast else None
    program.finish(rule(*inputs.stand_ins[inputs.operands], avals=avals, **inputs.params))
    if program.fitted != ([program.result] if broadcast else []):
        raise Untraceable
    if not recorded:
        shape = inputs.samples[0].shape
        avals = ((shape, dtype),) * len(prim.operands) if broadcast else None
        if not inputs.agree(program, partial(rule, avals=avals)):
            raise Untraceable
    return _which(numbers, general), program.for_c()


def _tried(trace: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...] | None:
    try:
        with np.errstate(all="raise"):  # what a rule does with numbers is done once here, and so must not warn
            return trace()
    except Exception:  # whatever a rule does with a stand-in that it was not written for
        return None
