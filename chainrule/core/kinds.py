"""The kinds of local Jacobian, and the columns each kind derives.

===========  =================  ===========================================  =============================
kind         local Jacobian     a row says                                   derived here
===========  =================  ===========================================  =============================
elementwise  diagonal           one partial per argument                     VJP, JVP, batching
linear       constant           the transpose                                JVP (the operation itself), batching
contraction  bilinear           the subscripts                               VJPs, JVP, batching
opaque       anything           VJP and JVP                                  batching, where extra leading axes are free
discrete     none               nothing: integers and booleans come out      batching
===========  =================  ===========================================  =============================

Whatever a keyword of the decorator gives overrides what the kind derives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from chainrule.core.batching import aligned, contracted, leading
from chainrule.core.contract import contraction_value, cotangent_subscripts, formula_of
from chainrule.core.primitive import Primitive, Rule, TableError, argument_names, enter, refuse, unsupported
from chainrule.core.shapes import shape_of

ndarray = np.ndarray


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


# -- elementwise -----------------------------------------------------------------------------------------------------


def _partial_reader(prim: Primitive, partial: Any) -> Callable[[Any, tuple[Any, ...]], Any]:
    """``(node, saved) -> partial derivative`` for a rule such as ``lambda out: out``."""
    if not callable(partial):
        return lambda node, saved: partial
    names = argument_names(partial)
    if all(name in prim.saves for name in names):
        at = [prim.saves.index(name) for name in names]
        if len(at) == 1:
            (i,) = at
            return lambda node, saved: partial(saved[i])
        if len(at) == 2:
            i, j = at
            return lambda node, saved: partial(saved[i], saved[j])
    read = prim.reader(partial)
    return lambda node, saved: read(node, None, saved)


def _times(partial: Any) -> Rule:
    """The VJP of an elementwise operation whose partial is a plain number."""
    if partial == 1:
        return lambda g: g
    if partial == -1:
        return lambda g: -g
    if partial == 0:
        return lambda g: np.zeros_like(g)
    return lambda g: g * partial


def _is_identity(partial: Any) -> bool:
    """Whether a partial is one of the saved values as it is, as in ``lambda out: out``: then it need not be called."""
    return bool(partial.__code__.co_code == _IDENTITY)


_IDENTITY = (lambda value: value).__code__.co_code


def _elementwise_cells(
    prim: Primitive, d: Mapping[str, Any], vjp: Mapping[str, Rule], jvp: Mapping[str, Any]
) -> list[Any]:
    """Per operand: ``(node, g, saved) -> cotangent``, once for real and once for complex values."""
    real: list[Any] = []
    both: list[Any] = []
    for operand in prim.operands:
        if operand in vjp:
            cell = prim.reader(vjp[operand])
            real.append(cell)
            if callable(d.get(operand)) and operand not in jvp:  # the rule is a quicker form for real numbers only
                read = _partial_reader(prim, d[operand])
                both.append(lambda node, g, saved, read=read: g * _conjugate(read(node, saved)))
            else:
                both.append(cell)
        elif operand in d and isinstance(d[operand], unsupported):
            cell = refuse(prim, f"derivative with respect to {operand}", d[operand])
            real.append(cell)
            both.append(cell)
        elif operand in d and not callable(d[operand]):
            cell = prim.reader(_times(d[operand]))
            real.append(cell)
            both.append(cell)
        elif operand in d:
            names = argument_names(d[operand])
            if len(names) == 1 and names[0] in prim.saves:
                at = prim.saves.index(names[0])
                if _is_identity(d[operand]):
                    real.append(lambda node, g, saved, at=at: g * saved[at])
                else:
                    real.append(lambda node, g, saved, partial=d[operand], at=at: g * partial(saved[at]))
            else:
                read = _partial_reader(prim, d[operand])
                real.append(lambda node, g, saved, read=read: g * read(node, saved))
            read = _partial_reader(prim, d[operand])
            both.append(lambda node, g, saved, read=read: g * _conjugate(read(node, saved)))
        else:
            real.append(None)
            both.append(None)
    return [real, both]


def _conjugate(value: Any) -> Any:
    return np.conjugate(value) if isinstance(value, complex) or getattr(value, "dtype", None) in _COMPLEX else value


_COMPLEX = frozenset((np.dtype(np.complex64), np.dtype(np.complex128)))


def _elementwise_pullback(prim: Primitive, cells: list[Any], vjp: Mapping[str, Rule]) -> Callable[..., tuple[Any, ...]]:
    real, both = cells

    def general(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            [
                None if edge is None or cell is None else unfit(cell(node, g, saved), *fit)
                for cell, edge, fit in zip(both, edges, node.fits)
            ]
        )

    if len(real) == 1:
        (cell,) = real
        (name,) = prim.operands
        rule = prim.vjps[name]
        if callable(rule) and len(prim.saves) == 1 and argument_names(rule) == ("g", *prim.saves):

            def direct(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
                if node.fits is not None:
                    return general(node, g, saved, edges)
                return (rule(g, saved[0]),)

            return direct

        def unary(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
            if node.fits is not None:
                return general(node, g, saved, edges)
            return (cell(node, g, saved),)

        return unary
    if len(real) == 2 and not vjp and [prim.partials.get(name) for name in prim.operands] in ([1, 1], [1, -1]):
        negative = prim.partials[prim.operands[1]] == -1

        def sums(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
            x, y = edges
            if node.fits is None:
                return (None if x is None else g, None if y is None else -g if negative else g)
            (x_shape, x_dtype), (y_shape, y_dtype) = node.fits
            have, dtype = g.shape, g.dtype
            if x is not None:
                x = g if have == x_shape and dtype is x_dtype else unfit(g, x_shape, x_dtype)
            if y is not None:
                y = g if have == y_shape and dtype is y_dtype else unfit(g, y_shape, y_dtype)
                y = -y if negative else y
            return (x, y)

        return sums
    if len(real) == 2 and not vjp and _crossed(prim):

        def crossed(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
            if node.fits is not None:
                return general(node, g, saved, edges)
            x, y = edges
            for_x, for_y = saved
            return (None if x is None else g * for_x, None if y is None else g * for_y)

        return crossed
    if len(real) == 2 and None not in real:
        first, second = real

        def binary(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
            if node.fits is not None:
                return general(node, g, saved, edges)
            x, y = edges
            return (
                None if x is None else first(node, g, saved),
                None if y is None else second(node, g, saved),
            )

        return binary

    def nary(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
        if node.fits is not None:
            return general(node, g, saved, edges)
        return tuple(
            None if edge is None or cell is None else cell(node, g, saved)
            for cell, edge in zip(real, edges, strict=True)
        )

    return nary


def _crossed(prim: Primitive) -> bool:
    """Whether each operand's partial is the other operand, as in a product."""
    x, y = prim.operands
    partials = [prim.partials.get(name) for name in (x, y)]
    return prim.saves == (y, x) and all(callable(p) and _is_identity(p) for p in partials)


def _environment(prim: Primitive, operands: Any, out: Any, params: dict[str, Any]) -> dict[str, Any]:
    env = dict(zip(prim.operands, operands, strict=False))
    if len(prim.outputs) > 1:
        env.update(zip(prim.outputs, out, strict=True))
    env["out"] = out
    env.update(params)
    return env


def _read(rule: Rule, env: dict[str, Any]) -> Any:
    names = argument_names(rule)
    n = rule.__code__.co_argcount
    values = [env[name] if name in env else _about(name, env) for name in names]
    return rule(*values[:n], **dict(zip(names[n:], values[n:], strict=True)))


def _about(name: str, env: dict[str, Any]) -> Any:
    value = env[name[:-6]]
    return shape_of(value) if name.endswith("_shape") else value.dtype


def _total(terms: list[Any], out: Any) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    if shape_of(total) != shape_of(out):
        total = np.broadcast_to(total, shape_of(out))
    return total


def _elementwise_jvp(
    prim: Primitive, d: Mapping[str, Any], vjp: Mapping[str, Any], jvp: Mapping[str, Any]
) -> Callable[..., Any]:
    def rule(operands: Any, tangents: Any, out: Any, params: dict[str, Any]) -> Any:
        env = _environment(prim, operands, out, params)
        terms = []
        for operand, t in zip(prim.operands, tangents, strict=True):
            if t is None:
                continue
            if operand in jvp:
                terms.append(_read(jvp[operand], {**env, "t": t}))
            elif operand in vjp and operand not in d:  # a real diagonal is its own transpose
                terms.append(_read(vjp[operand], {**env, "g": t}))
            elif operand in d:
                partial = d[operand]
                if isinstance(partial, unsupported):
                    return refuse(prim, f"derivative with respect to {operand}", partial)()
                factor = _read(partial, env) if callable(partial) else partial
                terms.append(t if isinstance(factor, (int, float)) and factor == 1 else t * factor)
        return _total(terms, out) if terms else None

    return rule


def elementwise(
    *,
    d: Mapping[str, Any] | None = None,
    formula: Mapping[str, str],
    ufunc: Callable[..., Any] | None = None,
    value: Callable[..., Any] | None = None,
    vjp: Mapping[str, Rule] | None = None,
    jvp: Mapping[str, Rule] | None = None,
    domain: Any = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], Primitive]:
    """Declare an operation whose output element depends on the same element of each operand (after broadcasting).

    Args:
        d: for each differentiable operand its partial derivative: a rule, a number, or ``unsupported(why)``.
        formula: for each differentiable operand its VJP in NumPy, as text; checked against the rule by tests.
        ufunc: the NumPy function that this row answers for; it computes the value, too, unless ``value`` does. Without
            either the decorated function does.
        vjp, jvp: rules that replace the derived ones. A VJP next to a partial is a quicker form of it for real numbers;
            next to a JVP it holds for complex numbers, too (for operations that are not holomorphic).
        domain: ``(low, high)`` for each operand, from which sample inputs are drawn.
        samples: the parameters to check the row with, as a list of dicts; for a row without parameters nothing.
    """
    d, vjp, jvp = dict(d or {}), dict(vjp or {}), dict(jvp or {})

    def declare(function: Callable[..., Any]) -> Primitive:
        prim = Primitive(
            function,
            "elementwise",
            value=value or ufunc,
            formula=formula,
            structure="diagonal",
            domain=domain,
            **options,
        )
        if isinstance(ufunc, np.ufunc):
            prim.ufunc = ufunc
        rules = {name: vjp.get(name, d.get(name)) for name in prim.operands if name in d or name in vjp}
        prim.partials = dict(d)
        prim.set_vjps({k: (r if callable(r) or isinstance(r, unsupported) else _times(r)) for k, r in rules.items()})
        prim.pullback = _elementwise_pullback(prim, _elementwise_cells(prim, d, vjp, jvp), vjp)
        prim.jvp = _elementwise_jvp(prim, d, vjp, jvp)
        prim.batch = aligned
        return enter(prim)

    return declare


# -- linear, contraction, opaque -------------------------------------------------------------------------------------


def _general_pullback(prim: Primitive) -> Callable[..., tuple[Any, ...]]:
    """Run each needed operand's rule, then cast back what dtype promotion changed."""
    cells: list[Any] = []
    for operand in prim.operands:
        rule = prim.vjps.get(operand)
        if rule is None:
            cells.append(None)
        elif isinstance(rule, unsupported):
            cells.append(refuse(prim, f"derivative with respect to {operand}", rule))
        else:
            cells.append(prim.reader(rule))
    if prim.variadic:
        (every,) = cells

        def variadic(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
            parts = every(node, g, saved)
            return tuple(
                None if edge is None else unfit(part, *fit)
                for part, edge, fit in zip(parts, edges, node.fits, strict=True)
            )

        return variadic
    if len(cells) == 1:
        (cell,) = cells

        def unary(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
            if node.fits is None:
                return (cell(node, g, saved),)
            return (unfit(cell(node, g, saved), *node.fits[0]),)

        return unary

    def nary(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
        grads = [
            None if edge is None or cell is None else cell(node, g, saved)
            for cell, edge in zip(cells, edges, strict=True)
        ]
        if node.fits is not None:
            grads = [None if r is None else unfit(r, *fit) for r, fit in zip(grads, node.fits, strict=True)]
        return tuple(grads)

    return nary


def _linear_jvp(prim: Primitive) -> Callable[..., Any]:
    """The derivative of a linear map is the map: apply it to the tangents (zeros where there is none)."""

    def rule(operands: Any, tangents: Any, out: Any, params: dict[str, Any]) -> Any:
        if all(t is None for t in tangents):
            return None
        moved = [
            t if t is not None else np.zeros(shape_of(x), x.dtype) if prim.variadic or name in prim.vjps else x
            for name, x, t in zip(_names(prim, operands), operands, tangents, strict=True)
        ]
        return prim(*moved, **params)

    return rule


def _names(prim: Primitive, operands: Any) -> tuple[str, ...]:
    return (prim.operands[-1],) * len(operands) if prim.variadic else prim.operands


def linear(
    *,
    transpose: Mapping[str, Rule],
    formula: Mapping[str, str],
    value: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], Primitive]:
    """Declare an operation that is linear in its differentiable operands (jointly, where there are several).

    Args:
        transpose: for each of them the transposed map, from output cotangent to operand cotangent. For a variadic row
            the one rule returns a tuple.
        formula: the same in NumPy, as text.
        batch: the batching rule; without it the value must accept extra leading axes (axes counted from the end).
    """

    def declare(function: Callable[..., Any]) -> Primitive:
        prim = Primitive(function, "linear", value=value, formula=formula, **options)
        prim.set_vjps(transpose)
        prim.needs_fits = prim.needs_fits or prim.variadic
        prim.pullback = _general_pullback(prim)
        prim.jvp = jvp or _linear_jvp(prim)
        prim.batch = batch or leading
        return enter(prim)

    return declare


def contraction(
    subscripts: str, *, value: Callable[..., Any] | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Primitive]:
    """Declare a product of two operands summed over shared subscripts, as in ``@contraction("ik,kj->ij")``.

    The operation must accept extra leading axes, which broadcast (as in ``np.matmul``).
    """

    def declare(function: Callable[..., Any]) -> Primitive:
        prim = Primitive(function, "contraction", value=value or contraction_value(subscripts), **options)
        x, y = prim.operands
        left, right = cotangent_subscripts(subscripts)
        to_left, to_right = contraction_value(left), contraction_value(right)
        names = {"x": x, "y": y}
        rules: dict[str, Rule] = {
            x: _with_names(lambda g, other: to_left(g, _conjugate(other)), ("g", y)),
            y: _with_names(lambda g, other: to_right(_conjugate(other), g), ("g", x)),
        }
        prim.formula = prim.formula or {x: formula_of(left, "g", names["y"]), y: formula_of(right, names["x"], "g")}
        prim.structure = subscripts
        prim.set_vjps({k: r for k, r in rules.items()})
        prim.pullback = _contraction_pullback(to_left, to_right)
        prim.jvp = _bilinear_jvp(prim)
        prim.batch = options.get("batch") or contracted
        return enter(prim)

    return declare


def _with_names(rule: Rule, names: tuple[str, ...]) -> Rule:
    """The same rule, with its parameters named after the operands it reads."""
    first, second = names
    scope: dict[str, Any] = {"rule": rule}
    exec(f"def named({first}, {second}):\n    return rule({first}, {second})", scope)
    return scope["named"]  # type: ignore[no-any-return]


def _contraction_pullback(to_left: Rule, to_right: Rule) -> Callable[..., tuple[Any, ...]]:
    def pullback(node: Any, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
        y, x = saved  # the rule for x names y, the rule for y names x
        if node.fits is None:
            return (
                None if edges[0] is None else to_left(g, y),
                None if edges[1] is None else to_right(x, g),
            )
        return (
            None if edges[0] is None else unfit(to_left(g, _conjugate(y)), *node.fits[0]),
            None if edges[1] is None else unfit(to_right(_conjugate(x), g), *node.fits[1]),
        )

    return pullback


def _bilinear_jvp(prim: Primitive) -> Callable[..., Any]:
    def rule(operands: Any, tangents: Any, out: Any, params: dict[str, Any]) -> Any:
        (x, y), (tx, ty) = operands, tangents
        terms = []
        if tx is not None:
            terms.append(prim(tx, y, **params))
        if ty is not None:
            terms.append(prim(x, ty, **params))
        return _total(terms, out) if terms else None

    return rule


def opaque(
    *,
    vjp: Mapping[str, Any],
    jvp: Mapping[str, Any] | unsupported,
    formula: Mapping[str, str],
    value: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], Primitive]:
    """Declare an operation whose rules are written by hand.

    Args:
        vjp: for each differentiable operand the rule from output cotangent(s) to its cotangent.
        jvp: for each the rule from its tangent ``t`` to the output tangent(s); the contributions are added.
        batch: the batching rule; without it the value must accept extra leading axes.
    """

    def declare(function: Callable[..., Any]) -> Primitive:
        prim = Primitive(function, "opaque", value=value, formula=formula, **options)
        prim.set_vjps(vjp)
        prim.needs_fits = prim.needs_fits or prim.variadic
        prim.pullback = _general_pullback(prim)
        prim.jvp = refuse(prim, "JVP", jvp) if isinstance(jvp, unsupported) else _opaque_jvp(prim, jvp)
        prim.batch = batch or leading
        if isinstance(jvp, Mapping) and set(jvp) != set(vjp):
            raise TableError(f"row {prim.name}: VJP and JVP are for different operands")
        return enter(prim)

    return declare


def _opaque_jvp(prim: Primitive, rules: Mapping[str, Any]) -> Callable[..., Any]:
    def rule(operands: Any, tangents: Any, out: Any, params: dict[str, Any]) -> Any:
        env = _environment(prim, operands, out, params)
        terms = []
        for operand, t in zip(prim.operands, tangents, strict=True):
            if t is None or operand not in rules:
                continue
            if isinstance(rules[operand], unsupported):
                return refuse(prim, f"JVP with respect to {operand}", rules[operand])()
            terms.append(_read(rules[operand], {**env, "t": t}))
        if not terms:
            return None
        if len(prim.outputs) == 1:
            return _total(terms, out)
        sums = []
        for parts, o in zip(zip(*terms, strict=True), out, strict=True):
            known = [p for p in parts if p is not None]
            sums.append(_total(known, o) if known else None)
        return tuple(sums)

    return rule


def discrete(
    *, value: Callable[..., Any] | None = None, batch: Callable[..., Any] | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Primitive]:
    """Declare an operation whose results are integers or booleans: no gradient passes through it."""

    def declare(function: Callable[..., Any]) -> Primitive:
        prim = Primitive(function, "discrete", value=value, structure="zero", **options)
        prim.differentiable = False
        prim.batch = batch or leading
        return enter(prim)

    return declare
