"""``chainrule.scipy.least_squares`` and ``root`` compared with SciPy with hand-written derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

optimize = pytest.importorskip("scipy.optimize")
sparse = pytest.importorskip("scipy.sparse")

T = np.linspace(0, 4, 30)
DATA = 2.0 * np.exp(-0.7 * T) + 0.3 + 0.05 * np.sin(40 * T)


def decay(p: Any, data: Any = DATA) -> Any:
    return p["scale"] * np.exp(-p["rate"] * T) + p["rest"] - data


def by_hand(x: Any) -> Any:
    e = np.exp(-x[1] * T)
    return np.stack([e, -x[0] * T * e, np.ones_like(T)], 1)


START = {"scale": 1.0, "rate": 1.0, "rest": 0.0}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "method, options", [("lm", {}), ("trf", {}), ("dogbox", {"loss": "soft_l1", "x_scale": "jac"})]
)
def test_as_scipy_with_a_jacobian_by_hand(method: str, options: Any, compiled: bool) -> None:
    flat = lambda x: decay({"scale": x[0], "rate": x[1], "rest": x[2]})
    want = optimize.least_squares(flat, [1.0, 1.0, 0.0], by_hand, method=method, **options)
    found = cr.scipy.least_squares(decay, START, method=method, compile=compiled, **options)
    assert found.nfev == want.nfev and list(found.x) == list(START)
    np.testing.assert_allclose(list(found.x.values()), want.x, rtol=1e-8)
    np.testing.assert_allclose(list(found.grad.values()), want.grad, atol=1e-8)
    np.testing.assert_allclose(found.jac, want.jac, rtol=1e-6, atol=1e-8)
    assert all(value.dtype == int for value in found.active_mask.values())


@pytest.mark.parametrize(
    "bounds",
    [
        ({"scale": 0, "rate": None, "rest": 0.4}, np.inf),
        optimize.Bounds([0, -np.inf, 0.4], np.inf),
        {"scale": (0, None), "rate": None, "rest": (0.4, np.inf)},
        (np.array([0, -np.inf, 0.4]), None),
    ],
)
def test_bounds(bounds: Any) -> None:
    flat = lambda x: decay({"scale": x[0], "rate": x[1], "rest": x[2]})
    want = optimize.least_squares(flat, [1.0, 1.0, 0.5], by_hand, ([0, -np.inf, 0.4], np.inf))
    if isinstance(bounds, dict) or (isinstance(bounds, tuple) and isinstance(bounds[0], dict)):
        found = list(cr.scipy.least_squares(decay, START | {"rest": 0.5}, bounds=bounds).x.values())
    else:
        found = cr.scipy.least_squares(flat, [1.0, 1.0, 0.5], bounds=bounds).x
    np.testing.assert_allclose(found, want.x, rtol=1e-8)
    assert found[2] == pytest.approx(0.4, abs=1e-4)


def test_a_tensor_gives_a_tensor() -> None:
    model = lambda p, t, data: p[0] * cr.exp(-p[1] * t) + p[2] - data
    start = cr.tensor([1.0, 1.0, 0.0], dtype=cr.float64, requires_grad=True)
    found = cr.scipy.least_squares(model, start, args=(cr.tensor(T),), kwargs={"data": cr.tensor(DATA)})
    want = optimize.least_squares(lambda x: x[0] * np.exp(-x[1] * T) + x[2] - DATA, [1.0, 1.0, 0.0], by_hand)
    assert isinstance(found.x, cr.Tensor) and not found.x.requires_grad
    np.testing.assert_allclose(found.x.numpy(), want.x, rtol=1e-8)


def test_residuals_in_containers() -> None:
    found = cr.scipy.least_squares(lambda p: {"a": p[0] - 1, "b": (p[1:] - 2, [p[0] * 0])}, np.zeros(3))
    np.testing.assert_allclose(found.x, [1, 2, 2])
    assert found.fun.shape == (4,) and found.jac.shape == (4, 3)


def smooth(x: Any) -> Any:
    return np.concatenate([x - np.sin(np.arange(len(x)) / 9.0), 3 * np.diff(x) ** 2])


@pytest.mark.parametrize("method", ["trf", "dogbox"])
def test_a_large_jacobian_is_sparse(method: str) -> None:
    n = 60
    start = np.cos(np.arange(n))
    found = cr.scipy.least_squares(smooth, start, method=method, jac_sparsity="needless", max_nfev=5)
    assert sparse.issparse(found.jac) and found.jac.nnz == n + 2 * (n - 1)

    def jac(x: Any) -> Any:
        d = 6 * np.diff(x)
        below = np.zeros((n - 1, n))
        below[np.arange(n - 1), np.arange(n - 1)], below[np.arange(n - 1), np.arange(1, n)] = -d, d
        return sparse.csr_array(np.concatenate([np.eye(n), below]))

    np.testing.assert_allclose(found.jac.toarray(), jac(found.x).toarray(), rtol=1e-12, atol=1e-14)
    want = optimize.least_squares(smooth, start, jac, method=method, max_nfev=5)
    assert found.nfev == want.nfev
    np.testing.assert_allclose(found.x, want.x, rtol=1e-8, atol=1e-10)
    replayed = cr.scipy.least_squares(smooth, start, method=method, compile=True, max_nfev=5)
    assert replayed.nfev == found.nfev
    np.testing.assert_allclose(replayed.jac.toarray(), found.jac.toarray(), rtol=1e-12)
    exact = cr.scipy.least_squares(smooth, start, method=method, tr_solver="exact", max_nfev=2)
    assert type(exact.jac) is np.ndarray


def test_small_or_full_jacobians_are_dense() -> None:
    A = np.cos(np.arange(100 * 60).reshape(100, 60))
    assert type(cr.scipy.least_squares(lambda x: np.sin(A @ x) - 0.1, np.zeros(60), max_nfev=2).jac) is np.ndarray
    assert type(cr.scipy.least_squares(smooth, np.ones(9), max_nfev=2).jac) is np.ndarray


def test_jacobians_that_are_given() -> None:
    found = cr.scipy.least_squares(decay, START, lambda p: by_hand([p["scale"], p["rate"], p["rest"]]))
    want = cr.scipy.least_squares(decay, START)
    np.testing.assert_allclose(list(found.x.values()), list(want.x.values()), rtol=1e-8)
    assert cr.scipy.least_squares(decay, START, "3-point").success


def test_errors_of_least_squares() -> None:
    with pytest.raises(ValueError, match="unknown method 'newton'"):
        cr.scipy.least_squares(decay, START, method="newton")
    with pytest.raises(TypeError, match="x0 is of dtype int64"):
        cr.scipy.least_squares(smooth, np.arange(4))
    with pytest.raises(TypeError, match=r"text\(\) returned a str"):
        cr.scipy.least_squares(text, np.ones(4))
    with pytest.raises(TypeError, match=r"nothing\(\) returned None"):
        cr.scipy.least_squares(nothing, np.ones(4))
    with pytest.raises(ValueError, match=r"bounds\[0\] has shape \(3,\)"):
        cr.scipy.least_squares(smooth, np.ones(4), bounds=(np.zeros(3), 2))


def text(x: Any) -> Any:
    return "residuals"


def nothing(x: Any) -> Any:
    return None


# -- root --------------------------------------------------------------------------------------------------------------


def chandrasekhar(x: Any) -> Any:
    mu = (np.arange(8) + 0.5) / 8
    kernel = mu[:, None] / (mu[:, None] + mu)
    return 1 / (1 - 0.05 * (kernel @ x)) - x


MIXING = "broyden1 broyden2 anderson linearmixing diagbroyden excitingmixing krylov df-sane"


@pytest.mark.parametrize("method", ["hybr", "lm", *MIXING.split()])
def test_root(method: str) -> None:
    found = cr.scipy.root(chandrasekhar, np.ones(8), method=method)
    assert found.success and np.max(np.abs(chandrasekhar(found.x))) < 1e-4
    if method in ("hybr", "lm"):
        hand = lambda x: 0.05 * K / (1 - 0.05 * (K @ x))[:, None] ** 2 - np.eye(8)
        K = ((np.arange(8) + 0.5) / 8)[:, None] / (((np.arange(8) + 0.5) / 8)[:, None] + (np.arange(8) + 0.5) / 8)
        want = optimize.root(chandrasekhar, np.ones(8), jac=hand, method=method)
        assert found.nfev == want.nfev and found.njev == want.njev
        np.testing.assert_allclose(found.x, want.x, rtol=1e-12)


def test_root_in_containers() -> None:
    seen = []
    equations = lambda p, r: {"a": p["x"] ** 2 + p["y"] ** 2 - r, "b": p["x"] - p["y"]}
    for x0 in ({"x": 1.0, "y": 0.5}, {"x": cr.tensor(1.0, dtype=cr.float64), "y": cr.tensor(0.5, dtype=cr.float64)}):
        for options in ({}, {"compile": True}, {"method": "krylov", "callback": lambda x, f: seen.append(x)}):
            found = cr.scipy.root(equations, x0, 2.0, **options)
            assert isinstance(found.x["x"], cr.Tensor) == isinstance(x0["x"], cr.Tensor)
            np.testing.assert_allclose([float(found.x["x"]), float(found.x["y"])], 1.0, atol=1e-5)
    assert seen and set(seen[0]) == {"x", "y"}


def test_root_with_a_jacobian_that_is_given() -> None:
    f, jac = lambda x: x**2 - 4, lambda x: np.diag(2 * x)
    for given in ((f, jac), (lambda x: (x**2 - 4, np.diag(2 * x)), True), (f, False)):
        np.testing.assert_allclose(cr.scipy.root(given[0], np.ones(2), jac=given[1]).x, 2)


def test_errors_of_root() -> None:
    with pytest.raises(ValueError, match="returned 1 numbers for 2 unknowns"):
        cr.scipy.root(lambda x: x[:1], np.ones(2))
    with pytest.raises(ValueError, match="unknown method 'newton'"):
        cr.scipy.root(lambda x: x, np.ones(2), method="newton")
    with pytest.raises(TypeError, match="x0 is of dtype bool"):
        cr.scipy.root(lambda x: x, np.ones(2, bool))
