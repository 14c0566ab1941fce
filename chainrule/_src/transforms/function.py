"""Custom derivative rules: ``autograd.Function``.

``chainrule.autograd`` exports ``Function``.

``MyFunction.apply(*args)`` runs ``forward`` unrecorded and puts one node on the tape, whose rule calls ``backward`` (see
``function_rule``). With ``create_graph`` the operations of backward are recorded, like those of any other rule.
``function_transforms`` implements Functions inside vmap and jvp.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np

from chainrule._src.api.array import Array, as_arrays, as_tensors
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.tape.eager import new_node
from chainrule._src.tape.inplace import check_history, rebase_history
from chainrule._src.tape.modes import LOCAL, WATCHES
from chainrule._src.tape.node import Edge, Leaf, Output, next_seq
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.versions import note_write, owner
from chainrule._src.tape.view import register_view
from chainrule._src.transforms import function_transforms
from chainrule._src.transforms.context import FunctionCtx
from chainrule._src.transforms.function_rule import SETUP_CONTEXT, FunctionMethods, FunctionRow, row_of, run_forward

ndarray = np.ndarray
new = object.__new__
_HOLDS = (None,)  # saved by a node whose ctx holds the saved tensors, so that freeing it marks them as freed


class Function(FunctionMethods):
    """Base of custom differentiable functions: define ``forward`` and ``backward`` as static methods, call ``apply``.

    ``forward(ctx, *args)`` computes the result with any code; its operations are not recorded. ``backward(ctx, *grads)`` gets
    ∂L/∂output for every output of forward and returns ∂L/∂arg for every argument (None for arguments that are not tensors).
    Alternatively, define ``forward(*args)`` without ctx, and ``setup_context(ctx, inputs, output)`` to fill it. Optional static
    methods: ``jvp(ctx, *tangents)`` for forward mode (default: the transpose of backward), and ``vmap(info, in_dims, *args)``,
    which returns ``(output, out_dims)`` (default: forward and backward run on batched tensors).

    >>> import chainrule as cr
    >>> class Step(cr.autograd.Function):
    ...     "A step function with the gradient of the identity."
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return (x > 0).to(x.dtype)
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g
    >>> x = cr.tensor([-1., 2.], requires_grad=True)
    >>> y = Step.apply(x)
    >>> y
    tensor([0., 1.], grad_fn=<StepBackward>)
    >>> y.sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    __module__ = "chainrule.autograd.function"
    generate_vmap_rule = False
    _rows: ClassVar[dict[int, FunctionRow]] = {}
    _backward_cls: ClassVar[type[FunctionCtx]] = FunctionCtx

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._rows = {}
        cls._backward_cls = type(cls.__name__ + "Backward", (FunctionCtx,), {"_forward_cls": cls})

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise errors.function_instance(type(self).__name__)

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward on the arguments and record the function as one node.

        Tensor arguments are differentiated; other arguments (also lists of tensors) are passed unchanged. Keywords are
        allowed only for functions with ``setup_context``.
        """
        if cls.setup_context is not SETUP_CONTEXT:
            args = _bound(cls.forward, args, kwargs)
        elif kwargs:
            raise errors.function_keywords(cls.__name__, kwargs)
        edges = []
        in_avals = []
        needs = []
        at = []
        for i, x in enumerate(args):
            if type(x) is Tensor or isinstance(x, Tensor):
                data = x._raw
                if type(data) is not ndarray:
                    return function_transforms.apply(cls, args)
                at.append(i)
                edge = x._edge
                edges.append(edge)
                in_avals.append((data.shape, data.dtype))
                needs.append(edge is not None)
            else:
                if isinstance(x, ArrayLike):
                    return function_transforms.apply(cls, args)
                if type(x) is Array:
                    result = cls.apply(*as_tensors(args))
                    return result if any(isinstance(y, Tensor) for y in args) else as_arrays(result)
                needs.append(False)
        ctx = new(cls._backward_cls)
        ctx.needs_input_grad = tuple(needs)
        output = run_forward(cls, ctx, args)
        needed = True in needs
        if not needed or not LOCAL.mode.records:
            return _unrecorded(ctx, args, output, needed)
        outputs = output if isinstance(output, tuple) else (output,)
        n = len(outputs)
        marked = ctx.dirty_tensors or ctx.non_differentiable
        if marked:
            _check_dirty(ctx, args, outputs)
        saved: tuple[Any, ...] = ()
        if ctx.to_save:
            ctx._keep(args, outputs)
            saved = _HOLDS
        row = cls._rows.get(n) or row_of(cls, n)
        node = new_node(row, {"ctx": ctx, "at": at, "count": len(args)}, tuple(edges), saved, tuple(in_avals), depth=2)
        if WATCHES and LOCAL.watch is not None:
            LOCAL.watch.recorded(node)
        if n == 1 and not isinstance(output, tuple):
            result = _output(output, node, ctx, args, 0)
            if marked:
                _unmark(ctx)
            return result
        if n != 1:
            seq = next_seq()
            node.params["_outputs"] = (None,) * n
            node.params["about"] = tuple(
                (o._raw.shape, o._raw.dtype) if isinstance(o, Tensor) else None for o in outputs
            )
        results = tuple(
            _output(o, node if n == 1 else Output(node, i, seq), ctx, args, i) for i, o in enumerate(outputs)
        )
        if marked:
            _unmark(ctx)
        return results


def _bound(forward: AnyFunction, args: tuple[object, ...], kwargs: Params) -> tuple[Any, ...]:
    """Return the arguments as one tuple, with keywords and defaults at their positions."""
    code = getattr(forward, "__code__", None)
    if not kwargs and code is not None:
        missing = code.co_argcount - len(args)
        if missing == 0 or (missing < 0 and code.co_flags & 0x04):  # *args
            return args
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    only = [name for name in kwargs if name in bound.kwargs]
    if only:
        raise errors.function_keyword_only(forward, only)
    return bound.args


def _unmark(ctx: Any) -> None:
    """Drop the marked tensors, to avoid reference cycles with the node."""
    ctx.dirty_tensors = ctx.non_differentiable = ()


def _check_dirty(ctx: Any, args: tuple[object, ...], outputs: tuple[object, ...]) -> None:
    """Raise for invalid mark_dirty calls; register the writes."""
    name = ctx._forward_cls.__name__
    for tensor in ctx.dirty_tensors:
        if not any(o is tensor for o in outputs):
            raise errors.function_dirty_lost(name)
        if not any(x is tensor for x in args):
            if tensor._view is not None:
                raise errors.function_dirty_no_input(name)
            errors.warn_dirty_no_input(name)
            continue
        if type(tensor._edge) is Leaf:
            raise errors.function_dirty_leaf(name)
        if tensor._view is not None:
            if tensor._view.origin:
                raise errors.view_in_place(tensor._view.origin, name)
            if type(tensor._view.base._edge) is Leaf:
                raise errors.function_dirty_leaf(name)
            if len(outputs) > 1:
                raise errors.function_dirty_view(name)
        note_write(tensor._raw, name, errors.user_line())


def _output(output: object, edge: Edge, ctx: Any, args: tuple[object, ...], index: int) -> Any:
    """Return an output of forward as a tensor of the new node."""
    if not isinstance(output, Tensor):
        return output
    data = output._raw
    given = False
    for x in args:
        if x is output:
            given = True
            break
    if data.dtype.kind not in "fc" or (ctx.non_differentiable and any(t is output for t in ctx.non_differentiable)):
        return _cut(wrap(data) if given else output, ctx)
    if given and ctx.dirty_tensors and any(t is output for t in ctx.dirty_tensors):
        rebase_history(output, edge)
        return output
    if given or output._edge is not None or output._view is not None or type(output) is not Tensor:
        output = wrap(data, edge)
    else:
        output._edge = edge
    if given or data.base is not None:
        memory = owner(data)
        for x in args:
            if isinstance(x, Tensor) and owner(x._raw) is memory:
                register_view(output, x, (), "function")
                break
    return output


def _cut(output: Tensor, ctx: Any) -> Tensor:
    if output._edge is not None:
        output = wrap(output._raw)
    output._cut = errors.Cut(ctx._forward_cls.__name__, errors.user_line())
    return output


def _unrecorded(ctx: Any, args: tuple[object, ...], output: AnyArray, needed: bool) -> Any:
    """Return the outputs without a node; an input that is returned becomes a new tensor on the same memory."""
    cut = errors.Cut("no_grad", errors.user_line()) if needed else None
    dirty = ctx.dirty_tensors
    ctx.to_save = ()

    def plain(o: AnyArray) -> AnyArray:
        if not isinstance(o, Tensor) or (dirty and any(o is t for t in dirty)):
            return o
        if any(o is x for x in args):
            o = wrap(o._raw)
        elif o._view is not None and o._view.origin == "no_grad" and LOCAL.mode.records:
            o._view.origin = "function"  # forward ran unrecorded, not the user's code
        if o._edge is None:
            o._cut = cut if cut is not None else o._cut
        return o

    if dirty:
        outputs = output if isinstance(output, tuple) else (output,)
        for tensor in dirty:
            if not any(o is tensor for o in outputs):
                raise errors.function_dirty_lost(ctx._forward_cls.__name__)
            if LOCAL.mode.records and tensor._view is not None and tensor._view.base._edge is not None:
                check_history(tensor, ctx._forward_cls.__name__)  # a constant view of a tensor that is on the tape
            note_write(tensor._raw, ctx._forward_cls.__name__, errors.user_line())
    return tuple(map(plain, output)) if isinstance(output, tuple) else plain(output)


class InplaceFunction(Function):
    """Deprecated: a :class:`Function` with ``inplace`` as a constructor argument. Functions have no instances now."""

    __module__ = "chainrule.autograd.function"


class NestedIOFunction(Function):
    """Deprecated and not supported: a function of nested arguments. Pass tensors as separate arguments instead."""

    __module__ = "chainrule.autograd.function"

    @classmethod
    def apply(cls, *args: TensorLike, **kwargs: Any) -> Any:
        raise errors.function_nested(cls.__name__)
