"""Special cases of arguments in PyTorch: sizes that are tensors, singular and empty matrices, windows of padding."""

import math
import warnings

import numpy as np
import pytest

import chainrule as cr

F = cr.nn.functional
INF, NAN = math.inf, math.nan
TWO = cr.tensor(2)
A = cr.arange(6.0).reshape(2, 3)
SINGULAR = cr.tensor([[1.0, 2.0], [2.0, 4.0]])


def real_set():
    z = cr.tensor([1 + 2j, 3 + 4j])
    z.real = cr.tensor([5.0, 6.0])
    z.imag = 1.0
    return z


#: a call -> PyTorch's result
VALUES = {
    "zeros": (lambda: cr.zeros(TWO + 1), [0, 0, 0]),
    "ones, of several": (lambda: cr.ones(TWO, TWO), [[1, 1], [1, 1]]),
    "view": (lambda: cr.ones(1, 2).view(TWO), [1, 1]),
    "reshape": (lambda: cr.ones(1, 2).reshape(TWO), [1, 1]),
    "expand": (lambda: cr.ones(1).expand(TWO), [1, 1]),
    "repeat": (lambda: cr.ones(1).repeat(TWO), [1, 1]),
    "new_zeros": (lambda: cr.ones(1).new_zeros(TWO), [0, 0]),
    "cond, zeros": (lambda: cr.linalg.cond(cr.zeros(2, 2), 1), INF),
    **{f"cond, {p}": (lambda p=p: cr.linalg.cond(SINGULAR, p), INF) for p in (1, -1, INF, -INF, "fro", "nuc")},
    "cond, one singular": (lambda: cr.linalg.cond(cr.stack([cr.zeros(2, 2), cr.eye(2)]), 1), [INF, 1]),
    "cond, empty": (lambda: cr.linalg.cond(cr.zeros(3, 0, 0)), [0, 0, 0]),
    "max_pool1d, padding alone": (
        lambda: F.max_pool1d(cr.arange(3.0).reshape(1, 1, 3), 2, 1, 1, dilation=4),
        [[[-INF]]],
    ),
    "max_pool2d, padding alone": (
        lambda: F.max_pool2d(cr.arange(4.0).reshape(1, 1, 2, 2), 2, 2, 1, dilation=3),
        [[[[-INF]]]],
    ),
    "addcmul": (lambda: cr.addcmul(cr.ones(2), cr.ones(2), cr.ones(2), value=TWO), [3, 3]),
    "addcdiv": (lambda: cr.addcdiv(cr.ones(2), cr.ones(2), cr.ones(2), value=TWO), [3, 3]),
    "addcmul_": (lambda: cr.ones(2).addcmul_(cr.ones(2), cr.ones(2), value=TWO), [3, 3]),
    "index_copy": (lambda: cr.zeros(3, 1).index_copy(0, cr.tensor(1), cr.ones(1, 1)), [[0], [1], [0]]),
    "index_add": (lambda: cr.zeros(3, 2).index_add(0, cr.tensor(1), cr.ones(1, 2)), [[0, 0], [1, 1], [0, 0]]),
    "index_copy, of a number": (lambda: cr.zeros(3).index_copy(0, cr.tensor(1), cr.tensor(5.0)), [0, 5, 0]),
    "einsum, of lists": (lambda: cr.einsum(A, [0, 1], A, [2, 1], [0, 2]), [[5, 14], [14, 50]]),
    "einsum, without a result": (lambda: cr.einsum(A, [1, 0]), [[0, 3], [1, 4], [2, 5]]),
    "einsum, of an ellipsis": (lambda: cr.einsum(A, [..., 1], A, [..., 1], [...]), [5, 50]),
    "chain_matmul": (lambda: cr.chain_matmul(A), [[0, 1, 2], [3, 4, 5]]),
    "hardshrink": (lambda: F.hardshrink(cr.tensor([INF, -INF, 3.0]), INF), [0, 0, 0]),
    "hardshrink, infinite": (lambda: F.hardshrink(cr.tensor([INF, -INF, 0.1]), 0.5), [INF, -INF, 0]),
    "add, of booleans": (lambda: cr.add(cr.tensor([True, False]), cr.tensor([True, True]), alpha=0), [True, False]),
    "matrix_exp": (lambda: cr.linalg.matrix_exp(cr.zeros(2, 2, dtype=cr.float64)), [[1, 0], [0, 1]]),
    "vander": (lambda: cr.vander(cr.tensor([100, -5], dtype=cr.int8), 3), [[10000, 100, 1], [25, -5, 1]]),
    "linalg.vander": (lambda: cr.linalg.vander(cr.tensor([100], dtype=cr.int8), N=3), [[1, 100, 10000]]),
    "real and imag": (real_set, [5 + 1j, 6 + 1j]),
}


@pytest.mark.parametrize("name", VALUES)
def test_as_in_pytorch(name):
    call, wanted = VALUES[name]
    assert call().tolist() == wanted


def test_block_diag_of_nothing():
    assert cr.block_diag().shape == (1, 0)


def test_a_part_that_is_set_is_recorded():
    w = cr.tensor([1.0, 2.0], requires_grad=True)
    z = cr.zeros(2, dtype=cr.complex64)
    z.real = w * w
    z.real.sum().backward()
    assert w.grad.tolist() == [2.0, 4.0]


def refused():
    yield lambda: cr.addcmul(A, A, A, value=cr.tensor(2.0, requires_grad=True)), TypeError, "must be Number"
    yield lambda: cr.einsum(A, [0, 52]), ValueError, "valid range"
    yield lambda: cr.einsum(A, [0, 1], A), TypeError, "followed by a list"
    yield cr.chain_matmul, RuntimeError, "one or more"
    yield lambda: setattr(cr.ones(2), "imag", 1.0), RuntimeError, "non-complex"


@pytest.mark.parametrize(("call", "kind", "words"), list(refused()))
def test_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_an_anomaly_is_its_own_error_where_warnings_are_errors():
    x = cr.tensor([-1.0], requires_grad=True)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Anomaly Detection")
        with cr.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values") as found:
            (cr.sqrt(x) * 0).sum().backward()
    assert any("Traceback of forward call" in note for note in found.value.__notes__)


@pytest.mark.parametrize("p", [None, 1, -1, np.inf, "fro", 2, -2])
def test_condition_numbers_of_singular_matrices_are_those_of_numpy(p):
    for a in (np.zeros((2, 2)), np.array([[1.0, 0.0], [0.0, 0.0]]), np.stack([np.eye(2), np.zeros((2, 2))])):
        np.testing.assert_allclose(np.asarray(np.linalg.cond(cr.Array(a), p)), np.linalg.cond(a, p))
    with pytest.raises(np.linalg.LinAlgError, match="empty"):
        np.linalg.cond(cr.Array(np.zeros((0, 0))), p)


def test_rows_that_are_scaled_down_keep_their_tangents():
    w, t = cr.tensor([[3.0, 4.0], [0.1, 0.2]]), cr.tensor([[1.0, 0.0], [1.0, 1.0]])
    value, tangent = cr.func.jvp(lambda w: F.embedding(cr.tensor([0, 1]), w, max_norm=1.0), (w,), (t,))
    assert cr.allclose(value, cr.tensor([[0.6, 0.8], [0.1, 0.2]]))
    assert cr.equal(tangent, t)
    assert cr.allclose(w, value)
