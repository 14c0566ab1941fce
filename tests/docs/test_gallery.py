"""Run each script of the gallery at a small size, and compare its results with an independent computation."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import chainrule as cr

pytest.importorskip("scipy")
pytest.importorskip("matplotlib")

from scipy import integrate, optimize, special, stats

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "gallery"
_SPEC = importlib.util.spec_from_file_location("gallery", ROOT / "tools" / "gallery.py")
assert _SPEC is not None and _SPEC.loader is not None
gallery = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(gallery)

IPOPT = any(importlib.util.find_spec(name) for name in ("cyipopt", "casadi"))
SMALL: dict[str, dict[str, Any]] = {
    "brusselator": {"size": 8},
    "bundle_adjustment": {"points": 40},
    "cart_pole": {"intervals": 16} | ({} if IPOPT else {"method": "trust-constr"}),
    "custom_operation": {"points": 150},
    "dask_logistic": {"rows": 2000, "columns": 5, "chunk": 500},
    "gaussian_process": {"points": 40},
    "hmc": {"draws": 400},
    "kalman": {"years": 30},
    "lens": {"rays": 12},
    "pinn": {"steps": 20},
    "robust_regression": {},
    "sir": {"again": 20},
    "topology": {"w": 12, "h": 4, "radius": 1.5, "steps": 5},
}
NEEDS = {"dask_logistic": "dask.array", "robust_regression": "pandas"}


@pytest.fixture(scope="module")
def run() -> Callable[[str], tuple[ModuleType, Any, str]]:
    """Return the module of a script, its results at the small size, and its output. Each script runs once."""
    known: dict[str, tuple[ModuleType, Any, str]] = {}

    def script(name: str) -> tuple[ModuleType, Any, str]:
        if name in NEEDS:
            pytest.importorskip(NEEDS[name])
        if name not in known:
            module = gallery.script(name)
            known[name] = module, *gallery.solved(module, **SMALL[name])
        return known[name]

    return script


Run = Callable[[str], tuple[ModuleType, Any, str]]


def slopes(function: Callable[[Any], Any], x: Any, step: float = 1e-5) -> Any:
    """Return central differences with respect to each element of a vector, as columns."""
    units = step * np.eye(len(x))
    return np.stack([(function(x + unit) - function(x - unit)) / (2 * step) for unit in units], -1)


# -- the pages ---------------------------------------------------------------------------------------------------------


def test_each_script_of_the_gallery_has_a_page_and_a_test() -> None:
    assert sorted(SMALL) == gallery.NAMES
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    for name in gallery.NAMES:
        text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
        assert f"<!-- script: {name} -->" in text and f"({name}.md)" in index
        lines = len((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8").splitlines())
        assert 40 <= lines <= 160, f"{name}.py has {lines} lines"
        for scheme in gallery.STYLES:
            assert f"{name}-{scheme}.png#only-{scheme}" in text and (PAGES / f"{name}-{scheme}.png").is_file()


def test_times_on_the_pages_are_those_of_the_file() -> None:
    times = json.loads((PAGES / "times.json").read_text(encoding="utf-8"))
    assert sorted(times) == gallery.NAMES
    for name, entry in times.items():
        shown = re.search(
            r"<!-- times -->\n\n(.*?)\n\n<!-- /times -->", (PAGES / f"{name}.md").read_text(encoding="utf-8"), re.DOTALL
        )
        assert shown and shown[1] == gallery.table(entry), name


@pytest.mark.parametrize("name", sorted(SMALL))
def test_pictures_are_drawn(run: Run, name: str, tmp_path: Path) -> None:
    module, found, said = run(name)
    assert said.strip()
    figure = module.draw(found)
    assert figure.axes and all(axis.get_title() for axis in figure.axes if axis.get_label() != "<colorbar>")
    gallery.plt.close(figure)


# -- the numbers -------------------------------------------------------------------------------------------------------


def test_kalman(run: Run) -> None:
    module, found, _ = run("kalman")
    steps = np.diff(module.FLOW)

    def likelihood(p: Any, steps: Any = steps) -> Any:
        """Return the log likelihood of the differences between years, in one expression."""
        noise, walk = np.exp(p)
        n = len(steps)
        covariance = (2 * noise + walk) * np.eye(n) - noise * (np.eye(n, k=1) + np.eye(n, k=-1))
        return stats.multivariate_normal(np.zeros(n), covariance).logpdf(steps)

    p = np.array([9.0, 7.5])
    np.testing.assert_allclose(-module.loss(p, module.FLOW), likelihood(p), rtol=1e-10)
    short = steps[: len(found.y) - 1]
    np.testing.assert_allclose(-found.fun, likelihood(found.p, short), rtol=1e-10)
    np.testing.assert_allclose(slopes(lambda p: likelihood(p, short), found.p), 0, atol=1e-4)
    hessian = slopes(lambda p: slopes(lambda q: -likelihood(q, short), p, 1e-4), found.p, 1e-4)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(hessian), rtol=1e-3)


def test_topology(run: Run) -> None:
    module, found, _ = run("topology")
    beam = found.beam
    value, slope = cr.value_and_grad(beam.compliance)(found.density)
    expected, by_hand = beam.by_hand(found.density)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(slope, by_hand, rtol=1e-7)
    assert found.values[-1] < 0.7 * found.values[0] and np.mean(found.film[-1]) == pytest.approx(0.5, abs=1e-4)
    rigid = np.array(
        [[1, 0] * 4, [0, 1] * 4, [0, 0, 0, 1, -1, 1, -1, 0]]
    )  # translations and a rotation cause no strain
    np.testing.assert_allclose(module.element() @ rigid.T, 0, atol=1e-12)


def test_hmc(run: Run) -> None:
    module, found, _ = run("hmc")
    mean, log_spread, density = found.grid
    for draws, exact, spread in (
        (found.flat[:, 0], density.sum(1) @ mean, 0.1),
        (found.flat[:, 1], density.sum(0) @ log_spread, 0.5),
    ):
        assert abs(draws.mean() - exact) < 0.25 * spread
    assert found.r_hat < 1.05
    rng = np.random.default_rng(1)
    q, p = found.samples[-1], rng.standard_normal(found.samples[-1].shape)
    there, end = module.trajectory(q, p, 0.1)
    back, start = module.trajectory(there, -end, 0.1)
    np.testing.assert_allclose(back, q, atol=1e-9)
    np.testing.assert_allclose(-start, p, atol=1e-9)


def test_pinn(run: Run) -> None:
    module, found, _ = run("pinn")
    torch = module.torch
    t, x = (torch.tensor([[0.3], [0.6]], dtype=torch.float64, requires_grad=True) for _ in range(2))
    residual = module.residual(torch, found.net, t, x).detach().numpy()

    def u(t: Any, x: Any) -> Any:
        with torch.no_grad():
            return module.field(torch, found.net, torch.tensor(t), torch.tensor(x)).numpy()

    a, h = np.array([[0.3], [0.6]]), 1e-4
    u_t, u_x = (u(a + h, a) - u(a - h, a)) / (2 * h), (u(a, a + h) - u(a, a - h)) / (2 * h)
    u_xx = (u(a, a + h) - 2 * u(a, a) + u(a, a - h)) / h**2
    np.testing.assert_allclose(residual, u_t + u(a, a) * u_x - module.VISCOSITY * u_xx, rtol=1e-5, atol=1e-6)
    assert found.losses == module.train(torch, SMALL["pinn"]["steps"])[1], "compiled as not compiled, to the last bit"
    assert found.losses[-1] < 0.2 * found.losses[0]
    grid = np.linspace(-0.9, 0.9, 7)
    at = np.full_like(grid, 0.5)
    exact, by_t = module.exact(at, grid), (module.exact(at + h, grid) - module.exact(at - h, grid)) / (2 * h)
    by_x = (module.exact(at, grid + h) - module.exact(at, grid - h)) / (2 * h)
    by_xx = (module.exact(at, grid + h) - 2 * exact + module.exact(at, grid - h)) / h**2
    np.testing.assert_allclose(by_t + exact * by_x, module.VISCOSITY * by_xx, atol=1e-5)


@pytest.mark.oracle
def test_pinn_as_pytorch(run: Run) -> None:
    theirs = pytest.importorskip("torch")
    module, found, _ = run("pinn")
    np.testing.assert_allclose(found.losses[:10], module.train(theirs, 20)[1][:10], rtol=1e-9)


def test_brusselator(run: Run) -> None:
    module, found, said = run("brusselator")
    assert "128 unknowns; the Jacobian has 768 entries of 16384" in said
    slow = module.by_differences(8)
    np.testing.assert_allclose(found.path.y["u"][..., -1].ravel(), slow.y[:64, -1], rtol=1e-3)
    rates, start = module.brusselator(8)

    def flat(y: Any) -> Any:
        u, v = y.reshape(2, 8, 8)
        return np.concatenate([part.ravel() for part in rates(0.0, {"u": u, "v": v}).values()])

    first = np.concatenate([part.ravel() for part in start.values()])
    np.testing.assert_allclose(found.jacobian.toarray(), slopes(flat, first), atol=1e-5)


def test_cart_pole(run: Run) -> None:
    module, found, said = run("cart_pole")
    assert "85 unknowns, 72 equations" in said and found.result.success and found.result.constr_violation < 1e-6
    names = list(found.z)
    angle, spin, force = np.random.default_rng(0).normal(size=(3, 5))
    pushed, turned = module.accelerations(angle, spin, force)
    both, length, pole = module.CART + module.POLE, module.LENGTH, module.POLE
    for k in range(5):  # Lagrange's equations, with the mass matrix
        mass = [[both, pole * length * np.cos(angle[k])], [np.cos(angle[k]), length]]
        right = [force[k] + pole * length * spin[k] ** 2 * np.sin(angle[k]), -module.GRAVITY * np.sin(angle[k])]
        np.testing.assert_allclose(np.linalg.solve(mass, right), [pushed[k], turned[k]], rtol=1e-10)
    cost, start, bounds, constraints = module.problem(16)

    def named(x: Any) -> Any:
        return dict(zip(names, x.reshape(5, -1), strict=True))

    by_differences = optimize.minimize(
        lambda x: cost(named(x)), np.concatenate(list(start.values())), method="SLSQP", options={"maxiter": 200},
        bounds=[bounds[name] or (None, None) for name in names for _ in range(17)],
        constraints={"type": "eq", "fun": lambda x: np.concatenate([*constraints[0](named(x)), constraints[1](named(x))])},
    )  # fmt: skip
    assert found.result.fun == pytest.approx(by_differences.fun, rel=1e-4)
    assert np.max(np.abs(found.z["force"])) == pytest.approx(module.FORCE, rel=1e-4)  # the limit is active


@pytest.mark.skipif(not IPOPT, reason="neither cyipopt nor CasADi, the interfaces of Ipopt, is installed")
def test_cart_pole_swings_up() -> None:
    module = gallery.script("cart_pole")
    found, _ = gallery.solved(module)
    assert found.result.success and found.result.nit < 50

    def rates(t: float, y: Any) -> Any:
        return [*y[2:], *module.accelerations(y[1], y[3], np.interp(t, found.t, found.z["force"]))]

    path = integrate.solve_ivp(rates, (0, module.DURATION), np.zeros(4), max_step=0.02, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(path.y[:2, -1], [module.DISTANCE, np.pi], atol=0.06)
    pytest.importorskip("casadi")
    assert found.result.fun == pytest.approx(module.by_casadi(100), rel=1e-6)


def test_bundle_adjustment(run: Run) -> None:
    module, found, said = run("bundle_adjustment")
    assert "252 unknowns, 320 residuals, 4160 entries in the Jacobian" in said
    alternatives = module.alternatives()
    assert alternatives["chainrule"]() == pytest.approx(alternatives["SciPy, with the pattern"](), rel=1e-3)
    assert np.sqrt(np.mean(found.end**2)) < 0.3 < np.sqrt(np.mean(found.start**2))


def test_sir(run: Run) -> None:
    module, found, _ = run("sir")
    p, covariance = module.by_curve_fit(module.IN_BED)
    np.testing.assert_allclose(found.p, p, atol=1e-3)
    n = len(module.DAYS)
    np.testing.assert_allclose(
        found.covariance, covariance * (n - 2) / n, rtol=0.1
    )  # the Gauss–Newton covariance, with n − 2 instead of n
    y0 = [module.BOYS - 3.0, 3.0]
    path = integrate.solve_ivp(
        lambda _, y: module.rates(y, found.p), (0, 13), y0, t_eval=module.DAYS, rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(found.curve, path.y[1], atol=0.05)
    assert np.std(found.refits, 0) == pytest.approx(np.sqrt(np.diagonal(found.covariance)), rel=0.5)


def test_gaussian_process(run: Run) -> None:
    pytest.importorskip("sklearn")
    module, found, _ = run("gaussian_process")
    theirs = module.by_sklearn(found.x, found.y)
    theirs.optimizer = None
    theirs.fit(found.x[:, None], found.y)
    slow, long, fast, short, noise = found.p  # logarithms of variances and lengths, as in the reference
    theta = np.array([2 * slow, long, 2 * fast, short, 2 * noise])
    value, slope = theirs.log_marginal_likelihood(theta, eval_gradient=True)
    assert -found.fun == pytest.approx(value, rel=1e-9)
    mine = cr.grad(module.loss)(module.START, found.x, found.y)
    start = module.START * [2, 1, 2, 1, 2]
    by_hand = theirs.log_marginal_likelihood(start, eval_gradient=True)[1]
    np.testing.assert_allclose(-mine, by_hand * [2, 1, 2, 1, 2], rtol=1e-6)
    np.testing.assert_allclose(slope, 0, atol=1e-3)


def test_robust_regression(run: Run) -> None:
    module, found, _ = run("robust_regression")
    table = module.PLANT
    columns, wanted = np.column_stack([np.ones(len(table)), table[["air", "water", "acid"]]]), table["loss"].to_numpy()
    p, scale = module.least_squares(table), 2.0
    for _ in range(3000):  # the EM algorithm, which uses no derivatives
        away = wanted - columns @ p
        weight = (found.df + 1) / (found.df + (away / scale) ** 2)
        p = np.linalg.solve(columns.T * weight @ columns, columns.T @ (weight * wanted))
        scale = np.sqrt(np.mean(weight * (wanted - columns @ p) ** 2))
    np.testing.assert_allclose([found.x[name] for name in module.NAMES], p, rtol=1e-4)
    assert found.scale == pytest.approx(scale, rel=1e-4)
    best = optimize.minimize_scalar(
        lambda log_df: -np.sum(stats.t.logpdf((wanted - columns @ p) / scale, np.exp(log_df)) - np.log(scale)),
        (-0.5, 0.5),
    )
    assert found.df == pytest.approx(np.exp(best.x), rel=1e-3)


def test_lens(run: Run) -> None:
    module, found, _ = run("lens")
    focus, index = module.FOCUS, module.INDEX
    np.testing.assert_allclose(found.p, [1 / (focus * (index - 1)), -(index**2)], rtol=1e-9)
    heights = np.linspace(
        0.5, module.APERTURE, 9
    )  # Fermat: on the hyperboloid all paths to the focus have equal length
    back = module.depth(found.p, heights)
    np.testing.assert_allclose(index * back + np.hypot(heights, focus - back), focus, rtol=1e-12)
    _, direction = module.trace(module.SPHERE, heights)
    radius = focus * (index - 1)
    inside = np.arcsin(heights / radius)
    np.testing.assert_allclose(direction[:, 0], -np.sin(np.arcsin(index * np.sin(inside)) - inside), rtol=1e-10)


def test_dask_logistic(run: Run) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    module, found, _ = run("dask_logistic")
    x, y = np.asarray(found.x), np.asarray(found.y)
    theirs = linear_model.LogisticRegression(C=1 / module.PENALTY, solver="newton-cholesky", tol=1e-10).fit(x, y)
    np.testing.assert_allclose(found.p, np.append(theirs.coef_, theirs.intercept_), rtol=1e-6)
    chance = special.expit(x @ found.p[:-1] + found.p[-1])
    padded = np.column_stack([x, np.ones(len(x))])
    information = padded.T * (chance * (1 - chance)) @ padded + module.PENALTY * np.diag([1.0] * 5 + [0])
    np.testing.assert_allclose(found.errors, np.sqrt(np.diagonal(np.linalg.inv(information))), rtol=1e-6)


def test_custom_operation(run: Run) -> None:
    mpmath = pytest.importorskip("mpmath")
    module, found, _ = run("custom_operation")
    assert "operand 'gamma'" in found.spoilt
    assert np.all(np.abs(found.p - module.TRUTH) < 4 * found.errors)

    def convolved(sigma: float, gamma: float, order: int) -> float:
        """Return ∂ⁿV/∂xⁿ at 0.3, from the integral that defines it."""
        x = mpmath.mpf("0.3")
        gauss = lambda u: mpmath.npdf(u, 0, sigma)
        lorentz = lambda u: gamma / mpmath.pi / ((x - u) ** 2 + gamma**2)
        by = {
            0: gauss,
            1: lambda u: -u / sigma**2 * gauss(u),
            3: lambda u: (3 * u / sigma**4 - u**3 / sigma**6) * gauss(u),
        }
        return float(mpmath.quad(lambda u: by[order](u) * lorentz(u), [-8, -1, 0, 0.3, 1, 8]))

    first = cr.grad(module.voigt)
    third = cr.grad(cr.grad(first))
    for function, order in ((module.voigt, 0), (first, 1), (third, 3)):
        assert float(function(0.3, 0.6, 0.4)) == pytest.approx(convolved(0.6, 0.4, order), rel=1e-8)


def test_what_is_timed_comes_to_the_same(run: Run) -> None:
    """Check that timed alternatives compute the same. ``make gallery`` checks those that take a second."""
    for name in ("lens", "robust_regression", "custom_operation", "gaussian_process"):
        module, _, _ = run(name)
        results = [np.asarray(way(), float) for way in module.alternatives().values()]
        for other in results[1:]:
            np.testing.assert_allclose(other, results[0], rtol=1e-3, atol=1e-3, err_msg=name)
