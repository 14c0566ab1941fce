"""User functions made from elementwise primitives.

``declare.op`` and the modules of ``ops`` and ``nn`` call these factories.

``unary`` and ``binary`` are the reference implementation: they pass all calls to ``general``. With the C extension, the fast
path (tensors of float arrays and numbers, outside of all modes) runs in C with the same results (``api.operations``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, as_arrays
from chainrule._src.api.in_place import store_out
from chainrule._src.api.operands import operand, promote_operands
from chainrule._src.api.operations import operation
from chainrule._src.arrays.libraries import is_foreign
from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.foreign_operands import operate_with_foreign
from chainrule._src.tape.overriding import PLAIN, call_override, operator_of, overriding_arguments
from chainrule._src.tape.protocol import ArrayLike, one_float_dtype
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray
generic = np.generic
new = object.__new__
_OPERANDS = (Tensor, int, float, complex, ndarray, generic, ArrayLike)


def general(prim: Primitive, operands: Any, params: Params) -> Any:
    """Check and promote the operands, then call ``bind``: the path of every call that C does not handle. Return a tensor."""
    for x in operands:
        if type(x) not in PLAIN and (asked := overriding_arguments(operands)):
            return call_override(getattr(Tensor, prim.name, prim.function), asked, operands, params)
    if "f" not in prim.accepts or not one_float_dtype(operands):
        kinds = set(map(type, operands))
        operands = tuple([operand(prim.name, i, x) for i, x in enumerate(operands)])
        if Array in kinds:
            result = general(prim, operands, params)
            return result if Tensor in kinds else as_arrays(result)
        if not any(isinstance(x, (Tensor, ArrayLike)) for x in operands):
            raise errors.wrong_operand(prim.name, 0, operands[0])
        if prim.promotion != "none":
            operands = promote_operands(prim, operands)
        for x in operands:
            if hasattr(x, "dtype") and dtype_of(x).kind not in prim.accepts:
                raise errors.no_kernel(prim.name, x.dtype, prim.accepts, prim.on_bools)
    try:
        return bind(prim, operands, params)
    except ValueError as error:
        if "broadcast" not in str(error):
            raise
        raise errors.not_broadcastable(prim.name, *operands) from None


def unary(prim: Primitive) -> Callable[..., Tensor]:
    """Return the user function for an elementwise primitive of one operand."""

    def call(input: Any, *, out: Any = None) -> Any:
        result = general(prim, (input,), {})
        return result if out is None else store_out(out, result)

    prim.function = operation(_set_metadata(call, prim), prim)
    return prim.function


def binary(prim: Primitive, operator: str = "") -> Callable[..., Tensor]:
    """Return the user function for an elementwise primitive of two operands.

    As an operator ("mul" for ``__mul__``) it returns NotImplemented for operands of unknown type.
    """

    def call(input: Any, other: Any, *, out: Any = None) -> Any:
        if isinstance(other, generic) and type(number := other.item()) in (float, int):
            return call(input, number, out=out)
        if operator and not isinstance(other, _OPERANDS) and not is_foreign(type(other)):
            found = operator_of(operator, input, other)
            return operate_with_foreign(operator, call, input, other) if found is NotImplemented else found
        result = general(prim, (input, other), {})
        return result if out is None else store_out(out, result)

    prim.function = operation(_set_metadata(call, prim), prim)
    return prim.function


def nary(prim: Primitive, **forms: object) -> Callable[..., Tensor]:
    """Return the user function for an elementwise primitive of three operands or with parameters.

    ``forms`` are passed to ``operation``; without them, calls with parameters are handled in Python.
    """

    def call(*operands: Any, out: Any = None, **params: Any) -> Tensor:
        return store_out(out, general(prim, operands, params))

    _set_metadata(call, prim)
    if prim.parameters and "parameters" not in forms:
        return call
    prim.function = operation(call, prim, **forms)
    return prim.function


def _set_metadata(call: AnyFunction, prim: Primitive) -> Callable[..., Tensor]:
    call.__name__ = call.__qualname__ = prim.name
    call.__doc__ = prim.doc
    call.__module__ = "chainrule"
    call.__dict__["takes_arrays"] = True
    prim.function = call
    return call


def public_function(prim: Primitive) -> Callable[..., Tensor]:
    """Return the user function for an elementwise or discrete primitive, by its number of operands."""
    if prim.kind != "discrete" and (prim.parameters or len(prim.operands) > 2):
        return nary(prim)
    return unary(prim) if len(prim.operands) == 1 else binary(prim)
