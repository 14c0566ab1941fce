"""``chainrule.scipy.linalg`` compared with SciPy."""

import numpy as np
import pytest

import chainrule as cr
from tests.operands.checking import check

scipy = pytest.importorskip("scipy.linalg")
ours = cr.scipy.linalg
rng = np.random.default_rng(0)

n = 3
SMALL = np.array([[2.5, 0.3], [0.4, 3.0]])
B = rng.normal(size=(n, n))
SPD = B @ B.T + 2 * np.eye(n)
GENERAL = B / 2 + 3 * np.eye(n)
c, r, b = rng.normal(size=n) + np.array([4, 0, 0]), rng.normal(size=n), rng.normal(size=n)
BANDS = np.array([[0, 0.5, -0.3], [3.0, 4, 5], [0.7, 0.2, 0]])
UPPER = np.array([[0, 0.5, -0.3], [3.0, 4, 5]])
PLANT = (
    -SMALL / 3,
    np.array([[1.0], [0.4]]),
    np.diag([1.0, 2.0]),
    np.array([[0.7]]),
)  # a, b, q, r of Riccati's equation


def symmetric(x):
    return (x + x.T) / 2


FUNCTIONS = {
    "expm": (lambda m, a: m.expm(a), SMALL),
    "sqrtm": (lambda m, a: m.sqrtm(a), SMALL),
    "logm": (lambda m, a: m.logm(a), SMALL),
    "cosm": (lambda m, a: m.cosm(a), SMALL),
    "sinm": (lambda m, a: m.sinm(a), SMALL),
    "tanm": (lambda m, a: m.tanm(a), SMALL),
    "coshm": (lambda m, a: m.coshm(a), SMALL),
    "sinhm": (lambda m, a: m.sinhm(a), SMALL),
    "tanhm": (lambda m, a: m.tanhm(a), SMALL),
    "fractional_matrix_power": (lambda m, a: m.fractional_matrix_power(a, 0.3), SMALL),
    "polar": (lambda m, a: m.polar(a)[0] + m.polar(a, "left")[1] * m.polar(a)[1], GENERAL),
    "cholesky": (lambda m, a: m.cholesky(symmetric(a)), SPD),
    "cholesky lower": (lambda m, a: m.cholesky(symmetric(a), lower=True), SPD),
    "cho_solve": (lambda m, a, b: m.cho_solve(m.cho_factor(symmetric(a)), b), SPD, b),
    "cho_solve columns": (lambda m, a, b: m.cho_solve(m.cho_factor(symmetric(a), lower=True), b), SPD, B),
    "lu_solve": (lambda m, a, b: m.lu_solve(m.lu_factor(a), b), B, b),
    "lu_solve transposed": (lambda m, a, b: m.lu_solve(m.lu_factor(a), b, trans=1), B, GENERAL),
    "solve_triangular": (lambda m, a, b: m.solve_triangular(a, b), GENERAL, b),
    "solve_triangular lower": (lambda m, a, b: m.solve_triangular(a, b, lower=True, trans="T"), GENERAL, B),
    "solve_triangular unit": (lambda m, a, b: m.solve_triangular(a, b, unit_diagonal=True, trans=2), B, b),
    "block_diag": (lambda m, a, b: m.block_diag(a, b, a), B, b),
    "toeplitz": (lambda m, c, r: m.toeplitz(c, r) @ m.toeplitz(c), c, r),
    "hankel": (lambda m, c, r: m.hankel(c, r) @ m.hankel(c), c, r),
    "circulant": (lambda m, c: m.circulant(c), c),
    "companion": (lambda m, c: m.companion(c), c),
    "khatri_rao": (lambda m, a, b: m.khatri_rao(a, b), B, GENERAL),
    "solve_banded": (lambda m, ab, b: m.solve_banded((1, 1), ab, b), BANDS, b),
    "solve_banded columns": (lambda m, ab, b: m.solve_banded((1, 1), ab, b), BANDS, B),
    "solveh_banded": (lambda m, ab, b: m.solveh_banded(ab, b), UPPER, b),
    "solveh_banded lower": (lambda m, ab, b: m.solveh_banded(ab, b, lower=True), UPPER[::-1] + 0.0, b),
    "solve_toeplitz": (lambda m, c, r, b: m.solve_toeplitz((c, r), b) + m.solve_toeplitz(c, b), c, r, b),
    "solve_circulant": (lambda m, c, b: m.solve_circulant(c, b), c, b),
    "solve_sylvester": (lambda m, a, b, q: m.solve_sylvester(a, b, q), GENERAL, SPD, B),
    "solve_continuous_lyapunov": (lambda m, a, q: m.solve_continuous_lyapunov(a, q), GENERAL, B),
    "solve_discrete_lyapunov": (lambda m, a, q: m.solve_discrete_lyapunov(a, q), B / 3, SPD),
    "solve_continuous_are": (lambda m, a, b, q, r: m.solve_continuous_are(a, b, symmetric(q), symmetric(r)), *PLANT),
    "solve_discrete_are": (lambda m, a, b, q, r: m.solve_discrete_are(a, b, symmetric(q), symmetric(r)), *PLANT),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    f, *args = FUNCTIONS[name]
    thorough = name in (
        "sqrtm",
        "cho_solve",
        "solve_banded",
        "solve_sylvester",
        "solve_continuous_are",
    )  # the others have the same implementation
    check(
        lambda *args: f(ours, *args),
        lambda *args: f(scipy, *args),
        args,
        tolerance=1e-6,
        orders=2 if thorough else 1,
        compiled=thorough,
        batched=thorough,
    )


def test_every_name_is_tested():
    assert {name.split()[0] for name in FUNCTIONS} | {"cho_factor", "lu_factor"} == set(ours.__all__)


def test_complex_matrices():
    z = cr.tensor(SMALL + 1j * SMALL.T, requires_grad=True)
    for f in (ours.sqrtm, ours.expm, lambda z: ours.solve_continuous_lyapunov(z, z)):
        assert cr.autograd.gradcheck(f, z)
    b, one = cr.tensor(np.array([[1 + 0.2j], [0.5]]), requires_grad=True), np.eye(1)
    for solve in (ours.solve_continuous_are, ours.solve_discrete_are):
        assert cr.autograd.gradcheck(
            lambda z, b, solve=solve: solve(z, b, np.eye(2) + z @ z.mH, one + b.mH @ b), (z, b)
        )


def test_riccati_of_other_equations():
    x = cr.Array(np.eye(2))
    with pytest.raises(NotImplementedError, match=r"solve_continuous_are\(e=\): only the equation with a, b, q and r"):
        ours.solve_continuous_are(x, x, x, x, e=2 * np.eye(2))


def test_plain_arguments_are_scipys():
    assert type(ours.sqrtm(GENERAL)) is np.ndarray
    np.testing.assert_array_equal(ours.logm(GENERAL), scipy.logm(GENERAL))
    lu, piv = ours.lu_factor(cr.Array(GENERAL[::-1].copy()))
    for found, expected in zip((lu, piv), scipy.lu_factor(GENERAL[::-1]), strict=True):
        np.testing.assert_allclose(np.asarray(found), expected)


@pytest.mark.parametrize("name", ["sqrtm", "logm", "expm", "cholesky", "cho_factor", "toeplitz", "solve_banded"])
def test_scipys_own_say_what_to_use(name):
    args = ((0, 0),) if name == "solve_banded" else ()
    with pytest.raises(RuntimeError, match=rf"chainrule\.scipy\.linalg\.{name} keeps the derivative"):
        cr.grad(lambda a: np.sum(getattr(scipy, name)(*args, a, *([b] if args else []))[0]))(SPD[:1] if args else SPD)


STACK, ROWS = np.stack([GENERAL, SPD]), rng.normal(size=(2, n)) + 2
#: stacks, by SciPy's rule: the axes before those of one matrix, or vector, broadcast
STACKS = {
    "sqrtm": (lambda m, a: m.sqrtm(a), STACK),
    "logm": (lambda m, a: m.logm(a), STACK),
    "cosm": (lambda m, a: m.cosm(a), STACK),
    "expm": (lambda m, a: m.expm(a), STACK),
    "fractional_matrix_power": (lambda m, a: m.fractional_matrix_power(a, 0.3), STACK),
    "polar": (lambda m, a: m.polar(a)[0] + m.polar(a, "left")[1], STACK),
    "cholesky": (lambda m, a: m.cholesky(a), STACK),
    "cholesky lower": (lambda m, a: m.cholesky(a, lower=True), STACK),
    "lu_solve": (lambda m, a, b: m.lu_solve(m.lu_factor(a), b), STACK, b),
    "solve_triangular": (lambda m, a, b: m.solve_triangular(a, b), STACK, b),
    "solve_triangular columns": (lambda m, a, b: m.solve_triangular(a, b), STACK, B),
    "toeplitz": (lambda m, c, r: m.toeplitz(c, r), ROWS, r),
    "toeplitz of columns": (lambda m, c: m.toeplitz(c), ROWS),
    "hankel": (lambda m, c: m.hankel(c), ROWS),
    "circulant": (lambda m, c: m.circulant(c), ROWS),
    "companion": (lambda m, c: m.companion(c), ROWS),
    "block_diag": (lambda m, a, b: m.block_diag(a, b), STACK, B),
    "khatri_rao": (lambda m, a, b: m.khatri_rao(a, b), STACK, B),
    "solve_banded": (lambda m, a, b: m.solve_banded((1, 1), a, b), np.stack([BANDS, BANDS * 2]), b),
    "solveh_banded": (lambda m, a, b: m.solveh_banded(a, b), np.stack([UPPER, UPPER * 2]), b),
    "solve_toeplitz": (lambda m, c, b: m.solve_toeplitz(c, b), ROWS + 4 * np.eye(2, n), b),
    "solve_sylvester": (lambda m, a, b, q: m.solve_sylvester(a, b, q), STACK, SPD, B),
    "solve_continuous_lyapunov": (lambda m, a, q: m.solve_continuous_lyapunov(a, q), STACK, B),
    "solve_discrete_lyapunov": (lambda m, a, q: m.solve_discrete_lyapunov(a, q), STACK / 9, B),
}


@pytest.mark.filterwarnings("ignore:Beginning in SciPy 1.19:FutureWarning")  # SciPy's warning about hankel
@pytest.mark.parametrize("name", STACKS)
def test_stacks(name):
    f, *args = STACKS[name]
    try:
        expected = f(scipy, *args)
    except ValueError as error:
        pytest.skip(f"this SciPy takes no stacks: {error}")
    x, t = args[0], rng.normal(size=args[0].shape)
    value, found = cr.jvp(lambda x: f(ours, x, *args[1:]), (x,), (t,))
    assert value.shape == expected.shape
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-11)
    h = 1e-4
    at = [f(scipy, x + k * h * t, *args[1:]) for k in (1, -1, 2, -2)]
    np.testing.assert_allclose(found, (8 * (at[0] - at[1]) - (at[2] - at[3])) / (12 * h), rtol=1e-6, atol=1e-7)
    total = cr.grad(lambda x: np.sum(np.sin(f(ours, x, *args[1:]))))(x)
    np.testing.assert_allclose(np.sum(total * t), np.sum(np.cos(value) * found), rtol=1e-9)


def test_stacks_that_are_refused():
    x = cr.tensor(ROWS)
    for call, error, says in (
        (lambda: ours.solve_circulant(x, b), NotImplementedError, "vmap"),
        (lambda: ours.circulant(x[:0]), ValueError, "empty batch"),
        (lambda: ours.polar(cr.tensor(B), "up"), ValueError, "side"),
    ):
        with pytest.raises(error, match=says):
            call()
