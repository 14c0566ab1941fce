"""Object arrays of Arrays, in NumPy's functions; and their printed form."""

import numpy as np
import pytest

import chainrule as cr

X = np.array([1.0, 2.0])
CALLS = {
    "percentile": lambda v, x: np.percentile(v, 40),
    "quantile": lambda v, x: np.quantile(v, 0.3),
    "hypot": lambda v, x: np.sum(np.hypot(v, 1.5)),
    "norm": lambda v, x: np.linalg.norm(v),
    "corrcoef": lambda v, x: np.corrcoef(v, np.sin(x))[0, 1],
    "average": lambda v, x: np.average(v, weights=[1.0, 2.0]),
    "trapezoid": lambda v, x: np.trapezoid(v),
    "einsum": lambda v, x: np.einsum("i,i", v, x),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_arrays_of_objects(name):
    call = CALLS[name]

    def function(x):
        return call(np.array([x[0], x[0] * x[1]]), x)

    gradient = cr.grad(function)(X)
    differences = [(function(X + 1e-6 * e) - function(X - 1e-6 * e)) / 2e-6 for e in np.eye(2)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("function", [np.cov, lambda v: np.linalg.det(np.array([v, v])), np.fft.fft])
def test_what_takes_no_objects_says_what_to_write(function):
    with pytest.raises((TypeError, AttributeError)) as found:
        cr.grad(lambda x: np.sum(function(np.array([x[0], x[1]]))))(X)
    assert any("np.stack" in note for note in found.value.__notes__)


def test_np_asarray_of_objects_holds_the_elements():
    found = np.array(cr.Array(X, requires_grad=True), dtype=object)
    assert found.dtype == object
    assert all(isinstance(element, cr.Array) and element.requires_grad for element in found)


@pytest.mark.parametrize("x", [np.arange(3), X, np.array(2.5), np.array([True])])
def test_arrays_print_as_in_numpy(x):
    for function in (np.array_repr, np.array_str):
        assert function(cr.Array(x)) == function(x)


def test_a_singular_system_names_the_function_and_the_line():
    def function(x):
        return np.sum(np.linalg.solve(np.stack([x, x]), x))

    with pytest.raises(np.linalg.LinAlgError, match=r"np\.linalg\.solve: .* singular \(test_objects\.py:\d+\)"):
        cr.grad(function)(X)


def test_sums_of_single_precision_are_no_worse_than_numpys():
    x = np.random.default_rng(0).normal(size=(3, 1000)).astype(np.float32)
    exact = np.cumsum(x, 1, dtype=np.float64)
    found = np.asarray(np.cumsum(cr.Array(x), 1))
    assert found.dtype == np.float32
    assert abs(found - exact).max() <= abs(np.cumsum(x, 1) - exact).max()
