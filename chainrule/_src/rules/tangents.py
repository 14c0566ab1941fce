"""The JVP of elementwise primitives: the sum of each tangent times its partial derivative.

The decorator ``elementwise`` calls ``elementwise_jvp``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, Cotangents, Params
from chainrule._src.rules.primitive import Cell, Primitive, Rule, code_of, raise_unsupported, unsupported
from chainrule._src.rules.rules import add_terms

Operands: TypeAlias = Sequence[AnyArray]
TangentTerm: TypeAlias = Callable[[AnyArray, Operands, AnyArray, Params], AnyArray]


def elementwise_jvp(
    prim: Primitive, d: Mapping[str, Cell], vjp: Mapping[str, Rule], jvp: Mapping[str, Rule]
) -> Callable[..., AnyArray | None]:
    terms: list[TangentTerm | None] | None = None  # compiled at the first tangent

    def rule(operands: Operands, tangents: Cotangents, out: AnyArray, params: Params) -> AnyArray | None:
        nonlocal terms
        if terms is None:
            terms = [_term(prim, operand, d, vjp, jvp) for operand in prim.operands]
        found = []
        for t, term in zip(tangents, terms, strict=True):
            if t is not None and term is not None:
                found.append(term(t, operands, out, params))
        return add_terms(found, out) if found else None

    return rule


def _term(
    prim: Primitive, operand: str, d: Mapping[str, Cell], vjp: Mapping[str, Rule], jvp: Mapping[str, Rule]
) -> TangentTerm | None:
    if operand in jvp:
        return _adapt(prim, jvp[operand])
    if operand not in d:  # a real diagonal Jacobian is its own transpose
        return _adapt(prim, vjp[operand]) if operand in vjp else None
    partial = d[operand]
    if isinstance(partial, unsupported):
        return raise_unsupported(prim, f"derivative with respect to {operand}", partial)
    factor = _adapt(prim, partial) if callable(partial) else lambda t, operands, out, params: partial

    def times(t: AnyArray, operands: Operands, out: AnyArray, params: Params) -> AnyArray:
        slope = factor(t, operands, out, params)
        return t if type(slope) in (int, float) and slope == 1 else t * slope

    return times


def _adapt(prim: Primitive, rule: Rule) -> TangentTerm:
    """Adapt a rule to ``(t, operands, out, params)``; its cotangent (or tangent) is ``t``."""
    names, n = prim.names_read(rule), code_of(rule).co_argcount
    arguments = [_argument(prim, name) for name in names]
    arguments[n:] = [f"{name}={argument}" for name, argument in zip(names[n:], arguments[n:], strict=True)]
    return _compiled(f"rule({', '.join(arguments)})")(rule)


def _argument(prim: Primitive, name: str) -> str:
    if name in ("t", "g"):
        return "t"
    if name in prim.parameters:
        return f"params[{name!r}]"
    if name == "out":
        return "out"
    if name in prim.outputs:
        return f"out[{prim.outputs.index(name)}]"
    if name in prim.operands:
        return f"operands[{prim.operands.index(name)}]"
    operand = f"operands[{prim.operands.index(name[:-6])}]"
    return f"shape_of({operand})" if name.endswith("_shape") else f"{operand}.dtype"


@functools.cache
def _compiled(expression: str) -> Callable[[Rule], TangentTerm]:
    """Compile a factory of adapted rules. Rules with equal argument lists share the code: there are few distinct ones."""
    code = compile(f"lambda rule: lambda t, operands, out, params: {expression}", __file__, "eval")
    return eval(code, {"shape_of": shape_of})
