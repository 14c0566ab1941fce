"""NumPy programs that once gave wrong results (found and shrunk by `tests/fuzz`): NumPy's value, and its gradient."""

import numpy as np
import pytest

import chainrule as cr

X = np.array([[1.1, -2.0, 3.0], [0.5, 0.2, -0.1]])
CASES = {
    "adding to a row": "v = x * 2; v[0] += 1; r = v ** 2",
    "adding to a part of a view": "v = x * 2; v[None, 0, 1:3:2] += x[0, 0]; r = v ** 2",
    "writing into what ravel gives": "v = x * 2; v.ravel()[:1] = x[1, 1]; r = v ** 2",
    "adding what is read from the same memory": "v = x * 2; v[::-1] += v; r = v ** 2",
    "numbers reduced along an axis": "r = x.sum().max(axis=0) + np.sum(x.mean(), axis=-1) + x.prod().min(0)",
    "a number that becomes an array": "r = x.min(); r -= x",
    "numbers along their one axis": "r = x.sum().cumsum(0) + x.max().repeat(2, axis=-1) + np.cumprod(x.min(), axis=0)",
    "numbers and True": "r = x.sum()[True] * x.max()[None][0]",
    "a difference from a number": "r = np.diff(x, prepend=0.5) + np.diff(x, axis=0, append=x[0, 0])",
    "a tiled array is no view": "v = np.tile(x, 2); v /= 2; w = np.tile(x, (2, 1))[2:]; w %= 0.7; r = v.sum() * w * x",
    "a flipped array is a view": "v = x * 2; np.flip(v)[0] *= x[0]; np.fliplr(v)[:, 0] = 1; r = v ** 2",
    "a rotated array is a view": "v = x * 2; np.rot90(v)[0] *= x[:, 0]; r = v ** 2",
    "conj of real numbers is the array": "v = x * 2; v.conj()[0] *= x[1]; r = v ** 2",
    "a vector under a triangle": "r = np.triu(x[0]) * np.tril(x[1], -1) + np.triu(x[0], 1) + np.tril(x[0])",
    "grids are copies": "v = x * 2; a, b = np.meshgrid(v, v); a *= 3; r = v[0, 0] * a + b",
    "numbers convolved": "r = np.convolve(x[0], x[1, 1]) * np.convolve(x[0, 0], x[1])",
    "adding at places that are saved": "v = np.tanh(x[0]); w = v * v; np.add.at(v, [0, 0, 1], x[1]); r = v * w",
    "writing at places that are saved": "v = np.tanh(x[0]); w = v * v; np.put(v, [0, 1], x[1, :2]); r = v * w",
    "masks over what is saved": "v = np.tanh(x); w = v * v; np.putmask(v, v > 0.2, x); np.fill_diagonal(v, 3); r = v * w",
    "copies over what is saved": "v = np.tanh(x); w = v * v; np.copyto(v, x[0]); r = v * w",
    "adding where one place comes twice": "v = np.sin(x); v[:, [-2, 1]] += x[:, :2]; r = v ** 2",
    "writing where one place comes twice": "v = np.sin(x); v[[1, 0, 1]] = np.stack([x[0], x[1], x[0] * x[1]]); r = v * x",
    "multiplying where one place comes twice": "v = x ** 2; v[..., np.array([[-1, -1]])] *= x[:, :1, None]; r = v",
    "what a number is reshaped to is a copy": "s = x.sum(); v = s.reshape(-1); v *= x[0, 0]; w = np.atleast_1d(s); w[0] = 2; r = s * v * w",
    "so are its new axes": "s = x[0, 1]; v = s[None]; v += 1; w = np.expand_dims(s, 0); w *= x[0, :1]; r = s * v * w + x",
    "a result of transposed operands lies as they do": "v = np.multiply(x.T, x.T); v.reshape(-1)[1:] *= -2; r = v ** 3",
    "ravel of what lies in columns is a copy": "v = np.where(x.T > 0, x.T, 1); v.ravel()[:1] = 0.3; r = v * x.T",
    "arrays of elements are written to": "v = np.array([u for u in x[0]]); v += x[1]; np.copyto(v, v * x[0]); "
    "np.put(v, [0], x[1, 1]); np.add.at(v, [0, 0], x[1, 1:]); np.subtract(v, x[0], out=v, where=x[0] > 0); r = v * x",
    "functions of two arrays of elements": "v = np.array([u for u in x[0]]); r = np.fmod(v, 0.37) * np.arctan2(v, x) + np.hypot(v, v)",
    "a written array that lies in no order of rows, and a view of it": "u = np.stack([x, x + 1]).mT * 0.3; v = np.power(u, 2); "
    "w = v[:1]; v **= 2; r = v + w.sum()",
    "sums of no products": "v = x[None, None, :, 3:]; r = x * 2 + (v @ v.mT).sum()",
    "quantiles of nothing": "v = np.quantile(x[:1, 3:], 0.7, axis=0); r = x * (2 + v.sum())",
    "copyto from extra leading axes of length 1": "v = np.sin(x); np.copyto(v, x[None, :1]); r = v * x",
    "the first power of a matrix is the matrix": "v = np.outer(x[0], x[1]); w = np.linalg.matrix_power(v, 1); w *= 2; r = v",
    "least squares of nothing": "r = x + np.linalg.lstsq(x[:0], x[:0])[0][0]",
    "equal elements in NumPy's order": "v = np.diagflat(x); r = np.take_along_axis(v, np.argsort(v, axis=0), axis=-1)",
    "the value of heaviside at zero": "r = np.heaviside(np.array([-1.0, 0.0, 0.0]), x) * x",
    "what True and arrays of one number take is a copy": "v = np.sin(x); w = v[True]; w *= 2; u = v[np.array(1)]; u += w[0, 1]; r = v",
    "sorted columns lie in columns": "v = np.sort(x.T, axis=0); v.ravel()[:2] = x[0, 0]; r = v",
    "so do partitioned ones": "v = np.partition(x.T, 1, axis=0); v.ravel()[:2] = x[0, 0]; "
    "w = np.partition(x.T, 0)[..., 0]; w.ravel()[0] = 2; r = v * w[:, None]",
    "and padded ones": "v = np.pad(x.T, 1, mode='edge'); v.ravel()[:3] = 5; "
    "w = np.pad(x.T, (0, 1)); w.reshape(-1)[:2] = 3; r = v ** 2 + w.sum()",
    "extrema of nothing that begin somewhere": "r = x + np.max(x[:0], initial=0.2) + np.min(x[:0], axis=0, initial=3.0)",
    "a fold of one part is memory of its own": "v = np.sin(x); w = np.subtract.reduce(v[:1]); w *= 2; r = v * w",
    "meshgrid of matrices": "a, b = np.meshgrid(x, x[0]); r = a * b",
}


@pytest.mark.parametrize("name", CASES)
def test_program(name: str) -> None:
    env = {"np": np}
    exec("def f(x):\n    " + CASES[name].replace("; ", "\n    ") + "\n    return np.sum(np.sin(r))", env)
    f = env["f"]
    value, gradient = cr.func.value_and_grad(f)(X)
    assert value == pytest.approx(f(X.copy()), rel=1e-12)
    h = 1e-6 * np.eye(X.size).reshape(-1, *X.shape)
    slopes = [(f(X + step) - f(X - step)) / 2e-6 for step in h]
    np.testing.assert_allclose(gradient.ravel(), slopes, rtol=1e-6, atol=1e-7)
    value, tangent = cr.func.jvp(f, (X,), (X,))
    assert (value, tangent) == (pytest.approx(f(X.copy()), rel=1e-12), pytest.approx(np.sum(gradient * X), rel=1e-9))


MAPPED = {
    "what an example's integer takes is a view": "v = x * 2; w = v[x.argmax() % 2]; w *= x[0]; r = v",
    "views of it": "v = x * 2; w = v[x.argmax() % 2][1:]; v[0] *= x[1]; w[0] = x[0, 0]; w += w[:1]; r = v * w[1]",
    "of a transposed array": "v = x.T * 2; w = v.T[:, x.argmax() % 3]; w *= x[0, 0]; v[0] += w; r = v * w",
    "of what is not mapped": "v = np.ones((2, 3)) + 0 * x; w = v[x.argmax() % 2]; w *= x[0]; v[0] += w; r = v * w",
    "of the argument": "w = x[x.argmax() % 2]; w *= x[0]; x[0] += w; r = x * w",
    "ravel of what arrays took": "v = x[np.array([[0, -1]]), np.array([-1, 1])]; w = v.ravel(); v *= 2; v -= w; r = x + v.sum()",
    "an element of it is a number": "v = x * 2; w = v[x.argmin() % 2, 0]; w *= 3; r = v * w",
}


@pytest.mark.parametrize("name", MAPPED)
def test_program_in_vmap(name: str) -> None:
    env = {"np": np}
    exec("def f(x):\n    " + MAPPED[name].replace("; ", "\n    ") + "\n    return np.sum(np.sin(r))", env)
    f = env["f"]
    examples = np.stack([X, X[::-1], 0.3 - X])
    np.testing.assert_allclose(cr.vmap(f)(examples), [f(x.copy()) for x in examples], rtol=1e-12)
    gradients = [cr.func.grad(f)(x) for x in examples]
    np.testing.assert_allclose(cr.vmap(cr.func.grad(f))(examples), gradients, rtol=1e-10, atol=1e-12)
    summed = cr.func.grad(lambda x: np.sum(cr.vmap(f)(x)))(examples)
    np.testing.assert_allclose(summed, gradients, rtol=1e-10, atol=1e-12)


def test_slogdet_of_a_singular_matrix_beside_others() -> None:
    examples = np.stack([np.ones((2, 2)), [[2.0, 1.0], [0.0, 4.0]]])
    logabsdet = lambda x: np.linalg.slogdet(x)[1]
    gradients = cr.vmap(cr.func.grad(logabsdet))(examples)
    np.testing.assert_allclose(gradients, [np.full((2, 2), np.nan), [[0.5, 0.0], [-0.125, 0.25]]])
    value, tangent = cr.func.jvp(logabsdet, (examples,), (examples,))
    np.testing.assert_allclose(value, [-np.inf, np.log(8)])
    np.testing.assert_allclose(tangent, [np.nan, 2.0])


@pytest.mark.parametrize("name", ["mean", "std", "var"])
def test_numbers_have_no_mean_along_an_axis(name: str) -> None:
    with pytest.raises(np.exceptions.AxisError):
        cr.func.grad(lambda x: getattr(x.sum(), name)(axis=0))(X)
