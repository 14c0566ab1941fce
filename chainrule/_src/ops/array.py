"""Operators, methods and indexing of ``Array``, as in NumPy; attached to the class at import."""

# ruff: noqa: SIM905 -- lists of names are easier to read as split strings

from __future__ import annotations

import functools
import importlib
import operator
import sys
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from chainrule._src.api.array import (
    FAST,
    WRITERS,
    Array,
    apply,
    apply_ufunc,
    array_of,
    as_arrays,
    has_derivative,
    plain_or_stacked,
    recorded_as_numpy,
    recorded_in_place,
    recorded_operator,
    recorded_setitem,
    with_strong_floats,
)
from chainrule._src.api.dispatch_cache import protocol_with_cached_dispatch, with_cached_dispatch
from chainrule._src.api.operations import dispatch_by_rank, index_operation, ufunc_protocol, with_fast_path
from chainrule._src.arrays.any_array import copy_alike
from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.libraries import is_foreign
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import (
    AnyArray,
    AnyFunction,
    Casting,
    DTypeLike,
    Index,
    IntoArray,
    NumpyDType,
    Params,
    ShapeLike,
    TensorLike,
)
from chainrule._src.messages import errors
from chainrule._src.ops import methods as _methods  # noqa: F401 -- what is made of these here has to be there
from chainrule._src.ops import products
from chainrule._src.ops.indexing import MASK, check_no_shuffle
from chainrule._src.ops.numpy_layout import has_order, resolved_order, to_order
from chainrule._src.table import indexing as primitives
from chainrule._src.table import shape
from chainrule._src.table.any_index import is_array, put_any, read_any
from chainrule._src.tape import foreign_operands, inplace, trace_hooks
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.foreign_operands import operate_with_foreign
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.protocol import EXCHANGED, UFUNCS, as_plain_array
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap
from chainrule._src.tape.versions import note_write, owner, saveable_array
from chainrule._src.tape.view import FunctionViewStep, base_of, copy_scalar_view, is_read_only, register_view, views_of

ndarray = np.ndarray
new = object.__new__
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)


def _sparse_operator(symbol: str, x: Any, A: Any) -> Any:
    """Call ``ops.sparse``, which is loaded with the first SciPy matrix."""
    return importlib.import_module("chainrule._src.ops.sparse").operator(symbol, x, A)


foreign_operands.SPARSE_OPERATOR = _sparse_operator


# -- operators -------------------------------------------------------------------------------------------------------
#
# For arrays of one floating dtype, and numbers, both APIs agree: the tensor's function computes the Array's result.


def _fast_unary(ufunc: np.ufunc, function: Callable[[Tensor], Tensor]) -> Callable[[Any], Any]:
    def call(x: Array) -> Array:
        tensor = x._tensor
        dtype = tensor._raw.dtype
        if dtype is float64 or dtype is float32:
            array = new(Array)
            array._tensor = function(tensor)
            return array
        return apply_ufunc(ufunc, "__call__", (x,), None, {})

    return call


def _fast_binary(ufunc: np.ufunc, function: Callable[..., Tensor], saves: bool) -> Callable[[Any, Any], Any]:
    exchanged = EXCHANGED.get(ufunc)

    def call(x: Any, y: Any) -> Any:
        if type(x) is Array:
            left = x._tensor
            dtype = left._raw.dtype
            right = y._tensor if type(y) is Array and y._tensor._raw.dtype is dtype else _fast_operand(y, dtype, saves)
        else:
            right = y._tensor
            dtype = right._raw.dtype
            if (
                exchanged is not None
                and (type(x) is float or type(x) is int)
                and (dtype is float64 or dtype is float32)
            ):
                array = new(Array)
                array._tensor = exchanged(right, x)
                return array
            left = _fast_operand(x, dtype, saves)
        if left is None or right is None or (dtype is not float64 and dtype is not float32):
            return apply_ufunc(ufunc, "__call__", (x, y), None, {})
        try:
            result = function(left, right)
        except RuntimeError:  # shapes do not match: NumPy's error is raised below
            result = None
        if result is None:
            return apply_ufunc(ufunc, "__call__", (x, y), None, {})
        array = new(Array)
        array._tensor = result
        return array

    return call


def _fast_operand(x: Any, dtype: NumpyDType, saves: bool) -> Any:
    """Return an operand for the tensor's function: a weak number, or an array of the dtype as a constant; else None."""
    kind = type(x)
    if kind is float or kind is int:
        return x
    if kind is ndarray and x.dtype is dtype:
        if trace_hooks.is_tracing():
            return wrap(x)
        constant = new(Tensor)
        constant._raw = saveable_array(x) if saves else x
        constant._edge = constant._cut = None
        return constant
    return None


def fill_fast() -> None:
    """Fill ``FAST`` with the elementwise primitives whose value is a ufunc, once they have their user functions."""
    assert getattr(UFUNCS[np.add], "function", None) is not None
    for ufunc, prim in UFUNCS.items():
        function = getattr(prim, "function", None)
        if function is None or ufunc.nout != 1 or getattr(prim, "ufunc", None) is not ufunc or "f" not in prim.accepts:  # type: ignore[attr-defined]
            continue
        if ufunc.nin == 1:
            FAST[ufunc] = _fast_unary(ufunc, function)
        elif ufunc.nin == 2:
            FAST[ufunc] = _fast_binary(ufunc, function, bool(prim.saves))  # type: ignore[attr-defined]


def use_c_fast_paths() -> None:
    """Run the fast paths in ``FAST`` in C, and those of calls such as ``np.sin(array)``, which NumPy dispatches to the class."""
    if LOOPS is None:
        return
    LOOPS.connect_arrays(Array)
    for ufunc, call in FAST.items():
        function = getattr(UFUNCS[ufunc], "function", None)
        if type(function) is not LOOPS.Operation:
            continue
        FAST[ufunc] = BY_UFUNC[ufunc, False] = with_fast_path(function, call, arrays=True, constants=True)
        if ufunc.nin == 2:  # with a number first, the operands are passed in reverse order
            exchanged = EXCHANGED.get(ufunc)
            compute = functools.partial(_swap_operands, call)
            BY_UFUNC[ufunc, True] = with_fast_path(
                exchanged or function, compute, arrays=True, swapped=exchanged is None
            )


def _swap_operands(compute: Callable[[AnyArray, AnyArray], AnyArray], x: Any, y: Any) -> AnyArray:
    return compute(y, x)


#: (ufunc, whether the first operand is a number) -> implementation
BY_UFUNC: dict[tuple[np.ufunc, bool], Any] = {}
fill_fast()
use_c_fast_paths()
Array.__array_ufunc__ = ufunc_protocol(BY_UFUNC, Array.__array_ufunc__)  # type: ignore[method-assign]
Array.__array_function__ = protocol_with_cached_dispatch(Array.__array_function__)  # type: ignore[method-assign]
_product = _fast_binary(np.matmul, products.matmul, True)


def _matmul(x: AnyArray, y: AnyArray) -> AnyArray:
    try:
        stacks = max(len(np.shape(x)), len(np.shape(y))) > 3  # stacks have the memory layout of a ufunc's result
        return apply_ufunc(np.matmul, "__call__", (x, y), None, {}) if stacks else _product(x, y)
    except RuntimeError as error:
        a, b = np.shape(x), np.shape(y)
        if a and b and a[-1] != b[-2 if len(b) > 1 else 0]:
            why = str(error).partition("\n")[2]
            raise ValueError(f"matmul: the last axis of {a} does not match the contracted axis of {b}\n{why}") from None
        raise


_one_stack = {ranks: prim for ranks, prim in products.BY_RANKS.items() if max(ranks) < 4}  # stacks: see ``_matmul``
FAST[np.matmul] = BY_UFUNC[np.matmul, False] = with_fast_path(
    dispatch_by_rank(_one_stack, Tensor.matmul), _matmul, arrays=True, constants=True
)


_COMPARISONS: Params = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

_OPERAND_TYPES = (ndarray, np.generic, int, float, complex, list, tuple)


#: operators that NumPy computes differently from our primitives or its ufuncs: powers, arithmetic and order of scalars
_SPECIAL_OPERATORS = frozenset(
    [
        *(np.power, np.multiply, np.true_divide, np.floor_divide, np.remainder, np.matmul),
        *(np.less, np.less_equal, np.greater, np.greater_equal),
    ]
)


def _with_bool_square(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Wrap ``**``: for booleans and an exponent of 2 NumPy calls ``np.square``, not ``np.power``."""
    return lambda x, y: (
        np.square(x)
        if type(y) is int and y == 2 and type(x) is Array and x.dtype.kind == "b" and x.shape
        else compute(x, y)
    )


def _operator(ufunc: np.ufunc, symbol: str, sign: str = "") -> None:
    """Define ``x op y`` and, for an arithmetic ``sign``, ``y op x`` and ``x op= y``. (Comparisons are their own reflections.)"""
    compute: Callable[[Any, Any], Any] = FAST.get(ufunc) or (
        lambda x, y: apply_ufunc(ufunc, "__call__", (x, y), None, {})
    )
    if ufunc is np.power:
        compute = _with_bool_square(compute)
    operation = getattr(operator, {"and": "and_", "or": "or_"}.get(symbol, symbol))
    special = ufunc in _SPECIAL_OPERATORS
    assign: Any = getattr(operator, f"i{symbol}", None)

    def recorded(x: Any, y: Any) -> object:
        found = recorded_operator(operation, special, x, y)
        return compute(*with_strong_floats(ufunc, (x, y))) if found is None else found

    def forward(self: Array, other: object) -> Any:
        if type(other) is Array or _is_operand(other):
            other = other if type(other) is Array else _as_operand(other)
            return (recorded if trace_hooks.is_tracing() else compute)(self, other)
        if isinstance(other, Tensor):
            return getattr(self._tensor, f"__{symbol}__")(other)
        if (other is None or isinstance(other, str)) and symbol in ("eq", "ne"):  # no element is equal
            return array_of(wrap(np.full(shape_of(self._tensor._raw), symbol == "ne")))
        return operate_with_foreign(symbol, forward, self, other)

    def reflected(self: Array, other: AnyArray) -> object:
        if _is_operand(other):
            other = _as_operand(other)
            return (recorded if trace_hooks.is_tracing() else compute)(other, self)
        if isinstance(other, Tensor):
            return getattr(other, f"__{symbol}__")(self._tensor)
        return operate_with_foreign("r" + symbol, reflected, self, other)

    def in_place(self: Array, other: IntoArray) -> Array:
        is_recorded = trace_hooks.is_tracing() and (type(other) is Array or _is_operand(other))
        if is_recorded and recorded_in_place(assign, ufunc, self, _as_operand(other)):
            return self
        result = forward(self, other)
        return result if result is NotImplemented else write_all(self, result, f"{sign}=")

    methods: Params = {symbol: forward}
    if sign:
        methods |= {"r" + symbol: reflected, "i" + symbol: in_place}
    for name, method in methods.items():
        method.__name__ = f"__{name}__"
    if (ufunc, False) in BY_UFUNC:
        methods[symbol] = with_fast_path(FAST[ufunc], forward, arrays=True, constants=True)
    if (ufunc, True) in BY_UFUNC:
        methods["r" + symbol] = with_fast_path(
            BY_UFUNC[ufunc, True], reflected, arrays=True, swapped=ufunc not in EXCHANGED
        )
    for name, method in methods.items():
        setattr(Array, f"__{name}__", method)


def _is_operand(other: object) -> bool:
    return isinstance(other, _OPERAND_TYPES) or is_foreign(type(other))


def _as_operand(other: object) -> Any:
    return np.asarray(other) if isinstance(other, (list, tuple)) else other


for _symbol, _sign, _ufunc in (
    ("add", "+", np.add),
    ("sub", "-", np.subtract),
    ("mul", "*", np.multiply),
    ("truediv", "/", np.true_divide),
    ("floordiv", "//", np.floor_divide),
    ("mod", "%", np.remainder),
    ("pow", "**", np.power),
    ("matmul", "@", np.matmul),
    ("and", "&", np.bitwise_and),
    ("or", "|", np.bitwise_or),
    ("xor", "^", np.bitwise_xor),
    ("lshift", "<<", np.left_shift),
    ("rshift", ">>", np.right_shift),
):
    _operator(_ufunc, _symbol, _sign)

for _symbol, _compare in _COMPARISONS.items():
    _operator(_compare, _symbol)


def _divmod(x: Array, y: TensorLike) -> tuple[Array, Array]:
    return x // y, x % y


def _unary(ufunc: np.ufunc, operation: Callable[[Any], Any]) -> Callable[[Array], Any]:
    def operate(self: Array) -> object:
        found = recorded_operator(operation, ufunc is np.absolute, self) if trace_hooks.is_tracing() else None
        return ufunc(self) if found is None else found

    fast = FAST.get(ufunc)
    return operate if fast is None else with_fast_path(fast, operate, arrays=True)


for _name, _special in {
    "divmod": _divmod,
    "rdivmod": lambda self, other: _divmod(_as_operand(other), self),
    "neg": _unary(np.negative, operator.neg),
    "pos": _unary(np.positive, operator.pos),
    "abs": _unary(np.absolute, operator.abs),
    "invert": _unary(np.invert, operator.invert),
}.items():
    setattr(Array, f"__{_name}__", _special)


# -- indexing --------------------------------------------------------------------------------------------------------


def _read_index(index: Index) -> tuple[Any, ...]:
    """Return NumPy's index as a tuple of ints, slices, None, Ellipsis, and arrays (tensors, inside a transformation)."""
    return tuple([_read_item(item) for item in (index if type(index) is tuple else (index,))])


def _read_item(item: Any) -> Any:
    kind = type(item)
    if kind is int or item is None or item is Ellipsis:
        return item
    if kind is slice:
        return slice(*[i if i is None or type(i) is int else i.__index__() for i in (item.start, item.stop, item.step)])
    if kind is bool or kind is np.bool_:
        return np.asarray(item)
    if is_foreign(kind):
        item = wrap(as_plain_array(item))
    if isinstance(item, (Array, Tensor)):
        tensor = item._tensor if isinstance(item, Array) else item
        raw = tensor._raw
        if raw.dtype.kind not in "iub":
            raise errors.array_index(raw)
        if type(raw) is not ndarray:
            raw = tensor._concrete(MASK) if raw.dtype == bool else raw.concrete()
            if raw is None:  # the index differs between examples
                return tensor
        return raw if raw.shape or raw.dtype == bool else int(raw)
    if isinstance(item, (ndarray, list, tuple, range)):
        array: Any = saveable_array(item) if kind is ndarray else np.asarray(item)
        if array.dtype == object:
            return _read_item(Array(array))
        if not array.size and kind is not ndarray:
            array = array.astype(np.intp)
        if array.dtype.kind not in "iub":
            raise errors.array_index(array)
        return array
    if hasattr(item, "__index__"):
        return item.__index__()
    if hasattr(item, "__array__"):
        return _read_item(np.asarray(item))
    raise errors.array_index(item)


def _is_advanced(items: tuple[Any, ...]) -> bool:
    return any(isinstance(i, (ndarray, Tensor)) for i in items)


def _getitem(self: Array, index: Any) -> Any:
    items = _read_index(index)
    tensor = self._tensor
    if _is_advanced(items):
        used = sum(i.ndim if i.dtype == bool else 1 for i in items if is_array(i))
        used += sum(i is not None and i is not Ellipsis and not is_array(i) for i in items)
        if used > tensor._raw.ndim:
            ndim = tensor._raw.ndim
            raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
        part = read_any(tensor, items, "K")
        if part._raw.shape and all(type(i) is not ndarray and not i.shape for i in items if is_array(i)):
            read, write = partial(read_any, items=items), partial(put_any, items=items, accumulate=False)
            # Index arrays that differ between examples; for integers NumPy returns a view.
            register_view(part, tensor, ((FunctionViewStep(read, write), {}),), "")
        return array_of(part)
    part = bind(primitives.getitem, (tensor,), {"index": items})
    if not part._raw.shape:
        if Ellipsis in items:
            if _is_scalar(tensor):
                copy_scalar_view(part)
            trace_hooks.keep_array(part._raw)
            return array_of(part)
        copy_scalar_view(part)
    return as_arrays(part)


def _is_scalar(tensor: Tensor) -> bool:
    """Return whether a tensor stands for a NumPy scalar, which is a value."""
    is_view = tensor._view is not None or trace_hooks.is_array(tensor._raw)
    return not shape_of(tensor._raw) and not is_view


def _setitem(self: Array, index: Any, value: Any) -> None:
    if trace_hooks.is_tracing() and recorded_setitem(self, index, value):
        return
    items = _read_index(index)
    tensor = self._tensor
    check_no_shuffle(tensor, index, value._tensor if type(value) is Array else value)
    value = _value_for(tensor, value)
    if shape_of(value._raw) and _is_element(items, tensor):
        np.empty((), tensor._raw.dtype)[()] = np.empty(shape_of(value._raw), tensor._raw.dtype)  # raises NumPy's error
    _prepare_write(tensor, "x[...] = ")
    if _is_advanced(items):
        if not any(isinstance(i, Tensor) for i in items):
            region_shape = np.broadcast_to(np.empty((), bool), shape_of(tensor._raw))[items].shape
            value = _broadcast_value(value, region_shape, tensor)
        result = put_any(wrap(tensor._raw, tensor._edge), value, items, False)
        inplace.write_result(tensor, result, "__setitem__")
        return
    if type(tensor._raw) is ndarray and type(value._raw) is ndarray and not _must_record(tensor, value):
        tensor._raw[items] = value._raw
        note_write(tensor._raw, "__setitem__", None)
        return
    region = bind(primitives.getitem, (tensor,), {"index": items})
    inplace.write_result(region, _broadcast_value(value, shape_of(region._raw), tensor), "__setitem__")


def _is_element(items: tuple[object, ...], tensor: Tensor) -> bool:
    """Return whether an index selects one element (a scalar), not a 0-d view."""
    return len(items) == len(shape_of(tensor._raw)) and all(
        [type(i) is int or (type(i) is ndarray and not i.ndim and i.dtype != bool) for i in items]
    )


def _must_record(tensor: Tensor, value: Tensor) -> bool:
    """Return whether the write must be recorded on the tape."""
    base = base_of(tensor)
    base = tensor if base is None else base
    if is_recording() and any(t._edge is not None for t in (tensor, value, base)):
        return True
    return any(type(view._raw) is not ndarray for view in views_of(base))


def _value_for(tensor: Tensor, value: Any) -> Tensor:
    """Convert a value to a tensor of the target's dtype."""
    raw = tensor._raw
    if type(value) is Array:
        value = value._tensor
    if not isinstance(value, Tensor):
        number, value = value, plain_or_stacked(np.asarray(value))
        if not isinstance(value, Tensor):
            if value.dtype.kind == "c" and raw.dtype.kind != "c":
                raise TypeError(
                    f"a complex value cannot be written into an array of dtype {raw.dtype}: write its real part"
                )
            number = number.item() if isinstance(number, np.generic) else number
            return wrap(np.array(number, raw.dtype))  # for a NaN, NumPy raises its own error
    source = value._raw
    if source is raw or (type(source) is ndarray and type(raw) is ndarray and np.may_share_memory(source, raw)):
        value = apply(np.copy, value)
    return cast(value, raw.dtype)


def _broadcast_value(value: Tensor, shape: tuple[int, ...], tensor: Tensor) -> Tensor:
    """Broadcast a value to the shape of the written region; drop leading axes of length 1."""
    have = shape_of(value._raw)
    extra = len(have) - len(shape)
    try:
        if extra > 0 and have[:extra] == (1,) * extra:
            value = apply(np.reshape, value, have[extra:])
        return apply(np.broadcast_to, value, tuple(shape))
    except ValueError:
        raise ValueError(
            f"could not broadcast input array from shape {tuple(have)} into shape {tuple(shape)}, a region of an array of "
            f"shape {tuple(shape_of(tensor._raw))}"
        ) from None


# -- writing ---------------------------------------------------------------------------------------------------------


def write_all(array: Array, result: Any, op: str) -> Any:
    """Write the result of ``x op= y`` into x, with NumPy's rules for shapes and dtypes."""
    tensor, value = array._tensor, result._tensor if type(result) is Array else result
    raw, found = tensor._raw, value._raw
    if _is_scalar(tensor):
        return array_of(value)  # NumPy scalars are immutable: other references keep the old value
    if shape_of(found) != shape_of(raw):
        raise errors.array_output_shape(op, tuple(shape_of(raw)), tuple(shape_of(found)))
    if not np.can_cast(found.dtype, raw.dtype, "same_kind"):
        raise errors.array_output_dtype(op, raw.dtype, found.dtype)
    _prepare_write(tensor, f"x {op}")
    value = cast(value, raw.dtype)
    if tensor._view is None and not views_of(tensor) and type(value._raw) is ndarray:
        _replace_memory(tensor, value._raw)  # the memory has no other users; the tape keeps the old value
        if is_recording():
            inplace.rebase_history(tensor, value._edge, value._cut)
    else:
        inplace.write_result(tensor, value, op)
    return array


def _prepare_write(tensor: Tensor, op: str) -> None:
    """Prepare a write: if the tape or a caller's argument uses the memory, continue in a copy."""
    if (recorder := trace_hooks.current_recorder()) is not None:
        recorder.lift(tensor)
        recorder.written_array = weakref.ref(tensor)
    if (base := base_of(tensor)) is None:
        base = tensor
    if is_read_only(tensor):
        raise errors.array_read_only(op)
    leaf = base._edge if type(base._edge) is Leaf and is_recording() else None
    if leaf is not None and leaf.seq < 0:
        raise errors.array_leaf_in_place(op)
    if type(base._raw) is ndarray:
        if leaf is not None and not base._raw.flags.writeable:
            raise errors.array_read_only(op)
        unshare(base, always=leaf is not None)
    if leaf is not None:  # an argument of a transformation: derivatives are with respect to the old value
        base._edge = shape.alias(wrap(base._raw, leaf))._edge
        inplace.refresh_views(base)
    inplace.check_writable(tensor, op)


for _writer in (np.put, np.place, np.putmask, np.copyto, np.fill_diagonal, np.put_along_axis, np.ufunc.at):
    WRITERS[_writer] = _prepare_write


def _references(tensor: Tensor) -> int:
    return sys.getrefcount(tensor._raw)


_ALONE = _references(wrap(np.empty(1)))


def unshare(base: Tensor, always: bool = False) -> None:
    """Give a tensor and its views new memory if anything else uses theirs, such as a node that saved it.

    A write in the NumPy-style API changes the values that the program reads, but never a value that a rule will read.
    """
    views = [view for view in views_of(base) if type(view._raw) is ndarray]
    own = owner(base._raw) is base._raw
    view_count = sum(v._raw is not base._raw for v in views)
    is_exclusive = own and _references(base) <= _ALONE + view_count and all(_references(v) <= _ALONE for v in views)
    if is_exclusive and base._raw.flags.writeable and not always:
        return
    fresh = copy_alike(base._raw)
    fresh.flags.writeable = True
    new_views = []
    for view in views:
        part = inplace.replay_view(fresh, view._view.steps)
        if type(part) is not ndarray or owner(part) is not owner(fresh):
            return  # the tensor cannot be moved; a backward pass that reads the overwritten value raises an error
        new_views.append(part)
    for member, raw in zip([base, *views], [fresh, *new_views], strict=True):
        _replace_memory(member, raw)


def _replace_memory(tensor: Tensor, raw: ndarray) -> None:
    """Replace the memory of a tensor."""
    tensor._raw = raw
    if type(tensor._edge) is Leaf:
        tensor._edge.data = raw


# -- attributes and methods ------------------------------------------------------------------------------------------


class _Flat:
    """``x.flat``: read, write and iterate over the elements in C order."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __len__(self) -> int:
        return self.array.size

    def __iter__(self) -> Iterator[AnyArray]:
        return iter(apply(np.ravel, self.array))

    def __getitem__(self, index: Index) -> Any:
        return apply(np.copy, apply(np.ravel, self.array)[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        indices = np.arange(self.array.size)[index]
        self.array[np.unravel_index(indices, self.array.shape)] = np.resize(value, np.shape(indices))

    def copy(self) -> Any:
        return apply(np.ravel, self.array).copy()


def _property(read: Callable[[Array], Any], name: str, write: Callable[[Array, Any], None] | None = None) -> property:
    def refuse(self: Array, value: tuple[int, ...]) -> None:
        raise errors.array_setter(name)

    return property(read, write or refuse)


def _write_real(self: Array, value: Array) -> None:
    self[...] = value if self.dtype.kind != "c" else value + 1j * np.imag(self)


def _write_imag(self: Array, value: Array) -> None:
    if self.dtype.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    self[...] = np.real(self) + 1j * value


def _write_flat(self: Array, value: Any) -> None:
    _Flat(self)[:] = value


def _base(self: Array) -> Array | None:
    """Return the array of which this array is a view."""
    base = base_of(self._tensor)
    if base is None and trace_hooks.is_tracing():
        trace_hooks.current_recorder().check_whole(self._tensor._raw)
    return None if base is None else array_of(base)


def _memory(self: Array) -> ndarray:
    """Return the plain array, for attributes that depend on its memory."""
    return self._tensor._array()


_ATTRIBUTES: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], None] | None]] = {
    "shape": (lambda self: tuple(self._tensor._raw.shape), None),
    "dtype": (lambda self: self._tensor._raw.dtype, None),
    "ndim": (lambda self: len(self._tensor._raw.shape), None),
    "size": (lambda self: self._tensor.numel(), None),
    "itemsize": (lambda self: self._tensor._raw.dtype.itemsize, None),
    "nbytes": (lambda self: self._tensor.numel() * self._tensor._raw.dtype.itemsize, None),
    "strides": (lambda self: tuple(self._tensor._raw.strides), None),
    "flags": (lambda self: _memory(self).flags, None),
    "base": (_base, None),
    "device": (lambda self: str(self._tensor.device), None),
    "T": (with_cached_dispatch(lambda self: apply(np.transpose, self), arrays=True), None),
    "mT": (with_cached_dispatch(lambda self: apply(np.matrix_transpose, self), arrays=True), None),
    "real": (lambda self: apply(np.real, self), _write_real),
    "imag": (lambda self: apply(np.imag, self), _write_imag),
    "flat": (_Flat, _write_flat),
}
for _name, (_read, _write) in _ATTRIBUTES.items():
    setattr(Array, _name, _property(_read, _name, _write))


def _of_scalar(x: Array, result: object, out: object = None) -> Any:
    """Mark the result of a method as a scalar if the operand is one, and the result is 0-d and not written to ``out``."""
    if type(result) is Array and out is None and trace_hooks.is_scalar(x._tensor._raw):
        trace_hooks.current_recorder().keep_scalar(result._tensor._raw)
    return result


def _method(name: str, function: AnyFunction) -> AnyFunction:
    """Return a method that calls NumPy's function with the array as the first argument."""

    def method(self: Array, *args: object, **kwargs: object) -> Any:
        return _of_scalar(self, apply(function, self, *args, **kwargs), kwargs.get("out"))

    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    vars(method)["__wrapped__"] = function  # for its signature
    method.__doc__ = (
        f"Compute ``numpy.ndarray.{name}``; recorded. See :func:`numpy.{getattr(function, '__name__', name)}`."
    )
    return method


for _name in "all any argmax argmin argpartition argsort choose nonzero repeat round searchsorted take".split():
    setattr(Array, _name, _method(_name, getattr(np, _name)))
#: methods of functions that are declared ``by_shape``
METHODS_BY_SHAPE = "clip cumprod cumsum diagonal dot max mean min prod ravel squeeze std sum swapaxes trace var".split()
for _name in METHODS_BY_SHAPE:
    setattr(Array, _name, with_cached_dispatch(_method(_name, getattr(np, _name)), arrays=True))


def reshape(self: Array, *shape: ShapeLike, order: str = "C", copy: bool | None = None) -> Any:
    """Return the same elements in another shape: ``x.reshape(2, 3)`` or ``x.reshape((2, 3))``."""
    options = {"order": order} if copy is None else {"order": order, "copy": copy}
    return _of_scalar(self, apply(np.reshape, self, shape[0] if len(shape) == 1 else shape, **options))


def transpose(self: Array, *axes: object) -> Any:
    """Permute the axes, by default reverse them: ``x.transpose(1, 0)`` or ``x.transpose((1, 0))``."""
    return apply(np.transpose, self, (axes[0] if len(axes) == 1 else axes) or None)


def copy(self: Array, order: str | None = "C") -> Array:
    """Return a copy. Recorded."""
    return _of_scalar(self, apply(np.copy, self, order=order or "C"))


def flatten(self: Array, order: str = "C") -> Any:
    """Return a flattened copy. Recorded."""
    return apply(np.copy, apply(np.ravel, self, order=order), order="C")


def astype(
    self: Array, dtype: DTypeLike, order: str = "K", casting: Casting = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    """Return the array in another dtype. Recorded if that is a floating or complex one."""
    target = np.dtype(dtype)
    if target.kind not in "biufc":
        return _concrete_array(self, f"astype({target.name!r})").astype(target)
    if not np.can_cast(self.dtype, target, casting):
        raise errors.forbidden_cast(self.dtype, target, casting)
    order = resolved_order(self._tensor, order or "K")
    if order != "K" and not copy and target == self.dtype and has_order(self._tensor, order):
        return self
    if order != "K" and trace_hooks.is_tracing():
        found = recorded_as_numpy(ndarray.astype, "", (self, target), {"order": order})
        if found is not None:
            return found
    found = apply(np.astype, self, target, copy=copy)
    return _of_scalar(
        self, found if has_order(found._tensor, order) else array_of(tensor_of(to_order(found._tensor, order)))
    )


def compress(self: Array, condition: IntoArray, axis: int | None = None, out: Any = None) -> Array:
    """Return the slices along an axis for which a condition holds."""
    return apply(np.compress, condition, self, axis, out=out)


def conj(self: Array) -> AnyArray:
    """Return the complex conjugate."""
    return np.conjugate(self) if self.dtype.kind == "c" else self


def fill(self: Array, value: TensorLike) -> None:
    """Set all elements to a number."""
    self[...] = value


def put(self: Array, indices: IntoArray, values: IntoArray, mode: str = "raise") -> None:
    """Write values at indices into the flattened array."""
    apply(np.put, self, indices, values, mode)


def sort(self: Array, axis: int = -1, kind: object = None, order: str | None = None, *, stable: object = None) -> None:
    """Sort in place."""
    self[...] = apply(np.sort, self, axis)


def partition(self: Array, kth: IntoArray, axis: int = -1, kind: str = "introselect", order: str | None = None) -> None:
    """Partially sort in place, so that the element of each given rank is at its index."""
    self[...] = apply(np.partition, self, kth, axis)


def view(self: Array, dtype: DTypeLike = None, type: Any = None) -> Any:
    """Return a view of the same memory. With another dtype, the array must not carry a derivative."""
    if type is not None or (dtype is not None and (isinstance(dtype, builtin_type) or np.dtype(dtype) != self.dtype)):
        if isinstance(dtype, builtin_type) and not issubclass(dtype, ndarray) and np.dtype(dtype) == self.dtype:
            return self[...]
        return _concrete_array(self, "view()").view(
            *([] if dtype is None else [dtype]), **({} if type is None else {"type": type})
        )
    if trace_hooks.is_scalar(self._tensor._raw):
        return self
    return self[...]


builtin_type = type


def to_device(self: Array, device: DeviceLike, /, *, stream: object = None) -> Any:
    """Return the array on a device (itself, if it is there). Recorded."""
    if stream is not None:
        raise ValueError(f"arrays are copied in the current stream only, got stream={stream!r}")
    tensor: Any = self._tensor
    return self if str(tensor.device) == str(device) else array_of(tensor.to(device))


def _concrete_array(self: Array, what: str) -> ndarray:
    """Return the values, for methods whose results have no derivative."""
    if has_derivative(self):
        raise errors.array_to_numpy(self, f"x.{what}")
    return self._tensor._concrete(what)


def item(self: Array, *args: object) -> Any:
    """Return an element as a Python number."""
    if has_derivative(self):
        raise errors.array_to_number("x.item()", "")
    return self._tensor._asked("item() of an array").item(*args)


def tolist(self: Array) -> list[complex]:
    """Return the elements as nested lists of Python numbers."""
    if has_derivative(self):
        raise errors.array_to_number("x.tolist()", "")
    return self._tensor._asked("tolist()").tolist()


def _bytes_method(name: str) -> AnyFunction:
    def method(self: Array, *args: object, **kwargs: object) -> Any:
        return getattr(_concrete_array(self, f"{name}()"), name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"Compute ``numpy.ndarray.{name}``, for an array that carries no derivative."
    return method


def _unsupported_method(name: str, fix: str) -> AnyFunction:
    def method(self: Array, *args: object, **kwargs: object) -> Any:
        raise NotImplementedError(f"x.{name}() is not available for an array that can carry derivatives: {fix}")

    method.__name__ = name
    method.__doc__ = "Raise NotImplementedError with an alternative."
    return method


for _function in (
    reshape, transpose, copy, flatten, astype, compress, conj, fill, put, sort, partition, view, item, to_device, tolist,
):  # fmt: skip
    setattr(Array, _function.__name__, _function)
for _name in ("reshape", "transpose", "copy", "flatten"):
    setattr(Array, _name, with_cached_dispatch(getattr(Array, _name), arrays=True))
setattr(Array, "conjugate", conj)  # noqa: B010
for _name in "tobytes tofile dump dumps byteswap getfield".split():
    setattr(Array, _name, _bytes_method(_name))
for _name, _fix in {
    "resize": "write x = np.resize(x, shape)",
    "setfield": "write x = x.astype(dtype)",
    "setflags": "its memory belongs to the tape",
}.items():
    setattr(Array, _name, _unsupported_method(_name, _fix))
for _name, _special in {
    "getitem": index_operation(primitives.getitem, primitives.index, _getitem),
    "setitem": _setitem,
}.items():
    setattr(Array, f"__{_name}__", _special)
