"""Results of eager operations own aligned memory and behave like NumPy's arrays; large calls have NumPy's bits and warnings."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule._src import native

pytestmark = pytest.mark.skipif(not native.AVAILABLE, reason="the extension is not built")
SIZE = 530_001  # shared by two threads, and not a multiple of a vector length


@pytest.fixture(autouse=True)
def two_threads():
    before = native.get_threads()
    native.set_threads(2)
    yield
    native.set_threads(before)


def result(size=SIZE):
    x = cr.tensor(np.linspace(-1, 1, size))
    return (x + x).numpy()


@pytest.mark.parametrize("size", [255, 256, 1_000, SIZE, 1 << 20])
def test_results_own_aligned_memory(size):
    y = result(size)
    assert y.base is None
    assert y.flags.owndata
    assert y.flags.writeable
    assert size < 256 or y.ctypes.data % 64 == 0
    np.testing.assert_array_equal(y, 2 * np.linspace(-1, 1, size))


def test_results_are_resized_pickled_and_copied():
    for size in (10, 300, 2 * SIZE):
        y = result()
        expected = np.resize(y[:size], size) if size <= SIZE else np.concatenate([y, np.zeros(size - SIZE)])
        y.resize(size, refcheck=False)
        np.testing.assert_array_equal(y, expected)
    y = result()
    for copy in (pickle.loads(pickle.dumps(y)), pickle.loads(pickle.dumps(y, 5)), y.copy(), y.T.copy()):
        np.testing.assert_array_equal(copy, y)


def test_tracemalloc_sees_results():
    cr.tensor([1.0]) + 1
    tracemalloc.start()
    try:
        y = result()
        grown = tracemalloc.get_traced_memory()[0]
        assert grown >= y.nbytes
        del y
        assert tracemalloc.get_traced_memory()[0] < grown - 8 * SIZE // 2
    finally:
        tracemalloc.stop()


UFUNCS = [
    np.add,
    np.multiply,
    np.subtract,
    np.divide,
    np.maximum,
    np.expm1,
    np.sin,
    np.tanh,
    np.sqrt,
    np.log,
    np.absolute,
    np.negative,
]


LAYOUTS = st.sampled_from(["plain", "transposed", "strided"])


def operand(layout, shape, dtype, seed):
    x = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    x.flat[seed :: x.size // 9 + 1] = [np.nan, 0.0, -0.0, np.inf, -np.inf, 3e38, 1e-40, 1.0, -2.0][
        : len(x.flat[seed :: x.size // 9 + 1])
    ]
    return {
        "plain": x,
        "transposed": x.T.copy().T,
        "strided": np.repeat(x, 2, -1)[..., ::2],
        "row": x[0],
        "number": 1.5,
    }[layout]


@settings(max_examples=60, deadline=None)
@given(
    ufunc=st.sampled_from(UFUNCS),
    layouts=st.tuples(LAYOUTS, LAYOUTS | st.sampled_from(["row", "number"])),
    shape=st.sampled_from([(1, 8_193), (7, 10_001), (700, 100), (30_000, 3), (2, 270_001)]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 20),
    mode=st.sampled_from(["ignore", "warn", "raise"]),
)  # fmt: skip
def test_large_calls_have_numpys_bits_and_warnings(ufunc, layouts, shape, dtype, seed, mode):
    operands = [operand(layout, shape, dtype, seed + k) for k, layout in enumerate(layouts)][: ufunc.nin]

    def run(convert):
        with warnings.catch_warnings(record=True) as caught, np.errstate(all=mode):
            warnings.simplefilter("always")
            try:
                y = ufunc(*map(convert, operands))
            except FloatingPointError as error:
                return str(error)
        y = y.numpy() if isinstance(y, cr.Tensor) else y
        return y.shape, y.dtype, y.tobytes(), [str(w.message) for w in caught]

    assert run(lambda x: cr.from_numpy(x) if isinstance(x, np.ndarray) else x) == run(lambda x: x)


def test_large_writes_in_place_are_numpys():
    x = np.linspace(-1, 1, SIZE).astype(np.float32)
    t = cr.from_numpy(x.copy())
    t.mul_(t).add_(1.5).tanh_()
    np.testing.assert_array_equal(t.numpy(), np.tanh(x * x + np.float32(1.5)))
    t = cr.from_numpy(x.copy())
    t[1:].add_(t[:-1])
    expected = x.copy()
    expected[1:] += x[:-1]
    np.testing.assert_array_equal(t.numpy(), expected)
