"""The tensor: data, and an edge into the tape.

``_raw`` is an ndarray or, inside a transformation, another array-like. ``_edge`` is the Node, Output or Leaf that
gradients flow to; a tensor requires grad if and only if it has an edge. For a tensor without an edge, ``_cut`` records
where the path was cut. Slots that most tensors never use stay unset; ``__getattr__`` returns None for them. A user's
attributes are in ``__dict__``, which is created when the first one is set.

Higher-level modules attach the methods that are operations (``attach_methods``), so this module imports none of them.
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule._src.arrays.device import device
from chainrule._src.arrays.dtype import DTYPE_OF
from chainrule._src.arrays.dtype import dtype as Dtype
from chainrule._src.arrays.dtypes import default_dtype
from chainrule._src.arrays.size import Size
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, NumpyDType, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.foreign import Foreign, gpu_number
from chainrule._src.tape.foreign_operands import PANDAS_PRIORITY, defers_to_operand, no_array, raise_to_defer
from chainrule._src.tape.levels import STACK, lift_leaf
from chainrule._src.tape.memory import share_memory
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL, is_recording
from chainrule._src.tape.node import Edge, Leaf, Node, RemovableHandle, grad_fn_of, hooks_of
from chainrule._src.tape.protocol import ArrayLike, array_function, array_ufunc, as_plain_array, strip_derivatives
from chainrule._src.tape.versions import alias_with_own_versions, version_of

ndarray = np.ndarray
_CPU = device("cpu")
_UNSET = frozenset({"_grad", "_cut", "_view", "_views", "_edge", "_memory", "_parameter"})


if TYPE_CHECKING:
    from chainrule._src.tape.methods import Methods  # a stub: the methods that declarations attach
else:
    Methods = object


def _later(module: str) -> Any:
    """Import a module that few programs need."""
    return importlib.import_module(f"chainrule._src.{module}")


class Tensor(Methods):
    """An array that autograd can follow. ``tensor``, ``from_numpy`` and the other creation functions make tensors."""

    __module__ = "chainrule"
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_cut",
        "_edge",
        "_grad",
        "_memory",
        "_parameter",
        "_raw",
        "_view",
        "_views",
    )
    __array_priority__ = 1000.0
    __pandas_priority__ = PANDAS_PRIORITY
    __array_ufunc__ = array_ufunc
    __array_function__ = array_function

    _raw: Any
    _edge: Any
    _grad: Tensor | None
    _cut: Any
    _view: Any
    _views: Any
    _memory: Any
    _parameter: bool | None  # whether ``nn.Parameter`` made the tensor

    if TYPE_CHECKING:  # operators, which higher-level modules attach
        _base: Tensor | None
        __torch_function__: AnyFunction

        def _binary(self, other: object) -> Tensor: ...
        def _unary(self) -> Tensor: ...
        def __getitem__(self, index: object) -> Tensor: ...
        def __setitem__(self, index: object, value: object) -> None: ...

        __add__ = __radd__ = __iadd__ = __sub__ = __rsub__ = __isub__ = __mul__ = __rmul__ = __imul__ = _binary
        __truediv__ = __rtruediv__ = __itruediv__ = __floordiv__ = __rfloordiv__ = __ifloordiv__ = _binary
        __mod__ = __rmod__ = __imod__ = __pow__ = __rpow__ = __ipow__ = __matmul__ = __rmatmul__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = __and__ = __rand__ = __iand__ = __or__ = __ror__ = __ior__ = _binary
        __xor__ = __rxor__ = __ixor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _binary
        __eq__ = __ne__ = _binary  # type: ignore[assignment]
        __neg__ = __pos__ = __abs__ = __invert__ = _unary

    def __new__(cls, data: object = (), *sizes: int) -> Tensor:
        """Return a tensor of ``data`` or of these sizes, as ``torch.Tensor(...)`` does."""
        if isinstance(data, Tensor):
            if sizes:
                raise TypeError(f"{cls.__name__}() takes one tensor, or numbers as sizes; got {(data, *sizes)!r}")
            out: Tensor = TABLE["alias"](data)
            out.__class__ = cls
            return out
        if isinstance(data, (int, np.integer)) and not isinstance(data, bool):
            array = np.empty((data, *sizes), default_dtype())
        elif isinstance(data, ndarray):
            array = as_plain_array(data).astype(default_dtype())
        else:
            array = np.array(data, dtype=default_dtype())
        self = _new(cls)
        self._raw = array
        self._edge = None
        self._cut = None
        return self

    if not TYPE_CHECKING:  # so that type checkers report misspelt names

        def __getattr__(self, name: str) -> Any:
            if name in _UNSET:
                return None
            raise_to_defer(name)
            raise errors.no_attribute(self, name)

    # -- shape, dtype, memory -----------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The shape, as a ``torch.Size`` (a tuple)."""
        return Size(self._raw.shape)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the length along dimension ``dim``."""
        if dim is None:
            return Size(self._raw.shape)
        return self._raw.shape[errors.check_dim("size", dim, self._raw.ndim)]

    @property
    def dtype(self) -> Dtype:
        """The element type, such as ``torch.float32``; ``dtype.dtype`` is NumPy's."""
        try:
            return DTYPE_OF[self._raw.dtype]
        except KeyError:  # the operation raises for this operand
            return self._raw.dtype

    @property
    def __numpy_dtype__(self) -> NumpyDType:
        dtype: NumpyDType = self._raw.dtype
        return dtype

    @property
    def ndim(self) -> int:
        return len(self._raw.shape)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self._raw.shape)

    ndimension = dim

    def numel(self) -> int:
        """Return the number of elements."""
        n = 1
        for length in self._raw.shape:
            n *= length
        return n

    nelement = numel

    @property
    def device(self) -> device:
        """The device that holds the elements: the CPU or a GPU."""
        number = None if type(self._raw) is ndarray else gpu_number(self._raw)
        return _CPU if number is None else device("cuda", number)

    @property
    def is_cuda(self) -> bool:
        """Whether the elements are on a GPU."""
        return type(self._raw) is not ndarray and gpu_number(self._raw) is not None

    @property
    def is_cpu(self) -> bool:
        """Whether the elements are in the computer's main memory."""
        return not self.is_cuda

    @property
    def is_sparse(self) -> bool:
        return False

    @property
    def itemsize(self) -> int:
        return int(self._raw.dtype.itemsize)

    def element_size(self) -> int:
        """Return the number of bytes per element."""
        return self.itemsize

    @property
    def nbytes(self) -> int:
        return self.numel() * self.itemsize

    def is_floating_point(self) -> bool:
        return bool(self._raw.dtype.kind == "f")

    def is_complex(self) -> bool:
        return bool(self._raw.dtype.kind == "c")

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides in elements, of each dimension or of dimension ``dim``."""
        strides = tuple(s // self._raw.dtype.itemsize for s in self._raw.strides)
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: object = None) -> bool:
        """Return whether the memory is C-contiguous."""
        data = self._raw
        if type(data) is not ndarray:
            data = np.lib.stride_tricks.as_strided(np.empty((), data.dtype), data.shape, data.strides, writeable=False)
        return bool(data.flags.c_contiguous)

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self._array().__array_interface__["data"][0])

    # -- autograd -----------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this tensor."""
        return self._edge is not None or (type(self._raw) is not ndarray and _inside(self) is not None)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"requires_grad must be a bool, not {type(value).__name__}")
        if type(self._raw) is not ndarray and self._raw.set_requires_grad(self, bool(value)):
            return
        if value:
            if self._edge is None:
                if self._raw.dtype.kind not in "fc":
                    raise errors.integer_requires_grad(self)
                if type(self) is InferenceTensor and not LOCAL.mode.inference:
                    raise errors.inference_requires_grad()
                former = getattr(self._cut, "leaf", None)
                self._cut = None
                if STACK.levels:
                    lift_leaf(self)
                self._edge = former if former is not None and former.tensor() is self else Leaf(self)
                self._edge.data = self._raw
        elif self._edge is not None:
            if type(self._edge) is not Leaf:
                raise errors.non_leaf_flag()
            self._cut = errors.Cut("requires_grad", errors.user_line())
            if self._edge.hooks is not None:
                self._cut.leaf = self._edge  # restores the hooks when the tensor requires grad again
            self._edge = None

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set ``requires_grad`` of this leaf in place and return it."""
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor, or it does not require grad."""
        edge = self._edge if self._edge is not None or type(self._raw) is ndarray else _inside(self, "_edge")
        return edge is None or type(edge) is Leaf

    @property
    def grad_fn(self) -> Node | None:
        """The node of the operation that made this tensor; None for a leaf."""
        edge = self._edge if self._edge is not None or type(self._raw) is ndarray else _inside(self, "_edge")
        return grad_fn_of(edge)

    @property
    def output_nr(self) -> int:
        """The index of this tensor among the outputs of ``grad_fn``."""
        return getattr(self._edge, "index", 0)

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf, or of a tensor that called ``retain_grad()``."""
        if ACTIVE_MODES:
            trace_hooks.note_grad_read(self)
        grad = self._grad
        if grad is None and type(self._raw) is not ndarray and self._edge is None:
            return _inside(self, "grad")
        if grad is None and type(self._edge) not in (Leaf, type(None)) and not self.retains_grad:
            errors.warn_non_leaf_grad(self)
        return grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        trace_hooks.lift(self)
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got {type(value).__name__}")
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value._raw.shape != self._raw.shape:
                raise errors.assigned_grad_shape(self, value)
            if value._raw.dtype != self._raw.dtype:
                raise errors.assigned_grad_dtype(self, value)
            if type(self._edge) is Leaf:
                self._edge.metadata["assigned"] = (weakref.ref(value), self._edge.added, errors.user_line())  # type: ignore[misc]
        set_grad(self, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether this non-leaf keeps its gradient (see ``retain_grad``)."""
        edge = self._edge
        if edge is None and type(self._raw) is not ndarray:
            return bool(_inside(self, "retains_grad"))
        if type(edge) is Leaf or edge is None or edge.hooks is None:
            return False
        retaining = edge.hooks.retain
        return retaining is not None and retaining() is self

    def retain_grad(self) -> None:
        """Store this non-leaf's gradient in ``.grad`` during backward passes."""
        if self._edge is None:
            inner = _inside(self)
            if inner is not None:
                return inner.retain_grad()
            raise errors.no_grad_needed(self, "can't retain_grad on Tensor that has requires_grad=False")
        if type(self._edge) is not Leaf:
            hooks_of(self._edge).retain = weakref.ref(self)

    def register_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call ``hook(grad)`` when this tensor's gradient is computed. If it returns a value, that replaces the gradient.

        Raises:
            RuntimeError: the tensor does not require grad.
        """
        if self._edge is None:
            inner = _inside(self)
            if inner is not None:
                return inner.register_hook(hook)
            raise errors.no_grad_needed(self, "cannot register a hook on a tensor that doesn't require gradient")
        trace_hooks.lift(self)
        return RemovableHandle(hooks_of(self._edge).tensor, hook)

    def register_post_accumulate_grad_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call ``hook(tensor)`` each time this leaf's ``.grad`` has been updated."""
        if self._edge is None:
            raise errors.no_grad_needed(self, "cannot register a hook on a tensor that doesn't require gradient")
        if type(self._edge) is not Leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        trace_hooks.lift(self)
        return RemovableHandle(hooks_of(self._edge).post_accumulate, hook)

    @property
    def _version(self) -> int:
        """The number of in-place writes to this tensor's memory."""
        if type(self) is InferenceTensor:
            raise errors.inference_version()
        return version_of(self._raw)

    def is_inference(self) -> bool:
        """Return whether the tensor was made in ``inference_mode``."""
        return type(self) is InferenceTensor

    @property
    def data(self) -> Tensor:
        """A tensor of the same memory outside autograd: writes through it do not count as in-place writes.

        Assigning a tensor to ``.data`` gives this tensor that tensor's memory, shape and dtype.
        """
        trace_hooks.lift(self)
        out = _alias(
            self, alias_with_own_versions(self._raw) if type(self._raw) is ndarray else strip_derivatives(self._raw)
        )
        out._cut = self._cut if self._edge is None else errors.DATA
        share_memory(out, self)
        return out

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise errors.variable_data(value)
        trace_hooks.rebind(self, value)
        if type(self._edge) is Leaf and value._raw.dtype.kind not in "fc":
            raise errors.data_dtype(value._raw.dtype)
        data: Any = self._raw
        new: Any = alias_with_own_versions(value._raw) if type(value._raw) is ndarray else strip_derivatives(value._raw)
        if type(data) is not ndarray:
            if (new.shape, new.dtype) == (data.shape, data.dtype):
                highest = new if getattr(new, "level", 0) > data.level else data
                new = type(highest).with_numbers(data, new, highest.level)
            elif data.moving:
                raise errors.data_of_value(data, new)
        set_tensor_data(self, new)
        if type(self._edge) is Leaf:
            self._edge.data = self._raw
        self._memory = None
        if self._view is None:
            share_memory(self, value)

    def detach(self) -> Tensor:
        """Return a tensor of the same memory without a history."""
        trace_hooks.lift(self)
        out = _alias(self, self._raw if type(self._raw) is ndarray else strip_derivatives(self._raw))
        if self._edge is not None:
            out._cut = errors.Cut("detach", errors.user_line(), (self,))
        else:
            out._cut = self._cut
        share_memory(out, self)
        return out

    def detach_(self) -> Tensor:
        """Remove this tensor's history, in place."""
        if self._view is not None:
            raise errors.detach_view()
        if self._edge is not None:
            self._cut = errors.Cut("detach_", errors.user_line())
        self._edge = None
        if type(self._raw) is not ndarray:
            set_tensor_data(self, strip_derivatives(self._raw))
        return self

    # -- conversion to NumPy and Python -------------------------------------------------------------------------

    def _array(self) -> NumpyArray:
        """Return the ndarray of this tensor's values, also inside transformations; raise if there is no single one."""
        trace_hooks.lift(self)
        if type(self._raw) is ndarray:
            return self._raw
        if type(self._raw) is Foreign and not self.is_cuda:  # GPU arrays are copied, and the result is copied back
            raise errors.foreign_to_numpy(self._raw)
        if isinstance(self._raw, ArrayLike):
            values: NumpyArray | None = self._raw.read()
            if values is not None:
                return values
        raise errors.inside_transformation(self)

    def _concrete(self, what: str) -> NumpyArray:
        """Return the values as an ndarray, for code that depends on them; raise under vmap, which has one per example."""
        trace_hooks.lift(self)
        data = self._raw
        if type(data) is ndarray:
            return data
        if type(data) is Foreign and not self.is_cuda:
            raise errors.foreign_to_numpy(data, what)
        values = data.read()
        if values is None:
            raise errors.data_dependent(self, what)
        return values

    def _asked(self, what: str) -> NumpyArray:
        """Return ``_concrete``, also for arrays of other libraries: the user's code requests the conversion explicitly."""
        return self._raw.read() if type(self._raw) is Foreign else self._concrete(what)

    def numpy(self, *, force: bool = False) -> NumpyArray:
        """Return the tensor's memory as a NumPy array (no copy).

        Raises:
            RuntimeError: the tensor requires grad, outside of ``no_grad``. Call ``t.detach().numpy()`` to cut the path.
        """
        cuts = not force and is_recording()
        if self._edge is not None and cuts:
            raise errors.numpy_requires_grad(self)
        if type(self._raw) is not ndarray and not force:
            if _inside(self) is not None and cuts:
                raise errors.numpy_requires_grad(self)
            if getattr(self._raw, "change", None) is not None or (cuts and self._raw.moving):
                raise errors.numpy_has_tangent(self)
        return self._raw.read() if type(self._raw) is Foreign else self._array()

    def __array__(self, dtype: NumpyDType | None = None, copy: bool | None = None) -> NumpyArray:
        if defers_to_operand():
            return no_array()
        if dtype is not None and self.requires_grad and self.numel() == 1 and np.dtype(dtype).kind in "iub":
            convert = bool if np.dtype(dtype).kind == "b" else int  # np.int64(x) cuts the path, as int(x) does
            return np.full(self.shape, self._number(convert, convert.__name__), dtype)
        if type(self._raw) is Foreign:
            raise errors.foreign_to_numpy(self._raw)
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar: its shape is "
                f"{tuple(self._raw.shape)}; use tolist(), or index one element"
            )
        return self._asked(".item()").item()

    def tolist(self) -> Any:
        """Return the elements as nested Python lists (a number for a 0-d tensor)."""
        return self._asked(".tolist()").tolist()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            if self.numel() == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError(
                "Boolean value of Tensor with more than one value is ambiguous: use .any() or .all(), "
                "or torch.where to choose element by element"
            )
        return bool(self._asked("bool()").item())

    def _number(self, convert: Callable[[Any], complex], what: str) -> Any:
        if self.numel() != 1:
            raise ValueError(
                f"only one element tensors can be converted to Python scalars; {what}() got shape "
                f"{tuple(self._raw.shape)}"
            )
        values = self._asked(f"{what}()")
        if self._edge is not None:
            errors.leaves_graph(self, what)
        return convert(values.item())

    def __int__(self) -> int:
        return int(self._number(int, "int"))

    def __float__(self) -> float:
        return float(self._number(float, "float"))

    def __complex__(self) -> complex:
        return complex(self._number(complex, "complex"))

    def __index__(self) -> int:
        if self._raw.dtype.kind not in "iub" or self.numel() != 1:
            raise errors.no_index(self)
        return int(self._number(int, "index"))

    def __len__(self) -> int:
        if not self._raw.shape:
            raise TypeError("len() of a 0-d tensor")
        return int(self._raw.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not self._raw.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self._raw.shape else self

    def __contains__(self, element: TensorLike) -> bool:
        if not isinstance(element, (Tensor, int, float, complex, np.generic)):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
            )
        return bool((self == element).any())

    __hash__ = object.__hash__

    # -- printing, copying, pickling ----------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self._described([])

    def _described(self, more: list[str]) -> str:
        """Return the printed form, with ``more`` as additional suffixes."""
        data = self._raw if type(self._raw) is ndarray else self._raw.shown
        if data is None:
            return str(self._raw.described(more if self._raw.level else self._history() + more))
        suffixes = self._history()
        prefix = "tensor(" if type(self) in (Tensor, InferenceTensor) else f"{type(self).__name__}("
        suffixes += more
        device = str(self.device) if self.is_cuda else ""
        text = _later("arrays.printing").tensor_repr(
            data, suffixes=suffixes, default_dtype=default_dtype(), prefix=prefix, device=device
        )
        return f"Parameter containing:\n{text}" if self._parameter else text

    def _history(self) -> list[str]:
        """Return the suffixes of the printed form that describe the history."""
        if type(self._edge) is Leaf:
            return ["requires_grad=True"]
        node = grad_fn_of(self._edge)
        return [] if node is None else [f"grad_fn=<{node.name()}>"]

    def __format__(self, spec: str) -> str:
        if self._raw.shape or (type(self._raw) is not ndarray and not self._raw.readable):
            return object.__format__(self, spec) if spec else repr(self)
        return str(_later("arrays.printing").format_tensor(self._array(), spec))

    def __copy__(self) -> Tensor:
        """Return another tensor of the same memory: a leaf for a leaf, and an alias with a ``grad_fn`` for a non-leaf."""
        if not self.is_leaf or self._inside_transformation():
            out: Tensor = TABLE["alias"](self)
            out.__dict__.update(self.__dict__)
            return out
        return _made(_type_outside_inference(self), self._raw, self.requires_grad, None, self.__dict__, self._parameter)

    def _inside_transformation(self) -> bool:
        """Return whether the tensor is a value or an argument of a transformation, in which copies are recorded operations."""
        return getattr(self._raw, "level", 0) > 0 or (self._edge is not None and self._edge.seq >= 0)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """Return a copy of the data, ``.grad`` and, for a non-leaf, its graph.

        Tensors of one ``deepcopy`` that share memory have copies that share memory. Hooks are not copied.
        """
        from copy import deepcopy

        copying = _later("tape.copying")
        if id(self) in memo:
            return memo[id(self)]
        if self.is_leaf and self._inside_transformation():
            out: Tensor = TABLE["clone"](self)
        elif self.is_leaf:
            out = _made(
                _type_outside_inference(self), copying.copy_memory(_leaf_data(self), memo), self.requires_grad, None
            )
        else:
            if type(self._raw) is not ndarray and type(self._raw) is not Foreign:
                raise errors.deepcopy_non_leaf(self)
            out = _made(_type_outside_inference(self), self._raw.copy(order="K"), False, None)
            out._edge = copying.copy_graph(self._edge, memo)
            if self.retains_grad:
                out.retain_grad()
        memo[id(self)] = out
        if self._parameter:
            out._parameter = True
        if self._grad is not None:
            set_grad(out, deepcopy(self._grad, memo))
        for name, value in self.__dict__.items():
            out.__dict__[name] = deepcopy(value, memo)
        return out

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        if not self.is_leaf:
            raise errors.pickle_non_leaf(self)
        if self._edge is not None and self._edge.hooks is not None and self._edge.hooks.tensor:
            errors.warn_hooks_not_pickled(self._edge.hooks.tensor)
        grad = None if self._grad is None else self._grad.detach()
        kind = _type_outside_inference(self)
        return (
            _made,
            (
                None if kind is Tensor else kind,
                _leaf_data(self),
                self.requires_grad,
                grad,
                self.__dict__,
                self._parameter,
            ),
        )


class InferenceTensor(Tensor):
    """A tensor made in ``inference_mode``. A separate type keeps the check out of the fast path."""

    __slots__ = ()


InferenceTensor.__name__ = InferenceTensor.__qualname__ = "Tensor"
InferenceTensor.__module__ = Tensor.__module__
_new = object.__new__


def _leaf_data(tensor: Tensor) -> Any:
    """Return the data to copy for a leaf: its ndarray, or another library's array."""
    return tensor._raw if type(tensor._raw) is Foreign else tensor._array()


def _type_outside_inference(tensor: Tensor) -> type[Tensor]:
    """Return the type of a copy that is no inference tensor."""
    return Tensor if type(tensor) is InferenceTensor else type(tensor)


def no_torch_function(cls: object, func: object, types: object, args: object = (), kwargs: object = None) -> object:
    """Serve as the ``__torch_function__`` of classes that do not override operations: results are plain tensors."""
    return NotImplemented


def _alias(tensor: Tensor, data: AnyArray) -> Tensor:
    """Return a tensor of ``data`` without history, of the tensor's class if that class overrides operations."""
    kind = type(tensor)
    out = _new(Tensor if kind is not Tensor and kind.__torch_function__ is no_torch_function else kind)
    set_tensor_data(out, data)
    out._edge = None
    out._cut = None
    return out


def _made(
    kind: type[Tensor] | None,
    array: AnyArray,
    requires_grad: bool,
    grad: Tensor | None,
    attributes: Params | None = None,
    parameter: bool | None = None,
) -> Tensor:
    """Return a leaf made from its parts. Pickles call this function."""
    tensor = _new(kind or Tensor)
    tensor._raw = array if type(array) is not ndarray or array.flags.writeable else array.copy()
    tensor._edge = Leaf(tensor) if requires_grad else None
    tensor._cut = None
    set_grad(tensor, grad)
    if parameter:
        tensor._parameter = True
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


def wrap(data: object, edge: Edge | None = None) -> Tensor:
    """Return a Tensor of an array or another array-like (a NumPy scalar becomes a 0-d array)."""
    tensor = _new(InferenceTensor if ACTIVE_MODES and LOCAL.mode.inference else Tensor)
    if type(data) is ndarray:
        tensor._raw = trace_hooks.wrap_new_data(tensor, data) if ACTIVE_MODES else data
    elif isinstance(data, ArrayLike):
        tensor._raw = data
        if data.tracks_tensors:
            data.track_tensor(tensor)
        trace_hooks.note_holder(tensor)
    elif isinstance(data, np.generic):
        return wrap(np.asarray(data), edge)
    else:
        set_tensor_data(tensor, as_plain_array(data))
    tensor._edge = edge
    tensor._cut = None
    return tensor


def set_tensor_data(tensor: Tensor, data: object) -> None:
    """Set a tensor's data to an array-like."""
    assert not isinstance(data, Tensor), "a tensor holds data, not another tensor"
    tensor._raw = data = trace_hooks.note_new_data(tensor, data)
    if isinstance(data, ArrayLike) and data.tracks_tensors:
        data.track_tensor(tensor)


def set_grad(tensor: Tensor, grad: Tensor | None) -> None:
    """Set ``.grad``, and the array that the Leaf keeps of it."""
    tensor._grad = grad
    if type(tensor._edge) is Leaf:
        tensor._edge.grad = grad_array(grad)


def grad_array(grad: Tensor | None) -> NumpyArray | None:
    """Return the array of a gradient, which the Leaf keeps when its tensor is freed; None if it is no plain array."""
    return None if grad is None or type(grad._raw) is not ndarray else grad._raw


def _inside(tensor: Tensor, attribute: str = "") -> Any:
    """Return the inner tensor whose history is this tensor's (see ``ArrayLike.recorded``), or an attribute of it."""
    data = tensor._raw
    inner = data.recorded if isinstance(data, ArrayLike) else None
    return getattr(inner, attribute) if attribute and inner is not None else inner


Leaf.make_tensor = staticmethod(wrap)


def tensor_of(x: object) -> Tensor:
    """Return the tensor itself, or a tensor of raw data."""
    return x if isinstance(x, Tensor) else wrap(x)


def attach_methods(**methods: object) -> None:
    """Add methods to Tensor that higher-level modules define."""
    for name, function in methods.items():
        setattr(Tensor, name, function)


attach_methods(_made=staticmethod(_made))
_made.__module__, _made.__qualname__ = "chainrule", "Tensor._made"  # the name in pickles
