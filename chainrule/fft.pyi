"""Made by tools/stubs.py from the declarations."""

from typing import Any
from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.types import DTypeLike
from chainrule._src.tape.tensor import Tensor
def fft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """The Fourier transform along an axis: out[k] = Σⱼ input[j]·exp(−2πi·jk/n)."""
def fft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """:func:`fftn` over two axes, the last two by default."""
def fftfreq(n: int, d: float = ..., *, dtype: DTypeLike = ..., layout: object = ..., device: DeviceLike = ..., requires_grad: bool = ...) -> Tensor:
    """Return the frequencies of :func:`fft` over n points that are ``d`` apart: 0, 1, ..., −2, −1, over n·d."""
def fftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """The Fourier transform over several axes: :func:`fft` along each of them."""
def fftshift(input: Tensor, dim: Any | None = ...) -> Tensor:
    """Rolled along axes (all by default) so that frequency 0 comes from the front to the middle."""
def hfft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """The real spectrum of a Hermitian signal, of which the input is the first half."""
def hfft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """:func:`hfftn` over two axes, the last two by default."""
def hfftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """:func:`fft` along all of several axes but the last, then :func:`hfft` along that one."""
def ifft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """The inverse of :func:`fft`: out[j] = 1/n·Σₖ input[k]·exp(2πi·jk/n). The arguments are those of ``fft``."""
def ifft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """:func:`ifftn` over two axes, the last two by default."""
def ifftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """The inverse of :func:`fftn`, with the same arguments."""
def ifftshift(input: Tensor, dim: Any | None = ...) -> Tensor:
    """Return the inverse of :func:`fftshift`."""
def ihfft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """The inverse of :func:`hfft`: the first half of the Hermitian signal that has a real spectrum."""
def ihfft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """:func:`ihfftn` over two axes, the last two by default."""
def ihfftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """The inverse of :func:`hfftn`."""
def irfft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """The inverse of :func:`rfft`: n real points, from half of their spectrum."""
def irfft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """:func:`irfftn` over two axes, the last two by default."""
def irfftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """The inverse of :func:`rfftn`; the last number in ``s`` is that of real points, 2·(m − 1) by default."""
def rfft(input: Tensor, n: int | None = ..., dim: int = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """The Fourier transform of real numbers along an axis: the first n // 2 + 1 frequencies."""
def rfft2(input: Tensor, s: Any | None = ..., dim: Any = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """:func:`rfftn` over two axes, the last two by default."""
def rfftfreq(n: int, d: float = ..., *, dtype: DTypeLike = ..., layout: object = ..., device: DeviceLike = ..., requires_grad: bool = ...) -> Tensor:
    """Return the frequencies of :func:`rfft` over n points that are ``d`` apart: 0, 1, ..., n // 2, over n·d."""
def rfftn(input: Tensor, s: Any | None = ..., dim: Any | None = ..., norm: str | None = ..., *, out: Any = ...) -> Tensor:
    """:func:`rfft` along the last of several axes, then :func:`fft` along the others; with the arguments of ``fftn``."""
