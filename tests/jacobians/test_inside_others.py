"""Computations with structured Jacobians inside compile, vmap, jvp and grad, compared with dense ones."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

rng = np.random.default_rng(0)
mixing = rng.standard_normal((4, 4)) + 4 * np.eye(4)
points = rng.uniform(0.5, 1.5, (3, 4))


def energy(x):
    return np.sin(x[1:] * x[:-1]).sum() + (x**4).sum()


functions = {
    "diagonal": lambda x: np.sin(x) * x,
    "band": lambda x: np.concatenate([x[:1], np.diff(x)]) * x,
    "dense": lambda x: np.tanh(mixing @ x / 8),
    "gathered": lambda x: x[np.array([3, 0, 2, 2])] * x + x,
    "hessian": energy,
}
names = pytest.mark.parametrize("name", functions)


def structured(name, x, **options):
    derivative = cr.hessian if name == "hessian" else cr.jacobian
    return derivative(functions[name], x, layout="structured", **options)


def used(J, x):
    return (
        *(J @ x, x @ J, J.T @ x, J.solve(x), J.diagonal()),
        *(J.to_dense(), (J @ J).to_dense(), (J + J * 2.0).to_dense(), (J / 3 - J).to_dense()),
    )


def expected(name, x):
    derivative = cr.func.hessian if name == "hessian" else cr.func.jacrev
    D = derivative(functions[name])(x)
    return D @ x, x @ D, D.T @ x, np.linalg.solve(D, x), np.diagonal(D), D, D @ D, 3 * D, D / 3 - D


def close(found, wanted, tolerance=1e-10):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore:compile. .* whose state is not known")  # a Jacobian is created and used
@names
def test_compile(name):
    compiled = cr.compile(lambda x: used(structured(name, x), x))
    for x in (*points, 1.1 * points[0]):
        close(compiled(x), expected(name, x))


@names
def test_vmap(name):
    found = cr.func.vmap(lambda x: used(structured(name, x), x))(points)
    for i, x in enumerate(points):
        close([part[i] for part in found], expected(name, x))


@names
def test_jvp(name):
    x, t, step = points[0], points[1], 1e-6
    found, tangents = cr.func.jvp(lambda x: used(structured(name, x), x), (x,), (t,))
    close(found, expected(name, x))
    ahead, behind = expected(name, x + step * t), expected(name, x - step * t)
    close(tangents, [(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)], 1e-6)


@names
def test_grad(name):
    x, step = points[0], 1e-6
    weights = [rng.standard_normal(np.shape(part)) for part in expected(name, x)]

    def weighed(parts):
        return sum([(part * weight).sum() for part, weight in zip(parts, weights, strict=True)])

    found = cr.func.grad(lambda x: weighed(used(structured(name, x, create_graph=True), x)))(x)
    slopes = [
        (weighed(expected(name, x + step * e)) - weighed(expected(name, x - step * e))) / (2 * step) for e in np.eye(4)
    ]
    np.testing.assert_allclose(found, slopes, rtol=1e-6, atol=1e-6)
    tensor = cr.tensor(x, requires_grad=True)
    weighed(used(structured(name, tensor, create_graph=True), tensor)).backward()
    np.testing.assert_allclose(tensor.grad.numpy(), found, rtol=1e-9)
