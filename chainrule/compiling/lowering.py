"""Calls as inner loops, in the order in which NumPy runs them.

What a call lowers to depends on its function and the layouts of its arrays only, so it is worked out once for calls that are
alike. The result is a :class:`~chainrule.compiling.loops.Template`, whose operands are slots: what the call reads, what it
writes, temporaries, numbers.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from chainrule.compiling.iteration import (
    Axis,
    Layout,
    Shape,
    broadcast_strides,
    contiguity,
    dense_strides,
    is_run,
    merged_axes,
    one_run,
    size,
    sorted_axes,
)
from chainrule.compiling.layout import ARENA, Buffer, Value, address, with_strides
from chainrule.compiling.loops import (
    GENERALIZED,
    KINDS,
    READ,
    WRITE,
    Loop,
    Operand,
    Template,
    Unlowered,
    initial_of,
    is_exact,
    loop_of,
    own_loop,
    resolved_dtypes,
    type_of,
    ufunc_loop,
)
from chainrule.compiling.steps import REDUCTIONS, Made, element
from chainrule.interpreters.traced import Call, Var, Whole

ndarray = np.ndarray
#: calls that are remembered
MOST = 20_000
SUMS_IN_PIECES = np.lib.NumpyVersion(np.__version__) < "2.3.0"


class LoopLowerer:
    """Finds the loops of calls, and remembers them by function, arguments and layouts of arrays."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self._layouts: dict[Any, int] = {}
        self._numbers = itertools.count(1)

    def known(self, call: Call, reads: list[Value]) -> tuple[Template, list[Made]] | None:
        """The loops of a call, and what its results are like; None if it has no loops.

        Args:
            reads: the Values of the Vars among its arguments.
        """
        function = call.function
        if not (
            isinstance(function, np.ufunc) or function in REDUCTIONS or function in _OTHERS or type(function) is Whole
        ):
            return None  # nor is it remembered, and so kept
        values = iter(reads)
        try:
            parts: list[Any] = [self._function(call.function), call.method]
            for x in call.args:
                if type(x) is Var:
                    value = next(values)
                    parts.append(value.layout or self._layout(value))
                else:
                    parts.append(self._part(x, values))
            for name, x in call.kwargs.items():
                parts.append((name, self._part(x, values)))
            key = tuple(parts)
            found = self._known.get(key, self)
        except TypeError:  # an argument that has no hash
            return self._lower(call, reads)
        if found is self:
            if len(self._known) > MOST:
                self._known.clear()
            found = self._known[key] = self._lower(call, reads)
        return found  # type: ignore[return-value]

    def copy(self, value: Value, target: Value) -> Template | None:
        """The loops that copy a value to another one; None for what is no number."""
        if not _is_number(value.dtype) or not _is_number(target.dtype):
            return None
        key = (None, self._layout(value), self._layout(target))
        found = self._known.get(key, self)
        if found is self:
            lowering = _Lowering([value], [target])
            try:
                lowering.copy(lowering.reads[0], lowering.writes[0])
                found = lowering.template
            except Unlowered:
                found = None
            self._known[key] = found
        return found  # type: ignore[return-value]

    def _part(self, x: Any, values: Iterator[Value]) -> Any:
        """An argument as a part of a key: of an array the layout alone."""
        kind = type(x)
        if kind is Var:
            value = next(values)
            return value.layout or self._layout(value)
        if kind is tuple or kind is list:
            return (kind, *[self._part(item, values) for item in x])
        if kind is float or kind is complex or isinstance(x, np.generic):
            return (kind, repr(x))
        if kind is dict:
            return (kind, *[(name, self._part(item, values)) for name, item in x.items()])
        if kind is slice:
            return (kind, self._part(x.start, values), self._part(x.stop, values), self._part(x.step, values))
        return (kind, x)

    def _function(self, function: Any) -> Any:
        """A function as a part of a key: of a row its parameters, too."""
        if type(function) is not Whole:
            return function
        return (function.prim, *[(name, self._part(x, iter(()))) for name, x in function.params.items()])

    def _layout(self, value: Value) -> int:
        if not value.layout:
            key = value.shape, value.strides, value.dtype
            value.layout = self._layouts.setdefault(key, next(self._numbers))
        return value.layout

    def _lower(self, call: Call, reads: list[Value]) -> tuple[Template, list[Made]] | None:
        if not all([_is_number(value.dtype) for value in reads]) or not all(
            [_is_number(v.dtype) for v in call.results]
        ):
            return None
        arrays = [var.array for var in call.results]
        made = [Value(0, Buffer(ARENA, x.nbytes), 0, x.shape, x.strides, x.dtype) for x in arrays]
        lowering = _Lowering(reads, made)
        try:
            lowering.add(call)
        except Unlowered:
            return None
        return lowering.template, [Made(x.shape, x.strides, x.dtype, x.buffer.nbytes, self._layout(x)) for x in made]


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in KINDS and dtype.isnative


class _Lowering:
    """One call on its way to a template."""

    def __init__(self, given: list[Value], made: list[Value]) -> None:
        self.template = Template()
        self.reads = [Operand((READ, i), v.shape, v.strides, v.dtype) for i, v in enumerate(given)]
        self.writes = [Operand((WRITE, i), v.shape, v.strides, v.dtype) for i, v in enumerate(made)]

    def add(self, call: Call) -> None:
        function = call.function
        if isinstance(function, np.ufunc):
            self._ufunc(call, function)
        elif function in REDUCTIONS:
            self._named_reduction(call, REDUCTIONS[function])
        elif function in _OTHERS:
            _OTHERS[function](self, call)
        elif type(function) is Whole and function.prim.name in _ROWS:
            _ROWS[function.prim.name](self, **function.params)
        else:
            raise Unlowered

    # -- elementwise -------------------------------------------------------------------------------------------------

    def _ufunc(self, call: Call, function: np.ufunc) -> None:
        if call.method == "reduce":
            names = ("array", "axis", "dtype", "out", "keepdims", "initial", "where")
            self._reduction(function, dict(zip(names, call.args, strict=False)) | call.kwargs, 0)
        elif call.method == "accumulate":
            self._accumulation(function, dict(zip(("array", "axis", "dtype"), call.args, strict=False)) | call.kwargs)
        elif call.method != "__call__" or call.kwargs or len(call.args) != function.nin:
            raise Unlowered
        elif function.signature is not None:
            self._generalized(call, function)
        else:
            arguments = self._arguments(call.args)
            dtypes, found = ufunc_loop(function, [type_of(x) for x in arguments])
            inputs = [self._converted(x, dtype) for x, dtype in zip(arguments, dtypes, strict=False)]
            if [x.dtype for x in self.writes] != list(dtypes[function.nin :]):
                raise Unlowered
            self._elementwise(function.__name__, found, inputs, self.writes, is_exact(function, dtypes[0]))

    def _arguments(self, args: tuple[Any, ...]) -> list[Any]:
        """Arguments with Operands in the place of Vars."""
        reads = iter(self.reads)
        return [next(reads) if type(x) is Var else x for x in args]

    def _converted(self, x: Any, dtype: np.dtype[Any]) -> Operand:
        """An argument in the dtype of the loop."""
        if not isinstance(x, Operand):
            try:
                number = np.asarray(x, dtype)
            except (OverflowError, TypeError, ValueError):
                raise Unlowered from None
            if number.shape:
                raise Unlowered
            return Operand(self.template.number(number), (), (), dtype)
        if x.dtype == dtype:
            return x
        shape = x.layout.shape
        order = sorted_axes([list(x.layout.strides)], len(shape))
        strides = dense_strides(shape, order, dtype.itemsize)
        cast = Operand(self.template.temporary(size(shape) * dtype.itemsize), shape, strides, dtype)
        self.copy(x, cast)
        return cast

    def copy(self, x: Operand, out: Operand) -> None:
        """Copy, broadcast and cast an array into another one."""
        if x.dtype == out.dtype:
            name = f"copy{x.dtype.itemsize}"
        else:
            name = f"cast_{x.dtype.str[1:]}_{out.dtype.str[1:]}"
        self._elementwise(name, own_loop(name), [x], [out], exact=True)

    def _elementwise(
        self, name: str, found: tuple[int, int], inputs: list[Operand], outputs: list[Operand], exact: bool
    ) -> None:
        """A loop over the broadcast elements of some operands.

        NumPy's iterator copies operands that one stride does not go through, so that it can call the loop for more elements at
        once. If the loop is exact, its results can't depend on that; if not, the same copies are made.
        """
        shape = outputs[0].layout.shape
        if size(shape) == 0:
            return
        every = inputs + outputs
        run = one_run([x.layout for x in every], len(inputs), shape)
        if run is not None:
            axes = [run]
        else:
            axes, order = _iteration([x.layout for x in inputs], [x.layout for x in every], shape)
            if len(axes) > 1 and not exact:
                inputs = [self._as_run(x, shape, order) for x in inputs]
                every = inputs + outputs
                axes, _ = _iteration([x.layout for x in inputs], [x.layout for x in every], shape)
                if len(axes) > 1:
                    raise Unlowered
        args = [(x.slot, x.offset) for x in every]
        itemsizes = [x.dtype.itemsize for x in every]
        self.template.loops.append(Loop(name, found, axes, args, itemsizes, len(outputs), True, exact))

    def _as_run(self, x: Operand, shape: Shape, order: list[int]) -> Operand:
        """A copy of an operand, broadcast, in the order of the iteration; single numbers stay."""
        if size(x.layout.shape) == 1:
            return x
        strides = dense_strides(shape, order, x.dtype.itemsize)
        copy = Operand(self.template.temporary(size(shape) * x.dtype.itemsize), shape, strides, x.dtype)
        if tuple(broadcast_strides(x.layout, shape)) == strides:
            return x
        self.copy(x, copy)
        return copy

    # -- reductions --------------------------------------------------------------------------------------------------

    def _named_reduction(self, call: Call, ufunc: np.ufunc) -> None:
        names = ("array", "axis", "dtype", "out", "keepdims", "initial", "where")
        if len(call.args) > (3 if ufunc in (np.add, np.multiply) else 2):
            raise Unlowered
        kwargs = {"array" if name == "a" else name: x for name, x in call.kwargs.items()}
        self._reduction(ufunc, dict(zip(names, call.args, strict=False)) | kwargs, None)

    def _reduction(self, ufunc: np.ufunc, given: dict[str, Any], axis: Any) -> None:
        """The loop of a reduction is called with the result as the first operand, too."""
        if (
            len(self.reads) != 1
            or not set(given) <= {"array", "axis", "dtype", "keepdims"}
            or given.get("dtype") is not None
        ):
            raise Unlowered
        (x,), (out,) = self.reads, self.writes
        reduced = _normal_axes(given.get("axis", axis), len(x.layout.shape))
        if reduced is None or x.dtype.char == "e":
            raise Unlowered
        self._reduce_to(ufunc, x, out, reduced, bool(given.get("keepdims")))

    def _reduce_to(self, ufunc: np.ufunc, x: Operand, out: Operand, reduced: tuple[int, ...], keepdims: bool) -> None:
        if x.dtype != out.dtype:
            if out.dtype.kind not in "iub":  # numbers whose order makes no difference can be converted first
                raise Unlowered
            x = self._converted(x, out.dtype)
        dtypes = resolved_dtypes(ufunc, (None, x.dtype, None), True)
        if any(dtype != x.dtype for dtype in dtypes):
            raise Unlowered
        steps = _steps_of_result(out.layout, reduced, len(x.layout.shape), keepdims)
        self._reduce(ufunc, loop_of(ufunc, dtypes), x, out, steps, initial_of(ufunc, x.dtype))

    def _mean(self, call: Call) -> None:
        """A sum, which is divided by a NumPy integer, and converted back."""
        given = dict(zip(("a", "axis"), call.args, strict=False)) | call.kwargs
        if len(self.reads) != 1 or len(call.args) > 2 or not set(given) <= {"a", "axis", "keepdims"}:
            raise Unlowered
        (x,), (out,) = self.reads, self.writes
        shape = x.layout.shape
        reduced = _normal_axes(given.get("axis"), len(shape))
        keepdims = given.get("keepdims", False)
        if (
            reduced is None
            or x.dtype != out.dtype
            or x.dtype.char == "e"
            or type(keepdims) is not bool
            or size(shape) == 0
        ):
            raise Unlowered
        total = Operand(
            self.template.temporary(size(out.layout.shape) * out.dtype.itemsize), *out.layout[:2], out.dtype
        )
        self._reduce_to(np.add, x, total, reduced, keepdims)
        count = np.intp(size(tuple([shape[axis] for axis in reduced])))
        dtypes, found = ufunc_loop(np.true_divide, [x.dtype, count.dtype])
        inputs = [self._converted(total, dtypes[0]), self._converted(count, dtypes[1])]
        nbytes = size(out.layout.shape) * dtypes[2].itemsize
        quotient = out
        if dtypes[2] != out.dtype:
            layout = inputs[0].layout
            quotient = Operand(self.template.temporary(nbytes), layout.shape, layout.strides, dtypes[2])
        self._elementwise("divide", found, inputs, [quotient], is_exact(np.true_divide, dtypes[0]))
        if quotient is not out:
            self.copy(quotient, out)

    def _accumulation(self, ufunc: np.ufunc, given: dict[str, Any]) -> None:
        """The loop of an accumulation adds each element to the result before it."""
        if len(self.reads) != 1 or not set(given) <= {"array", "axis", "dtype"} or given.get("dtype") is not None:
            raise Unlowered
        (x,), (out,) = self.reads, self.writes
        shape, axis = x.layout.shape, given.get("axis", 0)
        if type(axis) is not int or not shape or x.dtype != out.dtype or x.layout.shape != out.layout.shape:
            raise Unlowered
        axis %= len(shape)
        dtypes = resolved_dtypes(ufunc, (None, x.dtype, None), True)
        if any(dtype != x.dtype for dtype in dtypes):
            raise Unlowered
        found = loop_of(ufunc, dtypes)
        if size(shape) == 0:
            return
        first = tuple([1 if k == axis else length for k, length in enumerate(shape)])
        self.copy(
            Operand(x.slot, first, x.layout.strides, x.dtype, x.offset),
            Operand(out.slot, first, out.layout.strides, out.dtype, out.offset),
        )
        if shape[axis] == 1:
            return
        sx, so = x.layout.strides, out.layout.strides
        along = Axis(shape[axis] - 1, (so[axis], sx[axis], so[axis]))
        others = [
            Axis(shape[k], (so[k], sx[k], so[k])) for k in reversed(range(len(shape))) if k != axis and shape[k] > 1
        ]
        args = [(out.slot, out.offset), (x.slot, x.offset + sx[axis]), (out.slot, out.offset + so[axis])]
        itemsizes = [x.dtype.itemsize] * 3
        self.template.loops.append(Loop(f"{ufunc.__name__}.accumulate", found, [along, *others], args, itemsizes))

    def _cumulative(self, call: Call) -> None:
        given = dict(zip(("array", "axis", "dtype"), call.args, strict=False)) | call.kwargs
        if given.get("axis") is None:
            raise Unlowered
        given = {"array" if name == "a" else name: x for name, x in given.items()}
        self._accumulation(np.add if call.function is np.cumsum else np.multiply, given)

    def _filled(self, call: Call) -> None:
        """An array of one number."""
        (out,) = self.writes
        if call.function in (np.full, np.full_like):
            fill = call.args[1] if len(call.args) == 2 else None
            if type(fill) not in (bool, int, float, complex):
                raise Unlowered
        else:
            fill = 0 if call.function in (np.zeros, np.zeros_like) else 1
        self.copy(self._converted(fill, out.dtype), out)

    def _power(self, call: Call) -> None:
        """``x ** n``: NumPy has other functions for a few n, and `power` for the others."""
        x, n = self._arguments(call.args)
        if not isinstance(x, Operand) or x.dtype.kind not in "fc" or call.kwargs:
            raise Unlowered
        if isinstance(n, Operand) or type(n) not in (int, float) or n in (-1, 0, 0.5, 1, 2):
            raise Unlowered
        dtypes, found = ufunc_loop(np.power, [x.dtype, type(n)])
        if [out.dtype for out in self.writes] != [dtypes[2]]:
            raise Unlowered
        self._elementwise(
            "power", found, [self._converted(x, dtypes[0]), self._converted(n, dtypes[1])], self.writes, False
        )

    def _reduce(
        self,
        ufunc: np.ufunc,
        found: tuple[int, int],
        x: Operand,
        out: Operand,
        steps: list[int],
        initial: np.ndarray[Any, Any] | None,
    ) -> None:
        """The result starts with a number, or with the first elements; then loops add what is left.

        Args:
            steps: the strides of the result along the axes of x, 0 for those that are reduced.
        """
        shape = x.layout.shape
        strides = broadcast_strides(x.layout, shape)
        steps = [0 if length == 1 else step for length, step in zip(shape, steps, strict=True)]
        axes = merged_axes(list(shape), [steps, strides, steps], sorted_axes([strides], len(shape)))
        reduced = [k for k, axis in enumerate(axes) if axis.strides[0] == 0 and axis.length > 1]
        if reduced[:2] == [0, 1]:
            raise Unlowered  # the iterator might copy x, and so sum more elements at once
        if reduced[:1] not in ([0], [1]) and not is_exact(ufunc, x.dtype):
            raise Unlowered  # the iterator might copy x, and so call the loop for more elements at once
        offset = x.offset
        if initial is not None:
            self.copy(Operand(self.template.number(initial), (), (), x.dtype), out)
        else:
            if 0 in shape or len(reduced) > 1:
                raise Unlowered
            first = [axis for k, axis in enumerate(axes) if k not in reduced]
            lengths = tuple([axis.length for axis in first])
            self.copy(
                Operand(x.slot, lengths, tuple([axis.strides[1] for axis in first]), x.dtype, x.offset),
                Operand(out.slot, lengths, tuple([axis.strides[0] for axis in first]), out.dtype, out.offset),
            )
            if not reduced:
                return
            (k,) = reduced
            axes[k] = Axis(axes[k].length - 1, axes[k].strides)
            offset += axes[k].strides[1]
        if size(shape) == 0:
            return
        rows = [(axes, 0)]
        if ufunc is np.add and x.dtype.kind in "fc" and reduced[:1] == [0]:
            rows = _pieces(axes, len(reduced))
        for part, start in rows:
            args = [(out.slot, out.offset), (x.slot, offset + start), (out.slot, out.offset)]
            self.template.loops.append(Loop(f"{ufunc.__name__}.reduce", found, part, args, [x.dtype.itemsize] * 3))

    # -- products ----------------------------------------------------------------------------------------------------

    def _generalized(self, call: Call, ufunc: np.ufunc) -> None:
        """A gufunc: the iterator goes through the leading axes, the loop through the core axes."""
        if ufunc not in GENERALIZED or len(self.reads) != ufunc.nin:
            raise Unlowered
        dtypes, found = ufunc_loop(ufunc, [x.dtype for x in self.reads])
        every = self.reads + self.writes
        if [x.dtype for x in every] != list(dtypes):
            raise Unlowered
        cores = [part.split(",") if part else [] for part in re.findall(r"\((.*?)\)", str(ufunc.signature))]
        lengths: dict[str, int] = {}  # those of core axes that are left out first: they count as 1
        for x, core in zip(self.reads, cores, strict=False):
            missing = len(core) - len(x.layout.shape)
            optional = [name for name in core if name.endswith("?")]
            if missing > len(optional):
                raise Unlowered
            lengths.update((name, 1) for name in optional[: max(missing, 0)])
        left_out = set(lengths)
        core_strides: list[int] = []
        leading = []
        for x, core in zip(every, cores, strict=True):
            shape, strides, itemsize = x.layout
            axis = ndim = len(shape) - len([name for name in core if name not in left_out])
            for name in core:
                if name in left_out:
                    core_strides.append(0)
                    continue
                if lengths.setdefault(name, shape[axis]) != shape[axis]:
                    raise Unlowered
                core_strides.append(0 if shape[axis] == 1 else strides[axis])
                axis += 1
            leading.append(Layout(shape[:ndim], strides[:ndim], itemsize))
        shape = np.broadcast_shapes(*[layout.shape for layout in leading])
        if size(shape) == 0:
            return
        self.template.loops.append(
            Loop(
                ufunc.__name__,
                found,
                _iteration(leading[: ufunc.nin], leading, shape)[0],
                [(x.slot, x.offset) for x in every],
                [x.dtype.itemsize for x in every],
                core=tuple([lengths[name] for name in dict.fromkeys(name for core in cores for name in core)]),
                core_strides=tuple(core_strides),
            )
        )

    def _dot(self, call: Call) -> None:
        """``np.dot`` where one of the lengths is 1: it calls the functions of BLAS that `matmul` calls, or has one product.

        Of numbers that are not complex, so that the one product has one rounding.
        """
        if len(self.reads) != 2 or call.kwargs or any(x.dtype.char not in "fd" for x in self.reads):
            raise Unlowered
        lengths = [length for x in self.reads for length in x.layout.shape]
        if (
            [len(x.layout.shape) for x in self.reads] not in ([2, 2], [2, 1], [1, 2])
            or 1 not in lengths
            or 0 in lengths
        ):
            raise Unlowered
        if any(size(x.layout.shape) == 1 or not contiguity(x.layout) for x in self.reads):
            raise Unlowered
        self._generalized(call, np.matmul)

    # -- copies ------------------------------------------------------------------------------------------------------

    def _where(self, call: Call) -> None:
        if len(call.args) != 3 or call.kwargs:
            raise Unlowered
        condition, x, y = self._arguments(call.args)
        (out,) = self.writes
        if not isinstance(condition, Operand) or condition.dtype != np.bool_:
            raise Unlowered
        if np.result_type(_example(x), _example(y)) != out.dtype:
            raise Unlowered
        inputs = [condition, self._converted(x, out.dtype), self._converted(y, out.dtype)]
        name = f"select{out.dtype.itemsize}"
        self._elementwise("where", own_loop(name), inputs, [out], exact=True)

    def _cast(self, call: Call) -> None:
        if len(self.reads) != 1 or type(call.args[0]) is not Var or not set(call.kwargs) <= {"copy", "order"}:
            raise Unlowered
        self.copy(self.reads[0], self.writes[0])

    def _reshaped(self, call: Call) -> None:
        """A reshape that copies: elements in C order."""
        if len(self.reads) != 1 or call.kwargs.get("order", "C") != "C" or len(call.args) > 2:
            raise Unlowered
        (x,), (out,) = self.reads, self.writes
        shape, itemsize = x.layout.shape, x.dtype.itemsize
        if x.dtype != out.dtype or not is_run(out.layout, reversed(range(len(out.layout.shape)))):
            raise Unlowered
        order = list(range(len(shape) - 1, -1, -1))
        self.copy(x, Operand(out.slot, shape, dense_strides(shape, order, itemsize), x.dtype))

    def _joined(self, call: Call) -> None:
        """Concatenation and stacking: every array is copied to its place."""
        arrays, axis = _two(call, ("arrays", "axis"), 0)
        (out,) = self.writes
        ndim = len(out.layout.shape)
        stacked = call.function is np.stack
        if type(arrays) not in (list, tuple) or not all(type(x) is Var for x in arrays) or type(axis) is not int:
            raise Unlowered
        axis %= ndim
        offset = 0
        for x in self.reads:
            shape, strides, _ = x.layout
            if stacked:
                shape, strides = (*shape[:axis], 1, *shape[axis:]), (*strides[:axis], 0, *strides[axis:])
            part = Operand(out.slot, shape, out.layout.strides, out.dtype, offset)
            self.copy(Operand(x.slot, shape, strides, x.dtype, x.offset), part)
            offset += shape[axis] * out.layout.strides[axis]

    def _embedded(self, shape: Shape, index: tuple[Any, ...]) -> None:
        """Zeros with an array at a basic index."""
        (x,), (out,) = self.reads, self.writes
        self.copy(Operand(self.template.number(np.zeros((), out.dtype)), (), (), out.dtype), out)
        self._write(x, out, lambda array: element(array, index) if _is_basic(index) else None)

    def _put(self, index: tuple[Any, ...], accumulate: bool) -> None:
        """An array with values at a basic index."""
        if accumulate:
            raise Unlowered
        base, values = self.reads
        self.copy(base, self.writes[0])
        self._write(values, self.writes[0], lambda array: element(array, index) if _is_basic(index) else None)

    def _put_view(self, steps: Any) -> None:
        """An array with values where a view of it is."""
        base, values = self.reads
        self.copy(base, self.writes[0])
        self._write(values, self.writes[0], lambda array: functools.reduce(_after_step, steps, array))

    def _write(self, values: Operand, out: Operand, view: Callable[[Any], Any]) -> None:
        """Copy values to where a view of the result is."""
        memory = with_strides(np.zeros(out.layout.shape, out.dtype), out.layout.strides)
        region = view(memory)
        if type(region) is not ndarray or region.dtype != values.dtype:
            raise Unlowered
        if region.size == 0:
            return
        if not np.may_share_memory(memory, region):
            raise Unlowered  # it is no view, but a copy
        offset = address(region) - address(memory)
        self.copy(values, Operand(out.slot, region.shape, region.strides, region.dtype, offset))

    def _outer(self, call: Call) -> None:
        """``np.outer`` is the product of a column and a row."""
        if call.kwargs or len(self.reads) != 2 or any(len(x.layout.shape) != 1 for x in self.reads):
            raise Unlowered
        dtypes, found = ufunc_loop(np.multiply, [x.dtype for x in self.reads])
        x, y = [self._converted(x, dtype) for x, dtype in zip(self.reads, dtypes, strict=False)]
        (n,), (m,), (step,), (stride,) = x.layout.shape, y.layout.shape, x.layout.strides, y.layout.strides
        column = Operand(x.slot, (n, 1), (step, 0), x.dtype, x.offset)
        row = Operand(y.slot, (1, m), (0, stride), y.dtype, y.offset)
        self._elementwise("outer", found, [column, row], self.writes, is_exact(np.multiply, dtypes[0]))


def _is_basic(index: tuple[Any, ...]) -> bool:
    return all([type(item) in (int, slice) or item is None or item is Ellipsis for item in index])


def _after_step(array: Any, step: tuple[Any, dict[str, Any]]) -> Any:
    row, params = step
    return row(array, **params)


def _pieces(axes: list[Axis], reduced: int) -> list[tuple[list[Axis], int]]:
    """The rows that are added up at once, and where they start: before NumPy 2.3 those that fill the iterator's buffer."""
    row, *others = axes
    count, left = divmod(row.length, np.getbufsize())
    if not SUMS_IN_PIECES or count + (left > 0) < 2:
        return [(axes, 0)]
    if reduced > 1:
        raise Unlowered
    result, step, _ = row.strides
    size = np.getbufsize()
    pieces = [([Axis(size, row.strides), Axis(count, (result, size * step, result)), *others], 0)]
    if left:
        pieces.append(([Axis(left, row.strides), *others], count * size * step))
    return pieces


def _example(x: Any) -> Any:
    return x.dtype if isinstance(x, Operand) else x


def _two(call: Call, names: tuple[str, str], default: Any) -> tuple[Any, Any]:
    """The two arguments of a function."""
    given = dict(zip(names, call.args, strict=False)) | call.kwargs
    if len(call.args) > 2 or not set(given) <= set(names):
        raise Unlowered
    return given[names[0]], given.get(names[1], default)


def _iteration(deciding: list[Layout], every: list[Layout], shape: Shape) -> tuple[list[Axis], list[int]]:
    """The merged axes of an iteration, and the order of those of the shape."""
    strides = [broadcast_strides(layout, shape) for layout in every]
    order = sorted_axes(strides[: len(deciding)], len(shape))
    return merged_axes(list(shape), strides, order), order


def _normal_axes(axis: Any, ndim: int) -> tuple[int, ...] | None:
    if axis is None:
        return tuple(range(ndim))
    axes = axis if type(axis) is tuple else (axis,)
    if not all(type(k) is int for k in axes):
        return None
    return tuple([k % ndim for k in axes]) if ndim else ()


def _steps_of_result(out: Layout, reduced: tuple[int, ...], ndim: int, keepdims: bool) -> list[int]:
    """The strides of a reduction's result along the axes of what is reduced."""
    strides = iter(out.strides)
    steps = []
    for axis in range(ndim):
        if axis in reduced:
            steps.append(0)
            if keepdims:
                next(strides)
        else:
            steps.append(next(strides))
    return steps


_OTHERS: dict[Any, Callable[[_Lowering, Call], None]] = {
    operator.pow: _Lowering._power,
    np.mean: _Lowering._mean,
    np.cumsum: _Lowering._cumulative,
    np.cumprod: _Lowering._cumulative,
    np.zeros: _Lowering._filled,
    np.zeros_like: _Lowering._filled,
    np.ones: _Lowering._filled,
    np.ones_like: _Lowering._filled,
    np.full: _Lowering._filled,
    np.full_like: _Lowering._filled,
    np.dot: _Lowering._dot,
    np.where: _Lowering._where,
    np.copy: _Lowering._cast,
    np.reshape: _Lowering._reshaped,
    np.ravel: _Lowering._reshaped,
    np.concatenate: _Lowering._joined,
    np.stack: _Lowering._joined,
    np.outer: _Lowering._outer,
}
#: rows that are recorded as one call
_ROWS: dict[str, Callable[..., None]] = {
    "embed": _Lowering._embedded,
    "index_put": _Lowering._put,
    "copy_slices": _Lowering._put_view,
}
if hasattr(np, "astype"):
    _OTHERS[np.astype] = _Lowering._cast
