"""``minimize(method="ipopt")``, through each interface that is installed, and its derivatives, which need none."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import chainrule as cr

optimize = pytest.importorskip("scipy.optimize")
sparse = pytest.importorskip("scipy.sparse")
interfaces = importlib.import_module("chainrule.scipy.ipopt_interfaces")
ipopt = importlib.import_module("chainrule.scipy.ipopt")
R = np.random.default_rng(0)


@pytest.fixture(params=["cyipopt", "casadi"])
def interface(request: Any, monkeypatch: Any) -> str:
    """Use one interface. The test is skipped if it is not installed."""
    pytest.importorskip(request.param, reason=f"{request.param}, an interface of Ipopt, is not installed")
    monkeypatch.setattr(interfaces, "INTERFACES", {request.param: interfaces.INTERFACES[request.param]})
    return str(request.param)


@pytest.fixture
def programs(monkeypatch: Any) -> list[Any]:
    """Replace Ipopt by a function that stores the problem and returns the start."""
    found: list[Any] = []

    def run(module: Any, program: Any, options: Any) -> Any:
        found.append((program, options))
        zeros = np.zeros(len(program.limits[0])), np.zeros(len(program.start))
        return interfaces.IpoptResult(program.start, *zeros, "Solve_Succeeded")

    monkeypatch.setattr(interfaces, "INTERFACES", {"numpy": run})
    return found


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def minimize(*args: Any, **kwargs: Any) -> Any:
    return cr.scipy.minimize(*args, method="ipopt", **kwargs)


def dense(values: Any, at: Any, shape: tuple[int, int]) -> Any:
    matrix = np.zeros(shape)
    np.add.at(matrix, at, values)
    return matrix


def differences(function: Any, x: Any, step: float = 1e-6) -> Any:
    return np.stack([(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))], -1)


# -- the derivatives that Ipopt gets ------------------------------------------------------------------------------------


def products(x: Any) -> Any:
    return np.sin(x[1:]) * x[:-1]


def norms(x: Any) -> Any:
    return [np.sum(x**2), x[0] ** 3]


def with_matrices(n: int) -> list[Any]:
    """Constraints of all kinds, in mixed order: linear, automatic, with the user's derivatives, dictionaries."""
    own = optimize.NonlinearConstraint(
        lambda x: x[:2] ** 3, -9, [8, 9], jac=lambda x: np.eye(2, n) * 3 * x[:2, None] ** 2,
        hess=lambda x, v: sparse.diags_array(np.concatenate([6 * v * x[:2], np.zeros(n - 2)])),
    )  # fmt: skip
    own_jacobian = optimize.NonlinearConstraint(
        lambda x: x[:1] * x[1:2], -7, 7, jac=lambda x: sparse.coo_array(([x[1], x[0]], ([0, 0], [0, 1])), (1, n))
    )
    return [
        optimize.LinearConstraint(sparse.eye_array(n, format="csc")[:3], -5, 5),
        (products, None, 4.0),
        own,
        {"type": "ineq", "fun": lambda x, a: a - norms(x)[0], "args": (3.0,)},
        own_jacobian,
        optimize.LinearConstraint(np.ones(n), 1, 1),
        lambda x: norms(x),
    ]


@pytest.mark.parametrize("n", [5, 60])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("hess", ["automatic", "by the user"])
def test_derivatives(programs: list[Any], n: int, compiled: bool, hess: str) -> None:
    f = lambda x: np.sum(np.sin(x) * x**2) + np.sum(x[1:] * x[:-1])
    own = {} if hess == "automatic" else {"hess": lambda x: sparse.csr_array(cr.hessian(f, x))}
    minimize(f, R.standard_normal(n), constraints=with_matrices(n), bounds=(-9, None), compile=compiled, **own)
    program, options = programs[0]
    m = len(program.limits[0])
    assert m == 3 + (n - 1) + 2 + 1 + 1 + 1 + 2 and options["print_level"] == 0
    for _ in range(3):
        x, sigma, multipliers = R.standard_normal(n), R.standard_normal(), R.standard_normal(m)
        assert program.objective(x) == pytest.approx(f(x))
        np.testing.assert_allclose(program.gradient(x), differences(f, x), atol=1e-6)
        J = dense(program.jacobian(x), program.jacobian_at, (m, n))
        np.testing.assert_allclose(J, differences(program.constraints, x), atol=1e-6)
        lower = dense(program.hessian(x, sigma, multipliers), program.hessian_at, (n, n))
        assert np.array_equal(lower, np.tril(lower))

        def gradient(x: Any, sigma: Any = sigma, multipliers: Any = multipliers) -> Any:
            jacobian = dense(program.jacobian(x), program.jacobian_at, (m, n))
            return sigma * program.gradient(x) + multipliers @ jacobian

        np.testing.assert_allclose(lower, np.tril(differences(gradient, x)), atol=1e-6)
    if n == 60:  # the matrices are sparse
        assert len(program.jacobian_at[0]) < 8 * n and len(program.hessian_at[0]) < 3 * n


def test_limits(programs: list[Any]) -> None:
    x = np.full(5, 0.5)
    found = minimize(rosenbrock, x, constraints=with_matrices(5), bounds=[(0, None), (None, 1)] + 3 * [(None, None)])
    program, _ = programs[0]
    np.testing.assert_array_equal(program.bounds, [[0, *[-np.inf] * 4], [np.inf, 1, *[np.inf] * 3]])
    shown = dict(zip(range(7), found.constr, strict=True))
    np.testing.assert_allclose(shown[0], x[:3])
    np.testing.assert_allclose(shown[1], products(x))
    np.testing.assert_allclose([*shown[2], *shown[3], *shown[4], *shown[5]], [0.125, 0.125, 3 - 1.25, 0.25, 2.5])
    np.testing.assert_allclose(shown[6], [1.25, 0.125])
    low, high = program.limits
    values = program.constraints(x)
    assert found.constr_violation == pytest.approx(np.max(np.maximum(np.maximum(low - values, values - high), 0)))
    assert found.constr_violation == pytest.approx(1.5)  # the sum is 2.5 and not 1


def test_settings(programs: list[Any]) -> None:
    bounds = optimize.Bounds(0, 1, keep_feasible=True)
    minimize(rosenbrock, np.ones(3), tol=1e-4, bounds=bounds, options={"maxiter": 7, "disp": True, "mu_init": 0.5})
    minimize(rosenbrock, np.ones(3), hess=optimize.BFGS())
    minimize(rosenbrock, np.ones(3), options={"hessian_approximation": "limited-memory"})
    (_, first), *others = programs
    own = {"tol": 1e-4, "max_iter": 7, "print_level": 5, "mu_init": 0.5, "bound_relax_factor": 0.0}
    assert first == interfaces.DEFAULTS | own
    assert [program.hessian for program, _ in others] == [None, None]
    assert others[0][1]["hessian_approximation"] == "limited-memory"


def branching(x: Any) -> Any:
    return x[1:] * x[:-1] if x[0] > 0 else x[1:] ** 2 + x[0]


@pytest.mark.parametrize("compiled", [False, True])
def test_another_pattern(programs: list[Any], compiled: bool) -> None:
    """Entries outside of the pattern raise; missing ones are zero."""
    minimize(rosenbrock, np.ones(60), constraints=branching, compile=compiled)
    with pytest.raises(RuntimeError, match="the Jacobian of the constraints has an entry in row 1 and column 0"):
        programs[0][0].jacobian(-np.ones(60))
    few = lambda x: x[1:] * x[:-1] if x[0] > 0 else x[1:] * 2.0
    minimize(rosenbrock, np.ones(60), constraints=few, compile=compiled)
    program, _ = programs[1]
    J = dense(program.jacobian(-np.ones(60)), program.jacobian_at, (59, 60))
    np.testing.assert_array_equal(J, 2 * np.eye(59, 60, 1))


def test_matrices_with_repeated_entries() -> None:
    twice = sparse.coo_array(([1.0, 2.0, 5.0], ([0, 0, 1], [1, 1, 0])), (2, 2))
    found = ipopt.FixedMatrix([(lambda: twice, slice(0, 2)), (lambda: np.eye(2), slice(1, 3))], 2, (), False, "it")
    np.testing.assert_array_equal(dense(found(), (found.rows, found.cols), (3, 2)), [[0, 3], [6, 0], [0, 1]])


ERRORS = [
    (
        {"constraints": (lambda x: x, [0.0, 1.0], None)},
        r"constraints\[0\] has 3 elements.*lower limit has shape \(2,\)",
    ),
    (
        {"constraints": (lambda x: x, 1.0, [2.0, 2.0, 0.0])},
        r"constraints\[0\]: at element 2 the lower limit 1 is not below",
    ),
    ({"bounds": [(0, 1), (2, 1), (0, 1)]}, "bounds: at element 1 the lower limit 2 is not below the upper limit 1"),
    ({"constraints": optimize.LinearConstraint(np.eye(2), 0, 0)}, "2 columns, but x has 3 elements"),
    ({"constraints": {"type": "equality", "fun": np.sum}}, r"constraints\[0\]\['type'\] is 'equality'"),
    ({"constraints": optimize.NonlinearConstraint(np.sum, 0, 1, keep_feasible=True)}, "has keep_feasible"),
    (
        {"constraints": optimize.NonlinearConstraint(lambda x: x[:2], 0, 1, jac=lambda x: np.eye(3, 2))},
        r"the Jacobian of the constraints: a given derivative has the shape \(3, 2\), expected 2 × 3",
    ),
    ({"hess": lambda x: np.ones(9)}, r"the Hessian of the Lagrangian: a given derivative has the shape \(1, 9\)"),
    ({"jac": "2-point"}, "jac is a function, True or None"),
    ({"hess": "2-point"}, "hess is a function, a HessianUpdateStrategy or None"),
    ({"hessp": lambda x, p: p}, "hessp is not used"),
]


@pytest.mark.parametrize("given, message", ERRORS)
def test_arguments_that_do_not_fit(programs: list[Any], given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        minimize(rosenbrock, np.ones(3), **given)
    assert programs == []


def test_complex_constraints(programs: list[Any]) -> None:
    with pytest.raises(TypeError, match=r"constraints\[0\] is complex"):
        minimize(rosenbrock, np.ones(3), constraints=lambda x: x * 1j)


def test_without_ipopt(monkeypatch: Any) -> None:
    monkeypatch.setattr(interfaces, "INTERFACES", {"no_such_module_of_ipopt": None})
    with pytest.raises(ModuleNotFoundError, match=r"pip install chainrule\[ipopt\]"):
        minimize(rosenbrock, np.ones(3))


# -- solutions ----------------------------------------------------------------------------------------------------------


def test_hock_schittkowski_71(interface: str) -> None:
    """The optimum is published; the conditions of Karush, Kuhn and Tucker hold with the multipliers."""
    f = lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
    constraints = [(np.prod, 25, None), lambda x: np.sum(x**2) - 40]
    found = minimize(f, np.array([1.0, 5.0, 5.0, 1.0]), bounds=[(1, 5)] * 4, constraints=constraints)
    assert found.success and found.status == 0 and found.nit > 0 and found.nhev > 0
    np.testing.assert_allclose(found.x, [1, 4.74299964, 3.82114998, 1.37940829], rtol=1e-6)
    assert found.fun == pytest.approx(17.0140173, rel=1e-7) and found.constr_violation < 1e-6
    by_hand = differences(lambda x: np.array([np.prod(x), np.sum(x**2)]), found.x)
    stationary = found.jac + np.concatenate(found.v) @ by_hand + found.bound_multipliers
    np.testing.assert_allclose(stationary, 0, atol=1e-6)
    assert found.bound_multipliers[0] < -0.5 and np.all(abs(found.bound_multipliers[1:]) < 1e-6)
    assert found.v[0][0] < 0  # a lower limit is active


@pytest.mark.parametrize("compiled", [False, True])
def test_as_trust_constr(interface: str, compiled: bool) -> None:
    f = lambda p: np.sum((p["a"] - 2) ** 4) + np.sum(np.exp(p["b"])) * p["c"] ** 2
    start = {"a": np.zeros((2, 3)), "b": np.ones(2), "c": 1.0}
    given: dict[str, Any] = {
        "bounds": {"a": (None, 1.5), "b": None, "c": (0.5, None)},
        "constraints": [lambda p: np.sum(p["a"], 0) - 1, (lambda p: [p["b"] * p["c"], p["a"][0, 0]], -1.0, 1.0)],
    }
    found = minimize(f, start, compile=compiled, **given)
    other = cr.scipy.minimize(f, start, method="trust-constr", tol=1e-10, **given)
    assert found.success and found.fun == pytest.approx(other.fun, rel=1e-5)
    for a, b in zip(cr.tree.tree_leaves(found.x), cr.tree.tree_leaves(other.x), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)
    assert cr.tree.tree_structure(found.jac) == cr.tree.tree_structure(found.bound_multipliers)
    assert [v.shape for v in found.v] == [v.shape for v in found.constr] == [(3,), (3,)]


@pytest.mark.parametrize("compiled", [False, True])
def test_large_and_sparse(interface: str, compiled: bool) -> None:
    """A chain of given length between two points: the catenary is known in closed form."""
    n = 101
    h = 2 / (n - 1)

    def ends(p: Any) -> Any:
        return np.stack([p["y"][0] - np.cosh(1.0), p["y"][-1] - np.cosh(1.0)])

    slope = lambda p: np.diff(p["y"]) / h
    energy = lambda p: np.sum((p["y"][1:] + p["y"][:-1]) / 2 * np.sqrt(1 + slope(p) ** 2)) * h
    length = lambda p: np.sum(np.sqrt(1 + slope(p) ** 2)) * h - 2 * np.sinh(1.0)
    start = {"y": np.full(n, np.cosh(1.0)) - 0.5 * np.sin(np.linspace(0, np.pi, n))}
    found = minimize(energy, start, constraints=[ends, length], compile=compiled)
    assert found.success
    np.testing.assert_allclose(found.x["y"], np.cosh(np.linspace(-1, 1, n)), atol=2e-4)


def test_infeasible_problems(interface: str) -> None:
    impossible = [(lambda x: x[0], 0.0, 1.0), lambda x: np.sum(x**2) + 1]
    found = minimize(lambda x: np.sum(x), np.ones(3), constraints=impossible)
    assert not found.success and found.status == 2
    assert "Infeasible" in found.message and "1, in constraints[1], element 0" in found.message
    assert found.constr_violation == pytest.approx(1, abs=1e-3)


def test_more_equations_than_unknowns(interface: str) -> None:
    found = minimize(lambda x: np.sum(x**2), np.ones(2), constraints=lambda x: np.stack([x[0], x[1], x[0] + x[1] - 1]))
    assert not found.success and found.status == -10 and "(3) than unknowns (2)" in found.message


def test_as_many_equations_as_unknowns(interface: str) -> None:
    found = minimize(lambda x: 0 * x[0], np.ones(2), constraints=lambda x: np.stack([x[0] * x[1] - 6, x[0] - x[1] - 1]))
    assert found.success
    np.testing.assert_allclose(found.x, [3, 2], rtol=1e-6)


def test_the_limit_of_iterations(interface: str) -> None:
    found = minimize(rosenbrock, np.zeros(4), options={"maxiter": 3})
    assert not found.success and found.status == -1 and found.nit == 3
    assert "maximum of 3 iterations (options['maxiter'])" in found.message


@pytest.mark.parametrize("options", [{"no_such_option": 1}, {"mu_strategy": "no such value"}])
def test_options_that_ipopt_rejects(interface: str, options: Any) -> None:
    with pytest.raises(ValueError, match=f"Ipopt has no option '{next(iter(options))}', or not with this value"):
        minimize(rosenbrock, np.zeros(4), options=options)


def test_callbacks(interface: str) -> None:
    points, results = [], []

    def with_result(intermediate_result: Any) -> None:
        results.append(intermediate_result)

    f = lambda p: rosenbrock(p["x"])
    first = minimize(f, {"x": np.zeros(4)}, callback=points.append)
    minimize(f, {"x": np.zeros(4)}, callback=with_result)
    assert len(points) == len(results) == first.nit
    np.testing.assert_array_equal(points[-1]["x"], first.x["x"])
    for point, result in zip(points, results, strict=True):
        np.testing.assert_array_equal(point["x"], result.x["x"])
        assert result.fun == pytest.approx(rosenbrock(point["x"]), rel=1e-12)
    assert [result.nit for result in results] == list(range(1, first.nit + 1))


def test_callbacks_of_vectors_stop(interface: str) -> None:
    points: list[Any] = []

    def callback(x: Any) -> None:
        points.append(x)
        if len(points) == 3:
            raise StopIteration

    found = minimize(rosenbrock, np.zeros(4), callback=callback)
    assert not found.success and found.status == 5 and found.message == "`callback` raised `StopIteration`."
    assert found.nit == 3 and len(set(map(tuple, points))) == 3
    np.testing.assert_array_equal(found.x, points[-1])


@pytest.mark.parametrize("place", ["fun", "constraint", "callback"])
@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt])
def test_exceptions_reach_the_user(interface: str, place: str, kind: type[BaseException]) -> None:
    calls = {"fun": 0, "constraint": 0, "callback": 0}

    def fail(where: str) -> None:
        calls[where] += 1
        if where == place and calls[where] == 4:
            raise kind("from the user")

    def fun(x: Any) -> Any:
        fail("fun")
        return rosenbrock(x)

    def constraint(x: Any) -> Any:
        fail("constraint")
        return np.sum(x) - 3

    with pytest.raises(kind, match="from the user"):
        minimize(fun, np.zeros(4), constraints=constraint, callback=lambda x: fail("callback"))
    assert calls[place] == 4


def test_points_outside_of_the_domain_shorten_steps(interface: str) -> None:
    with np.errstate(invalid="ignore", divide="ignore"):
        found = minimize(lambda x: np.sum(x) - np.sum(np.log(x)), np.array([0.01, 30.0]))
    np.testing.assert_allclose(found.x, 1, rtol=1e-6)
    bad = minimize(lambda x: np.sum(x) + np.nan, np.ones(2))
    assert not bad.success and bad.status == -13 and "NaN" in bad.message


def test_bounds_and_fixed_elements(interface: str) -> None:
    seen = []

    def fun(x: Any) -> Any:
        seen.append(np.array(x.detach() if hasattr(x, "detach") else x))
        return np.sum((x - np.array([3.0, 1.0, -2.0])) ** 2)

    bounds = optimize.Bounds([0, 0.5, 0], [2, 0.5, np.inf], keep_feasible=True)
    found = minimize(fun, np.array([5.0, 5.0, 5.0]), bounds=bounds)
    np.testing.assert_allclose(found.x, [2, 0.5, 0], atol=1e-6)
    assert found.bound_multipliers[0] == pytest.approx(2, abs=1e-4)
    assert found.bound_multipliers[2] == pytest.approx(-4, abs=1e-4)
    assert np.min(seen) >= 0 and np.max(np.stack(seen)[:, 0]) <= 2


def test_derivatives_of_the_user(interface: str) -> None:
    own = [
        {"jac": lambda x: 2 * (x - 1)},
        {"jac": lambda x: 2 * (x - 1), "hess": lambda x: 2 * np.eye(3)},
        {"hess": lambda x: sparse.eye_array(3) * 2},
        {"hess": optimize.BFGS()},
        {"options": {"hessian_approximation": "limited-memory"}},
    ]
    for given in own:
        found = minimize(lambda x: np.sum((x - 1) ** 2), np.zeros(3), constraints=lambda x: x[0] * x[1] - 2, **given)
        assert found.success
        np.testing.assert_allclose(found.x, [np.sqrt(2), np.sqrt(2), 1], atol=1e-5)
    both = minimize(lambda x: (np.sum((x - 1) ** 2), 2 * (x - 1)), np.zeros(3), jac=True, hess=lambda x: 2 * np.eye(3))
    np.testing.assert_allclose(both.x, 1)


def test_linear_programs(interface: str) -> None:
    """The Hessian of the Lagrangian has no entries, for few and for many unknowns."""
    for n in (3, 60):
        c = np.linspace(1, 2, n)
        constraint = optimize.LinearConstraint(np.ones(n), 1, 1)
        found = minimize(lambda x, c=c: np.sum(c * x), np.full(n, 1 / n), bounds=(0, None), constraints=constraint)
        np.testing.assert_allclose(found.x, np.eye(n)[0], atol=1e-5)
        assert found.v[0][0] == pytest.approx(-1, abs=1e-5)


def test_tensors_and_progress(interface: str, capsys: Any) -> None:
    pytest.importorskip("tqdm")
    found = minimize(lambda x: ((x - 2) ** 2).sum(), cr.zeros(2), constraints=lambda x: x[0] - 1, progress=True)
    assert type(found.x) is cr.Tensor and found.x.dtype == cr.float32
    np.testing.assert_allclose(found.x.numpy(), [1, 2], atol=1e-4)
    assert "minimize" in capsys.readouterr().err


def test_a_checkpoint_resumes(interface: str, tmp_path: Any) -> None:
    file = tmp_path / "run.npz"
    first = minimize(rosenbrock, np.zeros(5), checkpoint=file)
    calls = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return rosenbrock(x)

    again = minimize(counted, np.zeros(5), checkpoint=file)
    assert np.array_equal(first.x, again.x) and len(calls) < first.nfev + 2 * first.nhev
