"""Nested grad, jvp and vmap in any order, with values and tensors from outer levels."""

import itertools

import numpy as np
import pytest

import chainrule as torch
from chainrule._src.transforms.differences import directional_derivative
from chainrule.func import grad, jvp, vjp, vmap

f64 = torch.float64


def t(*values):
    return torch.tensor(values if len(values) != 1 else values[0], dtype=f64)


def close(got, expected, tolerance=1e-10):
    got = got.detach().numpy() if isinstance(got, torch.Tensor) else np.asarray(got)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def d(f):
    """Return the derivative of a function of one number, by forward mode."""
    return lambda x: jvp(f, (x,), (torch.ones_like(x),))[1]


MODES = [d, grad]
named = lambda f: "forward" if f is d else "reverse"
pairs = pytest.mark.parametrize("outer, inner", list(itertools.product(MODES, MODES)), ids=named)
triples = pytest.mark.parametrize("a, b, c", list(itertools.product(MODES, MODES, MODES)), ids=named)


# -- perturbation confusion ------------------------------------------------------------------------------------------


@pairs
def test_x_times_derivative_of_x_plus_y(outer, inner):
    """d/dx [x · d/dy (x + y)] = 1, not 2."""
    close(outer(lambda x: x * inner(lambda y: x + y)(t(1.0)))(t(3.0)), 1.0)


@pairs
def test_x_times_derivative_of_x_times_y(outer, inner):
    """d/dx [x · d/dy (x·y)] = 2x, at a constant y and at y = x."""
    close(outer(lambda x: x * inner(lambda y: x * y)(t(5.0)))(t(3.0)), 6.0)
    close(outer(lambda x: x * inner(lambda y: x * y)(x))(t(3.0)), 6.0)


@pairs
def test_inner_point_is_the_outer_variable(outer, inner):
    """d/dx [d/dy (x·y²) at y = x] = d/dx [2x²] = 4x."""
    close(outer(lambda x: inner(lambda y: x * y * y)(x))(t(3.0)), 12.0)


@pairs
def test_inner_function_of_a_constant_only(outer, inner):
    close(outer(lambda x: x * inner(lambda y: y**3)(t(2.0)))(t(3.0)), 12.0)
    close(outer(lambda x: inner(lambda y: x * x)(t(2.0)) + x)(t(3.0)), 1.0)


@triples
def test_three_variables(a, b, c):
    """d/dx d/dy d/dz of x·y²·z³ with points that refer to the levels outside."""
    f = lambda x: b(lambda y: c(lambda z: x * y**2 * z**3)(x * y))(x)
    # ∂/∂z at z = xy: 3·x·y²·(xy)² = 3x³y⁴; ∂/∂y at y = x: 12x³y³ = 12x⁶; d/dx: 72x⁵
    close(f(t(1.1)), 12 * 1.1**6)
    close(a(f)(t(1.1)), 72 * 1.1**5)


@triples
def test_third_derivatives(a, b, c):
    close(a(b(c(lambda x: torch.sin(x) * x**2)))(t(0.7)), -6 * 0.7 * np.sin(0.7) + (6 - 0.49) * np.cos(0.7))
    close(a(b(c(lambda x: x**3)))(t(0.7)), 6.0)


def test_with_numpys_functions_and_arrays():
    g = grad(grad(grad(lambda x: np.exp(2 * x))))
    value = g(np.float64(0.3))
    close(value, 8 * np.exp(0.6))
    hessian = vmap(lambda v: jvp(grad(lambda x: np.sum(np.sin(x) * x[0])), (np.array([0.5, 1.0]),), (v,))[1])(np.eye(2))
    close(hessian, [[2 * np.cos(0.5) - 0.5 * np.sin(0.5), np.cos(1.0)], [np.cos(1.0), -0.5 * np.sin(1.0)]])


# -- pairs of transformations ----------------------------------------------------------------------------------------

A = np.random.default_rng(0).normal(size=(3, 3))
X = np.random.default_rng(1).normal(size=(4, 3))
V = np.random.default_rng(2).normal(size=(4, 3))


def quartic(x):
    """Σ (x·A·x)·x³, of a vector."""
    return torch.sum((x @ t(A) @ x) * x**3)


def gradient(x):
    q = x @ A @ x
    return (A + A.T) @ x * np.sum(x**3) + 3 * q * x**2


def hessian(x):
    q, s = x @ A @ x, (A + A.T) @ x
    return (A + A.T) * np.sum(x**3) + 3 * np.outer(s, x**2) + 3 * np.outer(x**2, s) + np.diag(6 * q * x)


def test_vmap_of_grad():
    close(vmap(grad(quartic))(t(X)), [gradient(x) for x in X])


def test_grad_of_vmap():
    close(grad(lambda xs: vmap(quartic)(xs).sum())(t(X)), [gradient(x) for x in X])


def test_hessian_vector_products():
    expected = hessian(X[0]) @ V[0]
    close(jvp(grad(quartic), (t(X[0]),), (t(V[0]),))[1], expected)
    close(grad(lambda x: jvp(quartic, (x,), (t(V[0]),))[1])(t(X[0])), expected)
    close(grad(lambda x: torch.sum(grad(quartic)(x) * t(V[0])))(t(X[0])), expected)
    value, pull = vjp(grad(quartic), t(X[0]))
    close(value, gradient(X[0]))
    close(pull(t(V[0]))[0], expected)
    close(jvp(lambda x: jvp(quartic, (x,), (t(V[0]),))[1], (t(X[0]),), (t(V[1]),))[1], V[1] @ expected)


def test_batches_of_hessian_vector_products():
    expected = np.stack([hessian(x) @ v for x, v in zip(X, V)])
    close(vmap(lambda x, v: jvp(grad(quartic), (x,), (v,))[1])(t(X), t(V)), expected)
    close(vmap(lambda x, v: grad(lambda y: jvp(quartic, (y,), (v,))[1])(x))(t(X), t(V)), expected)
    close(jvp(vmap(grad(quartic)), (t(X),), (t(V),))[1], expected)
    close(grad(lambda xs: jvp(vmap(quartic), (xs,), (t(V),))[1].sum())(t(X)), expected)
    close(grad(lambda xs: vmap(lambda x, v: jvp(quartic, (x,), (v,))[1])(xs, t(V)).sum())(t(X)), expected)


def test_hessians_by_vmap_over_directions():
    eye = t(np.eye(3))
    x = t(X[0])
    close(vmap(lambda v: jvp(grad(quartic), (x,), (v,))[1])(eye), hessian(X[0]))
    close(vmap(vjp(grad(quartic), x)[1])(eye)[0], hessian(X[0]))
    close(vmap(lambda y: vmap(lambda v: jvp(grad(quartic), (y,), (v,))[1])(eye))(t(X)), [hessian(x) for x in X])


def test_vmap_of_vmap():
    table = vmap(lambda x: vmap(lambda v: torch.sum(torch.tanh(x) * v**2))(t(V)))(t(X))
    close(table, np.tanh(X) @ (V**2).T)
    close(vmap(vmap(lambda a: a * 2, in_dims=0), in_dims=1, out_dims=1)(t(X)), 2 * X)
    swapped = vmap(lambda v: vmap(lambda x: torch.dot(x, v), in_dims=1)(t(X.T)), in_dims=0, out_dims=1)(t(V))
    close(swapped, X @ V.T)


def test_vmap_of_jvp_and_jvp_of_vmap():
    f = lambda x: torch.sin(x) * x.sum()
    expected = np.cos(X) * V * X.sum(1, keepdims=True) + np.sin(X) * V.sum(1, keepdims=True)
    close(vmap(lambda x, v: jvp(f, (x,), (v,))[1])(t(X), t(V)), expected)
    close(jvp(vmap(f), (t(X),), (t(V),))[1], expected)


# -- closures over outer levels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", MODES, ids=named)
def test_derivative_inside_vmap_at_a_point_all_examples_share(inner):
    """d/dy (x·y²) at y = 3 is 6x for every x, although y itself is not batched."""
    close(vmap(lambda x: inner(lambda y: x * y**2)(t(3.0)))(t(X[:, 0])), 6 * X[:, 0])
    close(vmap(lambda x: inner(lambda y: y**2)(t(3.0)))(t(X[:, 0])), np.full(4, 6.0))


def test_vmap_inside_a_derivative_over_what_it_closes_over():
    for derivative in MODES:
        got = derivative(lambda w: vmap(lambda x: torch.sum(x * w**2))(t(X)).sum())(t(0.5))
        close(got, X.sum())


def test_vmap_of_a_function_that_ignores_its_argument():
    close(vmap(lambda x: t(2.0))(t(X)), np.full(4, 2.0))
    close(grad(lambda w: vmap(lambda x: w * 2)(t(X)).sum())(t(1.0)), 8.0)
    close(d(lambda w: vmap(lambda x: w * 2)(t(X)).sum())(t(1.0)), 8.0)


def test_leaf_captured_inside_vmap():
    w = t(V[0]).requires_grad_()
    y = vmap(lambda x: torch.dot(x, w) ** 2)(t(X))
    assert y.requires_grad
    y.sum().backward()
    close(w.grad, 2 * (X @ V[0]) @ X)


def test_leaf_captured_inside_jvp():
    w = t(V[0]).requires_grad_()
    value, tangent = jvp(lambda x: torch.sum(w**2 * torch.sin(x)), (t(X[0]),), (t(X[1]),))
    (value + tangent).backward()
    close(w.grad, 2 * V[0] * (np.sin(X[0]) + np.cos(X[0]) * X[1]))


def test_leaf_captured_inside_grad():
    w = t(V[0]).requires_grad_()
    g = grad(lambda x: torch.sum(w**2 * x**3))(t(X[0]))
    assert g.requires_grad
    g.sum().backward()
    close(w.grad, 6 * V[0] * X[0] ** 2)


@pytest.mark.parametrize("inner", MODES, ids=named)
def test_leaf_captured_two_levels_down(inner):
    w = t(0.7).requires_grad_()
    y = vmap(lambda x: inner(lambda z: torch.sin(w * z) * x)(x))(t(X[:, 0]))  # w·cos(w·x)·x
    y.sum().backward()
    x = X[:, 0]
    close(w.grad, np.sum(np.cos(0.7 * x) * x - 0.7 * x * np.sin(0.7 * x) * x))
    again = inner(lambda z: vmap(lambda x: torch.sin(w * z) * x)(t(X[:, 0])).sum())(t(0.4))
    w.grad = None
    again.backward()
    close(w.grad, x.sum() * (np.cos(0.28) - 0.28 * np.sin(0.28)))


def test_arguments_that_require_grad_themselves():
    x = t(X[0]).requires_grad_()
    grad(quartic)(x).sum().backward()
    close(x.grad, hessian(X[0]).sum(0))
    x.grad = None
    vmap(lambda row: torch.sum(row**2))(torch.stack([x, 2 * x])).sum().backward()
    close(x.grad, 10 * X[0])
    x.grad = None
    _, tangent = jvp(quartic, (x,), (t(V[0]),))
    tangent.backward()
    close(x.grad, hessian(X[0]) @ V[0])


def test_tangents_that_require_grad():
    v = t(V[0]).requires_grad_()
    _, tangent = jvp(quartic, (t(X[0]),), (v,))
    tangent.backward()
    close(v.grad, gradient(X[0]))


def test_a_leaf_used_inside_and_outside():
    w = t(2.0).requires_grad_()
    y = w * grad(lambda x: w * x**2)(w)  # w · 2w²
    y.backward()
    close(w.grad, 6 * 4.0)


def test_grad_inside_a_function_that_backward_differentiates_later():
    w = t(1.5).requires_grad_()
    inner_loss = lambda p: torch.sum((p * t(X[0]) - t(V[0])) ** 2)
    p = w - 0.1 * grad(inner_loss)(w)  # one step of gradient descent
    inner_loss(p).backward()
    step = lambda w: w - 0.1 * 2 * np.sum((w * X[0] - V[0]) * X[0])
    outer = lambda w: np.sum((step(w) * X[0] - V[0]) ** 2)
    close(w.grad, directional_derivative(outer, np.asarray(1.5), 1.0), 1e-7)


def test_autograd_grad_inside_transformations():
    def derivative_of_cube(x):
        y = x.detach().requires_grad_() if not x.requires_grad else x
        return torch.autograd.grad((y**3).sum(), y, create_graph=True)[0]

    close(vmap(derivative_of_cube)(t(X)), 3 * X**2)
    close(grad(lambda x: derivative_of_cube(x).sum())(t(X)), 6 * X)


def test_grad_is_off_inside_no_grad_but_transformations_are_not():
    w = t(2.0).requires_grad_()
    with torch.no_grad():
        g = grad(lambda x: w * x**2)(t(3.0))
        _, tangent = jvp(lambda x: w * x**2, (t(3.0),), (t(1.0),))
    assert not g.requires_grad and not tangent.requires_grad
    close(g, 12.0)
    close(tangent, 12.0)


def test_levels_are_left_when_a_function_raises():
    def fails(x):
        raise KeyError("inside")

    for transformed in (vmap(fails), grad(fails), d(fails)):
        with pytest.raises(KeyError):
            transformed(t(1.0, 2.0))
    close(vmap(grad(lambda x: x**2))(t(1.0, 2.0)), [2.0, 4.0])


# -- random towers ---------------------------------------------------------------------------------------------------
#
# A tower is a function of one number, wrapped in up to four transformations drawn at random. Each level closes over
# the variables of the levels outside, too. Beside it grows the same function in NumPy, differentiated by differences.


def _tower(kinds):
    """Return the tower as chainrule code, and a list with the kind of each level, outermost first."""

    def level(k, outside):
        if k == len(kinds):
            total = outside[0] * 0.3
            for i, x in enumerate(outside):
                total = total + torch.sin(x * (0.4 + 0.1 * i)) * outside[(i + 1) % len(outside)] * 0.5
            return torch.exp(total * 0.3)
        body = lambda x: level(k + 1, [*outside, x])
        at = outside[-1] * 0.8 + 0.1
        kind = kinds[k]
        if kind == "grad":
            return grad(body)(at)
        if kind == "jvp":
            return d(body)(at)
        if kind == "shared":  # a batch whose examples do not depend on outer values
            return vmap(body)(t(0.2, 0.5)).sum()
        return vmap(body)(torch.stack([at, at * 0.5])).sum()

    return lambda x: level(0, [x])


def _reference(kinds, differentiate):
    def level(k, outside):
        if k == len(kinds):
            total = outside[0] * 0.3
            for i, x in enumerate(outside):
                total = total + np.sin(x * (0.4 + 0.1 * i)) * outside[(i + 1) % len(outside)] * 0.5
            return np.exp(total * 0.3)
        body = lambda x: level(k + 1, [*outside, x])
        at = outside[-1] * 0.8 + 0.1
        if kinds[k] in ("grad", "jvp"):
            return differentiate(body, at)
        points = (0.2, 0.5) if kinds[k] == "shared" else (at, at * 0.5)
        return sum(body(p) for p in points)

    return lambda x: level(0, [x])


def _difference(f, x):
    """Return a central difference; its steps are wide, because it is nested up to four deep."""
    h = 2e-2
    one, two, three = (f(x + k * h) - f(x - k * h) for k in (1, 2, 3))
    return (45 * one - 9 * two + three) / (60 * h)


KINDS = ("grad", "jvp", "vmap", "shared")
TOWERS = [kinds for n in (1, 2, 3) for kinds in itertools.product(KINDS, repeat=n)]
TOWERS += [tuple(np.random.default_rng(seed).choice(KINDS, 4).tolist()) for seed in range(40)]


@pytest.mark.parametrize("kinds", list(dict.fromkeys(TOWERS)), ids=" of ".join)
def test_towers(kinds):
    f = _tower(kinds)
    expected = _reference(kinds, _difference)(0.6)
    close(f(t(0.6)), expected, 1e-6)
    if len(kinds) < 4:  # and differentiated once more, from the outside, by backward
        x = t(0.6).requires_grad_()
        y = f(x)
        y.backward()
        close(x.grad, _difference(_reference(kinds, _difference), 0.6), 1e-6)
