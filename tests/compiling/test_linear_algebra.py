"""NumPy's linear algebra, indexing, layouts and scalars in compiled functions: native, with eager bits, types and exceptions."""

import contextlib
import ctypes
import math
from collections import Counter

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.compiling import factors
from chainrule._src.native import AVAILABLE, use_lapack
from chainrule._src.native.blas import blas_function
from chainrule._src.table.recent_factors import SMALLEST

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="the extension is not built")

A = np.array([[2.0, 1.0, -0.5], [0.25, 3.0, 1.0], [-1.0, 0.5, 4.0]])
V = np.array([0.3, -1.2, 2.0])
I, J = np.array([2, 0, -1]), np.array([[1, -3], [2, 1]])
S = np.stack([A, A.T + 1])


def put(x, positions):
    x = x * 1.0
    x[positions] = V[:, None]
    return x


def added(x, positions):
    x = x * 1.0
    np.add.at(x, positions, x * 0.5)
    return x


def placed(x, positions):
    x = x * 1.0
    np.put(x, positions, V)
    return x


VALUES = {
    "solve": lambda a, v, i: np.linalg.solve(a, v),
    "solve of matrices": lambda a, v, i: np.linalg.solve(a, a.T),
    "solve of stacks": lambda a, v, i: np.linalg.solve(S * a, a),
    "solve in float32": lambda a, v, i: np.linalg.solve(a.astype(np.float32), v.astype(np.float32)),
    "solve of complex": lambda a, v, i: np.linalg.solve(a + 1j * a.T, v),
    "inv": lambda a, v, i: np.linalg.inv(a),
    "det": lambda a, v, i: np.linalg.det(a),
    "slogdet": lambda a, v, i: np.linalg.slogdet(a),
    "slogdet of stacks": lambda a, v, i: np.linalg.slogdet(S * a),
    "one matrix": lambda a, v, i: (np.linalg.solve(a, v), *np.linalg.slogdet(a), np.linalg.inv(a), np.linalg.solve(a.T, a)),
    "one determinant": lambda a, v, i: (np.linalg.det(a), np.linalg.inv(a), np.linalg.det(a.T)),
    "one symmetric matrix": lambda a, v, i: (np.linalg.solve(a @ a.T, v), np.linalg.solve((a @ a.T).T, v), np.linalg.inv(a @ a.T)),
    "cholesky": lambda a, v, i: np.linalg.cholesky(a @ a.T),
    "cholesky, upper": lambda a, v, i: np.linalg.cholesky(a @ a.T, upper=True),
    "eigh": lambda a, v, i: np.linalg.eigh(a @ a.T),
    "eigvalsh": lambda a, v, i: np.linalg.eigvalsh(a @ a.T, "U"),
    "svd": lambda a, v, i: np.linalg.svd(a[:2], full_matrices=False),
    "svd, full": lambda a, v, i: np.linalg.svd(a[:2]),
    "singular values": lambda a, v, i: np.linalg.svd(a, compute_uv=False),
    "qr": lambda a, v, i: np.linalg.qr(a[:, :2]),
    "qr, complete": lambda a, v, i: np.linalg.qr(a[:, :2], "complete"),
    "qr, r": lambda a, v, i: np.linalg.qr(a[:2], "r"),
    "qr in float32": lambda a, v, i: np.linalg.qr(a.astype(np.float32)),
    "triangles": lambda a, v, i: (np.tril(a, 1), np.triu(a), np.triu(a[:2], -1), np.tril(S * a, -1)),
    "v @ a": lambda a, v, i: (v @ a, v @ a @ v, a.T @ v, v @ v, np.inner(v, v), np.vdot(v, v)),
    "one number": lambda a, v, i: (a[:1, :1] @ a[:1], a[:, :1] @ v[:1], a[:1, :1] @ a[:1, :1], a[:, :1] @ a[:1]),
    "x[i]": lambda a, v, i: (v[i], a[i], a[i][None, :, 1:]),
    "x[j]": lambda a, v, i: (v[J + 0 * i[:2]], a[J]),
    "take": lambda a, v, i: (np.take(a, i, axis=1), np.take(a, i), np.take_along_axis(a, np.argsort(a, axis=1), 1)),
    "put": lambda a, v, i: (put(a, i), added(a, i), placed(a, i), put(a, i.astype(np.int32))),
    "order": lambda a, v, i: (np.sort(a), np.sort(a, axis=0), np.argsort(a, axis=0), np.argsort(v, kind="stable"), v[np.argsort(v)]),
    "best": lambda a, v, i: (np.argmax(v), np.argmin(a, axis=0), np.argmax(a), v[np.argmax(v)]),
    "searchsorted": lambda a, v, i: (np.searchsorted(np.sort(v), a), np.searchsorted(v, v, side="right")),
    "cumulative": lambda a, v, i: (np.cumsum(a), np.cumsum(a, axis=1), np.cumprod(v[::-1])),
    "clip": lambda a, v, i: (np.clip(a, -0.5, 1), np.clip(v, a[0], a[1])),
    "scalars": lambda a, v, i: (v[0] ** 2, v[1] ** 3 - 1.5, v[2] ** 0.5, v[2] ** v[0], np.sum(v) ** 2, 2.0 ** v[0], -v[1] ** 2),
    "scalars as arrays": lambda a, v, i: (np.broadcast_to(np.sum(v), (3,)) * v, np.max(a)[None] + v, np.ravel(v[0])),
}  # fmt: skip


def outcome(function, *args):
    try:
        return function(*args)
    except (np.linalg.LinAlgError, IndexError, FloatingPointError) as error:
        return f"{type(error).__name__}: {error}"


def same(ours, eager):
    """Check bits, dtypes, strides and user-visible types."""
    if isinstance(eager, str):
        assert ours == eager
    elif isinstance(eager, tuple):
        assert len(ours) == len(eager)
        for x, y in zip(ours, eager, strict=True):
            same(x, y)
    else:
        assert type(ours) is type(eager) and ours.dtype == eager.dtype and ours.shape == eager.shape
        assert np.array_equal(ours, eager, equal_nan=True) and np.array_equal(
            np.signbit(ours.real), np.signbit(eager.real)
        )


def total(function):
    def loss(a, v, i):
        out = function(a, v, i)
        return sum([np.sum(np.sin(abs(x))) for x in (out if isinstance(out, tuple) else (out,))])

    return loss


WITHOUT_GRADIENTS = {"best", "searchsorted", "solve of complex", "eigh", "svd, full", "qr, complete"}
OTHERS = [
    (A * 1.3 - 0.2, V[::-1].copy(), np.array([0, 0, 1])),
    (np.ones((3, 3)), V, I),
    (np.zeros((3, 3)), -V, I),
    (A * np.nan, V, I),
    (A, V, np.array([0, 3, 1])),
    (A, V * 0.0, np.array([-4, 0, 1])),
]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.filterwarnings("ignore")
def test_native_with_the_bits_and_exceptions_of_eager(name):
    function = VALUES[name]
    compiled = cr.compile(function)
    for args in [(A, V, I)] * 2 + OTHERS:
        same(outcome(compiled, *args), outcome(function, *args))
    assert compiled.plan(A, V, I).executor == "native"


@pytest.mark.parametrize("name", [name for name in VALUES if name not in WITHOUT_GRADIENTS])
@pytest.mark.filterwarnings("ignore")
def test_gradients(name):
    function = cr.grad(total(VALUES[name]), argnums=(0, 1))
    compiled = cr.compile(function)
    for args in [(A, V, I), *OTHERS[:2], (A, V, I)]:
        same(outcome(compiled, *args), outcome(function, *args))
    assert compiled.plan(A, V, I).executor != "python"


def kalman(p):
    x, P, likelihood = np.zeros(2), np.eye(2), 0.0
    F, H = np.array([[1.0, 0.1], [0.0, 0.9]]) + p[0] * np.eye(2), np.array([[1.0, 0.3], [0.2, 1.0]])
    for t in range(4):
        x, P = F @ x, F @ P @ F.T + np.exp(p[1]) * np.eye(2)
        v = np.array([math.sin(t), math.cos(t)]) - H @ x
        R = H @ P @ H.T + np.exp(p[2]) * np.eye(2)
        K = np.linalg.solve(R, H @ P).T
        likelihood = likelihood + v @ np.linalg.inv(R) @ v + np.linalg.slogdet(R)[1] + np.log(np.linalg.det(R))
        x, P = x + K @ v, P - K @ H @ P
    return likelihood


def recurrent(w):
    h, total = np.zeros(3), 0.0
    for _ in range(4):
        h = np.tanh(h * w[:3] + w[3:])
        total = total + h[1] - np.log(np.sum(np.exp(h)) + 2.0)
    return total


def implicit(k):
    y = np.array([1.0, 0.0, 0.0])
    for _ in range(3):
        r = np.stack([-k[0] * y[0] + y[1] * y[2], k[1] * y[1] ** 2 - y[0], k[2] * y[1] ** 2])
        J = np.stack([k[0] + y[2], y[0], y[1], k[1] * y[1], k[2] + 2.0, y[2], y[0], k[0] * y[1], k[1]]).reshape(3, 3)
        y = y - np.linalg.solve(np.eye(3) + 0.1 * J, 0.1 * r)
    return np.sum(y**2) + y[1]


def process(p):
    x = np.linspace(0, 1, 12)
    K = np.exp(p[0] - (x[:, None] - x) ** 2 * np.exp(p[1])) + np.exp(p[2]) * np.eye(12)
    return np.sin(x) @ np.linalg.solve(K, np.sin(x)) + np.linalg.slogdet(K)[1]


@pytest.mark.parametrize("program", [kalman, recurrent, implicit, process])
def test_no_step_is_pythons(program):
    p = np.linspace(0.1, 0.9, 6 if program is recurrent else 3)
    for function in (program, cr.grad(program)):
        compiled = cr.compile(function)
        for at in (p, p, p * 0.7, -p):
            same(compiled(at), function(at))
        assert compiled.plan(p).executor == "native", compiled.explain()


@contextlib.contextmanager
def blas_threads(count):
    """Set the number of threads of NumPy's OpenBLAS temporarily."""
    names = "openblas_get_num_threads", "openblas_set_num_threads"
    found = [blas_function(name) for name in names]
    if None in found or not factors.factors_are_available():
        pytest.skip("NumPy's LAPACK is another one")
    before = ctypes.CFUNCTYPE(ctypes.c_int)(found[0].address)()
    change = ctypes.CFUNCTYPE(None, ctypes.c_int)(found[1].address)
    change(count)
    try:
        yield
    finally:
        change(before)


@pytest.fixture
def lapack():
    """Count how often shared factors are computed and used, in NumPy's LAPACK on one thread."""
    with blas_threads(1):
        arguments = {"dgetrf_": 6, "dgetrs_": 10, "dgesv_": 8}  # the length of a text follows the arguments of getrs
        found, counts = {name: blas_function(name) for name in arguments}, Counter()

        def counter(name):
            kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments[name])
            function = kind(found[name].address)
            return kind(lambda *args: (counts.update([name]), function(*args))[1])

        counters = [counter(name) for name in arguments]
        more = blas_function("openblas_get_num_threads").address, found["dgetrf_"].bits
        use_lapack(*[ctypes.cast(each, ctypes.c_void_p).value for each in counters], *more)
        yield counts
        use_lapack(*[each.address for each in found.values()], *more)


ONE_MATRIX = {
    "solve, slogdet": (lambda a, v: v @ np.linalg.solve(a, v) + np.linalg.slogdet(a)[1], 3),
    "inv, slogdet": (
        lambda a, v: v @ np.linalg.inv(a) @ v + np.linalg.slogdet(a)[1],
        1,
    ),  # one inverse is shared by both
    "inv, det": (lambda a, v: v @ np.linalg.inv(a) @ v * np.linalg.det(a), 1),
    "solve, det": (lambda a, v: v @ np.linalg.solve(a, v) * np.linalg.det(a), 3),
    "two solutions": (lambda a, v: v @ np.linalg.solve(a, v) + np.sum(np.linalg.solve(a, v * v)), 4),
}


@pytest.mark.parametrize("name", ONE_MATRIX)
@pytest.mark.parametrize("n", [3, 70])
def test_a_matrix_is_factored_once(name, n, lapack):
    """Also in the backward pass, a solve with the transpose, which is the same matrix here, so that the factors are shared."""
    f, uses = ONE_MATRIX[name]
    v = np.random.default_rng(0).normal(size=n)
    a = np.outer(v, v) / n + np.diag(np.arange(1.0, n + 1))
    both = cr.func.value_and_grad(f, (0, 1))
    gradient = lambda *args: (lambda value, parts: (value, *parts))(*both(*args))
    compiled = cr.compile(gradient)
    compiled(a, v), lapack.clear()
    same(compiled(a, v), gradient(a, v))
    if n >= SMALLEST and name == "solve, slogdet":
        uses -= 1  # the rule of slogdet inverts by ``inverse_for_rules``, a step in Python with factors of its own
    assert lapack == {"dgetrf_": 1, "dgetrs_": uses}


@pytest.mark.parametrize("n", [13, 100, *[pytest.param(n, marks=pytest.mark.slow) for n in (40, 70, 130)]])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_of_the_blas(threads, n):
    """Solving with known factors would distribute the columns over threads, unlike solving a system."""
    a, b = np.random.default_rng(n).normal(size=(2, n, n))
    program = lambda a, b: (np.linalg.inv(a), np.linalg.solve(a, b), np.linalg.solve(a, b[0]), *np.linalg.slogdet(a))
    with blas_threads(threads):
        compiled = cr.compile(program)
        for x in (a, a, b):
            same(compiled(x, b), program(x, b))
        assert compiled.plan(a, b).executor == "native"


def test_a_singular_matrix_that_was_recorded_first_is_forgotten():
    inverse = cr.compile(cr.grad(lambda a: np.sum(np.linalg.inv(a) ** 2)))
    with pytest.raises(np.linalg.LinAlgError):
        inverse(np.ones((5, 5)))
    again = cr.compile(inverse.function)
    assert again.plan(np.eye(5)).executor == "native"


def test_results_of_the_callers_are_left_alone_where_there_are_none():
    inverse = cr.compile(np.linalg.inv)
    inverse(A), inverse(A)
    memory = np.full((3, 3), 7.0)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        inverse.into(memory, np.ones((3, 3)))
    assert (memory == 7.0).all()
    assert np.array_equal(inverse.into(memory, A), np.linalg.inv(A))


def test_an_exception_while_results_are_written_is_eagers():
    quotient = cr.compile(lambda x: 1 / x)
    quotient(V), quotient(V)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        quotient.into(np.empty(3), np.zeros(3))


def test_what_may_fail_is_no_c_function():
    pytest.importorskip("scipy")
    f = cr.compile(lambda x: np.linalg.solve(A + x, V)[0])
    with pytest.raises(RuntimeError, match="solve may raise an error, which SciPy does not check for"):
        f.as_low_level_callable(1.0)


def test_nan_among_what_is_ordered_is_no_failure():
    ordered = cr.compile(lambda x, v: (np.sort(x), np.argsort(x), np.argmax(x), np.searchsorted(x, v)))
    x = np.array([1.0, np.nan, -2.0, np.nan, 0.5])
    with np.errstate(all="raise"):
        for v in (V, x[::-1].copy(), x):
            for _ in range(2):
                same(ordered(x, v), ordered.function(x, v))
    assert ordered.plan(x, V).executor == "native"


def test_a_failure_after_an_invalid_operation_is_none():
    solution = cr.compile(lambda a, v: np.linalg.solve(a, np.sqrt(v)))
    solution(A, abs(V))
    with np.errstate(invalid="ignore"):
        assert np.isnan(solution(A, -abs(V))).all()
