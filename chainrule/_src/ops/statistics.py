"""Covariances, and medians and quantiles that ignore NaN.

``op`` makes these functions public: ``chainrule.cov``, ``chainrule.corrcoef`` …
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays import return_types
from chainrule._src.arrays.types import TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import shaping
from chainrule._src.ops.arguments import axis_of, constant_on_device_of, takes_tensors, tensor_of, to_float
from chainrule._src.ops.gathering import gather
from chainrule._src.ops.matrices import diag
from chainrule._src.ops.ordering import BLENDS, argsort, checked_levels, cumsum, median, sort, with_reduced
from chainrule._src.ops.products import matmul
from chainrule._src.ops.reductions import mean, nonempty, of_0d, select_values
from chainrule._src.ops.reductions import sum as sum_
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.tensor import Tensor, wrap

# -- covariances -----------------------------------------------------------------------------------------------------


@op(method=True)
@takes_tensors
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Return the covariances of variables.

    Args:
        input: (variables, observations), or the observations of one variable.
        correction: the number subtracted from the number of observations in the divisor.
        fweights: how often each observation was made (integers).
        aweights: the weight of each observation.

    Returns:
        (variables, variables), or a number for one variable.

    >>> import chainrule as cr
    >>> cr.cov(cr.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = tensor_of("cov", input)
    if x.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {x.ndim} dimensions"
        )
    if x.dtype == np.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = to_float(x) if x.ndim == 2 else to_float(x).reshape(1, -1)
    n = x.shape[1]
    weights, total = _weights(n, fweights, aweights)
    if weights is None:
        centered = ew.sub(x, mean(x, 1, True)) if n else x
        freedom: Any = n - correction
    else:
        centered = ew.sub(x, ew.true_divide(sum_(ew.mul(x, weights), 1, True), total))
        less = correction if aweights is None else correction * sum_(ew.mul(weights, aweights)) / total
        freedom = total - less
    if float(freedom) <= 0:
        errors.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations."
        )
        freedom = 0
    scaled = centered if weights is None else ew.mul(centered, weights)
    product = matmul(scaled, ew.conj(shaping.t(centered)))
    if not isinstance(freedom, Tensor):
        freedom = wrap(np.asarray(freedom, ew.real(product).dtype))
    with np.errstate(divide="ignore", invalid="ignore"):
        return ew.true_divide(product, freedom).squeeze()


def _weights(n: int, fweights: Tensor | None, aweights: Tensor | None) -> tuple[Tensor | None, TensorLike]:
    """Return the weights of the observations (None if all are equal), and their sum."""
    checks = [("fweights", fweights, "iu", "integral"), ("aweights", aweights, "f", "floating point")]
    for name, w, kinds, word in checks:
        if w is None:
            continue
        if w.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.ndim} dimensions"
            )
        if w.dtype.kind not in kinds:
            raise RuntimeError(f"cov(): expected {name} to have {word} dtype but got {name} with {w.dtype} dtype")
        if w.numel() != n:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{w.numel()} != {n}"
            )
        if n and bool((w < 0).any()):
            raise RuntimeError(f"cov(): {name} cannot be negative")
    present = [w for _, w, _, _ in checks if w is not None]
    if not present:
        return None, n
    weights = present[0] if len(present) == 1 else ew.mul(*present)
    total = sum_(weights)
    if n and float(total.detach()) == 0:
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    return weights, total


@op(method=True)
def corrcoef(input: TensorLike) -> Tensor:
    """Return the correlation coefficients of variables: their covariances, divided by both standard deviations."""
    x = tensor_of("corrcoef", input)
    if x.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {x.ndim} dimensions"
        )
    c = cov(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        if not c.ndim:
            return ew.true_divide(c, c)
        spread = ew.sqrt(ew.real(diag(c)))
        c = ew.true_divide(ew.true_divide(c, shaping.unsqueeze(spread, 1)), spread)
    if c.dtype.kind == "c":
        return ew.complex(ew.clamp(ew.real(c), -1, 1), ew.clamp(ew.imag(c), -1, 1))
    return ew.clamp(c, -1, 1)


# -- ignoring NaN ----------------------------------------------------------------------------------------------------


@op(method=True, out=True)
def nanmedian(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the (lower) median of the elements that are not NaN: of all, or along ``dim`` with its index."""
    x = tensor_of("nanmedian", input, "iuf")
    if dim is None:
        return _median_of_numbers(x.reshape(-1))
    axis = axis_of("nanmedian", dim, x.ndim)
    if axis is None:
        return return_types.nanmedian(*of_0d(x))
    nonempty("nanmedian", x, (axis,))
    number = sum_(ew.logical_not(ew.isnan(x.detach())), axis, True)
    middle = ew.clamp(ew.floor_divide(ew.sub(number, 1), 2), min=0)
    indices = gather(argsort(x, axis), axis, middle)
    return return_types.nanmedian(*select_values("nanmedian", x, indices, axis, keepdim))


def _median_of_numbers(x: Tensor) -> Tensor:
    """Return the median of a vector, ignoring NaN: replace NaNs by −∞ and ∞ in equal numbers, which keeps the median."""
    n = x.numel()
    nan = ew.isnan(x.detach())
    missing = sum_(nan)
    below = ew.sub((n - 1) // 2, ew.floor_divide(ew.sub(n - 1, missing), 2))
    if x.dtype.kind != "f":
        return median(x)
    filler = cast(ew.where(ew.le(cumsum(nan, 0), below), -np.inf, np.inf), x.dtype)
    return ew.where(ew.eq(missing, n), np.nan, median(ew.where(nan, filler, x)))


@op(method=True, out=True)
def nanquantile(
    input: TensorLike, q: object, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return the q-quantile along ``dim`` of the elements that are not NaN; NaN if there are none."""
    x = tensor_of("nanquantile", input, "f")
    levels = checked_levels("nanquantile", x, q, interpolation)
    ndim = levels.ndim
    flat = x.reshape(-1) if dim is None or not x.ndim else x
    axis: Any = axis_of("nanquantile", -1 if dim is None else dim, flat.ndim)
    ordered = sort(flat, axis).values.movedim(axis, -1)
    number = sum_(ew.logical_not(ew.isnan(ordered.detach())), -1, True)
    if isinstance(q, Tensor) and interpolation == "linear":
        position = ew.mul(ew.clamp(ew.sub(number, 1), min=0), q.reshape(-1))
    else:
        position = ew.mul(ew.clamp(ew.sub(number, 1), min=0), constant_on_device_of(number, levels.reshape(-1)))
    low, high = (cast(f(position.detach()), np.dtype(np.int64)) for f in (ew.floor, ew.ceil))
    below, above = gather(ordered, -1, low), gather(ordered, -1, high)
    weight = BLENDS[interpolation](position, low, high)
    result = ew.lerp(below, above, cast(weight, x.dtype)).movedim(-1, 0)
    result = result if ndim else result.squeeze(0)
    return with_reduced(result, x.ndim, None if dim is None else axis, ndim) if keepdim and x.ndim else result
