"""Writing down the NumPy calls on the values of one level, as the function that makes them runs."""

from __future__ import annotations

import operator
import sys
import warnings
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import lying_at, overlaps_itself, same_strides, with_strides
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, NumpyDType, Params, TensorLike
from chainrule._src.interpreters.known_arrays import KnownArrays, memory_key
from chainrule._src.interpreters.rebuilt import ARITHMETIC, SAME_AS_UFUNC, Place, Rebuilt
from chainrule._src.interpreters.recorded import AsArray, ByValue, RowCallable, TracedCall, Unrecordable, ValueRead, Var
from chainrule._src.interpreters.same_bits import multiplies_alike, same_bits
from chainrule._src.interpreters.traced import Traced, arrays_in, scalar_square
from chainrule._src.interpreters.treatment import FLOATING_POINT, Treatment, is_tried
from chainrule._src.messages.places import note_frame
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape import warned
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import LOCAL, leave_watched, set_watched
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import digest, owner
from chainrule._src.tape.view import base_of

ndarray = np.ndarray
_new = object.__new__


class _ReadInRow(Exception):
    """A row's value looked at numbers: it can only be called whole."""


class Recorder(KnownArrays):
    """Writes down the calls on the values of one level. It is this thread's ``LOCAL.recorder`` while it does.

    Attributes:
        sources: generators that random numbers were drawn from, and their states before.
        ignored: the kinds of floating-point exceptions that a part of the function ignores.
        handled: those that a part of it has treated in another way than what is around it: it may look whether there are any.
        refusal: why the function cannot be recorded, once that is known; raised: what a call of NumPy's raised.
        failed: the type of what the last such call raised, be it only because of the shapes.
        written_array: the tensor of the Array that is written into, by NumPy's rules.
        numpy_error: what NumPy's own function raised, where ours is tried instead.
        unviewed: a function whose result is a view in plain code, and here is none.
        depth: how many transformations the code that runs is inside of, of those without a level.
        with_arrays: whether Arrays are among the arguments.
        scalars: numbers of Vars that plain code has as scalars of NumPy's.
        weak: numbers of Vars that plain code has as floats of Python's, whose dtype is that of what they meet.
        created: numbers of Vars that are the data of tensors or Arrays which the program creates (``np.zeros_like(x)``).
    """

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[tuple[Any, Any]] = []
        self.ignored: set[str] = set()
        self.handled: set[str] = set()
        self.refusal: Unrecordable | None = None
        self.raised: Exception | None = None
        self.failed: type | None = None
        self.numpy_error: Exception | None = None
        self.written_array: weakref.ref[Tensor] | None = None
        self.unviewed = ""
        self._viewed: AnyFunction | None = None
        self._around = Treatment()
        self.depth = 0
        self.with_arrays = False
        self.scalars: set[int] = set()
        self.weak: set[int] = set()
        self.created: set[int] = set()
        self._row: str = ""
        self._inside_row = 0
        self._drawing = False
        self._read: set[int] = set()

    def __enter__(self) -> Recorder:
        set_watched()
        LOCAL.recorder = self
        return self

    def __exit__(self, *exc: object) -> None:
        LOCAL.recorder = None
        leave_watched()
        for entry in self.lifted.values():
            tensor = entry.ref()
            if tensor is not None and type(tensor._raw) is not ndarray:
                tensor._raw = entry.raw
                entry.moved = tensor._edge is not entry.here
                tensor._edge = entry.edge

    # -- arrays --------------------------------------------------------------------------------------------------------

    def var_of_plain(self, array: NumpyArray) -> Var:
        """A plain array as an array of the program: a view, as a row of data, is one there, too."""
        self.met[id(array)] = array
        var = self.arrays.get(id(array))
        base: Any = array.base
        if var is not None or not _is_part(array, base):
            return var or self.bases.get(id(array)) or self.var_of(array)
        lies = memory_key(array)
        var = self.parts.get(lies)
        if var is None:
            whole = self.bases.get(id(base)) or self.arrays.get(id(base))
            if whole is None or any([entry.var is whole for entry in self.lifted.values()]):  # that may get other data
                whole = self.bases[id(base)] = self.new(base)
            place = lies[0][0] - base.__array_interface__["data"][0], array.shape, array.strides
            given = Traced(whole, self.level), *place
            var = self.parts[lies] = self.note(lying_at, "", given, {}, (array,), False).var
            self.contents.append((var, digest(array)))
        return var

    def drop(self, begin: int) -> None:
        """Forget the calls from here on, but for views of arrays from outside, which may be used again."""
        self.calls[begin:] = [call for call in self.calls[begin:] if call.function is lying_at]

    def traced(self, data: object) -> Traced:
        return data if type(data) is Traced else Traced(self.var_of_plain(np.asarray(data)), self.level, plain=True)

    def bring_all(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Bring the tensors among operands to the level of the recording; return the operands.

        Arrays that stand beside tensors become values of the level: derivatives compute with what the tape saves.
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
                self.bring(x)
        if not (plain and others):
            return operands
        return [self.traced(x) if type(x) is ndarray and x.dtype.kind in "fc" else x for x in operands]

    def made(self, tensor: Tensor, data: NumpyArray) -> Traced | NumpyArray:
        """What a tensor that is made while recording holds in the place of an array."""
        if self._drawing:
            return data
        var = self.var_of_plain(data)
        self.cells[id(tensor)] = (weakref.ref(tensor), var)
        self.created.add(var.number)
        value = Traced(var, self.level, plain=True)
        self.note_holder(tensor, value)
        return value

    def held(self, tensor: Tensor, data: AnyArray) -> Any:
        """Note that a tensor is given other values: if its memory is an array of the program, that is to change.

        Returns:
            What it is to hold.
        """
        view = tensor._view
        base = tensor if view is None else view.base
        if self.lent and any(ref() is base and sys.getrefcount(array) > _LENT for array, _, ref in self.lent):
            raise Unrecordable("it writes into an array that np.asarray was called with before")
        if self.unviewed:
            raise Unrecordable(f"it writes into arrays, and {self.unviewed} gives a view that is not recorded as one")
        cell = self.cells.get(id(base))
        if cell is not None and cell[0]() is base:
            if not cell[1].array.flags.writeable:
                self.raised = ValueError("assignment destination is read-only")
                raise self.raised
            self._set_apart(cell[1])
            self.written[cell[1].number] = (base, cell[1])
        old = getattr(tensor, "_raw", None)
        if type(data) is Traced and not data.shape and self.is_array(old) and not self.is_array(data):
            return self.call(np.copy, "", (data.as_array(),), {})  # an array that a number is written into is still one
        return data

    def check_view(self, function: AnyFunction, result: object) -> None:
        """Look whether what is a view in plain code is one here."""
        expected, self._viewed = self._viewed, None
        if expected is function and isinstance(result, Tensor) and result._view is None:
            self.unviewed = self.unviewed or f"np.{function.__name__}"

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call(
        self,
        function: AnyFunction,
        method: str,
        args: tuple[object, ...],
        kwargs: Params,
        pure: bool = True,
        row: str = "",
    ) -> Any:
        """Call a function of NumPy's arrays, and note it. Results that are arrays are values of this level."""
        strong = not (self.weak and self.narrow) or function in _OF_FLOATS or type(function) is Rebuilt
        if not strong and any(map(self._is_weak, _flat(args))):
            raise ByValue("a float of Python's takes part in what is not NumPy's")
        if function is np.square and type(args[0]) is Traced and args[0].dtype.kind == "c" and args[0].scalar:
            function, method = scalar_square, ""
        elif type(function) is not np.ufunc:
            if function in _TELL_SCALARS and type(args[0]) is Traced and args[0].scalar:
                function, method, args, kwargs = self.rebuilt(function, args, kwargs)
            if function in _DOTS and len(args) == 2 and not kwargs and multiplies_alike(function, *arrays_in(args)):
                function, method = np.matmul, "__call__"
        if method == "__call__" and not kwargs and type(function) is np.ufunc:
            if _TRACE_UFUNC is not None and pure:
                found = _TRACE_UFUNC(self, function, args, row or self._row)
                if found is not NotImplemented:
                    return found
            given = tuple([x.var.array if type(x) is Traced and not x.scalar else arrays_in(x) for x in args])
            out = self._called(function, given, kwargs)
            if type(out) is ndarray:
                return self.note(function, method, args, kwargs, (out,), False, pure, row)
        else:
            given = arrays_in(
                _without_scalars(args) if function in _OF_ARRAYS and not _drops_axes(function, args) else args
            )
            named = arrays_in(kwargs) if kwargs else kwargs
            out = self._called(getattr(function, method) if method else function, given, named)
        several = type(out) is not ndarray and isinstance(out, (tuple, list))
        parts = tuple(out) if several else (out,)
        if type(out) is ndarray:
            for x, y in zip(args, given, strict=False):
                if y is out:
                    return x if type(x) is Traced else self.traced(x)
        elif not all([isinstance(part, (ndarray, np.generic)) for part in parts]):
            return self._plain_result(function, method, args, kwargs, out)
        if not isinstance(function, np.ufunc):
            parts = tuple([_spread(part, given) for part in parts])
        return self.note(function, method, args, kwargs, parts, several, pure, row)

    def _called(self, function: AnyFunction, args: tuple[object, ...], kwargs: Params) -> Any:
        """What a function gives. The program may handle what it raises, and then goes another way than with other numbers."""
        self._around.looked_at = False
        if self._around.changed():
            self._look_for_exceptions(function, args, kwargs)
        self.failed = None
        try:
            return function(*args, **kwargs)
        except (TypeError, np.exceptions.AxisError) as error:  # follows from shapes and dtypes
            self.failed = type(error)
            raise
        except Exception as error:
            self.failed = type(error)
            if not isinstance(error, IndexError) or sum([type(x) is ndarray for x in _flat(args)]) > 1:
                self.raised = self.raised or error  # one array has no element beyond its shape
            raise

    def _look_for_exceptions(self, function: AnyFunction, args: tuple[object, ...], kwargs: Params) -> None:
        """Note how floating-point exceptions are treated here, and refuse if one comes that the program may look at."""
        ignored, handled = self._around.differences()
        self.ignored |= ignored
        self.handled |= handled
        self._around.looked_at = bool(handled)
        if not handled or self._drawing or (type(function) is RowCallable and not function.prim.listed):
            return
        met: list[str] = []
        with np.errstate(all="call", call=lambda kind, flag: met.append(kind)):
            try:
                function(*args, **kwargs)
            except Exception:  # it will be raised again
                return
        if any(FLOATING_POINT[kind] in handled for kind in met):
            self.refuse_for_now("it handles a floating-point exception itself")

    def handles(self, error: Exception) -> None:
        """Note that the program is about to handle an exception: one of ours may be another one in plain code."""
        modules, trace = set(), error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is Recorder._called.__code__:
                return  # it is NumPy's
            modules.add(trace.tb_frame.f_globals.get("__name__"))
            trace = trace.tb_next
        alike = isinstance(error, (TypeError, AttributeError)) if self.failed is None else type(error) is self.failed
        if not alike and not modules.isdisjoint(_FACES):
            self.raised = self.raised or error

    def refuse_for_now(self, reason: str) -> None:
        """Have the function not recorded this time."""
        if self.refusal is None:
            self.refusal = Unrecordable(reason)
            self.refusal.perhaps_later = True

    def check_refused(self) -> None:
        """Raise if the function did, and perhaps caught, what cannot be recorded."""
        if self.raised is not None:
            self.refuse_for_now(f"it handles an exception ({type(self.raised).__name__}) itself")
        if self.refusal is not None:
            raise self.refusal

    # -- floats of Python's --------------------------------------------------------------------------------------------

    def on_floats(self, operation: AnyFunction, *operands: TensorLike) -> Any:
        """An operator on floats of Python's alone, which gives one of Python's; None: it is something else."""
        known = ARITHMETIC.get(operation)
        if known is None or not all(self._is_weak(x) or type(x) in (int, float, bool, complex) for x in operands):
            return None
        out = self._called(known, arrays_in(operands), {})
        function: AnyFunction = known
        method = ""
        if operation in SAME_AS_UFUNC and all([type(x) is not int or abs(x) < 1 << 53 for x in operands]):
            function, method = SAME_AS_UFUNC[operation], "__call__"
        traced = self.note(function, method, operands, {}, (np.asarray(out),), False)
        if type(out) is not float:
            return self.read(traced).item()
        self.weak.add(traced.var.number)
        return traced

    def _as_strong(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Operands of a ufunc with Python's floats as arrays of the dtype that they take among the others."""
        if not any(map(self._is_weak, args)):
            return args
        target = self._dtype_of_floats(args)
        strong = [x.astype(target, copy=True) if self._is_weak(x) else x for x in args]
        self.scalars.update([x.var.number for x, given in zip(strong, args, strict=True) if x is not given])
        return tuple([self._plain_value(x) if type(x) is Traced else x for x in strong])

    def _dtype_of_floats(self, args: Sequence[TensorLike]) -> NumpyDType:
        """The dtype that Python's floats take among the operands of a ufunc."""
        others = [x.dtype for x in args if hasattr(x, "dtype") and not self._is_weak(x)]
        return np.zeros(0, np.result_type(*others, 0.0)).real.dtype

    def strong(self, ufunc: np.ufunc, args: tuple[Any, ...]) -> list[Any]:
        """Operands of a ufunc of any values, with Python's floats as arrays of the dtype that they take among the others."""
        weak = [self._is_weak(x) for x in args]
        if all(weak) or not any(weak):
            return list(args)
        if ufunc is np.power and weak[1]:
            raise ByValue("a float of Python's is an exponent where a derivative is taken")
        target = self._dtype_of_floats(args)
        return [x.astype(target, copy=False) if k else x for x, k in zip(args, weak, strict=True)]

    def _with_floats(
        self, function: AnyFunction, method: str, args: tuple[object, ...], kwargs: Params
    ) -> tuple[AnyFunction, str, tuple[Any, ...], Params]:
        """A call in which Python's floats are what they are for the function."""
        if not self.weak or not any(map(self._is_weak, _flat((args, kwargs)))):
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
        """A call as one of arrays alone, for ``call``."""
        arrays: list[Traced] = []

        args, kwargs = self._places(args, arrays), self._places(kwargs, arrays)
        floats = tuple([i for i, x in enumerate(arrays) if self._is_weak(x)])
        scalars = tuple([i for i, x in enumerate(arrays) if self.is_scalar(x) and i not in floats])
        places = tuple([self._places(x, arrays).at for x in written])
        return Rebuilt(function, args, kwargs, floats, scalars, places), "", tuple(arrays), {}

    def _places(self, x: Any, arrays: list[Traced]) -> Any:
        """An argument with places in ``arrays`` instead of its arrays, which are put there."""
        kind = type(x)
        if kind is ndarray:
            x, kind = self.traced(x), Traced
        if kind is Traced:
            known = next((i for i, other in enumerate(arrays) if other.var is x.var), None)
            if known is None:
                arrays.append(x)
            return Place(len(arrays) - 1 if known is None else known)
        if kind is tuple or kind is list:
            return kind([self._places(item, arrays) for item in x])
        if kind is dict:
            return {name: self._places(item, arrays) for name, item in x.items()}
        return slice(*[self._places(item, arrays) for item in (x.start, x.stop, x.step)]) if kind is slice else x

    def _is_weak(self, x: object) -> bool:
        return type(x) is Traced and x.var.number in self.weak

    def note(
        self,
        function: AnyFunction,
        method: str,
        args: tuple[object, ...],
        kwargs: Params,
        parts: tuple[Any, ...],
        several: bool,
        pure: bool = True,
        row: str = "",
    ) -> Any:
        """Note a call whose results are known."""
        call = _new(TracedCall)
        call.function = function
        call.method = method
        call.args = tuple([x.var if type(x) is Traced else x if type(x) in _SIMPLE else self._vars(x) for x in args])
        call.kwargs = {name: self._vars(x) for name, x in kwargs.items()} if kwargs else kwargs
        call.row = row or self._row
        call.pure = pure
        note_frame(call, sys._getframe(1))
        code = call.code
        call.kept = self._around.looked_at or bool(
            code is not None and code.co_exceptiontable and is_tried(code, call.lasti)
        )
        self.calls.append(call)
        alike = self.plain or self.are_plain((args, kwargs) if kwargs else args)
        variables, results = [], []
        for part in parts:
            var = self.new(part if type(part) is ndarray else np.asarray(part))
            result = Traced(var, self.level, alike)
            if not var.shape:
                result.scalar = isinstance(part, np.generic)
                if alike and (result.scalar or function in _OF_ELEMENTS or type(function) is RowCallable):
                    self.scalars.add(var.number)
            variables.append(var)
            results.append(result)
        call.results = tuple(variables)
        return tuple(results) if several else results[0]

    def _plain_result(
        self, function: AnyFunction, method: str, args: tuple[object, ...], kwargs: Params, out: Any
    ) -> Any:
        """What a call returned that is no array: it follows from shapes and dtypes, or it is a value that Python reads."""
        if function in _OF_SHAPES:
            return out
        if not isinstance(out, (bool, int, float, complex)):
            kind = type(getattr(out, "payload", out))  # another library's array
            raise Unrecordable(f"{getattr(function, '__name__', function)} returns {kind.__module__}.{kind.__name__}")
        function = getattr(function, method) if method else function
        traced = self.note(AsArray(function), "", args, kwargs, (np.asarray(out),), False)
        return type(out)(self.read(traced).item())

    def _vars(self, x: Any) -> Any:
        """Arguments with Vars in the place of arrays."""
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
            raise Unrecordable("a slice between traced numbers")
        return x

    @property
    def plain(self) -> bool:
        """Whether the code that runs would compute with plain arrays if nothing was recorded."""
        nothing_around = not self.depth and LOCAL.sweep is None and STACK.levels[-1] is self.level
        return nothing_around and not self.with_arrays

    def are_plain(self, operands: Any) -> bool:
        """Whether what is recorded among operands are arrays in plain code, though derivatives of others may be taken."""
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
            elif kind is tuple or kind is list:
                todo += x
            elif kind is dict:
                todo += x.values()
        return found

    def stands_for(self, data: AnyArray | None) -> type | None:
        """The type that plain code has in the place of a value: ``float``, a scalar of NumPy's, ``ndarray``. None: its own."""
        if type(data) is not Traced or not self.are_plain((data,)):
            return None
        if data.var.number in self.weak:
            return float
        return data.dtype.type if data.var.number in self.scalars else ndarray

    def is_buffer(self, tensor: Tensor) -> bool:
        """Whether an Array is written into that is a plain array in plain code, which carries no derivatives."""
        base = base_of(tensor)
        written = None if self.written_array is None else self.written_array()
        if written is None or not (written is tensor or written is base):
            return False
        cell = self.cells.get(id(written))
        if cell is not None and cell[0]() is written and cell[1].number in self.created:
            return False
        return (tensor if base is None else base)._edge is None and self.stands_for(tensor._raw) is not None

    def is_array(self, data: AnyArray | None) -> bool:
        """Whether what has no dimension is an array in plain code, and no scalar of NumPy's or float of Python's."""
        return self.stands_for(data) is ndarray

    def keep_scalar(self, data: AnyArray) -> None:
        """Note that what has no dimension is a scalar: a method of one gave it."""
        if type(data) is Traced and not data.shape:
            self.scalars.add(data.var.number)

    def is_scalar(self, data: AnyArray) -> bool:
        return type(data) is Traced and data.var.number in self.scalars and self.are_plain((data,))

    def check_not_scalar(self, data: AnyArray) -> None:
        """Raise if a function is to write into a scalar of NumPy's, which some refuse and others copy."""
        if self.stands_for(data) not in (None, ndarray):
            raise Unrecordable("it has NumPy write into a scalar")

    def as_array(self, data: AnyArray) -> AnyArray:
        """The same number in an array without axes, where it is a scalar of NumPy's."""
        if type(data) is Traced and (data.var.number in self.scalars or data.var.number in self.weak):
            return self.call(np.copy, "", (data.as_array(),), {})
        return data

    def keep_array(self, data: AnyArray) -> None:
        """Note that an element is an array without axes: it was asked for with an Ellipsis."""
        if type(data) is Traced:
            self.scalars.discard(data.var.number)

    def as_numpy(self, function: AnyFunction, method: str, args: tuple[object, ...], kwargs: Params) -> Any:
        """Have a function of NumPy's recorded as it is. None: it fails, or its results are views, read-only, or no arrays."""
        begin, read, refusal = len(self.calls), len(self.guards), self.refusal
        self.numpy_error = None
        try:
            function, method, args, kwargs = self._with_floats(function, method, args, kwargs)
            found = self.call(function, method, self._plain_values(args), kwargs)
        except ByValue:
            raise
        except Exception as error:  # ours says why
            found, self.refusal = None, refusal
            if isinstance(error, (TypeError, ValueError, LookupError)):
                self.numpy_error = error
        self._viewed = None
        if type(found) in (bool, int, float, complex):  # which was read
            return found
        parts = found if type(found) is tuple else (found,)
        memory = [x for x in _flat(arrays_in((args, kwargs))) if type(x) is ndarray]
        if not all(
            type(p) is Traced
            and p.var.array.flags.writeable
            and not any(np.may_share_memory(p.var.array, x) for x in memory)
            for p in parts
        ):
            self.drop(begin)
            del self.guards[read:]
            same = type(found) is Traced and any(x is found.var.array for x in memory)
            self._viewed = None if found is None or same else function
            return None
        return found

    def written_by(
        self, function: AnyFunction, args: tuple[TensorLike, ...], kwargs: Params, targets: tuple[Traced, ...]
    ) -> Any:
        """What is in arrays that a function of NumPy's wrote into (``out=``, ``**=``), as its other operands are."""
        operands = [x for x in _flat((args, kwargs)) if type(x) in (Traced, ndarray)]
        for target in targets:
            for x in operands:
                apart = x is target or (type(x) is Traced and x.var is target.var)
                if not apart and np.may_share_memory(arrays_in(x), target.var.array):
                    raise Unrecordable("it has NumPy write into an operand that overlaps another one")
            if overlaps_itself(target.var.array):
                raise Unrecordable("it has NumPy write into an array whose elements share memory")
        return self.call(*self.rebuilt(function, args, kwargs, targets))

    def computes_alike(self, ufunc: np.ufunc, operands: tuple[TensorLike, ...], targets: Sequence[AnyArray]) -> bool:
        """Whether a ufunc that writes into an array gives what it gives in an array of its own."""
        if len(targets) != 1 or ufunc.signature is not None or ufunc not in _EXACT:
            return False
        (target,) = targets
        dtypes = [x.dtype for x in (*operands, target) if not self._is_weak(x) and hasattr(x, "dtype")]
        return target.dtype.kind in "fiub" and all([dtype == target.dtype for dtype in dtypes])

    def as_operator(self, operation: AnyFunction, x: TensorLike, *other: TensorLike) -> Any:
        """Have an operator recorded as plain code computes it, with scalars and floats where that has some."""
        if not other:
            return operation(self._plain_value(x))
        (y,) = other
        is_array = type(x) is ndarray or (type(x) is Traced and x.var.number not in self.scalars)
        if operation is operator.pow and self._is_weak(y) and is_array:
            return self.call(_power_by_float, "", (x, y), {})
        x, y = self._as_strong((x, y))
        return operation(self._plain_value(x), self._plain_value(y))

    def are_integers(self, operands: tuple[TensorLike, ...]) -> bool:
        """Whether these are scalars of NumPy's and integers alone: of these, unlike of arrays, overflows are warned of."""
        return all(
            [self.is_scalar(x) if type(x) is Traced else isinstance(x, (int, np.integer)) for x in operands]
        ) and all([x.dtype.kind in "iub" for x in operands if type(x) is Traced])

    def of_integers(self, operation: AnyFunction, operands: tuple[TensorLike, ...]) -> Any:
        """Have an operator on integers recorded as it is."""
        found = self.call(*self.rebuilt(operation, operands, {}, ()))
        self.keep_scalar(found)
        return found

    def _plain_values(self, x: Any) -> Any:
        """Arguments with scalars where plain code has some."""
        kind = type(x)
        if kind is tuple or kind is list:
            return kind([self._plain_values(item) for item in x])
        return self._plain_value(x)

    def _plain_value(self, x: TensorLike) -> Any:
        if type(x) is Traced and x.var.number in self.scalars:
            x = Traced(x.var, x.level, x.plain)
            x.scalar = True
        return x

    # -- rows ----------------------------------------------------------------------------------------------------------

    def row(self, prim: Primitive, operands: Sequence[TensorLike], params: Params) -> Any:
        """An operation of ours: the NumPy calls that compute it, or one call of its value."""
        value = prim.value
        if isinstance(value, np.ufunc) and not params:
            return self.call(value, "__call__", tuple(operands), {}, row=prim.name)
        if not prim.listed and prim.kind != "function":
            return self._whole(prim, operands, params, pure=False)
        if prim.kind == "function":
            return value(*operands, **params)
        key = _key(prim, operands, params)
        known = _AS_CALLS.get(key)
        if known is False:
            return self._whole(prim, operands, params)
        try:
            found = self._as_calls(prim, operands, params)
        except np.linalg.LinAlgError:  # these numbers say nothing about others
            return self._whole(prim, operands, params)
        if known is None and not self._inside_row:
            if len(_AS_CALLS) > _MOST:
                _AS_CALLS.clear()
            _AS_CALLS[key] = known = found is not None and _same(found, value(*arrays_in(operands), **params))
            if not known and found is not None:
                self.drop(found[1])
        if found is None or known is False:
            return self._whole(prim, operands, params)
        return found[0]

    def _as_calls(self, prim: Primitive, operands: Sequence[TensorLike], params: Params) -> Any:
        """Compute a row's value on the values of this level; the result, and where its calls begin. None: it is not possible."""
        begin, outer = len(self.calls), self._row
        refusal, raised = self.refusal, self.raised
        self._row = outer or prim.name
        self._inside_row += 1
        try:
            out = prim.value(*operands, **params)
        except ByValue:
            raise
        except Exception as error:  # whatever it was: calling it whole says it again, if it is the user's
            self.drop(begin)
            first = self.raised or error
            self.refusal, self.raised = refusal, raised
            if isinstance(first, np.linalg.LinAlgError):
                raise first from None
            del first  # whose frames, this one among them, hold the operands
            return None
        finally:
            self._row = outer
            self._inside_row -= 1
        parts = out if isinstance(out, tuple) else (out,)
        if not all(type(part) is Traced for part in parts):  # it went by the numbers, by another way
            self.drop(begin)
            return None
        return out, begin

    def _whole(self, prim: Primitive, operands: Iterable[TensorLike], params: Params, pure: bool = True) -> Any:
        return self.call(RowCallable(prim, params), "", tuple(operands), {}, pure, row=prim.name)

    # -- reading, drawing ----------------------------------------------------------------------------------------------

    def read(self, traced: Traced) -> NumpyArray:
        """The numbers, for Python: the recording relies on them from here on."""
        if self._inside_row:
            raise _ReadInRow
        var = traced.var
        if var.number not in self._read:
            self._read.add(var.number)
            guard = ValueRead(len(self.calls), var)
            note_frame(guard, sys._getframe(1))
            self.guards.append(guard)
        values = with_strides(var.array, var.array.strides)  # a sum of them depends on it
        values.flags.writeable = False
        self.sharing[id(owner(var.array))].append(weakref.ref(values))  # in eager it is that memory
        return values

    @property
    def draws(self) -> bool:
        """Whether random numbers are being drawn, by a call that is repeated."""
        return self._drawing

    def drawn(self, draw: AnyFunction, *given: object) -> Any:
        """Random numbers of a shape, or of arrays: drawn anew whenever the recording is replayed."""
        self._drawing = True
        try:
            return self.call(draw, "", given, {}, pure=False, row="random")
        finally:
            self._drawing = False

    def drawing_from(self, source: Any) -> None:
        """Called when a generator is about to be used."""
        if not self._drawing:
            raise Unrecordable("random numbers are drawn that depend on values")
        if not any(source is known for known, _ in self.sources):
            self.sources.append((source, source._get_state()))


def _connect_trace() -> Any:
    """Have calls of ufuncs appended in C; return the function that does so, or None without the extension."""
    if LOOPS is None:
        return None
    LOOPS.connect_trace(Traced, Var, TracedCall, Treatment, vars(warnings), warned.VARIABLE, is_tried, np.add)
    for name, ufunc in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("truediv", np.true_divide)):
        for reflected in (False, True):
            method = f"__r{name}__" if reflected else f"__{name}__"
            setattr(Traced, method, LOOPS.traced_operator(getattr(Traced, method), ufunc, reflected))
    Traced.__neg__ = LOOPS.traced_operator(Traced.__neg__, np.negative, False)  # type: ignore[method-assign]
    return LOOPS.trace_ufunc


_TRACE_UFUNC = _connect_trace()


def _references_of_lent() -> int:
    """What ``sys.getrefcount`` says of a lent array that nobody else has."""
    (count,) = [sys.getrefcount(array) for array, _ in [(np.empty(1), 0)]]
    return count


_LENT = _references_of_lent()


def _power_by_float(x: AnyArray, exponent: object) -> AnyArray:
    """``x ** exponent`` by a float of Python's, for some of which NumPy has functions of their own."""
    return x ** (exponent.item() if isinstance(exponent, (ndarray, np.generic)) else exponent)


#: ufuncs that give the one right result for each element, wherever the elements lie
_EXACT = frozenset(
    [np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.absolute, np.sqrt, np.square]
)
#: what takes floats of Python's as such, or makes arrays of them
_OF_FLOATS = frozenset({np.astype, _power_by_float})
#: functions whose results of no dimension are scalars of NumPy's in plain code, though they are arrays here
_OF_ELEMENTS = frozenset({operator.getitem})
#: functions that give for a scalar of NumPy's (if not to be without axes again) what they give for an array, which is a view
_OF_ARRAYS = frozenset(
    {
        operator.getitem, np.broadcast_to, np.reshape, np.ravel, np.expand_dims, np.atleast_1d, np.atleast_2d, np.atleast_3d,
    }
)  # fmt: skip
#: functions that are `np.dot` of two vectors of numbers that are not complex
_DOTS = frozenset({np.dot, np.inner, np.vdot})
#: where Arrays do what plain arrays do
_FACES = frozenset({"chainrule._src.api.array", "chainrule._src.ops.array"})
#: functions that give another result for a scalar of NumPy's than for an array
_TELL_SCALARS = frozenset({np.nanmax, np.nanmin})
#: functions whose result follows from shapes and dtypes
_OF_SHAPES = frozenset(
    {
        np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.iscomplexobj, np.isrealobj, np.common_type,
        np.may_share_memory, np.shares_memory, np.min_scalar_type,
    }
)  # fmt: skip
#: types of arguments that have no arrays in them
_SIMPLE = frozenset({int, float, complex, bool, str, type(None), type(Ellipsis)})
#: whether a row at operands of certain shapes and dtypes can be recorded as the NumPy calls that its value makes
_AS_CALLS: dict[object, bool] = {}
_MOST = 4096


def _key(prim: Primitive, operands: Sequence[TensorLike], params: Params) -> tuple[object, ...]:
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


def _same(found: Any, expected: AnyArray) -> bool:
    """Whether a recorded result has the bits of what the row's value gives for arrays."""
    results = found[0] if isinstance(found[0], tuple) else (found[0],)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    return len(results) == len(wanted) and all(
        same_bits(r.var.array, np.asarray(w)) and same_strides(r.var.array, np.asarray(w))
        for r, w in zip(results, wanted, strict=True)
    )


def _without_scalars(args: tuple[object, ...]) -> tuple[Any, ...]:
    """Arguments with arrays without axes in the place of NumPy's scalars."""
    return tuple([x.as_array() if type(x) is Traced else x for x in args])


def _drops_axes(function: AnyFunction, args: tuple[object, ...]) -> bool:
    """Whether the result has no axes whatever the operand is like."""
    return function is np.reshape and any(type(x) is tuple and not x for x in args[1:])


def _flat(x: Any) -> list[Any]:
    """What is in containers."""
    if type(x) is dict:
        x = tuple(x.values())
    return [y for item in x for y in _flat(item)] if type(x) in (tuple, list) else [x]


def _is_part(array: NumpyArray, base: object) -> bool:
    """Whether an array is a view of one that has its memory to itself, without gaps."""
    if type(base) is not ndarray or base.base is not None or base.dtype != array.dtype or base.dtype.hasobject:
        return False
    return base.flags.forc and base.flags.aligned


def _spread(part: AnyArray, given: object) -> AnyArray:
    """An array with a place in memory for every element, unless it is a view of an operand.

    Elements that a function gives one place today may be different ones tomorrow.
    """
    if type(part) is not ndarray or 0 not in part.strides or part.size < 2:
        return part
    if any(type(x) is ndarray and np.may_share_memory(part, x) for x in _flat(given)):
        return part
    return part.copy()
