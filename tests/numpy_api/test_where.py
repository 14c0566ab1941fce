"""``where=``: excluded elements have no derivative, also where it would be infinite or nan."""

# ruff: noqa: SIM905 -- lists of names read better as words

import warnings

import numpy as np
import pytest

import chainrule as cr

X = np.array([-1.0, 0.0, 4.0, 0.3, np.inf, 1.0, 1.7, 0.5, np.nan])
HERE = np.array([False, False, False, True, False, False, False, True, False])
LARGE = np.array([False, False, True, False, False, False, True, False, False])
UNARY = (
    "arccos arcsin arcsinh arctan arctanh cbrt cos cosh exp exp2 expm1 fabs log log10 log1p log2 negative reciprocal sin sinh "
    "sqrt square tan tanh"
).split()
BINARY = "add arctan2 divide float_power fmod hypot logaddexp logaddexp2 maximum minimum multiply power remainder subtract".split()


def slopes(ufunc, i, *x):
    moved = [a + 1e-6 * (k == i) for k, a in enumerate(x)], [a - 1e-6 * (k == i) for k, a in enumerate(x)]
    return (ufunc(*moved[0]) - ufunc(*moved[1])) / 2e-6


def checked(ufunc, x, here):
    finite = [np.where(here, a, 2.0 if here is LARGE else 0.4) for a in x]

    def function(*x):
        return ufunc(*x, out=np.zeros_like(x[0]), where=here)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # excluded elements are not computed
        value, pull = cr.vjp(function, *x)
        gradients = pull(np.ones(len(here)))
        tangent = cr.jvp(function, tuple(x), tuple([np.ones(len(here)) for _ in x]))[1]
    wanted = [np.where(here, slopes(ufunc, i, *finite), 0) for i in range(len(x))]
    np.testing.assert_allclose(value, np.where(here, ufunc(*finite), 0), rtol=1e-14)
    np.testing.assert_allclose(gradients, wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(tangent, sum(wanted), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name):
    checked(getattr(np, name), [X], HERE)


def test_the_inverse_of_cosh():
    checked(np.arccosh, [X], LARGE)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays(name):
    checked(getattr(np, name), [X, np.where(HERE, 0.7, X)], HERE)


def test_numbers_and_integers_as_operands():
    n = np.array([0, 2, 0])
    x = np.array([1.0, 3.0, np.inf])
    gradient = cr.grad(lambda x: np.sum(np.divide(x, n, out=np.zeros_like(x), where=n != 0)))(x)
    assert gradient.tolist() == [0, 0.5, 0]
    gradient = cr.grad(lambda x: np.sum(np.divide(1.0, x, out=np.zeros_like(x), where=x > 2)))(np.array([0.0, 4.0]))
    assert gradient.tolist() == [0, -1 / 16]
    never = cr.grad(lambda x: np.sum(np.divide(x, 0.0, out=np.zeros_like(x), where=np.zeros(2, bool))))(np.ones(2))
    assert never.tolist() == [0, 0]
    single = cr.Array(np.float32([1, 4]))
    assert np.power(single, 0.5, out=single * 0, where=single > 2).dtype == np.float32


def test_several_results():
    x = np.array([np.nan, 2.7])

    def function(x):
        one, two = np.modf(x, out=(np.zeros_like(x), np.ones_like(x)), where=x > 0)
        return np.sum(one * two)

    assert cr.value_and_grad(function)(x) == (pytest.approx(1.4), pytest.approx([0, 2]))


def test_masks_of_each_example():
    x = np.array([[0.0, 4.0], [2.0, 0.0]])
    found = cr.vmap(cr.grad(lambda x: np.sum(np.log(x, out=np.zeros_like(x), where=x > 0))))(x)
    assert found.tolist() == [[0, 0.25], [0.5, 0]]


REDUCTIONS = {
    "sum": lambda x, m: np.sum(x, where=m),
    "mean": lambda x, m: np.mean(x, where=m),
    "std": lambda x, m: np.std(x, where=m),
    "var": lambda x, m: np.var(x, where=m, ddof=1),
    "prod": lambda x, m: np.prod(x, where=m),
    "max": lambda x, m: np.max(x, where=m, initial=-5.0),
    "logaddexp.reduce": lambda x, m: np.logaddexp.reduce(x, where=m),
    "logaddexp.reduce, initial": lambda x, m: np.logaddexp.reduce(x, where=m, initial=1.0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    function = REDUCTIONS[name]
    value, gradient = cr.value_and_grad(lambda x: function(x, HERE))(X)
    kept = X[HERE]
    wanted = [
        (function(kept + h, np.ones(2, bool)) - function(kept - h, np.ones(2, bool))) / 2e-6 for h in 1e-6 * np.eye(2)
    ]
    np.testing.assert_allclose(value, function(X, HERE), rtol=1e-14)
    np.testing.assert_allclose(gradient[HERE], wanted, rtol=1e-6, atol=1e-8)
    assert not gradient[~HERE].any()


def test_deviations_of_one_element_have_no_derivative():
    x = np.array([1.0, 2.0])
    for function in (
        lambda x: np.std(x, where=np.array([True, False])),
        lambda x: np.nanstd(x[:1]),
        lambda x: np.std(x[:1], mean=x[:1]),
    ):
        assert cr.grad(function)(x).tolist() == [0, 0]
