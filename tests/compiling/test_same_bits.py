"""Compiled equals eager, bit for bit: every row of the table, on its samples."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np

import chainrule as cr
import chainrule.table
from chainrule.rows.primitive import TABLE
from chainrule.testing.rulecheck import every_sample

try:
    from .comparing import compare
except ImportError:
    from comparing import compare

for module in pkgutil.iter_modules(chainrule.table.__path__):
    importlib.import_module(f"chainrule.table.{module.name}")

func = cr.func


def weights(outs, seed):
    rng = np.random.default_rng(seed)
    several = isinstance(outs, tuple)

    def one(o):
        w = rng.normal(size=tuple(o.shape))
        if o.dtype.kind == "c":
            w = w + 1j * rng.normal(size=tuple(o.shape))
        return cr.tensor(np.asarray(w, o.dtype))

    return tuple([one(o) for o in outs]) if several else one(outs)


def forms(row, sample):
    """Functions of a row's operands, by name."""
    call = row.function if row.function is not None and not row.parameters else row

    def f(*xs):
        return call(*xs, **sample.params)

    at = sample.floating if row.differentiable else ()
    from chainrule.rows.primitive import unsupported

    at = tuple(
        i
        for i in at
        if not isinstance(row.vjps.get(row.operands[min(i, len(row.operands) - 1)].lstrip("*")), unsupported)
    )

    def only(xs):
        def g(*some):
            ys = list(xs)
            for i, x in zip(at, some):
                ys[i] = x
            return f(*ys)

        return g, [xs[i] for i in at]

    def gradient(*xs):
        g, some = only(xs)
        out, pull = func.vjp(g, *some)
        return out, pull(weights(out, 1))

    def tangent(*xs):
        g, some = only(xs)
        return func.jvp(g, tuple(some), tuple(weights(tuple(some), 2)))

    def second(*xs):
        g, some = only(xs)

        def grads(*some):
            out, pull = func.vjp(g, *some)
            return pull(weights(out, 1))

        return func.jvp(grads, tuple(some), tuple(weights(tuple(some), 3)))

    def second_reverse(*xs):
        g, some = only(xs)

        def grads(*some):
            out, pull = func.vjp(g, *some)
            return pull(weights(out, 1))

        out, pull = func.vjp(grads, *some)
        return pull(weights(out, 3))

    found = {"forward": f}
    if at:
        found |= {"gradient": gradient, "jvp": tangent, "hvp": second, "grad of grad": second_reverse}
    return found


def operands(sample, seed, dtype):
    return tuple(
        cr.tensor(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else x for x in sample.draw(seed, dtype)
    )


def batched(f, sample):
    def run(*xs):
        dims = tuple(0 if i in sample.arrays else None for i in range(len(xs)))
        return func.vmap(f, in_dims=dims)(*xs)

    return run


def cases(name, everything=False):
    row = TABLE[name]
    for sample in every_sample(row):
        for what in forms(row, sample):
            for dtype in ("float32", "float64"):
                yield what, sample, dtype
                if what in ("forward", "gradient"):
                    yield "vmap " + what, sample, dtype


def check(name, what, sample, dtype):
    row = TABLE[name]
    found = forms(row, sample)
    if what.startswith("vmap "):
        f = batched(found[what[5:]], sample)

        def make(seed):
            draws = [sample.draw(seed + k, dtype) for k in range(3)]
            return tuple(
                cr.tensor(np.stack(column)) if i in sample.arrays else column[0] for i, column in enumerate(zip(*draws))
            )
    else:
        f = found[what]

        def make(seed):
            return operands(sample, seed, dtype)

    return compare(f, make(0), make(1))
