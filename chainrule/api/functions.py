"""The functions users call, made from elementwise rows.

The first lines of ``unary`` and ``binary`` are the case that matters for speed: tensors of ordinary arrays of one
floating dtype, something requires grad. Whatever else there is (numbers on the left, arrays, promotion, transformations,
modes) goes behind one call, ``general``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from sys import _getframe
from types import FunctionType
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.api.array import Array, as_arrays
from chainrule.api.in_place import store_out
from chainrule.backends.arrays import is_foreign
from chainrule.core.dispatch import bind, cast
from chainrule.core.eager import LOOPS, NO_PARAMS, SHARED
from chainrule.core.modes import LOCAL, SPECIAL, WATCHES
from chainrule.core.node import Node, next_seq
from chainrule.core.others import beside
from chainrule.core.protocol import ArrayLike, one_float_dtype
from chainrule.core.tensor import Tensor, wrap
from chainrule.core.versions import protected
from chainrule.errors.places import USER_FILES, note_frame
from chainrule.rows.primitive import TABLE, Primitive
from chainrule.types import dtypes, promotion
from chainrule.types.shapes import dtype_of

ndarray = np.ndarray
generic = np.generic
new = object.__new__
_OPERANDS = (Tensor, int, float, complex, ndarray, generic, ArrayLike)
#: asks a ufunc for an array where it would make a number of one without dimensions, which takes as long as computing it
ARRAY: Any = ... if np.lib.NumpyVersion(np.__version__) >= "2.3.0" else None
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)


def operand(function: str, position: int, x: Any) -> Any:
    """Check an operand: tensors and numbers pass, arrays become tensors, anything else is a TypeError."""
    if isinstance(x, generic) and x.dtype.kind in "fciub":
        return x.item()  # a NumPy scalar is as weak as Python's
    if isinstance(x, (Tensor, int, float, complex, ArrayLike)):
        return x
    if isinstance(x, (ndarray, generic)) and not is_foreign(type(x)):
        if x.dtype.kind not in "fciub":
            raise errors.wrong_operand(function, position, x)
        return wrap(protected(dtypes.native(x)))
    if type(x) is Array:
        return x._tensor
    if is_foreign(type(x)):
        return wrap(x)
    raise errors.wrong_operand(function, position, x)


def promoted(prim: Primitive, operands: Any) -> list[Any]:
    """Cast operands to the dtype PyTorch would compute in. Python numbers stay numbers (they are weak)."""
    first = operands[0]
    if len(operands) == 1:
        target = dtype_of(first)
    elif len(operands) == 2:
        x, y = operands
        x_array, y_array = hasattr(x, "dtype"), hasattr(y, "dtype")
        if x_array and y_array:
            dx, dy = dtype_of(x), dtype_of(y)
            target = dx if dx is dy else promotion.result_dtype(dx, not x.ndim, dy, not y.ndim)
        else:
            target = promotion.scalar_dtype(dtype_of(x), y) if x_array else promotion.scalar_dtype(dtype_of(y), x)
    else:
        target = promotion.joint_dtype(
            *[x._raw if isinstance(x, Tensor) and type(x._raw) is ndarray else x for x in operands]
        )
    if prim.promotion == "float" and target.kind in "iub":
        target = dtypes.default_dtype()
    if target.kind in "iu" and prim.promotion != "comparison":  # NumPy compares any two integers rightly
        operands = [around(x, target) if type(x) is int else x for x in operands]
    return [cast(x, target) if hasattr(x, "dtype") and dtype_of(x) != target else x for x in operands]


def around(x: int, dtype: Any) -> int:
    """A Python integer as an integer dtype holds it: beyond one end it starts again at the other."""
    info = np.iinfo(dtype)
    if dtype.itemsize == 8 or info.min <= x <= info.max:
        return x
    return (x - int(info.min)) % (int(info.max) - int(info.min) + 1) + int(info.min)


def general(prim: Primitive, operands: Any, params: dict[str, Any]) -> Any:
    """Everything but the hot case: checks, promotion, then ``bind``. The result is always a tensor."""
    if "f" not in prim.accepts or not one_float_dtype(operands):
        kinds = set(map(type, operands))
        operands = tuple([operand(prim.name, i, x) for i, x in enumerate(operands)])
        if Array in kinds:
            result = general(prim, operands, params)
            return result if Tensor in kinds else as_arrays(result)
        if not any(isinstance(x, (Tensor, ArrayLike)) for x in operands):
            raise errors.wrong_operand(prim.name, 0, operands[0])
        if prim.promotion != "none":
            operands = promoted(prim, operands)
        for x in operands:
            if hasattr(x, "dtype") and dtype_of(x).kind not in prim.accepts:
                raise errors.no_kernel(prim.name, x.dtype, prim.accepts, prim.on_bools)
    try:
        return bind(prim, operands, params)
    except ValueError as error:
        if "broadcast" not in str(error):
            raise
        raise errors.not_broadcastable(prim.name, *operands) from None


def unrecorded(value: Callable[..., Any], x: Any, y: Any = None, cutting: str = "") -> Tensor | None:
    """The result where nothing is to be recorded, for tensors of one float dtype and numbers. None: take the long way.

    ``cutting`` is the name of an operation whose results never have a gradient.
    """
    mode = None
    if SPECIAL:
        mode = LOCAL.mode
        if mode.grad or mode.inference or LOCAL.recorder is not None or (WATCHES and LOCAL.watch is not None):
            return None
    a, b, source = x, y, x
    if type(x) is Tensor:
        array = a = x._raw
        if type(y) is Tensor:
            b = y._raw
            if type(b) is not ndarray or b.dtype is not a.dtype:
                return None
            if x._edge is None and (y._edge is not None or x._cut is None):
                source = y
        elif y is not None and type(y) is not float and type(y) is not int:
            return None
    elif type(y) is Tensor and (type(x) is float or type(x) is int):
        array = b = y._raw
        source = y
    else:
        return None
    if type(array) is not ndarray or ((dtype := array.dtype) is not float32 and dtype is not float64):
        return None
    cut = None
    if mode is None or not mode.silent:
        if source._edge is None:
            cut = source._cut
        elif mode is None and not cutting:
            return None
        else:
            sources = [t for t in (x, y) if type(t) is Tensor and t._edge is not None]
            cut = errors.Cut("no_grad" if mode is not None else cutting, errors.user_line(), sources)
    try:
        out = value(a) if b is None else value(a, b)
    except ValueError:
        return None  # the long way says what is wrong
    tensor = new(Tensor)
    tensor._raw = out if type(out) is ndarray else np.asarray(out)
    tensor._edge = None
    tensor._cut = cut
    return tensor


# The two functions below are templates: ``specialised`` makes a copy for each row, in whose globals these names have
# the row's values. (Globals are read faster than the variables of a closure: it saves a sixth of a small operation.)
CALL: Callable[..., Any]  # the copy itself
PRIM: Primitive
VALUE: Callable[..., Any]
PULLBACK: Callable[..., tuple[Any, ...]]
SAVES_INPUT: bool
SAVES_OUT: bool
SAVES_BOTH: bool
OUT_FIRST: bool
#: for each saved value: which it is (0 input, 1 other, 2 out), and whether input's and other's rules read it
SAVES: tuple[tuple[int, bool, bool], ...]
PLAIN: bool
CROSSED: bool
OPERATOR: str
NUMBER_FIRST: bool  # a ufunc knows that a number is weak; a function may make an array of it that is not
FLOATING: bool


def _unary(input: Any, *, out: Any = None) -> Any:
    if type(input) is Tensor and out is None:
        edge = input._edge
        if edge is not None and not SPECIAL:
            data = input._raw
            if type(data) is ndarray and ((dtype := data.dtype) is float32 or dtype is float64):
                result = VALUE(data)
                if type(result) is not ndarray:
                    result = result[...]
                node = Node()
                node.prim = PRIM
                node.pullback = PULLBACK
                node.params = NO_PARAMS
                node.edges = (edge,)
                node.in_avals = None
                node.hooks = None
                if SAVES_OUT:
                    node.saved = (result,) if not SAVES_BOTH else (result, data) if OUT_FIRST else (data, result)
                else:
                    node.saved = (data,) if SAVES_INPUT else ()
                node.seq = next_seq()
                try:
                    frame = _getframe(1)
                    if (code := frame.f_code).co_filename in USER_FILES:
                        node.code = code
                        node.lasti = frame.f_lasti
                    else:
                        note_frame(node, frame)
                except ValueError:  # called by no Python program
                    note_frame(node, None)
                tensor = new(Tensor)
                tensor._raw = result
                tensor._edge = node
                return tensor
    if FLOATING and out is None:
        result = unrecorded(VALUE, input)
        if result is not None:
            return result
    return store_out(out, general(PRIM, (input,), {}))


def _binary(input: Any, other: Any, *, out: Any = None) -> Any:
    if out is None and not SPECIAL:
        in_avals = None
        shape: Any = True
        kind = type(other)
        if type(input) is Tensor:
            x = array = input._raw
            ex = input._edge
            dtype = x.dtype
            if kind is Tensor:
                y = other._raw
                ey = other._edge
                hot = (ex is not None or ey is not None) and type(y) is ndarray and y.dtype is dtype
                if hot and (shape := x.shape) != y.shape:
                    in_avals = ((shape, dtype), (y.shape, dtype))
            else:
                y = other
                ey = None
                hot = ex is not None and (kind is float or kind is int)
        elif NUMBER_FIRST and kind is Tensor and (type(input) is float or type(input) is int):
            x = input
            ex = None
            y = array = other._raw
            ey = other._edge
            dtype = y.dtype
            hot = ey is not None
        else:
            hot = False
        if hot and (dtype is float32 or dtype is float64) and type(array) is ndarray:
            try:
                result = VALUE(x, y) if shape or not NUMBER_FIRST else VALUE(x, y, out=ARRAY)
            except ValueError:
                raise errors.not_broadcastable(PRIM.name, x, y) from None
            if type(result) is not ndarray:
                result = result[...]
            node = Node()
            node.prim = PRIM
            node.pullback = PULLBACK
            node.params = NO_PARAMS
            node.edges = (ex, ey)
            node.in_avals = in_avals
            node.hooks = None
            if PLAIN:
                node.saved = ()
            elif CROSSED:
                node.saved = (None if ex is None else y, None if ey is None else x)
            else:
                node.saved = tuple(
                    [
                        (x, y, result)[i] if (ex is not None and for_x) or (ey is not None and for_y) else None
                        for i, for_x, for_y in SAVES
                    ]
                )
            node.seq = next_seq()
            try:
                frame = _getframe(1)
                if (code := frame.f_code).co_filename in USER_FILES:
                    node.code = code
                    node.lasti = frame.f_lasti
                else:
                    note_frame(node, frame)
            except ValueError:  # called by no Python program
                note_frame(node, None)
            tensor = new(Tensor)
            tensor._raw = result
            tensor._edge = node
            return tensor
    if FLOATING and out is None and other is not None:
        result = unrecorded(VALUE, input, other)
        if result is not None:
            return result
    if isinstance(other, generic) and type(number := other.item()) in (float, int):
        return CALL(input, number, out=out)
    if OPERATOR and not isinstance(other, _OPERANDS) and not is_foreign(type(other)):
        return beside(OPERATOR, CALL, input, other)
    result = general(PRIM, (input, other), {})
    return result if out is None else store_out(out, result)


#: the globals of each copy for a row of the table
SCOPES: list[dict[str, Any]] = []


def specialised(template: Any, prim: Primitive, **constants: Any) -> Callable[..., Any]:
    """A copy of a template function for one row."""
    row = {"PRIM": prim, "VALUE": prim.value, "PULLBACK": prim.pullback, "FLOATING": "f" in prim.accepts}
    scope = {**template.__globals__, **row, **constants}
    code = template.__code__.replace(co_name=prim.name, co_qualname=prim.name)
    call = scope["CALL"] = FunctionType(code, scope, prim.name)
    if prim.listed:
        SCOPES.append(scope)
    call.__kwdefaults__ = {"out": None}
    _named(call, prim)
    if LOOPS is None:
        return call
    operation = LOOPS.Operation(
        call, 0, prim, len(prim.operands), constants.get("NUMBER_FIRST", False), scope["FLOATING"]
    )
    prim.function = functools.update_wrapper(operation, call)
    return operation  # type: ignore[no-any-return]


def instead(operation: Any, call: Any, **forms: bool) -> Any:
    """A function whose ordinary case is an operation's, and every other case its own."""
    if LOOPS is None or type(operation) is not LOOPS.Operation:
        return call
    return functools.update_wrapper(operation.instead(call, **forms), call)


def by_ranks(rows: dict[tuple[int, int], Primitive], call: Any) -> Any:
    """A function of two tensors whose ordinary case is a row that depends on how many axes they have."""
    return call if LOOPS is None else functools.update_wrapper(LOOPS.Operation(call, 1, table=rows), call)


def remembering(call: Any) -> Any:
    """A function of one tensor and static arguments, whose way from these to a row and its parameters is remembered.

    It must depend on nothing but the arguments, and the tensor's shape and dtype; the tensor is contiguous.
    """
    return call if LOOPS is None else functools.update_wrapper(LOOPS.Operation(call, 2, learn=_learn), call)


def _learn(tensor: Tensor, result: Any) -> tuple[Any, ...] | None:
    """The row and parameters by which a result came from a tensor, if it is one node with one edge."""
    node = result._edge if type(result) is Tensor else None
    if type(node) is not Node or node.edges != (tensor._edge,):
        return None
    prim, data = node.prim, tensor._raw
    plain = node.pullback is prim.pullback and prim.listed and not prim.variadic and len(prim.operands) == 1
    if not plain or any([value is not data and value is not result._raw for value in node.saved]):
        return None
    return prim, node.params


def by_protocol(operations: dict[tuple[np.ufunc, bool], Any], call: Any) -> Any:
    """``__array_ufunc__``, whose ordinary case is the operation of a ufunc."""
    return call if LOOPS is None else functools.update_wrapper(LOOPS.Operation(call, 3, table=operations), call)


def call_instead(other: Callable[[np.ufunc], Callable[..., Any]]) -> None:
    """Have the copies call ``other(ufunc)`` where they call one of NumPy's ufuncs; it gives the same."""
    for scope in SCOPES:
        value = scope["VALUE"]
        if isinstance(value, np.ufunc) and vars(np).get(value.__name__) == value:
            scope["VALUE"] = other(value)
    SHARED[:] = [other]
    for prim in TABLE.values():
        row = getattr(prim, "in_c", None)
        if row is not None and isinstance(prim.value, np.ufunc):
            row.value = other(prim.value)


def unary(prim: Primitive) -> Callable[..., Any]:
    """The user's function for an elementwise primitive of one operand."""
    saves_input, saves_out = prim.operands[0] in prim.saves, "out" in prim.saves
    return specialised(
        _unary,
        prim,
        SAVES_INPUT=saves_input,
        SAVES_OUT=saves_out,
        SAVES_BOTH=saves_input and saves_out,
        OUT_FIRST=prim.saves[:1] == ("out",),
    )


def binary(prim: Primitive, operator: str = "") -> Callable[..., Any]:
    """The user's function for an elementwise primitive of two operands.

    As an operator ("mul" for ``__mul__``) it leaves operands it does not know to the other side.
    """
    x, y = prim.operands
    users = [(0, 1) if u is None else u for u in prim.save_users]
    saves = tuple(((x, y, "out").index(s), 0 in u, 1 in u) for s, u in zip(prim.saves, users, strict=True))
    return specialised(
        _binary,
        prim,
        PLAIN=not saves,
        CROSSED=saves == ((1, True, False), (0, False, True)),
        SAVES=saves,
        OPERATOR=operator,
        NUMBER_FIRST=isinstance(prim.value, np.ufunc),
    )


def nary(prim: Primitive) -> Callable[..., Any]:
    """The user's function for an elementwise primitive of three operands or with parameters."""

    def call(*operands: Any, out: Any = None, **params: Any) -> Any:
        return store_out(out, general(prim, operands, params))

    return _named(call, prim)


def discrete(prim: Primitive) -> Callable[..., Any]:
    """The user's function for a primitive without a gradient, of one operand or two."""
    floats = "f" in prim.accepts

    def one(input: Any, *, out: Any = None) -> Any:
        result = unrecorded(prim.value, input, None, prim.name) if floats and out is None else None
        return store_out(out, general(prim, (input,), {})) if result is None else result

    def two(input: Any, other: Any, *, out: Any = None) -> Any:
        short = floats and out is None and other is not None
        result = unrecorded(prim.value, input, other, prim.name) if short else None
        return store_out(out, general(prim, (input, other), {})) if result is None else result

    return _named(one if len(prim.operands) == 1 else two, prim)


def _named(call: Callable[..., Any], prim: Primitive) -> Callable[..., Any]:
    call.__name__ = call.__qualname__ = prim.name
    call.__doc__ = prim.doc
    call.__module__ = "chainrule"
    call.takes_arrays = True  # type: ignore[attr-defined]
    prim.function = call
    return call


def public_function(prim: Primitive) -> Callable[..., Any]:
    """The user's function for an elementwise or discrete row, by its number of operands."""
    if prim.kind == "discrete":
        return discrete(prim)
    if prim.parameters or len(prim.operands) > 2:
        return nary(prim)
    return unary(prim) if len(prim.operands) == 1 else binary(prim)
