"""Random programs on Dask arrays in random chunks: values and gradients equal NumPy's, or an error names the limitation.

Every second program applies a primitive to one of its samples, with first and second derivatives; the others consist of a
few NumPy functions.
"""

from __future__ import annotations

import functools
import random
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import chainrule as cr
from chainrule._src.rules.primitive import TABLE
from chainrule.testing.rulecheck import every_sample
from tests.foreign import checking

from . import making
from .judging import Failure, Outcome, close
from .making import Statement

#: what a Dask array cannot do is said so: it is not computed, and chunks of unknown sizes are none that can be computed with
CLEAR = (
    "nothing is converted silently",
    "never converts silently",
    "a NumPy array silently",
    "have no writable memory",
    "compute_chunk_sizes",
)
#: cut along one axis, its factors are put together from those of blocks, and have other signs
SIGNS = {"svd"}
#: functions that branch on a number, which computes it
DECIDES = re.compile(r"(?<![.\w])(max|min|sorted)\(|\.clip\(")  # the method compares the elements of an object array


def cuts(shape: tuple[int, ...], rng: random.Random) -> tuple[tuple[int, ...], ...]:
    """Return chunks for a shape: each axis whole, in ones, or split randomly."""

    def axis(n: int) -> tuple[int, ...]:
        way = rng.random()
        if n < 2 or way < 0.25:
            return (n,)
        if way < 0.4:
            return (1,) * n
        places = sorted(rng.sample(range(1, n), rng.randint(1, min(2, n - 1))))
        return tuple(b - a for a, b in zip([0, *places], [*places, n]))

    return tuple(map(axis, shape))


class Maker(making.NumpyMaker):
    """Generates functions without in-place writes and branches."""

    weights = {kind: weight for kind, weight in making.NumpyMaker.weights.items() if kind not in ("in-place", "loop")}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.avoid = DECIDES


def program(seed: int) -> list[Statement]:
    rng = random.Random(seed)
    if seed % 2:
        name = rng.choice(sorted(TABLE))
        samples = every_sample(TABLE[name])
        at = rng.randrange(len(samples)) if samples else -1
        return [Statement(name, f"# sample {at} of {name}, chunks of seed {seed}")]
    shape = rng.choice([*making.SHAPES[1:], (7,), (4, 5), (3, 2, 4)])
    x = making.literal(rng, shape, lambda: round(rng.uniform(-1.2, 1.2), 4))
    maker = Maker(None, rng)
    maker.env["np"] = np
    maker.attempt("input", f"np.array({x})", "x")
    names: list[str] = []
    while not names:
        inner = Maker(None, rng, maker, x=maker.env["x"])
        inner.names = ["x"]
        for _ in range(12):
            if len(inner.statements) >= rng.randint(1, 3):
                break
            inner.step()
        names = [n for n in inner.own - {"x"} if inner.suits(n, "f", lambda t: making.largest(t) < 1e3)]
    result = " + ".join(f"np.sum(np.sin({name}))" for name in sorted(names))
    lines = [*"\n".join(s.text for s in inner.statements).split("\n"), f"return {result}"]
    return [
        *maker.statements,
        Statement("numpy", "\n    ".join(["def f(x):", *lines])),
        Statement("chunks", f"# {seed}"),
    ]


def against_numpy(program: list[Statement]) -> Outcome:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _row(program[0]) if len(program) == 1 else _function(program)


def _row(statement: Statement) -> Outcome:
    _, _, at, _, name, *_, seed = statement.text.replace(",", "").split()
    if int(at) < 0:
        return Outcome([], [])
    prim, rng = TABLE[name], random.Random(int(seed))
    sample = every_sample(prim)[int(at)]
    kind = checking.KINDS["Dask"]
    positions = checking.positions(sample, kind)
    if not positions:
        return Outcome([], [])
    operands = rng.choice(positions)
    make = kind.makes[0] if name in SIGNS else functools.partial(_cut, rng)
    outcome = checking.check(prim, sample, kind, operands, make)
    if outcome.result == "refuses" or (outcome.result == "defect" and "compute_chunk_sizes" in outcome.said):
        return Outcome([], [statement])
    if outcome.result == "defect":
        what = f"{outcome.stage}: {sample} with {operands}: {outcome.said}"
        return Outcome([], [], Failure(name, statement.text, what))
    return Outcome([statement], [])


def _cut(rng: random.Random, x: Any) -> Any:
    import dask.array as da

    return da.from_array(x, chunks=cuts(x.shape, rng))


def _function(program: list[Statement]) -> Outcome:
    env: dict[str, Any] = {"np": np}
    for statement in program:
        exec(statement.text, env)
    if "f" not in env:
        return Outcome([], [])
    rng = random.Random(program[-1].text)
    try:
        wanted = cr.value_and_grad(env["f"])(env["x"])
    except Exception:  # tested by the other modes
        return Outcome([], [])
    lazy = _cut(rng, env["x"])
    about = f"{program[-2].text}\n# in chunks {lazy.chunks}"
    try:
        with checking.KINDS["Dask"].guard():
            got = cr.value_and_grad(env["f"])(lazy)
        found = list(_computed(got))
    except Exception as error:
        if any(words in str(error) for words in CLEAR):
            return Outcome([], [Statement("numpy", "")])
        return Outcome([], [], Failure("numpy", about, f"{type(error).__name__}: {error}"))
    for what, a, b in zip(("value", "gradient"), found, wanted, strict=True):
        b = np.asarray(b)
        if a.dtype != b.dtype or a.shape != b.shape or not close(a, b, 1e-9):
            return Outcome([], [], Failure("numpy", about, f"{what} {a.dtype}{a.tolist()} for {b.dtype}{b.tolist()}"))
    return Outcome([Statement("numpy", "")], [])


def _computed(results: Any) -> Iterator[Any]:
    for x in results:
        yield np.asarray(x.compute(scheduler="synchronous") if hasattr(x, "compute") else x)
