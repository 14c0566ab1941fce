"""``torch.fft``: discrete Fourier transforms.

``op`` makes these functions public, and ``chainrule.fft`` exports them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.in_place import store_out
from chainrule._src.arrays import dtypes
from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.types import AnyArray, AnyFunction, DTypeLike, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import creation, shaping
from chainrule._src.ops.arguments import tensor_of, to_float, with_creation_keywords
from chainrule._src.ops.fft import numpy_functions as shared
from chainrule._src.table import shape as primitives
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.tensor import Tensor

IntOrInts = int | tuple[int, ...] | list[int]
_TO_REAL = (shared.irfft, shared.hfft)
_FROM_REAL = (shared.rfft, shared.ihfft)


# -- shared code -----------------------------------------------------------------------------------------------------


def _int(function: str, argument: str, value: TensorLike) -> int:
    if type(value) is bool or not hasattr(value, "__index__"):
        raise TypeError(f"fft_{function}(): argument '{argument}' must be int, not {type(value).__name__}")
    index: int = value.__index__()
    return index


def _ints(function: str, argument: str, value: Any) -> list[int]:
    values = value if isinstance(value, (tuple, list)) else [value]
    if any(type(v) is bool or not hasattr(v, "__index__") for v in values):
        raise TypeError(f"fft_{function}(): argument '{argument}' must be tuple of ints, not {type(value).__name__}")
    return [v.__index__() for v in values]


def _axes(function: str, dims: list[int], ndim: int) -> tuple[int, ...]:
    if dims and not ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions: {function} needs one")
    axes = tuple(errors.check_dim(function, dim, ndim) - ndim for dim in dims)
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"FFT dims must be unique, but {function} got {dims}")
    return axes


def _along(transform: AnyFunction, function: str, input: Any, n: Any, dim: Any, norm: Any, out: Any) -> Tensor:
    """Apply a transform along one axis."""
    x = tensor_of(f"fft_{function}", input)
    axes = _axes(function, [_int(function, "dim", dim)], x.ndim)
    sizes = shared.default_points(transform, x, axes) if n is None else [_int(function, "n", n)]
    return _applied(transform, function, x, sizes, axes, norm, out)


def _over(transform: AnyFunction, function: str, input: Any, s: object, dim: Any, norm: Any, out: Any) -> Tensor:
    """Apply a transform over several axes."""
    x = tensor_of(f"fft_{function}", input)
    sizes = None if s is None else _ints(function, "s", s)
    if dim is not None or function.endswith("2"):
        dims = _ints(function, "dim", dim)
    elif sizes is None:
        dims = list(range(x.ndim))
    elif len(sizes) > x.ndim:
        raise RuntimeError(f"Got shape with {len(sizes)} values but input tensor only has {x.ndim} dimensions.")
    else:
        dims = list(range(-len(sizes), 0))
    if sizes is not None and len(sizes) != len(dims):
        raise RuntimeError(
            f"When given, dim and shape arguments must have the same length, but {function} got dim={dim} and s={s}"
        )
    axes = _axes(function, dims, x.ndim)
    if not axes:
        return _over_nothing(transform, function, x, out)
    usual = shared.default_points(transform, x, axes)
    sizes = usual if sizes is None else [m if n == -1 else n for n, m in zip(sizes, usual, strict=True)]
    return _applied(transform, function, x, sizes, axes, norm, out)


def _over_nothing(transform: AnyFunction, function: str, x: AnyArray, out: Any) -> Tensor:
    if transform not in (shared.fft, shared.ifft):
        raise RuntimeError(f"{function.replace('2', 'n')} must transform at least one axis")
    x = to_float(x)
    return store_out(out, primitives.clone(x) if x.dtype.kind == "c" else cast(x, dtypes.to_complex(x.dtype)))


def _applied(
    transform: AnyFunction, function: str, x: AnyArray, sizes: list[int], axes: Any, norm: Any, out: Any
) -> Tensor:
    norm = "backward" if norm is None else norm
    if not isinstance(norm, str):
        raise TypeError(f"fft_{function}(): argument 'norm' must be str, not {type(norm).__name__}")
    if norm not in ("backward", "forward", "ortho"):
        raise errors.fft_norm(norm)
    if x.dtype == np.float16:
        raise errors.fft_half(function)
    name = function.replace("2", "n")  # the name in PyTorch's messages
    if transform in _FROM_REAL and x.dtype.kind == "c":
        raise errors.fft_needs_real(name, x)
    if isinstance(out, Tensor) and (out.dtype.kind == "f") is not (transform in _TO_REAL):
        raise errors.fft_out(name, out, transform in _TO_REAL)
    for size in sizes:
        if size < 1:
            raise errors.fft_points(name, size)
    return store_out(out, transform(to_float(x), tuple(sizes), axes, norm))


# -- the transforms --------------------------------------------------------------------------------------------------


def _along_one_axis(name: str, doc: str) -> Callable[..., Tensor]:
    """Return the public transform of a name along one axis."""

    def function(
        input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None
    ) -> Tensor:
        return _along(getattr(shared, name), name, input, n, dim, norm, out)

    return _declared(function, name, doc)


def _over_two_axes(name: str) -> Callable[..., Tensor]:
    """Return the public transform of a name over two axes."""

    def function(
        input: Tensor,
        s: IntOrInts | None = None,
        dim: IntOrInts = (-2, -1),
        norm: str | None = None,
        *,
        out: Any = None,
    ) -> Tensor:
        return _over(getattr(shared, name[:-1]), name, input, s, dim, norm, out)

    return _declared(function, name, f"Compute :func:`{name[:-1]}n` over two axes, by default the last two.")


def _over_axes(name: str, doc: str) -> Callable[..., Tensor]:
    """Return the public transform of a name over any axes."""

    def function(
        input: Tensor,
        s: IntOrInts | None = None,
        dim: IntOrInts | None = None,
        norm: str | None = None,
        *,
        out: Any = None,
    ) -> Tensor:
        return _over(getattr(shared, name[:-1]), name, input, s, dim, norm, out)

    return _declared(function, name, doc)


def _declared(function: Callable[..., Tensor], name: str, doc: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return op()(function)


fft = _along_one_axis(
    "fft",
    """Return the Fourier transform along an axis: out[k] = Σⱼ input[j]·exp(−2πi·jk/n).

    Args:
        input: (..., m, ...), real or complex.
        n: the number of points; the input is truncated or padded with zeros at the end. By default m.
        dim: the axis.
        norm: "backward", "ortho" or "forward".

    Returns:
        A complex tensor of n points along the axis.

    Raises:
        RuntimeError: n is not positive; the input is of half precision.

    >>> import chainrule as cr
    >>> cr.fft.fft(cr.tensor([1., 2., 3., 4.]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """,
)
ifft = _along_one_axis(
    "ifft",
    "Return the inverse of :func:`fft`: out[j] = 1/n·Σₖ input[k]·exp(2πi·jk/n). The arguments are those of ``fft``.",
)
fft2 = _over_two_axes("fft2")
ifft2 = _over_two_axes("ifft2")
fftn = _over_axes(
    "fftn",
    """Return the Fourier transform over several axes: :func:`fft` along each of them.

    Args:
        input: of any shape, real or complex.
        s: the number of points along each axis; −1 for the size of the input.
        dim: the axes; by default the last ``len(s)``, or all of them.
        norm: "backward", "ortho" or "forward".

    Raises:
        RuntimeError: an axis is given twice, or ``s`` and ``dim`` differ in length.

    >>> import chainrule as cr
    >>> cr.fft.fftn(cr.tensor([[1., 2.], [3., 4.]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """,
)
ifftn = _over_axes("ifftn", "Return the inverse of :func:`fftn`, with the same arguments.")

rfft = _along_one_axis(
    "rfft",
    """Return the Fourier transform of real numbers along an axis: the first n // 2 + 1 frequencies.

    The other frequencies are their conjugates. The arguments are those of :func:`fft`.

    Raises:
        RuntimeError: the input is complex.

    >>> import chainrule as cr
    >>> cr.fft.rfft(cr.tensor([1., 2., 3., 4.]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """,
)
irfft = _along_one_axis(
    "irfft",
    """Return the inverse of :func:`rfft`: n real points, from half of their spectrum.

    Args:
        input: (..., m, ...). The imaginary parts at frequencies 0 and n/2, which are zero in the spectrum of real
            numbers, are ignored.
        n: the number of points; by default 2·(m − 1), so an odd n must be given.

    >>> import chainrule as cr
    >>> cr.fft.irfft(cr.fft.rfft(cr.tensor([1., 2., 3., 4., 5.])), n=5)
    tensor([1., 2., 3., 4., 5.])
    """,
)
rfft2 = _over_two_axes("rfft2")
irfft2 = _over_two_axes("irfft2")
rfftn = _over_axes(
    "rfftn",
    "Apply :func:`rfft` along the last of several axes, then :func:`fft` along the others. The arguments are those of ``fftn``.",
)
irfftn = _over_axes(
    "irfftn",
    "Return the inverse of :func:`rfftn`; the last number in ``s`` is the number of real points, by default 2·(m − 1).",
)

hfft = _along_one_axis(
    "hfft",
    """Return the real spectrum of a Hermitian signal, given its first half.

    Args:
        input: (..., m, ...).
        n: the number of frequencies; by default 2·(m − 1).
    """,
)
ihfft = _along_one_axis(
    "ihfft", "Return the inverse of :func:`hfft`: the first half of the Hermitian signal of a real spectrum."
)
hfft2 = _over_two_axes("hfft2")
ihfft2 = _over_two_axes("ihfft2")
hfftn = _over_axes(
    "hfftn", "Apply :func:`fft` along all of several axes but the last, then :func:`hfft` along the last."
)
ihfftn = _over_axes("ihfftn", "Return the inverse of :func:`hfftn`.")


# -- frequencies -----------------------------------------------------------------------------------------------------


def _frequencies(function: str, k: Any, n: int, d: Any, dtype: DTypeLike, requires_grad: bool) -> Tensor:
    dtype = dtypes.default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if dtype.kind not in "fc":
        raise RuntimeError(f"{function} requires a floating point or complex dtype, not {dtypes.torch_name(dtype)}")
    if isinstance(d, (str, bytes)) or not hasattr(d, "__float__"):
        raise TypeError(f"fft_{function}(): argument 'd' must be float, not {type(d).__name__}")
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.float64(1.0) / (n * float(d))
        return creation.tensor(k.astype(dtype) * dtype.type(step), requires_grad=requires_grad)


@op()
@with_creation_keywords
def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike = None,
    layout: object = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of :func:`fft` for n points at distance ``d``: 0, 1, ..., −2, −1, divided by n·d.

    >>> import chainrule as cr
    >>> cr.fft.fftfreq(5)
    tensor([ 0.0000,  0.2000,  0.4000, -0.4000, -0.2000])
    """
    n = _int("fftfreq", "n", n)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    k = np.arange(n)
    return _frequencies("fftfreq", np.where(k < (n + 1) // 2, k, k - n), n, d, dtype, requires_grad)


@op()
@with_creation_keywords
def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike = None,
    layout: object = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of :func:`rfft` for n points at distance ``d``: 0, 1, ..., n // 2, divided by n·d.

    >>> import chainrule as cr
    >>> cr.fft.rfftfreq(5)
    tensor([0.0000, 0.2000, 0.4000])
    """
    n = _int("rfftfreq", "n", n)
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype, requires_grad)


def _shifted(function: str, input: Any, dim: object, back: bool) -> Tensor:
    x = tensor_of(f"fft_{function}", input)
    dims = list(range(x.ndim)) if dim is None else _ints(function, "dim", dim)
    if not dims:
        raise RuntimeError(f"`shifts` required: {function} needs a dimension, and got none")
    axes = tuple(errors.check_dim(function, d, x.ndim) - x.ndim for d in dims)
    if not x.ndim:
        return shaping.clone(x)
    return bind(primitives.roll, (x,), {"shift": shared.shifts(x, axes, back), "axis": axes})


@op()
def fftshift(input: Tensor, dim: IntOrInts | None = None) -> Tensor:
    """Roll along axes (all by default) so that frequency 0 moves from the front to the middle.

    >>> import chainrule as cr
    >>> cr.fft.fftshift(cr.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted("fftshift", input, dim, False)


@op()
def ifftshift(input: Tensor, dim: IntOrInts | None = None) -> Tensor:
    """Return the inverse of :func:`fftshift`."""
    return _shifted("ifftshift", input, dim, True)
