"""Operands that NumPy's functions accept: lists, and arrays of different dtypes. Values, dtypes and shapes are NumPy's."""

from __future__ import annotations

import itertools
import tracemalloc
import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule.testing import gradcheck

V, M = np.array([1.0, 2.0, 3.0]), np.arange(9.0).reshape(3, 3) + 5 * np.eye(3)

LISTS = """
np.dot(v,[1.,2.,3.]) | np.dot([1.,2.,3.],v) | np.dot(m,[1.,2.,3.]) | np.dot([[1.,2.,3.]],m) | np.dot(2,v) | np.inner(v,[1,2,3])
np.inner([[1.,2.,3.]],m) | np.vdot(v,[1.,2.,3.]) | np.outer([1.,2.],v) | np.outer(v,[1,2]) | np.tensordot(m,[1.,2.,3.],1)
np.tensordot([1,2,3],m,1) | np.kron(v,[1.,2.]) | np.kron([1,2],v) | np.einsum('i,i->',v,[1.,2.,3.]) | np.matmul(m,[1.,2.,3.])
np.matmul([1,2,3],m) | np.average(v,weights=[1.,2.,3.]) | np.average(m,axis=1,weights=[1,2,3]) | np.multiply.outer(v,[1.,2.])
np.multiply.outer([1,2],v) | np.linalg.multi_dot([m,[1.,2.,3.]]) | np.linalg.multi_dot([[1,2,3],m,m]) | np.flip(m,[0])
np.roll(m,[1,2],[0,1]) | np.cross(v,[1,2,4]) | np.trapezoid(v,[0,1,3]) | np.linalg.lstsq(m,[1,2,3],rcond=None)[0]
np.isclose(v,[1.,2.,4.]) | np.allclose(v,[1.,2.,3.]) | np.allclose([1.,2.,4.],v) | np.array_equal(v,[1.,2.,3.])
np.array_equal([1.,2.,3.],v) | np.array_equal(v,[1.,2.]) | np.lib.stride_tricks.sliding_window_view(v,2)
np.lib.stride_tricks.sliding_window_view(m,(2,3)) | np.lib.stride_tricks.sliding_window_view(m,2,axis=0)
np.lib.stride_tricks.sliding_window_view(m,[2,2],axis=[1,1])
"""

MIXED = """
np.dot(v,w) | np.dot(m,n) | np.inner(v,w) | np.inner(m,n) | np.outer(v,w) | np.tensordot(m,n,1) | np.tensordot(m,n)
np.kron(v,w) | np.kron(m,n) | np.einsum('ij,jk->ik',m,n) | np.cross(v,w) | np.matmul(m,n) | np.linalg.multi_dot([m,n,m])
np.linalg.solve(m,n) | np.linalg.lstsq(m,w,rcond=None)[0] | np.average(v,weights=w) | np.convolve(v,w) | np.append(v,w)
np.trapezoid(v,w) | np.multiply.outer(v,w) | np.interp(w,[0,1,5],v)
"""
DTYPES = ("float64", "float32", "int64", "complex128")


def expressions(text):
    lacking = () if hasattr(np, "trapezoid") else ("np.trapezoid",)
    every = [e.strip() for line in text.strip().splitlines() for e in line.split("|")]
    return [e for e in every if not e.startswith(lacking)] if lacking else every


def numpy_of(x):
    return x.detach().numpy() if isinstance(x, cr.Tensor) else np.asarray(x)


def same(ours, numpys):
    ours, numpys = numpy_of(ours), np.asarray(numpys)
    assert ours.dtype == numpys.dtype and ours.shape == numpys.shape
    np.testing.assert_allclose(ours, numpys, rtol=1e-5 if ours.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("expression", expressions(LISTS))
def test_lists(expression):
    function = eval(f"lambda v, m: {expression}", {"np": np})
    tensors = [cr.tensor(x, requires_grad=True) for x in (V, M)]
    result = function(*tensors)
    same(result, function(V, M))
    if isinstance(result, cr.Tensor) and result.is_floating_point():
        assert result.requires_grad
        assert gradcheck(function, tensors)


@pytest.mark.parametrize("expression", expressions(MIXED))
def test_dtypes(expression):
    function = eval(f"lambda v, m, w, n: {expression}", {"np": np})
    for one, other in itertools.product(DTYPES, DTYPES):
        arrays = [x.astype(one) for x in (V, M)] + [(x + 1).astype(other) for x in (V, M)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = function(*arrays)
        except TypeError:  # np.interp of complex points
            continue
        for left, right in ((1, 0), (0, 1), (1, 1)):
            tensors = [cr.tensor(x) if on else x for x, on in zip(arrays, (left, left, right, right), strict=True)]
            same(function(*tensors), expected)


def test_gradients_come_back_in_the_operands_dtypes():
    narrow, whole = V.astype("float32"), np.array([1, 2, 3])
    for function in (np.inner, np.dot, lambda a, b: np.tensordot(a, b, 1), lambda a, b: np.sum(np.kron(a, b))):
        gradients = cr.func.grad(function, (0, 1))(narrow, V)
        assert [g.dtype for g in gradients] == ["float32", "float64"]
        assert cr.func.grad(function)(narrow, whole).dtype == "float32"


def test_shapes_that_numpy_does_not_sum_over():
    for axes in (1, ([1], [0])):
        with pytest.raises(ValueError, match="shape-mismatch for sum"):
            np.tensordot(cr.tensor(M[:, :1]), M, axes)


def test_windows_that_do_not_fit():
    view = np.lib.stride_tricks.sliding_window_view
    for arguments in ((V, 4), (M, 2), (M, (2, 2, 2))):
        with pytest.raises(ValueError) as expected:
            view(*arguments)
        with pytest.raises(ValueError) as error:
            view(cr.tensor(arguments[0]), arguments[1])
        assert ("larger" in str(expected.value)) == ("larger" in str(error.value))


def test_dot_promotes_for_any_rank():
    vector, stack = np.array([1j, 2, 3]), np.arange(18.0).reshape(2, 3, 3)
    x = cr.tensor(stack, requires_grad=True)
    y = np.dot(vector, x)
    np.testing.assert_array_equal(y.detach().numpy(), np.dot(vector, stack))
    assert cr.autograd.grad(np.abs(y).sum(), x)[0].dtype == np.float64


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_numpy_integers_of_a_tensor():
    x = cr.tensor(2.7, dtype=cr.float64, requires_grad=True)
    assert np.int64(x) == np.int8(x) == int(x) == 2 and np.bool_(x)
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(x)


def test_combinations_take_little_more_memory_than_they_are():
    x = cr.rand(600, dtype=cr.float64)
    tracemalloc.start()
    size = cr.combinations(x).numpy().nbytes
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == 600 * 599 * 8 and peak < 3 * size
