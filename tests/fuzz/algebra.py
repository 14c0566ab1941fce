"""Random programs of small linear algebra, indices and numbers in loops: compiled results equal eager results.

The functions are called again with other numbers, with matrices that are singular or contain nan, and with indices that are
out of bounds. Bits, exceptions and messages must equal those of eager execution, and so must those of the gradients.
"""

from __future__ import annotations

import random
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule as cr

from .comparing import difference
from .judging import Failure, Outcome
from .making import Statement
from .templates import parts

#: M: a square matrix, P: a positive definite matrix, v: a vector, s: a number, i: indices into a vector, n: another number
MATRICES = parts("""{M} @ {M} | {M} + {M}.T | {M} * {s} | np.linalg.inv({P}) | np.linalg.solve({P}, {M}) | np.linalg.cholesky({P})
    | np.linalg.solve({M} + 2 * E, {M}) | np.outer({v}, {v}) | np.tril({M}) | np.triu({M}, 1) | {M}.T
    | np.diag({v}) | {M} @ {P} @ {M}.T | np.sort({M}, axis=0) | np.cumsum({M}, axis=1) | {M}[np.argsort({v})]
    | np.where({M} > {s}, {M}, 0.0) | np.linalg.qr({P})[1] | np.linalg.eigh({P})[1] ** 2 | {M} * {v} | {M} / ({v}[:, None] ** 2 + 1)
    | np.take({M}, p, axis=1) | np.take_along_axis({M}, np.argsort({M}, axis=1), axis=1) | {M} - np.max({M}, axis=1, keepdims=True)
    | np.clip({M}, -1, 1) | {M}[q, p][:, None] * {M}""")
VECTORS = parts("""{M} @ {v} | {v} @ {M} | np.linalg.solve({P}, {v}) | {v} * {s} | {v} + {v} | {v}[p] | np.diagonal({M}) * {s} | {M}[0]
    | {M}[:, -1] | np.sort({v}) | np.cumsum({v}) | np.stack([{s}, *{v}[1:]]) | {v} ** 2 | np.where({v} > {s}, {v}, {s})
    | np.linalg.eigvalsh({P}) | np.linalg.svd({M}, compute_uv=False) | {M}[p, q] | np.exp(-{v} ** 2) | {v}[np.argsort({v})]
    | np.linalg.solve({M}, {v}) | {M}.T @ {v} | np.sum({M}, axis=0) | {v} - np.max({v}) | np.take({v}, q)
    | np.broadcast_to({s}, ({v}.size,)) * {v} | {v}[::-1] | np.searchsorted(np.sort({v}), {v}) * {s}""")
NUMBERS = parts("""{v} @ {v} | {v} @ {P} @ {v} | {v} @ np.linalg.solve({P}, {v}) | np.linalg.slogdet({P})[1] | np.linalg.det({M}) | {v}[0]
    | {v}[-1] | {M}[0, -1] | np.sum({v}) | {s} ** 2 | {s} * {s} | {s} - {n} | np.log(np.sum(np.exp({v}))) | np.max({v})
    | {v}[np.argmax({v})]
    | np.trace({M}) | {s} / ({s} ** 2 + 1) | ({s} - {v}[0]) ** 2 | abs({s}) ** 1.5 | np.linalg.slogdet({M})[1] | np.exp(-{s} ** 2)
    | np.mean({M}) | {s} ** 3 | {n} * {s} | np.sqrt({s} ** 2 + 1) | {v}[p][0] | np.dot({v}, {v}) | np.sin({s}) + {s}""")
KINDS = {"M": MATRICES, "v": VECTORS, "s": NUMBERS}


def program(seed: int) -> list[Statement]:
    """Return the definition of a function ``f(M, v, s, p, q)``; the seed also determines the size."""
    rng = random.Random(seed)
    names = {"M": ["M"], "v": ["v"], "s": ["s"]}
    lines = ["E = np.eye(len(v))", "P = M @ M.T + E"]
    for k in range(rng.randint(2, 7)):
        lines.append(_statement(rng, names, f"{rng.choice('Mvvsss')}{k}"))
    if rng.random() < 0.5:  # a loop that carries some of them
        carried = [rng.choice(names[kind]) for kind in "vs"]
        inner = {kind: list(of) for kind, of in names.items()}
        body = [_statement(rng, inner, f"{rng.choice('Mvs')}_{k}") for k in range(rng.randint(1, 3))]
        body += [
            f"{name} = np.tanh({_filled(rng, rng.choice(KINDS[kind]), inner)})"
            for kind, name in zip("vs", carried, strict=True)
        ]
        lines += [f"for step in range({rng.randint(2, 5)}):", *[f"    {line}" for line in body]]
    results = [rng.choice(names[kind]) for kind in "Mvs"]
    lines.append(f"return {', '.join(results)}")
    return [Statement("algebra", f"# {seed}\ndef f(M, v, s, p, q):\n" + textwrap.indent("\n".join(lines), "    "))]


def _statement(rng: random.Random, names: dict[str, list[str]], name: str) -> str:
    text = f"{name} = {_filled(rng, rng.choice(KINDS[name[0]]), names)}"
    names[name[0]].append(name)
    return text


def _filled(rng: random.Random, template: str, names: dict[str, list[str]]) -> str:
    text = template
    for hole in "Mvs":
        while f"{{{hole}}}" in text:
            text = text.replace(f"{{{hole}}}", rng.choice(names[hole]), 1)
    return text.replace("{P}", "P").replace("{i}", "p").replace("{n}", str(rng.choice([2, 0.5, -1.5])))


def against_eager(program: list[Statement]) -> Outcome:
    text = program[0].text
    scope: dict[str, Any] = {"np": np}
    exec(text, scope)
    function = scope["f"]
    rng = np.random.default_rng(int(text.split()[1]))
    found = _compare(function, _calls(rng)) or _compare(_gradient(function), _calls(rng))
    if found:
        return Outcome([], [], Failure("algebra", text, found))
    return Outcome(program, [])


def _calls(rng: np.random.Generator) -> list[tuple[Any, ...]]:
    """Return the arguments of several calls; after the first call with special matrices and indices."""
    n = int(rng.integers(1, 5))
    dtype = rng.choice([np.float64, np.float64, np.float32])
    calls = []
    for k in range(7):
        matrix, vector = rng.standard_normal((n, n)).astype(dtype), rng.standard_normal(n).astype(dtype)
        positions = [rng.integers(-n, n, n) for _ in range(2)]
        if k == 2:
            matrix[...] = 1.0
        elif k == 3:
            matrix[...] = 0.0
        elif k == 4:
            matrix[0, 0], vector[-1] = np.nan, np.inf
        elif k == 5:
            positions[int(rng.integers(2))][0] = n + 2
        calls.append((matrix, vector, dtype(rng.standard_normal()), *positions))
    return calls


def _gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    def total(*args: Any) -> Any:
        return sum([np.sum(np.sin(x)) for x in function(*args)])

    return cr.grad(total, argnums=(0, 1, 2))


def _compare(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> str:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = cr.compile(function)
        for k, args in enumerate([calls[0], *calls]):
            expected, found = _outcome(function, args), _outcome(compiled, args)
            if isinstance(expected, str) or isinstance(found, str):
                unneeded = not isinstance(found, str) and any([plan.dropped for plan in compiled.plan(*calls[0]).plans])
                if expected != found and not unneeded:  # unneeded values are not computed and cannot fail
                    return f"call {k}: {found} for {expected}"
            elif (what := difference(found, expected)) or (what := _types(found, expected)):
                return f"call {k}: {what}"
    return ""


def _outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return function(*args)
    except (np.linalg.LinAlgError, IndexError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"


def _types(ours: Any, eager: Any) -> str:
    kinds = [[type(x).__name__ for x in found] if isinstance(found, tuple) else [] for found in (ours, eager)]
    return "" if kinds[0] == kinds[1] else f"{kinds[0]} for {kinds[1]}"
