"""Short-time Fourier transforms: transforms of frames, and the reconstruction of signals."""

from __future__ import annotations

import pytest

from behaviour import torch

SIGNAL = torch.sin(torch.arange(40, dtype=torch.float64) ** 1.3).reshape(2, 20)
WINDOW = torch.hann_window(8, dtype=torch.float64) + 0.1


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_pieces(onesided, normalized):
    out = torch.stft(
        SIGNAL, 8, 3, window=WINDOW, center=False, normalized=normalized, onesided=onesided, return_complex=True
    )
    assert out.shape == (2, 5 if onesided else 8, 5)
    for piece in range(5):
        transform = torch.fft.fft(SIGNAL[:, 3 * piece : 3 * piece + 8] * WINDOW, norm="ortho" if normalized else None)
        assert torch.allclose(out[:, :, piece], transform[:, : out.shape[1]])


def test_padding_and_short_windows():
    out = torch.stft(SIGNAL[0], 8, 2, 4, WINDOW[:4], return_complex=True)
    padded = torch.nn.functional.pad(SIGNAL[:1], (4, 4), mode="reflect")[0]
    assert out.shape == (5, 11)
    assert torch.allclose(out[:, 1], torch.fft.rfft(padded[4:8] * WINDOW[:4], 8) * shifted(2))
    assert SIGNAL.stft(8, return_complex=True).shape == (2, 5, 11)
    assert SIGNAL.stft(8, return_complex=False).shape == (2, 5, 11, 2)


def test_pieces_that_begin_with_the_window():
    options = {"win_length": 4, "window": WINDOW[:4], "center": False, "return_complex": True}
    plain, aligned = (torch.stft(SIGNAL, 8, 2, align_to_window=a, **options) for a in (False, True))
    assert aligned.shape == (2, 5, 9) and torch.allclose(aligned[:, :, 1:-1], plain)
    assert torch.allclose(aligned[:, :, 0], torch.fft.rfft(SIGNAL[:, :4] * WINDOW[:4], 8) * shifted(2))
    with pytest.raises(RuntimeError, match="align_to_window"):
        torch.stft(SIGNAL, 8, align_to_window=True, return_complex=True)


def shifted(points):
    return torch.exp(-2j * torch.pi * points / 8 * torch.arange(5))


@pytest.mark.parametrize("options", [{}, {"center": False}, {"normalized": True}, {"onesided": False}])
def test_and_back(options):
    spectrum = torch.stft(SIGNAL, 8, 2, window=WINDOW, return_complex=True, **options)
    back = torch.istft(spectrum, 8, 2, window=WINDOW, length=20, **options)
    assert torch.allclose(back, SIGNAL)


def test_lengths():
    spectrum = SIGNAL[0].stft(8, 2, window=WINDOW, return_complex=True)
    assert torch.allclose(spectrum.istft(8, 2, window=WINDOW), SIGNAL[0])
    assert torch.allclose(spectrum.istft(8, 2, window=WINDOW, length=15), SIGNAL[0, :15])
    longer = spectrum.istft(8, 2, window=WINDOW, length=30)
    assert longer.shape == (30,) and not longer[24:].any()


def test_complex_signals():
    signal = torch.complex(SIGNAL, SIGNAL.flip(1))
    spectrum = torch.stft(signal, 8, 2, window=WINDOW, return_complex=True)
    assert spectrum.shape == (2, 8, 11)
    assert torch.allclose(torch.istft(spectrum, 8, 2, window=WINDOW, onesided=False, return_complex=True), signal)


def test_gradients():
    x = SIGNAL[:, :10].clone().requires_grad_()
    w = WINDOW.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x, w: torch.stft(x, 8, 3, window=w, return_complex=True), (x, w))
    z = torch.stft(x.detach(), 8, 2, window=WINDOW, return_complex=True).requires_grad_()
    assert torch.autograd.gradcheck(lambda z, w: torch.istft(z, 8, 2, window=w), (z, w))


def test_mistakes():
    with pytest.raises(RuntimeError, match="return_complex"):
        torch.stft(SIGNAL, 8)
    with pytest.raises(RuntimeError, match="win_length"):
        torch.stft(SIGNAL, 8, win_length=9, return_complex=True)
    with pytest.raises(RuntimeError, match="n_fft"):
        torch.stft(SIGNAL, 30, center=False, return_complex=True)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        torch.istft(torch.stft(SIGNAL, 8, return_complex=True), 8, window=torch.zeros(8, dtype=torch.float64))
