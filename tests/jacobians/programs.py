"""Random programs as functions of several inputs with several results, from the generators of ``tests.fuzz``."""

import random

import numpy as np

import chainrule as cr
from tests.fuzz.making import PURE, SHAPES, Maker, NumpyMaker, Rejected, Statement, count, kind_of, largest, literal

TORCH = [*PURE, "transformation"]


class Program:
    """A program's text, its function, and the point where it was generated."""

    def __init__(self, text, function, xs, numbers):
        self.text, self.function, self.xs, self.numbers = text, function, xs, numbers

    def __call__(self, *xs):
        with np.errstate(all="ignore"):
            return self.function(*xs, *self.numbers)


def torch_program(seed):
    """Return a program of tensors, with in-place writes, views, and transformations."""
    rng = random.Random(seed)
    maker = Maker(cr, rng)
    return _made(rng, maker, lambda **given: Maker(cr, rng, maker, TORCH, **given), "torch.tensor({}, dtype=torch.{})")


def numpy_program(seed):
    """Return a program of NumPy functions."""
    rng = random.Random(seed)
    maker = NumpyMaker(None, rng)
    maker.env["np"] = np
    return _made(rng, maker, lambda **given: NumpyMaker(None, rng, maker, **given), "np.array({}, dtype='{}')")


def _made(rng, maker, inside, how):
    names = ["x", "y"][: rng.choice([1, 1, 2])]
    for name, shape in zip(names, rng.choices(SHAPES[1:], k=2)):
        values = literal(rng, shape, lambda: round(rng.uniform(-1.2, 1.2), 4))
        maker.attempt("input", how.format(values, "float64"), name)
    maker.attempt("input", how.format(literal(rng, rng.choice(SHAPES[1:]), lambda: rng.randrange(3)), "int64"), "i")
    arguments = {name: maker.env[name] for name in [*names, "i"]}
    inner, ends = None, []
    while not ends:
        inner = inside(**arguments)
        inner.names = [*names * 2, "i"]
        length = rng.randint(2, 16)
        for _ in range(3 * length):
            if len(inner.statements) >= length:
                break
            inner.step()
        ends = [n for n in inner.names if n in inner.own and _is_end(inner, n)]
    kept = rng.sample(ends, min(len(ends), rng.randint(1, 3)))
    body = "\n".join(s.text for s in inner.statements).split("\n")
    lines = [f"def f({', '.join(arguments)}):", *body, f"return [{', '.join(kept)}]"]
    text = Statement("function", "\n    ".join(lines)).text
    exec(text, maker.env)
    given = "\n".join(s.text for s in maker.statements)
    xs = [np.asarray(maker.env[name]) for name in names]
    return Program(f"{given}\n{text}", maker.env["f"], xs, [maker.env["i"]])


def _is_end(inner, name):
    value = inner.env[name]
    try:
        return kind_of(value) in "fc" and largest(value) < 1e3 and count(value) <= 40
    except (Rejected, RuntimeError):
        return False
