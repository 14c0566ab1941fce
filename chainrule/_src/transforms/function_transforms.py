"""Custom Functions inside vmap and jvp.

``Function.apply`` calls ``apply`` if an argument belongs to a transformation.

A transformation treats a Function as one operation, like a primitive of the op table; it does not trace forward. ``bind`` dispatches
the call on the ranks of its operands, highest first: a tape records a node (``recorded``), Dual calls ``jvp``, Batched calls
``batch``. At rank 0 forward runs on tensors with the user's batch axes hidden, but without history and tangents.

A :class:`FunctionCall` is the call at one rank. Below a level of vmap it stores the axes to hide (``lifts``), so that backward and jvp
get tensors batched like those of forward. Each rank makes its own ctx from its own inputs and outputs: with ``setup_context``, or
from forward's ctx by replacing its tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.api.grad_mode import enable_grad, no_grad
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.tree import is_container, tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, TensorLike
from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.interpreters.jac import Jac
from chainrule._src.messages import errors
from chainrule._src.tape import engine
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.inplace import reach_holders, rebase_history
from chainrule._src.tape.levels import Level, open_level
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.node import Edge, Leaf, Node, output_of
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, set_tensor_data, tensor_of, wrap
from chainrule._src.transforms.context import FunctionCtx
from chainrule._src.transforms.function_rule import (
    SETUP_CONTEXT,
    check_count,
    fit_gradient,
    in_graph,
    overrides_method,
    row_of,
    rule_of,
    run_backward,
    run_forward,
)

ndarray = np.ndarray
new = object.__new__


class VmapInfo(NamedTuple):
    """The first argument of a ``vmap`` static method: the length of the batch axis, and vmap's ``randomness``."""

    batch_size: int
    randomness: str


class Lift(NamedTuple):
    """A batch axis hidden by a Batched level: ``batched`` marks the operands that have it, ``size`` is its length."""

    level: Level
    batched: tuple[bool, ...]
    size: int
    former: tuple[Level, ...] = ()


class Ran:
    """The record of a run of forward: its ctx (None if a ``vmap`` static method computed the outputs), arguments, outputs."""

    def __init__(self, ctx: Any, inputs: tuple[object, ...], output: Any) -> None:
        self.ctx = ctx
        self.inputs = inputs
        self.several = isinstance(output, tuple)
        self.outputs = output if self.several else (output,)
        self.arrays = [i for i, o in enumerate(self.outputs) if isinstance(o, Tensor)]
        self.mark(ctx, self.outputs)

    def mark(self, ctx: Any, outputs: tuple[Any, ...]) -> None:
        """Read from a ctx which output tensors are constants, and whether missing gradients become zeros."""
        marked = () if ctx is None else ctx.non_differentiable
        self.constant = {n for n, i in enumerate(self.arrays) if any(outputs[i] is t for t in marked)}
        self.materialize = ctx is None or ctx.materialize_grads

    def with_others(self, tensors: Iterable[Any], others: Iterable[object] | None = None) -> tuple[Any, ...]:
        """Return a tuple with one item for each output: from ``tensors`` for tensors, from ``others`` for other outputs."""
        full = [None] * len(self.outputs) if others is None else list(others)
        for i, tensor in zip(self.arrays, tensors, strict=True):
            full[i] = tensor
        return tuple(full)


def apply(cls: type[Any], args: tuple[Any, ...]) -> Any:
    """Implement ``cls.apply`` for arguments inside a transformation."""
    args = tuple(wrap(x) if isinstance(x, ArrayLike) else x for x in args)
    at = tuple(i for i, x in enumerate(args) if isinstance(x, Tensor))
    call = FunctionCall(cls, args, at)
    tensors = call.bind([args[i] for i in at])
    ran = call.ran
    results = list(ran.with_others(_several(tensors), ran.outputs))
    if ran.ctx is not None and ran.ctx.dirty_tensors:
        _write(ran, args, results)
    return tuple(results) if ran.several else results[0]


def _carries(x: object) -> bool:
    """Return whether an operand is being differentiated, in either mode."""
    if isinstance(x, Tensor):
        return x.requires_grad or _carries(x._raw)
    return isinstance(x, ArrayLike) and x.moving


def _write(ran: Ran, args: tuple[Any, ...], results: list[Tensor]) -> None:
    """Update arguments that forward wrote into: assign the value and history of the corresponding output."""
    name = ran.ctx._forward_cls.__name__
    for dirty in ran.ctx.dirty_tensors:
        index = next((i for i, o in enumerate(ran.outputs) if o is dirty), None)
        if index is None:
            raise errors.function_dirty_lost(name)
        for seen, x in zip(ran.inputs, args, strict=True):
            if seen is dirty:
                if type(x._edge) is Leaf and is_recording():
                    raise errors.function_dirty_leaf(name)
                set_tensor_data(x, results[index]._raw)
                rebase_history(x, results[index]._edge, results[index]._cut)
                reach_holders(x)
                results[index] = x


class FunctionCall:
    """One call of a Function at one rank: the class, its arguments, and the hidden batch axes.

    Attributes:
        at: positions of the arguments that are tensors (the operands).
        needs: for each operand, whether it is differentiated, in either mode, at this rank or a higher one.
        ran: the record of forward; set when it has run.
    """

    ran: Ran

    def __init__(
        self,
        cls: Any,
        args: tuple[object, ...],
        at: tuple[int, ...],
        lifts: tuple[Lift, ...] = (),
        needs: tuple[bool, ...] | None = None,
    ) -> None:
        self.cls = cls
        self.args = args
        self.at = at
        self.lifts = lifts
        self.needs = (False,) * len(at) if needs is None else needs

    def bind(self, operands: list[AnyArray]) -> Any:
        """Bind the operation; return the outputs that are tensors, like a primitive's outputs."""
        self.needs = tuple([needed or _carries(x) for needed, x in zip(self.needs, operands, strict=True)])
        return bind(row_of(self.cls, 0), operands, {"call": self})

    # -- converting between a rank's values and the tensors of the user's methods --------------------------------------

    def shown(self, data: object, operand: int | None = None) -> Any:
        """Return a value of this rank (an operand or an output) for the user's methods: a tensor with its batch axes hidden."""
        if not isinstance(data, (ndarray, np.generic, ArrayLike, Tensor)):
            return data
        for lift in self.lifts:
            if operand is None or lift.batched[operand]:
                data = Batched(data, lift.level)
        return tensor_of(data)

    def shown_arguments(self, operands: Sequence[AnyArray]) -> tuple[Any, ...]:
        """Return all arguments for forward."""
        args = list(self.args)
        for n, (i, data) in enumerate(zip(self.at, operands, strict=True)):
            args[i] = self.shown(data, n)
        return tuple(args)

    def shown_outputs(self, values: Sequence[AnyArray]) -> tuple[Any, ...]:
        return self.ran.with_others(map(self.shown, values), self.ran.outputs)

    def unlifted(self, tensor: Tensor, operand: int | None = None) -> AnyArray:
        """Return a tensor of the user's methods (an output, or the gradient of an operand) as a value of this rank."""
        if not self.lifts:
            return tensor
        data = tensor._raw
        for lift in reversed(self.lifts):
            data = _unrecorded(data)  # a nested batch may be a tensor
            mine = type(data) is Batched and data.level == lift.level
            if operand is None or lift.batched[operand]:
                data = data.materialize(lift.size) if mine else np.broadcast_to(data, (lift.size, *shape_of(data)))
            elif mine:  # the gradient of an operand shared by all examples is the sum of theirs
                data = np.sum(data.materialize(lift.size), axis=0)
            else:
                data = data * lift.size
        return data

    # -- the user's methods --------------------------------------------------------------------------------------------

    def forward(self, operands: Sequence[AnyArray]) -> Any:
        """Run forward on data without history."""
        ctx = self._new_context()
        with self._explaining("forward"), self._asking(operands) as args:
            output = run_forward(self.cls, ctx, args)
        self.ran = Ran(ctx, args, output)
        return _one([_data(self.unlifted(o)) for o in self.ran.outputs if isinstance(o, Tensor)])

    def backward(self, ctx: Any, gs: tuple[Any, ...], shown: tuple[Any, ...]) -> list[Any]:
        """Run the user's backward; return the gradient for each operand (or None).

        Gradient mode is not changed: without ``create_graph`` no value has an edge of this rank, but values of lower ranks
        may be on other tapes.
        """
        ctx._now = ctx.to_save
        with self._explaining("backward"):
            results = check_count(self.cls, run_backward(ctx, gs, True), self.at, len(self.args))
        found = []
        for i in self.at:
            result, like = results[i], shown[i]._raw
            if result is not None:
                if not isinstance(result, Tensor):
                    raise errors.function_grad_type(self.cls, i, result, None)
                if tuple(shape_of(result)) != tuple(like.shape) or result.dtype != like.dtype:
                    shapes = [tuple(x._raw.shape) for x in shown]
                    result = fit_gradient(self.cls, i, result, tuple(like.shape), like.dtype, shapes)
            found.append(result)
        return found

    @contextmanager
    def _explaining(self, method: str) -> Iterator[None]:
        """Replace the error of a conversion to NumPy inside a user's method by one that names the method."""
        try:
            yield
        except (RuntimeError, TypeError) as error:
            if "doesn't have storage" in str(error) or "cannot become a plain array" in str(error):
                raise errors.function_numpy_inside(self.cls.__name__, method) from error
            raise

    # -- the ctx of a rank ---------------------------------------------------------------------------------------------

    def _new_context(self) -> FunctionCtx:
        ctx = new(self.cls._backward_cls)
        needs = dict(zip(self.at, self.needs, strict=True))
        ctx.needs_input_grad = tuple([needs.get(i, False) for i in range(len(self.args))])
        return ctx

    @contextmanager
    def _asking(self, operands: Sequence[AnyArray]) -> Iterator[tuple[Any, ...]]:
        """Return all arguments for forward; they require grad during the call if they do at a higher rank."""
        args = list(self.shown_arguments(operands))
        asking = []
        for i, needed in zip(self.at, self.needs, strict=True):
            if needed and args[i]._edge is None:
                args[i] = tensor = wrap(args[i]._raw)
                tensor._edge = Leaf(tensor)
                asking.append(tensor)
        try:
            yield tuple(args)
        finally:
            for tensor in asking:
                tensor._edge = None

    def context(self, operands: Sequence[AnyArray], values: Sequence[AnyArray]) -> FunctionCtx:
        """Return a ctx whose tensors are those of this rank."""
        ran = self.ran
        outputs = self.shown_outputs(values)
        ctx = self._new_context()
        if self.cls.setup_context is not SETUP_CONTEXT:
            with no_grad(), self._asking(operands) as inputs:
                self.cls.setup_context(ctx, inputs, outputs if ran.several else outputs[0])
            return ctx
        if ran.ctx is None:
            raise errors.function_needs_setup(self.cls.__name__)
        inputs = self.shown_arguments(operands)
        pairs = (*zip(ran.outputs, outputs, strict=True), *zip(ran.inputs, inputs, strict=True))
        here = {id(theirs): ours for theirs, ours in pairs if isinstance(theirs, Tensor)}

        ctx.__dict__.update({name: self._exchanged(value, here) for name, value in ran.ctx.__dict__.items()})
        return ctx

    def _exchanged(self, value: Any, here: dict[int, object]) -> object:
        """Replace the tensors in an attribute of forward's ctx by those of this rank."""
        if isinstance(value, Tensor):
            return here[id(value)] if id(value) in here else self._relevelled(value) if self.lifts else value
        return type(value)([self._exchanged(x, here) for x in value]) if type(value) in (tuple, list) else value

    def _at_new_levels(self, stack: ExitStack) -> FunctionCall:
        """Return the same call with its hidden axes at new levels, because backward may run after vmap has returned."""
        lifts = []
        for lift in self.lifts:
            old = lift.level
            fresh = stack.enter_context(open_level(old.name, old.interpreter, size=old.size, randomness=old.randomness))
            lifts.append(Lift(fresh, lift.batched, lift.size, (*lift.former, old)))
        call = FunctionCall(self.cls, self.args, self.at, tuple(lifts), self.needs)
        call.ran = self.ran
        return call

    def _relevelled(self, data: object) -> Any:
        """Return a value that forward computed, with its hidden axes moved to the new levels."""
        if isinstance(data, Tensor):
            return wrap(self._relevelled(data._raw))
        if type(data) is Batched:
            level = next((lift.level for lift in self.lifts if data.level in lift.former), data.level)
            return Batched(self._relevelled(data.payload), level, data.shared)
        return data

    # -- on a tape -----------------------------------------------------------------------------------------------------

    def recorded(self, node: Node, operands: Sequence[AnyArray], out: Any, results: Any) -> Any:
        """Complete the node of a rank: store the values that its rule needs, and detach constant outputs."""
        values = _several(out)
        ran = self.ran
        if ran.ctx is None and self.cls.setup_context is not SETUP_CONTEXT:  # a vmap static method marked nothing
            ctx, outputs = self._new_context(), self.shown_outputs(values)
            with self._asking(operands) as inputs:
                self.cls.setup_context(ctx, inputs, outputs if ran.several else outputs[0])
            ran.mark(ctx, outputs)
        node.prim = row_of(self.cls, len(values))
        node.params = {"ctx": ran.ctx, "call": self, "below": operands, "values": values}
        if len(values) != 1:
            node.params["_outputs"] = (None,) * len(values)
        for n, tensor in enumerate(_several(results)):
            if n in ran.constant:
                tensor._edge = None
        return results

    def pullback(
        self, node: Node, g: AnyArray | tuple[AnyArray | None, ...], edges: tuple[object, ...]
    ) -> tuple[TensorLike | None, ...] | None:
        """Run the class's backward with the inputs and outputs of the node's rank."""
        with ExitStack() as stack:
            return self._at_new_levels(stack)._pullback(node, g, edges)

    def _pullback(
        self, node: Node, g: AnyArray | tuple[AnyArray | None, ...], edges: tuple[object, ...]
    ) -> tuple[AnyArray | None, ...]:
        operands, values = node.params["below"], node.params["values"]
        parts = list(_several(g))
        recorded = any(isinstance(part, Tensor) for part in parts)
        if self.ran.materialize:
            pairs = zip(parts, values, strict=True)
            parts = [np.zeros(shape_of(v), v.dtype) if part is None else part for part, v in pairs]
        if recorded or in_graph():
            n = len(values)
            operands = [_with_edge(x, edge) for x, edge in zip(operands, node.edges, strict=True)]
            values = [_with_edge(v, node if n == 1 else output_of(node, i)) for i, v in enumerate(values)]
        ctx = self.context(operands, values)
        ctx._now = node
        gs = self.ran.with_others(map(self.shown, parts))
        results = self.backward(ctx, gs, self.shown_arguments(operands))
        form = tensor_of if recorded else _unrecorded
        return tuple(
            None if edge is None or result is None else form(self.unlifted(result, n))
            for n, (result, edge) in enumerate(zip(results, edges, strict=True))
        )

    # -- in a batch ----------------------------------------------------------------------------------------------------

    def batch(self, payloads: list[AnyArray], batched: list[bool], size: int, level: Level) -> Any:
        """Run the class's ``vmap``, or bind the call on the payloads, with the batch axis hidden at the lower rank."""
        if overrides_method(self.cls, "vmap"):
            return self._by_vmap(payloads, batched, size, level)
        lifts = (Lift(level, tuple(batched), size), *self.lifts)
        below = FunctionCall(self.cls, self.args, self.at, lifts, self.needs)
        out = below.bind(payloads)
        self.ran = below.ran
        return out

    def _by_vmap(self, payloads: list[AnyArray], batched: list[bool], size: int, level: Level) -> Any:
        cls = self.cls
        name = cls.__name__
        if cls.generate_vmap_rule:
            raise errors.function_two_vmaps(name)
        in_dims: list[object] = [None] * len(self.args)
        args = list(self.shown_arguments(payloads))
        for i, arg in enumerate(args):
            if i in self.at:
                in_dims[i] = 0 if batched[self.at.index(i)] else None
            elif is_container(arg):
                args[i], in_dims[i] = _payloads_of(arg, level)
        info = VmapInfo(size, getattr(level, "randomness", "error"))
        result = cls.vmap(info, tuple(in_dims), *args)
        if not isinstance(result, tuple) or len(result) != 2:
            raise errors.function_vmap_result(name, type(result))
        output, dims = result
        self.ran = ran = Ran(None, (), output)
        if not isinstance(dims, tuple):
            dims = (dims,) * len(ran.outputs)
        elif not ran.several or len(dims) != len(ran.outputs):
            raise errors.function_vmap_dims(name, output, result[1])
        values = []
        for i in ran.arrays:
            o, dim = ran.outputs[i], dims[i]
            if dim is None:
                values.append(Batched(_unrecorded(o), level, True))
                continue
            if not -o.ndim <= dim < o.ndim or o.shape[dim] != size:
                raise errors.function_vmap_size(name, i, o.shape, size)
            values.append(_unrecorded(o if dim == 0 else o.movedim(dim, 0)))
        return _one(values)

    # -- tangents ------------------------------------------------------------------------------------------------------

    def jvp(self, primals: list[AnyArray], tangents: list[AnyArray | None], out: Any) -> Any:
        """Return the outputs' tangents, by the class's ``jvp`` or by transposing its backward."""
        values = _several(out)
        by_rule = self._by_jvp if overrides_method(self.cls, "jvp") else self._transposed
        found = by_rule(primals, tangents, values)
        for n, (t, v) in enumerate(zip(found, values, strict=True)):
            if t is not None and (n in self.ran.constant or v.dtype.kind not in "fc"):
                found[n] = None
            elif t is not None and t.dtype != v.dtype:
                found[n] = (np.real(t) if t.dtype.kind == "c" and v.dtype.kind != "c" else t).astype(v.dtype)
        return _one(found)

    def _by_jvp(self, primals: list[AnyArray], tangents: list[Any], values: tuple[AnyArray, ...]) -> list[Any]:
        ran, name = self.ran, self.cls.__name__
        ctx = self.context(primals, values)
        ctx._now = ctx.to_save if ctx.saved_for_forward is None else ctx.saved_for_forward
        moved: list[object] = [None] * len(self.args)
        for n, (i, p, t) in enumerate(zip(self.at, primals, tangents, strict=True)):
            if t is None and ran.materialize and p.dtype.kind in "fc":
                t = _zeros(p)
            moved[i] = None if t is None else self.shown(t, n)
        with self._explaining("jvp"):
            result = self.cls.jvp(ctx, *moved)
        parts = _several(result)
        if len(parts) != len(ran.outputs):
            raise errors.function_jvp_count(name, len(ran.outputs), len(parts))
        found: list[Any] = []
        for i, value in zip(ran.arrays, values, strict=True):
            part = parts[i]
            if part is not None:
                if not isinstance(part, Tensor):
                    raise errors.function_jvp_type(name, i, part)
                want = tuple(shape_of(self.shown(value)))
                if tuple(shape_of(part)) != want:
                    raise errors.function_jvp_shape(name, i, want, shape_of(part))
                part = _unrecorded(self.unlifted(part))
            found.append(part)
        return found

    def _transposed(self, primals: list[AnyArray], tangents: list[Any], values: tuple[AnyArray, ...]) -> list[Any]:
        """Return the tangents by transposing backward: it is linear in g, so the gradient of ⟨backward(g), t⟩ is J·t."""
        ran, name = self.ran, self.cls.__name__
        if getattr(rule_of(self.cls), "_once_differentiable", False):
            raise errors.function_no_jvp(name, "it is marked once_differentiable")
        ctx = self.context(primals, values)
        moving = {i for i, t in zip(self.at, tangents, strict=True) if t is not None}
        ctx.needs_input_grad = tuple(i in moving for i in range(len(self.args)))
        starts: list[Any] = []
        for n, v in enumerate(values):
            like = self.shown(v)._raw
            start = None
            if v.dtype.kind in "fc" and n not in ran.constant:
                start = tensor_of(_probe(like))
                start._edge = Leaf(start)
            elif ran.materialize:
                start = tensor_of(_zeros(like))
            starts.append(start)
        with enable_grad():
            try:
                results = self.backward(ctx, ran.with_others(starts), self.shown_arguments(primals))
            except (RuntimeError, TypeError, NotImplementedError) as error:
                raise errors.function_no_jvp(name, f"running it raised: {str(error).splitlines()[0]}") from error
        roots, cotangents = [], []
        for n, (result, t) in enumerate(zip(results, tangents, strict=True)):
            if t is None or result is None:
                continue
            if result._edge is not None:
                roots.append(result._edge)
                cotangents.append(self.shown(t, n))
            elif np.any(_innermost(result)):
                raise errors.function_no_jvp(name, "its result does not depend on the gradient by recorded operations")
        if not roots:
            return [None] * len(starts)
        create_graph = is_recording()
        cotangents = cotangents if create_graph else [c._raw for c in cotangents]
        at = [n for n, start in enumerate(starts) if start is not None and start._edge is not None]
        targets = [starts[n]._edge for n in at]
        pulled = engine.sweep(
            roots, cotangents, targets, retain_graph=True, create_graph=create_graph, accumulate=False
        )
        found: list[Any] = [None] * len(starts)
        for n, g in zip(at, pulled, strict=True):
            found[n] = None if g is None else _unrecorded(self.unlifted(tensor_of(g)))
        return found


# -- values ------------------------------------------------------------------------------------------------------------


def _several(out: object) -> tuple[Any, ...]:
    return out if isinstance(out, tuple) else (out,)


def _one(values: list[Any]) -> Any:
    """Return a single value, or a tuple of several, like a primitive's value or rule."""
    return values[0] if len(values) == 1 else tuple(values)


def _data(x: TensorLike) -> AnyArray | complex:
    return x._raw if isinstance(x, Tensor) else x


def _unrecorded(x: object) -> Any:
    """Return a tensor's data if it is not recorded, else the tensor."""
    return x._raw if isinstance(x, Tensor) and x._edge is None else x


def _with_edge(value: AnyArray, edge: Edge | None) -> AnyArray:
    return wrap(value, edge) if edge is not None and getattr(value, "dtype", np.dtype(bool)).kind in "fc" else value


def _payloads_of(arg: object, level: object) -> tuple[Any, Any]:
    """Return a container of tensors with their batch axes exposed, and the positions of these axes."""
    leaves, spec = tree_flatten(arg)
    dims: list[int | None] = [None] * len(leaves)
    for k, x in enumerate(leaves):
        if isinstance(x, Tensor) and type(x._raw) is Batched and x._raw.level == level:
            leaves[k], dims[k] = tensor_of(x._raw.payload), None if x._raw.shared else 0
    return tree_unflatten(leaves, spec), tree_unflatten(dims, spec)


def _innermost(x: Tensor) -> NumpyArray:
    """Return the innermost array."""
    while not isinstance(x, ndarray):
        x = x._raw if isinstance(x, Tensor) else x.inside
    return x


def _filled(x: object, fill: AnyFunction) -> Any:
    """Return an array-like with the nesting of x, without history and tangents, whose numbers are ``fill(array)``."""
    if isinstance(x, Tensor):
        return _filled(x._raw, fill)
    if isinstance(x, Batched):
        return Batched(_filled(x.payload, fill), x.level, x.shared)
    if isinstance(x, (Dual, Jac)):
        return type(x).constant(_filled(x.primal, fill), x.level)
    return fill(np.asarray(x))


def _zeros(x: object) -> AnyArray:
    return _filled(x, np.zeros_like)


def _probe(x: AnyArray) -> AnyArray:
    """Return a generic gradient to test backward with: a linear map is unlikely to vanish on it."""
    return _filled(x, lambda a: np.cos(np.arange(1, a.size + 1)).reshape(a.shape).astype(a.dtype))
