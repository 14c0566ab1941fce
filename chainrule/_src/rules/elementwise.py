"""Elementwise primitives: the local Jacobian is diagonal, so one partial derivative per operand determines all rules.

The modules of ``table`` use the decorator ``elementwise``, which ``kinds`` re-exports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, Cotangents, Saved
from chainrule._src.rules.batching import batch_elementwise
from chainrule._src.rules.primitive import (
    Cell,
    Primitive,
    Rule,
    TableError,
    no_operand,
    raise_unsupported,
    register,
    unsupported,
)
from chainrule._src.rules.rules import NodeLike, compile_rule, is_identity, unbroadcast
from chainrule._src.rules.tangents import elementwise_jvp

ndarray = np.ndarray


def _constant_vjp(partial: complex) -> Rule:
    """Return the VJP of an elementwise operation whose partial is a constant."""
    if partial == 1:
        return lambda g: g
    if partial == -1:
        return lambda g: -g
    if partial == 0:
        return lambda g: np.zeros_like(g)
    return lambda g: g * partial


def _elementwise_cells(
    prim: Primitive, d: Mapping[str, Cell], vjp: Mapping[str, Rule], jvp: Mapping[str, Rule], real: bool
) -> list[Any]:
    """Compile for each operand ``(node, g, saved) -> cotangent``, for real numbers only or for real and complex numbers."""
    cells: list[Any] = []
    for operand in prim.operands:
        partial = d.get(operand)
        if operand in vjp and (real or not callable(partial) or operand in jvp):
            # a VJP given along with a partial is a faster form for real numbers only
            cells.append(compile_rule(prim, vjp[operand]))
        elif callable(partial):
            cells.append(compile_rule(prim, partial, "g * {}" if real else "g * conjugate({})"))
        elif isinstance(partial, unsupported):
            cells.append(raise_unsupported(prim, f"derivative with respect to {operand}", partial))
        else:
            cells.append(None if partial is None else compile_rule(prim, _constant_vjp(partial)))
    return cells


def _elementwise_pullback(
    prim: Primitive, d: Mapping[str, Cell], vjp: Mapping[str, Rule], jvp: Mapping[str, Rule]
) -> Callable[..., Cotangents]:
    real_cells: list[Any] | None = (
        None  # both are compiled at first use: this takes time, and most programs use few primitives
    )
    general_cells: list[Any] | None = None

    def general(node: Any, g: AnyArray, saved: Saved, edges: Sequence[object]) -> Cotangents:
        nonlocal general_cells
        if general_cells is None:
            general_cells = _elementwise_cells(prim, d, vjp, jvp, False)
        return tuple(
            [
                None if edge is None or cell is None else unbroadcast(cell(node, g, saved), *aval)
                for cell, edge, aval in zip(general_cells, edges, node.in_avals)
            ]
        )

    if len(prim.operands) == 2 and not vjp and [prim.partials.get(name) for name in prim.operands] in ([1, 1], [1, -1]):
        negative = prim.partials[prim.operands[1]] == -1

        def sums(node: NodeLike, g: AnyArray, saved: Saved, edges: Sequence[object]) -> Cotangents:
            x, y = edges
            if node.in_avals is None:
                return (None if x is None else g, None if y is None else -g if negative else g)
            (x_shape, x_dtype), (y_shape, y_dtype) = node.in_avals
            have, dtype = g.shape, g.dtype
            if x is not None:
                x = g if have == x_shape and dtype is x_dtype else unbroadcast(g, x_shape, x_dtype)
            if y is not None:
                y = g if have == y_shape and dtype is y_dtype else unbroadcast(g, y_shape, y_dtype)
                y = -y if negative else y
            return (x, y)

        return sums
    if len(prim.operands) == 2 and not vjp and _is_product(prim):

        def crossed(node: NodeLike, g: AnyArray, saved: Saved, edges: Sequence[object]) -> Cotangents:
            if node.in_avals is not None:
                return general(node, g, saved, edges)
            x, y = edges
            for_x, for_y = saved
            return (None if x is None else g * for_x, None if y is None else g * for_y)

        return crossed

    def nary(node: NodeLike, g: AnyArray, saved: Saved, edges: Sequence[object]) -> Cotangents:
        if node.in_avals is not None:
            return general(node, g, saved, edges)
        nonlocal real_cells
        if real_cells is None:
            real_cells = _elementwise_cells(prim, d, vjp, jvp, True)
        pairs = zip(real_cells, edges, strict=True)
        return tuple([None if edge is None or cell is None else cell(node, g, saved) for cell, edge in pairs])

    return nary


def _is_product(prim: Primitive) -> bool:
    """Return whether each operand's partial is the other operand, as in a product."""
    x, y = prim.operands
    partials = [prim.partials.get(name) for name in (x, y)]
    return prim.saves == (y, x) and all(callable(p) and is_identity(p) for p in partials)


def elementwise(
    ufunc: AnyFunction | None = None, *, d: Any = None, vjp: Any = None, jvp: Any = None, **options: Any
) -> Callable[[AnyFunction], Primitive]:
    """Declare an operation whose output element depends on the same element of each operand (after broadcasting).

    Args:
        ufunc: the NumPy function that this primitive handles.
        d: the partial derivative for each differentiable operand: a rule, a number, or ``unsupported(why)``. A primitive of
            one operand may give it without the operand's name, here and in all options.
        vjp, jvp: rules that replace the derived ones. A VJP given along with a partial is a faster form for real numbers
            only. A VJP given along with a JVP holds for complex numbers, too (for operations that are not holomorphic).
        options: the other attributes of ``Primitive``. ``formula``: the VJP for each differentiable operand as NumPy
            text, where the rule's source is not clear enough. ``value``: computes the value, if neither the ufunc nor the
            decorated function does. ``domain``: ``(low, high)`` for each operand, the range of sample inputs.
            ``samples``: the parameters to check the primitive with, as a list of dicts.
    """

    def declare(function: AnyFunction) -> Primitive:
        prim = Primitive(function, "elementwise", ufunc=ufunc, structure="diagonal", **options)
        cells = {"d": prim.for_each_operand(d), "vjp": prim.for_each_operand(vjp), "jvp": prim.for_each_operand(jvp)}
        _set_rules(prim, **cells)
        prim.declared = (elementwise, function, {"ufunc": ufunc, **cells, **options})
        return register(prim)

    return declare


def _set_rules(prim: Primitive, d: Mapping[str, Cell], vjp: Mapping[str, Rule], jvp: Mapping[str, Rule]) -> None:
    rules: dict[str, Cell] = {
        name: vjp[name] if name in vjp else d[name] for name in prim.operands if name in d or name in vjp
    }
    for name in {**d, **vjp, **jvp}:
        if name not in prim.operands:
            raise no_operand(prim.name, name)
        if name not in rules:
            raise TableError(f"primitive {prim.name}: a JVP with respect to {name!r}, and no VJP")
        if name in d and name in vjp and name in jvp:
            raise TableError(
                f"primitive {prim.name}: nothing reads the partial of {name!r}, because its VJP and JVP are given, too"
            )
    if not rules:
        raise TableError(f"primitive {prim.name}: no derivative for any operand; write one, or unsupported('why')")
    prim.partials = {name: partial for name, partial in d.items() if name not in vjp}
    prim.set_vjps({k: (r if callable(r) or isinstance(r, unsupported) else _constant_vjp(r)) for k, r in rules.items()})
    prim.pullback = _elementwise_pullback(prim, d, vjp, jvp)
    prim.jvp = elementwise_jvp(prim, d, vjp, jvp)
    prim.batch = batch_elementwise
