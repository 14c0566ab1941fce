"""Helpers of the kinds: bind a rule's arguments by its parameter names, and undo broadcasting and dtype promotion.

``kinds``, ``elementwise`` and ``tangents`` call these functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, Protocol

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, NumpyDType, Params, Saved, TensorLike
from chainrule._src.rules.primitive import Primitive, Rule, argument_names, code_of
from chainrule._src.rules.sums import accurate_sum

_REAL = np.dtype(float)


class NodeLike(Protocol):
    """The attributes of a node that a pullback reads."""

    @property
    def params(self) -> Params: ...
    @property
    def in_avals(self) -> tuple[Any, ...] | None: ...


def unbroadcast(g: AnyArray, shape: tuple[int, ...], dtype: NumpyDType) -> AnyArray:
    """Undo broadcasting and promotion of an operand: sum over broadcast axes, take the real part, cast back."""
    data = getattr(g, "_raw", g)  # attribute access on a tensor is slower
    have = data.shape
    if have == shape:
        if data.dtype is dtype:
            return g
    else:
        extra = len(have) - len(shape)
        if extra == 1 and have[1:] == shape and data.dtype is dtype:  # the most common case, a bias
            return accurate_sum(g, (0,))
        axes = tuple(range(extra)) + tuple([extra + i for i, n in enumerate(shape) if n == 1 and have[extra + i] != 1])
        if axes:
            g = accurate_sum(g, axes)
        if g.shape != shape:  # summation removed the broadcast axes, or g is smaller than the operand
            g = np.reshape(g, shape) if axes else np.broadcast_to(g, shape)
    if g.dtype != dtype:
        if g.dtype.kind == "c" and dtype.kind != "c":
            g = np.real(g)
        if g.dtype != dtype:
            g = g.astype(dtype)
    return g


def conjugate(x: Any) -> Any:
    """Return the complex conjugate; real numbers are returned unchanged."""
    return np.conjugate(x) if isinstance(x, complex) or getattr(x, "dtype", _REAL).kind == "c" else x


def compile_rule(prim: Primitive, rule: Rule, form: str = "{}") -> Callable[[NodeLike, AnyArray, Saved], AnyArray]:
    """Compile ``(node, g, saved) -> form(result of the rule)``; the rule's arguments are selected by its parameter names."""
    names = prim.names_read(rule)
    arguments = [_argument(prim, name) for name in names]
    if is_identity(rule):
        return _compiled(form.format(arguments[0]))(rule)
    n = code_of(rule).co_argcount
    arguments[n:] = [f"{name}={argument}" for name, argument in zip(names[n:], arguments[n:], strict=True)]
    return _compiled(form.format(f"rule({', '.join(arguments)})"))(rule)


def is_identity(rule: Rule) -> bool:
    """Return whether a rule returns its only argument, as in ``lambda out: out``: then it need not be called."""
    return rule.__code__.co_code == _IDENTITY and len(argument_names(rule)) == 1


_IDENTITY = (lambda value: value).__code__.co_code


def _argument(prim: Primitive, name: str) -> str:
    """Return the expression for a rule's argument, from its parameter name."""
    if name == "g":
        return "g"
    if name in prim.saves:
        return f"saved[{prim.saves.index(name)}]"
    if prim.shared is not None and name == prim.shared[0]:
        return f"saved[{len(prim.saves)}]"
    if name in prim.parameters:
        return f"node.params[{name!r}]"
    operand, part = name[:-6], 0 if name.endswith("shape") else 1
    if "*" + operand in prim.operands:
        return f"tuple([aval[{part}] for aval in node.in_avals])"
    return f"node.in_avals[{prim.operands.index(operand)}][{part}]"


@functools.cache
def _compiled(expression: str) -> Callable[[Rule], Callable[[NodeLike, AnyArray, Saved], AnyArray]]:
    """Compile a factory of adapted rules. Rules with equal argument lists share the code: there are few distinct ones."""
    return eval(compile(f"lambda rule: lambda node, g, saved: {expression}", __file__, "eval"))


def rule_arguments(prim: Primitive, operands: Sequence[TensorLike], out: Any, params: Params) -> Params:
    env = dict(zip(prim.operands, operands, strict=False))
    if len(prim.outputs) > 1:
        env.update(zip(prim.outputs, out, strict=True))
    env["out"] = out
    env.update(params)
    return env


def call_rule(prim: Primitive, rule: Rule, env: Params) -> Any:
    names, n = _parameters(prim, code_of(rule))
    values = [env[name] if name in env else _shape_or_dtype(name, env) for name in names]
    if n == len(names):
        return rule(*values)
    return rule(*values[:n], **dict(zip(names[n:], values[n:], strict=True)))


@functools.lru_cache(1024)
def _parameters(prim: Primitive, code: CodeType) -> tuple[tuple[str, ...], int]:
    """Return the names that a rule with this code reads, and how many of them are positional."""
    return prim.names_read(code), code.co_argcount


def _shape_or_dtype(name: str, env: Params) -> Any:
    value = env[name[:-6]]
    return shape_of(value) if name.endswith("_shape") else value.dtype


def add_terms(terms: list[AnyArray], out: AnyArray) -> AnyArray:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    if shape_of(total) != shape_of(out):
        total = np.broadcast_to(total, shape_of(out))
    return total
