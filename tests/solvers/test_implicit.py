"""``chainrule.implicit``: derivatives of solutions compared with closed forms, and with differences of solutions."""

from __future__ import annotations

import gc
import itertools
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import implicit
from chainrule.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

A = np.array([1.0, 4.0, 9.0])
B = np.array([[3.0, 1.0, 0.0], [0.5, 4.0, 1.0], [0.0, 2.0, 5.0]])


def roots(a: Any) -> Any:
    return implicit.root(lambda x, a: x**2 - a, np.ones(3), a)


def one_root(a: Any) -> Any:
    return implicit.root(lambda x, a: x**2 - a, 1.0, a)


def diagonal(values: Any, order: int) -> Any:
    full = np.zeros((3,) * (order + 1))
    full[(np.arange(3),) * (order + 1)] = values
    return full


DERIVATIVES = [A**0.5, 0.5 * A**-0.5, -0.25 * A**-1.5, 0.375 * A**-2.5]


# -- any order, any mode -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modes", [m for k in range(3) for m in itertools.product((jacrev, jacfwd), repeat=k)])
def test_both_modes_and_any_order(modes: Any) -> None:
    f = roots
    for mode in modes:
        f = mode(f)
    np.testing.assert_allclose(f(A), diagonal(DERIVATIVES[len(modes)], len(modes)), rtol=1e-12)


@pytest.mark.parametrize("modes", [(jacrev,) * 3, (jacfwd,) * 3, (jacrev, jacfwd, jacrev), (jacfwd, jacrev, jacrev)])
def test_third_order(modes: Any) -> None:
    f = roots
    for mode in modes:
        f = mode(f)
    np.testing.assert_allclose(f(A), diagonal(DERIVATIVES[3], 3), rtol=1e-11)


def test_backward_and_create_graph() -> None:
    a = cr.tensor(A, requires_grad=True)
    x = roots(a)
    assert isinstance(x, cr.Tensor) and x.requires_grad
    x.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), DERIVATIVES[1])
    (first,) = cr.autograd.grad(roots(a).sum(), a, create_graph=True)
    (second,) = cr.autograd.grad(first.sum(), a, create_graph=True)
    (third,) = cr.autograd.grad(second.sum(), a)
    np.testing.assert_allclose(second.detach().numpy(), DERIVATIVES[2])
    np.testing.assert_allclose(third.numpy(), DERIVATIVES[3])


BATCHES = {
    "vmap": (vmap(one_root), 0),
    "vmap(vmap)": (lambda a: vmap(vmap(one_root))(a[None])[0], 0),
    "vmap(grad)": (vmap(grad(one_root)), 1),
    "vmap(grad(grad))": (vmap(grad(grad(one_root))), 2),
    "grad(vmap)": (grad(lambda a: vmap(one_root)(a).sum()), 1),
    "jvp(vmap)": (lambda a: jvp(vmap(one_root), (a,), (np.ones(3),))[1], 1),
    "vmap(jvp)": (vmap(lambda a: jvp(one_root, (a,), (np.ones(()),))[1]), 1),
    "vjp(vmap)": (lambda a: vjp(vmap(one_root), a)[1](np.ones(3))[0], 1),
    "hessian(vmap)": (lambda a: np.diag(hessian(lambda a: vmap(one_root)(a).sum())(a)), 2),
    "vmap(hessian)": (vmap(hessian(one_root)), 2),
}


@pytest.mark.parametrize("name", BATCHES)
def test_in_batches(name: str) -> None:
    f, order = BATCHES[name]
    np.testing.assert_allclose(f(A), DERIVATIVES[order], rtol=1e-11)


def test_a_batch_of_starts_and_one_of_arguments() -> None:
    signs = np.array([-1.0, 1.0])
    f = vmap(vmap(lambda x0, a: implicit.root(lambda x, a: x**2 - a, x0, a), (None, 0)), (0, None))
    np.testing.assert_allclose(f(signs, A), signs[:, None] * np.sqrt(A))


def test_compiled() -> None:
    plain, compiled = grad(one_root), cr.compile(grad(one_root))
    for a in (4.0, 9.0, 16.0, 4.0):
        assert compiled(a) == plain(a)
    assert len(compiled.recordings) == 1
    offset = np.zeros(3)
    f = cr.compile(jacrev(lambda a: implicit.root(lambda x, a: x**2 * (1 + offset) - a, np.ones(3), a)))
    for value in (0.0, 3.0):
        offset[:] = value
        np.testing.assert_allclose(np.diag(f(A)), 0.5 * (A * (1 + value)) ** -0.5)


def by_solve(a: Any, b: Any) -> Any:
    """Return the result of NumPy's solve, whose derivatives use its own rules."""
    return np.linalg.solve(B[:2, :2] + np.stack([np.stack([a[0], 0 * a[0]]), np.stack([0 * a[1], a[1]])]), b * a)


def by_matvec(a: Any, b: Any) -> Any:
    return implicit.linear_solve(lambda x, a: B[:2, :2] @ x + a * x, b * a, a)


def by_nested_roots(a: Any, b: Any) -> Any:
    """Return the same by an equation that contains the root of another equation."""
    inner = lambda y, a, b: implicit.root(lambda z, y, a, b: 2 * z + a * y - b * a, np.zeros(2), y, a, b)
    return implicit.fixed_point(
        lambda y, a, b: y - B[:2, :2] @ y / 4 - a * y / 4 + b * a / 4 + 0 * inner(y, a, b), np.zeros(2), a, b
    )


along = np.array([0.3, -0.7])
STEPS = {
    "jacrev a": lambda f: jacrev(f),
    "jacrev b": lambda f: jacrev(f, 1),
    "jacfwd a": lambda f: jacfwd(f),
    "jacfwd b": lambda f: jacfwd(f, 1),
    "grad a": lambda f: grad(lambda a, b: np.sum(f(a, b) ** 2)),
    "jvp b": lambda f: lambda a, b: jvp(lambda b: f(a, b), (b,), (along,))[1],
    "vjp a": lambda f: lambda a, b: vjp(lambda a: f(a, b), a)[1](np.cos(f(a, b)))[0],
    "vmap a": lambda f: lambda a, b: vmap(f, (0, None))(np.stack([a, 2 * a, a + 1]), b),
    "vmap b": lambda f: lambda a, b: vmap(f, (None, 0))(a, np.stack([b, b - 1])),
}
COMPOSITIONS = """
jacrev a, vmap a, jvp b | jacfwd b, vmap b, jacfwd a | jacrev a, jacrev a | jacrev b, jacrev a, vmap a | vmap a, grad a, vmap b
grad a, jvp b, vmap a | vjp a, jacfwd a, jacrev b | vmap b, vmap a, jacrev a | jvp b, jacrev a, vmap b | jacfwd a, grad a, jacrev b
"""


CASES = [steps.strip() for steps in COMPOSITIONS.replace("\n", "|").strip("|").split("|")]


@pytest.mark.parametrize(
    "solve, steps", [(by_matvec, steps) for steps in CASES] + [(by_nested_roots, steps) for steps in CASES[:4]]
)
def test_compositions(solve: Any, steps: str) -> None:
    f, oracle = solve, by_solve
    for step in steps.split(","):
        f, oracle = STEPS[step.strip()](f), STEPS[step.strip()](oracle)
    a, b = np.array([0.7, 1.2]), np.array([0.3, -0.4])
    np.testing.assert_allclose(f(a, b), oracle(a, b), rtol=1e-9, atol=1e-11)


# -- the kinds of solutions --------------------------------------------------------------------------------------------


def differences(f: Any, x: Any, step: float = 1e-5) -> Any:
    return np.stack([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(x.size)], -1)


def solve_tanh(theta: Any) -> Any:
    return implicit.root(lambda x, theta: B @ x + np.tanh(x * theta) - theta, np.zeros(3), theta)


def fixed(theta: Any) -> Any:
    return implicit.fixed_point(lambda x, theta: np.tanh(B @ x * 0.1 + theta), np.zeros(3), theta)


def lowest(theta: Any) -> Any:
    return implicit.minimum(lambda x, theta: np.sum(np.cosh(B @ x - theta)) + np.sum(x**2), np.zeros(3), theta)


def fitted(theta: Any) -> Any:
    t = np.linspace(0, 1, 6)
    return implicit.least_squares(
        lambda p, theta: p[0] * np.exp(p[1] * t) - np.cos(theta[0] * t) - theta[1] - theta[2] * t, np.zeros(2), theta
    )


def linear(theta: Any) -> Any:
    return implicit.linear_solve(lambda x, theta: B @ x + theta * x, theta**2, theta)


@pytest.mark.parametrize("solve", [solve_tanh, fixed, lowest, fitted, linear])
def test_kinds(solve: Any) -> None:
    theta = np.array([0.7, 0.2, -0.4])
    want = differences(solve, theta)
    np.testing.assert_allclose(jacrev(solve)(theta), want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jacfwd(solve)(theta), want, rtol=1e-6, atol=1e-8)
    second = differences(jacrev(solve), theta)
    np.testing.assert_allclose(jacfwd(jacrev(solve))(theta), second, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(jacrev(jacrev(solve))(theta), second, rtol=1e-5, atol=1e-7)


def test_a_linear_system_is_solved_as_numpy_does() -> None:
    theta = np.array([0.7, 0.2, -0.4])
    by_matrix = lambda theta: np.linalg.solve(B + np.diag(theta), theta**2)
    np.testing.assert_allclose(linear(theta), by_matrix(theta), rtol=1e-13)
    np.testing.assert_allclose(jacrev(linear)(theta), jacrev(by_matrix)(theta), rtol=1e-12)
    np.testing.assert_allclose(jacfwd(jacfwd(linear))(theta), jacfwd(jacfwd(by_matrix))(theta), rtol=1e-11, atol=1e-13)


def test_decorators() -> None:
    calls = []

    @implicit.custom_root(lambda x, a, b: x**2 - a * b)
    def heron(x0: Any, a: Any, b: Any) -> Any:
        calls.append(type(x0))
        for _ in range(30):
            x0 = (x0 + a * b / x0) / 2
        return x0

    np.testing.assert_allclose(grad(heron, 1)(1.0, 2.0, 3.0), 0.5 * np.sqrt(3 / 2))
    np.testing.assert_allclose(vmap(grad(heron, 2), (None, 0, None))(1.0, A, 3.0), 0.5 * np.sqrt(A / 3))
    assert float(grad(heron, 0)(1.0, 2.0, 3.0)) == 0.0 and heron.__name__ == "heron"
    assert set(calls) == {np.ndarray}

    @implicit.custom_fixed_point(lambda x, a: np.cos(a * x))
    def iterate(x0: Any, a: Any) -> Any:
        for _ in range(300):
            x0 = np.cos(a * x0)
        return x0

    x = iterate(1.0, 0.8)
    np.testing.assert_allclose(jacfwd(iterate, 1)(1.0, 0.8), -np.sin(0.8 * x) * x / (1 + 0.8 * np.sin(0.8 * x)))


# -- solvers -----------------------------------------------------------------------------------------------------------


def test_solvers_of_scipy() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    by = lambda solver: float(
        grad(lambda a: implicit.root(lambda x, a: x**2 - a, np.ones(1), a, solver=solver)[0])(4.0)
    )
    for solver in (cr.scipy.root, optimize.root, lambda g, x0: optimize.root(g, x0).x):
        assert by(solver) == pytest.approx(0.25)
    theta = np.array([0.7, 0.2, -0.4])
    objective = lambda x, theta: np.sum(np.cosh(B @ x - theta)) + np.sum(x**2)
    exact = lambda g, x0: cr.scipy.minimize(g, x0, method="BFGS", options={"gtol": 1e-7})
    found = jacrev(lambda theta: implicit.minimum(objective, np.zeros(3), theta, solver=exact))(theta)
    np.testing.assert_allclose(found, jacrev(lowest)(theta), rtol=1e-6)
    t = np.linspace(0, 1, 6)
    fit = lambda d, **how: implicit.least_squares(lambda p, d: p[0] * np.exp(p[1] * t) - d, np.zeros(2), d, **how)
    data = 1 + t**2
    tight = lambda g, x0: cr.scipy.least_squares(g, x0, xtol=1e-15, gtol=1e-15, ftol=1e-15)
    np.testing.assert_allclose(jacrev(lambda d: fit(d, solver=tight))(data), jacrev(fit)(data), rtol=1e-6, atol=1e-9)


def test_conjugate_gradients_as_the_solver_of_a_linear_system() -> None:
    def cg(matvec: Any, b: Any) -> Any:
        x, r = np.zeros_like(b), b
        p = r
        while np.sum(r**2) > 1e-24:
            q = matvec(p)
            step = np.sum(r**2) / np.sum(p * q)
            x, new = x + step * p, r - step * q
            p, r = new + np.sum(new**2) / np.sum(r**2) * p, new
        return x

    matvec = lambda x, k: (1 + k) * x - 0.3 * np.roll(x, 1) - 0.3 * np.roll(x, -1)
    solve = lambda k, **how: implicit.linear_solve(matvec, np.arange(5.0), k, **how)
    np.testing.assert_allclose(jacfwd(lambda k: solve(k, solver=cg))(0.2), jacfwd(solve)(0.2), rtol=1e-9)


def test_a_result_without_success_warns() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    stopped = lambda g, x0: optimize.root(g, x0, method="krylov", options={"maxiter": 1})
    with pytest.warns(UserWarning, match="did not succeed"):
        implicit.root(lambda x, a: x**2 - a, np.ones(3), A, solver=stopped)


def test_minima_from_where_the_hessian_is_not_positive() -> None:
    well = lambda x, a: np.sum((x**2 - a) ** 2)
    np.testing.assert_allclose(np.abs(implicit.minimum(well, np.array([0.1, -0.1]), 4.0)), 2.0)
    assert float(grad(lambda a: implicit.minimum(well, np.full(2, 0.1), a)[0])(4.0)) == pytest.approx(0.25)
    rosenbrock = lambda x, a: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)
    np.testing.assert_allclose(implicit.minimum(rosenbrock, np.array([-1.2, 1.0]), 1.0), 1.0, rtol=1e-8)


# -- containers --------------------------------------------------------------------------------------------------------


@dataclass
class Material:
    stiffness: Any
    name: str


def state(p: Any) -> Any:
    def equations(z: Any, p: Any) -> Any:
        spring, load = p["material"].stiffness, p["load"]
        assert p["material"].name == "steel"
        return {"u": spring * z["u"] ** 3 + z["u"] - load, "v": [z["v"] @ B - z["u"]]}

    return implicit.root(equations, {"u": np.ones(3), "v": np.zeros(3)}, p)


def test_containers() -> None:
    p = {"material": Material(np.array([1.0, 2.0, 3.0]), "steel"), "load": np.array([2.0, 3.0, 4.0])}
    z = state(p)
    assert list(z) == ["u", "v"] and type(z["u"]) is np.ndarray
    np.testing.assert_allclose(p["material"].stiffness * z["u"] ** 3 + z["u"], p["load"])
    np.testing.assert_allclose(z["v"] @ B, z["u"])
    total = lambda stiffness, load: (
        lambda z: np.sum(z["u"] ** 2 * z["v"])
    )(state({"material": Material(stiffness, "steel"), "load": load}))  # fmt: skip
    stiffness, load = p["material"].stiffness, p["load"]
    by_stiffness = differences(lambda x: total(x, load), stiffness)
    np.testing.assert_allclose(grad(total)(stiffness, load), by_stiffness, rtol=1e-6)
    np.testing.assert_allclose(
        grad(total, 1)(stiffness, load), differences(lambda x: total(stiffness, x), load), rtol=1e-6
    )


def test_faces_and_dtypes() -> None:
    assert type(roots(A)) is np.ndarray
    x = implicit.root(lambda x, a: x**2 - a, cr.ones(2), cr.tensor([4.0, 9.0], requires_grad=True))
    assert x.dtype == cr.float32 and x.requires_grad
    np.testing.assert_allclose(x.detach().numpy(), [2, 3], rtol=1e-6)
    assert isinstance(implicit.root(lambda x, a: x**2 - a, np.ones(3), cr.tensor(A)), cr.Tensor)
    assert isinstance(implicit.root(lambda x: x**2 - A, [1, 1, 1]), np.ndarray)


def test_constants_may_be_anything() -> None:
    choose = lambda x, a, names, k, table: x**k - a * table[names[0]]
    f = lambda a: implicit.root(choose, 1.0, a, ["b"], 2, {"b": 4.0})
    assert float(grad(f)(9.0)) == pytest.approx(0.5 * 2 / 3)


def test_arguments_that_the_solution_does_not_depend_on() -> None:
    f = lambda a, b: implicit.root(lambda x, a, b: x - a, 0.0, a, b)
    assert float(grad(f, 1)(1.0, 2.0)) == 0.0
    assert float(jvp(lambda b: f(1.0, b), (np.ones(()),), (np.ones(()),))[1]) == 0.0


# -- captured values ----------------------------------------------------------------------------------------------------


def closed(a: Any) -> Any:
    return implicit.root(lambda x: x**2 - a, np.ones(3))


def test_first_derivatives_by_what_is_captured() -> None:
    np.testing.assert_allclose(jacrev(closed)(A), diagonal(DERIVATIVES[1], 1))
    a = cr.tensor(A, requires_grad=True)
    closed(a).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), DERIVATIVES[1])
    both = lambda a, b: implicit.root(lambda x, b: x**2 - a * b, np.ones(3), b)
    f = lambda a: both(a, a)
    np.testing.assert_allclose(jacrev(f)(A), np.eye(3), atol=1e-12)


CAPTURED = {
    "jvp": lambda: jacfwd(closed)(A),
    "twice": lambda: jacrev(jacrev(closed))(A),
    "forward over reverse": lambda: jacfwd(jacrev(closed))(A),
    "reverse over forward": lambda: jacrev(jacfwd(closed))(A),
    "vmap": lambda: vmap(lambda a: implicit.root(lambda x: x**2 - a, 1.0))(A),
    "of b, captured a": lambda: grad(grad(mixed, 1), 0)(2.0, 3.0),
    "of captured a, b": lambda: grad(grad(mixed, 0), 1)(2.0, 3.0),
    "of b forwards, captured a": lambda: jacfwd(grad(mixed, 0), 1)(2.0, 3.0),
    "of captured a, b forwards": lambda: grad(jacfwd(mixed, 1), 0)(2.0, 3.0),
}


def mixed(a: Any, b: Any) -> Any:
    return implicit.root(lambda x, b: x**2 - a * b, 1.0, b)


@pytest.mark.parametrize("name", CAPTURED)
def test_more_than_that_is_an_error(name: str) -> None:
    with pytest.raises(RuntimeError, match="Pass it as an argument"):
        CAPTURED[name]()


# -- sparse ------------------------------------------------------------------------------------------------------------


def chain(k: Any, n: int = 70, **how: Any) -> Any:
    load = np.sin(np.arange(n))
    pull = lambda x, k: k * (2.5 * x - np.append(x[1:], 0) - np.append(0, x[:-1])) + x**3 - load
    return implicit.root(pull, np.zeros(n), k, **how)


def test_large_systems_have_sparse_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    from chainrule._src.jacobians import solution as module

    kinds = []

    class Noted(module.Factors):
        __slots__ = ()

        def __init__(self, matrix: Any, singular: str) -> None:
            kinds.append(sparse.issparse(matrix) and matrix.nnz == 3 * 70 - 2)
            super().__init__(matrix, singular)

    monkeypatch.setattr(module, "Factors", Noted)
    g = lambda k: np.sum(chain(k) ** 2)
    first, second = grad(g)(2.0), grad(grad(g))(2.0)
    assert kinds == [True, True]  # one for each call: both orders use the same factors
    monkeypatch.setattr(module, "SPARSE", 10**9)
    np.testing.assert_allclose(grad(g)(2.0), first, rtol=1e-10)
    np.testing.assert_allclose(jacfwd(grad(g))(2.0), second, rtol=1e-9)
    assert kinds[2:] == [False, False]


def test_large_systems_compiled_and_without_random_numbers() -> None:
    pytest.importorskip("scipy.sparse")
    plain = grad(lambda k: np.sum(chain(k) ** 2))
    compiled = cr.compile(plain)
    before = np.random.get_state()[1].copy()
    for k in (2.0, 3.0, 2.0):
        assert compiled(k) == plain(k)
    assert len(compiled.recordings) == 1
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_what_a_solution_holds_goes_with_it() -> None:
    """No reference cycles: a large graph does not wait for the garbage collector."""
    a = cr.tensor(A, requires_grad=True)
    gone = weakref.ref(a)
    gc.disable()
    try:
        x = implicit.root(lambda x, a: x**2 - a, np.ones(3), a)
        x.sum().backward()
        del a, x
        assert gone() is None
    finally:
        gc.enable()


# -- errors --------------------------------------------------------------------------------------------------------------


def test_a_derivative_at_no_solution_warns() -> None:
    near = lambda error: lambda a: implicit.root(lambda x, a: x**2 - a, 1.0, a, solver=lambda g, x0: x0 * 2 + error)
    near(0.1)(4.0)  # only a derivative needs it
    with pytest.warns(
        UserWarning, match=r"root\(\): a derivative is taken at a point that does not solve the equation"
    ):
        grad(near(0.1))(4.0)
    grad(near(1e-7))(4.0)
    lax = lambda a: implicit.root(lambda x, a: x**2 - a, 1.0, a, solver=lambda g, x0: x0 * 2.1, tol=0.1)
    grad(lax)(4.0)


def test_singular_jacobians() -> None:
    double = lambda a: implicit.root(lambda x, a: (x - a) ** 2, 1.0, a, solver=lambda g, x0: x0 * 0 + 4.0)
    with pytest.raises(np.linalg.LinAlgError, match="the Jacobian ∂f/∂x is singular at the solution"):
        grad(double)(4.0)
    flat = lambda a: implicit.minimum(lambda x, a: (x[0] - x[1] - a) ** 2, np.zeros(2), a, solver=lambda g, x0: x0)
    with pytest.raises(np.linalg.LinAlgError, match="the Hessian is singular"):
        jacrev(flat)(0.0)
    with pytest.raises(np.linalg.LinAlgError, match="condition number"):
        implicit.linear_solve(lambda x: np.stack([x[0] + x[1], x[0] + (1 + 1e-17) * x[1] * (1 + 2e-16)]), np.ones(2))
    pytest.importorskip("scipy.sparse")
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        implicit.linear_solve(lambda x: 2 * x - np.roll(x, 1) - np.roll(x, -1), np.cos(np.arange(100)))


@pytest.mark.parametrize("n", [4, 80])
def test_units_do_not_make_a_matrix_singular(n: int) -> None:
    units = 10.0 ** np.linspace(-12, 12, n)
    matvec = lambda x, k: units[::-1] * (k * (units * x) - 0.3 * np.append(0, (units * x)[:-1]))
    solve = lambda k: implicit.linear_solve(matvec, units[::-1] * 1.0, k)
    first = units * solve(2.0)  # the same in ordinary units
    np.testing.assert_allclose(2 * first - 0.3 * np.append(0, first[:-1]), 1.0, rtol=1e-12)
    slope = units * jacfwd(solve)(2.0)
    np.testing.assert_allclose(first + 2 * slope - 0.3 * np.append(0, slope[:-1]), 0.0, atol=1e-12)
    weights = units / n
    np.testing.assert_allclose(grad(lambda k: np.sum(weights * solve(k)))(2.0), np.mean(slope), rtol=1e-10)


def test_a_solver_may_return_a_number_as_a_vector() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    f = lambda a: implicit.root(lambda x, a: x**2 - a, 1.0, a, solver=optimize.root)
    assert f(4.0).shape == () and float(grad(f)(4.0)) == pytest.approx(0.25)


def test_newtons_method_says_when_it_finds_nothing() -> None:
    with pytest.raises(RuntimeError, match="Newton's method did not find a solution: the residual is"):
        implicit.root(lambda x: x**2 + 1, np.full(1, 0.3))
    with pytest.raises(RuntimeError, match="Newton's method did not find a minimum"):
        implicit.minimum(lambda x: np.sum(-x - np.exp(-x)), np.ones(1))


def test_other_errors() -> None:
    with pytest.raises(TypeError, match="x0 has dtype"):
        implicit.root(lambda x: x, np.ones(2, int))
    with pytest.raises(TypeError, match="split complex numbers into two parts"):
        implicit.root(lambda x: x, np.ones(2, complex))
    with pytest.raises(ValueError, match="returned 1 numbers for 2 unknowns"):
        implicit.root(lambda x: x[:1], np.ones(2))
    with pytest.raises(ValueError, match="x0 contains no numbers"):
        implicit.root(lambda x: x, np.ones(0))
    with pytest.raises(ValueError, match=r"the solver's result has shape \(1,\)"):
        implicit.root(lambda x: x, np.ones(2), solver=lambda g, x0: x0[:1])
    with pytest.raises(ValueError, match="has the structure"):
        implicit.root(lambda x: x, np.ones(2), solver=lambda g, x0: [x0])


@pytest.mark.parametrize(
    ("f", "x0"),
    [(lambda x, t: np.cos(x) + 0 * t, 0.0), (lambda x, t: x[0] ** 2 - x[1] ** 2 + 0 * t, np.zeros(2))],
    ids=["maximum", "saddle"],
)
def test_no_maximum_is_taken_for_a_minimum(f, x0):
    with pytest.raises(RuntimeError, match="reached a maximum or a saddle point"):
        implicit.minimum(f, x0, 1.0)
    assert implicit.minimum(lambda x, t: x**4 + 0 * t, 0.0, 1.0) == 0
