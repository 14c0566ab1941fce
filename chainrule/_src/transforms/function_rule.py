"""Run the methods of custom Functions: their primitive (``FunctionRow``), and the checks of results of backward.

``function`` and ``function_transforms`` call this module.

A Function's node has a primitive made for the class. Its pullback calls the class's ``backward`` with tensors, checks the results,
and casts and sums them to the arguments' dtypes and shapes, like ``kinds`` for the rules of the op table.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyDType, Params
from chainrule._src.messages import errors
from chainrule._src.rules.kinds import unbroadcast
from chainrule._src.rules.primitive import OpenRow
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.hooks import mark_escaped
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL, MODES
from chainrule._src.tape.node import Freed, Node
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap

ndarray = np.ndarray
new = object.__new__


class FunctionMethods:
    """The default static methods of a Function."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the value: ``forward(ctx, *args)``, or ``forward(*args)`` if the class defines ``setup_context``."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[object, ...], output: Any) -> Any:
        """Fill the ctx from forward's arguments and result, if forward takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the VJP: from one gradient per output of forward to one per argument. ``vjp`` is an alias."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute the JVP: from one tangent per argument of forward (None for non-tensors) to one per output."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Compute a batch; :func:`vmap` calls it if it is defined. Arguments have their batch axis at ``in_dims`` (or None).

        ``info`` has ``batch_size`` and ``randomness``. Return ``(output, out_dims)``.
        """
        raise NotImplementedError("To use autograd.Function with vmap, you must implement the vmap staticmethod.")


SETUP_CONTEXT = FunctionMethods.setup_context
_BACKWARD = FunctionMethods.backward


def overrides_method(cls: object, method: str) -> bool:
    """Return whether a class overrides a method."""
    return getattr(cls, method) is not getattr(FunctionMethods, method)


class FunctionRow(OpenRow):
    """The primitive of a custom Function with a given number of outputs; it is not in the op table.

    The primitive with 0 outputs is passed to ``bind`` inside transformations, with a ``FunctionCall`` as its parameter.
    """

    __slots__ = ("function",)

    def __init__(self, function: type, outputs: int) -> None:
        def forward(x: Any, *, call: Any) -> Any:
            return call.forward(x)

        names = ("out",) if outputs == 1 else tuple([f"out{i}" for i in range(outputs)])
        super().__init__(forward, "function", outputs=names)
        self.function = function
        self.name = function.__name__
        self.doc = function.__doc__ or ""
        if outputs:
            self.saves = ("x",)
            self.save_users = (None,)
            self.pullback = pullback
        else:
            self.value = lambda *operands, call: call.forward(operands)
            self.jvp = lambda primals, tangents, out, params: params["call"].jvp(primals, tangents, out)
            self.pullback = lambda node, g, saved, edges: node.params["call"].pullback(node, g, edges)

    def __reduce__(self) -> tuple[object, ...]:
        return (row_of, (self.function, len(self.outputs)))

    def node_name(self, params: Params, node: object = None) -> str:
        return self.name + "Backward"

    def attribute(self, node: Node, name: str) -> Any:
        """Return an attribute of the ctx as ``grad_fn.name``: in PyTorch, ctx and node are one object."""
        if name.startswith("__") or name in Node.__slots__:
            raise errors.no_node_attribute(node.name(), name)
        ctx = node.params["ctx"]
        if name in ("saved_tensors", "saved_variables"):
            return ctx._unpacked(node)
        if name == "_raw_saved_tensors":
            return ctx._raw(node)
        if not hasattr(ctx, name):
            raise errors.no_node_attribute(node.name(), name)
        return getattr(ctx, name)


def row_of(function: Any, outputs: int) -> FunctionRow:
    row: FunctionRow | None = function._rows.get(outputs)
    if row is None:
        row = function._rows[outputs] = FunctionRow(function, outputs)
    return row


def run_forward(cls: Any, ctx: Any, args: tuple[Any, ...]) -> Any:
    """Run forward (and setup_context), unrecorded."""
    outer = LOCAL.mode
    try:
        LOCAL.mode = MODES[False, outer.inference, True]
        if outer.records:
            ACTIVE_MODES.append(None)
        if cls.setup_context is SETUP_CONTEXT:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output
    except TypeError as error:
        errors.note_without_ctx(cls, error)
        raise
    finally:
        left, LOCAL.mode = LOCAL.mode, outer
        if left.records is not outer.records:
            ACTIVE_MODES.pop() if outer.records else ACTIVE_MODES.append(None)


def rule_of(cls: Any) -> AnyFunction:
    """Return the class's backward, which may be defined as ``backward`` or ``vjp``."""
    rule: AnyFunction = cls.backward
    if cls.vjp is not _BACKWARD:
        if rule is not _BACKWARD:
            raise errors.function_two_rules(cls.__name__)
        return cls.vjp
    return rule


def pullback(node: Any, g: Any, saved: tuple[object, ...], edges: tuple[object, ...]) -> tuple[AnyArray | None, ...]:
    """Call the class's backward; check its results, and return gradients like any other pullback."""
    params = node.params
    ctx = params["ctx"]
    if type(g) is ndarray:
        recorded = bare = False
        tensor = new(Tensor)
        tensor._raw = trace_hooks.wrap_new_data(tensor, g) if ACTIVE_MODES else g
        tensor._edge = tensor._cut = None
        gs: tuple[Any, ...] = (tensor,)
    elif type(g) is tuple:
        recorded = any(isinstance(part, Tensor) for part in g)
        gs = output_cotangents(g, params["about"], ctx.materialize_grads)
        bare = not recorded and any(part is not None and type(part._raw) is not ndarray for part in gs)
    else:
        recorded = isinstance(g, Tensor)
        gs = (g,) if recorded else (wrap(g),)
        bare = not recorded and type(gs[0]._raw) is not ndarray  # a NumPy scalar has no levels either
    # Values inside a vmap or jvp may be on an outer tape, which continues to record when this one does not.
    reader = ctx._without_history(node) if bare and not in_graph() else ctx
    if reader is ctx:
        ctx._now = node
    try:
        results = run_backward(reader, gs, recorded or bare)
    finally:
        ctx._now = None
    mark_escaped(*g) if type(g) is tuple else mark_escaped(g)
    if type(node.saved) is Freed and ctx._kept:
        ctx._kept = node.saved
    at = params["at"]
    if len(results) != params["count"] or len(at) != len(results):
        results = check_count(node.prim.function, results, at, params["count"], node)
    grads: list[AnyArray | None] = []
    for i, fit, edge in zip(at, node.in_avals, edges):
        result = results[i]
        if edge is None or result is None:
            grads.append(None)
            continue
        if not isinstance(result, Tensor):
            raise errors.function_grad_type(node.prim.function, i, result, node)
        data = result._raw
        if data.dtype is not fit[1] or data.shape != fit[0]:
            shapes = [shape for shape, _ in node.in_avals]
            result = fit_gradient(node.prim.function, i, result, fit[0], fit[1], shapes, node)
            data = result._raw
        if recorded or (bare and result._edge is not None):
            if recorded and result._edge is None:
                result._cut = errors.Cut(f"{node.prim.name}.backward", None)
            grads.append(result)
        elif type(data) is ndarray and (getrefcount(data) > _FRESH_DATA or getrefcount(result) > _FRESH_RESULT):
            grads.append(data.view())  # the memory is shared: a view is copied before it is stored as a gradient
        else:
            grads.append(data)
    return tuple(grads)


def in_graph() -> bool:
    """Return whether the running backward pass has ``create_graph``."""
    return LOCAL.sweep is not None and LOCAL.sweep.create_graph


def run_backward(ctx: Any, gs: tuple[Tensor | None, ...], recorded: bool) -> tuple[Tensor | None, ...]:
    """Run the class's backward, and return its result as a tuple; it is recorded only if ``recorded``."""
    cls = ctx._forward_cls
    rule = cls.backward if cls.vjp is _BACKWARD else rule_of(cls)
    outer = LOCAL.mode
    try:
        LOCAL.mode = mode = MODES[outer.grad and recorded, outer.inference, True]
        if outer.records and not mode.records:
            ACTIVE_MODES.append(None)
        results = rule(ctx, *gs)
    except ValueError as error:
        errors.note_nothing_saved(cls, ctx, error)
        raise
    finally:
        left, LOCAL.mode = LOCAL.mode, outer
        if left.records is not outer.records:
            ACTIVE_MODES.pop() if outer.records else ACTIVE_MODES.append(None)
    return results if isinstance(results, tuple) else (results,)


def output_cotangents(g: tuple[object, ...], about: tuple[Any, ...], materialize: bool) -> tuple[Tensor | None, ...]:
    """Return the gradients of several outputs for backward: zeros for missing ones, None for outputs that are not tensors."""
    return tuple(
        (None if fit is None or not materialize else wrap(np.zeros(*fit)))
        if part is None
        else part
        if isinstance(part, Tensor)
        else wrap(part)
        for part, fit in zip(g, about, strict=True)
    )


def check_count(
    cls: Any, results: tuple[Tensor | None, ...], at: tuple[int, ...], count: int, node: Node | None = None
) -> tuple[Any, ...]:
    """Return one result for each argument (dropping surplus None); raise for a wrong count or a gradient of a constant."""
    if len(results) < count or any(r is not None for r in results[count:]):
        raise errors.function_grad_count(cls, count, results, node)
    for i, result in enumerate(results[:count]):
        if result is not None and i not in at:
            raise errors.function_grad_of_constant(cls, i)
    return results[:count]


def fit_gradient(
    cls: Any,
    index: int,
    result: Tensor,
    shape: tuple[int, ...],
    dtype: NumpyDType,
    shapes: list[tuple[int, ...]],
    node: Node | None = None,
) -> Tensor:
    """Return a gradient in its argument's shape (summed over broadcast axes) and dtype.

    ``shapes`` are the shapes of all tensor arguments, for the error message.
    """
    have = result._raw.shape
    if have != shape:
        extra = len(have) - len(shape)
        if extra < 0 or any(n not in (1, m) for n, m in zip(shape, have[extra:])):
            raise errors.function_grad_shape(cls, index, tuple(have), tuple(shape), shapes, node)
    if result._raw.dtype.kind == "c" and dtype.kind != "c":
        raise errors.function_grad_complex(cls.__name__, index)
    fit = unbroadcast(result, shape, dtype)
    return tensor_of(fit)


def _fresh_counts() -> tuple[int, int]:
    """Return the reference counts, in ``pullback``, of an array and a tensor without other references."""
    tensor = new(Tensor)
    tensor._raw = np.empty(1)
    results = (tensor,)
    del tensor
    result = results[0]
    data = result._raw
    return getrefcount(data), getrefcount(result)


_FRESH_DATA, _FRESH_RESULT = _fresh_counts()
