"""Window functions, with the names of ``torch.signal.windows``.

``M`` is the number of points. ``sym=False`` computes M + 1 points and drops the last, which gives a periodic window for
Fourier transforms. Other keywords, as in functions that create tensors: ``dtype`` (float32 or float64; the default dtype if
not given), ``device``, ``layout`` and ``requires_grad``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from chainrule._src.api.public_modules import show
from chainrule._src.arrays import dtypes
from chainrule._src.arrays.device import DeviceLike, check_device
from chainrule._src.arrays.types import AnyArray, AnyFunction, DTypeLike, IntoArray
from chainrule._src.tape.tensor import Tensor, wrap

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def _window(formula: AnyFunction) -> Callable[..., Tensor]:
    """Return the public function for a formula of the points k = 0 … M − 1, the number of steps, and its own keywords."""
    name = formula.__name__

    def call(M: int, *, sym: bool = True, dtype: DTypeLike = None, layout: object = None, device: DeviceLike = None,
             requires_grad: bool = False, **parameters: object) -> Tensor:  # fmt: skip
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
        data = formula(np.arange(M, dtype=np.float64), M - 1 if sym else M, **parameters)
        return wrap(np.asarray(data if M != 1 else np.ones(1), dtype)).requires_grad_(requires_grad)

    points, *common, _ = inspect.signature(call).parameters.values()
    own = [p.replace(kind=p.KEYWORD_ONLY) for p in list(inspect.signature(formula).parameters.values())[2:]]
    functools.update_wrapper(call, formula)
    vars(call)["__signature__"] = inspect.Signature([points, *own, *common])
    return call


def _require(ok: bool, message: str) -> None:
    if not ok:
        raise ValueError(message)


@_window
def exponential(k: Any, steps: int, center: float | None = None, tau: float = 1.0) -> Any:
    """Return exp(−|k − center| / tau); another center than the middle requires ``sym=False``.

    >>> import chainrule as cr
    >>> cr.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    _require(tau > 0, f"Tau must be positive, got: {tau} instead.")
    _require(steps == len(k) or center is None, "Center must be None for symmetric windows")
    return np.exp(-np.abs(k - (steps / 2 if center is None else center)) / tau)


@_window
def gaussian(k: Any, steps: int, std: float = 1.0) -> Any:
    """Return exp(−(k − middle)² / (2·std²))."""
    _require(std > 0, f"Standard deviation must be positive, got: {std} instead.")
    return np.exp(-0.5 * ((k - steps / 2) / std) ** 2)


@_window
def cosine(k: Any, steps: int) -> Any:
    """Return half a period of a sine, sampled in the middle of each step."""
    return np.sin(np.pi * (k + 0.5) / (steps + 1))


@_window
def kaiser(k: Any, steps: int, beta: float = 12.0) -> Any:
    """Return I₀(beta·√(1 − x²)) / I₀(beta), for x from −1 to 1."""
    _require(beta >= 0, f"beta must be non-negative, got: {beta} instead.")
    x = 2 * k / max(steps, 1) - 1
    return np.i0(beta * np.sqrt(np.maximum(1 - x * x, 0))) / np.i0(beta)


@_window
def bartlett(k: Any, steps: int) -> Any:
    """Return a triangle: 1 − |2k / steps − 1|."""
    return 1 - np.abs(2 * k / max(steps, 1) - 1)


def _cosines(k: Any, steps: int, a: Iterable[float]) -> Any:
    turn = 2 * np.pi * k / max(steps, 1)
    return np.sum([c * (-1) ** i * np.cos(i * turn) for i, c in enumerate(a)], axis=0)


@_window
def general_cosine(k: IntoArray, steps: int, a: Iterable[float]) -> Any:
    """Return the sum of cosines Σ (−1)ⁱ·aᵢ·cos(2πik / steps)."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = [float(c) for c in a]
    _require(bool(weights), "Coefficients cannot be empty")
    return _cosines(k, steps, weights)


@_window
def general_hamming(k: object, steps: int, alpha: float = 0.54) -> Any:
    """Return alpha − (1 − alpha)·cos(2πk / steps)."""
    return _cosines(k, steps, [alpha, 1 - alpha])


@_window
def hann(k: IntoArray, steps: int) -> Any:
    """Return sin²(πk / steps).

    >>> import chainrule as cr
    >>> cr.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _cosines(k, steps, [0.5, 0.5])


def _weighted(name: str, doc: str, *weights: float) -> Callable[..., Tensor]:
    def formula(k: AnyArray, steps: int) -> Any:
        return _cosines(k, steps, weights)

    formula.__name__, formula.__qualname__, formula.__doc__ = name, name, doc
    return _window(formula)


hamming = _weighted("hamming", "Return 0.54 − 0.46·cos(2πk / steps).", 0.54, 1 - 0.54)
blackman = _weighted("blackman", "Return a sum of 3 cosines with the weights 0.42, 0.5 and 0.08.", 0.42, 0.5, 0.08)
nuttall = _weighted(
    "nuttall", "Return a sum of 4 cosines with Nuttall's weights (1981).", 0.3635819, 0.4891775, 0.1365995, 0.0106411
)


# -- the older names, in the top-level namespace ---------------------------------------------------------------------


def _deprecated_window(name: str, window: Callable[..., Tensor]) -> Any:
    def call(window_length: int, periodic: bool = True, *shape: float, **options: object) -> Tensor:
        options.pop("pin_memory", None)
        return window(window_length, *shape, sym=not periodic, **options)

    call.__name__ = call.__qualname__ = name
    new_name = name.removesuffix("_window")
    call.__doc__ = f"Compute :func:`signal.windows.{new_name}`; periodic by default."
    return call


hann_window, blackman_window = _deprecated_window("hann_window", hann), _deprecated_window("blackman_window", blackman)
bartlett_window = _deprecated_window("bartlett_window", bartlett)
kaiser_window = _deprecated_window("kaiser_window", lambda n, beta=12.0, **options: kaiser(n, beta=beta, **options))
hamming_window = _deprecated_window(
    "hamming_window", lambda n, alpha=0.54, beta=0.46, **options: general_cosine(n, a=[alpha, beta], **options)
)

show(globals())
