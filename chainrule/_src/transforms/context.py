"""The ``ctx`` of a custom Function, which stores tensors and attributes from forward for backward.

``Function.apply`` makes a ``FunctionCtx`` for each call.

Saved tensors are stored as data and an edge (for an output: its index), never as tensors. So the tape has no reference cycles, and
``saved_tensors`` returns tensors with their history.
"""

from __future__ import annotations

import functools
from functools import partial
from typing import Any

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import OpenRow
from chainrule._src.tape.eager import new_node
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL, is_recording
from chainrule._src.tape.node import Freed, Leaf, Node, output_of
from chainrule._src.tape.saved import pack_one, unpack_one
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.versions import CLOCK, writes_of
from chainrule._src.transforms.saved_tensor import SavedTensor

_TAKEN = (None,)  # marks saved tensors that were accessed, if only one access is allowed


class FunctionCtx:
    """The ``ctx`` that forward (or setup_context) fills and backward and jvp read. Any attribute may be set on it.

    Attributes:
        needs_input_grad: for each argument of ``apply``, whether it is a tensor that requires grad.
        saved_tensors: the tensors passed to ``save_for_backward`` (in jvp: to ``save_for_forward``).
    """

    __module__ = "chainrule.autograd.function"

    _forward_cls: Any = None
    needs_input_grad: tuple[bool, ...] = ()
    to_save: tuple[Tensor | None, ...] = ()
    saved_for_forward: tuple[Tensor | None, ...] | None = None
    dirty_tensors: tuple[Tensor, ...] = ()
    non_differentiable: tuple[Tensor, ...] = ()
    materialize_grads = True
    _kept: Any = ()  # for each saved tensor: None, or (data, edge or index of the output)
    _now: Any = None  # during backward: the node, or the saved tensors

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors (or None) for backward, which reads them from ``saved_tensors``. The last call counts.

        Inputs and outputs can be differentiated again (``create_graph``); other tensors are constants.

        Raises:
            TypeError: an argument is neither a tensor nor None (store it as an attribute instead).
        """
        self.to_save = _tensors_or_none("save_for_backward", tensors)

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for jvp, which reads them from ``saved_tensors``."""
        self.saved_for_forward = _tensors_or_none("save_for_forward", tensors)

    def mark_dirty(self, *args: Tensor) -> None:
        """Declare the inputs that forward wrote into. Each must be returned as an output."""
        self.dirty_tensors = _tensors("mark_dirty can only accept variables", args)

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Declare outputs without gradient: they will not require grad."""
        self.non_differentiable = _tensors("mark_non_differentiable only accepts variable arguments", args)

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (True, the default) or None for outputs that no gradient reaches."""
        self.materialize_grads = bool(value)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The saved tensors.

        Raises:
            RuntimeError: a backward pass freed them, or they were overwritten in place.
        """
        now = self._now
        if type(now) is tuple:
            return now
        tensors = self._unpacked(now)
        if getattr(self._forward_cls, "clear_saved_tensors_on_access", False):
            self._kept = _TAKEN
        return tensors

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The old name of ``saved_tensors``."""
        errors.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    def _raw(self, node: object) -> tuple[SavedTensor, ...]:
        """Return the stored saved tensors (``grad_fn._raw_saved_tensors``)."""
        if type(self._kept) is Freed:
            raise errors.second_backward(node)

        def read(i: int) -> AnyArray | None:
            return None if self._kept[i] is None else self._kept[i][0]

        def write(i: int, packed: object) -> None:
            kept = self._kept
            self._kept = (*kept[:i], (packed, kept[i][1]), *kept[i + 1 :])

        return tuple(SavedTensor(partial(read, i), partial(write, i)) for i in range(len(self._kept)))

    def name(self) -> str:
        """Return the name of the node, such as ``'MyFunctionBackward'``."""
        return type(self).__name__

    def _keep(self, inputs: tuple[object, ...], outputs: tuple[object, ...]) -> None:
        """Convert saved tensors to data and edges. An output is stored by its index: its edge would be a reference cycle."""
        kept: list[Any] = []
        hooks = ACTIVE_MODES and LOCAL.saved_hooks
        for tensor in self.to_save:
            if tensor is None:
                kept.append(None)
                continue
            edge = tensor._edge
            if edge is None or self.dirty_tensors:  # an output, but not an input that is returned unchanged
                for i, output in enumerate(outputs):
                    if output is tensor and (self.dirty_tensors or not any(x is tensor for x in inputs)):
                        edge = i
                        break
            kept.append((pack_one(tensor._raw) if hooks else tensor._raw, edge))
        self._kept = tuple(kept)
        self.to_save = ()

    def _without_history(self, node: Node) -> Any:
        """Return a ctx whose tensors (saved, or stored as attributes) are detached."""
        ctx = object.__new__(type(self))
        ctx.__dict__.update({k: wrap(v._raw) if isinstance(v, Tensor) else v for k, v in self.__dict__.items()})
        ctx._now = self._unpacked(node, bare=True)
        return ctx

    def _unpacked(self, node: Node, bare: bool = False) -> tuple[Tensor | None, ...]:
        kept = self._kept
        if type(kept) is Freed:
            raise errors.second_backward(self if node is None else node)
        if kept is _TAKEN:
            raise errors.function_saved_once(self._forward_cls.__name__)
        check = node is not None and CLOCK.latest > node.seq
        tensors: list[Tensor | None] = []
        for i, item in enumerate(kept):
            if item is None:
                tensors.append(None)
                continue
            handle, edge = item
            if check:
                written = writes_of(handle)
                if written is not None and written.times[-1] > node.seq:
                    raise errors.function_saved_was_written(node, i, handle, written)
            data = unpack_one(handle)
            if bare:
                edge = None
            elif type(edge) is int:
                if data.dtype.kind not in "fc" or node is None:
                    edge = None
                else:
                    edge = node if len(node.prim.outputs) == 1 else output_of(node, edge)
            leaf = edge.tensor() if type(edge) is Leaf else None
            tensors.append(leaf if leaf is not None and leaf._raw is data else wrap(data, edge))
        return tuple(tensors)


def _tensors_or_none(method: str, args: tuple[object, ...]) -> tuple[Any, ...]:
    for i, arg in enumerate(args):
        if arg is not None and not isinstance(arg, Tensor):
            raise errors.function_saves(method, i, arg)
    return args


def _tensors(message: str, args: tuple[TensorLike, ...]) -> tuple[Any, ...]:
    for i, arg in enumerate(args):
        if not isinstance(arg, Tensor):
            raise errors.function_marks(message, i, arg)
    return args


class _Twice(OpenRow):
    """The primitive of the node of a gradient that must not be differentiated."""

    __slots__ = ()

    def __init__(self) -> None:
        def delayed_error(x: object) -> object:
            """Raise when a gradient arrives."""
            return x

        super().__init__(delayed_error, "function")
        self.pullback = _differentiated_twice

    def node_name(self, params: Params, node: object = None) -> str:
        return "DelayedError"


def _differentiated_twice(node: Node, *_: object) -> Any:
    raise errors.once_differentiable(node.params["function"])


_TWICE = _Twice()


def once_differentiable(fn: AnyFunction) -> AnyFunction:
    """Decorate a backward that does not use recorded operations: differentiating its result again raises.

    Write it between ``@staticmethod`` and the function. Inside, gradient mode is off.

    Raises:
        RuntimeError: when a gradient of the gradient is computed.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> class Cube(cr.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     @cr.autograd.function.once_differentiable
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return cr.from_numpy(3 * g.numpy() * x.detach().numpy() ** 2)
    >>> x = cr.tensor([2.], requires_grad=True)
    >>> cr.autograd.grad(Cube.apply(x), x)
    (tensor([12.]),)
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *grads: Tensor) -> Any:
        with no_grad():
            results = fn(ctx, *grads)
        if not is_recording():
            return results
        edges = [g._edge for g in grads if isinstance(g, Tensor) and g._edge is not None]
        if isinstance(ctx._now, Node):
            edges += [edge for edge in ctx._now.edges if edge is not None]
        if not edges:
            return results
        single = not isinstance(results, tuple)
        guarded = tuple(_guarded(r, edges, ctx) for r in ((results,) if single else results))
        return guarded[0] if single else guarded

    wrapper.__dict__["_once_differentiable"] = True
    return wrapper


def _guarded(result: AnyArray, edges: list[Any], ctx: Any) -> AnyArray:
    if not isinstance(result, Tensor) or result._raw.dtype.kind not in "fc":
        return result
    return wrap(result._raw, new_node(_TWICE, {"function": ctx._forward_cls.__name__}, tuple(edges)))
