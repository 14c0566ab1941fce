"""xarray objects contain chainrule's arrays, and are trees of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

xr = pytest.importorskip("xarray")


def field() -> Any:
    labels = {"t": [10, 20], "s": list("abc")}
    return xr.DataArray(np.arange(1.0, 7).reshape(2, 3), dims=("t", "s"), coords=labels, name="temperature")


def same_labels(a: Any, b: Any) -> bool:
    return bool(a.dims == b.dims and a.name == b.name and a.coords.to_dataset().identical(b.coords.to_dataset()))


def test_a_gradient_has_the_labels_of_its_argument() -> None:
    x = field()
    g = cr.grad(lambda a: (np.exp(a.sel(t=10)) * a.mean("t")).sum())(x)
    assert isinstance(g, xr.DataArray) and same_labels(g, x)
    plain = cr.grad(lambda a: np.sum(np.exp(a[0]) * np.mean(a, 0)))(x.data)
    assert np.allclose(g.data, plain)


def test_a_value_and_its_gradient() -> None:
    value, g = cr.value_and_grad(lambda a: (a**2).mean())(field())
    assert float(value) == pytest.approx(91 / 6) and isinstance(value.data, np.ndarray)
    assert np.allclose(g, field() / 3)


def test_datasets() -> None:
    data = xr.Dataset({"a": field(), "b": ("s", [1.0, 2.0, 3.0])})
    g = cr.grad(lambda d: (d["a"] * d["b"]).sum())(data)
    assert isinstance(g, xr.Dataset) and g["b"].dims == ("s",)
    assert np.allclose(g["b"], [5, 7, 9]) and np.allclose(g["a"], np.broadcast_to([1, 2, 3], (2, 3)))


def test_tangents_and_cotangents_have_labels() -> None:
    x = field()
    out, tangent = cr.func.jvp(lambda a: a.sum("t") ** 2, (x,), (x,))
    assert out.dims == tangent.dims == ("s",) and np.allclose(tangent, 2 * out)
    (cotangent,) = cr.func.vjp(lambda a: a**2, x)[1](x)
    assert same_labels(cotangent, x) and np.allclose(cotangent, 2 * x**2)


def test_vmap_hands_over_one_row_with_its_labels() -> None:
    def total(row: Any) -> Any:
        assert row.dims == ("s",) and list(row.s.values) == list("abc")
        return (row**2).sum()

    assert cr.func.vmap(total)(field()).tolist() == [14, 77]


@pytest.mark.parametrize(
    "face", [lambda x: cr.tensor(x, requires_grad=True), lambda x: cr.Array(x, requires_grad=True)]
)
def test_operands(face: Any) -> None:
    x, a = face(np.array([1.0, 2.0, 3.0])), field()[0]
    for product in (x * a, a * x, np.multiply(x, a), np.multiply(a, x)):
        assert isinstance(product, xr.DataArray) and product.dims == ("s",)
        assert product.data.requires_grad
    (a * x).sum().data.backward()
    assert np.allclose(np.asarray(x.grad), a)


def test_a_function_that_makes_labels_inside() -> None:
    x = np.arange(3.0)
    assert np.allclose(cr.grad(lambda a: np.exp(xr.DataArray(a, dims="s")).sum())(x), np.exp(x))


def test_lazy_data_with_labels_stays_lazy() -> None:
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.array")
    x = field().chunk({"t": 1})
    with dask.config.set(scheduler=lambda *args, **kwargs: 1 / 0):
        g = cr.grad(lambda a: (a**2).sum())(x)
        assert cr.as_tensor(x)._raw.payload is x.data
    assert g.chunks == x.chunks and np.allclose(g.compute(scheduler="synchronous"), 2 * field())


def test_quantities_of_pint() -> None:
    pint = pytest.importorskip("pint")
    quantity = pint.UnitRegistry().Quantity
    q = quantity(np.array([3.0, 4.0]), "m")
    for product in (
        cr.tensor([1.0, 2.0]) * q,
        q * cr.tensor([1.0, 2.0]),
        cr.Array([1.0, 2.0]) * q,
        q @ cr.Array([1.0, 2.0]),
    ):
        assert product.units == q.units and isinstance(product.magnitude, (cr.Tensor, cr.Array))
    g = cr.grad(lambda m: np.sum(quantity(m, "m") ** 2).magnitude)(q.magnitude)
    assert g.tolist() == [6, 8]
    with pytest.raises(ValueError, match="its magnitude, as in grad"):
        cr.grad(lambda x: (x**2).sum())(q)
