"""``np.fft`` on tensors: NumPy's values, dtypes and errors; recorded; and under transformations."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest

import chainrule as cr

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]
#: NumPy 2.0 transforms the other axes of rfftn in the given order (which matters if an axis occurs twice)
LAST_FIRST = np.fft.rfftn(np.ones((2, 2)), s=(5, 3, 2), axes=(0, 0, 1)).shape[0] == 5
DTYPES = ["f8", "f4", "f2", "c16", "c8", "i8", "i4", "u1", "?"]


def calls(seed):
    """Generate random calls: a name, an array and keywords."""
    chosen = random.Random(seed)
    rng = np.random.default_rng(seed)
    for _ in range(60):
        name, ndim = chosen.choice(ONE + SEVERAL), chosen.randint(1, 3)
        x = 5 * rng.normal(size=tuple(chosen.randint(1, 5) for _ in range(ndim)))
        dtype = np.dtype(chosen.choice(DTYPES))
        x = (x + 1j * rng.normal(size=x.shape)).astype(dtype) if dtype.kind == "c" else x.astype(dtype)
        keywords = {"norm": chosen.choice([None, "backward", "ortho", "forward"])}
        if name in ONE:
            keywords |= {"n": chosen.choice([None, 1, 2, 3, 6, 7]), "axis": chosen.randint(-ndim, ndim - 1)}
        elif chosen.random() < 0.7:
            axes = [
                chosen.randint(-ndim, ndim - 1) for _ in range(chosen.randint(1, ndim + 1))
            ]  # an axis may occur twice
            keywords["axes"] = tuple(axes)
            if chosen.random() < 0.6:
                keywords["s"] = tuple(chosen.choice([-1, 1, 2, 5]) for _ in axes)
        yield name, x, keywords


@pytest.mark.parametrize("seed", range(10))
def test_values_dtypes_and_errors_are_numpys(seed):
    for name, x, keywords in calls(seed):
        function = getattr(np.fft, name)
        axes = keywords.get("axes", ())
        if name in ("rfft2", "rfftn") and len({k % x.ndim for k in axes}) < len(axes) and not LAST_FIRST:
            continue
        try:
            expected = function(x, **keywords)
        except (TypeError, ValueError, IndexError) as error:
            with pytest.raises(type(error)):
                function(cr.tensor(x), **keywords)
            continue
        got = function(cr.tensor(x), **keywords)
        assert isinstance(got, cr.Tensor)
        assert got.numpy().dtype == expected.dtype, (name, x.dtype, keywords)
        # (NumPy rounds the scale to the input's precision; for half precision chainrule does not)
        tolerance = 2e-3 if x.dtype == np.float16 else 1e-4 if expected.dtype.str[1:] in ("f4", "c8") else 1e-11
        np.testing.assert_allclose(got.numpy(), expected, tolerance, tolerance, err_msg=f"{name} {x.shape} {keywords}")


@pytest.mark.parametrize("name", ONE + SEVERAL)
def test_recorded(name):
    function = getattr(np.fft, name)
    x = cr.tensor(np.random.default_rng(0).normal(size=(3, 4)), requires_grad=True)
    keywords = {"n": 5, "axis": 0} if name in ONE else {"s": (4, 3), "axes": (1, 0)}
    assert cr.autograd.gradcheck(lambda a: function(a, **keywords, norm="ortho"), (x,))


def test_an_axis_twice():
    x = cr.tensor(np.random.default_rng(0).normal(size=(3, 4)), requires_grad=True)
    for name in ("fftn", "rfftn", "irfftn"):

        def function(a, name=name):
            return getattr(np.fft, name)(a, axes=(0, 1, 0))

        np.testing.assert_allclose(function(x).detach().numpy(), function(x.detach().numpy()), 1e-12)
        assert cr.autograd.gradcheck(function, (x,))


def test_shifts():
    x = np.arange(12.0).reshape(3, 4)
    for axes in (None, 0, (0, 1), -1):
        for function in (np.fft.fftshift, np.fft.ifftshift):
            np.testing.assert_array_equal(function(cr.tensor(x), axes).numpy(), function(x, axes))
    assert np.fft.fftshift(cr.tensor(2.0)).item() == 2.0
    with pytest.raises(IndexError):
        np.fft.fftshift(cr.tensor(x), axes=2)


def test_errors():
    x = cr.tensor(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"Invalid number of FFT data points \(0\) specified"):
        np.fft.fft(x, 0)
    with pytest.raises(ValueError, match="Invalid norm value unitary"):
        np.fft.fft(x, norm="unitary")
    with pytest.raises(ValueError, match=r"Shape and axes have different lengths\."):
        np.fft.fftn(x, s=(2,), axes=(0, 1))
    with pytest.raises(TypeError, match="expects a real input tensor"):
        np.fft.rfft(x + 0j)
    with pytest.raises(IndexError):
        np.fft.fft(x, axis=2)
    with pytest.raises(IndexError):
        np.fft.rfftn(cr.tensor(1.0))
    with pytest.raises(TypeError):
        np.fft.fft(x, 2.5)


def test_under_transformations():
    x = np.random.default_rng(0).normal(size=(3, 6))

    def power(a):
        return np.sum(np.absolute(np.fft.rfft(a)) ** 2)

    each = [np.asarray(cr.func.grad(power)(row)) for row in x]
    np.testing.assert_allclose(np.asarray(cr.func.vmap(cr.func.grad(power))(x)), each, 1e-12)
    np.testing.assert_allclose(
        np.asarray(cr.func.hessian(power)(x[0])), np.asarray(cr.func.jacfwd(cr.func.grad(power))(x[0])), 1e-12, 1e-12
    )
    _, tangent = cr.func.jvp(lambda a: np.fft.fftn(a, axes=(0, 1)), (x,), (x[::-1].copy(),))
    np.testing.assert_allclose(np.asarray(tangent), np.fft.fftn(x[::-1]), 1e-12, 1e-12)


def test_an_old_program():
    """A low-pass filter written for arrays is differentiated unchanged."""

    def smooth(signal, keep):
        spectrum = np.fft.rfft(signal)
        return np.fft.irfft(np.where(np.arange(len(spectrum)) < keep, spectrum, 0), len(signal))

    signal = np.random.default_rng(0).normal(size=8)
    projection = np.stack([smooth(e, 3) for e in np.eye(8)], 1)
    gradient = cr.func.grad(lambda a: np.sum(smooth(a, 3) ** 2))(signal)
    np.testing.assert_allclose(np.asarray(gradient), 2 * projection.T @ projection @ signal, 1e-12)


def test_loaded_when_needed():
    program = (
        "import sys, numpy as np, chainrule as cr\n"
        "assert 'numpy.fft' not in sys.modules and 'chainrule._src.table.fft' not in sys.modules\n"
        "x = cr.ones(4, requires_grad=True)\n"
        "assert np.fft.fft(x).requires_grad\n"
        "assert 'chainrule.fft' not in sys.modules\n"
        "assert cr.fft.fft(x).requires_grad\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
