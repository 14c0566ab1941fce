"""Programs as C functions for SciPy."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from chainrule._src import native
from chainrule._src.native.code import FIRST_INPUT, loop_step, program

scipy = pytest.importorskip("scipy")
from scipy import LowLevelCallable, integrate, ndimage  # noqa: E402

D = np.dtype(np.float64)
SCALAR = ((), D, ())
IN, SECOND, THIRD = FIRST_INPUT, FIRST_INPUT + 1, FIRST_INPUT + 2


def loop(ufunc: np.ufunc, types: str) -> tuple[int, int]:
    return native.loop(ufunc, ufunc.types.index(types))


def line(length: int) -> Any:
    return (length,), D, (8,)


def product() -> Any:
    """Return a runner of x * a."""
    code = program([loop_step(*loop(np.multiply, "dd->d"), 1, [(IN, 0), (SECOND, 0), (THIRD, 0)], [8, 8, 8])])
    return native.Runner(code, 0, [SCALAR, SCALAR], [], [SCALAR])


def largest(length: int) -> Any:
    """Return a runner of the maximum of an array."""
    copy = loop_step(native.OWN["copy8"], 0, 1, [(IN, 0), (SECOND, 0)], [8, 8])
    fold = loop_step(*loop(np.maximum, "dd->d"), length - 1, [(SECOND, 0), (IN, 8), (SECOND, 0)], [0, 8, 0])
    return native.Runner(program([copy, fold]), 0, [line(length)], [], [SCALAR])


def doubled(length: int) -> Any:
    """Return a runner of x + x."""
    code = program([loop_step(*loop(np.add, "dd->d"), length, [(IN, 0), (IN, 0), (SECOND, 0)], [8, 8, 8])])
    return native.Runner(code, 0, [line(length)], [], [line(length)])


def test_quad_passes_its_arguments():
    function = LowLevelCallable(product().low_level("integrand", 2, [0, 1]))
    assert integrate.quad(function, 0, 2, args=(3.0,))[0] == pytest.approx(6.0)
    swapped = LowLevelCallable(product().low_level("integrand", 2, [1, 0]))
    assert integrate.quad(swapped, 0, 2, args=(3.0,))[0] == pytest.approx(6.0)


def test_another_number_of_arguments_is_told():
    function = LowLevelCallable(product().low_level("integrand", 2, [0, 1]))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert np.isnan(integrate.quad(function, 0, 2)[0])
    assert any("takes 2 numbers, and is called with 1: those beside" in str(w.message) for w in told)


def test_an_array_is_read_where_it_lies_and_kept():
    a = np.array(3.0)
    function = LowLevelCallable(product().low_level("integrand", 1, [0, a]))
    assert integrate.quad(function, 0, 2)[0] == pytest.approx(6.0)
    a[...] = 4.0
    del a
    assert integrate.quad(function, 0, 2)[0] == pytest.approx(8.0)


@pytest.mark.filterwarnings("ignore:the compiled function takes 2 numbers")
def test_another_number_of_arguments_integrates_to_nan():
    function = LowLevelCallable(product().low_level("integrand", 2, [0, 1]))
    with pytest.warns(integrate.IntegrationWarning):
        assert np.isnan(integrate.quad(function, 0, 2)[0])


def test_filters():
    image = np.random.default_rng(0).standard_normal((20, 20))
    function = LowLevelCallable(largest(9).low_level("filter", 1, [0]))
    np.testing.assert_array_equal(ndimage.generic_filter(image, function, size=3), ndimage.maximum_filter(image, 3))
    with pytest.raises(ValueError, match="arrays of 9 elements, and was given 25"):
        ndimage.generic_filter(image, function, size=5)


def test_line_filters():
    image = np.random.default_rng(0).standard_normal((4, 6))
    function = LowLevelCallable(doubled(6).low_level("line_filter", 1, [0]))
    np.testing.assert_array_equal(ndimage.generic_filter1d(image, function, 1), 2 * image)
    with pytest.raises(ValueError, match="arrays of 6 elements, and was given 4"):
        ndimage.generic_filter1d(image, function, 1, axis=0)


def test_other_threads_may_take_the_gil_during_a_large_call():
    """A loop in the thread pool calls Python, like SciPy's warnings; it would deadlock if the caller kept the GIL."""
    code = """
import ctypes
import numpy as np
from scipy import LowLevelCallable, ndimage
from chainrule._src import native
from chainrule._src.native.code import FIRST_INPUT, loop_step, program

native.set_threads(4)
pointer = ctypes.c_void_p
calls = []
loop = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, pointer)(lambda *args: calls.append(1))
rows, n = 64, 8192
address = ctypes.cast(loop, pointer).value
step = loop_step(address, 0, n, [(FIRST_INPUT, 0), (FIRST_INPUT + 1, 0)], [8, 8], outer=[(rows, [8 * n, 8 * n])], split=True)
line = (rows * n,), np.dtype(float), (8,)
runner = native.Runner(program([step]), 0, [line], [], [line])
ndimage.generic_filter1d(np.zeros(rows * n), LowLevelCallable(runner.low_level("line_filter", 1, [0])), 1)
assert len(calls) == rows
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (product, ("integrand", 0, [0, 1]), "0 arguments"),
        (product, ("integrand", 17, [0, 1]), "17 arguments"),
        (product, ("integrand", 1, [0, 1]), "an argument does not exist"),
        (product, ("integrand", 1, [0, -1]), "an argument does not exist"),
        (product, ("integrand", 2, [0]), "one number or array for each input"),
        (product, ("integrand", 1, [0, np.zeros(1)]), "layout"),
        (product, ("filter", 1, [0, np.zeros(())]), "not made of doubles"),
        (product, ("other", 1, [0, 0]), "a kind is"),
        (lambda: doubled(3), ("filter", 1, [0]), "the result is not made of doubles"),
        (lambda: largest(3), ("line_filter", 1, [0]), "the result is not made of doubles"),
    ],
)
def test_what_does_not_fit_is_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make().low_level(*arguments)
