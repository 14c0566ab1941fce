"""Factorizations of Dask matrices equal NumPy's for all chunks, and stay lazy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from tests.foreign.checking import KINDS

da = pytest.importorskip("dask.array", reason="Dask is not installed: pip install chainrule[dask]")

rng = np.random.default_rng(0)
N = 6
GENERAL = rng.normal(size=(N, N))
GENERAL[:2, :2] *= 1e-13  # a block without a pivot
SPD = GENERAL @ GENERAL.T + np.eye(N)
STACK = np.stack([SPD, 2 * SPD + np.diag(np.arange(N))])
HERMITIAN = SPD + 1j * (np.triu(GENERAL, 1) - np.triu(GENERAL, 1).T)
TALL = rng.normal(size=(8, 3))
CHUNKS = [2, (4, 1)]
PROGRAMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "solve": (lambda A: np.linalg.solve(A, np.arange(6.0)), GENERAL),
    "solve for columns": (lambda A: np.linalg.solve(A, A + 1), GENERAL),
    "solve for a stack": (lambda A: np.linalg.solve(A, np.arange(6.0)[:, None] * A), STACK),
    "inv": (np.linalg.inv, GENERAL),
    "cholesky": (np.linalg.cholesky, SPD),
    "cholesky upper": (lambda A: np.linalg.cholesky(A, upper=True), SPD),
    "cholesky of a stack": (np.linalg.cholesky, STACK),
    "cholesky of a complex matrix": (lambda A: np.abs(np.linalg.cholesky(A)), HERMITIAN),
    "slogdet": (lambda A: np.linalg.slogdet(A)[1], STACK),
    "eigvalsh": (np.linalg.eigvalsh, STACK),
    "eigh": (lambda A: np.linalg.eigh(A)[1] ** 2, SPD),
    "singular values": (lambda A: np.linalg.svd(A, compute_uv=False), TALL),
    "svd": (lambda A: np.abs(np.linalg.svd(A, full_matrices=False)[0]), TALL),
    "qr": (lambda A: np.linalg.qr(A)[1], TALL),
    "pinv": (np.linalg.pinv, TALL),
    "norm": (lambda A: np.linalg.norm(A, 2), TALL),
}


@pytest.mark.filterwarnings("ignore:Casting complex values")  # Dask's warning for arrays without elements
@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_gradient(name: str, chunks: Any) -> None:
    function, x = PROGRAMS[name]

    def loss(A: Any) -> Any:
        return np.sum(np.sin(function(A)))

    cut = chunks if x.ndim == 2 else (1, *((chunks,) * 2 if isinstance(chunks, int) else chunks))
    with KINDS["Dask"].guard():
        found = cr.value_and_grad(loss)(da.from_array(x, chunks=cut))
    for a, b in zip(found, cr.value_and_grad(loss)(x), strict=True):
        np.testing.assert_allclose(a.compute(), b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["nonzero", "flatnonzero", "argwhere", "extract", "compress", "cholesky_ex", "inv_ex"])
def test_what_depends_on_the_numbers_is_refused(name: str) -> None:
    x = da.from_array(SPD, chunks=4)
    calls: dict[str, Callable[[Any], Any]] = {
        "nonzero": lambda x: x[np.nonzero(x > 0)],
        "flatnonzero": lambda x: np.ravel(x)[np.flatnonzero(x > 0)],
        "argwhere": lambda x: x * np.argwhere(x > 0)[0, 0],
        "extract": lambda x: np.extract(x > 0, x),
        "compress": lambda x: np.compress(x[0] > 0, x),
        "cholesky_ex": lambda x: cr.linalg.cholesky_ex(cr.as_tensor(x))[0],
        "inv_ex": lambda x: cr.linalg.inv_ex(cr.as_tensor(x))[0],
    }
    with KINDS["Dask"].guard(), pytest.raises((TypeError, ValueError), match=r"NumPy array silently|unknown|compute"):
        calls[name](x if name.endswith("_ex") else cr.Array(x))


def test_a_diagonal_of_no_elements() -> None:
    empty = np.ones((3, 2))
    for x in (empty, da.from_array(empty, chunks=2)):
        gradient = cr.grad(lambda x: np.trace(np.diff(x, n=2)) + np.sum(x))(x)
        np.testing.assert_array_equal(np.asarray(gradient), empty)


@pytest.mark.parametrize("index", [True, np.array(True), (np.True_, 0), (0, True), False, (True, [0, 1])], ids=str)
def test_one_boolean_adds_an_axis(index: Any) -> None:
    gradient = cr.grad(lambda x: np.sum(np.sin(x[index])))
    np.testing.assert_allclose(gradient(da.from_array(TALL, chunks=(3, 2))).compute(), gradient(TALL))
