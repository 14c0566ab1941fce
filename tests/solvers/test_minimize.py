"""``chainrule.scipy.minimize`` compared with SciPy with hand-written derivatives, for arrays and containers."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import chainrule as cr

optimize = pytest.importorskip("scipy.optimize")

START = np.array([-1.2, 1.0, 0.5, 2.0])


def test_solvers_are_also_where_scipy_has_them() -> None:
    solvers = [name for name in cr.scipy.__all__ if not isinstance(getattr(cr.scipy, name), ModuleType)]
    assert len(solvers) == 5
    for name in solvers:
        module = "integrate" if name.startswith("solve_") else "optimize"
        assert hasattr(importlib.import_module(f"scipy.{module}"), name)
        assert getattr(getattr(cr.scipy, module), name) is getattr(cr.scipy, name)
        assert name in getattr(cr.scipy, module).__all__


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


BY_HAND = {"jac": optimize.rosen_der}
WITH_HESSIAN = BY_HAND | {"hess": optimize.rosen_hess}
WITH_PRODUCTS = BY_HAND | {"hessp": optimize.rosen_hess_prod}
NEW = tuple(map(int, pytest.importorskip("scipy").__version__.split(".")[:2])) >= (1, 14)
METHODS = [
    ("Nelder-Mead", {}),
    ("Powell", {}),
    ("COBYLA", {}),
    *([("COBYQA", {})] if NEW else []),
    ("CG", BY_HAND),
    ("BFGS", BY_HAND),
    ("L-BFGS-B", BY_HAND),
    ("TNC", BY_HAND),
    ("SLSQP", BY_HAND),
    ("Newton-CG", WITH_PRODUCTS),
    ("trust-ncg", WITH_PRODUCTS),
    ("trust-krylov", WITH_PRODUCTS),
    ("dogleg", {}),
    ("trust-exact", WITH_HESSIAN),
    ("trust-constr", WITH_HESSIAN),
    (None, BY_HAND),
]


@pytest.mark.parametrize("method, given", METHODS)
def test_as_scipy_with_derivatives_by_hand(method: Any, given: dict[str, Any]) -> None:
    """The steps are the same, so all derivatives that the method needs are provided, and none is a difference."""
    start, fun = START, rosenbrock
    if method == "dogleg":  # which needs a positive definite Hessian everywhere
        fun = lambda x: np.sum(np.cosh(x - np.arange(4.0)))
        given = {"jac": lambda x: np.sinh(x - np.arange(4.0)), "hess": lambda x: np.diag(np.cosh(x - np.arange(4.0)))}
    options = {"maxfun" if method == "TNC" else "maxiter": 12}  # later, rounding errors cause growing differences
    want = optimize.minimize(fun, start, method=method, options=options, **given)
    got = cr.scipy.minimize(fun, start, method=method, options=options)
    assert got.get("nit") == want.get("nit") and got.nfev == want.nfev and got.get("njev") == want.get("njev")
    np.testing.assert_allclose(got.x, want.x, rtol=1e-6, atol=1e-7)
    assert type(got.x) is np.ndarray and got.x.dtype == np.float64


@pytest.mark.parametrize("method", ["BFGS", "trust-constr", "Newton-CG"])
def test_compiled_takes_the_same_steps(method: str) -> None:
    plain = cr.scipy.minimize(rosenbrock, START, method=method)
    compiled = cr.scipy.minimize(rosenbrock, START, method=method, compile=True)
    assert plain.nit == compiled.nit
    np.testing.assert_array_equal(plain.x, compiled.x)


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Model:
    weights: Any
    bias: Any


TARGET = np.array([[1.0, -2.0], [0.5, 3.0]])


def distance(weights: Any, bias: Any) -> Any:
    return ((weights - TARGET) ** 2).sum() + (bias - 4) ** 4


CONTAINERS = [
    (lambda p: distance(p["w"], p["b"]), {"w": np.zeros((2, 2)), "b": np.float64(1.0)}),
    (lambda p: distance(p["w"], p["b"]), {"w": np.zeros((2, 2)), "b": 1}),
    (lambda p: distance(*p), (np.zeros((2, 2)), np.ones(()))),
    (lambda p: distance(p[0], p[1][0]), [np.zeros((2, 2)), (1.0,)]),
    (lambda p: distance(p.x, p.y), Point(np.zeros((2, 2)), 1.0)),
    (lambda p: distance(p.weights, p.bias), Model(np.zeros((2, 2)), 1.0)),
    (lambda p: distance(p["w"], p["b"]), {"w": cr.zeros(2, 2, dtype=cr.float64), "b": np.ones(())}),
    (lambda p: distance(p, 3.9), np.zeros((2, 2))),
]


@pytest.mark.parametrize("fun, x0", CONTAINERS)
@pytest.mark.parametrize("method", ["BFGS", "trust-exact", "Powell"])
def test_containers(fun: Any, x0: Any, method: str) -> None:
    found = cr.scipy.minimize(fun, x0, method=method, options={"gtol": 1e-9} if method == "BFGS" else {})
    leaves, spec = cr.tree.tree_flatten(found.x)
    starts, like = cr.tree.tree_flatten(x0)
    assert spec == like
    for leaf, start in zip(leaves, starts, strict=True):
        assert isinstance(leaf, cr.Tensor) == isinstance(start, cr.Tensor)
        assert tuple(leaf.shape) == np.shape(start)
    np.testing.assert_allclose(np.asarray(leaves[0]), TARGET, atol=1e-3)
    if method == "BFGS":
        assert cr.tree.tree_structure(found.jac) == like


def test_tensors_of_float32_stay_what_they_are() -> None:
    seen = set()

    def fun(x: Any) -> Any:
        seen.add((type(x), x.dtype))
        return ((x - cr.tensor([1.0, 2.0])) ** 2).sum()

    found = cr.scipy.minimize(fun, cr.zeros(2, requires_grad=True))
    assert seen == {(cr.Tensor, cr.float32)}
    assert found.x.dtype == cr.float32 and not found.x.requires_grad
    np.testing.assert_allclose(found.x.numpy(), [1, 2], atol=1e-5)


def test_lists_of_numbers_are_arrays() -> None:
    for start in ([0, 0], (0.0, 0.0)):
        found = cr.scipy.minimize(lambda x: np.sum((x - np.array([1.0, 2.0])) ** 2), start)
        np.testing.assert_allclose(found.x, [1, 2], atol=1e-6)


def test_arguments_are_handed_on_and_constant() -> None:
    found = cr.scipy.minimize(lambda x, a, b: ((x - a) ** 2).sum() * b, np.zeros(2), (3.0, cr.tensor(2.0)))
    np.testing.assert_allclose(found.x, 3.0, atol=1e-6)
    found = cr.scipy.minimize(lambda x, a: np.sum((x - a) ** 2), np.zeros(2), 3.0)
    np.testing.assert_allclose(found.x, 3.0, atol=1e-6)


def test_value_and_gradient_come_from_one_call_for_each_point() -> None:
    points = []

    def fun(x: Any) -> Any:
        points.append(tuple(np.asarray(x.detach() if hasattr(x, "detach") else x)))
        return rosenbrock(x)

    found = cr.scipy.minimize(fun, START, method="L-BFGS-B")
    assert len(points) == len(set(points)) == found.nfev


# -- bounds ------------------------------------------------------------------------------------------------------------

LOW, HIGH = np.array([0.0, -np.inf, 0.0]), np.array([0.5, 0.4, np.inf])
BOUNDS = [
    ((0.0, 0.5), [(None, 0.4), (0, None)]),
    ([0.0, np.float64(0.5)], (np.array([-np.inf, 0.0]), np.array([0.4, np.inf]))),
    (optimize.Bounds(0.0, 0.5), optimize.Bounds([-np.inf, 0.0], [0.4, np.inf])),
    ((0, 0.5), (cr.tensor([-np.inf, 0.0]), cr.tensor([0.4, np.inf], dtype=cr.float64))),
]


@pytest.mark.parametrize("a, b", BOUNDS)
@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP", "trust-constr"])
def test_bounds_in_containers(a: Any, b: Any, method: str) -> None:
    target = np.array([2.0, 1.0, -1.0])
    by_hand = {"jac": lambda x: 2 * (x - target)} | (
        {"hess": lambda x: 2 * np.eye(3)} if method == "trust-constr" else {}
    )
    bounds = optimize.Bounds(LOW, HIGH)
    want = optimize.minimize(
        lambda x: np.sum((x - target) ** 2), np.full(3, 0.1), bounds=bounds, method=method, **by_hand
    )
    inside = lambda p: (p["a"] - target[0]) ** 2 + np.sum((p["b"] - target[1:]) ** 2)
    found = cr.scipy.minimize(inside, {"a": 0.1, "b": np.full(2, 0.1)}, bounds={"a": a, "b": b}, method=method)
    np.testing.assert_allclose([found.x["a"], *found.x["b"]], want.x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(want.x, [0.5, 0.4, 0.0], atol=1e-3)


def test_bounds_of_one_array_are_scipys() -> None:
    fun = lambda x: np.sum((x - 1) ** 2)
    for bounds in (
        [(0, 0.5), (None, None)],
        optimize.Bounds([0, -np.inf], [0.5, np.inf]),
        np.array([[0, 0.5], [-9, 9]]),
    ):
        np.testing.assert_allclose(cr.scipy.minimize(fun, np.full(2, 0.1), bounds=bounds).x, [0.5, 1], atol=1e-7)
    np.testing.assert_allclose(cr.scipy.minimize(fun, np.zeros(3), bounds=(None, 0.5)).x, 0.5)
    np.testing.assert_allclose(cr.scipy.minimize(fun, np.zeros((2, 2)), bounds=(None, np.full((2, 2), 0.5))).x, 0.5)


def test_bounds_for_all() -> None:
    fun = lambda p: np.sum((p["a"] - 1) ** 2) + (p["b"] + 3) ** 2
    for bounds in ((-1, 0.5), optimize.Bounds(-1, 0.5), optimize.Bounds([-1, -1, -1], 0.5)):
        found = cr.scipy.minimize(fun, {"a": np.zeros(2), "b": 0.0}, bounds=bounds)
        np.testing.assert_allclose([*found.x["a"], found.x["b"]], [0.5, 0.5, -1])
    pair = cr.scipy.minimize(
        lambda p: (p[0] - 1) ** 2 + np.sum((p[1] + 3) ** 2), (0.0, np.zeros(1)), bounds=((-9, 0.5), (-1, 9))
    )
    np.testing.assert_allclose([pair.x[0], *pair.x[1]], [0.5, -1])
    with pytest.raises(ValueError, match=r"bounds has shape \(2,\), but the bounded array has shape \(3,\)"):
        cr.scipy.minimize(fun, {"a": np.zeros(2), "b": 0.0}, bounds=optimize.Bounds([0, 0], 1))


def test_feasibility_is_kept() -> None:
    bounds = {"a": optimize.Bounds(0, 2, keep_feasible=True), "b": None}

    def fun(p: Any) -> Any:
        if p["a"] < 0:
            raise AssertionError("outside")
        return (p["a"] ** 2 - 0.1 * p["a"]) + p["b"] ** 2

    found = cr.scipy.minimize(fun, {"a": 1.5, "b": 1.0}, bounds=bounds, method="trust-constr")
    np.testing.assert_allclose(found.x["a"], 0.05, atol=1e-4)


@pytest.mark.parametrize(
    "bounds, message",
    [
        ({"a": (0, 1)}, "do not have the structure of x0"),
        ([(0, 1)], "do not have the structure of x0"),
        ({"a": 3.0, "b": None}, r"bounds\['a'\]: expected None, a pair"),
        ({"a": (0, np.ones(3)), "b": None}, r"bounds\['a'\] has shape \(3,\)"),
        ({"a": [(0, 1)] * 3, "b": None}, "a pair for each of 2 elements"),
    ],
)
def test_bounds_that_do_not_fit(bounds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cr.scipy.minimize(lambda p: p["a"].sum(), {"a": np.zeros(2), "b": 0.0}, bounds=bounds)


# -- constraints -------------------------------------------------------------------------------------------------------


def on_circle(x: Any) -> Any:
    return np.sum(x**2) - 1


CONSTRAINTS = [
    on_circle,
    [on_circle],
    (lambda x: np.sum(x**2), 1.0, 1.0),
    ((lambda x: [np.sum(x**2), x[0]]), [1.0, -9.0], [1.0, 9.0]),
    (on_circle, (lambda x: x[0], None, 5.0)),
    optimize.NonlinearConstraint(on_circle, 0, 0),
    [{"type": "eq", "fun": on_circle}, {"type": "ineq", "fun": lambda x, a: a - x[0], "args": (5.0,)}],
    {"type": "eq", "fun": on_circle, "jac": lambda x: 2 * x},
    optimize.NonlinearConstraint(
        on_circle, 0, 0, jac=lambda x: [2 * x], hess=lambda x, v: cr.tensor(2 * v[0] * np.eye(2))
    ),
    [on_circle, optimize.LinearConstraint(np.eye(2), -9, 9)],
]


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
@pytest.mark.filterwarnings("ignore:Constraint options")
@pytest.mark.filterwarnings("ignore:Equality and inequality constraints are specified in the same")
def test_constraints(constraints: Any, method: str) -> None:
    fun = lambda x: np.sum(x * np.array([3.0, 4.0]))
    found = cr.scipy.minimize(fun, np.array([1.0, 0.2]), constraints=constraints, method=method, tol=1e-9)
    np.testing.assert_allclose(found.x, [-0.6, -0.8], atol=1e-6)
    assert type(found.x) is np.ndarray


def test_constraints_of_containers_have_exact_derivatives() -> None:
    """The same number of evaluations as with all derivatives by hand."""
    hand = optimize.NonlinearConstraint(
        lambda x: x[0] ** 3 * x[1], 1, np.inf, jac=lambda x: [[3 * x[0] ** 2 * x[1], x[0] ** 3]],
        hess=lambda x, v: v[0] * np.array([[6 * x[0] * x[1], 3 * x[0] ** 2], [3 * x[0] ** 2, 0]]),
    )  # fmt: skip
    want = optimize.minimize(
        lambda x: x @ x, [2.0, 3.0], jac=lambda x: 2 * x, hess=lambda x: 2 * np.eye(2), constraints=hand,
        method="trust-constr",
    )  # fmt: skip
    found = cr.scipy.minimize(
        lambda p: p["x"] ** 2 + p["y"] ** 2,
        {"x": 2.0, "y": 3.0},
        constraints=(lambda p: p["x"] ** 3 * p["y"], 1, None),
        method="trust-constr",
    )
    assert found.nit == want.nit and found.constr_nfev == want.constr_nfev and found.constr_nhev == want.constr_nhev
    np.testing.assert_allclose([found.x["x"], found.x["y"]], want.x, rtol=1e-8)


@pytest.mark.parametrize("compiled", [False, True])
def test_large_constraints_and_hessians_are_sparse(compiled: bool) -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    n = 60
    seen = []
    found = cr.scipy.minimize(
        lambda x: np.sum((x - 2) ** 4),
        np.zeros(n),
        constraints=(lambda x: x[1:] * x[:-1], None, 1.0),
        method="trust-constr",
        callback=lambda x, state: seen.append(state.jac[0]),
        options={"maxiter": 15},
        compile=compiled,
    )
    assert scipy_sparse.issparse(seen[-1]) and seen[-1].shape == (n - 1, n) and seen[-1].nnz <= 2 * (n - 1)
    x = found.x
    want = np.zeros((n - 1, n))
    want[np.arange(n - 1), np.arange(n - 1)], want[np.arange(n - 1), np.arange(1, n)] = x[1:], x[:-1]
    np.testing.assert_allclose(found.jac[0].toarray(), want)


def test_what_is_no_constraint() -> None:
    with pytest.raises(TypeError, match=r"constraints\[1\] is a float"):
        cr.scipy.minimize(rosenbrock, START, constraints=[on_circle, 3.0], method="SLSQP")
    with pytest.raises(TypeError, match="no function under 'fun'"):
        cr.scipy.minimize(rosenbrock, START, constraints={"type": "eq"}, method="SLSQP")


# -- given derivatives --------------------------------------------------------------------------------------------------


def test_derivatives_that_are_given_are_used() -> None:
    calls = []

    def gradient(p: Any, shift: float) -> Any:
        calls.append("jac")
        return {"a": 2 * (p["a"] - shift), "b": 4 * p["b"]}

    def product(p: Any, v: Any, shift: float) -> Any:
        calls.append("hessp")
        return {"a": 2 * v["a"], "b": 4 * v["b"]}

    def matrix(p: Any, shift: float) -> Any:
        calls.append("hess")
        return np.diag([2.0, 2.0, 4.0])

    fun = lambda p, shift: np.sum((p["a"] - shift) ** 2) + 2 * p["b"] ** 2
    x0 = {"a": np.zeros(2), "b": 1.0}
    for options in ({"hessp": product}, {"hess": matrix}):
        found = cr.scipy.minimize(fun, x0, (1.0,), method="trust-ncg", jac=gradient, **options)
        np.testing.assert_allclose([*found.x["a"], found.x["b"]], [1, 1, 0], atol=1e-6)
    assert set(calls) == {"jac", "hess", "hessp"}
    both = lambda p, shift: (fun(p, shift), {"a": 2 * (p["a"] - shift), "b": 4 * p["b"]})
    found = cr.scipy.minimize(both, x0, (1.0,), jac=True)
    np.testing.assert_allclose(found.x["a"], 1.0, atol=1e-6)
    assert cr.scipy.minimize(rosenbrock, START, jac="2-point", method="BFGS").nfev > 100  # finite differences by SciPy


def test_a_gradient_of_another_shape() -> None:
    with pytest.raises(ValueError, match=r"jac's result has shape \(1,\), but x0 has \(2,\)"):
        cr.scipy.minimize(lambda x: np.sum(x**2), np.ones(2), jac=lambda x: x[:1])


def test_callbacks_get_containers() -> None:
    points, results = [], []
    fun = lambda p: (p["a"] - 1) ** 2 + (p["b"] - 2) ** 4
    cr.scipy.minimize(fun, {"a": 0.0, "b": 0.0}, method="BFGS", callback=points.append)
    assert points and set(points[-1]) == {"a", "b"}

    def with_result(intermediate_result: Any) -> None:
        results.append(intermediate_result)
        if len(results) == 2:
            raise StopIteration

    found = cr.scipy.minimize(fun, {"a": 0.0, "b": 0.0}, method="BFGS", callback=with_result)
    assert len(results) == 2 and results[-1].x["a"] == found.x["a"] and not found.success
    states = []
    cr.scipy.minimize(fun, {"a": 0.0, "b": 0.0}, method="trust-constr", callback=lambda x, s: states.append((x, s)))
    assert set(states[-1][0]) == {"a", "b"}


def test_a_method_of_ones_own() -> None:
    def descend(fun: Any, x0: Any, args: Any = (), jac: Any = None, **ignored: Any) -> Any:
        x = x0
        for _ in range(100):
            x = x - 0.1 * jac(x)
        return optimize.OptimizeResult(x=x, fun=fun(x), success=True)

    found = cr.scipy.minimize(lambda p: (p["a"] - 3) ** 2, {"a": 0.0}, method=descend)
    np.testing.assert_allclose(found.x["a"], 3)


# -- errors ------------------------------------------------------------------------------------------------------------


def test_errors() -> None:
    with pytest.raises(TypeError, match="x0 is of dtype int64"):
        cr.scipy.minimize(rosenbrock, np.ones(3, int))
    with pytest.raises(TypeError, match=r"x0\['a'\] is of dtype complex128"):
        cr.scipy.minimize(rosenbrock, {"a": np.ones(3, complex)})
    with pytest.raises(TypeError, match=r"x0\['name'\] is a str"):
        cr.scipy.minimize(rosenbrock, {"a": np.ones(3), "name": "x"})
    with pytest.raises(ValueError, match="x0 holds no numbers"):
        cr.scipy.minimize(rosenbrock, {"a": np.ones((0, 3)), "b": None})
    with pytest.raises(ValueError, match="unknown method 'newton'"):
        cr.scipy.minimize(rosenbrock, START, method="newton")
    for method in ("BFGS", "Powell", "trust-exact"):
        with pytest.raises(ValueError, match=r"returned an array of shape \(4,\), .* scalar.* least_squares\(\)"):
            cr.scipy.minimize(lambda x: x**2, START, method=method)
    with pytest.raises(RuntimeError, match=r"chainrule.implicit"):
        cr.vmap(lambda x: cr.scipy.minimize(rosenbrock, x).x)(np.ones((2, 3)))


def shifted(a: Any) -> Any:
    return lambda x: np.sum((x - a) ** 2)


LOST = {
    "grad": lambda: cr.grad(lambda a: np.sum(cr.scipy.minimize(shifted(a), np.zeros(2)).x))(2.0),
    "grad, no gradient used": lambda: cr.grad(
        lambda a: np.sum(cr.scipy.minimize(shifted(a), np.zeros(2), method="Powell").x)
    )(2.0),
    "jvp": lambda: cr.jacfwd(lambda a: cr.scipy.minimize(shifted(a), np.zeros(2)).x)(2.0),
    "jacobian": lambda: cr.jacobian(lambda a: cr.scipy.minimize(shifted(a), np.zeros(2)).x, np.ones(2), layout="csr"),
    "a tensor": lambda: cr.scipy.minimize(shifted(cr.tensor(2.0, requires_grad=True)), cr.zeros(2)),
    "args": lambda: cr.scipy.minimize(lambda x, a: shifted(a)(x), cr.zeros(2), cr.tensor(2.0, requires_grad=True)),
    "bounds": lambda: cr.grad(lambda a: np.sum(cr.scipy.minimize(shifted(3.0), np.zeros(2), bounds=(None, a)).x))(2.0),
    "a constraint": lambda: cr.grad(
        lambda a: np.sum(cr.scipy.minimize(shifted(3.0), np.zeros(2), constraints=lambda x: x[0] - a, method="SLSQP").x)
    )(2.0),
    "a side": lambda: cr.grad(
        lambda a: np.sum(cr.scipy.minimize(shifted(3.0), np.zeros(2), constraints=(np.sum, None, a), method="SLSQP").x)
    )(2.0),
    "least_squares": lambda: cr.grad(lambda a: np.sum(cr.scipy.least_squares(lambda x: x - a, np.zeros(2)).x))(2.0),
    "root": lambda: cr.grad(lambda a: np.sum(cr.scipy.root(lambda x: x - a, np.zeros(2)).x))(2.0),
    "solve_ivp": lambda: cr.grad(lambda a: np.sum(cr.scipy.solve_ivp(lambda t, y: -a * y, (0, 1), np.ones(2)).y))(2.0),
    "y0": lambda: cr.grad(lambda y: np.sum(cr.scipy.solve_ivp(lambda t, y: -y, (0, 1), y).y))(np.ones(2)),
    "solve_bvp": lambda: cr.grad(
        lambda a: np.sum(
            cr.scipy.solve_bvp(
                lambda x, y: a * y[::-1], lambda p, q: np.stack([p[0], q[0] - 1]), np.linspace(0, 1, 4), np.ones((2, 4))
            ).y
        )
    )(2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", LOST)
def test_no_derivative_is_lost(name: str) -> None:
    """Derivatives of a solver's result, which SciPy does not propagate, raise an error instead of returning zero."""
    with pytest.raises((RuntimeError, TypeError), match=r"SciPy's solvers are not differentiable|would drop"):
        LOST[name]()


def test_without_history_there_is_nothing_to_lose() -> None:
    a = cr.tensor(2.0, requires_grad=True)
    with cr.no_grad():
        np.testing.assert_allclose(cr.scipy.minimize(shifted(a), cr.zeros(2)).x.numpy(), 2.0, atol=1e-4)
    np.testing.assert_allclose(cr.scipy.minimize(shifted(a.detach()), cr.zeros(2)).x.numpy(), 2.0, atol=1e-4)


def test_errors_of_the_function_are_its_own() -> None:
    def fun(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        cr.scipy.minimize(fun, START)


def test_warnings_of_compile_name_the_users_function() -> None:
    def drawn(x: Any, *_: Any) -> Any:
        return 0.0 * np.random.default_rng().random() + x**2

    def state(t: float, y: Any) -> Any:
        return -drawn(y)

    def loss(x: Any) -> Any:
        return np.sum(drawn(x))

    solvers = {
        "loss": lambda: cr.scipy.minimize(loss, np.ones(2), method="Newton-CG", compile=True),
        "drawn": lambda: cr.scipy.least_squares(drawn, np.ones(2), compile=True),
        "state": lambda: cr.scipy.solve_ivp(state, (0, 0.1), np.ones(2), method="BDF", compile=True),
    }
    for name, solve in solvers.items():
        with pytest.warns(UserWarning, match="runs eagerly in every call") as said:
            solve()
        assert {str(warning.message).split(":")[1] for warning in said} == {f" {name} (test_minimize.py"}
