"""autograd.numpy: functions that NumPy does not dispatch, by finite differences, in both modes and to second order."""

import numpy as onp
import pytest

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd import grad
from chainrule.compat.autograd.numpy.numpy_vjps import unbroadcast_f
from chainrule.compat.autograd.test_util import check_grads

X = onp.array([0.5, 2.0, 3.0])
A = onp.array([[1.0, 2.0, 0.5], [-1.0, 0.3, 4.0]])

FUNCTIONS = {
    "array": lambda x: np.array([[x[0], 1.0], [x[1] * x[2], x[0]]]),
    "array of arrays": lambda x: np.array([x, 2 * x, X]),
    "array of an array": lambda x: np.array(x) ** 2,
    "asarray": lambda x: np.asarray((x[0], x[1] ** 2)),
    "array of objects": lambda x: np.sin(onp.array([x[0], x[1]])),
    "sum of a list": lambda x: np.sum([x[0], x[1] ** 2]),
    "sum of a list of arrays": lambda x: np.sum([x, x**2], axis=0),
    "mean, std, max of lists": lambda x: np.mean([x[0], x[1]]) * np.std([x[1], x[2] ** 2]) * np.max([x[0], x[2]]),
    "dot of lists": lambda x: np.dot([x[0], x[1]], [[1.0, x[2]], [x[0], 2.0]]),
    "norm of a list": lambda x: np.linalg.norm([x[0], 3.0, x[1]]),
    "solve of lists": lambda x: np.linalg.solve([[x[0], 1.0], [2.0, x[1]]], [x[2], 1.0]),
    "fft of a list": lambda x: np.abs(np.fft.fft([x[0], x[1], 1.0])),
    "outer, einsum": lambda x: np.einsum("i,ij->j", x, np.outer([x[0], 1.0, x[1]], [x[2], 2.0])),
    "stack of an iterator": lambda x: np.stack(x * k for k in range(3)) ** 2,
    "stack of a dict's values": lambda x: np.stack({"a": x, "b": 2 * x}.values()) ** 2,
    "concatenate": lambda x: np.concatenate([[x[0]], x, [1.0]]) ** 2,
    "vstack of lists": lambda x: np.vstack([x, [x[0], 2.0, x[1]]]) ** 2,
    "hstack": lambda x: np.hstack((x[0], x)) ** 2,
    "append": lambda x: np.append(x, [x[0], 2.0]) ** 2,
    "row_stack": lambda x: np.row_stack([x, x**2]),
    "where": lambda x: np.where(x > 1, [x[0], x[1], 2.0], x),
    "select": lambda x: np.select([x > 2.5, x < 1], [x**2, 2 * x], 1.0),
    "full": lambda x: np.full((2, 2), x[1]) * np.full(2, 3.0),
    "linspace": lambda x: np.linspace(x[0], x[1] ** 2, 4),
    "r_": lambda x: np.r_[x[0], 1.0, x, 1:3] ** 2,
    "c_": lambda x: np.c_[x, x**2],
    "make_diagonal": lambda x: np.make_diagonal(np.outer(x, x), axis1=-1, axis2=-2),
    "clip": lambda x: np.clip(x, 1.0, x[1] + 0.5) ** 2,
    "fmax": lambda x: np.fmax(x, x[1] - 0.5) * np.fmin(1.0, x),
    "a method": lambda x: x.reshape(1, 3).std(axis=1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    function = FUNCTIONS[name]
    check_grads(function)(X)
    assert not onp.allclose(grad(lambda x: np.sum(function(x)))(X), 0)


def test_of_plain_values_they_are_numpys():
    assert np.where(True, 1, 2.0) == 1 and type(np.where(True, 1, 2)) is int
    assert type(np.where([True, False], [1, 2], [3, 4])) is list
    assert type(np.where(A > 0, A, 0.0)) is onp.ndarray
    assert onp.array_equal(np.r_["0,2", [1, 2], [3, 4]], onp.r_["0,2", [1, 2], [3, 4]])
    assert np.float64 is onp.float64 and np.pi == onp.pi and np.__version__ == onp.__version__
    assert np.random.RandomState is onp.random.RandomState
    missing = [name for name in onp.__all__ if not name.startswith("_") and not hasattr(np, name)]
    assert not missing
    with pytest.raises(NotImplementedError, match=r"np\.concatenate"):
        grad(lambda x: np.sum(np.r_["0,2", x, x]))(X)


def test_sums_over_broadcast_axes():
    for shape in [(), (3,), (2, 1), (1, 3), (2, 3)]:
        target = onp.ones(shape)
        found = unbroadcast_f(target, lambda g: g * A)(2.0)
        assert onp.allclose(found, grad(lambda x: np.sum(2.0 * A * x))(target)) and onp.shape(found) == shape
    assert unbroadcast_f(1.0, lambda g: g)(1 + 2j) == 1.0
