"""``torch.signal.windows``: weights that fade a piece of a signal in and out.

In every function ``M`` is the number of points, and ``sym=False`` leaves out the last of M + 1, so that the window
repeats without a seam, as a Fourier transform takes it to. Further keywords: ``dtype``, float32 or float64 (the default
dtype if not given), ``device``, ``layout`` and ``requires_grad``, as of other functions that make tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from chainrule.core.tensor import Tensor, wrap
from chainrule.types import dtypes
from chainrule.types.device import check_device

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def _window(
    name: str,
    M: int,
    value: Callable[[Any, int], Any],
    sym: bool,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The values at points 0 … M − 1 of a window over ``last`` steps."""
    dtype = dtypes.default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if layout is not None and str(layout).rpartition(".")[2] != "strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    check_device(device)
    if not hasattr(M, "__index__"):
        raise TypeError(f"{name}(): argument 'M' must be int, not {type(M).__name__}")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    points = np.arange(M, dtype=np.float64)
    last = M - 1 if sym else M
    data = value(points, last) if M != 1 else np.ones(1)
    return wrap(np.asarray(data, dtype)).requires_grad_(requires_grad)


def _parameter(ok: bool, message: str) -> None:
    if not ok:
        raise ValueError(message)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(−|k − center| / tau); the center is the middle by default, and may be another with ``sym=False``.

    >>> import chainrule as cr
    >>> cr.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    _parameter(tau > 0, f"Tau must be positive, got: {tau} instead.")
    _parameter(not (sym and center is not None), "Center must be None for symmetric windows")
    return _window(
        "exponential",
        M,
        lambda k, last: np.exp(-np.abs(k - (last / 2 if center is None else center)) / tau),
        sym,
        **options,
    )


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(−(k − middle)² / (2·std²))."""
    _parameter(std > 0, f"Standard deviation must be positive, got: {std} instead.")
    return _window("gaussian", M, lambda k, last: np.exp(-0.5 * ((k - last / 2) / std) ** 2), sym, **options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Half a period of a sine, sampled in the middle of each step."""
    return _window("cosine", M, lambda k, last: np.sin(np.pi * (k + 0.5) / (last + 1)), sym, **options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """I₀(beta·√(1 − x²)) / I₀(beta), for x from −1 to 1."""
    _parameter(beta >= 0, f"beta must be non-negative, got: {beta} instead.")

    def value(k: Any, last: int) -> Any:
        x = 2 * k / max(last, 1) - 1
        return np.i0(beta * np.sqrt(np.maximum(1 - x * x, 0))) / np.i0(beta)

    return _window("kaiser", M, value, sym, **options)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """Σ (−1)ⁱ·aᵢ·cos(2πik / last): a sum of cosines."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = [float(c) * (-1) ** i for i, c in enumerate(a)]
    _parameter(bool(weights), "Coefficients cannot be empty")

    def value(k: Any, last: int) -> Any:
        turn = 2 * np.pi * k / max(last, 1)
        return np.sum([w * np.cos(i * turn) for i, w in enumerate(weights)], axis=0)

    return _window("general_cosine", M, value, sym, **options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """alpha − (1 − alpha)·cos(2πk / last)."""
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.54 − 0.46·cos(2πk / last)."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """sin²(πk / last).

    >>> import chainrule as cr
    >>> cr.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Three cosines, with the weights 0.42, 0.5 and 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Four cosines, with Nuttall's weights of 1981 (0.3635819, 0.4891775, 0.1365995, 0.0106411)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A triangle: 1 − |2k / last − 1|."""
    return _window("bartlett", M, lambda k, last: 1 - np.abs(2 * k / max(last, 1) - 1), sym, **options)


# -- the older names, at the top level -------------------------------------------------------------------------------


def _older(name: str, window: Callable[..., Tensor]) -> Any:
    def call(window_length: int, periodic: bool = True, *shape: float, **options: Any) -> Tensor:
        options.pop("pin_memory", None)
        return window(window_length, *shape, sym=not periodic, **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"As :func:`signal.windows.{name.removesuffix('_window')}`; periodic unless the caller says otherwise."
    )
    return call


hann_window, blackman_window = _older("hann_window", hann), _older("blackman_window", blackman)
bartlett_window = _older("bartlett_window", bartlett)
kaiser_window = _older("kaiser_window", lambda n, beta=12.0, **options: kaiser(n, beta=beta, **options))
hamming_window = _older(
    "hamming_window", lambda n, alpha=0.54, beta=0.46, **options: general_cosine(n, a=[alpha, beta], **options)
)
