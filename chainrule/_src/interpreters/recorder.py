"""The recorder: appends the NumPy calls on the values of one level to a trace while the traced function runs.

``compile`` opens a level with a ``Recorder`` and calls the user's function on ``Traced`` values. Their operators and NumPy
functions arrive at ``Recorder.call``, which computes the result and appends a ``TracedCall``. Operations of this package
arrive at ``Recorder.record_primitive``. The ``calls``, ``guards`` and ``arrays`` of the recorder form the trace that is compiled.
*Eager code* below is the same function without ``compile``.
"""

from __future__ import annotations

import functools
import operator
import sys
import warnings
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import overlaps_itself, same_strides, view_at_offset, with_strides
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, NumpyDType, Params, TensorLike
from chainrule._src.interpreters.captured_arrays import CapturedArrays, memory_key
from chainrule._src.interpreters.error_state import FLOATING_POINT, ErrorState, is_in_try_block
from chainrule._src.interpreters.rebuilt import ARITHMETIC, SAME_AS_UFUNC, ArrayPlaceholder, Rebuilt
from chainrule._src.interpreters.same_bits import multiplies_alike, same_bits
from chainrule._src.interpreters.templates import (
    MAX_TEMPLATES,
    TEMPLATES,
    TemplateItem,
    TemplateStep,
    clear_templates,
    passes_arrays,
    template_of,
    without_overlap,
)
from chainrule._src.interpreters.trace_types import (
    AsArray,
    ByValue,
    PrimitiveFunction,
    TracedCall,
    Unrecordable,
    ValueGuard,
    Var,
)
from chainrule._src.interpreters.traced import Traced, arrays_in, flat_leaves, scalar_square
from chainrule._src.messages.source_locations import note_frame
from chainrule._src.rules import kinds
from chainrule._src.rules.primitive import TABLE, Primitive
from chainrule._src.tape import fp_warnings
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import LOCAL, enter_active_mode, leave_active_mode
from chainrule._src.tape.node import Edges, Node
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import digest
from chainrule._src.tape.view import base_of

ndarray = np.ndarray
_new = object.__new__


class _ValueReadInPrimitive(Exception):
    """The value function of a primitive read values: it must be recorded as one call."""


class Recorder(CapturedArrays):
    """Record the calls on the values of one level. Between enter and exit it is the thread's ``LOCAL.recorder``.

    Attributes:
        generator_states: the generators that random numbers were drawn from, and their states before.
        ignored: the kinds of floating-point exceptions that a part of the function ignores.
        handled: the kinds for which a part of the function changes ``np.errstate``, so that it may detect them.
        refusal: why the function cannot be recorded; None so far.
        data_dependent_error: an exception that depends on values, raised by a NumPy call.
        failed: the type of the exception of the last NumPy call, also if it depends on shapes only.
        written_array: the tensor of the Array that is being written into, by NumPy's rules.
        numpy_error: the exception of the NumPy function, if this package's implementation is tried instead.
        lost_view: the name of a function whose result is a view in eager code but not in the trace.
        depth: the number of surrounding transformations that have no level.
        with_arrays: whether the arguments include Arrays.
        scalars: numbers of the Vars that are NumPy scalars in eager code.
        weak: numbers of the Vars that are Python floats in eager code: their dtype follows from the other operands.
        created: numbers of the Vars that hold the data of tensors or Arrays that the function creates.
    """

    __slots__ = ("_drawing", "_error_state", "_op_name", "depth", "failed", "scalars", "weak", "with_arrays")

    def __init__(self) -> None:
        super().__init__()
        self.generator_states: list[tuple[Any, Any]] = []
        self.ignored: set[str] = set()
        self.handled: set[str] = set()
        self.refusal: Unrecordable | None = None
        self.data_dependent_error: Exception | None = None
        self.failed: type | None = None
        self.numpy_error: Exception | None = None
        self.written_array: weakref.ref[Tensor] | None = None
        self.lost_view = ""
        self._view_function: AnyFunction | None = None  # its result is a view in eager code
        self._error_state = ErrorState()
        self._error_state_changes = 0  # the number of calls in another error state than that of the first call
        self.depth = 0
        self.with_arrays = False
        self.scalars: set[int] = set()
        self.weak: set[int] = set()
        self.created: set[int] = set()
        self._op_name: str = ""
        self._primitive_depth = 0
        self._drawing = False
        self._read_vars: set[int] = set()

    def __enter__(self) -> Recorder:
        enter_active_mode()
        LOCAL.recorder = self
        return self

    def __exit__(self, *exc: object) -> None:
        LOCAL.recorder = None
        clear_templates()  # their keys and results would take more memory than most plans
        leave_active_mode()
        for entry in self.lifted.values():
            tensor = entry.ref()
            if tensor is not None and type(tensor._raw) is not ndarray:
                tensor._raw = entry.raw
                entry.history_changed = tensor._edge is not entry.trace_edge
                tensor._edge = entry.edge

    # -- arrays --------------------------------------------------------------------------------------------------------

    def var_of_plain(self, array: NumpyArray) -> Var:
        """Return the Var of a plain array. A view (such as a row of data) becomes a view of its base's Var in the trace."""
        self.plain_arrays[id(array)] = array
        var = self.arrays.get(id(array))
        base: Any = array.base
        if var is not None or not _is_part(array, base):
            return var or self.bases.get(id(array)) or self.var_of(array)
        key = memory_key(array)
        var = self.parts.get(key)
        if var is None:
            whole = self.bases.get(id(base)) or self.arrays.get(id(base))
            # the Var of a lifted tensor cannot be the base: the tensor may get other data
            if whole is None or any([entry.var is whole for entry in self.lifted.values()]):
                whole = self.bases[id(base)] = self.new(base)
            offset = key[0][0] - base.__array_interface__["data"][0]
            args = Traced(whole, self.level), offset, array.shape, array.strides
            var = self.parts[key] = self.append_call(view_at_offset, "", args, {}, (array,), False).var
            self.checksums.append((var, digest(array)))
        return var

    def drop(self, begin: int) -> None:
        """Remove the calls from index ``begin`` on, except views of arrays from outside, which may be used again."""
        self.calls[begin:] = [call for call in self.calls[begin:] if call.function is view_at_offset]

    def traced(self, data: object) -> Traced:
        return data if type(data) is Traced else Traced(self.var_of_plain(np.asarray(data)), self.level, plain=True)

    def lift_all(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Lift the tensors among the operands to the trace's level. Return the operands.

        Plain arrays next to tensors become values of the level, because the tape saves them for VJP rules.
        """
        plain = others = False
        for x in operands:
            kind = type(x)
            if kind is ndarray:
                plain = plain or x.dtype.kind in "fc"
            elif kind is Traced or isinstance(x, ArrayLike):
                others = True
            elif isinstance(x, Tensor):
                others = True
                self.lift(x)
        if not (plain and others):
            return operands
        return [self.traced(x) if type(x) is ndarray and x.dtype.kind in "fc" else x for x in operands]

    def wrap_new_data(self, tensor: Tensor, data: NumpyArray) -> Traced | NumpyArray:
        """Return the data for a tensor that is made during tracing: a ``Traced`` value of its array."""
        if self._drawing:
            return data
        var = self.var_of_plain(data)
        self.cells[id(tensor)] = (weakref.ref(tensor), var)
        self.created.add(var.number)
        value = Traced(var, self.level, plain=True)
        self.note_holder(tensor)
        return value

    def note_new_data(self, tensor: Tensor, data: AnyArray) -> Any:
        """Record that a tensor gets new data: if its memory is a Var of the trace, the program writes to it at its end.

        Returns:
            The data that the tensor must get.
        """
        view = tensor._view
        base = tensor if view is None else view.base
        if self.exported_arrays and any(
            ref() is base and sys.getrefcount(array) > _UNSHARED_COUNT for array, _, ref in self.exported_arrays
        ):
            raise Unrecordable("it writes into an array after np.asarray returned its memory")
        if self.lost_view:
            raise Unrecordable(
                f"it writes into arrays, and {self.lost_view} returns a view that is not recorded as a view"
            )
        cell = self.cells.get(id(base))
        if cell is not None and cell[0]() is base:
            if not cell[1].array.flags.writeable:
                self.data_dependent_error = ValueError("assignment destination is read-only")
                raise self.data_dependent_error
            self._make_root(cell[1])
            self.written[cell[1].number] = (base, cell[1])
        old = getattr(tensor, "_raw", None)
        if type(data) is Traced and not data.shape and self.is_array(old) and not self.is_array(data):
            return self.call(np.copy, "", (data.as_array(),), {})  # a 0-d array stays an array after a write
        return data

    def check_view(self, function: AnyFunction, result: object) -> None:
        """Set ``lost_view`` if the result of the function is a view in eager code but not in the trace."""
        expected, self._view_function = self._view_function, None
        if expected is function and isinstance(result, Tensor) and result._view is None:
            self.lost_view = self.lost_view or f"np.{function.__name__}"

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call(
        self,
        function: AnyFunction,
        method: str,
        args: tuple[object, ...],
        kwargs: Params,
        pure: bool = True,
        op_name: str = "",
    ) -> Any:
        """Call a function of NumPy arrays and append the call to the trace. Array results are values of this level."""
        accepts_floats = not (self.weak and self.narrow) or function in _TAKES_FLOATS or type(function) is Rebuilt
        if not accepts_floats and any(map(self._is_weak, flat_leaves(args))):
            raise ByValue("a Python float is an operand of a function that is not NumPy's")
        if function is np.square and type(args[0]) is Traced and args[0].dtype.kind == "c" and args[0].scalar:
            function, method = scalar_square, ""
        elif type(function) is not np.ufunc:
            if function in _DISTINGUISH_SCALARS and type(args[0]) is Traced and args[0].scalar:
                function, method, args, kwargs = self.rebuilt(function, args, kwargs)
            if function in _DOTS and len(args) == 2 and not kwargs and multiplies_alike(function, *arrays_in(args)):
                function, method = np.matmul, "__call__"
        if method == "__call__" and not kwargs and type(function) is np.ufunc:
            if _TRACE_UFUNC is not None and pure:
                found = _TRACE_UFUNC(self, function, args, op_name or self._op_name)
                if found is not NotImplemented:
                    return found
            values = tuple([x.var.array if type(x) is Traced and not x.scalar else arrays_in(x) for x in args])
            out = self._run(function, values, kwargs)
            if type(out) is ndarray:
                return self.append_call(function, method, args, kwargs, (out,), False, pure, op_name)
        else:
            values = arrays_in(_without_scalars(args) if passes_arrays(function, args) else args)
            named = arrays_in(kwargs) if kwargs else kwargs
            out = self._run(getattr(function, method) if method else function, values, named)
        several = type(out) is not ndarray and isinstance(out, (tuple, list))
        parts = tuple(out) if several else (out,)
        if type(out) is ndarray:
            for x, y in zip(args, values, strict=False):
                if y is out:
                    return x if type(x) is Traced else self.traced(x)
        elif not all([isinstance(part, (ndarray, np.generic)) for part in parts]):
            return self._plain_result(function, method, args, kwargs, out)
        if not isinstance(function, np.ufunc):
            parts = tuple([without_overlap(part, values) for part in parts])
        return self.append_call(function, method, args, kwargs, parts, several, pure, op_name)

    def _run(self, function: AnyFunction, args: tuple[object, ...], kwargs: Params) -> Any:
        """Call a function on arrays. Note exceptions that depend on values: the program may handle them and branch."""
        self._error_state.exceptions_handled = False
        if self._error_state.changed():
            self._error_state_changes += 1
            self._check_fp_exceptions(function, args, kwargs)
        self.failed = None
        try:
            return function(*args, **kwargs)
        except (TypeError, np.exceptions.AxisError) as error:  # depends on shapes and dtypes only
            self.failed = type(error)
            raise
        except Exception as error:
            self.failed = type(error)
            # an IndexError of one array depends on its shape only
            if not isinstance(error, IndexError) or sum([type(x) is ndarray for x in flat_leaves(args)]) > 1:
                self.data_dependent_error = self.data_dependent_error or error
            raise

    def _check_fp_exceptions(self, function: AnyFunction, args: tuple[object, ...], kwargs: Params) -> None:
        """Note the current floating-point error state. Refuse to record if the call raises a flag that the program handles."""
        ignored, handled = self._error_state.differences()
        self.ignored |= ignored
        self.handled |= handled
        self._error_state.exceptions_handled = bool(handled)
        if not handled or self._drawing or (type(function) is PrimitiveFunction and not function.prim.listed):
            return
        kinds: list[str] = []
        with np.errstate(all="call", call=lambda kind, flag: kinds.append(kind)):
            try:
                function(*args, **kwargs)
            except Exception:  # ``_run`` calls the function again, which raises again
                return
        if any(FLOATING_POINT[kind] in handled for kind in kinds):
            self.refuse_for_now("it handles a floating-point exception")

    def note_handled_exception(self, error: Exception) -> None:
        """Note that the program handles an exception. Refuse exceptions of this package, which may differ from those in eager code."""
        modules, trace = set(), error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is Recorder._run.__code__:
                return  # raised by NumPy
            modules.add(trace.tb_frame.f_globals.get("__name__"))
            trace = trace.tb_next
        alike = isinstance(error, (TypeError, AttributeError)) if self.failed is None else type(error) is self.failed
        if not alike and not modules.isdisjoint(_ARRAY_MODULES):
            self.data_dependent_error = self.data_dependent_error or error

    def refuse_for_now(self, reason: str) -> None:
        """Do not record the function this time; a later call may be recorded."""
        if self.refusal is None:
            self.refusal = Unrecordable(reason)
            self.refusal.perhaps_later = True

    def check_refused(self) -> None:
        """Raise if an operation cannot be recorded, even if the function caught its exception."""
        if self.data_dependent_error is not None:
            self.refuse_for_now(f"it handles an exception ({type(self.data_dependent_error).__name__})")
        if self.refusal is not None:
            raise self.refusal

    # -- Python floats -------------------------------------------------------------------------------------------------

    def record_float_operator(self, operation: AnyFunction, *operands: TensorLike) -> Any:
        """Record an operator whose operands are all Python numbers, with a Python result; None if they are not."""
        on_arrays = ARITHMETIC.get(operation)
        if on_arrays is None or not all(self._is_weak(x) or type(x) in (int, float, bool, complex) for x in operands):
            return None
        out = self._run(on_arrays, arrays_in(operands), {})
        function: AnyFunction = on_arrays
        method = ""
        if operation in SAME_AS_UFUNC and all([type(x) is not int or abs(x) < 1 << 53 for x in operands]):
            function, method = SAME_AS_UFUNC[operation], "__call__"
        traced = self.append_call(function, method, operands, {}, (np.asarray(out),), False)
        if type(out) is not float:
            return self.read(traced).item()
        self.weak.add(traced.var.number)
        return traced

    def _as_strong(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the operands of a ufunc with Python floats converted to the dtype to which NumPy promotes them."""
        if not any(map(self._is_weak, args)):
            return args
        target = self._dtype_of_floats(args)
        strong = [x.astype(target, copy=True) if self._is_weak(x) else x for x in args]
        self.scalars.update([x.var.number for x, arg in zip(strong, args, strict=True) if x is not arg])
        return tuple([self._mark_scalar(x) if type(x) is Traced else x for x in strong])

    def _dtype_of_floats(self, args: Sequence[TensorLike]) -> NumpyDType:
        """Return the dtype to which NumPy promotes the Python floats among the operands of a ufunc."""
        others = [x.dtype for x in args if hasattr(x, "dtype") and not self._is_weak(x)]
        return np.zeros(0, np.result_type(*others, 0.0)).real.dtype

    def with_strong_floats(self, ufunc: np.ufunc, args: tuple[Any, ...]) -> list[Any]:
        """Do the same as ``_as_strong`` for operands of any level, without marking the results as scalars."""
        weak = [self._is_weak(x) for x in args]
        if all(weak) or not any(weak):
            return list(args)
        if ufunc is np.power and weak[1]:
            raise ByValue("a Python float is an exponent where a derivative is taken")
        target = self._dtype_of_floats(args)
        return [x.astype(target, copy=False) if k else x for x, k in zip(args, weak, strict=True)]

    def _with_floats(
        self, function: AnyFunction, method: str, args: tuple[object, ...], kwargs: Params
    ) -> tuple[AnyFunction, str, tuple[Any, ...], Params]:
        """Return a call in which Python floats have the dtype that the function gives them, or are converted back to floats."""
        if not self.weak or not any(map(self._is_weak, flat_leaves((args, kwargs)))):
            return function, method, args, kwargs
        if method == "__call__" and not kwargs:
            return function, method, self._as_strong(args), kwargs
        if function is np.clip and not kwargs:
            return function, method, self._as_strong(args), kwargs
        if function is np.where and len(args) == 3 and not kwargs and not self._is_weak(args[0]):
            return function, method, (args[0], *self._as_strong(args[1:])), kwargs
        return self.rebuilt(getattr(function, method) if method else function, args, kwargs)

    def rebuilt(
        self, function: AnyFunction, args: tuple[object, ...], kwargs: Params, written: tuple[Traced, ...] = ()
    ) -> tuple[AnyFunction, str, tuple[Any, ...], Params]:
        """Return a call, as arguments of ``Recorder.call``, whose only arguments are arrays (see ``Rebuilt``).

        Args:
            written: the values among the arguments that the function writes into.
        """
        arrays: list[Traced] = []

        args, kwargs = self._with_placeholders(args, arrays), self._with_placeholders(kwargs, arrays)
        floats = tuple([i for i, x in enumerate(arrays) if self._is_weak(x)])
        scalars = tuple([i for i, x in enumerate(arrays) if self.is_scalar(x) and i not in floats])
        written_indices = tuple([self._with_placeholders(x, arrays).at for x in written])
        return Rebuilt(function, args, kwargs, floats, scalars, written_indices), "", tuple(arrays), {}

    def _with_placeholders(self, x: Any, arrays: list[Traced]) -> Any:
        """Return an argument with each array replaced by its ``ArrayPlaceholder``, an index in ``arrays``; append new arrays."""
        kind = type(x)
        if kind is ndarray:
            x, kind = self.traced(x), Traced
        if kind is Traced:
            index = next((i for i, other in enumerate(arrays) if other.var is x.var), None)
            if index is None:
                arrays.append(x)
            return ArrayPlaceholder(len(arrays) - 1 if index is None else index)
        if kind is tuple or kind is list:
            return kind([self._with_placeholders(item, arrays) for item in x])
        if kind is dict:
            return {name: self._with_placeholders(item, arrays) for name, item in x.items()}
        return (
            slice(*[self._with_placeholders(item, arrays) for item in (x.start, x.stop, x.step)])
            if kind is slice
            else x
        )

    def _is_weak(self, x: object) -> bool:
        return type(x) is Traced and x.var.number in self.weak

    def append_call(
        self,
        function: AnyFunction,
        method: str,
        args: tuple[object, ...],
        kwargs: Params,
        parts: tuple[Any, ...],
        several: bool,
        pure: bool = True,
        op_name: str = "",
    ) -> Any:
        """Append a call with its computed results ``parts`` to the trace. Return the results as values of the level."""
        call = _new(TracedCall)
        call.function = function
        call.method = method
        call.args = tuple([x.var if type(x) is Traced else x if type(x) in _SIMPLE else self._vars(x) for x in args])
        call.kwargs = {name: self._vars(x) for name, x in kwargs.items()} if kwargs else kwargs
        call.op_name = op_name or self._op_name
        call.pure = pure
        call.step = None
        note_frame(call, sys._getframe(1))
        code = call.code
        call.kept = self._error_state.exceptions_handled or bool(
            code is not None and code.co_exceptiontable and is_in_try_block(code, call.lasti)
        )
        self.calls.append(call)
        alike = self.plain or self.are_plain((args, kwargs) if kwargs else args)
        variables, results = [], []
        for part in parts:
            var = self.new(part if type(part) is ndarray else np.asarray(part))
            result = Traced(var, self.level, alike)
            if not var.shape:
                result.scalar = isinstance(part, np.generic)
                if alike and (result.scalar or function in _SCALAR_RESULTS or type(function) is PrimitiveFunction):
                    self.scalars.add(var.number)
            variables.append(var)
            results.append(result)
        call.results = tuple(variables)
        return tuple(results) if several else results[0]

    def _plain_result(
        self, function: AnyFunction, method: str, args: tuple[object, ...], kwargs: Params, out: Any
    ) -> Any:
        """Return a result that is no array: one that depends on shapes and dtypes only, or a number that Python reads."""
        if function in _SHAPE_FUNCTIONS:
            return out
        if not isinstance(out, (bool, int, float, complex)):
            kind = type(getattr(out, "payload", out))  # ``payload``: another library's array
            raise Unrecordable(f"{getattr(function, '__name__', function)} returns {kind.__module__}.{kind.__name__}")
        function = getattr(function, method) if method else function
        traced = self.append_call(AsArray(function), "", args, kwargs, (np.asarray(out),), False)
        return type(out)(self.read(traced).item())

    def _vars(self, x: Any) -> Any:
        """Return arguments with each array and each traced value replaced by its Var."""
        kind = type(x)
        if kind is Traced:
            return x.var
        if kind is ndarray:
            return self.var_of_plain(x)
        if kind is tuple or kind is list:
            return kind([self._vars(item) for item in x])
        if kind is dict:
            return {key: self._vars(item) for key, item in x.items()}
        if kind is slice and x.start.__class__ is Traced:
            raise Unrecordable("it slices with traced numbers as bounds")
        return x

    @property
    def plain(self) -> bool:
        """Whether the running code computes with plain arrays in eager mode."""
        no_transformation = not self.depth and LOCAL.sweep is None and STACK.levels[-1] is self.level
        return no_transformation and not self.with_arrays

    def are_plain(self, operands: Any) -> bool:
        """Return whether the traced values among the operands are plain arrays in eager code."""
        if self.plain:
            return True
        if self.with_arrays or LOCAL.sweep is not None:
            return False
        found, todo = False, [*operands]
        for x in todo:
            kind = type(x)
            if kind is Traced:
                if not x.plain:
                    return False
                found = True
            elif isinstance(x, ArrayLike):  # a value of a transformation inside the trace
                return False
            elif kind is tuple or kind is list:
                todo += x
            elif kind is dict:
                todo += x.values()
        return found

    def eager_type(self, data: AnyArray | None) -> type | None:
        """Return the type of a value in eager code: ``float``, a NumPy scalar type or ``ndarray``; None for other types."""
        if type(data) is not Traced or not self.are_plain((data,)):
            return None
        if data.var.number in self.weak:
            return float
        return data.dtype.type if data.var.number in self.scalars else ndarray

    def is_buffer(self, tensor: Tensor) -> bool:
        """Return whether the tensor belongs to the written Array (``written_array``), which is a plain array in eager code."""
        base = base_of(tensor)
        written = None if self.written_array is None else self.written_array()
        if written is None or not (written is tensor or written is base):
            return False
        cell = self.cells.get(id(written))
        if cell is not None and cell[0]() is written and cell[1].number in self.created:
            return False
        return (tensor if base is None else base)._edge is None and self.eager_type(tensor._raw) is not None

    def is_array(self, data: AnyArray | None) -> bool:
        """Return whether a 0-d value is an array in eager code, rather than a NumPy scalar or a Python float."""
        return self.eager_type(data) is ndarray

    def keep_scalar(self, data: AnyArray) -> None:
        """Mark a 0-d value as a NumPy scalar, because a method of a scalar returned it."""
        if type(data) is Traced and not data.shape:
            self.scalars.add(data.var.number)

    def is_scalar(self, data: AnyArray) -> bool:
        return type(data) is Traced and data.var.number in self.scalars and self.are_plain((data,))

    def check_not_scalar(self, data: AnyArray) -> None:
        """Raise if a function writes into a NumPy scalar: some functions refuse scalars and others copy them."""
        if self.eager_type(data) not in (None, ndarray):
            raise Unrecordable("it passes a scalar to a NumPy function that writes into it")

    def as_array(self, data: AnyArray) -> AnyArray:
        """Return a scalar or Python float as a 0-d array; any other value unchanged."""
        if type(data) is Traced and (data.var.number in self.scalars or data.var.number in self.weak):
            return self.call(np.copy, "", (data.as_array(),), {})
        return data

    def keep_array(self, data: AnyArray) -> None:
        """Mark an element as a 0-d array, because it was indexed with an Ellipsis."""
        if type(data) is Traced:
            self.scalars.discard(data.var.number)

    def record_numpy(self, function: AnyFunction, method: str, args: tuple[object, ...], kwargs: Params) -> Any:
        """Record a NumPy function itself. Return None if it fails, or its results are views, read-only, or no arrays."""
        begin, guard_count, refusal = len(self.calls), len(self.guards), self.refusal
        self.numpy_error = None
        try:
            function, method, args, kwargs = self._with_floats(function, method, args, kwargs)
            found = self.call(function, method, self._mark_scalars(args), kwargs)
        except ByValue:
            raise
        except Exception as error:  # this package's implementation is tried next and raises with an explanation
            found, self.refusal = None, refusal
            if isinstance(error, (TypeError, ValueError, LookupError)):
                self.numpy_error = error
        self._view_function = None
        if type(found) in (bool, int, float, complex):  # a value that was read and is guarded
            return found
        parts = found if type(found) is tuple else (found,)
        memory = [x for x in flat_leaves(arrays_in((args, kwargs))) if type(x) is ndarray]
        if not all(
            type(p) is Traced
            and p.var.array.flags.writeable
            and not any(np.may_share_memory(p.var.array, x) for x in memory)
            for p in parts
        ):
            self.drop(begin)
            del self.guards[guard_count:]
            same = type(found) is Traced and any(x is found.var.array for x in memory)
            self._view_function = None if found is None or same else function
            return None
        return self._with_op_names(begin, found)

    def record_write(
        self, function: AnyFunction, args: tuple[TensorLike, ...], kwargs: Params, targets: tuple[Traced, ...]
    ) -> Any:
        """Record a NumPy function that writes into ``targets`` (``out=``, ``**=``). Return the written values."""
        operands = [x for x in flat_leaves((args, kwargs)) if type(x) in (Traced, ndarray)]
        for target in targets:
            for x in operands:
                same = x is target or (type(x) is Traced and x.var is target.var)
                if not same and np.may_share_memory(arrays_in(x), target.var.array):
                    raise Unrecordable("a NumPy function writes into an operand that overlaps another operand")
            if overlaps_itself(target.var.array):
                raise Unrecordable("a NumPy function writes into an array whose elements share memory")
        return self.call(*self.rebuilt(function, args, kwargs, targets))

    def computes_alike(self, ufunc: np.ufunc, operands: tuple[TensorLike, ...], targets: Sequence[AnyArray]) -> bool:
        """Return whether a ufunc that writes into an operand computes the same bits as with a new output array."""
        if len(targets) != 1 or ufunc.signature is not None or ufunc not in _CORRECTLY_ROUNDED:
            return False
        (target,) = targets
        dtypes = [x.dtype for x in (*operands, target) if not self._is_weak(x) and hasattr(x, "dtype")]
        return target.dtype.kind in "fiub" and all([dtype == target.dtype for dtype in dtypes])

    def record_operator(self, operation: AnyFunction, x: TensorLike, *other: TensorLike) -> Any:
        """Record an operator as eager code computes it, with scalars and Python floats where eager code has them."""
        begin = len(self.calls)
        if not other:
            return self._with_op_names(begin, operation(self._mark_scalar(x)))
        (y,) = other
        is_array = type(x) is ndarray or (type(x) is Traced and x.var.number not in self.scalars)
        if operation is operator.pow and self._is_weak(y) and is_array:
            return self.call(_power_by_float, "", (x, y), {})
        x, y = self._as_strong((x, y))
        return self._with_op_names(begin, operation(self._mark_scalar(x), self._mark_scalar(y)))

    def _with_op_names(self, begin: int, result: Any) -> Any:
        """Name the op of each call of a ufunc from index ``begin`` on, which the program called itself. Return the result."""
        for call in self.calls[begin:]:
            if call.method == "__call__" and not call.op_name:
                call.op_name = _op_names().get(call.function, "")
        return result

    def are_integers(self, operands: tuple[TensorLike, ...]) -> bool:
        """Return whether all operands are integer scalars: NumPy warns of their overflows, unlike those of arrays."""
        return all(
            [self.is_scalar(x) if type(x) is Traced else isinstance(x, (int, np.integer)) for x in operands]
        ) and all([x.dtype.kind in "iub" for x in operands if type(x) is Traced])

    def record_integer_operator(self, operation: AnyFunction, operands: tuple[TensorLike, ...]) -> Any:
        """Record an operator on integer scalars."""
        found = self.call(*self.rebuilt(operation, operands, {}, ()))
        self.keep_scalar(found)
        return found

    def _mark_scalars(self, x: Any) -> Any:
        """Return arguments in which the values that are NumPy scalars in eager code have ``scalar`` set."""
        kind = type(x)
        if kind is tuple or kind is list:
            return kind([self._mark_scalars(item) for item in x])
        return self._mark_scalar(x)

    def _mark_scalar(self, x: TensorLike) -> Any:
        if type(x) is Traced and x.var.number in self.scalars:
            x = Traced(x.var, x.level, x.plain)
            x.scalar = True
        return x

    # -- primitives ----------------------------------------------------------------------------------------------------

    def record_primitive(self, prim: Primitive, operands: Sequence[TensorLike], params: Params) -> Any:
        """Record a primitive: as the NumPy calls of its value function, or as one call of the value function."""
        value = prim.value
        if isinstance(value, np.ufunc) and not params:
            return self.call(value, "__call__", tuple(operands), {}, op_name=prim.name)
        if not prim.listed and prim.kind != "function":
            return self._record_opaquely(prim, operands, params, pure=False)
        if prim.kind == "function":
            return value(*operands, **params)
        template_key = None
        if _TRACE_TEMPLATE is not None:
            result = _TRACE_TEMPLATE(prim, operands, params, (), None)
            if type(result) is bytes:
                template_key = result
            elif result is not None:
                return result
        if template_key is None:
            return self._record_without_template(prim, operands, params)
        before = self._state()
        result = self._record_without_template(prim, operands, params)
        self._add_template(template_key, prim, (operands, params, ()), result, before)
        return result

    def pull_back(self, node: Node, g: Any, saved: Any, edges: Edges, location: object) -> Any:
        """Run the VJP rule of a node on traced values: append the calls of its template, or call the rule.

        Args:
            location: the backward pass, whose source location the calls get.
        """
        key, prim = None, node.prim
        operands: tuple[Any, ...] = ()
        if _TRACE_TEMPLATE is not None and fp_warnings.is_ours(prim) and _is_derived(node):
            operands = (g, saved), node.params, (node.in_avals, [edge is None for edge in edges])
            grads = _TRACE_TEMPLATE(prim, *operands, location)
            if type(grads) is bytes:
                key = grads
            elif grads is not None:
                return grads
        before = self._state()
        grads = node.pullback(node, g, saved, edges)
        if key is not None:
            self._add_template(key, prim, operands, grads, before)
        return grads

    def _state(self) -> tuple[int, tuple[object, ...]]:
        """Return the number of calls, and the state that a primitive with a template does not change."""
        return len(self.calls), (len(self.guards), self._error_state_changes, self.refusal, self.data_dependent_error)

    def _add_template(
        self, key: bytes, prim: Primitive, operands: object, results: object, before: tuple[int, tuple[object, ...]]
    ) -> None:
        """Store the template of the calls since the state ``before``, at the second occurrence of the key."""
        begin, state = before
        if len(TEMPLATES) > MAX_TEMPLATES:
            clear_templates()
        if key not in TEMPLATES:
            TEMPLATES[key] = True
            return
        template = template_of(self.calls, operands, results, begin) if self._state()[1] == state else None
        TEMPLATES[key] = None if template is None else (*template, prim)

    def _record_without_template(self, prim: Primitive, operands: Sequence[TensorLike], params: Params) -> Any:
        key = _cache_key(prim, operands, params)
        transparent = _TRANSPARENT.get(key)
        if transparent is False:
            return self._record_opaquely(prim, operands, params)
        try:
            found = self._record_calls(prim, operands, params)
        except np.linalg.LinAlgError:  # other values may not raise: do not cache
            return self._record_opaquely(prim, operands, params)
        if transparent is None and not self._primitive_depth:
            if len(_TRANSPARENT) > _MAX_ENTRIES:
                _TRANSPARENT.clear()
            _TRANSPARENT[key] = transparent = found is not None and _has_bits_of(
                found[0], prim.value(*arrays_in(operands), **params)
            )
            if not transparent and found is not None:
                self.drop(found[1])
        if found is None or transparent is False:
            return self._record_opaquely(prim, operands, params)
        return found[0]

    def _record_calls(self, prim: Primitive, operands: Sequence[TensorLike], params: Params) -> Any:
        """Run a primitive's value function on traced values. Return the result and the index of its first call, or None."""
        begin, outer = len(self.calls), self._op_name
        refusal, outer_error = self.refusal, self.data_dependent_error
        self._op_name = outer or prim.name
        self._primitive_depth += 1
        try:
            out = prim.value(*operands, **params)
        except ByValue:
            raise
        except Exception as error:
            # if the operands are wrong, recording the primitive as one call raises again
            self.drop(begin)
            first = self.data_dependent_error or error
            self.refusal, self.data_dependent_error = refusal, outer_error
            if isinstance(first, np.linalg.LinAlgError):
                raise first from None
            del first  # the frames of its traceback, this one included, refer to the operands
            return None
        finally:
            self._op_name = outer
            self._primitive_depth -= 1
        parts = out if isinstance(out, tuple) else (out,)
        if not all(type(part) is Traced for part in parts):  # the value function converted to plain arrays
            self.drop(begin)
            return None
        return out, begin

    def _record_opaquely(
        self, prim: Primitive, operands: Iterable[TensorLike], params: Params, pure: bool = True
    ) -> Any:
        """Record a primitive as one call of its value function."""
        return self.call(PrimitiveFunction(prim, params), "", tuple(operands), {}, pure, op_name=prim.name)

    # -- reading, drawing ----------------------------------------------------------------------------------------------

    def read(self, traced: Traced) -> NumpyArray:
        """Return the values for Python code and add a guard: the trace is valid only for these values."""
        if self._primitive_depth:
            raise _ValueReadInPrimitive
        var = traced.var
        if var.number not in self._read_vars:
            self._read_vars.add(var.number)
            guard = ValueGuard(len(self.calls), var)
            note_frame(guard, sys._getframe(1))
            self.guards.append(guard)
        values = with_strides(var.array, var.array.strides)  # the rounding of a sum depends on the strides
        values.flags.writeable = False
        self.note_values(var.array, values)  # in eager code it is the same memory
        return values

    @property
    def is_drawing(self) -> bool:
        """Whether a recorded draw of random numbers is running."""
        return self._drawing

    def record_draw(self, draw: AnyFunction, *args: object) -> Any:
        """Record a draw of random numbers, which each replay repeats."""
        self._drawing = True
        try:
            return self.call(draw, "", args, {}, pure=False, op_name="random")
        finally:
            self._drawing = False

    def register_generator(self, source: Any) -> None:
        """Register a generator before its use. Raise if the draw is not recorded."""
        if not self._drawing:
            raise Unrecordable("it draws random numbers that depend on values")
        if not any(source is registered for registered, _ in self.generator_states):
            self.generator_states.append((source, source._get_state()))


def _connect_trace() -> Any:
    """Connect the C implementation of recording and return its function for ufuncs; None without the extension."""
    if LOOPS is None:
        return None
    LOOPS.connect_trace(
        Recorder, Traced, Var, TracedCall, ErrorState, vars(warnings), fp_warnings.VARIABLE, is_in_try_block, np.add
    )
    for name, ufunc in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("truediv", np.true_divide)):
        for reflected in (False, True):
            method = f"__r{name}__" if reflected else f"__{name}__"
            setattr(Traced, method, LOOPS.traced_operator(getattr(Traced, method), ufunc, reflected))
    Traced.__neg__ = LOOPS.traced_operator(Traced.__neg__, np.negative, False)  # type: ignore[method-assign]
    LOOPS.connect_templates(TemplateItem, TemplateStep, TEMPLATES, without_overlap)
    return LOOPS.trace_ufunc


_TRACE_UFUNC = _connect_trace()
_TRACE_TEMPLATE = None if LOOPS is None else LOOPS.trace_template


def _unshared_count() -> int:
    """Return the value of ``sys.getrefcount`` for an array in ``exported_arrays`` that has no other references."""
    (count,) = [sys.getrefcount(array) for array, _ in [(np.empty(1), 0)]]
    return count


_UNSHARED_COUNT = _unshared_count()


def _power_by_float(x: AnyArray, exponent: object) -> AnyArray:
    """Return ``x ** exponent`` for a Python float. NumPy computes some exponents by special functions (``np.sqrt``)."""
    return x ** (exponent.item() if isinstance(exponent, (ndarray, np.generic)) else exponent)


#: ufuncs with correctly rounded results, which do not depend on the memory layout
_CORRECTLY_ROUNDED = frozenset(
    [np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.absolute, np.sqrt, np.square]
)
#: functions that take Python floats, or convert them to arrays
_TAKES_FLOATS = frozenset({np.astype, _power_by_float})
#: functions whose 0-d results are NumPy scalars in eager code, though they are arrays in the trace
_SCALAR_RESULTS = frozenset({operator.getitem})
#: functions that equal ``np.dot`` for two real vectors
_DOTS = frozenset({np.dot, np.inner, np.vdot})
#: modules that implement Arrays, which behave like ndarrays
_ARRAY_MODULES = frozenset({"chainrule._src.api.array", "chainrule._src.ops.array"})
#: functions whose result for a NumPy scalar differs from that for a 0-d array
_DISTINGUISH_SCALARS = frozenset({np.nanmax, np.nanmin})
#: functions whose result depends on shapes and dtypes only
_SHAPE_FUNCTIONS = frozenset(
    {
        np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.iscomplexobj, np.isrealobj, np.common_type,
        np.may_share_memory, np.shares_memory, np.min_scalar_type,
    }
)  # fmt: skip
#: types of arguments that contain no arrays
_SIMPLE = frozenset({int, float, complex, bool, str, type(None), type(Ellipsis)})
#: cache key -> whether a primitive can be recorded as the NumPy calls of its value function, with the same bits
_TRANSPARENT: dict[object, bool] = {}
_MAX_ENTRIES = 4096


@functools.cache
def _op_names() -> dict[object, str]:
    """Return the name of the primitive of each ufunc."""
    return {prim.value: name for name, prim in [*TABLE.items()][::-1] if isinstance(prim.value, np.ufunc)}


def _is_derived(node: Node) -> bool:
    """Return whether the pullback of a node is that of its primitive, which may have been compiled after the node was made."""
    return node.pullback is node.prim.pullback or node.pullback.__module__ == kinds.__name__


def _cache_key(prim: Primitive, operands: Sequence[TensorLike], params: Params) -> tuple[object, ...]:
    parts: list[object] = [prim.name]
    for x in operands:
        if type(x) is Traced:
            parts.append((x.var.shape, x.var.dtype, x.var.array.strides))
        elif type(x) is ndarray:
            parts.append((x.shape, x.dtype, x.strides))
        else:
            parts.append(type(x))
    for name, value in params.items():
        parts.append((name, repr(value) if type(value) is not ndarray else (value.shape, value.dtype)))
    return tuple(parts)


def _has_bits_of(result: Any, expected: AnyArray) -> bool:
    """Return whether traced results have the bits and strides of the results that the value function computes on arrays."""
    results = result if isinstance(result, tuple) else (result,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    return len(results) == len(wanted) and all(
        same_bits(r.var.array, np.asarray(w)) and same_strides(r.var.array, np.asarray(w))
        for r, w in zip(results, wanted, strict=True)
    )


def _without_scalars(args: tuple[object, ...]) -> tuple[Any, ...]:
    """Return arguments with NumPy scalars replaced by 0-d arrays."""
    return tuple([x.as_array() if type(x) is Traced else x for x in args])


def _is_part(array: NumpyArray, base: object) -> bool:
    """Return whether an array is a view of a contiguous, aligned array that owns its memory."""
    if type(base) is not ndarray or base.base is not None or base.dtype != array.dtype or base.dtype.hasobject:
        return False
    return base.flags.forc and base.flags.aligned
