"""Made by tools/stubs.py from the declarations."""

from typing import Any
from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.types import DTypeLike
from chainrule._src.tape.tensor import Tensor
def fft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Return the Fourier transform along an axis: out[k] = Σⱼ input[j]·exp(−2πi·jk/n)."""
def fft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Compute :func:`fftn` over two axes, by default the last two."""
def fftfreq(n: int, d: float = ..., *, dtype: DTypeLike = ..., layout: object = ..., device: DeviceLike = ..., requires_grad: bool = ...) -> Tensor:
    """Return the frequencies of :func:`fft` for n points at distance ``d``: 0, 1, ..., −2, −1, divided by n·d."""
def fftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Return the Fourier transform over several axes: :func:`fft` along each of them."""
def fftshift(input: Tensor, dim: Any | None = ...) -> Tensor:
    """Roll along axes (all by default) so that frequency 0 moves from the front to the middle."""
def hfft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Return the real spectrum of a Hermitian signal, given its first half."""
def hfft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Compute :func:`hfftn` over two axes, by default the last two."""
def hfftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Apply :func:`fft` along all of several axes but the last, then :func:`hfft` along the last."""
def ifft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Return the inverse of :func:`fft`: out[j] = 1/n·Σₖ input[k]·exp(2πi·jk/n). The arguments are those of ``fft``."""
def ifft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Compute :func:`ifftn` over two axes, by default the last two."""
def ifftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Return the inverse of :func:`fftn`, with the same arguments."""
def ifftshift(input: Tensor, dim: Any | None = ...) -> Tensor:
    """Return the inverse of :func:`fftshift`."""
def ihfft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Return the inverse of :func:`hfft`: the first half of the Hermitian signal of a real spectrum."""
def ihfft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Compute :func:`ihfftn` over two axes, by default the last two."""
def ihfftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Return the inverse of :func:`hfftn`."""
def irfft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Return the inverse of :func:`rfft`: n real points, from half of their spectrum."""
def irfft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Compute :func:`irfftn` over two axes, by default the last two."""
def irfftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Return the inverse of :func:`rfftn`; the last number in ``s`` is the number of real points, by default 2·(m − 1)."""
def rfft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Return the Fourier transform of real numbers along an axis: the first n // 2 + 1 frequencies."""
def rfft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Compute :func:`rfftn` over two axes, by default the last two."""
def rfftfreq(n: int, d: float = ..., *, dtype: DTypeLike = ..., layout: object = ..., device: DeviceLike = ..., requires_grad: bool = ...) -> Tensor:
    """Return the frequencies of :func:`rfft` for n points at distance ``d``: 0, 1, ..., n // 2, divided by n·d."""
def rfftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """Apply :func:`rfft` along the last of several axes, then :func:`fft` along the others. The arguments are those of ``fftn``."""
