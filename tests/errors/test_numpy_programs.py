"""First errors of NumPy programs: the message ends with the fix, in the program's names and shapes."""

import numpy as np
import pytest

import chainrule as cr


def fill(x):
    b = np.zeros((2, 3))
    for i in range(3):
        b[0, i] = x[i] ** 2
    return b.sum()


def fill_rows(x):
    b = np.zeros((2, 3))
    b[0] = x
    return b.sum()


DERIVATIVES = {
    "grad": cr.grad,
    "jacfwd": cr.func.jacfwd,
    "jacobian": lambda f: lambda x: cr.jacobian(f, x),
    "csr": lambda f: lambda x: cr.jacobian(f, x, layout="csr"),
    "compiled": lambda f: cr.compile(cr.grad(f)),
}


@pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES)
@pytest.mark.parametrize(("function", "kind"), [(fill, ValueError), (fill_rows, RuntimeError)])
def test_a_write_into_a_plain_buffer_ends_with_the_buffer_to_make(derivative, function, kind):
    with pytest.raises(kind) as caught:
        derivative(function)(np.ones(3))
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "is in a plain NumPy array" in said and "Use b = np.zeros((2, 3), like=x)" in said
    assert said.endswith("np.stack() them.")


def test_nested_derivatives_say_it_once():
    with pytest.raises(ValueError) as caught:
        cr.grad(lambda x: cr.grad(fill)(x).sum())(np.ones(3))
    assert len(caught.value.__notes__) == 1


def test_the_buffer_that_is_proposed_works():
    def filled(x):
        b = np.zeros((2, 3), like=x)
        for i in range(3):
            b[0, i] = x[i] ** 2
        return b.sum()

    np.testing.assert_allclose(cr.grad(filled)(np.arange(3.0)), [0, 2, 4])


def test_numpys_own_value_errors_are_left_alone():
    with pytest.raises(ValueError, match="could not be broadcast") as caught:
        cr.grad(lambda x: (x + np.ones(2)).sum())(np.ones(3))
    assert not getattr(caught.value, "__notes__", [])


def shifted(call):
    def function(A):
        for t in range(3):
            A = call(A - t * np.eye(2))
        return A.sum()

    return function


CALLS = {
    "inv": (np.linalg.inv, "linalg.inv: The diagonal element 1 is zero", ": A - t * np.eye(2), at t = 1. pinv"),
    "cholesky": (np.linalg.cholesky, "linalg.cholesky: The factorization", ": A - t * np.eye(2), at t = 1."),
}


@pytest.mark.parametrize(("call", "words", "step"), CALLS.values(), ids=CALLS)
def test_matrices_without_a_solution_are_named_with_the_step_of_the_loop(call, words, step):
    with pytest.raises(np.linalg.LinAlgError, match=words) as caught:
        cr.grad(shifted(call))(np.eye(2))
    assert "(test_numpy_programs.py:" in str(caught.value) and step in str(caught.value)


def test_the_step_of_nested_loops():
    def function(A):
        for t in range(3):
            for k in range(2):
                A = A - np.linalg.solve(A * (t < 1), np.eye(2)) * k
        return A.sum()

    with pytest.raises(np.linalg.LinAlgError, match=r"A \* \(t < 1\), at t = 1, k = 0\. lstsq"):
        cr.grad(function)(3 * np.eye(2))


W = np.ones(4)
MISFITS = {
    "reshape": (lambda x: x.reshape(2, 2), "cannot reshape array of size 3 into shape (2,2)"),
    "dot": (
        lambda x: np.dot(x, W),
        "not aligned: 3 (dim 0) != 4 (dim 0)\nmatmul: input @ W is (3,) @ (4,), lengths 3 ≠ 4.",
    ),
    "matmul": (lambda x: np.ones((5, 4)) @ x, "(5, 4) @ (3,), inner sizes 4 ≠ 3."),
    "matvec": (lambda x: np.matvec(np.ones((5, 4)), x), "mismatch in its core dimension"),
    "einsum": (lambda x: np.einsum("i,i->", x, W), "remapped shapes"),
    "copyto": (lambda x: np.copyto(x.copy(), W), "could not broadcast input array from shape (4,)"),
    "lstsq": (lambda x: np.linalg.lstsq(np.eye(2), x), "Incompatible dimensions"),
    "norm": (lambda x: np.linalg.norm(x[:, None], ord=3), "Invalid norm order"),
    "axis": (lambda x: np.sum(x, axis=2), "axis 2 is out of bounds"),
    "diag": (lambda x: np.diag(x * np.ones((2, 2, 3))), "Input must be 1- or 2-d."),
    "convolve": (lambda x: np.convolve(x, W, "similar"), "Use one of 'valid', 'same', or 'full'"),
    "average": (lambda x: np.average(x, weights=0 * x), "Weights sum to zero"),
    "weights": (lambda x: np.average(x, weights=W), "Axis must be specified"),
    "truth": (lambda x: 1 if x > 0 else 2, "np.where(condition, a, b) to choose"),
}


@pytest.mark.parametrize(("call", "words"), MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_is_numpys_own_error(call, words):
    """NumPy programs catch NumPy's exceptions."""
    with pytest.raises(Exception) as theirs:
        call(np.arange(3.0))
    with pytest.raises(theirs.type) as caught:
        cr.grad(lambda x: np.sum(call(x)))(np.arange(3.0))
    assert words in str(caught.value)


def test_asking_numpy_for_its_error_writes_nowhere():
    out = np.ones(3)
    with pytest.raises(RuntimeError, match="would write a tensor into out"):
        cr.grad(lambda x: np.add(x, 1.0, out=out).sum())(np.ones(3))
    assert (out == 1).all()


def test_functions_are_not_called_again_for_numpys_error():
    seen = []

    def row(x):
        seen.append(x)
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        cr.grad(lambda x: np.apply_along_axis(row, 0, x).sum())(np.ones(3))
    assert len(seen) == 1


def test_what_is_proposed_for_a_function_without_a_rule_runs():
    with pytest.raises(TypeError, match=r"np\.roots\(np\.asarray\(x\.detach\(\)\)\)"):
        cr.grad(lambda x: np.roots(x).real.sum())(np.ones(3))
    found = cr.grad(lambda x: x.sum() * np.roots(np.asarray(x.detach())).real.sum())(np.ones(3))
    np.testing.assert_allclose(found, -1)


def test_an_integer_is_named_as_it_is():
    with pytest.raises(RuntimeError, match=r"Pass 3\. instead of 3\."):
        cr.grad(lambda x: x**2)(3)


def test_jacobian_of_a_function_alone_is_a_function():
    of = cr.jacobian(lambda x: x**2, layout="csr")
    np.testing.assert_array_equal(of(np.arange(3.0)).toarray(), np.diag([0.0, 2, 4]))


@pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES)
def test_an_array_of_numbers_and_derivatives_ends_with_the_array_to_make(derivative):
    with pytest.raises(TypeError, match="float which has no callable exp") as caught:
        derivative(lambda x: np.sum(np.exp(np.array([x[0], 0.0]))))(np.ones(3))
    assert "Write np.array([...], like=x)" in caught.value.__notes__[0]
