"""``chainrule.scipy.ndimage`` and ``chainrule.scipy.signal`` compared with SciPy."""

import numpy as np
import pytest

import chainrule as cr
from tests.operands.checking import check

images = pytest.importorskip("scipy.ndimage")
signals = pytest.importorskip("scipy.signal")
rng = np.random.default_rng(0)

image, signal = rng.normal(size=(4, 5)), rng.normal(size=14)
where = np.stack([rng.random(6) * 4 - 0.6, rng.random(6) * 5 - 0.6])
B, A = signals.butter(2, 0.3)
SOS = signals.butter(3, 0.3, output="sos")

IMAGES = {
    "gaussian_filter": lambda m, x: m.gaussian_filter(x, (1.0, 0.6), order=(0, 1)),
    "gaussian_filter along": lambda m, x: m.gaussian_filter(x, 0.8, mode="wrap", axes=(1,)),
    "gaussian_filter1d": lambda m, x: m.gaussian_filter1d(x, 1.2, axis=0, mode="nearest"),
    "uniform_filter": lambda m, x: m.uniform_filter(x, 3, mode="constant"),
    "uniform_filter1d": lambda m, x: m.uniform_filter1d(x, 3),
    "convolve1d": lambda m, x: m.convolve1d(x, [1.0, 2.0, -1.0], axis=0),
    "correlate1d": lambda m, x: m.correlate1d(x, [1.0, 2.0, -1.0], mode="mirror"),
    "sobel": lambda m, x: m.sobel(x, 0),
    "prewitt": lambda m, x: m.prewitt(x),
    "laplace": lambda m, x: m.laplace(x),
}
SIGNALS = {
    "lfilter": lambda m, x: m.lfilter(B, A, x),
    "lfilter of columns": lambda m, x: m.lfilter(B, A, x.reshape(7, 2), axis=0),
    "filtfilt": lambda m, x: m.filtfilt(B, A, x),
    "sosfilt": lambda m, x: m.sosfilt(SOS, x),
    "sosfiltfilt": lambda m, x: m.sosfiltfilt(SOS, x, padlen=5),
    "savgol_filter": lambda m, x: m.savgol_filter(x, 5, 2, deriv=1),
    "detrend": lambda m, x: m.detrend(x, type="linear"),
    "resample": lambda m, x: m.resample(x, 9),
    "hilbert": lambda m, x: np.abs(m.hilbert(x)),
}


@pytest.mark.parametrize("name", IMAGES)
def test_images(name):
    check(lambda x: IMAGES[name](cr.scipy.ndimage, x), lambda x: IMAGES[name](images, x), (image,), orders=1)


@pytest.mark.parametrize("name", SIGNALS)
def test_signals(name):
    check(lambda x: SIGNALS[name](cr.scipy.signal, x), lambda x: SIGNALS[name](signals, x), (signal,), orders=1)


@pytest.mark.parametrize(
    "x", [signal, signal.reshape(2, 7), signal[:2]], ids=["signal", "two signals", "shorter than the filter"]
)
def test_coefficients(x):
    check(lambda b, a, x: cr.scipy.signal.lfilter(b, a, x), signals.lfilter, (B, A, x))
    cascade = lambda sos, x: signals.lfilter(*np.split(sos[1], 2), signals.lfilter(*np.split(sos[0], 2), x))  # any a0
    check(cr.scipy.signal.sosfilt, cascade, (SOS, x), orders=1)


@pytest.mark.parametrize("mode", ["constant", "nearest"])
def test_coordinates(mode):
    check(
        lambda x, c: cr.scipy.ndimage.map_coordinates(x, c, order=1, mode=mode, cval=0.3),
        lambda x, c: images.map_coordinates(x, c, order=1, mode=mode, cval=0.3),
        (image, where),
    )


def test_long_signals():
    x = rng.normal(size=100_000)
    np.testing.assert_allclose(cr.grad(lambda x: np.sum(cr.scipy.signal.lfilter(B, A, x)))(x)[:5], 1.0)
    with pytest.raises(ValueError, match="100,000 elements"):
        cr.scipy.signal.detrend(cr.Array(x))


def test_what_is_a_constant():
    with pytest.raises(TypeError, match="other arguments must be constants"):
        cr.grad(lambda s: np.sum(cr.scipy.ndimage.gaussian_filter1d(image, s)))(1.0)
    with pytest.raises(NotImplementedError, match="order=1"):
        cr.scipy.ndimage.map_coordinates(image, where, order=3)
    with pytest.raises(NotImplementedError, match="only cval=0"):
        cr.scipy.ndimage.correlate1d(image, [1, 2, 1], mode="constant", cval=1.0)


@pytest.mark.parametrize("name", ["gaussian_filter", "savgol_filter", "hilbert"])
def test_scipys_own_say_what_to_use(name):
    module, calls = ("ndimage", IMAGES) if name == "gaussian_filter" else ("signal", SIGNALS)
    theirs, x = (images, image) if name == "gaussian_filter" else (signals, signal)
    with pytest.raises(RuntimeError, match=rf"chainrule\.scipy\.{module}\.{name} keeps the derivative"):
        cr.grad(lambda x: np.sum(calls[name](theirs, x)))(x)
