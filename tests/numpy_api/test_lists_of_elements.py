"""Lists of elements with derivatives as arguments of NumPy's functions: all transformations support them, or raise."""

import numpy as np
import pytest

import chainrule as cr

X = np.array([[0.7, 0.3, 0.9], [0.2, 0.6, 0.4], [0.8, 0.1, 0.5]])
CASES = [
    "a.put([0], [x[0, 0] ** 2])",
    "np.place(a, a > 0.45, [x[0, 0]])",
    "np.putmask(a, a > 0.45, [x[0, 0]])",
    "np.copyto(a, [x[0, 0], 1, 2])",
    "np.fill_diagonal(a, [x[0, 0], 1, 2])",
    "np.add.at(a, ([0], [0]), [x[0, 0]])",
    "np.multiply.at(a, ([0], [0]), [x[0, 0]])",
    "a.flat[[1, 2]] = [x[1, 1], 7.0]",
    "a = np.where(a > 0.45, [x[0, 0], 1, 2], a)",
    "a = np.clip(a, [x[0, 0] * 0.1, 0.2, 0.3], [0.9, x[0, 1] + 0.5, 0.8])",
    "a = np.insert(a, 0, [x[0, 0], 1, 2], 0)",
    "a = np.choose([0, 1, 0], [[x[0, 0], 1, 2], a[0]])",
    "a = np.cross([x[0, 0], 1, 2], a)",
    "a = np.outer([x[0, 0], 1], a[0])",
    "a = np.maximum([x[0, 0], 1], x[0, :2])",
    "a = np.nan_to_num(np.where(a > 0.45, a, np.nan), nan=x[0, 0])",
]
MATRICES = {
    "jacrev": lambda f: cr.jacrev(f)(X),
    "jacfwd": lambda f: cr.jacfwd(f)(X),
    "structured": lambda f: cr.jacobian(f, X, strategy="forward terms"),
}


@pytest.mark.parametrize("case", CASES)
def test_derivatives(case):
    env = {"np": np}
    exec(f"def f(x):\n    a = x * 1.0\n    {case}\n    return np.sin(a)", env)
    f = env["f"]
    steps = 1e-6 * np.eye(9).reshape(9, 3, 3)
    want = np.stack([(f(X + h) - f(X - h)) / 2e-6 for h in steps], -1).astype(float)
    for name, matrix in MATRICES.items():
        np.testing.assert_allclose(np.asarray(matrix(f)).reshape(want.shape), want, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("matrix", MATRICES)
def test_no_plain_array_stands_for_what_carries_a_derivative(matrix):
    with pytest.raises(RuntimeError, match=r"numpy\(\)"):
        MATRICES[matrix](lambda x: np.asarray([x.tensor[0, 0], x.tensor[1, 1]]) * x[0, :2])


@pytest.mark.parametrize("function", [np.any, np.all, np.max, np.sinc], ids=lambda f: f.__name__)
def test_the_truth_of_mapped_elements_is_asked_of_none(function):
    with pytest.raises((ValueError, RuntimeError)) as caught:
        cr.vmap(lambda a: function(np.array([a[0], a[1]])))(X)
    said = [str(caught.value), *getattr(caught.value, "__notes__", [])][-1]
    assert "inside vmap the value differs between examples" in said
