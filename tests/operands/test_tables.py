"""Series and DataFrames of pandas: operands and arguments are used by their numbers."""

import operator
import re

import numpy as np
import pytest

import chainrule as cr

pd = pytest.importorskip("pandas")

df = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, 1.0, 0.5, 5.0], "name": list("wxyz")}, index=[7, 5, 3, 1])
s = df.a
numbers = df[["a", "b"]]
u = np.array([0.3, 0.5, 0.7, 0.9])

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.floordiv]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
def test_operators(op):
    values = s.to_numpy()
    for ours, plain in ((lambda x: op(x, s), lambda x: op(x, values)), (lambda x: op(s, x), lambda x: op(values, x))):
        np.testing.assert_array_equal(cr.jacrev(ours)(u), cr.jacrev(plain)(u))
        for x in (cr.Array(u), cr.tensor(u)):
            found = ours(x)
            assert type(found) is type(x)
            np.testing.assert_array_equal(np.asarray(found), plain(u))


@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_comparisons(op):
    for x in (cr.Array(u + 1), cr.tensor(u + 1)):
        np.testing.assert_array_equal(np.asarray(op(s, x)), op(s.to_numpy(), u + 1))
        np.testing.assert_array_equal(np.asarray(op(x, s)), op(u + 1, s.to_numpy()))


def test_functions_of_numpy():
    programs = [
        lambda x, s, D: np.multiply(s, x),
        lambda x, s, D: np.logaddexp(s, x) * np.exp(-s),
        lambda x, s, D: np.where(s > 2, x, s),
        lambda x, s, D: np.concatenate([s, x]),
        lambda x, s, D: x @ D,
        lambda x, s, D: np.dot(D, x[:2]),
        lambda x, s, D: np.einsum("ij,i->j", D, x),
        lambda x, s, D: x[s > 2] * 2,
        lambda x, s, D: x[:2] * D - D,
    ]
    for f in programs:
        found = cr.jacrev(lambda x, f=f: f(x, s, numbers))(u)
        np.testing.assert_array_equal(found, cr.jacrev(lambda x, f=f: f(x, s.to_numpy(), numbers.to_numpy()))(u))


def test_arguments():
    g = cr.grad(lambda v: np.sum(v**3))(s)
    assert type(g) is np.ndarray
    np.testing.assert_array_equal(g, 3 * s.to_numpy() ** 2)
    np.testing.assert_array_equal(cr.grad(lambda X: np.sum(X**2))(numbers), 2 * numbers.to_numpy())
    np.testing.assert_array_equal(cr.hessian(lambda v: np.sum(v**3))(s), np.diag(6 * s.to_numpy()))
    np.testing.assert_array_equal(cr.vmap(lambda v: v**2)(s), s.to_numpy() ** 2)
    np.testing.assert_array_equal(cr.jvp(np.sin, (s,), (s,))[1], np.cos(s.to_numpy()) * s.to_numpy())
    np.testing.assert_array_equal(cr.tensor(s).numpy(), s.to_numpy())
    found = cr.scipy.minimize(lambda p: np.mean((p[0] + p[1] * df.a - df.b) ** 2), np.zeros(2))
    np.testing.assert_allclose(found.x, np.polyfit(df.a, df.b, 1)[::-1], atol=1e-5)
    np.testing.assert_allclose(cr.scipy.minimize(lambda p: np.sum((p - 1) ** 2), s).x, 1, atol=1e-5)


def test_other_dtypes():
    x = cr.Array(u)
    np.testing.assert_array_equal(np.asarray(pd.Series([1, 2, 3, 4], dtype="Int64") * x), u * [1, 2, 3, 4])
    np.testing.assert_array_equal(np.asarray(x * pd.array([1.0, 2, 3, 4], dtype="Float64")), u * [1, 2, 3, 4])
    np.testing.assert_array_equal(np.asarray((s > 2) * x), u * [0, 0, 1, 1])
    np.testing.assert_array_equal(np.asarray(x[pd.array([True, False, False, True], dtype="boolean")]), u[[0, 3]])
    dates = pd.Series(pd.date_range("2020", periods=4))
    for other, advice in (
        (df.name, "to_numpy(float)"),
        (df, "to_numpy(float)"),
        (df.name.astype("category"), "pd.get_dummies(x)"),
        (dates, "(x - x.min()) / pd.Timedelta(days=1)"),
        (dates - dates.min(), "x / pd.Timedelta(days=1)"),
    ):
        for call in (lambda o=other: o * x, lambda o=other: x * o, lambda o=other: cr.grad(np.sum)(o)):
            with pytest.raises(TypeError, match=rf"is not numeric.*{re.escape(advice)}"):
                call()
    days = (dates - dates.min()) / pd.Timedelta(days=1)
    np.testing.assert_array_equal(np.asarray(days * x), u * [0, 1, 2, 3])


def test_what_pandas_computes_itself():
    for call in (lambda x: np.sum(s @ x), lambda x: np.sum(numbers @ x[:2]), lambda x: np.sum(df.assign(c=x).c)):
        with pytest.raises(RuntimeError, match=r"df\.to_numpy\(\) @ x"):
            cr.grad(call)(u)
    np.testing.assert_array_equal(
        cr.grad(lambda k: np.mean((df.a - k * df.b) ** 2))(2.0), np.mean(2 * df.b * (2 * df.b - df.a))
    )


def test_compiled_functions_see_what_is_written_into_tables():
    table = pd.DataFrame({"a": s})
    compiled = cr.compile(cr.grad(lambda x: np.sum((table.a * x) ** 2)))
    for _ in range(3):
        np.testing.assert_allclose(compiled(u), 2 * table.a.to_numpy() ** 2 * u)
        table["a"] = table.a * 2
    table.iloc[0, 0] = 10.0
    np.testing.assert_allclose(compiled(u), 2 * table.a.to_numpy() ** 2 * u)
