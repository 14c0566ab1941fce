"""The short-time Fourier transform and its inverse (``torch.stft``, ``torch.istft``)."""

from __future__ import annotations

from chainrule import fft
from chainrule._src.ops import creation
from chainrule._src.ops.arguments import tensor_of
from chainrule._src.ops.elementwise import complex as complex_
from chainrule._src.ops.joining import pad
from chainrule._src.ops.memory import view_as_real
from chainrule._src.tape.tensor import Tensor
from chainrule.nn.convolution import fold


def _frame_parameters(
    name: str, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None, like: Tensor
) -> tuple[int, Tensor]:
    """Return the step between frames, and the window padded with zeros to ``n_fft``."""
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if n_fft <= 0 or hop <= 0 or not 0 < length <= n_fft:
        raise RuntimeError(
            f"{name}: expected 0 < win_length <= n_fft and hop_length > 0, but got n_fft={n_fft}, hop_length={hop}, "
            f"win_length={length}"
        )
    if window is None:
        window = creation.ones(length, dtype=like.real.dtype)
    if tuple(window.shape) != (length,):
        raise RuntimeError(f"{name}: expected a 1D window of size win_length={length}, but got {tuple(window.shape)}")
    left = (n_fft - length) // 2
    return hop, pad(window, (left, n_fft - length - left))


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return the Fourier transforms of windowed frames of ``n_fft`` points, one every ``hop_length`` points.

    Args:
        input: (..., points), with at most one leading axis.
        window: (win_length,); ones by default.
        center: pad the signal so that frame t is centered at point t·hop_length.
        align_to_window: without ``center``, start the first frame at the window instead of its zero padding.
        onesided: omit redundant frequencies (by default for a real signal and window).

    Returns:
        A complex tensor (..., frequencies, frames), or pairs of real numbers with ``return_complex=False``.

    >>> import chainrule as cr
    >>> cr.stft(cr.ones(8), 4, return_complex=True).shape
    torch.Size([3, 9])
    """
    x = tensor_of("stft", input, "fc")
    if x.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {x.ndim}D: reshape leading axes to one")
    if return_complex is None and not x.is_complex():
        raise RuntimeError("stft requires the return_complex parameter be given for real inputs: return_complex=True")
    hop, w = _frame_parameters("stft", n_fft, hop_length, win_length, window, x)
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        x = pad(x.reshape(1, -1, x.shape[-1]), (n_fft // 2, n_fft // 2), mode=pad_mode).reshape(*x.shape[:-1], -1)
    elif align_to_window and win_length is not None:
        left = (n_fft - win_length) // 2
        x = pad(x, (left, n_fft - win_length - left))
    if x.shape[-1] < n_fft:
        raise RuntimeError(f"stft: expected n_fft <= {x.shape[-1]}, the number of points, but got n_fft={n_fft}")
    framed = x.unfold(-1, n_fft, hop) * w
    if onesided is None:
        onesided = not framed.is_complex()
    spectrum = (fft.rfft if onesided else fft.fft)(framed, norm="ortho" if normalized else None).transpose(-1, -2)
    return view_as_real(spectrum.contiguous()) if return_complex is False else spectrum


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the inverse short-time Fourier transform: the least-squares estimate of the signal from all frames.

    Args:
        input: the complex result of :func:`stft`.
        length: the number of points of the signal.

    Raises:
        RuntimeError: no window covers some point.
    """
    x = tensor_of("istft", input, "c")
    hop, w = _frame_parameters("istft", n_fft, hop_length, win_length, window, x)
    if onesided is None:
        onesided = x.shape[-2] != n_fft
    if x.shape[-2] != (n_fft // 2 + 1 if onesided else n_fft):
        raise RuntimeError(f"istft: the number of frequencies, {x.shape[-2]}, does not fit n_fft={n_fft}")
    x, inverse_fft = (x, fft.ifft) if return_complex else (x[..., : n_fft // 2 + 1, :], fft.irfft)
    frames = inverse_fft(x.transpose(-1, -2), n=n_fft, norm="ortho" if normalized else None) * w

    batch = frames.reshape(-1, *frames.shape[-2:])
    start = n_fft // 2 if center else 0
    full_length = n_fft + hop * (batch.shape[1] - 1)
    stop = full_length - start if length is None else min(start + length, full_length)
    envelope = _overlap_add((w * w).expand(1, *batch.shape[1:]), hop)[:, start:stop]
    if float(envelope.detach().abs().min()) < 1e-11:
        raise RuntimeError("istft: window overlap add min is 0: no window covers some point of the signal")
    signal = _overlap_add(batch, hop)[:, start:stop] / envelope
    if length is not None and signal.shape[-1] < length:
        signal = pad(signal, (0, length - signal.shape[-1]))
    return signal.reshape(*x.shape[:-2], signal.shape[-1])


def _overlap_add(frames: Tensor, hop: int) -> Tensor:
    """Add up overlapping frames that start ``hop`` points apart: (batch, frames, n_fft) to (batch, points)."""
    if frames.is_complex():
        return complex_(*[_overlap_add(part, hop) for part in view_as_real(frames).unbind(-1)])
    n_fft = frames.shape[2]
    points = n_fft + hop * (frames.shape[1] - 1)
    return fold(frames.transpose(1, 2), (1, points), (1, n_fft), stride=(1, hop))[:, 0, 0]
