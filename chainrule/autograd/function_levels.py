"""Custom Functions inside vmap and jvp.

A transformation sees a Function as one operation, as it sees a row of the table; it never looks into forward. So the
application goes down the operands' ranks as ``dispatch.bind`` does: a tape takes the tensors of its rank apart and puts
a node on itself, Dual computes the value one level down and asks for the tangent, Batched calls the ``vmap`` static
method or goes on with the payloads. At the bottom forward runs, on tensors that are as batched as the user's are but
have no history and no tangents.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from chainrule import errors
from chainrule.autograd.function_call import Call, Lift, Outcome, bare, probe, raw, zeros
from chainrule.autograd.function_rule import _SETUP_CONTEXT, defines, in_graph, row_of, rule_of
from chainrule.core import engine
from chainrule.core.dispatch import rank
from chainrule.core.inplace import continue_history
from chainrule.core.modes import LOCAL, enable_grad, recording
from chainrule.core.node import Leaf, Output, new_node, next_seq, output_of
from chainrule.core.protocol import ArrayLike
from chainrule.core.shapes import shape_of
from chainrule.core.tensor import Tensor, hold, wrap, wrapped
from chainrule.interpreters.batched import Batched
from chainrule.interpreters.dual import FORWARD, Dual
from chainrule.tree import is_container, tree_flatten, tree_unflatten

ndarray = np.ndarray


class VmapInfo(NamedTuple):
    """What a ``vmap`` static method is told: the length of the batch axis, and what vmap's ``randomness`` was."""

    batch_size: int
    randomness: str


def apply(cls: Any, args: tuple[Any, ...]) -> Any:
    """``cls.apply`` where an argument is inside a transformation."""
    args = tuple(wrap(x) if isinstance(x, ArrayLike) else x for x in args)
    at = tuple(i for i, x in enumerate(args) if isinstance(x, Tensor))
    call = Call(cls, args, at)
    outcome = run(call, [args[i] for i in at])
    results = [_finished(outcome, i, v) for i, v in enumerate(outcome.values)]
    ctx = outcome.ctx
    if ctx is not None and ctx.dirty_tensors:
        _write(outcome, args, results)
    return tuple(results) if outcome.several else results[0]


def _finished(outcome: Outcome, index: int, value: Any) -> Any:
    return wrapped(value) if outcome.is_array(index) else value


def _write(outcome: Outcome, args: tuple[Any, ...], results: list[Any]) -> None:
    """Give the arguments that forward wrote into the values and histories of the outputs that they became."""
    name = outcome.ctx._forward_cls.__name__
    for dirty in outcome.ctx.dirty_tensors:
        index = next((i for i, o in enumerate(outcome.outputs) if o is dirty), None)
        if index is None:
            raise errors.function_dirty_lost(name)
        for seen, x in zip(outcome.inputs, args, strict=True):
            if seen is dirty:
                if type(x._edge) is Leaf and recording():
                    raise errors.function_dirty_leaf(name)
                hold(x, results[index]._raw)
                continue_history(x, results[index]._edge, results[index]._cut)
                results[index] = x


# -- down the ranks ---------------------------------------------------------------------------------------------------


def run(call: Call, datas: list[Any]) -> Outcome:
    """Apply the function to operands of any rank."""
    top, highest = 0, None
    for x in datas:
        r = rank(x)
        if r > top:
            top, highest = r, x
    if top == 0:
        return call.forward(datas)
    if top & 1:
        return _recorded(call, datas, top)
    return (_batched if type(highest) is Batched else _dual)(call, datas, highest.level)  # type: ignore[union-attr]


def _recorded(call: Call, datas: list[Any], top: int) -> Outcome:
    """On a tape: the function of the data, and a node where something requires grad."""
    mine = [isinstance(x, Tensor) and rank(x) == top for x in datas]
    below = [x._raw if m else x for x, m in zip(datas, mine, strict=True)]
    edges = tuple(x._edge if m else None for x, m in zip(datas, mine, strict=True))
    outcome = run(call, below)
    if not any(edges) or not recording():
        return outcome.again([wrap(v) if outcome.is_array(i) else v for i, v in enumerate(outcome.values)])
    if outcome.ctx is None:  # a vmap static method computed it: what is marked, setup_context says
        ctx = call.context(outcome, below, outcome.values)
        if call.cls.setup_context is not _SETUP_CONTEXT:
            outputs = tuple(call.shown_output(v) for v in outcome.values)
            call.cls.setup_context(ctx, call.shown(below), outputs if outcome.several else outputs[0])
            call.marks(outcome, ctx, outputs)
    n = len(outcome.values)
    params = {"ctx": outcome.ctx, "call": call, "below": below, "outcome": outcome}
    node = new_node(row_of(call.cls, n), params, edges, pullback=_pullback)
    if n > 1:
        node.params["_outputs"] = (None,) * n
        seq = next_seq()
    values: list[Any] = []
    for i, v in enumerate(outcome.values):
        if not outcome.is_array(i):
            values.append(v)
        elif i in outcome.constant or v.dtype.kind not in "fc":
            values.append(wrap(v))
        else:
            values.append(wrap(v, node if n == 1 else Output(node, i, seq)))
    return outcome.again(values)


def _pullback(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """The class's backward, with the inputs and outputs of the node's rank."""
    with ExitStack() as stack:
        return _pulled(node, g, edges, node.params["call"].anew(stack))


def _pulled(node: Any, g: Any, edges: tuple[Any, ...], call: Call) -> tuple[Any, ...]:
    below, outcome = node.params["below"], node.params["outcome"]
    parts = list(g) if type(g) is tuple else [g]
    recorded = any(isinstance(part, Tensor) for part in parts)
    datas, values = below, outcome.values
    if recorded or in_graph():
        datas = [_rewrapped(x, edge) for x, edge in zip(below, node.edges, strict=True)]
        n = len(values)
        values = [_rewrapped(v, node if n == 1 else output_of(node, i)) for i, v in enumerate(values)]
    if outcome.materialize:
        parts = [
            np.zeros(shape_of(v), v.dtype) if part is None and outcome.is_array(i) else part
            for i, (part, v) in enumerate(zip(parts, outcome.values, strict=True))
        ]
    ctx = call.context(outcome, datas, values)
    ctx._now = node
    shown = call.shown(datas)
    results = call.fitted(call.backward(ctx, tuple(map(call.shown_output, parts))), shown)
    grads: list[Any] = []
    for n, (result, edge) in enumerate(zip(results, edges, strict=True)):
        if edge is None or result is None:
            grads.append(None)
            continue
        grad = call.taken(result, n)
        grads.append(wrapped(grad) if recorded else bare(grad))
    return tuple(grads)


def _rewrapped(value: Any, edge: Any) -> Any:
    return wrap(value, edge) if edge is not None and getattr(value, "dtype", np.dtype(bool)).kind in "fc" else value


def _batched(call: Call, datas: list[Any], level: int) -> Outcome:
    """In a batch: the class's own rule, or the function of the payloads, with the axis hidden again below."""
    mine = [type(x) is Batched and x.level == level for x in datas]
    own = next(x.level for x, m in zip(datas, mine, strict=True) if m)
    batched = tuple(m and not x.shared for x, m in zip(datas, mine, strict=True))
    payloads = [x.payload if m else x for x, m in zip(datas, mine, strict=True)]
    if not any(batched):
        outcome = run(call, payloads)
        return outcome.again(
            [Batched(v, own, True) if outcome.is_array(i) else v for i, v in enumerate(outcome.values)]
        )
    size = next(shape_of(p)[0] for p, b in zip(payloads, batched, strict=True) if b)
    if defines(call.cls, "vmap"):
        return _by_vmap(call, payloads, batched, own, size)
    outcome = run(call.below(Lift(own, batched, size)), payloads)
    return outcome.again([Batched(v, own) if outcome.is_array(i) else v for i, v in enumerate(outcome.values)])


def _opened(arg: Any, level: Any) -> tuple[Any, Any]:
    """A container of tensors with their batch axes shown, and where these are."""
    leaves, spec = tree_flatten(arg)
    dims: list[Any] = [None] * len(leaves)
    for k, x in enumerate(leaves):
        if isinstance(x, Tensor) and type(x._raw) is Batched and x._raw.level == level:
            leaves[k], dims[k] = wrapped(x._raw.payload), None if x._raw.shared else 0
    return tree_unflatten(leaves, spec), tree_unflatten(dims, spec)


def _by_vmap(call: Call, payloads: list[Any], batched: tuple[bool, ...], level: Any, size: int) -> Outcome:
    """The class's ``vmap`` static method."""
    cls = call.cls
    name = cls.__name__
    if cls.generate_vmap_rule:
        raise errors.function_two_vmaps(name)
    in_dims: list[Any] = [None] * len(call.args)
    for i, b in zip(call.at, batched, strict=True):
        in_dims[i] = 0 if b else None
    args = list(call.shown(payloads))
    for i, arg in enumerate(args):
        if i not in call.at and is_container(arg):
            args[i], in_dims[i] = _opened(arg, level)
    info = VmapInfo(size, getattr(level, "randomness", "error"))
    result = cls.vmap(info, tuple(in_dims), *args)
    if not isinstance(result, tuple) or len(result) != 2:
        raise errors.function_vmap_result(name, type(result))
    output, dims = result
    several = isinstance(output, tuple)
    outputs = output if several else (output,)
    if not isinstance(dims, tuple):
        dims = (dims,) * len(outputs)
    elif not several or len(dims) != len(outputs):
        raise errors.function_vmap_dims(name, output, result[1])
    values = []
    for i, (o, dim) in enumerate(zip(outputs, dims, strict=True)):
        if not isinstance(o, Tensor):
            values.append(o)
        elif dim is None:
            values.append(Batched(bare(o), level, True))
        else:
            if not -o.ndim <= dim < o.ndim or o.shape[dim] != size:
                raise errors.function_vmap_size(name, i, o.shape, size)
            values.append(Batched(bare(o if dim == 0 else o.movedim(dim, 0)), level))
    return Outcome(values, several)


# -- tangents ---------------------------------------------------------------------------------------------------------


def _dual(call: Call, datas: list[Any], level: int) -> Outcome:
    """In forward mode: the function of the primals, with a tangent for every output."""
    mine = [type(x) is Dual and x.level == level for x in datas]
    own = next(x.level for x, m in zip(datas, mine, strict=True) if m)
    primals = [x.primal if m else x for x, m in zip(datas, mine, strict=True)]
    tangents = [x.tangent if m else None for x, m in zip(datas, mine, strict=True)]
    outcome = run(call, primals)
    off = level == FORWARD.level and not (FORWARD.enabled and not LOCAL.mode.inference)
    found: list[Any] = [None] * len(outcome.values)
    if not off and any(t is not None for t in tangents):
        rule = _by_jvp if defines(call.cls, "jvp") else _transposed
        found = rule(call, outcome, primals, tangents)
    values = []
    for i, (v, t) in enumerate(zip(outcome.values, found, strict=True)):
        if not outcome.is_array(i):
            values.append(v)
            continue
        if t is not None and (i in outcome.constant or v.dtype.kind not in "fc"):
            t = None
        if t is not None and t.dtype != v.dtype:
            t = (np.real(t) if t.dtype.kind == "c" and v.dtype.kind != "c" else t).astype(v.dtype)
        values.append(Dual(v, t, own))
    return outcome.again(values)


def _by_jvp(call: Call, outcome: Outcome, primals: list[Any], tangents: list[Any]) -> list[Any]:
    """The class's ``jvp``."""
    ctx = call.context(outcome, primals, outcome.values)
    ctx._now = ctx.to_save if ctx.saved_for_forward is None else ctx.saved_for_forward
    given: list[Any] = [None] * len(call.args)
    shown = call.shown(primals)
    moved = call.shown([
        zeros(p) if t is None and outcome.materialize and p.dtype.kind in "fc" else t if t is not None else p
        for p, t in zip(primals, tangents, strict=True)
    ])  # fmt: skip
    for i, p, t in zip(call.at, primals, tangents, strict=True):
        if t is not None or (outcome.materialize and p.dtype.kind in "fc"):
            given[i] = moved[i]
    del shown
    try:
        result = call.cls.jvp(ctx, *given)
    except (RuntimeError, TypeError) as error:
        raise call.explained(error, "jvp") from error
    parts = result if isinstance(result, tuple) else (result,)
    name = call.cls.__name__
    if len(parts) != len(outcome.values):
        raise errors.function_jvp_count(name, len(outcome.values), len(parts))
    found: list[Any] = []
    for i, (part, value) in enumerate(zip(parts, outcome.values, strict=True)):
        if part is None or not outcome.is_array(i):
            found.append(None)
            continue
        if not isinstance(part, Tensor):
            raise errors.function_jvp_type(name, i, part)
        want = tuple(shape_of(call.shown_output(value)))
        if tuple(shape_of(part)) != want:
            raise errors.function_jvp_shape(name, i, want, shape_of(part))
        found.append(bare(call.taken(part)))
    return found


def _transposed(call: Call, outcome: Outcome, primals: list[Any], tangents: list[Any]) -> list[Any]:
    """The tangents from backward. It is linear in the gradients g, so the derivative of ⟨backward(g), t⟩ by g is J·t."""
    cls = call.cls
    name = cls.__name__
    if getattr(rule_of(cls), "_once_differentiable", False):
        raise errors.function_no_jvp(name, "it is marked once_differentiable")
    ctx = call.context(outcome, primals, outcome.values)
    ctx.needs_input_grad = tuple(
        i in call.at and tangents[call.at.index(i)] is not None for i in range(len(call.args))
    )  # fmt: skip
    starts: list[Any] = []
    for i, v in enumerate(outcome.values):
        if outcome.is_array(i) and v.dtype.kind in "fc" and i not in outcome.constant:
            start = wrapped(probe(call.shown_output(v)._raw))
            start._edge = Leaf(start)
            starts.append(start)
        elif outcome.is_array(i) and outcome.materialize:
            starts.append(wrapped(zeros(call.shown_output(v)._raw)))
        else:
            starts.append(None)
    shown = call.shown(primals)
    with enable_grad():
        try:
            results = call.fitted(call.backward(ctx, tuple(starts)), shown)
        except (RuntimeError, TypeError, NotImplementedError) as error:
            raise errors.function_no_jvp(name, f"running it raised: {str(error).splitlines()[0]}") from error
    roots, cotangents = [], []
    along = call.shown([t if t is not None else p for p, t in zip(primals, tangents, strict=True)])
    for i, result, t in zip(call.at, results, tangents, strict=True):
        if t is None or result is None:
            continue
        if result._edge is None:
            if np.any(raw(result)):
                raise errors.function_no_jvp(name, "its result does not depend on the gradient by recorded operations")
            continue
        roots.append(result._edge)
        cotangents.append(along[i])
    targets = [s._edge for s in starts if s is not None and s._edge is not None]
    if not roots:
        return [None] * len(starts)
    found = iter(
        engine.sweep(roots, cotangents, targets, retain_graph=True, create_graph=True, accumulate=False)
        if recording()
        else _unrecorded_sweep(roots, cotangents, targets)
    )
    pulled = [next(found) if s is not None and s._edge is not None else None for s in starts]
    return [None if g is None else bare(call.taken(wrapped(g))) for g in pulled]


def _unrecorded_sweep(roots: list[Any], cotangents: list[Any], targets: list[Any]) -> list[Any]:
    return engine.sweep(
        roots, [c._raw for c in cotangents], targets, retain_graph=True, create_graph=False, accumulate=False
    )
