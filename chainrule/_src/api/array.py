"""``Array``: the NumPy-style API of a tensor, with NumPy's methods, defaults, indexing and promotion.

An ``Array`` wraps a tensor, so the tape, the op table and all transformations handle tensors only. Functions that are given
NumPy arrays receive Arrays. Operations on Arrays return Arrays; if one operand is a Tensor, they return a Tensor. This module
has the class and the conversions in both directions; its operators and methods are in ``ops.array``.
"""

# ruff: noqa: SIM905 -- lists of names are easier to read as split strings

from __future__ import annotations

import functools
import importlib
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from opcode import opmap
from sys import _getframe
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule._src.arrays.libraries import is_container, is_foreign
from chainrule._src.arrays.types import (
    AnyArray,
    AnyFunction,
    Casting,
    Index,
    IntoArray,
    NumpyDType,
    Params,
    TensorLike,
)
from chainrule._src.messages import errors
from chainrule._src.messages.source_locations import PACKAGE
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.foreign_operands import (
    PANDAS_PRIORITY,
    caller_rejects_objects,
    defers_to_operand,
    no_array,
    raise_to_defer,
    reraise_error_caught_by_scipy,
)
from chainrule._src.tape.overriding import PLAIN, call_override, iterate_operands, overriding_arguments
from chainrule._src.tape.protocol import (
    CALLBACKS,
    FUNCTIONS,
    UFUNCS,
    ArrayLike,
    as_plain_array,
    call_function,
    call_ufunc,
    check_kinds,
    check_out,
    find,
    find_ufunc,
    fixed_axes,
    implementation_of,
    memory_of,
    out_position,
)
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.view import copy_scalar_view, is_read_only

ndarray = np.ndarray
new = object.__new__
_OBJECT = np.dtype(object)


def has_attribute(name: str) -> bool:
    """Return whether an Array has an attribute of this name."""
    return hasattr(Array, name) or name in _AUTOGRAD or name in _ASKED


#: Attributes that an Array takes from its tensor under PyTorch's names; an ndarray has none of them.
_AUTOGRAD = frozenset(
    "backward detach grad_fn graph is_leaf output_nr requires_grad_ retain_grad retains_grad why".split()
)
#: Methods that NumPy calls on the elements of object arrays: np.sin(np.array([x[0], x[1]])) calls x[0].sin().
_ASKED = {
    name: f
    for name, f in vars(np).items()
    if isinstance(f, np.ufunc) and (f.nin == 1 or name in ("arctan2", "fmod", "hypot"))
}


if TYPE_CHECKING:
    from chainrule._src.api.array_methods import ArrayMethods  # a stub of the methods that ops/array.py attaches
else:
    ArrayMethods = object


class Array(ArrayMethods):
    """An array that autograd can follow, with the interface of ``numpy.ndarray``.

    Args:
        data: a Tensor to wrap (nothing is copied), or anything ``numpy.array`` accepts (copied).
        dtype: the dtype, as in ``numpy.array``.
        requires_grad: whether to record operations on the array.

        ``array.tensor`` is the same array with the PyTorch-style API. ``backward()``, ``grad``, ``requires_grad``, ``grad_fn``,
        ``detach()`` and hooks are those of the tensor.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = cr.Array([1., 2., 4.], requires_grad=True)
    >>> y = x.std()                        # NumPy's: divided by n
    >>> y.backward()
    >>> y, x.grad.round(4)
    (array(1.24721913, grad_fn=<StdBackward0>), array([-0.3563, -0.0891,  0.4454]))
    """

    __module__ = "chainrule"
    __slots__ = ("__weakref__", "_tensor")
    __array_priority__ = 1000.0
    __pandas_priority__ = PANDAS_PRIORITY
    __hash__ = None  # type: ignore[assignment]

    _tensor: Tensor

    if TYPE_CHECKING:  # attached by ``ops.array``
        shape: tuple[int, ...]
        dtype: NumpyDType
        size: int

        def __getitem__(self, index: Index) -> Any: ...
        def __setitem__(self, index: object, value: object) -> None: ...

    def __init__(self, data: Any, dtype: Any = None, *, requires_grad: bool = False) -> None:
        if isinstance(data, (list, tuple)) and (holds(data, Array) or holds(data, Tensor)):
            data = implementation_of(np.array, ())(as_tensors(data))
        data = plain_or_stacked(data._tensor if isinstance(data, Array) else data)
        if is_foreign(type(data)):
            data = wrap(as_plain_array(data))
        if not isinstance(data, Tensor):
            data = wrap(np.array(data, dtype))
        elif dtype is not None:
            data = implementation_of(np.astype, ())(data, dtype)
        self._tensor = data.requires_grad_() if requires_grad else data

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """``Array``; while a function is recorded, the type that the array stands for, so that ``isinstance`` works in user code."""
        if trace_hooks.is_tracing() and not _getframe(1).f_code.co_filename.startswith(PACKAGE):
            return trace_hooks.eager_type(self._tensor._raw) or Array
        return Array

    @property
    def tensor(self) -> Tensor:
        """The same array with PyTorch's methods."""
        return self._tensor

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this array."""
        return self._tensor.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._tensor.requires_grad = value

    @property
    def grad(self) -> Array | None:
        """The accumulated gradient of a leaf."""
        return _shared(self._tensor.grad)

    @grad.setter
    def grad(self, value: object) -> None:
        self._tensor.grad = None if value is None else Array(value)._tensor

    def register_hook(self, hook: Callable[[AnyArray], AnyArray]) -> Any:
        """Call ``hook(grad)`` with an Array when the gradient is computed; a returned array replaces it."""

        def call(g: Tensor) -> Tensor | None:
            changed = hook(array_of(g))
            return None if changed is None else Array(changed)._tensor

        return self._tensor.register_hook(call)

    def __getattr__(self, name: str) -> Any:
        if name in _AUTOGRAD:
            return _shared(getattr(self._tensor, name))
        if name in _ASKED:
            return functools.partial(_ASKED[name], self)
        raise_to_defer(name)
        raise errors.no_array_attribute(name)

    # -- NumPy's protocols ----------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: object) -> Any:
        if trace_hooks.is_tracing():
            if ufunc is np.power and out is None and type(inputs[0]) is ndarray and is_operator(_getframe(1), "pow"):
                found = recorded_operator(operator.pow, True, *inputs)
            else:
                found = recorded_as_numpy(ufunc, method, inputs, kwargs, out)
            if found is not None:
                return found
            inputs = with_strong_floats(ufunc, inputs)
        for x in inputs:
            if type(x) not in _HOLDERS and is_container(type(x)):
                return NotImplemented
        if out is None and not kwargs and method == "__call__":
            fast = FAST.get(ufunc)
            if fast is not None:
                return fast(*inputs)
        return apply_ufunc(ufunc, method, inputs, out, kwargs)

    def __array_function__(self, function: AnyFunction, types: Any, args: tuple[object, ...], kwargs: Params) -> Any:
        check_kinds(types)
        if any(map(is_container, types)):
            return NotImplemented
        return apply(function, *args, **kwargs)

    def __array__(self, dtype: NumpyDType | None = None, copy: bool | None = None) -> ndarray:
        if defers_to_operand():
            return no_array()
        recorded = (
            trace_hooks.is_tracing() and trace_hooks.current_recorder().plain
        )  # the recorder must record the conversion
        if (
            (dtype is None or np.dtype(dtype) == _OBJECT)
            and (recorded or not is_plain(self))
            and not caller_rejects_objects()
        ):
            shape = self._tensor._raw.shape
            if not shape or dtype is not None:  # np.array([x[0], x[1]]) holds the elements themselves
                return _select_default(self, _getframe(1))._as_objects(shape, recorded)
        if not is_plain(self) and type(self._tensor._raw) is not Foreign:
            raw = self._tensor._raw
            values = raw if type(raw) is ndarray else raw.read()
            if dtype is not None and np.dtype(dtype).kind in "iub" and values is not None:
                return np.array(values, dtype)  # a step function: the lost derivative is zero
            raise errors.array_to_numpy(self, has_derivative=has_derivative(self))
        if copy is False and dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError("Unable to avoid copy while creating an array as requested: it has another dtype.")
        array = self._tensor.__array__(dtype, copy is not False)  # a copy: the tape may have saved the memory
        return (
            trace_hooks.current_recorder().export_array(self._tensor, array)
            if recorded and not copy and array.dtype == self.dtype
            else array
        )

    def _as_objects(self, shape: tuple[int, ...], notify: bool) -> ndarray:
        """Return an object array of the elements; if ``notify``, notify the recorder of each."""
        holder = np.empty(shape, object)
        for index in np.ndindex(shape):
            holder[index] = element = self[index] if shape else self
            if notify:
                trace_hooks.current_recorder().boxed[id(element._tensor)] = element._tensor
        if notify:
            trace_hooks.current_recorder().object_arrays.append((holder, holder.copy()))
        return holder

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """``chainrule.array_api``: the functions of the Array API standard."""
        tensor: Any = self._tensor
        return tensor.__array_namespace__(api_version=api_version)

    def __dlpack__(
        self, *, stream: object = None, max_version: object = None, dl_device: object = None, copy: bool | None = None
    ) -> Any:
        tensor: Any = self._tensor
        return tensor.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> Any:
        tensor: Any = self._tensor
        return tensor.__dlpack_device__()

    # -- numbers --------------------------------------------------------------------------------------------------

    def _number(self, what: str, step: bool = False) -> float:
        """Return the only element. Raise if its derivative would be lost, unless the caller computes a step function of it."""
        if self._tensor.numel() != 1:
            raise TypeError(
                f"only 0-dimensional arrays can be converted to Python scalars; {what} got shape {self.shape}"
            )
        if self.shape and trace_hooks.eager_type(self._tensor._raw) is ndarray:
            float(np.ones(self.shape))  # raises or not, depending on NumPy's version
        if not step and has_derivative(self):
            if written := errors.written_to_buffer(self):
                raise TypeError(written)
            raise errors.array_to_number(what, errors.instead_of_number(self))
        return self._tensor._asked(f"{what} of an array").item()

    def __float__(self) -> float:
        return float(self._number("float()"))

    def __complex__(self) -> complex:
        return complex(self._number("complex()"))

    def __int__(self) -> int:
        return int(self._number("int()", step=True))

    def __trunc__(self) -> int:
        return math.trunc(self._rounded("math.trunc()"))

    def __floor__(self) -> int:
        return math.floor(self._rounded("math.floor()"))

    def __ceil__(self) -> int:
        return math.ceil(self._rounded("math.ceil()"))

    def __round__(self, ndigits: int | None = None) -> Any:
        if ndigits is not None and trace_hooks.is_tracing():
            found = recorded_operator(round, False, self, ndigits)
            if found is not None:
                return found
        return round(self._rounded("round()")) if ndigits is None else apply(np.round, self, ndigits)

    def _rounded(self, what: str) -> float:
        """Return the element as a float, to compute a step function of it. NumPy also calls these methods in object arrays."""
        trace_hooks.check_unboxed(self._tensor)
        return self._number(what, step=True)

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.shape:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self._tensor._concrete("an index of an array").item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all(), or "
                "np.where(condition, a, b) to choose element by element"
                if self.size
                else "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that it is not empty."
            )
        return bool(self._tensor._asked("the truth of an array").item())

    def __contains__(self, x: TensorLike) -> bool:
        return bool(np.any(self == x))

    def __len__(self) -> int:
        if not self._tensor._raw.shape:
            raise TypeError("len() of unsized object")
        return int(self._tensor._raw.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self._tensor._raw.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    # -- printing, copying ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        raw = self._tensor._raw
        data = raw if type(raw) is ndarray else raw.shown
        if isinstance(data, (float, np.generic)):  # the recorded scalar that the array stands for
            return repr(data)
        if data is None:
            return f"Array({raw!r})"
        printing: Any = importlib.import_module("chainrule._src.arrays.printing")  # many programs print no arrays
        return str(printing.array_repr(data, self._tensor._history()))

    def __str__(self) -> str:
        raw = self._tensor._raw
        data = raw if type(raw) is ndarray else raw.shown
        return repr(self) if data is None else str(data)

    def __format__(self, spec: str) -> str:
        reraise_error_caught_by_scipy()
        raw = self._tensor._raw
        values = raw if type(raw) is ndarray else raw.concrete() if not spec else raw.read()
        if not spec or values is None:  # vmap has no single number to format
            return str(self)
        return format(values, spec)

    def __copy__(self) -> Array:
        return apply(np.copy, self)

    def __deepcopy__(self, memo: dict[int, object]) -> Array:
        return array_of(self._tensor.__deepcopy__(memo))


_SELECT = getattr(np.select, "_implementation", np.select).__code__


def _select_default(x: Array, frame: Any) -> Array:
    """Return the ``default`` of ``np.select`` in the dtype of the result, where no choice is an Array.

    NumPy then computes with objects and unboxes the choices to Python numbers. The choices are replaced by scalars of the dtype.
    """
    choices = frame.f_locals.get("choicelist") if frame.f_code is _SELECT else None
    if choices is None:
        return x
    dtype = np.result_type(*choices, x.dtype)
    for k, choice in enumerate(choices):
        values = np.asarray(choice, dtype)
        choices[k] = np.empty(values.shape, object)
        for index in np.ndindex(values.shape):
            choices[k][index] = values[index]
    return apply(np.astype, x, dtype)


#: ufunc -> its implementation for Arrays without keywords; filled by ``ops.array``.
FAST: dict[np.ufunc, AnyFunction] = {}


def array_of(tensor: Tensor) -> Array:
    """Wrap a tensor in an Array."""
    array = new(Array)
    array._tensor = tensor
    return array


def has_derivative(x: Array) -> bool:
    """Return whether a derivative of the values is being computed, in either mode: then no plain number may replace them."""
    tensor = x._tensor
    return tensor.requires_grad or (type(tensor._raw) is not ndarray and tensor._raw.moving)


def is_plain(x: Array) -> bool:
    """Return whether a plain array can replace the values without losing a derivative."""
    raw = x._tensor._raw
    return not has_derivative(x) and (type(raw) is ndarray or raw.readable)


# -- conversion between Arrays and tensors -----------------------------------------------------------------------------


def plain_or_stacked(x: Any) -> Any:
    """Convert an object array such as ``np.array([x[0], x[1]])`` to numbers: a tensor if it contains Arrays.

    Anything else is returned unchanged.
    """
    if not is_objects(x):
        return x
    if any(isinstance(item, (Array, Tensor)) for item in x.flat):
        parts = [item._tensor if isinstance(item, Array) else as_tensors(item) for item in x.flat]
        parts = [part if isinstance(part, Tensor) else np.asarray(part) for part in parts]
        return np.reshape(np.stack(parts), x.shape)
    if all(isinstance(item, (int, float, complex, np.number, np.bool_)) for item in x.flat):
        return np.array(x.tolist()).reshape(x.shape)
    return x


def in_api_of_argument(tensor: Tensor, argument: object) -> AnyArray:
    """Return the tensor itself if the caller gave a tensor, else an Array."""
    return tensor if isinstance(argument, (Tensor, ArrayLike)) else array_of(tensor)


def unwrap_array(x: object) -> Any:
    """Return the tensor of an Array or of an object array of Arrays; anything else is returned unchanged."""
    return x._tensor if type(x) is Array else plain_or_stacked(x)


def as_tensors(x: Any) -> Any:
    """Replace Arrays by their tensors, also inside lists, tuples and dicts."""
    kind = type(x)
    if kind is Array:
        return x._tensor
    if kind is ndarray:
        found = plain_or_stacked(x)
        if is_objects(found):
            raise errors.array_of_objects(found)
        return found
    if kind is list or kind is tuple:
        return kind([as_tensors(item) for item in x]) if _holds_any(x) else x
    if kind is dict:
        return {key: as_tensors(item) for key, item in x.items()}
    if kind is slice:
        return slice(as_tensors(x.start), as_tensors(x.stop), as_tensors(x.step))
    return x


def _holds_any(items: Any) -> bool:
    return any(type(item) in _CONTAINERS for item in items)


_CONTAINERS = frozenset({Array, list, tuple, dict, slice, ndarray})


def holds(x: object, kind: type) -> bool:
    if isinstance(x, kind):
        return True
    if type(x) is list or type(x) is tuple:
        return any(holds(item, kind) for item in x)
    return type(x) is dict and any(holds(item, kind) for item in x.values())


def _shared(x: object) -> Any:
    """Convert the result of a tensor's method or attribute: tensors become Arrays, and methods return Arrays."""
    if isinstance(x, Tensor):
        return array_of(x)
    if not callable(x) or not hasattr(x, "__self__"):
        return x

    @functools.wraps(x)
    def method(*args: object, **kwargs: object) -> Any:
        return as_arrays(x(*as_tensors(args), **as_tensors(kwargs)))

    return method


def as_arrays(x: object) -> Any:
    """Replace tensors by Arrays, also inside tuples and lists."""
    if type(x) is Tensor or isinstance(x, Tensor):
        array = new(Array)
        # the results stand for NumPy scalars, which are values: a view of a 0-d tensor gets memory of its own
        array._tensor = x if x._view is None or x._view.base._raw.shape or _shows_array(x) else x.clone()
        return array
    if isinstance(x, tuple):
        parts = [as_arrays(part) for part in x]
        return x._make(parts) if hasattr(x, "_make") else type(x)(parts)
    return [as_arrays(part) for part in x] if type(x) is list else x


def _shows_array(view: Tensor) -> bool:
    """Return whether the base of a view is a 0-d array, not a scalar, in recorded plain code."""
    return trace_hooks.is_array(view._view.base._raw)


# Functions that write into their first argument, and the check to call before each write.
WRITERS: dict[Any, Callable[[Tensor, str], None]] = {}


def apply(function: AnyFunction, *args: Any, **kwargs: Any) -> Any:
    """Call a NumPy function on Arrays, with NumPy's own signature."""
    numpy_error = None
    if trace_hooks.is_tracing() and function not in WRITERS:
        found = recorded_as_numpy(function, "", args, kwargs, _out_of(function, args, kwargs))
        if found is not None:
            return found
        numpy_error, trace_hooks.current_recorder().numpy_error = trace_hooks.current_recorder().numpy_error, None
    implementation = FUNCTIONS.get(function) or implementation_of(function, (*args, *kwargs.values()))
    if function in WRITERS and args:
        if trace_hooks.is_tracing() and type(args[0]) is Array:
            trace_hooks.current_recorder().check_not_scalar(args[0]._tensor._raw)
        if function is np.copyto and len(args) > 1 and _is_same(args[0], args[1]):
            return None  # NumPy also checks this before it checks for writeability
        if trace_hooks.is_tracing() and function is not np.copyto and _recorded_writer(function, args, kwargs):
            return None
        if type(args[0]) is Array:
            WRITERS[function](args[0]._tensor, f"np.{function.__name__}")
        elif is_objects(args[0]):
            return _write_stacked(functools.partial(apply, function), *args, **kwargs)
    operands, mixed = _unwrap_operands(args)
    mixed = mixed or (bool(kwargs) and holds(kwargs, Tensor))
    if function in CALLBACKS and not mixed:
        operands, kwargs = _with_callbacks_of_arrays(implementation, CALLBACKS[function], args, kwargs)
    try:
        result, out = call_function(
            function.__name__, implementation, operands, as_tensors(kwargs) if kwargs else kwargs
        )
    except (RuntimeError, TypeError, LookupError) as error:
        raise as_numpy_error(error, function, args, kwargs) from error.__cause__
    except ValueError as error:
        raise errors.of_shapes(error, function.__name__, list(args)) from error.__cause__
    if numpy_error is not None:  # plain code would raise it
        raise numpy_error
    if trace_hooks.is_tracing():
        trace_hooks.current_recorder().check_view(function, result)
    if out is None:
        return result if mixed else as_arrays(result)
    target = next(x for x in (kwargs.get("out"), *args) if x is out or (type(x) is Array and x._tensor is out))
    return write_out(function.__name__, target, result, fixed=fixed_axes(function, ""))


def of_arrays(function: AnyFunction) -> AnyFunction:
    """Convert a function of Arrays to a function of tensors."""
    return lambda *tensors: as_tensors(function(*as_arrays(tensors)))


def _with_callbacks_of_arrays(implementation: AnyFunction, name: str, args: Sequence[object], kwargs: Params) -> Any:
    """Wrap the callbacks given as the parameter ``name``.

    They are called with Arrays, and with all further arguments unchanged.
    """
    signature = inspect.signature(implementation)
    bound = signature.bind(*args, **kwargs)
    rest: list[Any] = []
    named: Params = {}
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = list(bound.arguments.pop(parameter.name, ()))
        elif parameter.kind is parameter.VAR_KEYWORD:
            named = bound.arguments.pop(parameter.name, {})

    def wrapped(callback: Any) -> Any:
        if not callable(callback):
            return callback
        return of_arrays(lambda *operands: callback(*operands, *rest, **named))

    callbacks = bound.arguments[name]
    bound.arguments[name] = list(map(wrapped, callbacks)) if isinstance(callbacks, Sequence) else wrapped(callbacks)
    return _unwrap_operands(bound.args)[0], as_tensors(bound.kwargs)


def as_numpy_error(error: Exception, function: AnyFunction, args: Sequence[object], kwargs: Params) -> Exception:
    """Return an error of NumPy's class for these arguments, with our explanation; our own error if NumPy raises none."""
    if function in CALLBACKS:
        return error  # do not call the callbacks again
    try:
        with np.errstate(all="ignore"):
            function(*_plain_copies(args), **_plain_copies(kwargs))
    except (ValueError, TypeError, LookupError) as numpys:
        kind = next(kind for kind in _NUMPYS_ERRORS if isinstance(numpys, kind))
        why = str(error).partition("\n")[2]  # the first line is PyTorch's wording
        return error if isinstance(error, kind) else kind(f"{numpys}\n{why}" if why else str(numpys))
    except Exception:
        return error
    return error


_NUMPYS_ERRORS = (np.linalg.LinAlgError, np.exceptions.AxisError, ValueError, TypeError, IndexError, LookupError)


def _plain_copies(x: Any) -> Any:
    """Replace Arrays by plain copies, or by zeros where a transformation has several values."""
    kind = type(x)
    if kind is Array:
        raw = x._tensor._raw
        return raw.copy() if type(raw) is ndarray else np.zeros(raw.shape, raw.dtype)
    if kind is ndarray:
        return x.copy()
    if kind is list or kind is tuple:
        return kind(map(_plain_copies, x))
    return {key: _plain_copies(value) for key, value in x.items()} if kind is dict else x


def _is_same(x: AnyArray, y: IntoArray) -> bool:
    """Return whether two Arrays are the same elements of the same memory."""
    if x is y or type(x) is not Array or type(y) is not Array:
        return x is y
    interfaces = [memory_of(z._tensor).__array_interface__ for z in (x, y)]
    return all([interfaces[0][key] == interfaces[1][key] for key in ("data", "strides", "shape", "typestr")])


def recorded_as_numpy(function: AnyFunction, method: str, args: Any, kwargs: Params, out: Any = None) -> Any:
    """Record a call of NumPy's own function, if all arrays in it stand for plain arrays of a compiled function.

    Return None if one of them carries a derivative: the caller then uses our implementation.

    Args:
        out: the targets of the write; not among the keywords of a ufunc.
    """
    recorder = trace_hooks.current_recorder()
    if method == "at":
        return None
    if out is not None:
        return _recorded_into(function, method, args, kwargs, out)
    raw = None if _carry_derivatives(args) else _recorded((args, kwargs))
    if raw is None or not recorder.are_plain(raw):
        return None
    found = recorder.record_numpy(function, method, *raw)
    if type(found) is tuple:
        return tuple([array_of(wrap(x)) for x in found])
    return array_of(wrap(found)) if isinstance(found, ArrayLike) else found


def _recorded_into(function: AnyFunction, method: str, args: tuple[Any, ...], kwargs: Params, out: Any) -> Any:
    """Do the same as ``recorded_as_numpy`` for a call that writes into Arrays; None if chainrule's own code writes the same."""
    targets = out if type(out) is tuple else (out,)
    if not all([type(target) is Array for target in targets]):
        return None
    if any([trace_hooks.eager_type(target._tensor._raw) not in (None, ndarray) for target in targets]):
        raise TypeError("return arrays must be of ArrayType")
    ufunc = method == "__call__"
    raw = _recorded((args, {**kwargs, "out": out} if method else kwargs, targets))
    if raw is None or not trace_hooks.current_recorder().are_plain(raw):
        return None
    if ufunc and not kwargs and trace_hooks.current_recorder().computes_alike(function, raw[0], raw[2]):
        return None
    if method:
        function = getattr(function, method)
    found = trace_hooks.current_recorder().record_write(function, *raw)
    for target, values in zip(targets, found if type(found) is tuple else (found,), strict=True):
        target[...] = array_of(wrap(values))
    return out[0] if type(out) is tuple and len(out) == 1 else out


def recorded_setitem(x: Array, index: Index, value: object) -> bool:
    """Record ``x[index] = value`` as a call of NumPy's, where NumPy's result depends on values. Return whether it was recorded."""
    recorder, raw = trace_hooks.current_recorder(), x._tensor._raw
    if recorder.is_scalar(raw):
        raise TypeError(f"'numpy.{raw.dtype.type.__name__}' object does not support item assignment")
    if recorder.eager_type(raw) is float:
        raise TypeError("'float' object does not support item assignment")
    narrowed = raw.dtype.kind in "iub" and type(value) is Array and value.dtype != raw.dtype
    if not narrowed and not any([type(i) is Array for i in (index if type(index) is tuple else (index,))]):
        return False
    operands = _recorded((x, index, value))
    if operands is None or not recorder.are_plain(operands):
        return False
    x[...] = array_of(wrap(recorder.record_write(operator.setitem, operands, {}, operands[:1])))
    return True


def _recorded_writer(function: AnyFunction, args: tuple[Any, ...], kwargs: Params) -> bool:
    """Record a call of a function that writes into its first argument; False if chainrule's own code must run."""
    target = args[0]
    raw = _recorded((args, kwargs)) if type(target) is Array else None
    if raw is None or not trace_hooks.current_recorder().are_plain(raw):
        return False
    target[...] = array_of(wrap(trace_hooks.current_recorder().record_write(function, *raw, raw[0][:1])))
    return True


def _out_of(function: AnyFunction, args: tuple[Any, ...], kwargs: Params) -> Any:
    """Return the ``out`` argument of a NumPy function, given by keyword or position."""
    if kwargs.get("out") is not None:
        return kwargs["out"]
    implementation = find(function) if len(args) > 1 else None
    at = -1 if implementation is None else out_position(implementation)
    return args[at] if 0 <= at < len(args) else None


def recorded_operator(operation: AnyFunction, special: bool, *operands: object) -> Any:
    """Do the same as ``recorded_as_numpy`` for an operator, which differs from its ufunc for floats, scalars, some exponents."""
    recorder = trace_hooks.current_recorder()
    warns = any([type(x) is Array and x._tensor._raw.dtype.kind in "iu" for x in operands])
    if not recorder.weak and not special and not warns:
        return None
    raw = None if _carry_derivatives(operands) else _recorded(operands)
    if raw is None:
        return None
    if warns and recorder.are_plain(raw) and recorder.are_integers(raw):
        return array_of(wrap(recorder.record_integer_operator(operation, raw)))
    found = recorder.record_float_operator(operation, *raw) if recorder.weak else None
    if found is None:
        if not recorder.are_plain(raw) or (len(raw) < 2 and not special):
            return None
        found = recorder.record_operator(operation, *raw)
    return array_of(wrap(found)) if isinstance(found, ArrayLike) else found


def is_operator(frame: Any, name: str) -> bool:
    """Return whether a frame evaluates an operator or calls the function of the ``operator`` module, rather than a ufunc."""
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame = frame.f_back  # a wrapper of the method
    code = frame.f_code
    return code.co_code[frame.f_lasti] == opmap["BINARY_OP"] or name in code.co_names


def with_strong_floats(ufunc: np.ufunc, operands: tuple[TensorLike, ...]) -> Any:
    """Return ufunc operands with Python floats as arrays of the dtype that NumPy gives them, where a derivative is taken."""
    recorder = trace_hooks.current_recorder()
    if not recorder.weak:
        return operands
    raws = [x._tensor._raw if type(x) is Array else x for x in operands]
    strong = recorder.with_strong_floats(ufunc, raws)
    return tuple(
        [array_of(wrap(y)) if x is not y else given for x, y, given in zip(raws, strong, operands, strict=True)]
    )


def recorded_in_place(
    operation: Callable[[AnyArray, AnyArray], AnyArray], ufunc: np.ufunc, x: Array, y: TensorLike
) -> bool:
    """Record ``x op= y`` as an in-place operation: NumPy may round differently if the result overwrites an operand."""
    raw = x._tensor._raw
    raw = _recorded((x, y)) if raw.shape or trace_hooks.is_array(raw) else None
    if (
        raw is None
        or not trace_hooks.current_recorder().are_plain(raw)
        or trace_hooks.current_recorder().computes_alike(ufunc, raw, raw[:1])
    ):
        return False
    x[...] = array_of(wrap(trace_hooks.current_recorder().record_write(operation, raw, {}, raw[:1])))
    return True


def _carry_derivatives(operands: Iterable[object]) -> bool:
    """Return whether an operand obviously carries a derivative, so that ``_recorded`` would give None."""
    for x in () if trace_hooks.current_recorder().boxed else operands:
        if isinstance(x, Array):
            if x._tensor._edge is not None:
                return True
        elif isinstance(x, (list, tuple)) and _carry_derivatives(x):
            return True
    return False


def _recorded(x: Any) -> Any:
    """Replace Arrays in arguments by their recorded values; return None if one carries a derivative, or is a Tensor."""
    kind = type(x)
    if kind is ndarray:
        x = plain_or_stacked(x)
        return _recorded(array_of(x)) if isinstance(x, Tensor) else x
    if kind is Array:
        tensor = x._tensor
        trace_hooks.check_unboxed(tensor)
        if type(tensor._raw) is ndarray:
            trace_hooks.lift(tensor)
        return tensor._raw if tensor._edge is None else None
    if kind is tuple or kind is list:
        items = [_recorded(item) if type(item) in _HOLDERS else item for item in x]
        return None if any(a is None and b is not None for a, b in zip(items, x, strict=True)) else kind(items)
    if kind is dict:
        values = [_recorded(item) if type(item) in _HOLDERS else item for item in x.values()]
        same = all(a is not None or b is None for a, b in zip(values, x.values(), strict=True))
        return dict(zip(x, values, strict=True)) if same else None
    return None


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: Any, out: Any, kwargs: Params) -> Any:
    """Call a ufunc on Arrays. NumPy scalars promote like arrays."""
    operands, mixed = _unwrap_operands(inputs)
    if method == "__call__":
        operands = [
            implementation_of(np.array, ())(x) if type(x) in (list, tuple) and holds(x, Tensor) else x for x in operands
        ]
    if method == "at":
        if trace_hooks.is_tracing() and _recorded_writer(ufunc.at, inputs, kwargs):
            return None
        if type(inputs[0]) is Array:
            return _write_at(ufunc, inputs[0]._tensor, operands)
        if is_objects(inputs[0]):
            return _write_stacked(ufunc.at, *inputs)
    row = UFUNCS.get(ufunc) or find_ufunc(ufunc) if method == "__call__" and not kwargs else None
    try:
        result = (
            call_ufunc(ufunc, method, operands, as_tensors(out), as_tensors(kwargs)) if row is None else row(*operands)
        )
    except ValueError as error:
        raise errors.of_shapes(error, ufunc.__name__, operands) from None
    except RuntimeError as error:
        if out is not None or method == "at":  # the error is about a target that must not be written to
            raise
        raise as_numpy_error(error, getattr(ufunc, method), inputs, kwargs) from error.__cause__
    result = copy_scalar_view(result)
    if out is None:
        return result if mixed else as_arrays(result)
    return write_out(ufunc.__name__, out, result, kwargs.get("casting", "same_kind"), fixed_axes(ufunc, method))


def _write_at(ufunc: np.ufunc, target: Tensor, operands: list[object]) -> None:
    """Compute ``ufunc.at``; like NumPy's, it also writes through read-only views."""
    view = target._view
    read_only = is_read_only(target)
    if read_only:
        view.origin = ""
    try:
        WRITERS[np.ufunc.at](target, f"np.{ufunc.__name__}.at")
        call_ufunc(ufunc, "at", operands, None, {})
    finally:
        if read_only:
            view.origin = "read-only"


_HOLDERS = frozenset({Array, Tensor, ndarray, tuple, list, dict})
_SIMPLE = frozenset({Tensor, int, float, bool, complex, str, type(None)})


def _unwrap_operands(args: tuple[Any, ...]) -> tuple[list[Any], bool]:
    """Replace Arrays by tensors and NumPy scalars by 0-d arrays; also return whether there was a Tensor among the operands."""
    operands = []
    mixed = False
    for x in args:
        kind = type(x)
        if kind is Array:
            x = x._tensor
        elif kind not in _SIMPLE:
            mixed = mixed or holds(x, Tensor)
            x = np.asarray(x) if isinstance(x, np.generic) else as_plain_array(as_tensors(x))
        elif kind is Tensor:
            mixed = True
        operands.append(x)
    return operands, mixed


def write_out(name: str, out: object, result: IntoArray, casting: Casting = "same_kind", fixed: int = -1) -> Any:
    """Write a result to NumPy's ``out=``."""
    targets = out if isinstance(out, tuple) else (out,)
    results = result if isinstance(result, tuple) else (result,)
    for target, value in zip(targets, results, strict=True):
        if isinstance(target, (Tensor, Array)):
            check_out(name, target, value, casting, fixed)
        if isinstance(target, Tensor):
            target.copy_(value)
        elif isinstance(target, Array):
            target[...] = value
        elif is_objects(target):
            _write_objects(target, value)
        elif target is not None:
            raise errors.out_is_plain_array(name, target)
    written = tuple(
        [as_arrays(value) if target is None else target for target, value in zip(targets, results, strict=True)]
    )
    return written[0] if len(written) == 1 else written


def is_objects(x: object) -> bool:
    return type(x) is ndarray and x.dtype == _OBJECT


def _write_stacked(function: AnyFunction, target: ndarray, *args: object, **kwargs: object) -> None:
    """Call a function that writes into an object array of Arrays."""
    stacked = Array(target)
    function(stacked, *args, **kwargs)
    _write_objects(target, stacked)


def _write_objects(target: ndarray, value: AnyArray) -> None:
    """Write the elements of an Array into an array of objects."""
    shape = np.broadcast_shapes(target.shape, np.shape(value))
    if shape != target.shape:
        raise errors.array_output_shape("out=", target.shape, shape)
    value = as_arrays(apply(np.broadcast_to, value, shape))
    for index in np.ndindex(shape):
        target[index] = value[index]


def takes_arrays(
    function: AnyFunction, full: AnyFunction | None = None, public: Callable[[], Any] | None = None
) -> AnyFunction:
    """Wrap a function of tensors so that it accepts Arrays, and then returns Arrays.

    ``full`` is called instead if there are Arrays or keywords. ``public`` returns the function that is passed to the operands' protocols.
    """
    full = function if full is None else full

    @functools.wraps(full)
    def call(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            kind = type(x)
            if kind in PLAIN:
                continue
            if (kind is not list and kind is not tuple) or any(type(item) not in PLAIN for item in x):
                break
        else:
            if not kwargs:
                return function(*args)
            if all([type(x) in PLAIN for x in kwargs.values()]):
                return full(*args, **kwargs)
        if asked := overriding_arguments(iterate_operands((*args, *kwargs.values()))):
            return call_override(public() if public else call, asked, args, kwargs)
        if not holds(args, Array) and not holds(kwargs, Array):
            return full(*args, **kwargs)
        mixed = holds(args, Tensor) or holds(kwargs, Tensor)
        result = full(*as_tensors(args), **as_tensors(kwargs))
        return result if mixed else as_arrays(result)

    call.__dict__["takes_arrays"] = True
    return call
