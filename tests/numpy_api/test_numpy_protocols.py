"""NumPy and tensors together: mixed operands, out=, where=, dtype=, conversion, and unsupported functions."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

A = np.array([[1.0, 2.0], [3.0, 4.0]])


def leaf(dtype: type = np.float64) -> cr.Tensor:
    return cr.tensor(np.array([[0.5, 1.5], [2.5, 3.5]], dtype), requires_grad=True)


@pytest.mark.parametrize(
    "expression",
    [
        "A * t",
        "A + t",
        "A - t",
        "A / t",
        "A ** t",
        "A @ t",
        "A > t",
        "A == t",
        "t * A",
        "t @ A",
        "np.float64(2) * t",
        "t * np.float64(2)",
        "2 * t",
        "np.exp(t)",
        "np.add(A, t)",
        "np.where(A > 2, t, A)",
        "np.concatenate([A, t])",
    ],
)
def test_arrays_and_tensors_mix_and_stay_recorded(expression: str) -> None:
    t = leaf()
    result = eval(expression, {"A": A, "t": t, "np": np})
    plain = eval(expression, {"A": A, "t": t.detach().numpy(), "np": np})
    assert isinstance(result, cr.Tensor) and np.array_equal(result.detach().numpy(), plain)
    assert result.requires_grad == (plain.dtype == np.float64)


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("np.exp(i)", "float64"),
        ("np.multiply(f, A)", "float64"),
        ("A * f", "float64"),
        ("np.mean(i)", "float64"),
        ("f * 2.0", "float32"),
        ("np.sin(f)", "float32"),
        ("np.multiply(f, 2.0)", "float32"),
        ("np.sum(i)", "int64"),
        ("np.exp(t)", "float64"),
        ("t * np.float32(2)", "float64"),
        ("np.true_divide(i, i + 1)", "float64"),
        ("np.exp(t, dtype=np.float32)", "float32"),
        ("np.sum(t, dtype=np.float32)", "float32"),
    ],
)
def test_dtypes_are_numpys(expression: str, dtype: str) -> None:
    scope = {"A": A, "t": leaf(), "f": leaf(np.float32), "i": cr.arange(4).reshape(2, 2), "np": np}
    assert eval(expression, scope).dtype == dtype


def test_in_place_with_an_array() -> None:
    t = leaf() * 1
    before = t
    t += A
    t *= A
    assert t is before and t.dtype == cr.float64
    t.sum().backward()
    f = cr.ones(2, 2)
    f += A
    assert f.dtype == cr.float32 and f.tolist() == [[2.0, 3.0], [4.0, 5.0]]


def test_asarray() -> None:
    t = leaf()
    with pytest.raises(RuntimeError, match=r"requires grad. Use tensor.detach\(\).numpy\(\)"):
        np.asarray(t)
    with pytest.raises(RuntimeError, match=r"t.detach\(\).numpy\(\)"):
        np.array(t)
    plain = np.asarray(t.detach())
    assert type(plain) is np.ndarray and np.shares_memory(plain, t.detach().numpy())
    assert np.asarray(t.detach(), dtype=np.float32).dtype == np.float32
    assert not np.shares_memory(np.array(t.detach()), plain)


def test_out() -> None:
    t, out = leaf(), cr.zeros(2, 2, dtype=cr.float64)
    assert np.add(t, A, out=out) is out
    assert out.requires_grad and np.array_equal(out.detach().numpy(), t.detach().numpy() + A)
    total = cr.zeros((), dtype=cr.float64)
    assert np.sum(t, out=total) is total and total.item() == 8.0
    buffer = np.zeros((2, 2))
    with pytest.raises(RuntimeError, match="would write a tensor into buffer, a plain NumPy array"):
        np.add(t, A, out=buffer)
    with pytest.raises(RuntimeError, match="plain NumPy array"):
        np.sum(t, axis=0, out=np.zeros(2))
    assert not buffer.any()


def test_where() -> None:
    t, out = leaf(), cr.zeros(2, 2, dtype=cr.float64)
    np.multiply(t, 2.0, out=out, where=A > 2)
    assert out.tolist() == [[0.0, 0.0], [5.0, 7.0]]
    with pytest.raises(TypeError, match="where"):
        np.multiply(t, 2.0, where=A > 2)
    assert np.sum(t, where=A > 2).item() == 6.0
    assert np.max(t, where=A < 2, initial=-1.0).item() == 0.5
    assert np.any(t > 3, where=A < 2).item() is False
    with pytest.raises(ValueError, match="does not have an identity"):
        np.max(t, where=A > 2)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("np.histogramdd(t)", "np.histogramdd"),
        ("np.roots(t)", "np.roots"),
        ("np.polydiv(t, A)", "np.polydiv"),
    ],
)
def test_a_function_without_a_rule_is_named(expression: str, name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} has no rule for tensors .*detach"):
        eval(expression, {"t": leaf(), "A": A, "np": np})


@pytest.mark.parametrize("axis", [0, 1, None, (0, 1), -1])
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "logaddexp"])
def test_reduce(name: str, axis: object) -> None:
    ufunc = getattr(np, name)
    t = leaf()
    plain = t.detach().numpy()
    # NumPy does not reduce logaddexp over several axes at once
    expected = np.log(np.add.reduce(np.exp(plain), axis)) if name == "logaddexp" else ufunc.reduce(plain, axis)
    result = ufunc.reduce(t, axis)
    np.testing.assert_allclose(result.detach().numpy(), expected)
    result.sum().backward()
    assert t.grad is not None


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "maximum", "arctan2", "hypot"])
def test_outer(name: str) -> None:
    ufunc, t = getattr(np, name), leaf()
    np.testing.assert_allclose(ufunc.outer(t, A).detach().numpy(), ufunc.outer(t.detach().numpy(), A))
    assert ufunc.outer(A, t).requires_grad


def test_bad_axes_are_numpys_errors() -> None:
    t = leaf()
    for call in (lambda: np.sum(t, axis=2), lambda: np.sort(t, axis=-3), lambda: np.cumsum(t, axis=5)):
        with pytest.raises(np.exceptions.AxisError):
            call()
    with pytest.raises(ValueError, match="not equal to one"):
        np.squeeze(t, axis=0)
    with pytest.raises(ValueError):
        np.concatenate([t, np.ones((3, 3))])


@pytest.mark.parametrize("operator", ["*", "+", "-", "/", "**"])
def test_numbers_of_numpy_are_weak_on_either_side(operator: str) -> None:
    scope = {"f": leaf(np.float32), "two": np.sqrt(4.0), "three": np.int64(3)}
    for expression in ("f {} two", "two {} f", "f {} three", "three {} f"):
        assert eval(expression.format(operator), scope).dtype == cr.float32


class Column:
    """A column of another library's table."""

    def __init__(self, values: list[object]) -> None:
        self.values = values

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.array(self.values, dtype)  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [[True, False], [1, 0, 1]])
def test_index_by_another_librarys_array(values: list[object]) -> None:
    t = leaf()
    assert t[Column(values)].tolist() == A_LEAF[values].tolist() == t[Column(values), :].tolist()
    t.detach()[Column(values)] = 0.0
    with pytest.raises(IndexError, match="must be long, int, byte or bool"):
        t[Column([0.5])]


A_LEAF = leaf().detach().numpy().copy()


def test_imag_of_real_numbers_is_zero() -> None:
    t = cr.tensor([1.0, np.inf, np.nan], requires_grad=True)
    out = np.imag(t)
    assert out.tolist() == np.imag(t.detach().numpy()).tolist() == [0.0, 0.0, 0.0]
    out.sum().backward()
    assert t.grad.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        cr.imag(t)
    assert t.imag.tolist() == [0.0, 0.0, 0.0]  # checks for array-likes read it


def test_axes_in_numpys_way() -> None:
    t = leaf()
    assert t.transpose((1, 0)).tolist() == t.T.tolist()
    assert cr.tensordot(t, t, axes=([0], [1])).tolist() == np.tensordot(A_LEAF, A_LEAF, axes=([0], [1])).tolist()
