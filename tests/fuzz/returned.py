"""Random functions of an array, with ufuncs that leave elements out, and various kinds of results.

A function computes arrays and numbers from x with ``where=`` and ``out=``, also where an operand is singular, and returns
object arrays, lists, dictionaries and other containers. Its derivatives in all modes are compared with finite differences
of NumPy; if these do not converge, at a kink, nothing is judged.
"""

# ruff: noqa: SIM905 -- lists of names read better as words

from __future__ import annotations

import random
import textwrap
import warnings
from typing import Any

import numpy as np

import chainrule
from chainrule.tree import tree_leaves

from .judging import Failure, Outcome
from .making import Statement

UNARY = (
    "log sqrt reciprocal arcsin arccos arctanh arccosh arcsinh log1p log2 log10 tan exp expm1 cbrt square absolute sin "
    "cosh tanh exp2 negative fabs"
).split()
BINARY = "divide power arctan2 hypot maximum minimum logaddexp multiply add subtract float_power fmod".split()
PARTS = {"modf": 1, "divmod": 2}
REDUCTIONS = ("sum", "mean", "prod", "std", "var", "max", "min", "logaddexp.reduce", "add.reduce", "multiply.reduce")


def program(seed: int) -> list[Statement]:
    rng = random.Random(seed)
    n = rng.choice([2, 3, 4])
    x = [rng.choice([0.0, -1.0, 1.0, 0.5, 0.3, 2.0, -0.7, round(rng.uniform(-2, 2), 2)]) for _ in range(n)]
    made = [Statement("input", f"x = np.array({x})")]
    arrays, numbers = ["x"], ["x[0]", "x[-1]"]
    for k in range(rng.randint(1, 5)):
        name = f"v{k}"
        if rng.random() < 0.45:
            made.append(Statement("numpy", f"{name} = {_masked(rng, arrays)}"))
            arrays.append(name)
        elif rng.random() < 0.3:
            made.append(Statement("numpy", f"{name} = {_reduced(rng, arrays)}"))
            numbers.append(name)
        elif rng.random() < 0.6:
            made.append(Statement("numpy", f"{name} = {_number(rng, numbers)}"))
            numbers.append(name)
        else:
            a = rng.choice(arrays)
            made.append(
                Statement(
                    "numpy", f"{name} = {rng.choice(['np.sin({0})', '{0} * x', '{0}[::-1]', '{0} * 1'])}".format(a)
                )
            )
            arrays.append(name)
    made.append(Statement("numpy", f"returned = {_returned(rng, arrays, numbers, 2)}"))
    return made


def _mask(rng: random.Random, a: str) -> str:
    least = rng.choice([-1, 0, 0, 0.4])
    return rng.choice(
        [f"{a} > {least}", f"{a} != 0", f"np.abs({a}) < 1", f"({a} > 0) & ({a} < 1)", f"np.arange({a}.size) % 2 == 0"]
    )


def _out(rng: random.Random, a: str) -> str:
    return rng.choice(
        [f"np.zeros_like({a})", f"np.full_like({a}, 1.3)", f"{a} * 1", f"{a}.copy()", f"np.full_like({a}, x[0])"]
    )


def _masked(rng: random.Random, arrays: list[str]) -> str:
    a = rng.choice(arrays)
    pick = rng.random()
    if pick < 0.55:
        operands = a
        name = rng.choice(UNARY)
    elif pick < 0.9:
        name = rng.choice(BINARY)
        operands = ", ".join(rng.sample([a, rng.choice([*arrays, "1.0", "2.0", "0.5"])], 2))
        a = a if a in operands else operands.split(", ")[0]
    else:
        name, count = rng.choice(list(PARTS.items()))
        operands = a if count == 1 else f"{a}, 0.7"
        outs = f"({_out(rng, a)}, {_out(rng, a)})"
        return f"np.{name}({operands}, out={outs}, where={_mask(rng, a)})[{rng.choice([0, 1])}]"
    return f"np.{name}({operands}, out={_out(rng, a)}, where={_mask(rng, a)})"


def _reduced(rng: random.Random, arrays: list[str]) -> str:
    a, name = rng.choice(arrays), rng.choice(REDUCTIONS)
    begin = f", initial={rng.choice([-3.0, 3.0])}" if name in ("max", "min") else ""
    return f"np.{name}({a}, where={_mask(rng, a)}{begin})"


def _number(rng: random.Random, numbers: list[str]) -> str:
    a, b = rng.choice(numbers), rng.choice([*numbers, "2.0"])
    return rng.choice(
        [f"{a} * {b}", f"np.sin({a})", f"{a} + {b}", f"np.exp(-{a} * {a})", f"x.sum() * {a}", f"{a} ** 2"]
    )


def _returned(rng: random.Random, arrays: list[str], numbers: list[str], depth: int) -> str:
    def number() -> str:
        return rng.choice([*numbers, *numbers, "1.5"])

    ways = [
        lambda: f"np.array([{number()}, {number()}])",
        lambda: f"np.array([[{number()}, {number()}], [{number()}, {number()}]])",
        lambda: f"np.array([{number()}, {number()}, {number()}], dtype=object)",
        lambda: f"np.asarray([{number()}, {number()}])",
        lambda: f"np.full({rng.choice(['2', '(2, 2)'])}, {number()})",
        lambda: f"np.asanyarray({number()})",
        lambda: f"np.array([{number()}, {number()}]) * {number()}",
        lambda: f"np.sin(np.array([{number()}, {number()}]))",
        lambda: f"np.array([[1.0, 2.0], [3.0, 4.0]]) @ np.array([{number()}, {number()}])",
        lambda: f"np.array([{number()}, {number()}]).reshape(2, 1)",
        lambda: f"np.array([{number()}, {number()}])[::-1]",
        lambda: f"np.sum(np.array([{number()}, {number()}]))",
        lambda: f"np.append(np.array([{number()}]), {rng.choice(arrays)})",
        lambda: f"np.concatenate([np.array([{number()}]), {rng.choice(arrays)}])",
        lambda: f"np.stack([{rng.choice(arrays)}, {rng.choice(arrays)}])[0]",
        lambda: rng.choice(arrays),
        lambda: rng.choice(numbers),
        lambda: f"{rng.choice(arrays)}[::-1]",
        lambda: "np.array([1.0, 2.0])",
    ]  # fmt: skip
    if depth and rng.random() < 0.35:
        inner = [_returned(rng, arrays, numbers, depth - 1) for _ in range(rng.randint(1, 3))]
        form = rng.choice(["list", "tuple", "dict"])
        if form == "dict":
            return "{" + ", ".join(f"'{chr(97 + i)}': {part}" for i, part in enumerate(inner)) + "}"
        return f"[{', '.join(inner)}]" if form == "list" else f"({', '.join(inner)},)"
    return rng.choice(ways)()


# -- judging -----------------------------------------------------------------------------------------------------------


def _flat(tree: Any) -> Any:
    return np.concatenate([np.asarray(leaf, float).reshape(-1) for leaf in tree_leaves(tree)])


def _rows(tree: Any, n: int) -> Any:
    return np.concatenate([np.asarray(leaf, float).reshape(-1, n) for leaf in tree_leaves(tree)])


def _slopes(f: Any, x: Any, h: float) -> Any:
    """Return the Jacobian by one-sided differences."""
    return np.stack([(_flat(f(x + h * e)) - _flat(f(x.copy()))) / h for e in np.eye(x.size)], 1)


def _like(tree: Any, along: Any) -> Any:
    """Return cotangents of a result's structure, with consecutive numbers of ``along``."""
    leaves, spec = chainrule.tree.tree_flatten(tree)
    parts = np.split(along, np.cumsum([np.size(leaf) for leaf in leaves])[:-1])
    return chainrule.tree.tree_unflatten(
        [part.reshape(np.shape(leaf)) for part, leaf in zip(parts, leaves, strict=True)], spec
    )


def _found(f: Any, x: Any, value: Any, t: Any, g: Any) -> Any:
    """Yield derivatives by all methods: a name, the result, and the name of the expected value."""
    n, cr = x.size, chainrule
    yield "jvp", lambda: _flat(cr.jvp(f, (x,), (t,))[1]), "push"
    yield "value of jvp", lambda: _flat(cr.jvp(f, (x,), (t,))[0]), "value"
    yield "vjp", lambda: cr.vjp(f, x)[1](_like(value, g))[0], "pull"
    yield "value of vjp", lambda: _flat(cr.vjp(f, x)[0]), "value"
    yield "vjp in no_grad", lambda: cr.no_grad()(lambda: cr.vjp(f, x)[1](_like(value, g))[0])(), "pull"
    yield "jacfwd", lambda: _rows(cr.jacfwd(f)(x), n), "matrix"
    yield "jacrev", lambda: _rows(cr.jacrev(f)(x), n), "matrix"
    yield "linearize", lambda: _flat(cr.func.linearize(f, x)[1](t)), "push"
    yield "jacobian", lambda: _rows(cr.jacobian(f, x), n), "matrix"
    yield (
        "structured",
        lambda: np.concatenate([leaf.toarray() for leaf in tree_leaves(cr.jacobian(f, x, layout="csr"))]),
        "matrix",
    )
    yield "vmap", lambda: _flat([leaf[1] for leaf in tree_leaves(cr.vmap(f)(np.stack([x + 1, x])))]), "value"
    yield (
        "vmap of jvp",
        lambda: _flat([leaf[0] for leaf in tree_leaves(cr.vmap(lambda t: cr.jvp(f, (x,), (t,))[1])(np.stack([t, t])))]),
        "push",
    )
    yield "jvp of jvp", lambda: _flat(cr.jvp(lambda x: cr.jvp(f, (x,), (t,))[0], (x,), (t,))[1]), "push"
    yield "vjp of jvp", lambda: cr.vjp(lambda x: cr.jvp(f, (x,), (t,))[0], x)[1](_like(value, g))[0], "pull"
    yield "compile", lambda: [_flat(call(x)) for call in [cr.compile(f)] for _ in range(2)][1], "value"
    yield (
        "compile of jvp",
        lambda: [_flat(call(x, t)) for call in [cr.compile(lambda x, t: cr.jvp(f, (x,), (t,))[1])] for _ in range(2)][
            1
        ],
        "push",
    )


def against_differences(program: list[Statement]) -> Outcome:
    if not program or program[0].kind != "input" or "returned" not in program[-1].text:
        return Outcome([], [])
    env: dict[str, Any] = {"np": np}
    body = "\n".join(s.text for s in program[1:])
    text = "def f(x):\n" + textwrap.indent(body, "    ") + "\n    return returned"
    steps = "def g(x):\n" + textwrap.indent(body, "    ") + "\n    return locals()"
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec("\n".join([program[0].text, text, steps]), env)
            f, x = env["f"], env["x"]
            on_the_way = [_flat(env["g"](x + h)) for h in (0, 1e-6, -1e-6, 1e-12)]
            if not np.isfinite(on_the_way).all() or ("!= 0" in text and not on_the_way[0].all()):
                return Outcome(
                    [], []
                )  # an intermediate value has no derivative, or is the only one on its side of a condition
            value, slopes = f(x.copy()), [_slopes(f, x, h) for h in (1e-6, -1e-6, 3e-7)]
        except Exception:  # not a NumPy program
            return Outcome([], [])
        flat = _flat(value)
        if not np.isfinite(flat).all() or not all(np.allclose(slopes[0], s, rtol=1e-3, atol=1e-3) for s in slopes):
            return Outcome([], [])
        slopes = [(slopes[0] + slopes[1]) / 2]
        t, g = np.cos(np.arange(x.size)), 1 + np.arange(flat.size) / 2
        wanted = {"value": flat, "matrix": slopes[0], "push": slopes[0] @ t, "pull": g @ slopes[0]}
        agreed, raised = [], []
        for name, call, kind in _found(f, x, value, t, g):
            try:
                found = call()
            except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
                if not str(error):
                    return Outcome([], [], Failure("program", text, f"{name}: {type(error).__name__} without a word"))
                raised.append(Statement("program", f"{name}: {error}"))
                continue
            except Exception as error:
                return Outcome([], [], Failure("program", text, f"{name} raises {type(error).__name__}: {error}"))
            if np.isnan(found).any() and np.abs(on_the_way[3] - on_the_way[0]).max() > 1e-7:
                return Outcome(agreed, raised, documented="zero times an infinite slope")
            scale = 1e-3 * max(1.0, float(abs(wanted[kind]).max(initial=0)))
            tolerance = 1e-9 if kind == "value" else scale
            if found.shape != wanted[kind].shape or not np.allclose(found, wanted[kind], rtol=1e-3, atol=tolerance):
                closed = [Statement(s.kind, s.text.replace(" > ", " >= ")) for s in program]
                if closed != program and against_differences(closed).agreed:
                    return Outcome(agreed, raised, documented="a number that is alone on its side of a condition")
                return Outcome(
                    [], [], Failure("program", text, f"{name}: {found.tolist()} and not {wanted[kind].tolist()}")
                )
            agreed.append(Statement("program", name))
    return Outcome(agreed, raised)
