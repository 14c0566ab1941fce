"""Lower calls to ufunc inner loops, in the order in which NumPy runs them.

``LoopLowerer.template_of`` returns the :class:`~chainrule._src.compiling.loops.Template` of a call. Templates depend only on the
function, the arguments and the layouts of arrays, so they are cached by these. The operands of a template are slots: arrays that the
call reads or writes, temporaries, numbers. ``steps`` and ``trace`` call it.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyDType
from chainrule._src.compiling import (
    data_movement,
    gathers,
    index_lowering,
    linear_algebra,
    ordering,
    products,
    reductions,
)
from chainrule._src.compiling.call_loops import CallLoops
from chainrule._src.compiling.checked_loops import scalar_power_loop
from chainrule._src.compiling.layout import ARENA, Buffer, BufferView
from chainrule._src.compiling.loops import KINDS, Operand, Template, Unlowered, is_exact, type_of, ufunc_loop
from chainrule._src.compiling.steps import ResultLayout
from chainrule._src.compiling.value_checks import check_value, lower_check
from chainrule._src.interpreters.rebuilt import Rebuilt
from chainrule._src.interpreters.same_bits import number_key
from chainrule._src.interpreters.trace_types import PrimitiveFunction, TracedCall, Var
from chainrule._src.interpreters.traced import scalar_pow

#: the maximum number of cached templates
MAX_TEMPLATES = 20_000


class LoopLowerer:
    """Finds the templates of calls, and caches them by function, arguments and layouts of arrays."""

    def __init__(self) -> None:
        self._templates: dict[Any, Any] = {}
        self._layouts: dict[Any, int] = {}
        self._numbers = itertools.count(1)

    def template_of(self, call: TracedCall, reads: list[BufferView]) -> tuple[Template, list[ResultLayout]] | None:
        """Return the template of a call, and the layouts of its results; None if the call cannot be lowered.

        Args:
            call: the call.
            reads: the BufferViews of the Vars among its arguments.
        """
        key_function = function = call.function
        if type(function) is not np.ufunc or call.method == "reduceat":
            if type(function) is PrimitiveFunction and "body" in function.params:
                return function.params["body"].lowered(function.params, reads, [var.array for var in call.results])
            if gathers.reads_positions(call):
                return self._lower(call, reads)  # the template depends on the content of an array, too
            if type(function) is Rebuilt:
                return self._lower(call, reads)
            if not (isinstance(function, np.ufunc) or function in FUNCTIONS or type(function) is PrimitiveFunction):
                return None  # not cached, since the cache would keep the function alive
        values = iter(reads)
        try:
            if type(function) is PrimitiveFunction:
                key_function = self._function(function)
            parts: list[Any] = [key_function, call.method]
            for x in call.args:
                if type(x) is Var:
                    value = next(values)
                    parts.append(value.layout or self._layout(value))
                else:
                    parts.append(self._part(x, values))
            for name, x in call.kwargs.items():
                parts.append((name, self._part(x, values)))
            key = tuple(parts)
            found = self._templates.get(key, self)
        except TypeError:  # an argument that has no hash
            return self._lower(call, reads)
        if found is self:
            if len(self._templates) > MAX_TEMPLATES:
                self._templates.clear()
            found = self._templates[key] = self._lower(call, reads)
        return found

    def copy(self, value: BufferView, target: BufferView) -> Template | None:
        """Return the template of a copy; None if an array is not of numbers."""
        if not _is_number(value.dtype) or not _is_number(target.dtype):
            return None
        key = (None, self._layout(value), self._layout(target))
        found = self._templates.get(key, self)
        if found is self:
            loops = CallLoops([value], [target])
            try:
                loops.copy(loops.reads[0], loops.writes[0])
                found = loops.template
            except Unlowered:
                found = None
            self._templates[key] = found
        return found

    def function_key(self, call: TracedCall) -> Any:
        """Return the part of a cache key for the function of a call; None if the template depends on more than the key."""
        function = call.function
        if type(function) is PrimitiveFunction:
            return None if "body" in function.params else self._function(function)
        return function if isinstance(function, np.ufunc) or function in FUNCTIONS or self.reads_content(call) else None

    @staticmethod
    def reads_content(call: TracedCall) -> bool:
        """Return whether the template of a call depends on the content of constants among its operands."""
        return gathers.reads_positions(call)

    def _part(self, x: Any, values: Iterator[BufferView]) -> Any:
        """Return the part of a cache key for an argument; of an array its layout."""
        kind = type(x)
        if kind is Var:
            value = next(values)
            return value.layout or self._layout(value)
        if kind is float and (x > 0 or x < 0):
            return (kind, x)
        if kind is int or x is None:
            return (kind, x)
        if kind is tuple or kind is list:
            return (kind, *[self._part(item, values) for item in x])
        if kind is float or kind is complex or isinstance(x, np.generic):
            return number_key(x)
        if kind is dict:
            return (kind, *[(name, self._part(item, values)) for name, item in x.items()])
        if kind is slice:
            return (kind, self._part(x.start, values), self._part(x.stop, values), self._part(x.step, values))
        return (kind, x)

    def _function(self, function: object) -> Any:
        """Return the part of a cache key for a function; of an op definition with its parameters."""
        if type(function) is not PrimitiveFunction:
            return function
        return (function.prim, *[(name, self._part(x, iter(()))) for name, x in function.params.items()])

    def _layout(self, value: BufferView) -> int:
        if not value.layout:
            key = value.shape, value.strides, value.dtype
            value.layout = self._layouts.setdefault(key, next(self._numbers))
        return value.layout

    def _lower(self, call: TracedCall, reads: list[BufferView]) -> tuple[Template, list[ResultLayout]] | None:
        if not all([_is_number(value.dtype) for value in reads]) or not all(
            [_is_number(v.dtype) for v in call.results]
        ):
            return None
        arrays = [var.array for var in call.results]
        results = [BufferView(0, Buffer(ARENA, 0), 0, x.shape, x.strides, x.dtype) for x in arrays]
        loops = CallLoops(reads, results)
        try:
            if gathers.reads_positions(call):
                gathers.lower_read_at_positions(loops, call, reads)
            else:
                add_call_loops(loops, call)
        except Unlowered:
            return None
        return loops.template, [ResultLayout(x.shape, x.strides, x.dtype, self._layout(x)) for x in results]


def _is_number(dtype: NumpyDType) -> bool:
    return dtype.kind in KINDS and dtype.isnative


def add_call_loops(loops: CallLoops, call: TracedCall) -> None:
    """Add the loops of a call."""
    function = call.function
    if isinstance(function, np.ufunc):
        _lower_ufunc(loops, call, function)
    elif function in FUNCTIONS:
        FUNCTIONS[function](loops, call)
    elif type(function) is PrimitiveFunction and function.prim.name in data_movement.PRIMITIVES:
        data_movement.PRIMITIVES[function.prim.name](loops, **function.params)
    elif type(function) is Rebuilt:
        index_lowering.lower_rebuilt_write(loops, function)
    else:
        raise Unlowered


def _lower_ufunc(loops: CallLoops, call: TracedCall, function: np.ufunc) -> None:
    if call.method == "reduce":
        names = ("array", "axis", "dtype", "out", "keepdims", "initial", "where")
        reductions.lower_reduction(loops, function, dict(zip(names, call.args, strict=False)) | call.kwargs, 0)
    elif call.method == "accumulate":
        reductions.lower_accumulation(
            loops, function, dict(zip(("array", "axis", "dtype"), call.args, strict=False)) | call.kwargs
        )
    elif call.method != "__call__" or call.kwargs or len(call.args) != function.nin:
        raise Unlowered
    elif function.signature is not None:
        products.lower_gufunc(loops, call, function)
    else:
        _lower_elementwise(loops, call, function)


def _lower_elementwise(loops: CallLoops, call: TracedCall, function: np.ufunc) -> None:
    arguments = loops.arguments(call.args)
    dtypes, found = ufunc_loop(function, [type_of(x) for x in arguments])
    inputs = [loops.converted(x, dtype) for x, dtype in zip(arguments, dtypes, strict=False)]
    if [x.dtype for x in loops.writes] != list(dtypes[function.nin :]):
        raise Unlowered
    loops.elementwise(function.__name__, found, inputs, loops.writes, is_exact(function, dtypes[0]))


def _lower_clip(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.clip`` with both bounds, which is a ufunc without a public name."""
    ufunc = getattr(getattr(getattr(np, "_core", None), "umath", None), "clip", None)
    if not isinstance(ufunc, np.ufunc) or len(call.args) != 3 or call.kwargs or any(x is None for x in call.args):
        raise Unlowered
    _lower_elementwise(loops, call, ufunc)


def _lower_power(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``x ** n`` by ``np.power``, except for a few n for which NumPy calls other functions."""
    x, n = loops.arguments(call.args)
    if not isinstance(x, Operand) or x.dtype.kind not in "fc" or call.kwargs:
        raise Unlowered
    if isinstance(n, Operand) or type(n) not in (int, float) or n in (-1, 0, 0.5, 1, 2):
        raise Unlowered
    dtypes, found = ufunc_loop(np.power, [x.dtype, type(n)])
    if [out.dtype for out in loops.writes] != [dtypes[2]]:
        raise Unlowered
    loops.elementwise(
        "power", found, [loops.converted(x, dtypes[0]), loops.converted(n, dtypes[1])], loops.writes, False
    )


def _lower_scalar_power(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``x ** y`` of NumPy scalars."""
    (out,) = loops.writes
    arguments = loops.arguments(call.args)
    if out.dtype.char not in "fd" or any([x.dtype != out.dtype for x in loops.reads]):
        raise Unlowered
    if not all([isinstance(x, Operand) or type(x) in (int, float) for x in arguments]):
        raise Unlowered
    inputs = [loops.converted(x, out.dtype) for x in arguments]
    loops.elementwise("power", scalar_power_loop(out.dtype), inputs, [out], exact=False)


#: the functions that lower NumPy functions
FUNCTIONS: dict[Any, Callable[[CallLoops, TracedCall], None]] = {
    operator.pow: _lower_power,
    scalar_pow: _lower_scalar_power,
    np.clip: _lower_clip,
    np.searchsorted: ordering.lower_searchsorted,
    check_value: lower_check,
    **reductions.FUNCTIONS,
    **products.FUNCTIONS,
    **data_movement.FUNCTIONS,
    **linear_algebra.FUNCTIONS,
}
