"""Compositions of all transformations to depth three (and a sample of depth four), compared with closed forms.

The functions are F(x) = Σ exp(s a·x) c of vectors, with terms (s, c). Each transformation, contracted with fixed vectors,
maps such a function to another one, so the terms can be computed in parallel.
"""

import itertools

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, hessian, hvp, jacfwd, jacrev, jvp, linearize, vjp, vmap
from chainrule.primitive import opaque, unsupported

rng = np.random.default_rng(0)
A, U, V, X = (rng.normal(size=3) * 0.5 for _ in range(4))
a, u, v = cr.from_numpy(A), cr.from_numpy(U), cr.from_numpy(V)

# name -> (the transformation of a function, the transformation of a term)
OPERATORS = {
    "grad": (lambda f: grad(lambda x: f(x).sum()), lambda s, c: [(s, s * c.sum() * A)]),
    "vmap": (lambda f: lambda x: vmap(f)(cr.stack([x, -x])).sum(0), lambda s, c: [(s, c), (-s, c)]),
    "jvp": (lambda f: lambda x: jvp(f, (x,), (v,))[1], lambda s, c: [(s, s * (A @ V) * c)]),
    "jacrev": (lambda f: lambda x: jacrev(f)(x) @ v, lambda s, c: [(s, s * (A @ V) * c)]),
    "jacfwd": (lambda f: lambda x: jacfwd(f)(x) @ v, lambda s, c: [(s, s * (A @ V) * c)]),
    "hessian": (
        lambda f: lambda x: hessian(lambda y: f(y).sum())(x) @ v,
        lambda s, c: [(s, s**2 * c.sum() * (A @ V) * A)],
    ),
    "vjp": (lambda f: lambda x: vjp(f, x)[1](u)[0], lambda s, c: [(s, s * (c @ U) * A)]),
    "linearize": (lambda f: lambda x: linearize(f, x)[1](v), lambda s, c: [(s, s * (A @ V) * c)]),
    "hvp": (lambda f: lambda x: hvp(lambda y: f(y).sum(), x, v), lambda s, c: [(s, s**2 * c.sum() * (A @ V) * A)]),
}
NAMES = list(OPERATORS)
START = [(1.0, np.array([0.5, -1.0, 2.0]))]


def base(x):
    return cr.exp((a * x).sum()) * cr.from_numpy(START[0][1])


def check(names):
    f, terms = base, START
    for name in reversed(names):
        transform, rule = OPERATORS[name]
        f = transform(f)
        terms = [after for s, c in terms for after in rule(s, c)]
    expected = sum(np.exp(s * (A @ X)) * c for s, c in terms)
    np.testing.assert_allclose(f(cr.from_numpy(X)).detach().numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("names", [(n,) for n in NAMES] + list(itertools.product(NAMES, repeat=2)), ids=" of ".join)
def test_alone_and_in_pairs(names):
    check(names)


@pytest.mark.parametrize("outer, middle", list(itertools.product(NAMES, repeat=2)))
def test_triples(outer, middle):
    for inner in NAMES:
        check((outer, middle, inner))


@pytest.mark.parametrize("seed", range(40))
def test_a_sample_of_depth_four(seed):
    check(tuple(np.random.default_rng(seed).choice(NAMES, 4).tolist()))


@pytest.mark.parametrize("names", list(itertools.product(NAMES, repeat=2)), ids=" of ".join)
def test_backward_through_a_pair(names):
    """The result, as a function of a closed-over value, is differentiated by backward."""
    f = base
    w = cr.tensor(1.5, dtype=cr.float64, requires_grad=True)
    for name in reversed(names):
        f = OPERATORS[name][0](lambda x, f=f: f(x) * w)
    f(cr.from_numpy(X)).sum().backward()
    check(names)
    plain = base
    for name in reversed(names):
        plain = OPERATORS[name][0](plain)
    expected = 2 * 1.5 * plain(cr.from_numpy(X)).sum().item()
    np.testing.assert_allclose(w.grad.item(), expected, rtol=1e-10)


def test_hessian_is_forward_over_reverse_where_there_is_forward_mode():
    """Forward mode is many times cheaper for a function with several results."""
    calls = []

    def rule(t, x):
        calls.append("jvp")
        return 3 * x * x * t

    for jvp_rule in (rule, unsupported("it is written for reverse mode")):
        cube = opaque(vjp={"x": lambda g, x: 3 * x * x * g}, jvp={"x": jvp_rule})(lambda x: x * x * x)
        total = lambda x, cube=cube: np.sum(cube(x))
        np.testing.assert_allclose(hessian(total)(X), np.diag(6 * X))
        np.testing.assert_allclose(vmap(hessian(total))(X[None])[0], np.diag(6 * X))
    assert calls


def test_hessian_passes_on_what_the_function_raises():
    def unfinished(x):
        raise NotImplementedError("later")

    with pytest.raises(NotImplementedError, match="later") as raised:
        hessian(unfinished)(X)
    assert raised.value.__context__ is None


def test_random_functions_inside_hessian_draw_once():
    cr.manual_seed(0)
    h = hessian(lambda x: (x**2 * cr.rand(3, dtype=cr.float64)).sum())(cr.from_numpy(X))
    cr.manual_seed(0)
    np.testing.assert_allclose(h, np.diag(2 * cr.rand(3, dtype=cr.float64).numpy()))
