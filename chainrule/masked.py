"""Masked reductions, like ``torch.masked``: elements where ``mask`` is False are left out.

Masked elements have gradient 0. If all elements are masked, the result is that of an empty reduction, or nan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.dtypes import as_dtype
from chainrule._src.arrays.types import AnyArray, AnyFunction, Dims, DTypeLike, TensorLike
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import ordering, reductions, statistics
from chainrule._src.ops.arguments import axes_of, tensor_of
from chainrule._src.ops.linalg.norms import vector_norm
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.tensor import Tensor

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


def _extreme(dtype: Any, lowest: bool) -> Any:
    if dtype.kind in "fc":
        return -np.inf if lowest else np.inf
    if dtype.kind == "b":
        return not lowest
    return int(np.iinfo(dtype).min if lowest else np.iinfo(dtype).max)


def _filled(name: str, input: Any, mask: object, dtype: object, fill: object) -> Any:
    """Fill the tensor where the mask is False with a number, or the "lowest" or "highest" number of its dtype."""
    x = tensor_of(name, input)
    x = x if dtype is None else cast(x, as_dtype(dtype))
    if mask is None:
        return x
    if isinstance(fill, str):
        fill = _extreme(x.dtype, fill == "lowest")
    return ew.where(mask, x, fill)


def _masked(name: str, neutral: object, function: AnyFunction) -> AnyFunction:
    """Return the masked version of a reduction with the given neutral element."""

    def call(
        input: AnyArray, dim: Dims = None, *, dtype: DTypeLike = None, mask: AnyArray | None = None, **options: object
    ) -> Tensor:
        x = _filled(f"masked.{name}", input, mask, dtype, neutral)
        if name == "logsumexp":
            dim = axes_of(name, dim, x.ndim)
        return function(x, dim, **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Compute :func:`{name}` of the elements where ``mask`` is True."
    return call


sum, prod = _masked("sum", 0, reductions.sum), _masked("prod", 1, reductions.prod)
amax, amin = _masked("amax", "lowest", reductions.amax), _masked("amin", "highest", reductions.amin)
argmax, argmin = _masked("argmax", "lowest", reductions.argmax), _masked("argmin", "highest", reductions.argmin)
cumsum, cumprod = _masked("cumsum", 0, ordering.cumsum), _masked("cumprod", 1, ordering.cumprod)
softmax, log_softmax = (
    _masked("softmax", "lowest", reductions.softmax),
    _masked("log_softmax", "lowest", reductions.log_softmax),
)
softmin = _masked("softmin", "highest", lambda x, dim: reductions.softmax(ew.neg(x), dim))
logsumexp = _masked("logsumexp", "lowest", reductions.logsumexp)


def _count(x: Any, mask: Any, dim: Any, keepdim: bool) -> Any:
    """Return the number of unmasked elements."""
    count = tensor_of("masked", np.asarray(True) if mask is None else mask).expand(tuple(x.shape))
    return reductions.sum(count, dim, keepdim)


def mean(
    input: Any,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Any = None,
) -> Tensor:
    """Return the mean of the elements where ``mask`` is True.

    >>> import chainrule as cr
    >>> cr.masked.mean(cr.tensor([1., 2., 9.]), mask=cr.tensor([True, True, False]))
    tensor(1.5000)
    """
    x = _filled("masked.mean", input, mask, dtype, 0)
    if x.dtype.kind not in "fc":
        raise ValueError(f"mean(): masked.mean takes a floating-point or complex dtype, not {x.dtype}: use .float()")
    return ew.div(reductions.sum(x, dim, keepdim), _count(x, mask, dim, keepdim))


def var(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    mask: Any = None,
) -> Tensor:
    """Return the variance of the elements where ``mask`` is True."""
    x = _filled("masked.var", input, None, dtype, 0)
    deviation = _filled("masked.var", ew.sub(x, mean(x, dim, keepdim=True, mask=mask)), mask, None, 0)
    squares = reductions.sum(
        ew.mul(deviation, ew.conj(deviation)) if deviation.is_complex() else ew.square(deviation), dim, keepdim
    )
    less = correction if correction is not None else 0 if unbiased is False else 1
    count = ew.clamp(ew.sub(_count(x, mask, dim, keepdim), less), min=0)
    return ew.div(squares, count)


def std(input: Any, dim: object = None, unbiased: bool | None = None, **options: Any) -> Tensor:
    """Return the standard deviation of the elements where ``mask`` is True."""
    return ew.sqrt(var(input, dim, unbiased, **options))


def median(
    input: TensorLike, dim: int = -1, *, keepdim: bool = False, dtype: DTypeLike = None, mask: object = None
) -> Tensor:
    """Return the (lower) median of the elements where ``mask`` is True."""
    return statistics.nanmedian(_filled("masked.median", input, mask, dtype, np.nan), dim, keepdim).values


def norm(
    input: TensorLike,
    ord: float = 2.0,
    dim: object = None,
    *,
    keepdim: bool = False,
    dtype: object = None,
    mask: TensorLike | None = None,
) -> Tensor:
    """Return the norm of the elements where ``mask`` is True."""
    return vector_norm(_filled("masked.norm", input, mask, dtype, np.inf if ord < 0 else 0), ord, dim, keepdim)


def normalize(
    input: TensorLike,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DTypeLike = None,
    mask: TensorLike | None = None,
) -> Tensor:
    """Divide the tensor by the norm of its elements where ``mask`` is True, and set the other elements to 0."""
    x = _filled("masked.normalize", input, mask, dtype, 0)
    return ew.div(x, ew.clamp(norm(x, ord, dim, keepdim=True), min=eps))


def logaddexp(
    input: TensorLike,
    other: TensorLike,
    *,
    dtype: DTypeLike = None,
    input_mask: TensorLike | None = None,
    other_mask: TensorLike | None = None,
) -> Tensor:
    """Return log(exp(input) + exp(other)) without masked elements."""
    x = _filled("masked.logaddexp", input, input_mask, dtype, "lowest")
    return ew.logaddexp(x, _filled("masked.logaddexp", other, other_mask, dtype, "lowest"))


show(globals())
