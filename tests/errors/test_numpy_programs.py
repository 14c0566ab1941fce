"""First errors of programs that are written for NumPy: the message ends with what to write, in the program's names and shapes."""

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
    assert "belongs to a plain NumPy array" in said and "Make b = np.zeros((2, 3), like=x)" in said
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
