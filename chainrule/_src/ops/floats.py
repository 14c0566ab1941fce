"""Parts of floating-point numbers: infinities, mantissas and exponents.

``op`` makes these functions public: ``chainrule.isposinf``, ``chainrule.isneginf`` …
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays import return_types
from chainrule._src.arrays.types import TensorLike
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import constant_on_device_of, tensor_of
from chainrule._src.table import exponential
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.tensor import Tensor


@op(method=True, out=True)
def isposinf(input: TensorLike) -> Tensor:
    """Return whether an element is +∞."""
    return _infinite("isposinf", input, np.inf)


@op(method=True, out=True)
def isneginf(input: TensorLike) -> Tensor:
    """Return whether an element is −∞."""
    return _infinite("isneginf", input, -np.inf)


def _infinite(name: str, input: TensorLike, infinity: float) -> Tensor:
    x = tensor_of(name, input)
    if x.dtype.kind == "c":
        raise RuntimeError(f"{name} does not support complex inputs: apply it to .real or .imag")
    return ew.eq(x, infinity) if x.dtype.kind == "f" else constant_on_device_of(x, np.zeros(tuple(x.shape), np.bool_))


@op(method=True)
def isreal(input: TensorLike) -> Tensor:
    """Return whether an element has no imaginary part."""
    x = tensor_of("isreal", input)
    return ew.eq(ew.imag(x), 0) if x.dtype.kind == "c" else constant_on_device_of(x, np.ones(tuple(x.shape), np.bool_))


@op(method=True, in_place=True, out=True)
def ldexp(input: TensorLike, other: TensorLike) -> Tensor:
    """Return input · 2**other."""
    if not isinstance(other, Tensor) or other.dtype.kind not in "iu":
        return ew.mul(input, ew.pow(2.0, other) if isinstance(other, Tensor) else 2.0**other)
    x = input if isinstance(input, Tensor) and input.dtype.kind in "fc" else ew.mul(input, 1.0)
    half = ew.floor_divide(other, 2)  # 2**other may be out of range
    for part in (half, ew.sub(other, half)):
        x = ew.mul(x, ew.exp2(cast(part, ew.real(x).dtype)))
    return x


@op(method=True)
def frexp(input: TensorLike) -> Any:
    """Return mantissas in ±[0.5, 1) and exponents (int32): input = mantissa · 2**exponent. Gradients flow to mantissas."""
    x = tensor_of("frexp", input)
    if x.dtype.kind != "f":
        raise RuntimeError(f"torch.frexp() only supports floating-point dtypes, but got {x.dtype}")
    exponent = bind(exponential.binary_exponent, (x,), {})
    half = ew.floor_divide(exponent, 2)  # 2**-exponent may be out of range
    mantissa = x
    for part in (half, ew.sub(exponent, half)):
        mantissa = ew.mul(mantissa, ew.exp2(cast(ew.neg(part), x.dtype)))
    return return_types.frexp(mantissa, exponent)
