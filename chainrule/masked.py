"""``torch.masked``: reductions that leave out the elements where ``mask`` is False.

A masked element has the gradient 0. Where nothing is left, the result is that of an empty sum, product or maximum, or nan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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


def _filled(name: str, input: Any, mask: object, dtype: object, with_what: object) -> Any:
    """Return the tensor with another number where the mask is False: a number, or "lowest" or "highest" of the dtype."""
    x = tensor_of(name, input)
    x = x if dtype is None else cast(x, as_dtype(dtype))
    if mask is None:
        return x
    if isinstance(with_what, str):
        with_what = _extreme(x.dtype, with_what == "lowest")
    return ew.where(mask, x, with_what)


def _masked(name: str, neutral: object, function: AnyFunction) -> AnyFunction:
    """Return a function whose result does not change with the number of ``neutral`` elements."""

    def call(
        input: AnyArray, dim: Dims = None, *, dtype: DTypeLike = None, mask: AnyArray | None = None, **options: object
    ) -> Tensor:
        x = _filled(f"masked.{name}", input, mask, dtype, neutral)
        if name == "logsumexp":
            dim = axes_of(name, dim, x.ndim)
        return function(x, dim, **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"As :func:`{name}`, of the elements where ``mask`` is True."
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


def _counted(x: Any, mask: Any, dim: Any, keepdim: bool) -> Any:
    """How many elements are left."""
    left = tensor_of("masked", np.asarray(True) if mask is None else mask).expand(tuple(x.shape))
    return reductions.sum(left, dim, keepdim)


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
        raise ValueError(f"mean(): masked.mean takes a floating point or complex dtype, not {x.dtype}: use .float()")
    return ew.div(reductions.sum(x, dim, keepdim), _counted(x, mask, dim, keepdim))


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
    apart = _filled("masked.var", ew.sub(x, mean(x, dim, keepdim=True, mask=mask)), mask, None, 0)
    squares = reductions.sum(ew.mul(apart, ew.conj(apart)) if apart.is_complex() else ew.square(apart), dim, keepdim)
    less = correction if correction is not None else 0 if unbiased is False else 1
    left = ew.clamp(ew.sub(_counted(x, mask, dim, keepdim), less), min=0)
    return ew.div(squares, left)


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
    """Return the tensor, divided by the norm of the elements where ``mask`` is True; the others are 0."""
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
    """Return log(exp(input) + exp(other)), without what is masked."""
    x = _filled("masked.logaddexp", input, input_mask, dtype, "lowest")
    return ew.logaddexp(x, _filled("masked.logaddexp", other, other_mask, dtype, "lowest"))
