"""HIPS autograd's operators: results, their types, complex conventions, errors."""

import warnings

import numpy as onp
import pytest

import chainrule.compat.autograd as ag
import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.test_util import check_equivalent, check_grads

X = onp.array([1.0, 2.0])
M = onp.array([[1.0, 2.0], [3.0, 5.0]])
cube = lambda x: np.sum(x**3)
product = lambda x, y: x * y**2

#: a computation and its result
RESULTS = {
    "a float": (lambda: ag.grad(cube)(2.0), 12.0),
    "an integer": (lambda: ag.grad(cube)(2), 12.0),
    "an array": (lambda: ag.grad(cube)(X), onp.array([3.0, 12.0])),
    "float32": (lambda: ag.grad(cube)(X.astype("f4")), onp.array([3.0, 12.0], "f4")),
    "a value of shape (1,)": (lambda: ag.grad(lambda x: x**3)(onp.array([2.0])), onp.array([12.0])),
    "a list of results": (lambda: ag.grad(lambda x: np.array([np.sum(x * x)]))(X), 2 * X),
    "argnum": (lambda: ag.grad(product, 1)(2.0, 3.0), 12.0),
    "argnums": (lambda: ag.grad(product, [1, 0])(2.0, 3.0), (12.0, 9.0)),
    "keywords": (lambda: ag.grad(product)(2.0, y=3.0), 9.0),
    "containers": (
        lambda: ag.grad(lambda d: d["a"] * np.sum(d["b"][0]) + d["b"][1] ** 2)({"a": 2.0, "b": [X, 3.0]}),
        {"a": 3.0, "b": [onp.array([2.0, 2.0]), 6.0]},
    ),
    "nested": (lambda: ag.grad(lambda x: x * ag.grad(lambda y: x * y**2)(3.0))(2.0), 24.0),
    "NumPy's method": (lambda: ag.grad(lambda x: x.std())(X), onp.array([-0.5, 0.5])),
    "elementwise": (lambda: ag.elementwise_grad(lambda x: x**3)(X), onp.array([3.0, 12.0])),
    "value and gradient": (lambda: ag.value_and_grad(cube)(X), (9.0, onp.array([3.0, 12.0]))),
    "aux": (lambda: ag.grad_and_aux(lambda x: (cube(x), x[0]))(X), (onp.array([3.0, 12.0]), 1.0)),
    "deriv": (lambda: ag.deriv(lambda x: x**3)(X), onp.array([3.0, 12.0])),
    "jacobian": (lambda: ag.jacobian(np.cumsum)(X), onp.array([[1.0, 0.0], [1.0, 1.0]])),
    "jacobian of a number": (lambda: ag.jacobian(lambda x: np.array([x, x**2]))(3.0), onp.array([1.0, 6.0])),
    "hessian": (lambda: ag.hessian(cube)(X), onp.diag([6.0, 12.0])),
    "hessian of a number": (lambda: ag.hessian(cube)(2.0), 12.0),
    "named": (lambda: ag.grad_named(product, "y")(2.0, 3.0), 12.0),
    "all by name": (lambda: dict(ag.multigrad_dict(lambda x, y=3.0: product(x, y))(2.0)), {"x": 9.0, "y": 12.0}),
    "vjp": (lambda: ag.make_vjp(lambda x: x**2)(X)[0](onp.array([1.0, 3.0])), onp.array([2.0, 12.0])),
    "jvp": (lambda: ag.make_jvp(lambda x: x**2)(X)(onp.array([1.0, 3.0])), (X**2, onp.array([2.0, 12.0]))),
    "jvp in reverse": (
        lambda: ag.make_jvp_reversemode(lambda x: x**2)(X)(onp.array([1.0, 3.0])),
        onp.array([2.0, 12.0]),
    ),
    "hvp": (lambda: ag.make_hvp(cube)(X)[0](onp.array([1.0, 3.0])), onp.array([6.0, 36.0])),
    "Hessian times tensor": (
        lambda: ag.hessian_vector_product(lambda x: np.sum(x**3))(M, onp.ones((2, 2))),
        6 * M,
    ),
    "tensor times Jacobian": (lambda: ag.tensor_jacobian_product(lambda x: M @ x)(X, X), X @ M),
    "Gauss-Newton": (lambda: ag.make_ggnvp(lambda x: M @ x)(X)(X), M.T @ M @ X),
    "checkpoint": (lambda: ag.grad(ag.checkpoint(cube))(X), onp.array([3.0, 12.0])),
    # complex gradients are those of HIPS autograd: for f(x + iy) they are ∂f/∂x - i ∂f/∂y
    "complex": (lambda: ag.grad(lambda z: np.abs(z) ** 2)(1 + 2j), 2 - 4j),
    "complex rows": (lambda: ag.jacobian(np.imag)(onp.array([1 + 2j])), onp.array([[-1j]])),
    "holomorphic": (lambda: ag.holomorphic_grad(lambda z: z**3 * 1j)(1 + 2j), 3j * (1 + 2j) ** 2),
    "complex cotangent": (lambda: ag.make_vjp(lambda z: z * (1 + 2j))(1 + 0j)[0](1 + 1j), -1 + 3j),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name):
    compute, expected = RESULTS[name]
    found = compute()
    check_equivalent(found, expected)  # the same shapes, dtypes and containers
    assert found.shape if isinstance(found, onp.ndarray) and "hessian" not in name else True, (
        "numbers are NumPy's scalars"
    )


#: subgradients that differ from chainrule's
KINKS = {
    "maximum": (lambda x: np.maximum(x, 1.0), 1.0, 0.5),
    "fmax": (lambda x: np.fmax(x, 1.0), 1.0, 0.5),
    "fmin": (lambda x: np.fmin(1.0, x), 1.0, 0.5),
    "fmax of nan": (lambda x: np.fmax(x, onp.nan), 1.0, 1.0),
    "on the lower bound": (lambda x: np.clip(x, 1.0, 2.0), 1.0, 0.0),
    "on the upper bound": (lambda x: np.clip(x, None, 1.0), 1.0, 0.0),
    "between": (lambda x: np.clip(x, None, 2.0), 1.0, 1.0),
}


@pytest.mark.parametrize("name", KINKS)
def test_kinks(name):
    function, x, expected = KINKS[name]
    assert ag.grad(function)(x) == expected


def test_the_gradient_of_cholesky_is_symmetric():
    gradient = ag.grad(lambda a: np.linalg.cholesky(a)[1, 0])(onp.array([[4.0, 2.0], [2.0, 5.0]]))
    assert onp.array_equal(gradient, gradient.T) and gradient[0, 1] == 0.25
    check_grads(lambda a: np.linalg.cholesky(a @ a.T + np.eye(2)))(M)


@pytest.mark.parametrize("value", [1.0, True, onp.array([1, 2])])
def test_a_constant_gives_zeros_and_a_warning(value):
    with pytest.warns(UserWarning, match="independent of input"):
        vjp, found = ag.make_vjp(lambda x: value)(X)
    assert found is value and onp.array_equal(vjp(1.0), [0, 0])
    with pytest.warns(UserWarning, match="independent of input"):
        assert ag.make_jvp(lambda x: value)(X)(X)[0] is value


REFUSED = {
    "vectors": (lambda: ag.grad(lambda x: x**2)(X), "Grad only applies to real scalar-output functions"),
    "complex values": (lambda: ag.grad(lambda x: x * 1j)(1.0), "Grad only applies to real scalar-output functions"),
    "complex elements": (lambda: ag.elementwise_grad(lambda x: x * 1j)(X), "real-output"),
    "complex Jacobian": (lambda: ag.jacobian(lambda z: z * 1j)(X), "np.real and np.imag"),
    "containers": (lambda: ag.jacobian(lambda d: d["a"])({"a": X}), "dict of arrays has no shape"),
    "text": (lambda: ag.grad(cube)("a"), "Can't differentiate w.r.t. type <class 'str'>"),
    "None": (lambda: ag.grad(lambda x: 1.0)(None), "Can't differentiate"),
    "no value": (lambda: ag.grad(lambda x: None)(1.0), "Can't find vector space for value None"),
    "float()": (lambda: ag.grad(lambda x: float(x) * x)(1.0), "would silently drop the derivative"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, message = REFUSED[name]
    with warnings.catch_warnings(), pytest.raises(TypeError, match=message):
        warnings.simplefilter("ignore")
        call()


def test_names():
    named = ag.grad(product, 1)
    assert named.__name__ == "grad_of_<lambda>_wrt_argnum_1"
    assert "with respect to argument number 1" in named.__doc__


def test_types_are_those_of_the_values():
    def check(x, numbers):
        assert ag.isinstance(x, onp.ndarray) and ag.isinstance(numbers, ag.tuple) and ag.isinstance(numbers[0], float)
        assert ag.type(x) is onp.ndarray
        return np.sum(x) * numbers[0]

    assert ag.grad(check, (0, 1))(X, (2.0,))[1][0] == 3.0
