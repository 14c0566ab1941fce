"""scan, fori_loop and while_loop: values and derivatives compared with Python loops, alone and within compile."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.compiling import body_cache, control_flow, scan_lowering
from chainrule._src.native import AVAILABLE

rng = np.random.default_rng(0)
W, B = rng.normal(size=(3, 3)) * 0.5, rng.normal(size=3)
XS, H0 = rng.normal(size=(7, 3)), rng.normal(size=3)


def by_hand(f, init, xs=None, length=None, reverse=False, **options):
    """Compute scan in Python."""
    n = cr.tree.tree_leaves(xs)[0].shape[0] if cr.tree.tree_leaves(xs) else length
    carry, ys = init, [None] * n
    for i in range(n - 1, -1, -1) if reverse else range(n):
        carry, ys[i] = f(carry, cr.tree.tree_map(lambda x, i=i: x[i], xs))
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
    """Make nested scans of the reference loops, too."""

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
        same(compiled(W * k, xs), hand(lambda scan, k=k: scan(program(W * k, B), init, xs, reverse=reverse)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reverse": True},
        {"checkpoint": True},
        {"checkpoint": True, "reverse": True},
        {"length": 7, "unroll": 3},
    ],
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
    assert compiled.recordings
    other = compiled(W + 0.1, B, init, xs)
    same(other, hand(lambda scan: f(scan)(W + 0.1, B, init, xs)))


def rectangles(w, b):
    """Fixed arrays and slices in other layouts; a carried array that is a view; a discarded one."""

    def f(carry, x):
        a, big, k = carry
        m = np.outer(a, x).T
        return (m[0] * x + big[1], big.T[::-1].T * 0.5 + m, k + 1), (m[:, ::2], a, np.exp(w).T @ x, m[1].sum())

    return f


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "name", ["rnn", "carry replaced", "nested", "closure", "nothing carried", "rectangles", "elements"]
)
def test_native_loops_give_the_bits_of_plans_called_by_python(name, reverse, monkeypatch):
    program, init, xs = {**PROGRAMS, "rectangles": (rectangles, (H0, np.outer(H0, H0).T, 3), XS[:, ::-1])}[name]

    def results(compiled):
        f = cr.value_and_grad(lambda w, b: loss(program, cr.scan, w, b, init, xs, reverse=reverse), (0, 1))
        call = cr.compile(f) if compiled else f
        found = [cr.tree.tree_leaves(call(W, B)) for _ in range(2)]
        return [x.tobytes() for leaves in found for x in map(np.asarray, leaves)], call

    native, _ = results(False)
    within, call = results(True)
    if AVAILABLE:
        assert call.plan(W, B).executor == "native"
    monkeypatch.setattr(scan_lowering, "AVAILABLE", False)
    assert native == within == results(False)[0]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_loops_in_loops_have_the_bits_of_eager_when_compiled(checkpoint):
    """The recording around both contains the variables that the inner one closes over."""

    def f(w, xs):
        step = lambda h, x: (np.tanh(h + w @ x), w * h[0])
        outer = lambda h, x: (cr.scan(step, h, xs)[0] * x, h)
        first = cr.scan(step, H0, xs, checkpoint=checkpoint)
        return sum(np.sum(np.sin(x)) for x in (*first, *cr.scan(outer, H0, xs)))

    f = cr.value_and_grad(f, (0, 1))
    compiled = cr.compile(f)
    for k in (1, 2):
        for found, wanted in zip(
            cr.tree.tree_leaves(compiled(W * k, XS)), cr.tree.tree_leaves(f(W * k, XS)), strict=True
        ):
            assert np.array_equal(found, wanted)
    assert not AVAILABLE or compiled.plan(W, XS).executor == "native"


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
        "hvp": lambda f: cr.func.hvp(lambda w: f(w, B), (W,), (W,)),
        "jvp of grad": lambda f: cr.jvp(cr.grad(f), (W, B), (W, B)),
        "jacrev": lambda f: cr.func.jacrev(lambda b: f(W, b) * b)(B),
        "jacfwd of jacrev": lambda f: cr.jacfwd(cr.func.jacrev(lambda b: f(W, b)))(B),
        "jacrev of jacrev": lambda f: cr.func.jacrev(cr.func.jacrev(lambda b: f(W, b)))(B),
    }
    for how in every.values():
        wanted = hand(lambda scan, how=how: how(value(scan)))
        same(how(value(cr.scan)), wanted, 1e-10)


TAKERS = {
    "jacrev": lambda f: cr.func.jacrev(f)(H0),
    "jacfwd": lambda f: cr.func.jacfwd(f)(H0),
    "vmap of jacrev": lambda f: cr.vmap(cr.func.jacrev(f))(np.stack([H0, 2 * H0])),
    "compiled jacrev": lambda f: cr.compile(cr.func.jacrev(f))(H0),
    "jacobian": lambda f: cr.jacobian(f, H0, layout="dense"),
}


@pytest.mark.parametrize("name", TAKERS)
def test_jacobians(name):
    f = lambda scan: lambda h: scan(rnn(W, B), h, XS)[0]
    same(TAKERS[name](f(cr.scan)), TAKERS[name](f(by_hand)), 1e-10)


@pytest.mark.parametrize("program", [rnn, closes_over_what_is_computed, nested])
def test_finite_differences(program):
    f = lambda w: float(loss(program, cr.scan, w, B, H0, XS))
    gradient = cr.grad(lambda w: loss(program, cr.scan, w, B, H0, XS))(W)
    for i, j in ((0, 0), (0, 1)):
        e = np.zeros_like(W)
        e[i, j] = 1e-6
        assert abs((f(W + e) - f(W - e)) / 2e-6 - gradient[i, j]) < 1e-4 * max(1, abs(gradient[i, j]))


# -- tensors, and modules ----------------------------------------------------------------------------------------------


def lstm(cell, xs, scan=cr.scan):
    def step(state, x):
        h, c = cell(x, state)
        return (h, c), h

    return scan(step, (cr.zeros(4, 3), cr.zeros(4, 3)), xs)[1]


def test_modules_are_trained_through_a_scan():
    cell = cr.nn.LSTMCell(2, 3)
    xs = cr.tensor(rng.normal(size=(6, 4, 2)), dtype=cr.float32)

    def gradients(call):
        cell.zero_grad()
        y = call()
        return [y.detach(), *[p.grad.clone() for p in cell.parameters()]]

    def step(scan):
        y = lstm(cell, xs, scan).pow(2).sum()
        y.backward()
        return y

    wanted = gradients(lambda: step(by_hand))
    compiled = cr.compile(step)
    for call in (lambda: step(cr.scan), lambda: compiled(cr.scan), lambda: compiled(cr.scan)):
        for a, b in zip(gradients(call), wanted, strict=True):
            assert cr.allclose(a, b, rtol=1e-5)
    assert compiled.recordings


def test_one_node():
    """A loop of any length has one node in the graph, and one call in each direction in a recording."""
    x = cr.tensor(H0, requires_grad=True)
    f = lambda x, xs: cr.scan(rnn(W, B), x, xs)[0].sum()
    for xs in (XS, np.concatenate([XS] * 9)):
        (node, _), *_ = f(x, cr.tensor(xs)).grad_fn.next_functions
        assert node.name() == "ScanBackward" and {type(n).__name__ for n, _ in node.next_functions if n} == {
            "AccumulateGrad"
        }
    compiled = cr.compile(cr.grad(lambda x, xs: np.sum(cr.scan(rnn(W, B), x, xs)[0])))
    compiled(H0, XS)
    compiled(H0, np.concatenate([XS] * 9))
    short, long = compiled.recordings
    assert len(short.calls) == len(long.calls) < 12


def test_numbers_take_the_dtype_of_the_body():
    total, _ = cr.scan(lambda c, x: (c + x, None), 0, XS[:, 0].astype(np.float32))
    assert total.dtype == np.float32
    total, ys = cr.scan(lambda c, x: (c + x, (c, 1, None)), 0.0, cr.tensor([1.0, 2.0]))
    assert isinstance(total, cr.Tensor) and ys[0].tolist() == [0, 1] and np.asarray(ys[1]).tolist() == [1, 1]
    assert cr.scan(lambda c, x: (c * x, c), 1 + 0j, np.array([1j, 2.0]))[0] == 2j


@pytest.mark.parametrize("make", [np.asarray, cr.tensor])
def test_no_iterations(make):
    carry, ys = cr.scan(lambda c, x: (c + x.sum(), {"y": x * c}), make(np.ones(())), make(np.zeros((0, 2))))
    assert float(carry) == 1 and tuple(ys["y"].shape) == (0, 2) and type(ys["y"]) is type(make(1.0))
    assert cr.fori_loop(4, 2, lambda i, v: v + 1, 3.0) == 3
    gradient = cr.grad(lambda a: cr.scan(lambda c, x: (c * x, c), a, np.zeros(0))[0] * 3)(2.0)
    assert gradient == 3


def test_what_is_outside_is_left_as_it_is():
    """A body that writes is called; init and the carry of an earlier iteration are not written."""
    init, count = np.zeros(2), []

    def body(c, x):
        c[0] += x
        count.append(x)
        return c, c.copy()

    carry, ys = cr.scan(body, init, np.ones(3))
    assert init.tolist() == [0, 0] and carry.tolist() == [3, 0] and ys[:, 0].tolist() == [1, 2, 3] and len(count) == 3


def test_a_carried_number_needs_no_seed(monkeypatch):
    monkeypatch.setattr(cr.default_generator, "_state", None)
    compiled = cr.compile(lambda x: cr.scan(lambda c, x: (c * x + 1, None), 1, x)[0])
    assert compiled(H0) == by_hand(lambda c, x: (c * x + 1, c), 1, H0)[0] and compiled.plan(H0)


def test_random_numbers_are_those_of_a_loop():
    def draws(scan):
        cr.manual_seed(3)
        return scan(lambda c, x: (c + cr.rand(2) * x, None), cr.zeros(2), cr.ones(4))[0]

    assert cr.equal(draws(cr.scan), draws(lambda f, c, xs: (by_hand(lambda c, x: (f(c, x)[0], c), c, xs)[0],)))


ERRORS = {
    "no length": (lambda: cr.scan(lambda c, _: (c, c), 1.0), ValueError, "number of iterations as length="),
    "another length": (lambda: cr.scan(lambda c, _: (c, c), 1.0, XS, length=4), ValueError, "has 7 elements"),
    "lengths": (
        lambda: cr.scan(lambda c, _: (c, c), 1.0, {"a": XS, "b": H0}),
        ValueError,
        r"xs\['b'\] has 3 .* xs\['a'\] is 7",
    ),
    "no axis": (lambda: cr.scan(lambda c, _: (c, c), 1.0, (XS, 3.0)), ValueError, r"xs\[1\] has no axis"),
    "negative": (lambda: cr.scan(lambda c, _: (c, c), 1.0, length=-1), ValueError, "got -1"),
    "no pair": (lambda: cr.scan(lambda c, x: c + x, 1.0, H0), TypeError, "must return a pair"),
    "shape": (
        lambda: cr.scan(lambda c, x: ({"h": np.stack([c["h"], x])}, x), {"h": np.ones(())}, H0),
        TypeError,
        r"\['h'\] changes in the body, from float64\[\] to float64\[2\]",
    ),
    "dtype": (
        lambda: cr.scan(lambda c, x: (c + x, x), np.float32(1), H0),
        TypeError,
        "from float32.* to float64.*Begin with",
    ),
    "structure": (lambda: cr.scan(lambda c, x: ((c, x), x), 1.0, H0), TypeError, r"structure .* from \* to \(\*, \*\)"),
    "text": (
        lambda: cr.scan(lambda c, x: (c, x), "a", H0),
        TypeError,
        "must be an array, a tensor or a number, got str",
    ),
    "no function": (lambda: cr.scan(3, 1.0, H0), TypeError, "takes a function"),
    "bounds": (lambda: cr.fori_loop(0, 2.5, lambda i, v: v, 1.0), TypeError, "upper must be an integer"),
    "value": (
        lambda: cr.fori_loop(0, 2, lambda i, v: v[:1], H0),
        TypeError,
        r"fori_loop: the value changes .* float64\[1\]",
    ),
    "condition": (lambda: cr.while_loop(lambda v: v < 1, lambda v: v + 1, H0), TypeError, "one boolean"),
    "while": (
        lambda: cr.while_loop(lambda v: True, lambda v: (v, v), 1.0),
        TypeError,
        "while_loop: the value changes its structure",
    ),
    "the body's own": (lambda: cr.scan(lambda c, x: (c @ x, x), H0, np.ones((3, 4))), ValueError, "matmul"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, kind, text = ERRORS[name]
    for each in (call, cr.compile(call)):
        with pytest.raises(kind, match=text), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            each()


def test_a_failing_body_leaves_what_it_uses_alone():
    w = cr.tensor(W, requires_grad=True)

    def body(h, x):
        h = w @ h
        raise ArithmeticError("no")

    for call in (
        lambda: cr.scan(body, cr.tensor(H0), length=3),
        cr.compile(lambda: cr.scan(body, cr.tensor(H0), length=3)),
    ):
        with pytest.raises(ArithmeticError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
        assert type(w._raw) is np.ndarray and w.is_leaf and w.requires_grad


# -- the other loops ---------------------------------------------------------------------------------------------------


def test_fori_loop():
    f = lambda xs: cr.fori_loop(0, 3, lambda i, v: v * xs[i] + i, 1.0)
    g = lambda xs: ((1.0 * xs[0] + 0) * xs[1] + 1) * xs[2] + 2
    x = np.array([2.0, 3.0, 4.0])
    assert f(x) == g(x)
    for call in (cr.grad(f), cr.compile(cr.grad(f)), cr.func.jacfwd(f)):
        same(call(x), cr.grad(g)(x))
    assert cr.fori_loop(0, 3, lambda i, v: v * x[i] + i, 1.0, unroll=2) == g(x)
    assert cr.fori_loop(cr.tensor(0), np.int64(4), lambda i, v: v + i, cr.tensor(1.0)).item() == 7


def root(a):
    return cr.while_loop(lambda x: np.abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, 1.0)


def test_while_loop():
    a = np.array([2.0, 3.0, 100.0])
    assert abs(root(2.0) - np.sqrt(2)) < 1e-12
    same(cr.vmap(root)(a), np.sqrt(a), 1e-12)
    same(cr.jvp(root, (2.0,), (1.0,))[1], 0.5 / np.sqrt(2), 1e-7)
    same(cr.jvp(cr.vmap(root), (a,), (np.ones(3),))[1], 0.5 / np.sqrt(a), 1e-6)
    compiled = cr.compile(root)
    assert [float(compiled(x)) for x in (2.0, 100.0, 2.0)] == [float(root(x)) for x in (2.0, 100.0, 2.0)]


def test_while_loop_has_no_reverse_mode():
    with pytest.raises(RuntimeError, match="while_loop: a backward pass"):
        cr.grad(root)(2.0)
    y = cr.while_loop(lambda x: x < 10, lambda x: x * 2, cr.tensor(1.0, requires_grad=True))
    assert y.item() == 16 and y.requires_grad
    with pytest.raises(RuntimeError, match="while_loop: a backward pass"):
        y.backward()
    assert cr.grad(lambda x: cr.while_loop(lambda x: x < 0, lambda x: x, x) * 3)(2.0) == 3  # no body was recorded


def test_results_are_arrays_whatever_they_are_made_of():
    f = lambda c, x: (c * x, (np.ones(3), B, True, 2, x > 1, c))
    for call in (cr.scan, cr.compile(cr.scan), by_hand):
        carry, ys = call(f, np.ones(()), np.array([1.0, 2.0]))
        assert carry == 2 and (type(carry) is np.ndarray or call is by_hand)
        assert [y.shape for y in ys] == [(2, 3), (2, 3), (2,), (2,), (2,), (2,)]
        assert ys[4].tolist() == [False, True] and ys[1][1].tolist() == B.tolist()


def test_a_view_and_what_it_shows_are_used():
    w = cr.tensor(W, requires_grad=True)
    row = w[0]
    h = cr.scan(lambda h, x: (cr.tanh(w @ h + row * x), None), cr.tensor(H0), cr.tensor(XS[:, 0]))[0]
    found = cr.autograd.grad(h.sum(), (w, row))
    z = cr.tensor(H0)
    for x in XS[:, 0]:
        z = cr.tanh(w @ z + row * x)
    same(found, cr.autograd.grad(z.sum(), (w, row)))


def test_layouts_of_arguments():
    """Arrays in non-C order, and arguments that share memory, with a Python float."""
    f = lambda xs, k: cr.scan(lambda c, x: (c * np.cos(x[0]) + x[1][0], c), k, xs)[0]
    xs = (XS[:, 0], np.asfortranarray(XS))
    compiled = cr.compile(cr.grad(f))
    for k in (0.3, 0.3, 0.7):
        same(compiled(xs, k), cr.grad(f)((xs[0].copy(), XS), k))


# -- cached bodies ---------------------------------------------------------------------------------------------------------

FACTOR, TABLE = 2.0, {"k": 1.0}


def makers():
    """Return functions that create a body, by the state it depends on; each with two different arguments."""

    def helped(k):
        helper = lambda c: c * k
        return lambda c, x: (helper(c) + x, c)

    def default(k):
        def f(c, x, k=k):
            return c * k + x, c

        return f

    def held(k):
        box = {"k": k}
        return lambda c, x: (c * box["k"] + x, c)

    def tagged(k):
        w = cr.tensor(H0)
        w.tag = k
        return lambda c, x: (c * np.asarray(w) * w.tag + x, c)

    def several(pair):
        a, b = pair
        return lambda c, x: (c * a if a is b else c + b, x)

    def method(k):
        class Scale:
            def __call__(self, c, x):
                return c * k + x, c

        return Scale()

    a, b = H0 * 2, H0 * 3
    return {
        "array": (lambda k: lambda c, x: (c * k + x, c), (a, b)),
        "number": (lambda k: lambda c, x: (c * k + x, c), (2.0, 3.0)),
        "sign of a zero": (lambda k: lambda c, x: (np.copysign(c, k), c), (0.0, -0.0)),
        "type": (lambda k: lambda c, x: (c * k + x, c), (H0, cr.tensor(H0))),
        "shape": (lambda k: lambda c, x: (c * k[0] + x, c), (H0, XS)),
        "layout": (lambda k: lambda c, x: (c @ k + x, c), (W, W.T)),
        "helper": (helped, (a, b)),
        "number of a helper": (helped, (2.0, 3.0)),
        "default": (default, (a, 3.0)),
        "container": (held, (a, b)),
        "attribute": (tagged, (2.0, 3.0)),
        "one or two": (several, ((a, b), (a, a))),
        "object": (method, (a, b)),
        "global": (lambda k: TABLE.update(k=k) or (lambda c, x: (c * TABLE["k"] + x, c)), (2.0, 3.0)),
        "view": (lambda k: lambda c, x: (c * k + x, c), (W[0], W[1])),
        "tuple": (lambda k: lambda c, x: (c * k[0] + k[1], c), ((a, 2.0), (b, 3.0))),
    }


@pytest.mark.parametrize("name", makers())
def test_remembered_bodies_are_those_of_functions_that_do_the_same(name):
    make, (one, other) = makers()[name]
    for k in (one, other, one, other):
        wanted = by_hand(make(k), H0, XS)
        for found in (cr.scan(make(k), H0, XS), cr.scan(make(k), cr.tensor(H0), cr.tensor(XS))):
            same(found, wanted)


@pytest.mark.parametrize(
    ("f", "x", "error"),
    [
        (lambda c, x: (c * x, c), np.array([1.0, 1e200, 1e200]), FloatingPointError),
        (lambda c, x: (np.sqrt(c) * x, c), np.array([0.0, 1.0, 1.0]), FloatingPointError),
        (
            lambda c, x: (np.linalg.solve(np.eye(2) * c * x, np.ones(2))[0], c),
            np.array([1.0, 0.0, 1.0]),
            np.linalg.LinAlgError,
        ),
    ],
    ids=["forward", "backward", "singular"],
)
def test_what_goes_wrong_in_an_iteration_is_said_as_by_a_loop(f, x, error):
    calls = []
    for scan in (by_hand, cr.scan, cr.scan):
        for wrap in (lambda g: g, cr.compile):
            with np.errstate(all="raise"), pytest.raises(error) as raised:
                wrap(cr.grad(lambda c, scan=scan: scan(f, c, x)[0]))(np.array(1e200))
            calls.append(str(raised.value).split("\n")[0])
    assert len(set(calls)) == 1


def test_what_is_remembered(monkeypatch):
    recorded = []
    record = control_flow.record_body
    monkeypatch.setattr(control_flow, "record_body", lambda *args: recorded.append(1) or record(*args))
    body_cache._BODIES.clear()

    def f(w, scale, n=7, h=H0):
        double = lambda x: x * scale
        return np.sum(cr.scan(lambda h, x: (np.tanh(w @ h + double(x)), np.sum(h)), h, XS[:n])[1])

    for scale, n in ((2.0, 7), (2.0, 7), (2.0, 5)):
        for k in (1, 2):
            same(cr.grad(f)(W * k, scale, n), cr.grad(by_hand_sum)(W * k, scale, n))
    assert len(recorded) == 2  # without and with a backward pass
    with cr.no_grad():
        f(W, 2.0)
    f(W, 3.0)
    assert len(recorded) == 4

    def used_once():
        w = cr.tensor(W, requires_grad=True)
        cr.scan(lambda h, x: (cr.tanh(w @ h) + x, None), cr.tensor(H0), cr.tensor(XS))[0].sum().backward()
        return weakref.ref(w)

    seen = used_once()
    gc.collect()
    assert seen() is None


def by_hand_sum(w, scale, n):
    h, total = H0, 0.0
    for x in XS[:n]:
        total, h = total + np.sum(h), np.tanh(w @ h + x * scale)
    return total


def test_a_global_that_is_another_array_later(monkeypatch):
    f = lambda c, x: (c * FACTOR + x, c)
    for k in (2.0, 3.0, H0, H0 * 2):
        monkeypatch.setitem(globals(), "FACTOR", k)
        same(cr.scan(f, H0, XS), by_hand(f, H0, XS))
