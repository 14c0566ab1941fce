"""The kinds of local Jacobian, and the rules that each kind derives.

The decorators here turn a function into a ``Primitive`` and register it in the op table.

===========  =================  ===========================================  =============================
kind         local Jacobian     the declaration gives                        derived here
===========  =================  ===========================================  =============================
elementwise  diagonal           one partial per operand                      VJP, JVP, batching
linear       constant           the transpose                                JVP (the operation itself), batching
contraction  bilinear           the subscripts                               VJPs, JVP, batching
opaque       anything           VJP and JVP                                  batching, if extra leading axes are allowed
discrete     none               nothing: results are integers or booleans    batching
===========  =================  ===========================================  =============================

A keyword of the decorator overrides the derived rule.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, Cotangents, Params, Saved
from chainrule._src.messages import errors
from chainrule._src.rules.batching import batch_contraction, leading_axes
from chainrule._src.rules.contract import contraction_value, cotangent_subscripts, formula_of
from chainrule._src.rules.elementwise import elementwise
from chainrule._src.rules.primitive import Primitive, Rule, TableError, call, raise_unsupported, register, unsupported
from chainrule._src.rules.rules import (
    NodeLike,
    add_terms,
    call_rule,
    compile_rule,
    conjugate,
    rule_arguments,
    unbroadcast,
)

__all__ = ["call", "contraction", "discrete", "elementwise", "linear", "opaque", "unbroadcast"]

ndarray = np.ndarray


# -- linear, contraction, opaque -------------------------------------------------------------------------------------


def _lazy_pullback(prim: Primitive) -> Callable[..., Cotangents]:
    """Return a pullback that is compiled at its first call: this takes time, and most programs use few primitives."""
    compiled: Callable[..., Cotangents] | None = None

    def first(node: NodeLike, g: AnyArray, saved: Saved, edges: Sequence[object]) -> Cotangents:
        nonlocal compiled
        if compiled is None:
            compiled = _general_pullback(prim)
            object.__setattr__(prim, "pullback", compiled)  # later nodes call it directly
        return compiled(node, g, saved, edges)

    return first


def _general_pullback(prim: Primitive) -> Callable[..., Cotangents]:
    """Run the rule of each operand that needs a gradient, then undo broadcasting and dtype promotion."""
    cells: list[Any] = []
    shared = None if prim.shared is None else compile_rule(prim, prim.shared[1])
    for operand in prim.operands:
        rule = prim.vjps.get(operand)
        if rule is None:
            cells.append(None)
        elif isinstance(rule, unsupported):
            cells.append(raise_unsupported(prim, f"derivative with respect to {operand}", rule))
        else:
            cell = compile_rule(prim, rule)
            cells.append(cell if prim.listed or prim.variadic else _with_shape_check(prim, operand, cell))
    if prim.variadic:
        (every,) = cells

        def variadic(node: Any, g: AnyArray, saved: Saved, edges: Sequence[object]) -> Cotangents:
            parts = every(node, g, saved)
            return tuple(
                None if edge is None else unbroadcast(part, *aval)
                for part, edge, aval in zip(parts, edges, node.in_avals, strict=True)
            )

        return variadic
    if len(cells) == 1:
        (cell,) = cells

        def unary(node: NodeLike, g: AnyArray, saved: Saved, edges: Sequence[object]) -> Cotangents:
            if node.in_avals is None:
                return (cell(node, g, saved),)
            return (unbroadcast(cell(node, g, saved), *node.in_avals[0]),)

        return unary

    def nary(node: NodeLike, g: AnyArray, saved: Saved, edges: Sequence[object]) -> Cotangents:
        if shared is not None:
            saved = (*saved, shared(node, g, saved))
        grads = [
            None if edge is None or cell is None else cell(node, g, saved)
            for cell, edge in zip(cells, edges, strict=True)
        ]
        if node.in_avals is not None:
            grads = [None if r is None else unbroadcast(r, *aval) for r, aval in zip(grads, node.in_avals, strict=True)]
        return tuple(grads)

    return nary


def _with_shape_check(prim: Primitive, operand: str, cell: AnyFunction) -> AnyFunction:
    """Wrap a user's rule with a check that the gradient has a valid shape."""
    position = prim.operands.index(operand)

    def rule(node: NodeLike, g: AnyArray, saved: Saved) -> AnyArray:
        grad: AnyArray = cell(node, g, saved)
        assert node.in_avals is not None
        have, want = tuple(shape_of(grad)), tuple(node.in_avals[position][0])
        if have != want and not _broadcasts_to(have, want) and not _broadcasts_to(want, have):
            raise errors.rule_shape(prim.name, f"VJP for {operand!r}", have, want, "that operand")
        return grad

    return rule


def _broadcasts_to(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Return whether an array of the first shape broadcasts to the second."""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape[::-1], to[::-1], strict=False))


def _linear_jvp(prim: Primitive) -> AnyFunction:
    """Return the JVP of a linear map: apply the map to the tangents, with zeros for missing ones."""

    def rule(operands: Sequence[AnyArray], tangents: Cotangents, out: AnyArray, params: Params) -> AnyArray | None:
        if all(t is None for t in tangents):
            return None
        inputs = [
            t if t is not None else np.zeros(shape_of(x), x.dtype) if prim.variadic or name in prim.vjps else x
            for name, x, t in zip(_names(prim, operands), operands, tangents, strict=True)
        ]
        return prim(*inputs, **params)

    return rule


def _names(prim: Primitive, operands: Sequence[AnyArray]) -> tuple[str, ...]:
    return (prim.operands[-1],) * len(operands) if prim.variadic else prim.operands


def linear(
    *,
    transpose: Any,
    formula: Any = None,
    value: AnyFunction | None = None,
    batch: AnyFunction | None = None,
    jvp: AnyFunction | None = None,
    **options: Any,
) -> Callable[[AnyFunction], Primitive]:
    """Declare an operation that is linear in its differentiable operands (jointly, where there are several).

    Args:
        transpose: for each such operand the transposed map, from output cotangent to operand cotangent. For a variadic
            primitive one rule returns a tuple.
        formula: the transpose as NumPy text, where the rule's source is not clear enough.
        batch: the batching rule; without it the value must accept extra leading axes (axes counted from the end).
    """

    def declare(function: AnyFunction) -> Primitive:
        prim = Primitive(function, "linear", value=value, formula=formula, **options)
        rules = prim.for_each_operand(transpose)
        prim.set_vjps(rules)
        prim.needs_avals = prim.needs_avals or prim.variadic or not prim.listed
        prim.pullback = _lazy_pullback(prim)
        prim.jvp = jvp or _linear_jvp(prim)
        prim.batch = batch or leading_axes
        cells = {"transpose": rules, "jvp": jvp, "batch": batch, "value": value, "formula": formula}
        prim.declared = (linear, function, {**cells, **options})
        return register(prim)

    return declare


def contraction(
    subscripts: str, *, value: AnyFunction | None = None, **options: Any
) -> Callable[[AnyFunction], Primitive]:
    """Declare a product of two operands summed over shared subscripts, as in ``@contraction("ik,kj->ij")``.

    The operation must accept extra leading axes, which broadcast (as in ``np.matmul``).
    """

    def declare(function: AnyFunction) -> Primitive:
        prim = Primitive(
            function, "contraction", value=value or contraction_value(subscripts), structure=subscripts, **options
        )
        x, y = prim.operands
        left, right = cotangent_subscripts(subscripts)
        to_left, to_right = contraction_value(left), contraction_value(right)
        prim._texts = {x: formula_of(left, "g", y), y: formula_of(right, x, "g"), **prim._texts}
        prim.set_vjps({x: to_left, y: to_right}, reads={x: ("g", y), y: ("g", x)})
        prim.pullback = _contraction_pullback(to_left, to_right)
        prim.jvp = _multilinear_jvp(prim)
        prim.batch = batch_contraction
        prim.declared = (functools.partial(contraction, subscripts), function, {"value": value, **options})
        return register(prim)

    return declare


def _contraction_pullback(to_left: Rule, to_right: Rule) -> Callable[..., Cotangents]:
    def pullback(node: NodeLike, g: AnyArray, saved: Saved, edges: Sequence[object]) -> Cotangents:
        y, x = saved  # the rule for x reads y; the rule for y reads x
        if node.in_avals is None:
            return (None if edges[0] is None else to_left(g, y), None if edges[1] is None else to_right(x, g))
        return (
            None if edges[0] is None else unbroadcast(to_left(g, conjugate(y)), *node.in_avals[0]),
            None if edges[1] is None else unbroadcast(to_right(conjugate(x), g), *node.in_avals[1]),
        )

    return pullback


def _multilinear_jvp(prim: Primitive) -> AnyFunction:
    """Return the JVP of an operation that is linear in each operand: apply it to each tangent and the other operands."""

    def rule(operands: Sequence[AnyArray], tangents: Cotangents, out: AnyArray, params: Params) -> AnyArray | None:
        terms = [prim(*operands[:i], t, *operands[i + 1 :], **params) for i, t in enumerate(tangents) if t is not None]
        return add_terms(terms, out) if terms else None

    return rule


def opaque(
    *,
    vjp: Any,
    jvp: Any = None,
    shared: Mapping[str, Rule] | None = None,
    formula: Any = None,
    value: AnyFunction | None = None,
    batch: AnyFunction | None = None,
    multilinear: bool = False,
    **options: Any,
) -> Callable[[AnyFunction], Primitive]:
    """Declare an operation whose rules are written by hand.

    Args:
        vjp: for each differentiable operand the rule from output cotangent(s) to its cotangent.
        shared: an intermediate result of several VJPs, computed once: its name, which they read, and its rule.
        jvp: for each differentiable operand the rule from its tangent ``t`` to the output tangent(s); the contributions are
            added. An operation that is linear in each operand needs none: ``multilinear=True``.
        batch: the batching rule; without it the value must accept extra leading axes.
    """

    def declare(function: AnyFunction) -> Primitive:
        prim = Primitive(function, "opaque", value=value, formula=formula, **options)
        rules = prim.for_each_operand(vjp)
        prim.set_vjps(rules, shared=shared)
        prim.needs_avals = prim.needs_avals or prim.variadic or not prim.listed
        prim.pullback = _lazy_pullback(prim)
        tangents = jvp if isinstance(jvp, unsupported) else prim.for_each_operand(jvp)
        if multilinear and not tangents:
            prim.jvp = _multilinear_jvp(prim)
        elif isinstance(tangents, unsupported):
            prim.jvp = raise_unsupported(prim, "JVP", tangents)
        elif set(tangents) == set(rules):
            prim.jvp = _opaque_jvp(prim, tangents)
        else:
            raise TableError(f"primitive {prim.name}: VJP and JVP are for different operands")
        prim.batch = batch or leading_axes
        cells = {"vjp": rules, "jvp": tangents, "shared": shared, "batch": batch, "value": value, "formula": formula}
        prim.declared = (opaque, function, {**cells, "multilinear": multilinear, **options})
        return register(prim)

    return declare


def _opaque_jvp(prim: Primitive, rules: Mapping[str, Any]) -> AnyFunction:
    def rule(operands: Sequence[AnyArray], tangents: Cotangents, out: Any, params: Params) -> Any:
        env = rule_arguments(prim, operands, out, params)
        terms = []
        for operand, t in zip(prim.operands, tangents, strict=True):
            if t is None or operand not in rules:
                continue
            if isinstance(rules[operand], unsupported):
                return raise_unsupported(prim, f"JVP with respect to {operand}", rules[operand])()
            term = call_rule(prim, rules[operand], {**env, "t": t})
            if (
                not prim.listed
                and len(prim.outputs) == 1
                and not _broadcasts_to(tuple(shape_of(term)), tuple(shape_of(out)))
            ):
                raise errors.rule_shape(prim.name, f"JVP for {operand!r}", shape_of(term), shape_of(out), "the result")
            terms.append(term)
        if not terms:
            return None
        if len(prim.outputs) == 1:
            return add_terms(terms, out)
        sums = []
        for parts, o in zip(zip(*terms, strict=True), out, strict=True):
            present = [p for p in parts if p is not None]
            sums.append(add_terms(present, o) if present else None)
        return tuple(sums)

    return rule


def discrete(
    *, value: AnyFunction | None = None, batch: AnyFunction | None = None, **options: Any
) -> Callable[[AnyFunction], Primitive]:
    """Declare an operation whose results are integers or booleans: no gradient passes through it."""

    def declare(function: AnyFunction) -> Primitive:
        prim = Primitive(function, "discrete", value=value, structure="zero", **options)
        prim.differentiable = False
        prim.batch = batch or leading_axes
        prim.declared = (discrete, function, {"value": value, "batch": batch, **options})
        return register(prim)

    return declare
