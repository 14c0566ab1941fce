"""Custom derivative rules: ``autograd.Function``.

``MyFunction.apply(*args)`` runs ``forward`` unrecorded and puts one node on the tape. Its row is made for the class, its
pullback calls the class's ``backward`` with tensors. With ``create_graph`` what backward computes is recorded, as any
other rule is. What happens inside vmap and jvp is in ``function_levels``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from sys import getrefcount
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.autograd import function_levels
from chainrule.autograd.context import FunctionCtx, once_differentiable
from chainrule.core.inplace import continue_history
from chainrule.core.kinds import unfit
from chainrule.core.modes import LOCAL, STATE, _set_grad
from chainrule.core.node import FREED, Leaf, Node, Output, next_seq
from chainrule.core.primitive import Primitive
from chainrule.core.protocol import ArrayLike
from chainrule.core.tensor import Tensor, wrap
from chainrule.core.versions import owner, wrote
from chainrule.core.view import enter

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "once_differentiable"]

ndarray = np.ndarray
new = object.__new__
_HOLDS = (None,)  # what a node saves whose ctx holds the saved tensors: the engine frees it, and so tells us


class FunctionRow(Primitive):
    """The row of a custom Function: what its nodes ask for a name and a rule. It is not in the table."""

    __slots__ = ("function",)

    def __init__(self, function: type[Function], outputs: int) -> None:
        def apply(x: Any) -> Any:
            return function.apply(x)

        super().__init__(apply, "function", outputs=tuple(f"out{i}" for i in range(outputs)) if outputs > 1 else ("out",))
        self.function = function
        self.name = function.__name__
        self.doc = function.__doc__ or ""
        self.saves = ("x",)
        self.save_users = (None,)
        self.pullback = _pullback

    def __reduce__(self) -> Any:
        return (_row, (self.function, len(self.outputs)))

    def node_name(self, params: dict[str, Any], node: Any = None) -> str:
        return self.name + "Backward"

    def attribute(self, node: Any, name: str) -> Any:
        """``grad_fn.name`` for what is the ctx's: PyTorch's ctx and node are one object."""
        ctx = node.params["ctx"]
        if name in ("saved_tensors", "saved_variables"):
            return ctx._unpacked(node)
        if name == "_raw_saved_tensors":
            return tuple(ctx._kept)
        if name.startswith("__") or name == "meta" or not hasattr(ctx, name):
            raise AttributeError(f"'{node.name()}' object has no attribute {name!r}")
        return getattr(ctx, name)


def _row(function: type[Function], outputs: int) -> FunctionRow:
    row = function._rows.get(outputs)
    if row is None:
        row = function._rows[outputs] = FunctionRow(function, outputs)
    return row


class Function:
    """Base of custom differentiable functions: define ``forward`` and ``backward`` as static methods, call ``apply``.

    ``forward(ctx, *args)`` computes the result with whatever code it likes; its operations are not recorded.
    ``backward(ctx, *grads)`` gets ∂L/∂output for every output of forward and returns ∂L/∂arg for every argument (None
    for those that are no tensors). Alternatively ``forward(*args)`` has no ctx, and ``setup_context(ctx, inputs,
    output)`` fills it. Optional static methods: ``jvp(ctx, *tangents)`` for forward mode (without it, the transpose of
    backward is used) and ``vmap(info, in_dims, *args)``, which returns ``(output, out_dims)`` (without it, forward and
    backward run on batched tensors).

    >>> import chainrule as cr
    >>> class Step(cr.autograd.Function):
    ...     "A step, whose gradient pretends that it is the identity."
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

    generate_vmap_rule = False
    _rows: dict[int, FunctionRow] = {}
    _backward_cls: type[FunctionCtx] = FunctionCtx

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._rows = {}
        cls._backward_cls = type(cls.__name__ + "Backward", (FunctionCtx,), {"_forward_cls": cls})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise errors.function_instance(type(self).__name__)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The value: ``forward(ctx, *args)``, or ``forward(*args)`` next to ``setup_context``."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill the ctx from forward's arguments and result, where forward has no ctx of its own."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The VJP: from one gradient per output of forward to one per argument. ``vjp`` is another name for it."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The JVP: from one tangent per argument of forward (None for what is no tensor) to one per output."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """What :func:`vmap` calls, if it is defined: arguments have their batch axis at ``in_dims`` (None: no axis).

        ``info`` has ``batch_size`` and ``randomness``. Returns ``(output, out_dims)``.
        """
        raise NotImplementedError("To use autograd.Function with vmap, you must implement the vmap staticmethod.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward on the arguments and record the function as one node.

        Tensors are differentiated where they are arguments of their own; anything else (also tensors in a list) is passed
        on as it is. Keywords are for functions with ``setup_context``; elsewhere pass everything by position.
        """
        old = cls.setup_context is _SETUP_CONTEXT
        if not old:
            args = _bound(cls.forward, args, kwargs)
        elif kwargs:
            raise errors.function_keywords(cls.__name__, kwargs)
        edges = []
        fits = []
        needs = []
        at = []
        needed = False
        for i, x in enumerate(args):
            if type(x) is Tensor or isinstance(x, Tensor):
                data = x._data
                if type(data) is not ndarray:
                    return function_levels.apply(cls, args)
                at.append(i)
                edge = x._edge
                edges.append(edge)
                fits.append((data.shape, data.dtype))
                if edge is None:
                    needs.append(False)
                else:
                    needed = True
                    needs.append(True)
            else:
                if isinstance(x, ArrayLike):
                    return function_levels.apply(cls, args)
                needs.append(False)
        ctx = new(cls._backward_cls)
        ctx.needs_input_grad = tuple(needs)
        output = run_forward(cls, ctx, args, old)
        if not needed or not LOCAL.grad:
            return _unrecorded(ctx, args, output, needed)
        outputs = output if isinstance(output, tuple) else (output,)
        n = len(outputs)
        marked = ctx.dirty_tensors or ctx.non_differentiable
        if marked:
            _check_dirty(ctx, args, outputs)
        node = Node()
        node.prim = cls._rows.get(n) or _row(cls, n)
        node.pullback = _pullback
        node.params = {"ctx": ctx, "at": at, "count": len(args)}
        node.edges = tuple(edges)
        node.fits = tuple(fits)
        node.hooks = None
        if ctx.to_save:
            ctx._keep(args, outputs)
            node.saved = _HOLDS
        else:
            node.saved = ()
        node.seq = next_seq()
        if STATE.special and LOCAL.watch is not None:
            LOCAL.watch.recorded(node)
        if n == 1 and not isinstance(output, tuple):
            result = _output(output, node, ctx, args, 0)
            if marked:
                _unmark(ctx)
            return result
        if n != 1:
            seq = next_seq()
            node.params["_outputs"] = (None,) * n
            node.params["about"] = tuple((o._data.shape, o._data.dtype) if isinstance(o, Tensor) else None for o in outputs)
        results = tuple(_output(o, node if n == 1 else Output(node, i, seq), ctx, args, i) for i, o in enumerate(outputs))
        if marked:
            _unmark(ctx)
        return results


_SETUP_CONTEXT = Function.setup_context


def _bound(forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments as one tuple, with keywords and defaults in their places."""
    code = getattr(forward, "__code__", None)
    if not kwargs and code is not None and len(args) == code.co_argcount and not code.co_flags & 0x04:
        return args
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def run_forward(cls: type[Function], ctx: Any, args: tuple[Any, ...], old: bool) -> Any:
    """Forward (and setup_context), unrecorded."""
    asked, quiet = LOCAL.asked, LOCAL.quiet
    if asked:
        _set_grad(False)
    LOCAL.quiet = True
    try:
        if old:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output
    finally:
        LOCAL.quiet = quiet
        if asked:
            _set_grad(True)


def _unmark(ctx: Any) -> None:
    """Let the marked tensors go, so that nothing the node holds leads back to it."""
    ctx.dirty_tensors = ctx.non_differentiable = ()


def _check_dirty(ctx: Any, args: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """Raise for marks that cannot be honoured; count the writes."""
    name = ctx._forward_cls.__name__
    for tensor in ctx.dirty_tensors:
        if not any(o is tensor for o in outputs):
            raise errors.function_dirty_lost(name)
        if not any(x is tensor for x in args):
            continue
        if type(tensor._edge) is Leaf:
            raise errors.function_dirty_leaf(name)
        if tensor._view is not None:
            if type(tensor._view.base._edge) is Leaf:
                raise errors.function_dirty_leaf(name)
            if len(outputs) > 1:
                raise errors.function_dirty_view(name)
        wrote(tensor._data, name, errors.user_line())


def _output(output: Any, edge: Any, ctx: Any, args: tuple[Any, ...], index: int) -> Any:
    """An output of forward, as a tensor of the new node."""
    if not isinstance(output, Tensor):
        return output
    data = output._data
    given = False
    for x in args:
        if x is output:
            given = True
            break
    if ctx.non_differentiable and any(t is output for t in ctx.non_differentiable):
        return _cut(wrap(data) if given else output, ctx)
    if data.dtype.kind not in "fc":
        return _cut(wrap(data) if given else output, ctx)
    if given and ctx.dirty_tensors and any(t is output for t in ctx.dirty_tensors):
        continue_history(output, edge)
        return output
    if given or output._edge is not None or output._view is not None or type(output) is not Tensor:
        output = wrap(data, edge)
    else:
        output._edge = edge
    if given or data.base is not None:
        memory = owner(data)
        for x in args:
            if isinstance(x, Tensor) and owner(x._data) is memory:
                enter(output, x, (), "function")
                break
    return output


def _cut(output: Tensor, ctx: Any) -> Tensor:
    if output._edge is not None:
        output = wrap(output._data)
    output._cut = errors.Cut(ctx._forward_cls.__name__, errors.user_line())
    return output


def _unrecorded(ctx: Any, args: tuple[Any, ...], output: Any, needed: bool) -> Any:
    """The outputs where no node is made: an input that is returned is another tensor on the same memory."""
    cut = errors.Cut("no_grad", errors.user_line()) if needed else None
    dirty = ctx.dirty_tensors
    ctx.to_save = ()

    def plain(o: Any) -> Any:
        if not isinstance(o, Tensor) or (dirty and any(o is t for t in dirty)):
            return o
        if any(o is x for x in args):
            o = wrap(o._data)
        if o._edge is None:
            o._cut = cut if cut is not None else o._cut
        return o

    if dirty:
        outputs = output if isinstance(output, tuple) else (output,)
        for tensor in dirty:
            if not any(o is tensor for o in outputs):
                raise errors.function_dirty_lost(ctx._forward_cls.__name__)
            wrote(tensor._data, ctx._forward_cls.__name__, errors.user_line())
    return tuple(map(plain, output)) if isinstance(output, tuple) else plain(output)


# -- the backward pass ------------------------------------------------------------------------------------------------


def rule_of(cls: type[Function]) -> Callable[..., Any]:
    """The class's backward, under whichever of its two names it was defined."""
    rule = cls.backward
    if cls.vjp is not _BACKWARD:
        if rule is not _BACKWARD:
            raise errors.function_two_rules(cls.__name__)
        return cls.vjp
    return rule


_BACKWARD = Function.backward


def _pullback(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """Call the class's backward, and hand on what it returned as every rule does."""
    params = node.params
    ctx = params["ctx"]
    if type(g) is ndarray:
        recorded = bare = False
        tensor = new(Tensor)
        tensor._data = g
        tensor._edge = tensor._cut = None
        gs: tuple[Any, ...] = (tensor,)
    elif type(g) is tuple:
        recorded = any(isinstance(part, Tensor) for part in g)
        gs = cotangents(g, params["about"], ctx.materialize_grads)
        bare = not recorded and any(part is not None and type(part._data) is not ndarray for part in gs)
    else:
        recorded = isinstance(g, Tensor)
        gs = (g,) if recorded else (wrap(g),)
        bare = not recorded
    # The values inside a vmap or jvp may be on an outer tape: that goes on recording when this one does not.
    ctx._now = ctx._unpacked(node, bare=True) if bare and ctx._kept and not in_graph() else node
    try:
        results = run_backward(ctx, gs, recorded or bare)
    finally:
        ctx._now = None
    if node.saved is FREED and ctx._kept:
        ctx._kept = FREED
    at = params["at"]
    if len(results) != params["count"] or len(at) != len(results):
        results = counted(node.prim.name, results, at, params["count"])
    grads = []
    for i, fit, edge in zip(at, node.fits, edges):
        result = results[i]
        if edge is None or result is None:
            grads.append(None)
            continue
        if not isinstance(result, Tensor):
            raise errors.function_grad_type(node.prim.name, i, result)
        data = result._data
        if data.dtype is not fit[1] or data.shape != fit[0]:
            result = fitted(node.prim.name, i, result, *fit)
            data = result._data
        if recorded or (bare and result._edge is not None):
            grads.append(result)
        elif (
            type(data) is ndarray
            and (getrefcount(data) > _FRESH_DATA or getrefcount(result) > _FRESH_RESULT)
            and not any(data is part._data for part in gs if part is not None)
        ):
            grads.append(data.view())  # others hold this memory: whoever keeps the gradient copies a view
        else:
            grads.append(data)
    return tuple(grads)


def in_graph() -> bool:
    """Whether the backward pass that is running is one with ``create_graph``."""
    return LOCAL.sweep is not None and bool(LOCAL.sweep[3])


def run_backward(ctx: Any, gs: tuple[Any, ...], recorded: bool) -> tuple[Any, ...]:
    """What the class's backward returns, as a tuple; unrecorded, unless its gradients are tensors of the tape."""
    cls = ctx._forward_cls
    rule = cls.backward if cls.vjp is _BACKWARD else rule_of(cls)
    quiet = LOCAL.quiet
    change = LOCAL.asked and not recorded
    if change:
        _set_grad(False)
    LOCAL.quiet = True
    try:
        results = rule(ctx, *gs)
    finally:
        LOCAL.quiet = quiet
        if change:
            _set_grad(True)
    return results if isinstance(results, tuple) else (results,)


def cotangents(g: tuple[Any, ...], about: tuple[Any, ...], materialize: bool) -> tuple[Any, ...]:
    """The gradients of several outputs as backward gets them: zeros where none arrived, None for what is no tensor."""
    return tuple(
        (None if fit is None or not materialize else wrap(np.zeros(*fit)))
        if part is None
        else part
        if isinstance(part, Tensor)
        else wrap(part)
        for part, fit in zip(g, about, strict=True)
    )


def counted(name: str, results: tuple[Any, ...], at: tuple[int, ...], count: int) -> tuple[Any, ...]:
    """One result for each argument (surplus None is dropped), None for each that is no tensor."""
    if len(results) < count or any(r is not None for r in results[count:]):
        raise errors.function_grad_count(name, count, len(results))
    for i, result in enumerate(results[:count]):
        if result is not None and i not in at:
            raise errors.function_grad_of_constant(name, i)
    return results[:count]


def fitted(name: str, index: int, result: Tensor, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
    """A gradient in its argument's shape (summed over broadcast axes) and dtype."""
    have = result._data.shape
    if have != shape:
        extra = len(have) - len(shape)
        if extra < 0 or any(n not in (1, m) for n, m in zip(shape, have[extra:])):
            raise errors.function_grad_shape(name, index, have, shape)
    if result._data.dtype.kind == "c" and dtype.kind != "c":
        raise errors.function_grad_complex(name, index)
    fit = unfit(result, shape, dtype)
    return fit if isinstance(fit, Tensor) else wrap(fit)


def _fresh_counts() -> tuple[int, int]:
    """What ``getrefcount`` says, in ``_pullback``, of an array and a tensor that nobody else holds."""
    tensor = new(Tensor)
    tensor._data = np.empty(1)
    results = (tensor,)
    del tensor
    result = results[0]
    data = result._data
    return getrefcount(data), getrefcount(result)


_FRESH_DATA, _FRESH_RESULT = _fresh_counts()


class InplaceFunction(Function):
    """An old name: a :class:`Function` that has ``inplace`` for its constructor. Functions are not constructed any more."""


class NestedIOFunction(Function):
    """An old name for functions of nested arguments, which cannot be used: take tensors as arguments of their own."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        raise errors.function_nested(cls.__name__)
