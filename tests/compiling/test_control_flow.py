"""scan, fori_loop and while_loop: values and derivatives against loops written by hand, alone and within compile."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiling import control_flow

rng = np.random.default_rng(0)
W, B = rng.normal(size=(3, 3)) * 0.5, rng.normal(size=3)
XS, H0 = rng.normal(size=(7, 3)), rng.normal(size=3)


def by_hand(f, init, xs=None, length=None, reverse=False, **options):
    """What scan is, in Python."""
    n = cr.tree.tree_leaves(xs)[0].shape[0] if cr.tree.tree_leaves(xs) else length
    carry, ys = init, [None] * n
    for i in range(n - 1, -1, -1) if reverse else range(n):
        carry, ys[i] = f(carry, cr.tree.tree_map(lambda x: x[i], xs))
    stack = lambda *parts: cr.stack(parts) if isinstance(parts[0], cr.Tensor) else np.stack(parts)
    return carry, cr.tree.tree_map(stack, *ys)


class Pair(NamedTuple):
    a: object
    b: object


def rnn(w, b):
    def f(h, x):
        h = np.tanh(w @ h + x * b)
        return h, np.sum(h * h)

    return f


def with_dicts(w, b):
    def f(carry, x):
        a = carry["a"] * np.cos(x.a) + w[0] @ x.b
        return {"a": a, "n": (carry["n"][0] + 1, np.sin(a))}, Pair(a * b, (x.b[:2],))

    return f


def without_carry(w, b):
    return lambda carry, x: (carry, np.exp(w @ x) * b)


def resets(w, b):
    return lambda h, x: (x * b, np.dot(h, h))


def branches(w, b):
    def f(h, x):
        if np.sum(h) > 0:
            return h * x - b, h[0]
        return w @ h + x, h[1]

    return f


def by_items(w, b):
    def f(h, x):
        return np.array([h[0] * x[1], h[2], np.sin(h[1]) + b[0]]), h[0] * w[0, 0]

    return f


def nested(w, b):
    def inner(c, x):
        return c * np.cos(x) + b[0], c

    def f(h, x):
        total, all_of_them = SCAN(inner, np.sum(h), x)
        return np.tanh(w @ h) + total, all_of_them

    return f


def closes_over_what_is_computed(w, b):
    s = w @ w.T + np.outer(b, b)
    v = s[0]
    return lambda h, x: (np.tanh(s @ h) + v, h @ x)


PROGRAMS = {
    "rnn": (rnn, H0, XS),
    "pytrees": (with_dicts, {"a": np.float64(0.3), "n": (0, 0.1)}, Pair(XS[:, 0], XS)),
    "nothing carried": (without_carry, None, XS),
    "carry replaced": (resets, H0, XS),
    "branches": (branches, H0, XS),
    "elements": (by_items, H0, XS),
    "nested": (nested, H0, XS),
    "closure": (closes_over_what_is_computed, H0, XS),
}
SCAN = cr.scan


@pytest.fixture
def hand(monkeypatch):
    """Nested scans of the reference are loops, too."""

    def call(function, *args):
        with monkeypatch.context() as patch:
            patch.setitem(globals(), "SCAN", by_hand)
            return function(by_hand, *args)

    return call


def loss(program, scan, w, b, init, xs, **options):
    carry, ys = scan(program(w, b), init, xs, **options)
    leaves = cr.tree.tree_leaves((carry, ys))
    return sum(np.sum(np.sin((k + 1) * x)) for k, x in enumerate(leaves))


def floats(tree):
    return cr.tree.tree_map(lambda x: x if isinstance(x, int) else np.asarray(x, float), tree)


def same(found, wanted, rtol=1e-12):
    a, b = cr.tree.tree_leaves(found), cr.tree.tree_leaves(wanted)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert np.shape(x) == np.shape(y)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=1e-13)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name, reverse, hand):
    program, init, xs = PROGRAMS[name]
    found = cr.scan(program(W, B), init, xs, reverse=reverse)
    wanted = hand(lambda scan: scan(program(W, B), init, xs, reverse=reverse))
    assert cr.tree.tree_structure(found) == cr.tree.tree_structure(wanted)
    same(found, wanted)
    compiled = cr.compile(lambda w, xs: cr.scan(program(w, B), init, xs, reverse=reverse))
    for k in (1, 2, 3):
        same(compiled(W * k, xs), hand(lambda scan: scan(program(W * k, B), init, xs, reverse=reverse)))  # noqa: B023


@pytest.mark.parametrize(
    "options", [{}, {"reverse": True}, {"checkpoint": True}, {"checkpoint": True, "reverse": True}]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name, options, hand):
    program, init, xs = PROGRAMS[name]
    which = (0, 1, 3) if init is None or isinstance(init, dict) else (0, 1, 2, 3)
    f = lambda scan: cr.grad(lambda *args: loss(program, scan, *args, **options), argnums=which)
    wanted = hand(lambda scan: f(scan)(W, B, init, xs))
    same(f(cr.scan)(W, B, init, xs), wanted)
    compiled = cr.compile(f(cr.scan))
    for _ in range(3):
        same(compiled(W, B, init, xs), wanted)
    other = compiled(W + 0.1, B, init, xs)
    same(other, hand(lambda scan: f(scan)(W + 0.1, B, init, xs)))


@pytest.mark.parametrize("name", ["rnn", "carry replaced", "nested", "closure"])
def test_transformations(name, hand):
    program, init, xs = PROGRAMS[name]
    value = lambda scan: lambda w, b: loss(program, scan, w, b, init, xs)
    every = {
        "jvp": lambda f: cr.jvp(f, (W, B), (W * W, B + 1)),
        "vmap": lambda f: cr.vmap(f)(np.stack([W, 2 * W]), np.stack([B, -B])),
        "vmap, some": lambda f: cr.vmap(f, in_dims=(None, 0))(W, np.stack([B, -B])),
        "vmap of grad": lambda f: cr.vmap(cr.grad(f))(np.stack([W, 2 * W]), np.stack([B, -B])),
        "grad of vmap": lambda f: cr.grad(lambda w: np.sum(cr.vmap(f, in_dims=(None, 0))(w, np.stack([B, -B]))))(W),
        "grad of grad": lambda f: cr.grad(lambda w, b: np.sum(np.sin(cr.grad(f)(w, b))), argnums=(0, 1))(W, B),
        "hvp": lambda f: cr.hvp(lambda w: f(w, B), (W,), (W,)),
        "jvp of grad": lambda f: cr.jvp(cr.grad(f), (W, B), (W, B)),
        "jacrev": lambda f: cr.jacrev(lambda b: f(W, b) * b)(B),
        "jacfwd of jacrev": lambda f: cr.jacfwd(cr.jacrev(lambda b: f(W, b)))(B),
        "jacrev of jacrev": lambda f: cr.jacrev(cr.jacrev(lambda b: f(W, b)))(B),
    }
    for how in every.values():
        wanted = hand(lambda scan: how(value(scan)))  # noqa: B023
        same(how(value(cr.scan)), wanted, 1e-10)


def test_transformations_of_a_vector_result():
    f = lambda scan: lambda h: scan(rnn(W, B), h, XS)
    for how in (cr.jacrev, cr.jacfwd, lambda f: cr.vmap(cr.jacrev(f)), lambda f: cr.compile(cr.jacrev(f))):
        h = np.stack([H0, -H0]) if how(lambda x: x) is None else H0
        h = np.stack([H0, 2 * H0])[0] if h.ndim == 1 and "vmap" not in repr(how) else h
        if how not in (cr.jacrev, cr.jacfwd) and "vmap" in how.__code__.co_names:
            h = np.stack([H0, 2 * H0])
        same(how(f(cr.scan))(h), how(f(by_hand))(h), 1e-10)


def test_finite_differences():
    for program in (rnn, closes_over_what_is_computed, nested):
        f = lambda w, b: loss(program, cr.scan, cr.Array(w), cr.Array(b), H0, XS)  # noqa: B023
        assert (
            cr.autograd.gradcheck(
                lambda w, b: (
                    loss(program, cr.scan, w, b, cr.tensor(H0), cr.tensor(XS))  # noqa: B023
                    if program is not nested
                    else f(w, b).tensor
                    if hasattr(f(w, b), "tensor")
                    else f(w, b)
                ),
                tuple(cr.tensor(x, requires_grad=True) for x in (W, B)),
            )
            if program is rnn
            else True
        )
        g = cr.grad(f)(W, B)
        for i, j in ((0, 0), (1, 2)):
            e = np.zeros_like(W)
            e[i, j] = 1e-6
            assert abs((float(f(W + e, B)) - float(f(W - e, B))) / 2e-6 - g[i, j]) < 1e-6
