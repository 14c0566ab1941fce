"""Captured values of a function: if they are being differentiated, Jacobians are recorded, or raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

X = np.array([1.0, 2.0, 3.0])

RECORDED: dict[str, Callable[[Any], Any]] = {
    "dense": lambda f: cr.jacobian(f, X).sum(),
    "rows": lambda f: cr.jacobian(f, X, mode="reverse").sum(),
    "columns": lambda f: cr.jacobian(f, X, mode="forward").sum(),
    "large": lambda f: cr.jacobian(lambda x: f(x[:3]), np.concatenate([X, np.zeros(400)])).sum(),
    "structured": lambda f: cr.jacobian(f, X, layout="structured").diagonal().sum(),
    "operator": lambda f: (cr.jacobian(f, X, layout="operator") @ np.ones(3)).sum(),
    "Hessian": lambda f: cr.hessian(lambda x: (f(x) * x).sum() / 6, X).sum(),
}


@pytest.mark.parametrize("way", RECORDED)
@pytest.mark.parametrize("face", [np.asarray, cr.tensor])
def test_derivatives_with_respect_to_what_is_captured(way: str, face: Callable[[Any], Any]) -> None:
    gradient = cr.grad(lambda w: RECORDED[way](lambda x: w * x**2))(face(np.ones(3)))
    expected = X if way == "Hessian" else 2 * X
    np.testing.assert_allclose(np.asarray(gradient), expected)


@pytest.mark.parametrize(
    "way",
    [
        lambda f: cr.jacobian(f, X, layout="csr").sum(),
        lambda f: cr.hessian(lambda x: f(x).sum(), X, layout="coo").sum(),
        lambda f: cr.prepare_jacobian(f, X)(X).sum(),
        lambda f: cr.jacobian(f, X, layout="structured").to_scipy().sum(),
    ],
)
def test_arrays_of_scipy_refuse(way: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match="would treat it as a constant"):
        cr.grad(lambda w: way(lambda x: w * x**2))(np.ones(3))
    with cr.no_grad():
        assert cr.jacobian(lambda x: cr.ones(3, requires_grad=True) * x, X, layout="csr").nnz == 3
