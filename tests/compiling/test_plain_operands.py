"""Plain arrays in differentiated functions: compiled functions use NumPy for them, like eager execution, bit for bit."""

import warnings

import numpy as np
import pytest

import chainrule as cr

M = np.linspace(-0.5, 0.5, 81).reshape(9, 9)
FUNCTIONS = {
    "exp": lambda x, w: np.sum(np.exp(w) * x),
    "exp of what was computed": lambda x, w: np.sum(np.exp(w[::2] * 2 - 1) * x[::2]),
    "exp of an element": lambda x, w: np.exp(w[0]) * np.sum(x * x),
    "exp of a sum": lambda x, w: np.sum(x * np.exp(w.sum())),
    "exp of both": lambda x, w: np.sum(np.exp(-x) * np.exp(-w)),
    "product with what is reversed": lambda x, w: np.sum(x * (w[::-1] @ M.astype(w.dtype))),
    "product with a reversed matrix": lambda x, w: np.sum(x * (w @ M.T[::-1])),
    "matvec": lambda x, w: np.sum(x * np.matvec(M, w[::-1])),
    "vecdot": lambda x, w: np.sum(x * np.vecdot(M, w[::-1])),
    "vdot": lambda x, w: np.sum(x) * np.vdot(w, w[::-1]),
    "convolve": lambda x, w: np.sum(x * np.convolve(w, w[::-1], "same")),
}
TRANSFORMATIONS = {
    "value_and_grad": cr.value_and_grad,
    "jvp": lambda f: lambda x, w: cr.jvp(lambda x: f(x, w), (x,), (np.cos(x),)),
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if hasattr(np, n) or n not in ("matvec", "vecdot")])
def test_bits_are_those_of_eager(name, transformation):
    rng = np.random.default_rng(0)
    differentiated = TRANSFORMATIONS[transformation](FUNCTIONS[name])
    for dtype in "fd":
        compiled = cr.compile(differentiated)
        for _ in range(6):
            x, w = rng.standard_normal((2, 9)).astype(dtype)
            for found, expected in zip(compiled(x, w), differentiated(x, w), strict=True):
                np.testing.assert_array_equal(found, expected, strict=True)


def test_what_is_differentiated_is_no_plain_array():
    def f(x):
        return np.sum(x * np.exp(x.detach()))  # exp is chainrule's in eager execution, too

    x = np.linspace(-1, 1, 50, dtype="f")
    compiled = cr.compile(cr.grad(f))
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x), cr.grad(f)(x))


TYPES = {
    "type": lambda x: x * (2 if type(x) is np.ndarray else 3),
    "name of the type": lambda x: x * (2 if type(x).__name__ == "ndarray" else 3),
    "subclass": lambda x: x * (2 if issubclass(type(x), np.ndarray) else 3),
    "hasattr": lambda x: x * (2 if hasattr(x, "requires_grad") else 3),
    "hasattr of NumPy's": lambda x: x * (2 if hasattr(x, "__array_interface__") else 3),
    "getattr": lambda x: x * (2 if getattr(x, "detach", None) is None else 3),
    "type of a scalar": lambda x: x * (2 if type(x[0]) is np.float64 else 3),
    "type of what was computed": lambda x: x * (2 if type(x + 1) is np.ndarray else 3),
    "type in a gradient": lambda x: cr.grad(lambda y: np.sum(y * (2 if type(x) is np.ndarray else 3)))(x),
}


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("name", TYPES)
def test_types_are_those_of_plain_code(name, pure):
    x = np.arange(3.0)
    compiled = cr.compile(TYPES[name], pure=pure)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it runs eagerly
        for _ in range(2):
            np.testing.assert_array_equal(compiled(x), TYPES[name](x))


POSITIONS = cr.tensor([0, 2])
WRITES = {
    "index_copy": lambda x: x.index_copy(0, POSITIONS, cr.ones(2, 4, dtype=x.dtype)),
    "index_put": lambda x: x.index_put((POSITIONS,), cr.ones(2, 4, dtype=x.dtype)),
    "index_reduce": lambda x: x.index_reduce(0, POSITIONS, cr.ones(2, 4, dtype=x.dtype), "prod"),
    "scatter": lambda x: x.scatter(0, cr.zeros(1, 4, dtype=cr.int64), 1.0),
    "scatter_reduce": lambda x: x.scatter_reduce(0, cr.zeros(1, 4, dtype=cr.int64), x, "amax"),
    "put_": lambda x: x.clone().put_(POSITIONS, cr.ones(2, dtype=x.dtype)),
    "setitem": lambda x: _with_item(x.clone()),
}


def _with_item(x):
    x[POSITIONS] = 1.0
    return x


@pytest.mark.parametrize("name", WRITES)
def test_results_of_writes_lie_as_in_eager(name):
    x = cr.from_numpy(np.arange(12.0).reshape(4, 3).T)
    compiled, expected = cr.compile(WRITES[name]), WRITES[name](x)
    for _ in range(3):
        found = compiled(x)
        assert found.stride() == expected.stride()
        np.testing.assert_array_equal(found, expected)


def test_what_the_tape_keeps_of_repeated_elements_lies_as_in_eager():
    x = cr.from_numpy(np.asfortranarray(np.arange(12.0).reshape(4, 3))).requires_grad_()

    def derivative(x):
        return cr.func.jvp(cr.func.grad(lambda a: a.tanh().sum()), (x,), (x,))[1]

    assert cr.compile(derivative)(x).stride() == derivative(x).stride()
