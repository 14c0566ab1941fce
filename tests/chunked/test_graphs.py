"""Derivatives of functions of Dask arrays are Dask arrays: lazy, in the chunks of the inputs, with one small graph."""

from __future__ import annotations

import collections
import threading
import warnings

import numpy as np
import pytest

import chainrule as cr

da = pytest.importorskip("dask.array", reason="Dask is not installed: pip install chainrule[dask]")
import dask  # noqa: E402

from chainrule._src.arrays.dask_fusion import with_fused_tasks  # noqa: E402

ROWS, COLUMNS, CHUNK = 40, 6, 10
rng = np.random.default_rng(0)
X = rng.standard_normal((ROWS, COLUMNS))
B = rng.standard_normal(COLUMNS)
W = rng.standard_normal((COLUMNS, 3))


def tasks(*arrays: object) -> int:
    """Return the number of tasks for arrays that are computed together."""
    graph: dict[object, object] = {}
    for array in dask.optimize(*arrays):
        graph.update(dict(array.__dask_graph__()))
    return sum(type(task).__name__ != "Alias" for task in graph.values())


#: a function of a matrix, and the maximum number of tasks per chunk for value and gradient together, including reading
CHUNKWISE = {
    "sum": (lambda x: np.sum(x * x), 3),
    "mean of rows": (lambda x: np.sum(np.mean(x, axis=1) ** 2), 3),
    "mean of columns": (lambda x: np.sum(np.mean(x, axis=0) ** 2), 3),
    "variance": (lambda x: np.sum(np.var(x, axis=0)), 5),
    "broadcasting": (lambda x: np.sum((x * B) ** 2), 4),
    "broadcast_to": (lambda x: np.sum(np.broadcast_to(x, (2, ROWS, COLUMNS)) ** 2), 3),
    "reshape": (lambda x: np.sum(np.reshape(x, (ROWS, 2, 3)) ** 3), 3),
    "ravel": (lambda x: np.sum(np.ravel(x) ** 3), 3),
    "rows": (lambda x: np.sum(x[5:25] ** 2), 3),
    "no rows": (lambda x: np.sum(x[7:7] ** 2), 3),
    "every third row": (lambda x: np.sum(x[1::3] ** 2), 4),
    "rows backwards": (lambda x: np.sum(x[30:4:-3] ** 2), 5),
    "the last row": (lambda x: np.sum(x[-1] ** 2), 3),
    "a column": (lambda x: np.sum(x[:, 1] ** 2), 3),
    "a new axis": (lambda x: np.sum(x[:, None, ..., ::2] ** 2), 3),
    "differences": (lambda x: np.sum((x[1:] - x[:-1]) ** 2), 14),
    "concatenate": (lambda x: np.sum(np.concatenate([x, x * 2]) ** 2), 8),
    "stack": (lambda x: np.sum(np.stack([x, x * 2]) ** 2), 8),
    "where": (lambda x: np.sum(np.where(x > 0, x**2, 0.0)), 3),
    "maximum": (lambda x: np.sum(np.maximum(x, 0.0) ** 2), 3),
    "softmax": (lambda x: np.sum(cr.softmax(x, 1)[:, 0] ** 2), 10),
    "logsumexp": (lambda x: np.sum(cr.logsumexp(x, axis=1)), 10),
    "transpose": (lambda x: np.sum(x.T**2), 3),
    "matrix product": (lambda x: np.sum((x @ W) ** 2), 6),
    "Gram matrix": (lambda x: np.sum((x.T @ x) ** 2), 9),
    "einsum": (lambda x: np.sum(np.einsum("ij,jk->ik", x, W) ** 2), 6),
    "tensordot": (lambda x: np.sum(np.tensordot(x, W, axes=1) ** 2), 6),
    "cumulative sum": (lambda x: np.sum(np.cumsum(x, axis=0) ** 2), 8),
    "norm": (lambda x: np.linalg.norm(x), 4),
}


@pytest.mark.parametrize("name", CHUNKWISE)
def test_gradients_are_lazy_in_the_chunks_of_what_they_are_by(name: str) -> None:
    function, most = CHUNKWISE[name]
    lazy = da.from_array(X, chunks=(CHUNK, COLUMNS))
    value, gradient = cr.value_and_grad(function)(lazy)
    assert isinstance(value, da.Array) and isinstance(gradient, da.Array)
    assert gradient.chunks == lazy.chunks
    assert tasks(value, gradient) <= most * lazy.npartitions
    expected = cr.value_and_grad(function)(X)
    for found, wanted in zip(dask.compute(value, gradient), expected):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("chunks", [(7, COLUMNS), (CHUNK, 2), (13, 4)])
@pytest.mark.parametrize(
    "name", ["rows", "every third row", "rows backwards", "a new axis", "matrix product", "softmax"]
)
def test_chunks_of_any_sizes(name: str, chunks: tuple[int, int]) -> None:
    function = CHUNKWISE[name][0]
    lazy = da.from_array(X, chunks=chunks)
    gradient = cr.grad(function)(lazy)
    assert gradient.chunks == lazy.chunks
    np.testing.assert_allclose(gradient.compute(), cr.grad(function)(X), rtol=1e-12, atol=1e-13)


class Source:
    """A matrix that is generated block by block and counts the reads of each block."""

    def __init__(self, rows: int, columns: int, chunk: int) -> None:
        self.counts: collections.Counter[int] = collections.Counter()
        self.lock = threading.Lock()
        self.chunk, self.columns = chunk, columns
        blocks = [
            da.from_delayed(dask.delayed(self.read, pure=False)(i), (chunk, columns), float)
            for i in range(rows // chunk)
        ]
        self.array = da.concatenate(blocks)

    def read(self, i: int) -> np.ndarray:
        with self.lock:
            self.counts[i] += 1
        return np.random.default_rng(i).standard_normal((self.chunk, self.columns))

    def __deepcopy__(self, memo: object) -> Source:
        return self


def logistic(w, x, y):
    z = x @ w
    return np.mean(np.logaddexp(0, z) - y * z)


def network(p, x, y):
    hidden = np.tanh(x @ p["w1"] + p["b1"])
    z = hidden @ p["w2"] + p["b2"]
    return np.mean(np.logaddexp(0, z) - y * z)


PARAMETERS = {"w1": W, "b1": W[0], "w2": W[1], "b2": np.array(0.5)}


@pytest.mark.parametrize(("loss", "parameters", "most"), [(logistic, B, 6), (network, PARAMETERS, 15)])
def test_data_is_read_once_for_value_and_gradient(loss, parameters, most) -> None:
    source = Source(32 * CHUNK, COLUMNS, CHUNK)
    y = (source.array[:, 0] > 0) * 1.0
    value, gradient = cr.value_and_grad(loss)(parameters, source.array, y)
    assert tasks(value, *cr.tree.tree_leaves(gradient)) <= most * 32
    found = dask.compute(value, gradient)
    assert set(source.counts.values()) == {1} and len(source.counts) == 32
    expected = cr.value_and_grad(loss)(parameters, source.array.compute(), y.compute())
    for a, b in zip(cr.tree.tree_leaves(found), cr.tree.tree_leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_gradients_by_shared_parameters_are_added_by_a_tree() -> None:
    """No task of a gradient takes more than a few blocks, or more rows of the data than one chunk."""
    x = da.ones((640, COLUMNS), chunks=(CHUNK, COLUMNS))
    gradient = cr.grad(logistic)(B, x, da.ones(640, chunks=CHUNK))
    (optimized,) = dask.optimize(gradient)
    graph = dict(optimized.__dask_graph__())
    assert max(len(task.dependencies) for task in graph.values()) <= 8
    seen: list[int] = []
    from dask.callbacks import Callback

    with Callback(
        posttask=lambda key, result, *rest: seen.append(np.size(result) if isinstance(result, np.ndarray) else 0)
    ):
        gradient.compute(scheduler="sync")
    assert max(seen) <= CHUNK * COLUMNS


def test_chunks_of_unknown_size_are_an_error_that_says_what_to_do() -> None:
    x = da.from_array(X, chunks=(CHUNK, COLUMNS))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        cr.grad(lambda w: np.sum(x[x[:, 0] > 0] @ w))(B)


def test_nothing_is_computed_while_a_graph_is_made() -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("computed")

    source = Source(8 * CHUNK, COLUMNS, CHUNK)
    with dask.config.set(scheduler=refuse), warnings.catch_warnings():
        warnings.simplefilter("error")
        cr.value_and_grad(network)(PARAMETERS, source.array, source.array[:, 0])
    assert not source.counts


# -- one task per block ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHUNKWISE)
def test_tasks_are_grouped_without_changing_a_bit(name: str) -> None:
    lazy = cr.value_and_grad(CHUNKWISE[name][0])(da.from_array(X, chunks=(17, 4)))
    for found, wanted in zip(cr.compute(*lazy), dask.compute(*lazy), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("loss", "parameters"), [(logistic, B), (network, PARAMETERS)])
def test_a_block_is_read_and_used_in_one_task(loss, parameters) -> None:
    source = Source(32 * CHUNK, COLUMNS, CHUNK)
    y = (source.array[:, 0] > 0) * 1.0
    lazy = cr.value_and_grad(loss)(parameters, source.array, y)
    leaves = cr.tree.tree_leaves(lazy)
    assert len(with_fused_tasks(leaves)[0].__dask_graph__().to_dict()) <= 1.5 * 32
    found = cr.compute(*lazy)
    assert set(source.counts.values()) == {1} and len(source.counts) == 32
    for a, b in zip(cr.tree.tree_leaves(found), dask.compute(*leaves), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_gradient_that_waits_for_the_value() -> None:
    """The blocks are needed before and after the sum over all of them: two groups, which do not wait for each other."""
    x = da.from_array(X, chunks=(CHUNK, COLUMNS))
    lazy = cr.value_and_grad(lambda w: np.log(np.sum((x @ w) ** 2)))(B)
    for found, wanted in zip(cr.compute(*lazy), dask.compute(*lazy), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_delayed_objects_and_several_results_in_one_graph() -> None:
    base = dask.delayed(lambda: X)()
    blocks = [da.from_delayed(base[i : i + CHUNK], (CHUNK, COLUMNS), float) for i in range(0, ROWS, CHUNK)]
    x = da.concatenate(blocks)
    results = [x.sum(axis=0), x[::-1] * 2, (x.T @ x), x.rechunk((ROWS, 2)), x]
    for found, wanted in zip(cr.compute(*results), dask.compute(*results), strict=True):
        np.testing.assert_array_equal(found, wanted)
