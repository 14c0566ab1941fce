"""Operations on the values of jvp and vmap in C (``native/levels.c``) have the effects of those in Python, for the whole op table.

A primitive is applied inside of nested transformations, once with C and once with Python. Both runs must give the same bits, layouts,
graphs, warnings with their lines, and errors.
"""

from __future__ import annotations

import sys
import warnings
import zlib
from dataclasses import replace

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.tensor import Tensor
from chainrule.testing.samples import samples_of, with_numbers

pytestmark = pytest.mark.skipif(LOOPS is None, reason="the extension is not there")
func = cr.func


def digest(x):
    """Return everything that a caller can observe of a value."""
    if isinstance(x, (tuple, list)):
        return [digest(part) for part in x]
    if isinstance(x, Tensor):
        return ("tensor", digest(x._raw), graph(x._edge))
    if type(x) is Dual:
        return ("dual", digest(x.primal), digest(x.tangent), x.shape, x.dtype)
    if type(x) is Batched:
        return ("batched", digest(x.payload), x.shared, x.shape, x.dtype)
    if isinstance(x, np.ndarray):
        bits = np.where(np.isnan(x), np.nan, x) if x.dtype.kind in "fc" else x
        return (x.shape, x.dtype.str, x.strides if x.size else (), x.flags.writeable, zlib.crc32(bits.tobytes()))
    return (type(x), repr(x))


def graph(edge, depth=4):
    """Return the nodes that lead to an edge: names, shapes of operands, saved values and source locations."""
    prim = getattr(edge, "prim", None)
    if prim is None or depth == 0:
        return type(edge).__name__
    saved = [digest(value) for value in edge.saved]
    below = [graph(e, depth - 1) for e in edge.edges]
    return (edge.name(), edge.in_avals, saved, edge.code is None or edge.code.co_name, edge.lasti, below)


def observed(function):
    """Return the result, the warnings and the error of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = digest(function())
        except Exception as error:
            result = (type(error), str(error))
    # C sums cotangents without the frame that has the node: these warnings have the line of the backward pass
    lines = [0 if "encountered in add" in str(w.message) else w.lineno for w in caught]
    return result, [(str(w.message), w.filename, line) for w, line in zip(caught, lines, strict=True)]


def in_python(function):
    before = LOOPS.switch_on(False)
    try:
        return observed(function)
    finally:
        LOOPS.switch_on(before)


def applied(prim, operands, params, inner, seen):
    """Return a function of the differentiable operands that applies a primitive, and a list of all values that it makes."""

    def call(*args):
        rest = iter(args)
        full = [next(rest) if i in inner else x for i, x in enumerate(operands)]
        out = prim(*full, **params)
        seen.append(digest(out))
        return out

    return call


def total(outputs):
    parts = outputs if isinstance(outputs, tuple) else (outputs,)
    parts = [p for p in parts if isinstance(p, (Tensor, cr.Array)) and p.dtype.kind in "fc"]
    return sum(((abs(p) if p.dtype.kind == "c" else p) ** 2).sum() for p in parts)


def compositions(f, xs, vs):
    """Nested transformations of a function of the operands, whose values are at one, two or three levels."""
    grads = func.grad(lambda *args: total(f(*args)), argnums=tuple(range(len(xs))))
    stacked = [cr.stack([x, x + 0.125 * v, x]) for x, v in zip(xs, vs, strict=True)]
    mapped = (0, *(None,) * (len(xs) - 1))
    yield "jvp", lambda: func.jvp(f, xs, vs)
    yield "jvp of the first", lambda: func.jvp(lambda x: f(x, *xs[1:]), xs[:1], vs[:1])
    yield "jvp of the last", lambda: func.jvp(lambda x: f(*xs[:-1], x), xs[-1:], vs[-1:])
    yield "vmap", lambda: func.vmap(f)(*stacked)
    yield "vmap of the first", lambda: func.vmap(f, in_dims=mapped)(stacked[0], *xs[1:])
    yield "hvp", lambda: func.jvp(grads, xs, vs)
    yield "vmap of grad", lambda: func.vmap(grads)(*stacked)
    yield "vmap of the first of grad", lambda: func.vmap(grads, in_dims=mapped)(stacked[0], *xs[1:])
    yield "jvp of vmap", lambda: func.jvp(func.vmap(f), tuple(stacked), tuple(stacked))
    yield "vmap of jvp", lambda: func.vmap(lambda *args: func.jvp(f, args, args))(*stacked)
    yield "vmap of vmap", lambda: func.vmap(func.vmap(f))(*[cr.stack([s, s]) for s in stacked])
    yield "jvp of jvp", lambda: func.jvp(lambda *args: func.jvp(f, args, vs)[1], xs, vs)
    yield "hessian", lambda: func.hessian(lambda x: total(f(x, *xs[1:])))(xs[0])
    yield "gradient of jvp", lambda: func.grad(lambda x: total(func.jvp(f, (x, *xs[1:]), vs)[1]))(xs[0])


def check(prim, sample, dtype, special=False):
    operands = list(sample.draw(0, np.float64 if dtype.kind == "c" else dtype))
    inner = [i for i in sample.floating if isinstance(operands[i], np.ndarray) and operands[i].dtype == dtype]
    if not inner:
        return 0
    if special:
        values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e-30, 1.0], dtype)
        for i in inner:
            operands[i] = np.resize(np.roll(values, i), operands[i].shape).astype(dtype)
    xs = tuple(cr.tensor(operands[i]) for i in inner)
    vs = tuple(cr.tensor(np.cos(np.arange(x._raw.size)).reshape(x._raw.shape).astype(dtype)) for x in xs)
    count = 0
    names = [name for name, _ in compositions(lambda *args: args[0], xs, vs)]
    for at, name in enumerate(names):
        found = []
        for run in (in_python, observed, observed):
            seen = []
            f = applied(prim, operands, dict(sample.params), inner, seen)
            chosen = [function for _, function in compositions(f, xs, vs)][at]
            found.append((run(chosen), seen))
        assert found[0] == found[1] == found[2], f"{prim.name}{sample} {dtype} inside {name}"
        count += 1
    return count


NAMES = sorted(name for name, prim in TABLE.items() if prim.kind != "function")


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("name", NAMES)
def test_primitives(name, every):
    prim = TABLE[name]
    samples = [*samples_of(prim), *with_numbers(prim)]
    for sample in samples if every else samples[2:3] + samples[-2:]:
        check(prim, sample, np.dtype(np.float32))
    if "c" in prim.accepts:
        mixed = [s for s in samples if s.may_be_complex and s.floating]
        for sample in mixed if every else mixed[:1]:
            check(prim, replace(sample, complex=True), np.dtype(np.complex128))


@pytest.mark.parametrize("name", [n for n in NAMES if TABLE[n].kind in ("elementwise", "linear", "contraction")])
def test_special_numbers(name):
    """Infinities, NaNs, overflows and signed zeros: the same warnings at the same lines."""
    prim = TABLE[name]
    for sample in samples_of(prim)[1:3]:
        check(prim, sample, np.dtype(np.float64), special=True)


def test_the_fast_path_is_used():
    """Operations inside of jvp, vmap and their compositions do not call the Python handlers."""
    called = []

    def profile(frame, event, arg):
        if event == "call" and frame.f_code.co_name in ("_handle", "general", "record", "array_ufunc", "unbroadcast"):
            called.append(frame.f_code.co_name)

    x = cr.tensor([[0.3, 1.2], [-0.4, 0.7]])
    w = cr.tensor([[1.0, -0.5], [0.25, 2.0]])

    def loss(w, x):
        h = cr.tanh(x @ w)
        return ((h * 2.0 - h / 3 + 1) ** 2).mean()

    gradient = func.grad(loss)
    runs = [lambda: func.jvp(lambda w: gradient(w, x), (w,), (w,)), lambda: func.vmap(gradient, (None, 0))(w, x)]
    for run in runs:
        for _ in range(3):
            run()
        sys.setprofile(profile)
        try:
            run()
        finally:
            sys.setprofile(None)
        assert called == []


def test_a_value_that_escaped_raises_in_both():
    kept = []
    x = cr.tensor([1.0, 2.0])
    func.vmap(lambda a: kept.append(a) or a)(x)
    found = [run(lambda: kept[0] * 2) for run in (in_python, observed)]
    assert found[0] == found[1] and found[0][0][0] is not tuple
