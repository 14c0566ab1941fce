"""Small matrices: gufuncs without NumPy's wrappers, LAPACK's LU factors and triangular systems in C, with the bits of NumPy code."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.native import LOOPS
from chainrule._src.native.blas import blas_function
from chainrule._src.table import gufuncs, lapack, triangular

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
STACKS = [(), (5,), (2, 3), (1,)]
needs_extension = pytest.mark.skipif(LOOPS is None, reason="needs the extension")
needs_lapack = pytest.mark.skipif(blas_function("dgetrf_") is None, reason="NumPy's LAPACK is not found")


def numbers(shape, dtype, seed=0):
    generator = np.random.default_rng((seed, *shape))
    x = generator.standard_normal(shape)
    return (x + 1j * generator.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def layouts(x):
    """Yield the matrices in several memory layouts."""
    yield x
    yield np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    yield np.repeat(x, 2, axis=-1)[..., ::2]
    yield x[..., ::-1, :].copy()[..., ::-1, :]


# -- gufuncs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 8])
def test_functions_have_numpys_bits(n, dtype):
    for stack in STACKS:
        x = numbers((*stack, n, n), dtype)
        positive = x @ np.conj(x.swapaxes(-1, -2)) + 4 * np.eye(n, dtype=dtype)
        y = numbers((*stack, n, 2), dtype, 1)
        for found, expected in (
            (gufuncs.inv(x), np.linalg.inv(x)),
            (gufuncs.solve(x, y), np.linalg.solve(x, y)),
            (gufuncs.cholesky(positive), np.linalg.cholesky(positive)),
            (gufuncs.det(x), np.linalg.det(x)),
            *zip(gufuncs.slogdet(x), np.linalg.slogdet(x), strict=True),
        ):
            assert same_bits(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_without_a_result_raise_numpys_error(dtype):
    x = np.stack([np.eye(2), np.ones((2, 2))]).astype(dtype)
    for function, expected in (
        (gufuncs.inv, np.linalg.inv),
        (lambda x: gufuncs.solve(x, x), lambda x: np.linalg.solve(x, x)),
    ):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            expected(x)
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            function(x)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        gufuncs.cholesky(-x)
    with pytest.raises(np.linalg.LinAlgError):
        gufuncs.inv(x[..., :1])
    assert np.geterr()["invalid"] == "warn"


def bits_agree(found, expected):
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else ((found, expected),)
    return all(same_bits(np.asarray(a), np.asarray(b)) for a, b in pairs)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("numbers_of", ["normal", "few", "rows", "wide"])
def test_bits_of_matrices_of_any_scale(n, numbers_of):
    """Test equal pivots, and rows and elements of very different sizes."""
    generator = np.random.default_rng((n, len(numbers_of)))
    for layout in range(4):
        x = generator.standard_normal((300, n, n))
        if numbers_of == "few":
            x = generator.integers(-2, 3, x.shape).astype(np.float64)
        elif numbers_of == "rows":
            x *= 10.0 ** generator.integers(-30, 30, (300, n, 1))
        elif numbers_of == "wide":
            x *= 10.0 ** generator.integers(-8, 8, x.shape)
        x = x[np.abs(np.linalg.det(x)) > 0]
        positive = x @ x.swapaxes(1, 2) + np.square(np.abs(x).max((1, 2), keepdims=True)) * np.eye(n) / 100
        x, positive = list(layouts(x))[layout], list(layouts(positive))[layout]
        for sides in (1, 2, 5):
            y = generator.standard_normal((len(x), n, sides))
            assert bits_agree(gufuncs.solve(x, y), np.linalg.solve(x, y))
            assert bits_agree(gufuncs.solve(x[0], y[0]), np.linalg.solve(x[0], y[0]))
        assert bits_agree(gufuncs.cholesky(positive), np.linalg.cholesky(positive))
        for name in ("inv", "det", "slogdet"):
            function, expected = getattr(gufuncs, name), getattr(np.linalg, name)
            assert bits_agree(tuple(function(x)) if name == "slogdet" else function(x), expected(x))
            assert bits_agree(function(x[0]), expected(x[0]))


@needs_extension
def test_the_extension_computes_small_matrices_only():
    assert gufuncs.small_loops()
    x = numbers((2, 3, 3), np.float64)
    for case in (
        numbers((5, 5), np.float64),
        x[..., :2],
        x.astype(complex),
        x[:0],
        x.astype(np.int64),
        3.0,
        x.astype(">f8"),
    ):
        assert LOOPS.small_matrices(gufuncs.INV, case) is None
    for y in (x[:1], x[0], x.astype(np.float32), x[:, :2], numbers((2, 3, 9), np.float64), x[..., :0]):
        assert LOOPS.small_matrices(gufuncs.SOLVE, x, y) is None
    with pytest.raises(ValueError, match="unknown function"):
        LOOPS.small_matrices(5, x)
    with pytest.raises(ValueError, match="unknown function"):
        LOOPS.small_matrices(gufuncs.SOLVE, x)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, 5e-324, 2.0**-1023, 1e-310, 1e200])
def test_numbers_that_lapack_treats_otherwise(value):
    """Singular, subnormal and infinite numbers are computed by NumPy, with its warnings and errors."""

    def result(module, name, operands):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                out = getattr(module, name)(*operands)
            except np.linalg.LinAlgError as error:
                return None, str(error)
        return tuple(map(np.asarray, out if isinstance(out, tuple) else (out,))), [str(w.message) for w in caught]

    for n in (1, 2, 3, 4):
        for at in ((0, 0), (n - 1, n - 1), (0, n - 1)):
            x = np.eye(n) + 1e-3 * numbers((n, n), np.float64)
            x[at] = value
            with np.errstate(all="ignore"):
                square = x @ x.T
            for name, operands in (
                ("inv", (x,)),
                ("solve", (x, square)),
                ("det", (x,)),
                ("slogdet", (x,)),
                ("cholesky", (square,)),
            ):
                found, messages = result(gufuncs, name, operands)
                expected, expected_messages = result(np.linalg, name, operands)
                assert messages == expected_messages and (found is None) == (expected is None)
                assert found is None or bits_agree(found, expected)


@pytest.mark.parametrize("shape", [(2, 2), (5, 3, 3), (4, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_functions_have_numpys_bits(shape, dtype):
    def f(x, y):
        inverse, solution = cr.linalg.inv(x), cr.linalg.solve(x, y)
        sign, logarithm = cr.linalg.slogdet(x)
        return inverse, solution, cr.linalg.det(x), sign, logarithm, cr.linalg.cholesky(x @ x.mT)

    compiled = cr.compile(f)
    for k in range(4):
        x, y = numbers(shape, dtype, k) + 3 * np.eye(shape[-1], dtype=dtype), numbers(shape, dtype, 9 + k)
        for found, expected in zip(compiled(cr.tensor(x), cr.tensor(y)), f(cr.tensor(x), cr.tensor(y)), strict=True):
            assert same_bits(found.numpy(), expected.numpy())
    singular = np.zeros(shape, dtype)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError):
            compiled(cr.tensor(singular), cr.tensor(y))


# -- LU factors ------------------------------------------------------------------------------------------------------


@needs_lapack
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, n", [(1, 1), (2, 2), (3, 3), (4, 2), (2, 5), (9, 9), (12, 7)])
def test_factors(m, n, dtype):
    for stack in STACKS:
        for x in layouts(numbers((*stack, m, n), dtype)):
            before = x.copy()
            found, expected = lapack.lu(x), lapack.lu_by_ctypes(x)
            for a, b in zip(found, expected, strict=True):
                assert same_bits(a, b) and a.dtype == b.dtype and a.flags.c_contiguous
            factors, pivots, order = found
            k = min(m, n)
            product = (np.tril(factors[..., :k], -1) + np.eye(m, k)) @ np.triu(factors[..., :k, :])
            reordered = np.take_along_axis(x, order[..., None], -2)
            np.testing.assert_allclose(product, reordered, 1e-4 if dtype in (np.float32, np.complex64) else 1e-12, 1e-5)
            assert pivots.dtype == np.int32 and same_bits(x, before)


@needs_lapack
def test_factors_of_numbers_that_are_not_finite_have_valid_pivots():
    for value in (np.nan, np.inf, -np.inf):
        for x in (np.full((3, 3), value), np.array([[1, value], [value, 2]]), np.array([[value, 1], [2, value]])):
            for factors in (lapack.lu(x), lapack.lu_by_ctypes(x)):
                assert sorted(factors[2].tolist()) == list(range(len(x)))


def test_factors_without_lapack(monkeypatch):
    """Without LAPACK, NumPy code eliminates the columns."""
    from chainrule._src.table import lu

    monkeypatch.setattr(lapack, "lu", lambda x: None)
    for shape in ((3, 3), (2, 4, 2), (2, 2, 5), (20, 20)):
        x = numbers(shape, np.float64)
        factors, pivots, order = lu.lu_factor.value(x)
        k = min(shape[-2:])
        product = (np.tril(factors[..., :k], -1) + np.eye(shape[-2], k)) @ np.triu(factors[..., :k, :])
        np.testing.assert_allclose(product, np.take_along_axis(x, order[..., None], -2), 1e-12, 1e-12)
        assert pivots.min() >= 1 and pivots.max() <= shape[-2]
        np.testing.assert_array_equal(order, lapack.order_of(pivots, shape[-2]))


@needs_extension
def test_row_orders():
    generator = np.random.default_rng(0)
    pivots = np.sort(generator.integers(1, 6, (4, 7, 5)), -1).astype(np.int32)
    expected = lapack.order_in_python(pivots.astype(np.int64) - 1, 6)
    np.testing.assert_array_equal(lapack.order_in_c(pivots, 6), expected)
    for wrong in (np.array([0, 1], np.int32), np.array([3, 1], np.int32), np.array([1, 2]), pivots[..., ::2]):
        assert lapack.order_in_c(wrong, 2 if wrong.ndim == 1 else 6) is None


@pytest.mark.parametrize("stack", [(), (3,), (2, 2)])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_solutions_with_factors(stack, left, adjoint, dtype):
    n = 4
    A, B = numbers((*stack, n, n), dtype), numbers((*stack, n, 2) if left else (*stack, 2, n), dtype, 1)
    factors = cr.linalg.lu_factor(cr.tensor(A))
    found = cr.linalg.lu_solve(*factors, cr.tensor(B), left=left, adjoint=adjoint).numpy()
    matrix = np.conj(A.swapaxes(-1, -2)) if adjoint else A
    np.testing.assert_allclose(matrix @ found if left else found @ matrix, B, 0, 1e-4 if dtype is np.float32 else 1e-10)


def test_derivatives_of_solutions_with_factors():
    A = cr.tensor(numbers((2, 3, 3), np.float64), requires_grad=True)
    B = cr.tensor(numbers((2, 3, 2), np.float64, 1), requires_grad=True)
    pivots = cr.linalg.lu_factor(A.detach()).pivots

    def f(LU, B, adjoint=False):
        return cr.linalg.lu_solve(LU, pivots, B, adjoint=adjoint)

    for function in (f, lambda LU, B: f(LU, B, True), lambda LU, B: f(LU, B[:1])):
        assert cr.autograd.gradcheck(function, (A, B), fast_mode=True)
        assert cr.autograd.gradgradcheck(function, (A, B), fast_mode=True)
    mapped = cr.vmap(lambda LU, p, B: cr.linalg.lu_solve(LU, p, B))(A.detach(), pivots, B.detach())
    assert cr.allclose(mapped, f(A.detach(), B.detach()))


# -- triangular systems ----------------------------------------------------------------------------------------------


@needs_extension
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, sides", [(1, 1), (2, 3), (3, 1), (4, 4), (11, 2), (32, 3)])
def test_bits_of_triangular_solutions(n, sides, dtype):
    for stack in STACKS:
        x, y = numbers((*stack, n, n), dtype), numbers((*stack, n, sides), dtype, 1)
        x.flat[::5], y.flat[::3] = -0.0, -0.0
        x[..., range(n), range(n)] = 1 + np.arange(n)
        for upper in (False, True):
            for unit in (False, True):
                expected = triangular.solution_in_numpy(x, y, upper, unit)
                for a, b in zip(layouts(x), layouts(y), strict=True):
                    found = LOOPS.triangular_solution(a, b, upper, unit)
                    assert same_bits(found, expected) and found.flags.c_contiguous


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 3, 33, 70])
def test_triangular_solutions(n, dtype):
    x, y = numbers((2, n, n), dtype) / n, numbers((2, n, 3), dtype, 1)
    x[..., range(n), range(n)] = 2
    for upper in (False, True):
        for unit in (False, True):
            triangle = np.triu(x) if upper else np.tril(x)
            if unit:
                triangle[..., range(n), range(n)] = 1
            found = cr.linalg.solve_triangular(cr.tensor(x), cr.tensor(y), upper=upper, unitriangular=unit)
            np.testing.assert_allclose(triangle @ found.numpy(), y, 0, 1e-4 if x.real.dtype == np.float32 else 1e-11)


def test_zeros_on_the_diagonal():
    for n in (3, 40):
        x = np.eye(n)
        x[n - 1, n - 1] = 0
        for stack in (x, np.stack([np.eye(n), x])):
            y = np.ones_like(stack)
            with pytest.raises(np.linalg.LinAlgError, match="singular"):
                cr.linalg.solve_triangular(cr.tensor(stack), cr.tensor(y), upper=True)
            out = cr.linalg.solve_triangular(cr.tensor(stack), cr.tensor(y), upper=True, unitriangular=True)
            np.testing.assert_array_equal(out.numpy(), 1)


def test_empty_systems():
    for x, y in (((0, 0), (0, 2)), ((3, 3), (3, 0)), ((0, 2, 2), (0, 2, 1)), ((2, 0, 0), (2, 0, 0))):
        out = cr.linalg.solve_triangular(cr.ones(*x), cr.ones(*y), upper=False)
        assert tuple(out.shape) == y
    assert [tuple(part.shape) for part in cr.linalg.lu_factor(cr.ones(0, 2, 2))] == [(0, 2, 2), (0, 2)]
    assert [tuple(part.shape) for part in cr.linalg.lu_factor(cr.ones(0, 0))] == [(0, 0), (0,)]


def test_overflows_of_single_precision_warn():
    x, y = np.full((1, 1), 1e-30, np.float32), np.full((1, 1), 1e30, np.float32)
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
        out = cr.linalg.solve_triangular(cr.tensor(x), cr.tensor(y), upper=False)
    assert np.isinf(out.numpy()).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = cr.linalg.solve_triangular(
            cr.tensor([[1e-300]], dtype=float), cr.tensor([[1e300]], dtype=float), upper=False
        )
    assert np.isinf(out.numpy()).all()


# -- compiled functions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2, 2), (40, 40)])
def test_compiled_functions_give_the_same_bits(shape, dtype):
    n = shape[-1]
    x, y = numbers(shape, dtype) / n, numbers((*shape[:-1], 2), dtype, 1)
    x[..., range(n), range(n)] = 2

    def f(x, y):
        lower = cr.linalg.solve_triangular(x, y, upper=False)
        upper = cr.linalg.solve_triangular(x.mT, y, upper=True, unitriangular=True)
        factors, pivots = cr.linalg.lu_factor(x)
        return lower.sum() + (upper * cr.linalg.lu_solve(factors, pivots, y)).sum() + cr.linalg.det(x).sum()

    gradient = cr.func.grad(f, argnums=(0, 1))
    compiled, compiled_gradient = cr.compile(f), cr.compile(gradient)
    for k in range(4):
        a, b = cr.tensor(x + k % 2), cr.tensor(y - k)
        assert same_bits(compiled(a, b).numpy(), f(a, b).numpy())
        for found, expected in zip(compiled_gradient(a, b), gradient(a, b), strict=True):
            assert same_bits(found.numpy(), expected.numpy())


def test_compiled_functions_raise_for_singular_triangles():
    compiled = cr.compile(lambda x, y: cr.linalg.solve_triangular(x, y, upper=True) * 2)
    x, y = cr.eye(3), cr.ones(3, 1)
    for _ in range(3):
        assert compiled(x, y).tolist() == [[2.0]] * 3
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        compiled(cr.zeros(3, 3), y)
    assert compiled(x, y).tolist() == [[2.0]] * 3
