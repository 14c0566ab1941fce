"""The user functions of elementwise primitives, and composites of them.

``op`` makes these functions public: ``chainrule.add``, ``chainrule.sub`` …
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.functions import binary, general, nary, unary
from chainrule._src.api.operands import operand, wrap_around
from chainrule._src.api.operations import with_fast_path
from chainrule._src.arrays import dtypes, promotion
from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.messages import errors
from chainrule._src.messages.source_locations import warn
from chainrule._src.ops.arguments import takes_tensors, tensor_of
from chainrule._src.rules.primitive import Primitive
from chainrule._src.table import arithmetic, comparison, exponential, trigonometric
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.eager import LOOPS, RECORDED
from chainrule._src.tape.protocol import EXCHANGED, UFUNCS
from chainrule._src.tape.tensor import Tensor

mul_ = arithmetic.mul.function
add_, sub_ = binary(arithmetic.add), binary(arithmetic.sub)
_SCALED = ("alpha", mul_)  # add and sub first multiply their second operand by ``alpha``


def _scaled(other: TensorLike, alpha: TensorLike, input: TensorLike) -> Any:
    if alpha == 1:
        return other
    scaled = mul(other, alpha) if isinstance(other, Tensor) else other * alpha
    both_bool = [x.dtype.kind for x in (input, other) if isinstance(x, Tensor)] == ["b", "b"]
    return ne(scaled, 0) if both_bool and type(alpha) is int else scaled


def _factor_first(
    name: str, keyword: str, factor_keyword: TensorLike, factor: TensorLike, *operands: TensorLike
) -> tuple[TensorLike, ...]:
    """Reorder the arguments of a deprecated call with the factor before the scaled operand: ``x.add_(-lr, grad)``."""
    expected = 1 if keyword == "alpha" else 2
    fits = len(operands) == expected and all(isinstance(x, Tensor) for x in operands)
    if not fits or isinstance(factor, Tensor) or factor_keyword != 1:
        raise TypeError(
            f"{name}() takes {expected + 1} positional arguments but {len(operands) + 2} were given: the factor is {keyword}=..."
        )
    warn(
        f"This overload of {name} is deprecated: {name}(Number {keyword}, ...). Give the factor last, as {keyword}=..."
    )
    return (factor, *operands)


@op(method=True, in_place=True, out=True, ordinary=add_, factor=_SCALED)
def add(input: TensorLike, other: TensorLike, *old: Any, alpha: TensorLike = 1) -> Tensor:
    """Return input + alpha·other.

    >>> import chainrule as cr
    >>> cr.add(cr.tensor([1., 2.]), cr.tensor([10., 20.]), alpha=2)
    tensor([21., 42.])
    """
    if old:
        alpha, other = _factor_first("add", "alpha", alpha, other, *old)
    return add_(input, _scaled(other, alpha, input))


@op("sub subtract", method=True, in_place=True, out=True, ordinary=sub_, factor=_SCALED)
def sub(input: TensorLike, other: TensorLike, *old: Any, alpha: TensorLike = 1) -> Tensor:
    """Return input − alpha·other."""
    if old:
        alpha, other = _factor_first("sub", "alpha", alpha, other, *old)
    return sub_(input, _scaled(other, alpha, input))


def _functions(*prims: Primitive) -> list[Callable[..., Tensor]]:
    """Return the user functions of primitives."""
    return [prim.function for prim in prims]


mul, true_divide, neg, square = _functions(arithmetic.mul, arithmetic.div, arithmetic.neg, arithmetic.square)
sqrt, rsqrt, reciprocal = _functions(arithmetic.sqrt, arithmetic.rsqrt, arithmetic.reciprocal)
exp, exp2, log, log1p = _functions(exponential.exp, exponential.exp2, exponential.log, exponential.log1p)
sigmoid, xlogy = _functions(exponential.sigmoid, exponential.xlogy)
sin, cos, tanh = _functions(trigonometric.sin, trigonometric.cos, trigonometric.tanh)
(sinc,) = _functions(trigonometric.sinc)
maximum, minimum, relu = _functions(comparison.maximum, comparison.minimum, comparison.relu)
floor, ceil, trunc = _functions(comparison.floor, comparison.ceil, comparison.trunc)
eq, ne, lt = _functions(comparison.eq, comparison.ne, comparison.lt)
le, gt, ge = _functions(comparison.le, comparison.gt, comparison.ge)
isnan, isinf, isfinite = _functions(comparison.isnan, comparison.isinf, comparison.isfinite)
logical_and, logical_or = _functions(comparison.logical_and, comparison.logical_or)
(logical_not,) = _functions(comparison.logical_not)
bitwise_and, bitwise_or = _functions(comparison.bitwise_and, comparison.bitwise_or)
bitwise_xor, bitwise_not = _functions(comparison.bitwise_xor, comparison.bitwise_not)
bitwise_left_shift, bitwise_right_shift = _functions(comparison.bitwise_left_shift, comparison.bitwise_right_shift)
_pow = binary(arithmetic.pow)
_pow_of_floats = with_fast_path(_pow, _pow, floats=True)  # for integers, negative exponents are an error
_abs, _sign, _rint = unary(arithmetic.abs), unary(comparison.sign), unary(comparison.round)
_logaddexp, rsub_ = binary(exponential.logaddexp), binary(arithmetic.rsub)
_where = nary(comparison.where, masks=1, arrays_of_numbers=True)
_clamp, _lerp = nary(comparison.clamp), nary(arithmetic.lerp)
_addcmul, _addcdiv = [nary(prim, parameters={"value": 1}) for prim in (arithmetic.addcmul, arithmetic.addcdiv)]
_clamp_min, _clamp_max = binary(comparison.clamp_min), binary(comparison.clamp_max)
_clamp_between, _logit = nary(comparison.clamp_between), nary(exponential.logit)
_complex = binary(arithmetic.complex_)


def _integer_division(prim: Primitive) -> Callable[..., Tensor]:
    """Return the user function for a division that keeps integer dtypes; integer division by 0 raises."""
    function = binary(prim)

    def call(input: TensorLike, other: TensorLike) -> Tensor:
        if _is_integer(input) and _is_integer(other) and np.any(np.equal(getattr(other, "_raw", other), 0)):
            raise errors.zero_division(prim.name)
        return function(input, other)

    call.__name__ = call.__qualname__ = prim.name
    call.__doc__ = prim.doc
    return call


def _is_integer(x: object) -> bool:
    return x.dtype.kind in "biu" if hasattr(x, "dtype") else isinstance(x, int)


remainder, fmod, floor_divide = [
    op(method=True, in_place=True, out=True)(_integer_division(prim))
    for prim in (arithmetic.remainder, arithmetic.fmod, comparison.floor_divide)
]
_trunc_divide = _integer_division(comparison.trunc_divide)


@op("abs absolute", method=True, in_place=True, out=True, ordinary=_abs)
def abs(input: Any) -> Tensor:
    """Return the absolute value of every element. The gradient at 0 is 0."""
    return _abs(input)


@op("div divide", method=True, in_place=True, out=True, ordinary=true_divide)
def div(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """Return input / other; ``rounding_mode`` 'floor' or 'trunc' rounds the quotient and keeps integer dtypes."""
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        return _trunc_divide(input, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@op(method=True, in_place=True, out=True, ordinary=_pow_of_floats)
def pow(input: TensorLike, exponent: TensorLike) -> Tensor:
    """Return ``input`` to the power ``exponent``."""
    is_integer = isinstance(input, Tensor) and input.dtype.kind in "iu"
    if is_integer and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed: call .float() first.")
    if isinstance(input, (int, float, builtins.complex)) and not isinstance(exponent, Tensor):
        raise errors.wrong_operand("pow", 0, input)
    if whole_numbers(input) and isinstance(exponent, Tensor) and exponent.dtype.kind in "iu":
        return _whole_power(input, exponent)
    return _pow(input, exponent)


def whole_numbers(x: object) -> bool:
    """Return whether a tensor or number is an integer one."""
    return x.dtype.kind in "iu" if isinstance(x, Tensor) else type(x) is int


def _whole_power(x: TensorLike, exponent: Tensor) -> Tensor:
    """Return a power of integers. Results of negative exponents are truncated to 0, except powers of ±1."""
    if type(exponent._raw) is not np.ndarray or not (exponent._raw < 0).any():
        return _pow(x, exponent)
    negative = lt(exponent, 0)
    power = _pow(x, where(negative, 0, exponent))
    base = cast(where(negative, x, x), power.dtype)
    of_minus_one = where(eq(remainder(exponent, 2), 0), 1, -1)
    inverse = where(eq(base, 1), 1, where(eq(base, -1), of_minus_one, 0))
    return where(negative, cast(inverse, power.dtype), power)


@op()
def rsub(input: TensorLike, other: TensorLike, *, alpha: TensorLike = 1) -> Tensor:
    """Return other − alpha·input."""
    return rsub_(_scaled(input, alpha, other), other)


@op(method=True, out=True)
def logaddexp(input: Any, other: TensorLike) -> Tensor:
    """Return log(exp(input) + exp(other)), computed without overflow."""
    kinds = {getattr(getattr(x, "dtype", None), "kind", "") for x in (input, other)}
    if "c" not in kinds:
        return _logaddexp(input, other)
    x, y = same_dtype("logaddexp", input, other)
    ahead = ge(real(x), real(y))
    larger, smaller = where(ahead, x, y), where(ahead, y, x)
    return add(larger, log1p(exp(sub(smaller, larger))))


@op(method=True, in_place=True, out=True)
def heaviside(input: TensorLike, values: TensorLike) -> Tensor:
    """Return 0 where input is negative, ``values`` where it is 0, else 1."""
    if getattr(input, "dtype", None) != getattr(values, "dtype", None):
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes: convert one with .to(dtype)"
        )
    x, y = same_dtype("heaviside", input, values)
    return cast(comparison.heaviside(x, y), x.dtype)


@op(method=True, in_place=True, out=True)
def float_power(input: TensorLike, exponent: TensorLike) -> Tensor:
    """Return ``input`` to the power ``exponent``, in float64 (or complex128)."""

    def wide(x: TensorLike) -> TensorLike:
        if not isinstance(x, Tensor):
            return x
        return cast(x, np.dtype(np.complex128 if x.dtype.kind == "c" else np.float64))

    return _pow(wide(input), wide(exponent))


@op("round special.round", method=True, in_place=True, out=True, cached=True)
def round(input: TensorLike, *, decimals: int = 0) -> Tensor:
    """Round to the nearest integer, ties to even, or to a number of decimals."""
    if getattr(getattr(input, "dtype", None), "kind", "") in "iu":
        return arithmetic.positive(input)
    if decimals == 0:
        return _rint(input)
    factor = 10.0**decimals
    return true_divide(_rint(mul(input, factor)), factor)


@op(method=True, in_place=True, out=True)
def frac(input: TensorLike) -> Tensor:
    """Return the fractional part: input − trunc(input)."""
    return sub(input, trunc(input))


@op(out=True, ordinary=_where)
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Return ``input`` where the condition holds, else ``other``; with the condition only, return the indices where it holds.

    Raises:
        RuntimeError: the condition is not boolean.

    >>> import chainrule as cr
    >>> x = cr.tensor([-1., 4.])
    >>> cr.where(x > 0, x, 0.)
    tensor([0., 4.])
    """
    if input is None and other is None:
        return tensor_of("where", condition).nonzero(as_tuple=True)
    if getattr(condition, "dtype", None) not in (np.bool_, np.uint8):
        raise errors.where_condition(condition)
    x, y = same_dtype("where", input, other)
    try:
        return comparison.where(operand("where", 0, condition), x, y)
    except ValueError:
        raise errors.not_broadcastable("where", condition, x, y) from None


def same_dtype(name: str, *operands: object) -> list[AnyArray]:
    """Cast the operands of a function to the dtype that PyTorch would compute in."""
    checked = [operand(name, i, x) for i, x in enumerate(operands)]
    target = promotion.joint_dtype(*[_promotion_stand_in(x) for x in checked])
    small = target.kind in "iu"
    numbers = [wrap_around(x, target) if small and type(x) is int else x for x in checked]
    return [cast(x, target) if hasattr(x, "dtype") else np.asarray(x, target) for x in numbers]


def _promotion_stand_in(x: AnyArray) -> TensorLike:
    """Return an empty array with the operand's dtype and rank, for promotion only."""
    return np.empty((0,) * x.ndim, x.dtype) if hasattr(x, "dtype") else x


@op("clamp clip", method=True, in_place=True, out=True, cached=True)
def clamp(input: TensorLike, min: Any = None, max: Any = None) -> Tensor:
    """Limit the elements to [min, max]; bounds are numbers or tensors. At a bound the gradient is passed on.

    Raises:
        RuntimeError: neither bound was given.
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(min, Number) != isinstance(max, Number):  # if one bound is a number, a 0-d tensor is read as one, too
        min, max = _as_number(min), _as_number(max)
    if hasattr(min, "dtype") or hasattr(max, "dtype"):
        if min is None:
            return _clamp_max(input, max)
        return _clamp_min(input, min) if max is None else _clamp_between(input, min, max)
    for which, bound in (("min", min), ("max", max)):
        if bound is not None and not isinstance(bound, Number):
            raise errors.bound_type("clamp", which, bound)
    if isinstance(input, Tensor) and input.dtype.kind in "iub" and any(isinstance(b, float) for b in (min, max)):
        input = cast(input, dtypes.default_dtype())
    if isinstance(input, Tensor) and input.dtype.kind in "iu" and input.dtype.itemsize < 8:
        info = np.iinfo(input.dtype)  # a bound outside of the dtype's range has no effect
        min = int(info.min) if min is not None and min < info.min else min
        max = int(info.max) if max is not None and max > info.max else max
    return _clamp(input, min=min, max=max)


def _as_number(bound: Any) -> Any:
    one = isinstance(bound, Tensor) and not bound.ndim and bound._edge is None and type(bound._raw) is np.ndarray
    return bound.item() if one else bound


@op(method=True, in_place=True, out=True, cached=True)
def clamp_min(input: TensorLike, min: TensorLike) -> Tensor:
    """Return the larger of each element and ``min``."""
    return clamp(input, min=min)


@op(method=True, in_place=True, out=True, cached=True)
def clamp_max(input: TensorLike, max: TensorLike) -> Tensor:
    """Return the smaller of each element and ``max``."""
    return clamp(input, max=max)


@op(method=True, in_place=True, out=True, ordinary=_lerp)
def lerp(input: TensorLike, end: TensorLike, weight: TensorLike) -> Tensor:
    """Return input + weight·(end − input)."""
    return _lerp(input, end, weight)


@op(method=True, in_place=True, out=True, ordinary=_addcmul)
def addcmul(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = 1) -> Tensor:
    """Return input + value·tensor1·tensor2."""
    if old:
        value, tensor1, tensor2 = _factor_first("addcmul", "value", value, tensor1, tensor2, *old)
    return general(arithmetic.addcmul, (input, tensor1, tensor2), {"value": _number("addcmul", value)})


@op(method=True, in_place=True, out=True, ordinary=_addcdiv)
def addcdiv(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = 1) -> Tensor:
    """Return input + value·tensor1/tensor2."""
    if old:
        value, tensor1, tensor2 = _factor_first("addcdiv", "value", value, tensor1, tensor2, *old)
    return general(arithmetic.addcdiv, (input, tensor1, tensor2), {"value": _number("addcdiv", value)})


def _number(name: str, value: TensorLike) -> Any:
    """Return a factor given as a number or as a 0-d tensor that does not require grad."""
    if not isinstance(value, Tensor):
        return value
    if value.ndim or value.requires_grad:
        raise TypeError(f"{name}(): argument 'value' must be Number, not Tensor")
    return value.item()


@op(method=True, in_place=True, out=True, cached=True)
def nan_to_num(
    input: TensorLike, nan: TensorLike = 0.0, posinf: TensorLike | None = None, neginf: TensorLike | None = None
) -> Tensor:
    """Replace NaN by ``nan``, and infinities by ``posinf`` and ``neginf`` (by default the largest finite numbers)."""
    params = {"nan": 0.0 if nan is None else nan, "posinf": posinf, "neginf": neginf}
    return general(comparison.nan_to_num, (input,), params)


@op("logit special.logit", method=True, in_place=True, out=True, cached=True)
def logit(input: TensorLike, eps: float | None = None) -> Tensor:
    """Return log(x / (1 − x)), the inverse of the sigmoid; with ``eps``, x is first clamped to [eps, 1 − eps]."""
    return _logit(input, eps=eps)


@op(method=True)
def positive(input: TensorLike) -> Tensor:
    """Return the tensor itself (``+x``)."""
    if getattr(input, "dtype", None) == np.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported: convert it with .to(dtype) first.")
    return tensor_of("positive", input)


@op(method=True, in_place=True, out=True, ordinary=_sign)
def sign(input: TensorLike) -> Tensor:
    """Return −1, 0 or 1; booleans are returned unchanged."""
    if getattr(input, "dtype", None) == np.bool_:
        return tensor_of("sign", input).clone()
    return _sign(input)


@op(method=True, in_place=True, out=True, cached=True)
def sgn(input: TensorLike) -> Tensor:
    """Return the sign; for complex numbers the direction z/|z| (0 at 0)."""
    x = tensor_of("sgn", input)
    if x.dtype.kind != "c":
        return sign(x)
    size = abs(x)
    zero = eq(size, 0)
    return where(zero, 0.0, true_divide(x, where(zero, 1.0, size)))


@op()
def real(input: TensorLike) -> Tensor:
    """Return the real part (the tensor itself, for real dtypes)."""
    x = tensor_of("real", input)
    return arithmetic.real(x) if x.dtype.kind == "c" else x


@op()
def imag(input: Tensor) -> Tensor:
    """Return the imaginary part.

    Raises:
        RuntimeError: the tensor is real.
    """
    x = tensor_of("imag", input)
    if x.dtype.kind != "c":
        raise RuntimeError(f"imag is not implemented for tensors with non-complex dtypes, such as {x.dtype}.")
    return arithmetic.imag(x)


@op(method=True, in_place=True, out=True)
def conj_physical(input: TensorLike) -> Tensor:
    """Return the complex conjugate (the tensor itself, for real dtypes)."""
    x = tensor_of("conj_physical", input)
    return general(arithmetic.conj_physical, (x,), {}) if x.dtype.kind == "c" else x


@op(method=True)
def conj(input: TensorLike) -> Tensor:
    """Return the complex conjugate (the tensor itself, for real dtypes)."""
    return conj_physical(tensor_of("conj", input))


@op(out=True)
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return the complex tensor real + i·imag."""
    real, imag = tensor_of("complex", real), tensor_of("complex", imag)
    if real.dtype.kind != "f" or imag.dtype.kind != "f" or real.dtype != imag.dtype:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors of one dtype but got {real.dtype} and "
            f"{imag.dtype}"
        )
    return _complex(real, imag)


@op(out=True)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Return the complex tensor with an absolute value and an angle."""
    return complex(mul(abs, cos(angle)), mul(abs, sin(angle)))


@op(method=True)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Return whether |input − other| ≤ atol + rtol·|other|, element by element."""
    if rtol < 0 or atol < 0:
        name, tolerance = ("rtol", rtol) if rtol < 0 else ("atol", atol)
        raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    if getattr(input, "dtype", None) == np.bool_ and getattr(other, "dtype", None) == np.bool_:
        return eq(input, other)
    close = logical_or(
        eq(input, other), logical_and(le(abs(sub(input, other)), add(mul(abs(other), rtol), atol)), isfinite(other))
    )
    return logical_or(close, logical_and(isnan(input), isnan(other))) if equal_nan else close


@op(method=True)
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether all elements are close (see :func:`isclose`)."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@op(method=True)
@takes_tensors
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and elements."""
    return input.shape == other.shape and bool(eq(input, other).all())


def _as_fabs(x: Tensor) -> Tensor:
    """Cast the operand of ``np.fabs`` to the dtype of its result: integers become floats.

    Raises:
        TypeError: the operand is complex.
    """
    result_dtype = np.fabs(np.empty(0, dtype_of(x))).dtype
    return x if dtype_of(x) == result_dtype else cast(x, result_dtype)


def _numpy_sign(x: AnyArray) -> AnyArray:
    """Compute ``np.sign``; for complex z the point z/|z|, which has a derivative."""
    if x.dtype.kind != "c":
        return comparison.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def _ufunc_table() -> None:
    """Fill ``UFUNCS``, which maps ufuncs to primitives for NumPy's protocol."""
    for module in (arithmetic, exponential, trigonometric, comparison):
        for prim in vars(module).values():
            if isinstance(prim, Primitive) and prim.ufunc is not None:
                UFUNCS[prim.ufunc] = prim
    EXCHANGED.update({np.add: add_, np.multiply: mul, np.subtract: rsub_})
    UFUNCS[np.fabs] = lambda x: arithmetic.abs(_as_fabs(x))
    UFUNCS[np.degrees], UFUNCS[np.radians] = trigonometric.rad2deg, trigonometric.deg2rad
    UFUNCS[np.divmod] = lambda x, y: (comparison.floor_divide(x, y), arithmetic.remainder(x, y))
    if np.sign(2j) == 1j:  # before NumPy 2.0, the sign of complex numbers was that of the real part
        _numpy_sign.function = comparison.sign.function  # type: ignore[attr-defined]
        UFUNCS[np.sign] = _numpy_sign


_ufunc_table()


def _recorded_table() -> None:
    """Fill ``RECORDED``, which maps ufuncs to operations for C, for rules that are recorded."""
    if LOOPS is None:
        return
    for ufunc, prim in UFUNCS.items():
        if type(function := getattr(prim, "function", None)) is LOOPS.Operation:
            RECORDED[ufunc, False] = function
    RECORDED.update({(ufunc, True): operation for ufunc, operation in EXCHANGED.items()})


_recorded_table()
