"""What the kinds share: reading what a rule names, and undoing what an operation did to fit its operands together."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.core.primitive import Primitive, Rule, argument_names
from chainrule.core.shapes import shape_of

_COMPLEX = frozenset((np.dtype(np.complex64), np.dtype(np.complex128)))


def unfit(g: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Undo what an operation did to fit its operand in: sum over broadcast axes, take the real part, cast back."""
    data = getattr(g, "_data", g)  # a tensor's own attributes are slower
    have = data.shape
    if have == shape:
        if data.dtype is dtype:
            return g
    else:
        extra = len(have) - len(shape)
        if extra == 1 and have[1:] == shape and data.dtype is dtype:  # the commonest case, a bias
            return np.add.reduce(g, 0)
        axes = tuple(range(extra)) + tuple([extra + i for i, n in enumerate(shape) if n == 1 and have[extra + i] != 1])
        if axes:
            g = np.add.reduce(g, axis=axes)
        if g.shape != shape:  # the stretched axes were summed away, or g is smaller than the operand
            g = np.reshape(g, shape) if axes else np.broadcast_to(g, shape)
    if g.dtype != dtype:
        if g.dtype.kind == "c" and dtype.kind != "c":
            g = np.real(g)
        if g.dtype != dtype:
            g = g.astype(dtype)
    return g


def conjugate(value: Any) -> Any:
    return np.conjugate(value) if isinstance(value, complex) or getattr(value, "dtype", None) in _COMPLEX else value


def environment(prim: Primitive, operands: Any, out: Any, params: dict[str, Any]) -> dict[str, Any]:
    env = dict(zip(prim.operands, operands, strict=False))
    if len(prim.outputs) > 1:
        env.update(zip(prim.outputs, out, strict=True))
    env["out"] = out
    env.update(params)
    return env


def read(rule: Rule, env: dict[str, Any]) -> Any:
    names = argument_names(rule)
    n = rule.__code__.co_argcount
    values = [env[name] if name in env else _about(name, env) for name in names]
    return rule(*values[:n], **dict(zip(names[n:], values[n:], strict=True)))


def _about(name: str, env: dict[str, Any]) -> Any:
    value = env[name[:-6]]
    return shape_of(value) if name.endswith("_shape") else value.dtype


def total(terms: list[Any], out: Any) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    if shape_of(total) != shape_of(out):
        total = np.broadcast_to(total, shape_of(out))
    return total
