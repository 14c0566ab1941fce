"""NumPy arguments give NumPy results of the same dtype; tensors give tensors."""

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import (
    grad,
    grad_and_value,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)

A = np.array([1.0, 2.0, 3.0])


def parts(x):
    return [p for item in x for p in parts(item)] if isinstance(x, (tuple, list)) else [x]


CASES = {
    "grad": lambda x: grad(lambda a: np.sum(a**3))(x),
    "grad_and_value": lambda x: grad_and_value(lambda a: np.sum(a**3))(x),
    "value_and_grad": lambda x: value_and_grad(lambda a: np.sum(a**3))(x),
    "vjp": lambda x: (lambda y, pull: (y, pull(x)))(*vjp(np.sin, x)),
    "jvp": lambda x: jvp(np.sin, (x,), (x,)),
    "linearize": lambda x: (lambda y, push: (y, push(x)))(*linearize(np.sin, x)),
    "linear_transpose": lambda x: linear_transpose(lambda a: a * 2, x)(x),
    "vmap": lambda x: vmap(lambda a: np.sin(a))(x),
    "vmap shared": lambda x: vmap(lambda a, b: b, in_dims=(0, None))(x, x),
    "vmap of grad": lambda x: vmap(grad(np.sin))(x),
    "jacrev": lambda x: jacrev(np.sin)(x),
    "jacfwd": lambda x: jacfwd(np.sin)(x),
    "hessian": lambda x: hessian(lambda a: np.sum(a**3))(x),
    "hvp": lambda x: hvp(lambda a: np.sum(a**3), x, x),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_form_and_dtype(name, dtype):
    for result in parts(CASES[name](A.astype(dtype))):
        assert type(result) is np.ndarray and result.dtype == dtype and result.flags.writeable
    for result in parts(CASES[name](cr.from_numpy(A.astype(dtype)))):
        assert isinstance(result, cr.Tensor) and result.dtype == dtype and not result.requires_grad


SCALARS = {
    "power": lambda a: np.sum(a**3),
    "product": lambda a: np.sum(a * a * a),
    "linear": lambda a: np.sum(3.0 * a),
    "constant": lambda a: cr.ones(()),
}
INPUTS = {
    "float": 2.0,
    "NumPy scalar": np.float64(2.0),
    "0-d array": np.array(2.0),
    "one element": np.array([2.0]),
    "1-d array": A,
}
DRIVERS = {
    "grad": lambda f, x, v: grad(f)(x),
    "grad, aux": lambda f, x, v: grad(lambda a: (f(a), f(a) * 2), has_aux=True)(x),
    "grad_and_value": lambda f, x, v: grad_and_value(f)(x),
    "value_and_grad": lambda f, x, v: value_and_grad(f)(x),
    "vjp": lambda f, x, v: (lambda y, pull: (y, pull(y)))(*vjp(f, x)),
    "jvp": lambda f, x, v: jvp(f, (x,), (v,)),
    "jacrev": lambda f, x, v: jacrev(f)(x),
    "jacfwd": lambda f, x, v: jacfwd(f)(x),
    "jacfwd, aux": lambda f, x, v: jacfwd(lambda a: (f(a), f(a) * 2), has_aux=True)(x),
    "hessian": lambda f, x, v: hessian(f)(x),
    "hvp": lambda f, x, v: hvp(f, x, v),
    "linearize": lambda f, x, v: (lambda y, push: (y, push(v)))(*linearize(f, x)),
    "grad of grad": lambda f, x, v: grad(lambda a: np.sum(grad(f)(a)))(x),
    "grad of hessian": lambda f, x, v: grad(lambda a: np.sum(hessian(f)(a)))(x),
    "jacfwd of grad": lambda f, x, v: jacfwd(grad(f))(x),
}


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("function", SCALARS)
def test_arrays_and_numbers_get_arrays_and_tensors_get_tensors(driver, function, given):
    x = INPUTS[given]
    for form, kind in ((x, np.ndarray), (cr.tensor(x, dtype=cr.float64), cr.Tensor)):
        like = np.ones_like(x) if kind is np.ndarray else cr.ones_like(form)
        for result in parts(DRIVERS[driver](SCALARS[function], form, like)):
            assert type(result) is kind and not getattr(result, "requires_grad", False)


def residual(p):
    """A function that itself differentiates with respect to a constant array."""
    return np.sum((grad(lambda t: np.sum((t / p[0]) ** p[1]))(A) - 1) ** 2)


@pytest.mark.parametrize("driver", DRIVERS)
def test_inner_derivatives_by_constants_leave_no_graph(driver):
    p = np.array([1.5, 0.7])
    got = DRIVERS[driver](residual, p, np.ones(2))
    want = DRIVERS[driver](lambda p: np.sum((p[1] / p[0] * (A / p[0]) ** (p[1] - 1) - 1) ** 2), p, np.ones(2))
    for g, w in zip(parts(got), parts(want), strict=True):
        assert type(g) is np.ndarray
        np.testing.assert_allclose(g, w)


def test_a_pullback_from_outside_leaves_no_graph():
    _, pull = vjp(np.sin, A)
    gradient = grad(lambda w: np.sum(pull(w * A)[0]))(2.0)
    assert type(gradient) is np.ndarray and np.allclose(gradient, np.sum(A * np.cos(A)))
    _, push = linearize(np.sin, A)
    gradient = grad(lambda w: np.sum(push(w * A)))(2.0)
    assert type(gradient) is np.ndarray and np.allclose(gradient, np.sum(A * np.cos(A)))


@pytest.mark.parametrize("name", CASES)
def test_results_own_their_memory(name):
    x = A.copy()
    for result in parts(CASES[name](x)):
        if name == "vmap shared":
            continue
        assert not np.shares_memory(result, x)
        result += 1
    np.testing.assert_array_equal(x, A)


def test_the_cotangent_is_not_handed_back():
    _y, pull = vjp(lambda a, b: a + b, A, A)
    ct = np.ones(3)
    ga, gb = pull(ct)
    assert not np.shares_memory(ga, ct) and not np.shares_memory(ga, gb)


def test_numbers():
    assert grad(lambda x: x**2)(3.0) == 6.0
    assert jvp(lambda x: x**2, (3.0,), (1.0,))[1] == 6.0
    assert hessian(lambda x: x**3)(2.0) == 12.0


def test_hvp():
    f = lambda p, q: np.sum(p**2 * q)
    hp, hq = hvp(f, (A, A), (np.ones(3), np.zeros(3)))
    np.testing.assert_allclose(hp, 2 * A)
    np.testing.assert_allclose(hq, 2 * A)
    tree = hvp(lambda d: np.sum(d["a"] ** 3), {"a": A}, {"a": A})
    np.testing.assert_allclose(tree["a"], 6 * A**2)
    with pytest.raises(RuntimeError, match="same python structure"):
        hvp(f, (A, A), (A,))
    with pytest.raises(RuntimeError, match="return a scalar Tensor"):
        hvp(lambda a: a, A, A)
    np.testing.assert_allclose(hvp(lambda a: np.sum(2 * a), A, A), np.zeros(3))


def test_linear_transpose():
    M = np.arange(6.0).reshape(2, 3)
    (t,) = linear_transpose(lambda x: M @ x, A)(np.array([1.0, -1.0]))
    np.testing.assert_allclose(t, M.T @ [1.0, -1.0])
    ta, tb = linear_transpose(lambda a, b: {"s": a + 2 * b, "d": a[:1]}, A, A)({"s": A, "d": np.array([10.0])})
    np.testing.assert_allclose(ta, A + np.array([10, 0, 0]))
    np.testing.assert_allclose(tb, 2 * A)
    C = M[:, :2] + 1j * M[:, 1:]
    (tc,) = linear_transpose(lambda x: C @ x, np.zeros(2, complex))(np.array([1.0, 1j]))
    np.testing.assert_allclose(tc, C.T @ [1.0, 1j])
    double = linear_transpose(lambda ct: linear_transpose(lambda x: M @ x, A)(ct)[0], np.zeros(2))
    np.testing.assert_allclose(double(A)[0], M @ A)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + 1,
        lambda x: x * x,
        lambda x: np.exp(x) - 1,
        lambda x: np.abs(x),
        lambda x: np.maximum(x, 0),
        lambda x: x * np.sum(x),
        lambda x: np.sort(x) * np.sin(x),
    ],
)
def test_linear_transpose_refuses_what_is_not_linear(f):
    with pytest.raises(RuntimeError, match="f is not linear"):
        linear_transpose(f, A)


def test_names_that_are_not_there_say_what_to_use():
    for name in ("functionalize", "replace_all_batch_norm_modules_"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': "):
            getattr(cr.func, name)
    with pytest.raises(AttributeError, match="no attribute 'gradd'"):
        cr.func.gradd


@pytest.mark.parametrize("f", [lambda x: x * A, lambda x: A * x, lambda x: x[0] + A])
def test_an_array_on_either_side_leaves_arrays(f):
    x = np.array([1.0, 2.0, 3.0])
    for results in (jvp(f, (x,), (x,)), [jacfwd(f)(x)], [vmap(f)(np.stack([x, x]))]):
        assert all(type(result) is np.ndarray for result in results)
