"""Tensors of other libraries' arrays: operands on either side, writes, copies, and errors."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
unyt = pytest.importorskip("unyt")

VALUES = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.eq]


def lazy(x: Any = VALUES) -> Any:
    return da.from_array(np.asarray(x), chunks=1)


def numbers(x: Any) -> Any:
    """Return the numbers of a lazy result, after checking that it is lazy."""
    x = x.tensor if isinstance(x, cr.Array) else x
    raw = x._raw.payload if isinstance(x, cr.Tensor) else x
    assert isinstance(raw, da.Array)
    return raw.compute(scheduler="synchronous")


@pytest.fixture(autouse=True)
def nothing_is_computed() -> Iterator[None]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a Dask array was computed")

    with dask.config.set(scheduler=refuse):
        yield


# -- operands ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [*BINARY, np.multiply, np.subtract, np.maximum], ids=lambda f: f.__name__)
@pytest.mark.parametrize("first", [True, False])
def test_operators_beside_tensors(function: Callable[..., Any], first: bool) -> None:
    t = cr.tensor(VALUES + 1)
    got, expected = (function(t, lazy()), function(VALUES + 1, VALUES)) if first else (
        function(lazy(), t), function(VALUES, VALUES + 1)
    )  # fmt: skip
    assert isinstance(got, cr.Tensor)
    assert np.allclose(numbers(got), expected)


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("first", [True, False])
def test_operators_beside_arrays(function: Callable[..., Any], first: bool) -> None:
    a = cr.Array(VALUES + 1)
    got = function(a, lazy()) if first else function(lazy(), a)
    assert isinstance(got, cr.Array)
    assert np.allclose(numbers(got), function(VALUES + 1, VALUES) if first else function(VALUES, VALUES + 1))


@pytest.mark.parametrize(
    "face", [lambda x: cr.tensor(x, requires_grad=True), lambda x: cr.Array(x, requires_grad=True)]
)
@pytest.mark.parametrize("quantity", [unyt.unyt_array([1.0, 2.0, 4.0], "m"), unyt.unyt_quantity(3.0, "s")])
def test_a_quantity_on_the_left(face: Callable[..., Any], quantity: Any) -> None:
    x = face(np.array([1.0, 2.0, 3.0]))
    product, quotient = quantity * x, quantity / x
    product.sum().backward()
    raw = getattr(product, "tensor", product)._raw.payload
    assert raw.units == quantity.units and np.allclose(raw.value, quantity.value * [1, 2, 3])
    grad = getattr(x.grad, "tensor", x.grad)._raw.payload
    assert grad.units == quantity.units and np.allclose(grad.value, np.broadcast_to(quantity.value, 3))
    assert getattr(quotient, "tensor", quotient)._raw.payload.units == quantity.units


def test_a_gradients_unit_is_the_results_over_the_arguments() -> None:
    length, time = unyt.unyt_array([1.0, 2.0], "m"), unyt.unyt_quantity(4.0, "s")
    by_length, by_time = cr.grad(lambda x, t: np.sum(x**2 / t), argnums=(0, 1))(length, time)
    assert by_length.units == unyt.m / unyt.s and np.allclose(by_length.value, [0.5, 1])
    assert by_time.units == unyt.m**2 / unyt.s**2 and np.allclose(by_time.value, -5 / 16)


def test_lengths_are_not_added_to_numbers() -> None:
    length = unyt.unyt_array([1.0, 2.0], "m")
    for function in (lambda x: x + 1.0, lambda x: np.exp(x), lambda x: np.where(x > 0 * unyt.m, x, 1.0)):
        with pytest.raises((unyt.exceptions.UnitOperationError, unyt.exceptions.UnitConversionError)):
            cr.grad(lambda x, f=function: np.sum(f(x)))(length)
    assert cr.grad(lambda x: np.sum(np.maximum(x, 0.0)))(length).tolist() == [1, 1]  # zero has every unit


def test_two_libraries_in_one_operation() -> None:
    with pytest.raises(TypeError, match=r"a dask.Array .* and a unyt.unyt_array .* in one operation") as raised:
        cr.as_tensor(lazy()) + cr.as_tensor(unyt.unyt_array(VALUES, "m"))
    assert ".compute()" in str(raised.value) and ".value" in str(raised.value)


# -- writes ------------------------------------------------------------------------------------------------------------


def test_writes_are_functional() -> None:
    given = lazy()
    t = cr.as_tensor(given)
    view = t[0]
    t += 1
    t[1, 1:] = 0.0
    view.mul_(10)
    assert numbers(t).tolist() == [[20, 30, 40], [5, 0, 0]]
    assert numbers(view).tolist() == [20, 30, 40]
    assert given.compute(scheduler="synchronous").tolist() == VALUES.tolist()


def test_writes_are_recorded() -> None:
    x = cr.tensor(lazy(), requires_grad=True)
    y = x * 1.0
    y[0] = 7.0
    y[:, 0].mul_(3.0)
    (y * y).sum().backward()
    expected = cr.tensor(VALUES, requires_grad=True)
    z = expected * 1.0
    z[0] = 7.0
    z[:, 0].mul_(3.0)
    (z * z).sum().backward()
    assert numbers(x.grad).tolist() == expected.grad.tolist()


def test_gradients_accumulate_and_an_optimiser_steps() -> None:
    x = cr.tensor(lazy(), requires_grad=True)
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert numbers(x.grad).tolist() == (4 * VALUES).tolist()
    with cr.no_grad():
        x -= 0.25 * x.grad
    x.grad.zero_()
    assert not numbers(x).any() and not numbers(x.grad).any()


def test_writes_in_numpys_face() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y[0] = 0.0
        y += 1
        return (y * y).sum()

    assert np.allclose(numbers(cr.grad(f)(lazy())), cr.grad(f)(VALUES))


# -- copies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), cr.clone])
@pytest.mark.parametrize("face", [lambda x: x, lambda x: cr.Array(x)], ids=["Tensor", "Array"])
def test_copies_stay_lazy(copied: Callable[..., Any], face: Callable[..., Any]) -> None:
    x = face(cr.as_tensor(lazy()))
    assert numbers(copied(x)).tolist() == VALUES.tolist()


def test_a_copy_of_a_result_has_its_history() -> None:
    x, y = copy.deepcopy([x := cr.tensor(lazy(), requires_grad=True), (x * x).sum()])
    y.backward()
    assert numbers(x.grad).tolist() == (2 * VALUES).tolist()


def test_printing_computes_nothing() -> None:
    x = cr.tensor(lazy(), requires_grad=True)
    for text in (repr(x), str(x * 2), f"{x}", repr(cr.Array(lazy())), f"{cr.Array(lazy())}"):
        assert "dask.array<" in text


@pytest.mark.parametrize("like", [cr.zeros_like, cr.ones_like, cr.empty_like, lambda x: cr.full_like(x, 2.0)])
def test_what_is_made_like_it_is_lazy(like: Callable[..., Any]) -> None:
    assert numbers(like(cr.as_tensor(lazy()))).shape == VALUES.shape


# -- indices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index", [[1, 0, 0], np.array([[0, -1], [1, 1]]), (slice(None), [2, 0]), VALUES > 2, 1, (0, 2)]
)
def test_indices(index: Any) -> None:
    for face in (cr.as_tensor, cr.Array):
        assert numbers(face(lazy())[index]).tolist() == VALUES[index].tolist()
    got = cr.grad(lambda x: np.sum(x[index] ** 2))(lazy())
    assert np.allclose(numbers(got), cr.grad(lambda x: np.sum(x[index] ** 2))(VALUES))


@pytest.mark.parametrize("table", [VALUES, lazy()], ids=["NumPy", "Dask"])
def test_indices_that_are_lazy(table: Any) -> None:
    rows = lazy([1, -2, 1])
    got = cr.grad(lambda x: np.sum(x[rows] ** 2))(table)
    assert np.allclose(numbers(got), cr.grad(lambda x: np.sum(x[[1, -2, 1]] ** 2))(VALUES))


def test_a_lazy_index_that_lies_outside_reads_nan() -> None:
    got = numbers(cr.tensor(VALUES)[cr.as_tensor(lazy([1, 7]))])
    assert got[0].tolist() == [4, 5, 6] and np.isnan(got[1]).all()


def test_classes_that_are_lazy() -> None:
    loss = cr.nn.functional.cross_entropy
    x = cr.tensor(lazy(), requires_grad=True)
    loss(x, cr.as_tensor(lazy([0, 2]))).backward()
    y = cr.tensor(VALUES, requires_grad=True)
    loss(y, cr.tensor([0, 2])).backward()
    assert np.allclose(numbers(x.grad), y.grad.numpy())


# -- transformations, and errors ----------------------------------------------------------------------------------------


def f(x: Any) -> Any:
    return (x.exp() * x).sum() if isinstance(x, cr.Tensor) else np.sum(np.exp(x) * x)


@pytest.mark.parametrize(
    "transformed",
    [
        cr.func.vmap(cr.func.grad(f)),
        cr.compile(cr.func.grad(f)),
        cr.func.jacrev(f),
        cr.func.jacfwd(f),
        lambda x: cr.func.hvp(f, (x,), (x,))[0],
        lambda x: cr.func.jvp(cr.func.grad(f), (x,), (x,))[1],
        lambda x: cr.jacobian(f, x),
    ],
)
def test_transformations(transformed: Callable[..., Any]) -> None:
    assert np.allclose(numbers(transformed(lazy())), transformed(VALUES))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: np.asarray(t), "would be converted to a NumPy array"),
        (lambda t: t[t > 2], r"a boolean mask as an index \(where np.where"),
        (lambda t: cr.nonzero(t), r"nonzero\(\) needs the numbers"),
        (lambda t: cr.unique(t), r"unique\(\) needs the numbers"),
        (lambda t: cr.linalg.eig(t.T @ t), "np.linalg.eig is not available for a dask.Array"),
        (lambda t: cr.rand_like(t), "rand_like"),
        (lambda t: cr.explain(t.requires_grad_().sum()), r"explain\(\) shows the numbers"),
        (lambda t: cr.jacobian(lambda x: x * x, t, layout="csr"), "structured Jacobians"),
        (lambda t: cr.jacobian(lambda x: x * x, t, layout="operator"), "structured Jacobians"),
        (lambda t: cr.hessian(lambda x: (t * x).sum(), cr.ones(2, 3)), "structured Jacobians"),
    ],
)
def test_refusals_name_the_conversion(call: Callable[..., Any], words: str) -> None:
    with pytest.raises(TypeError, match=words) as raised:
        call(cr.as_tensor(lazy()))
    assert ".compute()" in str(raised.value)


def test_chunks_of_unknown_sizes() -> None:
    x = lazy()
    with pytest.raises(ValueError, match=r"compute_chunk_sizes\(\)"):
        cr.as_tensor(x[x > 2])


class Strange:
    """An array of a library that shares memory, but does not support NumPy's functions."""

    requires_grad = True

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ones(3)

    def __dlpack__(self, **options: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("face", [cr.tensor, cr.Array])
@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_arrays_that_do_not_answer_to_numpy(function: Callable[..., Any], face: Callable[..., Any]) -> None:
    strange = Strange()
    for operands in ((face(np.ones(3)), strange), (strange, face(np.ones(3)))):
        with pytest.raises(TypeError, match=r"do not mix, .*from_dlpack\(strange\), which shares its memory"):
            function(*operands)


def test_a_sparse_array_before_a_tensor() -> None:
    sparse = pytest.importorskip("sparse")
    matrix = sparse.COO.from_numpy(np.diag([1.0, 2.0, 3.0]))
    gradient = cr.grad(lambda w: ((matrix @ w) ** 2).sum())(np.ones(3))
    assert np.allclose(gradient.todense() if hasattr(gradient, "todense") else gradient, [2.0, 8.0, 18.0])
    with pytest.raises(NotImplementedError, match="coo @ x"):
        matrix.dot(cr.ones(3))


def test_what_has_no_protocol_says_what_to_write() -> None:
    class Alone:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.ones(3)

    for x in (cr.ones(3), cr.Array(np.ones(3))):
        for operation in (lambda a, b: a * b, lambda a, b: b * a):
            with pytest.raises(TypeError, match=r"Alone.*np\.asarray"):
                operation(x, Alone())


def test_gradients_of_lengths() -> None:
    x = np.array([3.0, 4.0])
    lengths = unyt.unyt_array(x, "m")
    for f in (np.linalg.norm, np.std, lambda a: np.sort(a)[0]):
        gradient = cr.grad(f)(lengths)
        assert not getattr(gradient, "units", None) or gradient.units.is_dimensionless
        assert np.allclose(np.asarray(gradient), cr.grad(f)(x))
