"""``chainrule.scipy.solve_ivp`` and ``solve_bvp`` compared with SciPy with hand-written Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

integrate = pytest.importorskip("scipy.integrate")
sparse = pytest.importorskip("scipy.sparse")


def robertson(t: Any, y: Any) -> Any:
    fast = 1e4 * y[1] * y[2]
    slow = 3e7 * y[1] ** 2
    return np.stack([-0.04 * y[0] + fast, 0.04 * y[0] - fast - slow, slow])


def robertson_jacobian(t: Any, y: Any) -> Any:
    a, b, c = 1e4 * y[2], 1e4 * y[1], 6e7 * y[1]
    return np.array([[-0.04, a, b], [0.04, -a - c, -b], [0, c, 0]])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_as_scipy_with_a_jacobian_by_hand(method: str, compiled: bool) -> None:
    call = {"t_span": (0, 40.0), "y0": np.array([1.0, 0, 0]), "method": method, "rtol": 1e-6, "atol": 1e-9}
    want = integrate.solve_ivp(robertson, jac=robertson_jacobian, **call)
    found = cr.scipy.solve_ivp(robertson, compile=compiled, **call)
    assert (found.nfev, found.njev, found.nlu) == (want.nfev, want.njev, want.nlu)
    np.testing.assert_allclose(found.y, want.y, rtol=1e-9, atol=1e-12)


def pendulum(t: Any, y: Any, damping: Any) -> Any:
    return {"angle": y["speed"], "speed": -np.sin(y["angle"]) - damping * y["speed"]}


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "BDF", "LSODA", integrate.BDF])
def test_containers(method: Any) -> None:
    flat = lambda t, y: np.array([y[1], -np.sin(y[0]) - 0.2 * y[1]])
    downwards = lambda t, y, damping: y["angle"][0, 0]
    downwards.direction, downwards.terminal = -1, False
    options = {"rtol": 1e-8, "atol": 1e-10, "t_eval": np.linspace(0, 5, 7), "dense_output": True}
    want = integrate.solve_ivp(flat, (0, 5), [1.0, 0.0], "DOP853", **options)
    start = {"angle": np.ones((1, 1)), "speed": cr.tensor(0.0, dtype=cr.float64)}
    found = cr.scipy.solve_ivp(pendulum, (0, 5), start, method, events=[downwards], args=(0.2,), **options)
    assert found.y["angle"].shape == (1, 1, 7) and isinstance(found.y["speed"], cr.Tensor)
    np.testing.assert_allclose(found.y["angle"][0, 0], want.y[0], atol=1e-5)
    np.testing.assert_allclose(found.y["speed"].numpy(), want.y[1], atol=1e-5)
    np.testing.assert_allclose(found.sol(2.5)["angle"][0, 0], want.sol(2.5)[0], atol=1e-5)
    assert found.sol(np.array([1.0, 2.0]))["angle"].shape == (1, 1, 2)
    assert found.y_events[0]["angle"].shape == (1, 1, 1) and len(found.t_events[0]) == 1
    np.testing.assert_allclose(found.y_events[0]["angle"], 0.0, atol=1e-5)


def test_terminal_events_end_it() -> None:
    down = lambda t, y: y["h"]
    down.terminal = True
    fall = lambda t, y: {"h": y["v"], "v": -9.81 + 0 * y["v"]}
    found = cr.scipy.solve_ivp(fall, (0, 100), {"h": 10.0, "v": 0.0}, events=down, max_step=0.1)
    assert found.status == 1
    np.testing.assert_allclose(found.t[-1], np.sqrt(20 / 9.81), rtol=1e-6)
    never = lambda t, y: y["h"] + 1e6
    found = cr.scipy.solve_ivp(fall, (0, 1), {"h": 10.0, "v": 0.0}, events=never)
    assert found.y_events[0]["h"].shape == (0,)


def heat(t: Any, y: Any) -> Any:
    return np.append(y[1:], 0) - 2 * y + np.append(0, y[:-1]) - 0.1 * y**3


def heat_jacobian(t: Any, y: Any) -> Any:
    n = len(y)
    return np.eye(n, k=1) + np.eye(n, k=-1) - np.diag(2 + 0.3 * y**2)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_large_jacobians_are_sparse(method: str, compiled: bool) -> None:
    kind, seen = getattr(integrate, method), []

    class Watched(kind):  # type: ignore[misc, valid-type]
        def _validate_jac(self, jac: Any, sparsity: Any) -> Any:
            wrapped, J = super()._validate_jac(jac, sparsity)
            seen.append(J)
            return wrapped, J

    Watched.__name__ = method
    start = np.sin(np.arange(60.0))
    found = cr.scipy.solve_ivp(heat, (0, 10), start, Watched, compile=compiled)
    want = integrate.solve_ivp(heat, (0, 10), start, method, jac=lambda t, y: sparse.csc_array(heat_jacobian(t, y)))
    assert sparse.issparse(seen[0]) and seen[0].nnz == 3 * 60 - 2
    assert (found.nfev, found.njev) == (want.nfev, want.njev)
    np.testing.assert_allclose(found.y, want.y, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("n", [20, 80])
def test_bands_for_lsoda(n: int) -> None:
    start = np.sin(np.arange(float(n)))
    full = cr.scipy.solve_ivp(heat, (0, 200), start, "LSODA", rtol=1e-6)
    banded = cr.scipy.solve_ivp(heat, (0, 200), start, "LSODA", rtol=1e-6, lband=1, uband=2)
    assert full.nfev == banded.nfev and full.njev == banded.njev > 0
    np.testing.assert_allclose(banded.y, full.y, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="1 below and 1 above the diagonal, but the call has lband=1 and uband=0"):
        cr.scipy.solve_ivp(heat, (0, 200), start, "LSODA", lband=1, uband=0)


def test_a_jacobian_that_is_given_or_declined() -> None:
    calls = []

    def jac(t: Any, y: Any, damping: Any) -> Any:
        calls.append(t)
        return np.array([[0, 1], [-np.cos(y["angle"]), -damping]])

    start = {"angle": 1.0, "speed": 0.0}
    given = cr.scipy.solve_ivp(pendulum, (0, 5), start, "BDF", args=(0.2,), jac=jac)
    own = cr.scipy.solve_ivp(pendulum, (0, 5), start, "BDF", args=(0.2,))
    differences = cr.scipy.solve_ivp(pendulum, (0, 5), start, "BDF", args=(0.2,), jac=None)
    assert calls and given.nfev == own.nfev and differences.nfev > own.nfev - 5
    np.testing.assert_array_equal(given.y["angle"], own.y["angle"])
    linear = cr.scipy.solve_ivp(lambda t, y: -y, (0, 1), np.ones(2), "Radau", jac=-np.eye(2))
    assert linear.njev == 0


def test_complex_states() -> None:
    found = cr.scipy.solve_ivp(lambda t, y: 1j * y * y, (0, 1), np.array([0.5 + 0j]), "BDF", rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.y[0, -1], 1 / (2 - 1j), atol=1e-6)


def test_errors_of_solve_ivp() -> None:
    with pytest.raises(ValueError, match="unknown method 'Euler'"):
        cr.scipy.solve_ivp(heat, (0, 1), np.ones(3), "Euler")
    with pytest.raises(TypeError, match="y0 is of dtype int64"):
        cr.scipy.solve_ivp(heat, (0, 1), np.ones(3, int))
    with pytest.raises(ValueError, match="returned 2 numbers for a state of 3"):
        cr.scipy.solve_ivp(lambda t, y: y[:2], (0, 1), np.ones(3))
    with pytest.raises(TypeError, match="complex and real"):
        cr.scipy.solve_ivp(heat, (0, 1), {"a": np.ones(3), "b": np.ones(2, complex)})
    with pytest.raises(ValueError, match="vectorized"):
        cr.scipy.solve_ivp(heat, (0, 1), {"a": np.ones(3)}, vectorized=True)


# -- boundary values ---------------------------------------------------------------------------------------------------


def eigenvalue(x: Any, y: Any, p: Any) -> Any:
    return np.stack([y[1], -(p[0] ** 2) * y[0]])


def eigenvalue_ends(a: Any, b: Any, p: Any) -> Any:
    return np.stack([a[0], b[0], a[1] - p[0]])


def eigenvalue_jacobian(x: Any, y: Any, p: Any) -> Any:
    zeros, ones = np.zeros_like(x), np.ones_like(x)
    by_y = np.array([[zeros, ones], [-(p[0] ** 2) * ones, zeros]])
    return by_y, np.array([[zeros], [-2 * p[0] * y[0]]])


def eigenvalue_ends_jacobian(a: Any, b: Any, p: Any) -> Any:
    return np.array([[1, 0], [0, 0], [0, 1]]), np.array([[0, 0], [1, 0], [0, 0]]), np.array([[0], [0], [-1]])


def guess() -> Any:
    y = np.zeros((2, 5))
    y[0, 1], y[0, 3] = 1, -1
    return np.linspace(0, 1, 5), y


@pytest.mark.parametrize("compiled", [False, True])
def test_boundary_values_with_jacobians_by_hand(compiled: bool) -> None:
    x, y = guess()
    want = integrate.solve_bvp(
        eigenvalue, eigenvalue_ends, x, y, [6.0], fun_jac=eigenvalue_jacobian, bc_jac=eigenvalue_ends_jacobian
    )
    found = cr.scipy.solve_bvp(eigenvalue, eigenvalue_ends, x, y, [6.0], compile=compiled)
    assert found.success and found.niter == want.niter
    np.testing.assert_allclose(found.p, want.p, rtol=1e-10)
    np.testing.assert_allclose(found.y, want.y, rtol=1e-8, atol=1e-10)
    given = cr.scipy.solve_bvp(
        eigenvalue, eigenvalue_ends, x, y, [6.0], fun_jac=eigenvalue_jacobian, bc_jac=eigenvalue_ends_jacobian
    )
    np.testing.assert_array_equal(given.y, want.y)


def test_boundary_values_in_containers() -> None:
    x, y = guess()
    want = integrate.solve_bvp(eigenvalue, eigenvalue_ends, x, y, [6.0])
    fun = lambda x, y, p: {"u": y["du"], "du": -(p["k"] ** 2) * y["u"]}
    bc = lambda a, b, p: {"ends": (a["u"], b["u"]), "slope": a["du"] - p["k"]}
    found = cr.scipy.solve_bvp(fun, bc, x, {"u": y[0], "du": y[1]}, {"k": 6.0})
    np.testing.assert_allclose(found.p["k"], want.p[0], rtol=1e-6)
    np.testing.assert_allclose(found.sol(0.3)["u"], want.sol(0.3)[0], atol=1e-6)
    assert found.y["u"].shape == found.yp["du"].shape == found.x.shape


def test_boundary_values_of_tensors_without_parameters() -> None:
    x = np.linspace(0, 1, 7)
    want = integrate.solve_bvp(
        lambda x, y: np.stack([y[1], -np.exp(y[0])]), lambda a, b: np.array([a[0], b[0]]), x, np.zeros((2, 7))
    )
    found = cr.scipy.solve_bvp(
        lambda x, y: cr.stack([y[1], -cr.exp(y[0])]), lambda a, b: cr.stack([a[0], b[0]]), x,
        cr.zeros(2, 7, dtype=cr.float64),
    )  # fmt: skip
    assert isinstance(found.y, cr.Tensor)
    np.testing.assert_allclose(found.y[0].numpy(), want.sol(found.x)[0], atol=1e-6)


def test_a_mesh_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"must have the mesh's length 5: got \(2, 4\)"):
        cr.scipy.solve_bvp(eigenvalue, eigenvalue_ends, np.linspace(0, 1, 5), np.zeros((2, 4)), [6.0])
