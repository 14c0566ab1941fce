"""The extension's own loops, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule._src import native
from chainrule._src.native import blas
from chainrule._src.native.code import loop_step, program


def run(name: str, arrays: list[np.ndarray]) -> None:
    args = [(2 + k, 0) for k in range(len(arrays))]
    words = loop_step(native.OWN[name], 0, arrays[0].size, args, [a.strides[0] for a in arrays])
    code = program([words])
    native.execute(code, 0, code.size, np.array([0, 0, *(a.ctypes.data for a in arrays)], np.intp))


def samples(dtype: np.dtype) -> np.ndarray:
    """Return values of a dtype, including the extreme ones."""
    if dtype.kind == "b":
        return np.array([True, False, True, True, False])
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        return np.array([0, 1, 3, ends.max, ends.min, ends.max - 1, ends.max // 3], dtype)
    ends = np.finfo(dtype)
    real = np.array(
        [0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, ends.max, ends.tiny, ends.smallest_subnormal], dtype
    )
    if dtype.kind == "c":
        real.imag = np.roll(real.real, 3)
    return real


@pytest.mark.parametrize("name", [name for name in native.OWN if name.startswith("cast")])
def test_casts_are_those_of_astype(name):
    _, source, target = name.split("_")
    x = samples(np.dtype(source))
    with np.errstate(all="ignore"), pytest.warns() if source[0] == "c" and target[0] == "f" else np.errstate():
        want = x.astype(target)
    for step in (1, 2):
        given = np.repeat(x, step)[::step]
        out = np.zeros(step * x.size, target)[::step]
        run(name, [given, out])
        assert out.tobytes() == want.tobytes()


def test_which_casts_there_are():
    integers = [f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)]
    inexact = ["f4", "f8", "c8", "c16"]
    wanted = {f"cast_{a}_{b}" for a in ["b1", *integers] for b in ["b1", *integers, *inexact]}
    wanted |= {f"cast_{a}_{b}" for a in inexact for b in ["b1", *inexact]}
    assert {name for name in native.OWN if name.startswith("cast")} == wanted


@pytest.mark.parametrize("dtype", ["i1", "i2", "f4", "f8", "c16"])
def test_copies_and_choices(dtype):
    size = np.dtype(dtype).itemsize
    x, y = np.arange(10).astype(dtype), -np.arange(10).astype(dtype)
    condition = np.arange(10) % 3 == 0
    for step in (1, 2, -1):
        a, b, c = x[::step], y[::step], condition[::step]
        out = np.zeros(20, dtype)[: 2 * a.size : 2]
        run(f"copy{size}", [a, out])
        assert np.array_equal(out, a)
        run(f"select{size}", [c, a, b, out])
        assert np.array_equal(out, np.where(c, a, b))


@pytest.mark.parametrize("dtype", ["i1", "i2", "f4", "f8", "c16"])
def test_gathers(dtype):
    size = np.dtype(dtype).itemsize
    x = np.arange(40).astype(dtype)
    positions = np.array([7, 0, 7, 3, 1])
    for step, along in [(1, positions), (2, positions), (1, np.repeat(positions, 3)[::3])]:
        for out in (np.zeros(5, dtype), np.zeros(10, dtype)[::2]):
            args = [(2 + k, 0) for k in range(3)]
            words = loop_step(native.OWN[f"gather{size}"], step * size, 5, args, [0, along.strides[0], out.strides[0]])
            code = program([words])
            native.execute(code, 0, code.size, np.array([0, 0, *(a.ctypes.data for a in (x, along, out))], np.intp))
            assert np.array_equal(out, x[::step][positions])


@pytest.mark.parametrize("dtype", ["i1", "i2", "f4", "f8", "c16"])
@pytest.mark.parametrize("count", [1, 7, 1003])
def test_choices_between_runs_and_numbers(dtype, count):
    size = np.dtype(dtype).itemsize
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-100, 100, count).astype(dtype) for _ in range(2))
    condition = rng.random(count) < 0.5
    number = np.lib.stride_tricks.as_strided(np.array([7], dtype), (count,), (0,))
    for a, b in [(x, y), (x, number), (number, y), (number, number), (x, x)]:
        want = np.where(condition, a, b)
        for out in (np.zeros(count, dtype), np.zeros(2 * count, dtype)[::2]):
            run(f"select{size}", [condition, a, b, out])
            assert out.tobytes() == want.tobytes()
    want = np.where(condition, x, y)
    for out, first in [(x.copy(), True), (y.copy(), False)]:  # in place of one of them
        given = [out, y] if first else [x, out]
        run(f"select{size}", [condition, *given, out])
        assert out.tobytes() == want.tobytes()
    unaligned = np.zeros(size * count + 1, np.uint8)[1:].view(dtype)
    unaligned[...] = x
    out = np.zeros(count, dtype)
    run(f"select{size}", [condition, unaligned, y, out])
    assert out.tobytes() == want.tobytes()


def test_the_blas_that_numpy_calls_is_named():
    said = blas.blas_name()
    configured = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    assert ("openblas" in configured) == said.startswith("OpenBLAS ") and len(said.split()) > 1
