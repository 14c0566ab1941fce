"""Ufuncs whose large calls are distributed over threads: results, warnings and exceptions equal those of the ufuncs."""

import sys
import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule._src import native
from chainrule._src.api import operations
from chainrule._src.rules.primitive import TABLE

LARGE = 500_003
UFUNCS = sorted(
    {
        row.value
        for row in TABLE.values()
        if row.kind == "elementwise" and isinstance(row.value, np.ufunc) and getattr(np, row.value.__name__, None)
    },
    key=lambda ufunc: ufunc.__name__,
)


@pytest.fixture(autouse=True)
def two_threads():
    threads = native.get_threads()
    native.set_threads(2)
    yield
    native.set_threads(threads)


def values(dtype, seed):
    x = np.random.default_rng(seed).uniform(-3, 3, LARGE).astype(dtype)
    x[seed::1001] = np.resize([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 1e-40], len(x[seed::1001]))
    return x


@pytest.mark.parametrize(
    "ufunc, dtype",
    [
        pytest.param(
            ufunc, dtype, marks=pytest.mark.slow if (i + j) % 2 else (), id=f"{ufunc.__name__}-{dtype.__name__}"
        )
        for i, ufunc in enumerate(UFUNCS)
        for j, dtype in enumerate([np.float32, np.float64])  # alternately: one loop, for two dtypes
    ],
)
def test_bits_and_warnings_are_the_ufuncs(ufunc, dtype):
    x, y = values(dtype, 0), values(dtype, 1)
    shared = native.SharedUfunc(ufunc)
    cases = [(x,)] if ufunc.nin == 1 else [(x, y), (x, x), (x, 0.3), (x, 1e300), (x, 2), (0.3, x), (x, y[:1])]
    for operands in cases:
        with warnings.catch_warnings(record=True) as expected_warnings:
            warnings.simplefilter("always")
            expected = ufunc(*operands)
        with warnings.catch_warnings(record=True) as found_warnings:
            warnings.simplefilter("always")
            found = shared(*operands)
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()
        assert [str(w.message) for w in found_warnings] == [str(w.message) for w in expected_warnings]


def test_what_cannot_be_shared_is_handed_on():
    shared = native.SharedUfunc(np.add)
    x = np.random.default_rng(0).uniform(-3, 3, (1001, 500))
    out = np.empty_like(x)
    assert shared(x, x, out=out) is out
    for operands in [
        (x.T, x.T),
        (x[::2], x[::2]),
        (x, x[0]),
        (x, x.astype(np.float32)),
        (x, x > 0),
        (x, np.float64(2)),
    ]:
        np.testing.assert_array_equal(shared(*operands), np.add(*operands))
    assert shared(x, x, dtype=np.float32).dtype == np.float32
    assert shared(1, 2) == 3
    with pytest.raises(ValueError, match="broadcast"):
        shared(x, x[:-1])
    with pytest.raises(TypeError):
        shared(x)
    with pytest.raises(TypeError):
        shared(x, "text")


def test_what_numpy_raises_is_raised():
    x = np.full(LARGE, 1e200)
    shared = native.SharedUfunc(np.multiply)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow encountered in multiply"):
        shared(x, x)
    with np.errstate(over="ignore"):
        assert np.isinf(shared(x, x)).all()


def test_nothing_is_kept():
    x = np.linspace(0, 1, LARGE)
    shared = native.SharedUfunc(np.sin)
    before = sys.getrefcount(x)
    for _ in range(3):
        assert sys.getrefcount(shared(x)) == 2
    assert sys.getrefcount(x) == before


def test_only_elementwise_ufuncs_with_one_result():
    for ufunc in (np.divmod, np.matmul, np.frexp, np.frompyfunc(lambda: 0, 0, 1)):
        with pytest.raises(ValueError, match="one result"):
            native.SharedUfunc(ufunc)
    with pytest.raises(TypeError):
        native.SharedUfunc(len)


def test_operations_call_them():
    x = cr.tensor(values(np.float32, 0)).requires_grad_()

    def run():
        with np.errstate(all="ignore"):
            return [y.detach().numpy().tobytes() for y in (x * x, cr.tanh(x), 2.5 * x, x + 1, x / 3, cr.exp(x * 0.1))]

    expected = run()
    try:
        operations.call_instead(native.SharedUfunc)
        assert run() == expected
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            cr.exp(x * 100)
        assert (cr.ones(3).requires_grad_() * 2).tolist() == [2, 2, 2]
    finally:
        operations.call_instead(None)
