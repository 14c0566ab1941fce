"""``native.matmul``: results, layouts, warnings and errors match those of ``np.matmul``, bit for bit."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule._src import native
from chainrule._src.native.blas import blas_name
from chainrule._src.native.code import FIRST_INPUT, kernel_step, program

pytestmark = pytest.mark.skipif(not native.AVAILABLE, reason="the extension is not built")
some = settings(max_examples=400, deadline=None, derandomize=True, database=None)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e-310, 1e38, 1e300]


def draw_matrices(r, stack, rows, columns, dtype, special):
    """Return a stack of matrices with random strides: transposed, reversed, with gaps, broadcast, in another order of axes."""
    order = r.permutation(len(stack)) if r.random() < 0.2 else np.arange(len(stack))
    shape = tuple(stack[i] for i in order)
    x = r.standard_normal((*shape, rows, columns)) * np.exp(3 * r.standard_normal((*shape, rows, columns)))
    x = np.where(r.random(x.shape) < 0.1, r.choice([0.0, -0.0], x.shape), x)
    if special:
        x = np.where(r.random(x.shape) < 0.1, r.choice(SPECIAL, x.shape), x)
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    x = x.transpose(*np.argsort(order), len(stack), len(stack) + 1)
    kind = r.integers(8)
    if kind == 0:
        x = np.ascontiguousarray(x.mT).mT
    elif kind == 1:
        x = np.repeat(np.repeat(x, 2, -1), 2, -2)[..., ::2, :columns]  # gaps between rows
    elif kind == 2:
        x = np.repeat(x, 2, -1)[..., ::2]  # gaps between columns, which BLAS does not accept
    elif kind == 3:
        x = x[..., ::-1, ::-1]
    elif kind == 4 and stack:
        x = np.broadcast_to(x[:1], x.shape)
    elif kind == 5 and stack:
        x = x[::-1]
    elif kind == 6:
        memory = np.empty(x.nbytes + 1, np.uint8)[1:].view(dtype).reshape(x.shape)  # not aligned
        memory[...] = x
        x = memory
    return x


def call(function, *args):
    """Return the result and the warnings of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        out = function(*args)
    return out, [(str(w.message), w.category) for w in found]


def assert_matches(x, y):
    expected, expected_warnings = call(np.matmul, x, y)
    out, out_warnings = call(native.matmul, x, y)
    assert type(out) is type(expected) and out.dtype == expected.dtype and out.shape == expected.shape
    assert out.strides == expected.strides
    assert out.tobytes() == expected.tobytes()
    assert out_warnings == expected_warnings


@given(st.integers(0, 2**32), st.sampled_from("fdFDil"), st.booleans())
@some
def test_bits_layouts_and_warnings_of_stacks(seed, dtype, special):
    r = np.random.default_rng(seed)
    m, k, n = (int(size) for size in r.choice([0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17], 3))
    stack = tuple(int(length) for length in r.choice([0, 1, 2, 3], r.integers(4), p=[0.05, 0.3, 0.35, 0.3]))
    stacks = [
        tuple(1 if r.random() < 0.2 else length for length in stack[r.integers(len(stack) + 1) :]) for _ in range(2)
    ]
    x, y = draw_matrices(r, stacks[0], m, k, dtype, special), draw_matrices(r, stacks[1], k, n, dtype, special)
    assert_matches(x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("turned", list(itertools.product([False, True], repeat=2)), ids=str)
def test_bits_of_every_size(dtype, turned):
    r = np.random.default_rng(0)
    for m, k, n in itertools.product(range(1, 18, 2), (2, 3, 4, 8, 11, 16, 17), range(1, 18)):
        x = draw_matrices(r, (), 5 * m, k, dtype, False)[: 5 * m].reshape(5, m, k)
        y = draw_matrices(r, (), 5 * k, n, dtype, False)[: 5 * k].reshape(5, k, n)
        x, y = [np.ascontiguousarray(a.mT).mT if turn else a.copy() for a, turn in zip((x, y), turned, strict=True)]
        assert_matches(x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_the_own_transpose(dtype):
    """NumPy calls syrk for a matrix and its own transpose, also within a stack."""
    x = np.random.default_rng(0).standard_normal((6, 4, 4)).astype(dtype)
    for a, b in [
        (x, x.mT),
        (x.mT, x),
        (x[2], x[2].mT),
        (x, x[3].mT),
        (x[3], x.mT),
        (x[::-1], x.mT),
        (x[::2], x[:3].mT),
    ]:
        assert_matches(a, b)


@pytest.fixture
def two_threads():
    threads = native.get_threads()
    native.set_threads(2)
    yield
    native.set_threads(threads)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stacks_that_threads_share(dtype, two_threads):
    """Large stacks have the bits of products by all threads of BLAS, and the number of its threads is as before."""
    r = np.random.default_rng(0)
    before = blas_name()
    x, y = (r.standard_normal((8, 96, 64)).astype(dtype) for _ in range(2))
    square = r.standard_normal((4, 80, 80)).astype(dtype)
    small = r.standard_normal((2, 9000, 4, 4)).astype(dtype)
    broken = x.copy()
    broken[::3, 5, 7] = np.nan, np.inf, -np.inf
    cases = [(x, y.mT), (x.mT, y), (x, x.mT), (x, x[::-1].mT[::-1]), (square, square), (square.mT, square[1])]
    cases += [
        (small, small[:1, ::-1].copy()),
        (broken, y.mT),
        (x[:, None], y.reshape(4, 2, 96, 64)[:1].mT),
        (x, y[3].mT),
    ]
    for a, b in cases:
        assert_matches(a, b)
        assert_matches(a, b)
    assert blas_name() == before


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e308, 1e-308], ids=str)
def test_error_states(value):
    x, y = np.full((3, 4, 4), value), np.full((4, 4), -value)
    y[1] = 2.0
    for state in ("ignore", "warn", "raise"):
        with np.errstate(all=state):
            raised = []
            for function in (np.matmul, native.matmul):
                try:
                    raised.append(call(function, x, y)[1])
                except FloatingPointError as error:
                    raised.append(str(error))
        assert raised[0] == raised[1]


def test_errors_are_those_of_numpy():
    x = np.ones((2, 3, 4))
    for y in (np.ones((3, 4)), np.ones((3, 4, 2)), np.float64(2.0), np.ones((2, 5, 4, 1)), np.ones((4, 4), object)):
        try:
            expected = np.matmul(x, y)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)) as found:
                native.matmul(x, y)
            assert str(found.value) == str(error)
        else:
            assert (native.matmul(x, y) == expected).all()


def test_subclasses_and_lists():
    x = np.ones((2, 3, 3)).view(type("Sub", (np.ndarray,), {}))
    assert type(native.matmul(x, x)) is type(x)
    assert native.matmul([[1.0, 2.0]], [[1.0], [2.0]]).tolist() == [[5.0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_loop_of_compiled_programs(dtype):
    """The inner loop computes into memory with gaps and leaves earlier FP exceptions as they are."""
    r = np.random.default_rng(0)
    address = native.MATMUL_LOOPS[np.dtype(dtype).char]
    divide = native.loop(np.divide, np.divide.types.index(np.dtype(dtype).char * 2 + "->" + np.dtype(dtype).char))
    x, y = (r.standard_normal((7, 4, 4)).astype(dtype) for _ in range(2))
    memory = np.zeros((7, 4, 6), dtype)
    zero = np.array([1, 0, 0], dtype)
    size = memory.itemsize
    core = (*x.strides[1:], *y.strides[1:], 6 * size, size)
    args = [(FIRST_INPUT + i, 0) for i in range(3)]
    multiply = kernel_step(address, 0, 7, args, (*x.strides[:1], *y.strides[:1], 24 * size, *core), core=(4, 4, 4))
    by_zero = [(FIRST_INPUT + 3, 0), (FIRST_INPUT + 3, size), (FIRST_INPUT + 3, 2 * size)]
    code = program([kernel_step(*divide, 1, by_zero, (0, 0, 0)), multiply])
    bases = np.array([0, 0, *(a.ctypes.data for a in (x, y, memory, zero))], np.intp)
    assert native.execute(code, 0, code.size, bases) == 1  # divide by zero
    assert memory[..., :4].tobytes() == (x @ y).tobytes() and not memory[..., 4:].any()


def test_gradients_of_stacks_of_small_matrices():
    """Eager and compiled gradients have the bits of the same products by NumPy."""
    r = np.random.default_rng(0)
    x, y = r.standard_normal((50, 4, 4)), r.standard_normal((50, 4, 4))
    gradient = cr.func.grad(lambda x, y: np.sum(np.sin(x @ y)), (0, 1))
    g = np.cos(x @ y)
    expected = [g @ y.mT, x.mT @ g]
    for function in (gradient, cr.compile(gradient)):
        for _ in range(3):
            found = function(x, y)
        assert [np.asarray(a).tobytes() for a in found] == [a.tobytes() for a in expected]
