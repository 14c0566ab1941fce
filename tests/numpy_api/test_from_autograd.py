"""NumPy's functions in the forms in which programs written for HIPS autograd call them."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import func
from chainrule.testing import gradcheck, gradgradcheck

RNG = np.random.default_rng(3)
MATRIX, OTHER = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))


def checked(function, *arrays):
    """Check that the value for tensors equals the value for arrays, and that the derivatives are correct."""
    tensors = tuple(cr.tensor(x, requires_grad=True) for x in arrays)
    values, expected = function(*tensors), function(*arrays)
    for value, want in zip(*(v if isinstance(v, (list, tuple)) else [v] for v in (values, expected)), strict=True):
        assert value.requires_grad
        np.testing.assert_allclose(value.detach().numpy(), want, rtol=1e-13)
    assert gradcheck(function, tensors) and gradgradcheck(function, tensors)


@pytest.mark.parametrize("arguments", [
    lambda x, y: (x, [0, 1], y, [1, 2], [0, 2]),
    lambda x, y: (x, [0, 1], y, [1, 2]),
    lambda x, y: (x, (..., 4, 9), y, (..., 9, 2), (..., 2, 4)),
    lambda x, y: (x, [0, 1], y, [1, 2], []),
    lambda x, y: (x, [7, 3], y, [3, 30], [30, 7]),
])  # fmt: skip
def test_einsum_with_lists_of_axes(arguments):
    checked(lambda x, y: np.einsum(*arguments(x, y)), MATRIX, OTHER)


def test_einsum_of_one_operand_without_output():
    checked(lambda x: np.einsum(x, [1, 0]), MATRIX)  # equals [0, 1]
    checked(lambda x: np.einsum(x, [0, 0]), MATRIX[:, :3])


def test_lists_that_hold_tensors():
    checked(lambda x: np.append([x[0, 0], 2.0, x[1, 1]], x[2, 2]), MATRIX)
    checked(lambda x: np.concatenate([x[0], [x[1, 0], 5.0]]), MATRIX)
    checked(lambda x: np.stack([x[0, :2], [x[0, 1], 2.0]]), MATRIX)
    checked(lambda x: np.block([[x[0, 0], x[0, 1] * 2], [1.0, x[2, 2]]]), MATRIX)
    checked(lambda x: np.vstack([x[0], [x[1, 0], 1.0, 2.0, x[0, 0]]]), MATRIX)
    checked(lambda x: np.hstack([x[0], [x[1, 0], 1.0]]), MATRIX)
    checked(lambda x: np.column_stack([x[:, 0], [x[1, 0], 1.0, 2.0]]), MATRIX)


def test_splits():
    cube = RNG.normal(size=(2, 3, 4))
    checked(lambda x: np.dsplit(x, 2), cube)
    checked(lambda x: np.dsplit(x, [1, 3]), cube)
    checked(lambda x: np.array_split(x, np.int64(3), axis=1), MATRIX)
    with pytest.raises(ValueError, match="equal division"):
        np.split(cr.tensor(MATRIX), 3, axis=1)
    with pytest.raises(ValueError, match="equal division"):
        np.hsplit(cr.tensor(MATRIX), 3)


def test_fortran_order():
    checked(lambda x: np.ravel(x, order="F"), MATRIX)
    checked(lambda x: np.reshape(x, (2, 6), order="F"), MATRIX)
    checked(lambda x: np.reshape(x, (2, -1, 3), order="F"), MATRIX)
    checked(lambda x: np.ravel(x, order="A"), MATRIX)
    checked(lambda x: np.ravel(x.T, order="K"), MATRIX)
    checked(lambda x: np.ravel(np.reshape(x, (2, 3, 2)).swapaxes(0, 1), order="K"), MATRIX)


@pytest.mark.skipif(np.sign(2j) != 1j, reason="NumPy 1 takes the sign of the real part")
def test_sign_of_complex_numbers():
    z = RNG.normal(size=4) + 1j * RNG.normal(size=4)
    t = cr.tensor(z, requires_grad=True)
    assert np.allclose(np.sign(t).detach().numpy(), np.sign(z))
    assert gradcheck(np.sign, (t,)) and gradgradcheck(np.sign, (t,))
    zero = func.value_and_grad(lambda z: np.real(np.sign(z)))(np.array(0j))
    assert zero[0] == 0
    assert np.all(func.grad(lambda x: np.sum(np.sign(x)))(MATRIX) == 0)


def test_bessel_function_of_numpy():
    checked(np.i0, MATRIX)


def test_indices_from_a_tensor():
    square = cr.tensor(MATRIX[:, :3], requires_grad=True)
    for name in ("tril_indices_from", "triu_indices_from", "diag_indices_from"):
        ours, numpys = getattr(np, name)(square), getattr(np, name)(MATRIX[:, :3])
        assert all(np.array_equal(a, b) for a, b in zip(ours, numpys, strict=True))
    checked(lambda x: x[np.tril_indices_from(x, -1)], MATRIX[:, :3])
