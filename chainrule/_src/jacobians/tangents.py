"""Partial derivatives, JVPs and VJPs of one step, which ``propagation`` applies to the values of terms.

Inputs are a ``Step`` and arrays of tangents or cotangents.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, NumpyDType, Shape, TensorLike
from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.jac import JacStep
from chainrule._src.jacobians.terms import Term, Unstructured, flatten_array
from chainrule._src.rules.batching import reshape_any
from chainrule._src.rules.primitive import Primitive, argument_names, unsupported
from chainrule._src.rules.rules import call_rule, conjugate, is_identity, rule_arguments
from chainrule._src.tape.levels import open_level
from chainrule._src.transforms.pushforward import exit_level

ndarray = np.ndarray


@functools.lru_cache(1024)
def _rule_of(prim: Primitive, i: int) -> tuple[Any, str]:
    """Return the rule for an elementwise primitive's operand, and its argument: "" for a partial, "t" (JVP) or "g" (VJP)."""
    name = prim.operands[i]
    cells = prim.declared[2]
    for column, given in (("jvp", "t"), ("d", ""), ("vjp", "g")):
        if name in cells[column]:
            return cells[column][name], given
    return 0, ""


@functools.lru_cache(1024)
def _operand_of(prim: Primitive, i: int) -> int:
    """Return the index of the operand that is the partial with respect to operand i, as in a product; −1 if there is none."""
    rule, _ = _rule_of(prim, i)
    if not is_identity(rule) or argument_names(rule)[0] not in prim.operands:
        return -1
    return prim.operands.index(argument_names(rule)[0])


def partial_of(step: JacStep, i: int) -> Any:
    """Return the partial of an elementwise step with respect to operand i: a number or an array-like; None if it is 0.

    For a complex operand it is a pair: the images of 1 and of 1j.
    """
    prim = step.prim
    rule, given = _rule_of(prim, i)
    if isinstance(rule, unsupported):
        raise Unstructured(f"{prim.name} has no derivative with respect to {prim.operands[i]}: {rule.why}")
    turning = dtype_of(step.operands[i]).kind == "c"
    if not given:
        factor = rule
        if callable(rule):
            operands = _precise(step)
            k = _operand_of(prim, i)
            factor = (
                call_rule(prim, rule, rule_arguments(prim, operands, step.outs[0], step.params))
                if k < 0
                else operands[k]
            )
        if isinstance(factor, (int, float)) and factor == 0:
            return None
        if hasattr(factor, "dtype") and factor.dtype.kind in "biu":  # sums of booleans or integers would differ
            factor = factor.astype(_real_dtype(step.outs[0]))
        return (factor, factor * 1j) if turning else factor
    out = step.outs[0]
    env = rule_arguments(prim, _precise(step), out, step.params)

    def of(unit: object) -> Any:
        dtype = dtype_of(step.operands[i]) if turning else _real_dtype(out)
        return call_rule(prim, rule, {**env, given: np.full(shape_of(out), unit, dtype)})

    return (of(1), of(1j)) if turning else of(1)


def _precise(step: JacStep) -> list[TensorLike]:
    """Return a step's operands, cast to the precision of its result if they are less precise."""
    operands = step.operands
    out = step.outs[0].dtype
    for x in operands:
        if type(x) is ndarray and x.dtype is not out and x.dtype.kind in "fc":
            precision = np.finfo(out).dtype
            return [
                x.astype(np.result_type(x.dtype, precision)) if type(x) is ndarray and x.dtype.kind in "fc" else x
                for x in operands
            ]
    return operands


def _real_dtype(x: AnyArray) -> NumpyDType:
    return np.empty(0, dtype_of(x)).real.dtype


def scale_term(term: Term, factor: Any, shape: Shape, out: Any) -> Term:
    """Multiply a term of an operand (of the output's shape) by a factor for each row."""
    vals = term.vals
    if type(factor) is tuple:
        one, turn = [_at_rows(f, shape, term) for f in factor]
        vals = np.real(vals) * one + np.imag(vals) * turn
    else:
        factor = _at_rows(factor, shape, term)
        vals = factor if type(vals) is int and vals == 1 else vals * factor
    return Term(term.source, term.cols, real_if(vals, out), term.rows)


def _at_rows(factor: Any, shape: Shape, term: Term) -> Any:
    """Convert a factor for each element of a value to one for each row of a term."""
    have = shape_of(factor)
    if not have and not hasattr(factor, "dtype"):
        return factor
    if term.rows is None:
        return reshape_any(factor, (1,) * (1 + len(shape) - len(have)) + tuple(have))
    full = factor if have == shape else np.broadcast_to(factor, shape)
    return flatten_array(full)[term.rows][None]


def real_if(vals: Any, out: AnyArray) -> Any:
    """Return the real part of vals if the result is real."""
    if type(vals) is ndarray and vals.dtype.kind == "f":
        return vals
    if dtype_of(out).kind != "c" and (isinstance(vals, complex) or (hasattr(vals, "dtype") and vals.dtype.kind == "c")):
        return np.real(vals)
    return vals


def batched_jvp(step: JacStep, i: int, tangents: AnyArray) -> list[Any]:
    """Return the JVP of a batch of tangents of operand i, for each output with a leading batch axis; None for zeros."""
    size = shape_of(tangents)[0]
    with open_level("jacobian", Batched, size, "same", True) as level:
        given: list[Any] = [None] * len(step.operands)
        given[i] = Batched(tangents, level)
        found = step.prim.jvp(step.operands, given, step.out(), step.params)
        several = isinstance(found, tuple)
        parts = found if several else (found,) * len(step.outs) if found is None else (found,)
        return [None if t is None else real_if(exit_level(t, level), o) for t, o in zip(parts, step.outs, strict=True)]


def batched_vjp(step: JacStep, i: int, cotangents: object) -> Any:
    """Return the VJP with respect to operand i of a batch of cotangents of the single output, not conjugated."""
    prim, name = step.prim, step.prim.operands[i]
    env = rule_arguments(prim, step.operands, step.out(), step.params)
    with open_level("jacobian", Batched, shape_of(cotangents)[0], "same", True) as level:
        env["g"] = Batched(cotangents, level)
        if prim.shared is not None:
            env[prim.shared[0]] = call_rule(prim, prim.shared[1], env)
        rule = prim.vjps[name]
        assert callable(rule)
        return conjugate(exit_level(call_rule(prim, rule, env), level))


def pull_ones(step: JacStep, i: int) -> Any:
    """Return the partial for each element of operand i, if each contributes to a single element of the output."""
    return batched_vjp(step, i, np.ones((1, *shape_of(step.outs[0])), step.outs[0].dtype))[0]


def tangents_of(term: Term, x: object) -> Any:
    """Return the vals of a term as tangents of the operand."""
    vals = term.vals
    return np.broadcast_to(vals if hasattr(vals, "dtype") else np.asarray(vals, dtype_of(x)), term.cols.shape)
