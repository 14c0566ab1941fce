"""The three primitives of the Fourier transforms: their formulas for complex numbers, and their saved values."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.rules.primitive import TABLE
from chainrule._src.table import fft as rows
from chainrule.testing import samples_of

ROWS = ["fft_c2c", "fft_r2c", "fft_c2r"]


def numbers(shape, complex, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + (1j * rng.normal(size=shape) if complex else 0)


@pytest.mark.parametrize("name", ROWS)
def test_formula_on_complex_numbers(name):
    row = TABLE[name]
    if "c" not in row.accepts:
        return
    for sample in samples_of(row):
        x = numbers(sample.shapes[0], True)
        leaf = cr.tensor(x, requires_grad=True)
        out = row(leaf, **sample.params)
        g = numbers(out.shape, out.dtype.kind == "c", 1)
        (got,) = cr.autograd.grad(out, leaf, cr.tensor(g))
        said = eval(row.formula["x"], {"np": np, "multiplicity": rows.multiplicity, "g": g, **sample.params})
        np.testing.assert_allclose(said, got.numpy(), 1e-12, 1e-12)


@pytest.mark.parametrize("n", range(1, 8))
def test_multiplicity_counts_the_whole_spectrum(n):
    whole = np.fft.fft(np.random.default_rng(n).normal(size=n))
    half = whole[: n // 2 + 1]
    times = rows.multiplicity(n, -1)
    assert times.sum() == n
    np.testing.assert_allclose(np.sum(times * np.abs(half) ** 2), np.sum(np.abs(whole) ** 2))
    assert rows.multiplicity(n, -3).shape == (n // 2 + 1, 1, 1)


def test_a_pass_back_and_forth_saves_nothing():
    x = cr.ones(4, requires_grad=True)
    for y in (cr.fft.fft(x), cr.fft.rfft(x), cr.fft.irfft(x)):
        assert y.grad_fn.saved == ()


def test_the_spectrum_of_one_axis_of_length_one():
    x = cr.tensor([[3.0], [4.0]], requires_grad=True)
    y = cr.fft.rfft(x)
    assert y.tolist() == [[3], [4]]
    back = cr.fft.irfft(y, n=1)
    back.sum().backward()
    assert back.tolist() == x.tolist() and x.grad.tolist() == [[1.0], [1.0]]
