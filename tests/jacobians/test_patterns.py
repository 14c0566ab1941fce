"""The entries of structured Jacobians are exactly those that can be nonzero, and their numbers are correct."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import problems
import pytest

import chainrule as cr

PROBLEMS = {
    "Brusselator": problems.brusselator(6),
    "an Euler step": problems.euler_steps(6, 1),
    "four Euler steps": problems.euler_steps(7, 4),
    "heat": problems.heat(12),
    "differences": problems.differences(20, 4),
    "Burgers": problems.burgers(12),
    "Bratu": problems.bratu(5),
    "convolutions": problems.conv_net(20, cr.nn.functional.conv1d, cr.from_numpy),
    "network": problems.mlp(3, 4),
    "exp of a product": problems.exp_of_product(3, 4),
    "product": problems.times(5),
    "outer product": problems.outer(4),
    "arrowhead": problems.arrowhead(7),
    "matrix and vector": problems.matrix_vector(5, 3),
    "sine of a product": problems.sine_of_product(5, 3),
    "bundle adjustment": problems.bundle_adjustment(3, 6, 10),
    "power flow of 5 buses": problems.power_flow(5),
    "power flow of 14 buses": problems.power_flow(14),
    "gradient of Rosenbrock's": problems.Problem(cr.grad(problems.rosenbrock(9).f), problems.rosenbrock(9).x),
}

# entries of larger ones, counted by hand
COUNTS = {
    "Brusselator": (problems.brusselator(32), 6 * 2 * 32**2),
    "ten Euler steps": (problems.euler_steps(8, 10), (2 * 64) ** 2),  # everything depends on everything
    "heat": (problems.heat(200), 3 * 200 - 2),
    "differences": (problems.differences(1000, 10), 990 * 11),
    "Burgers": (problems.burgers(200), 3 * 200),
    "Bratu": (problems.bratu(30), 5 * 900 - 4 * 30),
    "network": (problems.mlp(8, 16), 8 * 16 * 16),
    "exp of a product": (problems.exp_of_product(8, 16), 8 * 16 * 16),
    "product": (problems.times(2000), 2000),
    "outer product": (problems.outer(50), 2500),
    "arrowhead": (problems.arrowhead(2000), 2000 + 2 * 1999),
    # each coordinate of an image depends on a rotation, a centre, the focal length, its own half of the principal point,
    # distortion, a point and a weight
    "bundle adjustment": (problems.bundle_adjustment(5, 40, 100), 2 * 100 * (3 + 3 + 1 + 1 + 2 + 3 + 1) + 100),
}


def dense(problem: problems.Problem, x: problems.Array) -> Any:
    """Return the Jacobian row by row, by backward passes, as a matrix."""
    J = cr.func.jacrev(problem.f)(x)
    return np.reshape(J, (-1, x.size))


def others(x: problems.Array, count: int) -> list[problems.Array]:
    """Return the point and others, where accidental zeros are nonzero, and rectifiers pass other elements."""
    rng = np.random.default_rng(0)
    return [x, *(x + 3 * rng.normal(size=x.shape) for _ in range(count))]


@pytest.mark.parametrize("name", PROBLEMS)
def test_entries_are_those_of_backward_passes(name: str) -> None:
    problem = PROBLEMS[name]
    expected = dense(problem, problem.x)
    J = cr.jacobian(*problem, layout="csr")
    assert J.shape == expected.shape and J.has_sorted_indices and J.dtype == expected.dtype
    scale = np.abs(expected).max()
    np.testing.assert_allclose(J.toarray(), expected, rtol=1e-12, atol=1e-12 * scale)

    with np.errstate(all="ignore"):
        possible = reduce(np.logical_or, (np.nan_to_num(dense(problem, x)) != 0 for x in others(problem.x, 40)))
    J.data[:] = 1
    np.testing.assert_array_equal(J.toarray(), possible, err_msg="the pattern")


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_dense_layout(name: str) -> None:
    problem = PROBLEMS[name]
    expected = cr.func.jacrev(problem.f)(problem.x)
    scale = np.abs(expected).max()
    for strategy in (None, "forward terms"):
        J = cr.jacobian(*problem, layout="dense", strategy=strategy)
        assert type(J) is np.ndarray
        np.testing.assert_allclose(J, expected, rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.parametrize("name", COUNTS)
def test_how_many_entries_there_are(name: str) -> None:
    problem, count = COUNTS[name]
    assert cr.jacobian(*problem, layout="csr").nnz == count


def test_the_hessian_of_rosenbrocks_function() -> None:
    f, x = problems.rosenbrock(50)
    expected = cr.hessian(f)(x)
    H = cr.hessian(f, x, layout="csr")
    np.testing.assert_allclose(H.toarray(), expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    assert H.nnz == 50 + 2 * 49 and (H != H.T).nnz == 0
