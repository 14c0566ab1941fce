"""Tensors of Dask arrays: lazy gradients in ``.grad``, and the operations that compute them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

da = pytest.importorskip("dask.array", reason="Dask is not installed: pip install chainrule[dask]")
import dask  # noqa: E402

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 3))
W = rng.standard_normal(3)


@pytest.fixture
def lazy() -> Any:
    return da.from_array(X, chunks=(10, 3))


def reads(x: Any) -> tuple[Any, list[int]]:
    """Return an array, and a list that grows by one element with every chunk that is computed."""
    counted: list[int] = []

    def count(block: np.ndarray) -> np.ndarray:
        counted.append(len(block))
        return block

    return x.map_blocks(count, meta=np.empty((0, 3))), counted


def test_backward_is_lazy_and_accumulates(lazy: Any) -> None:
    counted_x, counted = reads(lazy)
    w = cr.tensor(W, requires_grad=True)
    for _ in range(2):
        loss = ((cr.as_tensor(counted_x) @ w) ** 2).sum()
        loss.backward()
    assert not counted
    assert dask.is_dask_collection(w.grad) and not dask.is_dask_collection(w)
    value, gradient = dask.compute(loss.detach(), w.grad)
    assert counted == [10] * 4
    assert isinstance(value, cr.Tensor) and isinstance(gradient, cr.Tensor)
    np.testing.assert_allclose(gradient.numpy(), 4 * X.T @ (X @ W), rtol=1e-12)
    np.testing.assert_allclose(value.item(), np.sum((X @ W) ** 2), rtol=1e-12)


def test_compute_and_persist_are_explicit(lazy: Any) -> None:
    counted_x, counted = reads(lazy)
    t = cr.as_tensor(counted_x)
    kept = t.persist()
    assert dask.is_dask_collection(kept) and counted == [10] * 4
    y = (kept * 2).compute()
    assert counted == [10] * 4 and type(y._raw) is np.ndarray
    np.testing.assert_array_equal(y.numpy(), 2 * X)
    assert y.compute() is y and y.persist() is y
    assert isinstance(dask.persist(t)[0], cr.Tensor)


def test_computing_does_not_cut_the_graph_silently(lazy: Any) -> None:
    w = cr.tensor(W, requires_grad=True)
    loss = ((cr.as_tensor(lazy) @ w) ** 2).sum()
    for call in (loss.compute, loss.persist, lambda: dask.compute(loss), lambda: dask.persist(loss)):
        with pytest.raises(RuntimeError, match=r"detach\(\)"):
            call()
    with cr.no_grad():
        assert loss.compute().item() == pytest.approx(np.sum((X @ W) ** 2))


def test_arrays_have_them_too(lazy: Any) -> None:
    def loss(x: Any) -> Any:
        with pytest.raises(RuntimeError, match="cut"):
            x.compute()
        return np.sum(x * x)

    assert dask.is_dask_collection(cr.grad(loss)(lazy))


def test_a_step_of_an_optimiser_needs_numbers(lazy: Any) -> None:
    """Parameters in memory do not become graphs that grow with every step."""
    w = cr.tensor(W, requires_grad=True)
    ((cr.as_tensor(lazy) @ w) ** 2).sum().backward()
    with cr.no_grad(), pytest.raises(TypeError, match="compute"):
        w -= 0.1 * w.grad
    np.testing.assert_array_equal(w.detach().numpy(), W)
    with cr.no_grad():
        w -= 0.1 * w.grad.compute()
    np.testing.assert_allclose(w.detach().numpy(), W - 0.2 * X.T @ (X @ W), rtol=1e-12)


def test_chunked_parameters_keep_their_chunks_in_grad(lazy: Any) -> None:
    t = cr.as_tensor(lazy).requires_grad_()
    (t**2).sum().backward()
    np.testing.assert_allclose(t.grad.compute().numpy(), 2 * X)
    np.testing.assert_allclose(t.grad.numpy(), 2 * X)


DASKS_OWN = {
    "sum": lambda x, w: da.sum(w),
    "dot": lambda x, w: x.dot(w).sum(),
    "tensordot": lambda x, w: da.tensordot(x, w, 1).sum(),
    "add": lambda x, w: da.add(x, w).sum(),
    "add of a number": lambda x, w: da.add(x, w[0]).sum(),
    "where": lambda x, w: da.where(x > 0, w[0], 0.0).sum(),
    "stack": lambda x, w: da.stack([w, w]).sum(),
    "map_blocks": lambda x, w: x.map_blocks(lambda a, by: a * by, by=w).sum(),
    "from_array": lambda x, w: da.from_array(w).sum(),
}


@pytest.mark.parametrize("name", DASKS_OWN)
def test_dasks_own_functions_do_not_drop_a_derivative(name: str, lazy: Any) -> None:
    f = DASKS_OWN[name]
    with pytest.raises(RuntimeError, match=r"function or method of Dask would convert.*drop its derivative"):
        cr.grad(lambda w: np.sum(w**2) + f(lazy, w))(W)
    w = cr.tensor(W, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"function or method of Dask would convert.*drop its derivative"):
        f(lazy, w)
    with pytest.raises(RuntimeError, match=r"function or method of Dask would convert.*drop its derivative"):
        cr.jvp(lambda w: np.sum(w**2) + f(lazy, w), (W,), (W,))


def test_one_element_at_a_lazy_place() -> None:
    x = np.array([1.0, 4.0, 2.0])
    gradient = cr.grad(lambda a: a[np.argmax(a)] ** 2)(da.from_array(x, chunks=1))
    assert gradient.compute().tolist() == [0.0, 8.0, 0.0]
