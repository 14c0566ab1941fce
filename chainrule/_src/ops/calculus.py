"""Integrals and slopes of sampled functions, and products and distances of vectors: composites with PyTorch's signatures.

``op`` makes these functions public: ``chainrule.trapezoid``, ``chainrule.cumulative_trapezoid`` …
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.types import TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import shaping
from chainrule._src.ops.arguments import tensor_of, to_float
from chainrule._src.ops.linalg.numpy_functions import cross as numpy_cross
from chainrule._src.ops.matrices import diff
from chainrule._src.ops.numpy_calculus import _distances, _slope
from chainrule._src.ops.ordering import cumsum
from chainrule._src.ops.reductions import norm
from chainrule._src.ops.reductions import sum as sum_
from chainrule._src.ops.splitting import narrow
from chainrule._src.tape.dispatch import cast
from chainrule._src.tape.protocol import as_array
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.ties import tie_cotangents

# -- of samples ------------------------------------------------------------------------------------------------------


@op("trapezoid trapz")
def trapezoid(y: Any, x: TensorLike | None = None, *, dx: TensorLike | None = None, dim: int = -1) -> Tensor:
    """Return the integral along ``dim`` by the trapezoidal rule.

    Args:
        y: the samples, (..., n).
        x: the sample points, (n,) or of y's shape; by default they are ``dx`` (1) apart.

    >>> import chainrule as cr
    >>> cr.trapezoid(cr.tensor([1., 2., 3.]))
    tensor(4.)
    """
    return sum_(_areas("trapezoid", y, x, dx, dim), dim)


@op()
def cumulative_trapezoid(y: Any, x: TensorLike | None = None, *, dx: TensorLike | None = None, dim: int = -1) -> Tensor:
    """Return the running integral along ``dim`` by the trapezoidal rule, with n − 1 entries."""
    return cumsum(_areas("cumulative_trapezoid", y, x, dx, dim), dim)


trapz = trapezoid


def _areas(name: str, y: Any, x: Any, dx: Any, dim: int) -> Tensor:
    """Return the areas between neighbouring samples."""
    y = tensor_of(name, y)
    if y.dtype == np.bool_:
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if not y.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions: {name} needs samples")
    if x is not None and dx is not None:
        raise TypeError(f"{name}() received an invalid combination of arguments: give x or dx, not both")
    d = errors.check_dim(name, dim, y.ndim)
    n = y.shape[d]
    width = 1 if dx is None else dx
    if x is not None:
        x = tensor_of(name, x, "iufc")
        if x.ndim == 1:
            if x.shape[0] != n:
                raise RuntimeError(f"{name}: There must be one `x` value for each sample point: got {x.shape[0]}, {n}")
            x = x.reshape([-1 if k == d else 1 for k in range(y.ndim)])
        width = diff(x, dim=d - y.ndim)
    inner = max(n - 1, 0)
    pairs = ew.add(narrow(y, d, min(1, n), inner), narrow(y, d, 0, inner))
    return ew.true_divide(ew.mul(pairs, width), 2)


@op()
def gradient(input: TensorLike, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Return the derivative of a sampled function along each of ``dim`` (all axes by default), by second-order differences.

    Args:
        input: the samples.
        spacing: the distance between the samples: a number, or for each axis a number or the coordinates (n,).
        edge_order: the order of the one-sided differences at the ends, 1 or 2.

    >>> import chainrule as cr
    >>> cr.gradient(cr.tensor([1., 4., 9.]))
    (tensor([3., 4., 5.]),)
    """
    x = to_float(tensor_of("gradient", input, "iufc"))
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = [errors.check_dim("gradient", d, x.ndim) for d in dims]
    if len(set(axes)) != len(axes):
        raise errors.repeated_dim(axes[-1])
    spacing = 1 if spacing is None else spacing
    several = isinstance(spacing, (list, tuple))
    if several and len(spacing) != len(axes):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to the number of "
            f"dims ({len(axes)}), but got a list of length {len(spacing)}"
        )
    if any(x.shape[d] < edge_order + 1 for d in axes):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    steps = list(spacing) if several else [spacing] * len(axes)
    for d, h in zip(axes, steps, strict=True):
        if getattr(h, "ndim", 0) and tuple(h.shape) != (x.shape[d],):
            raise RuntimeError(
                f"torch.gradient expected one coordinate for each of the {x.shape[d]} samples of dim {d}, but got shape "
                f"{list(h.shape)}"
            )
    return tuple(_slope(x, _distances(h, x.shape[d]), d - x.ndim, edge_order) for d, h in zip(axes, steps, strict=True))


# -- of vectors ------------------------------------------------------------------------------------------------------


@op(method=True, out=True)
def cross(input: TensorLike, other: TensorLike, dim: int | None = None) -> Tensor:
    """Return the vector product along ``dim`` (the first axis of length 3, by default)."""
    a, b = tensor_of("cross", input), tensor_of("cross", other)
    if a.ndim != b.ndim:
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions: cross got shapes "
            f"{tuple(a.shape)} and {tuple(b.shape)}"
        )
    if dim is None:
        threes = [d for d, n in enumerate(a.shape) if n == 3]
        if not threes:
            raise RuntimeError(f"no dimension of size 3 in input: cross got shape {tuple(a.shape)}")
        dim = threes[0]
    return cross_along("cross", a, b, dim)


def cross_along(name: str, a: Tensor, b: Tensor, dim: int) -> Tensor:
    """Return the vector product of tensors of the same rank, after checking the axis."""
    d = errors.check_dim(name, dim, a.ndim)
    if a.shape[d] != 3 or b.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {a.shape[d]} and {b.shape[d]}"
        )
    return numpy_cross(a, b, d - a.ndim)


@op()
def cdist(x1: TensorLike, x2: TensorLike, p: float = 2.0, compute_mode: object = None) -> Tensor:
    """Return the p-norm distance of every row of one matrix to every row of another; leading axes broadcast.

    Args:
        x1: (..., m, k).
        x2: (..., n, k).
        compute_mode: accepted for compatibility; distances are always computed from differences, without cancellation.

    Returns:
        (..., m, n). The gradient is 0 where a distance is 0.

    >>> import chainrule as cr
    >>> cr.cdist(cr.tensor([[0., 0.]]), cr.tensor([[3., 4.], [0., 0.]]))
    tensor([[5., 0.]])
    """
    a, b = tensor_of("cdist", x1), tensor_of("cdist", x2)
    for name, x in (("X1", a), ("X2", b)):
        if x.dtype.kind != "f":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: {b.shape[-1]}")
    if p < 0:
        raise RuntimeError(f"cdist only supports non-negative p values, but got {p}")
    difference = ew.sub(shaping.unsqueeze(a, -2), shaping.unsqueeze(b, -3))
    return tie_cotangents(norm(difference, p, -1) if a.shape[-1] else sum_(difference, -1))


@op(method=True, in_place=True, out=True, sample="rand(2, 3), 2, 0, 1.0")
def renorm(input: TensorLike, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return the entries along ``dim``, each scaled down to a p-norm of ``maxnorm`` if its own is larger."""
    x = tensor_of("renorm", input, "fc")
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, but got p={p}")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if x.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {x.ndim} dimensions")
    d = errors.check_dim("renorm", dim, x.ndim)
    others = [k for k in range(x.ndim) if k != d]
    over = ew.gt(norm(x.detach(), p, others, True), maxnorm)
    size = norm(ew.where(over, x, 0.0), p, others, True)  # entries that are not scaled must not affect the gradient
    scale = ew.where(over, ew.true_divide(maxnorm, ew.add(size, 1e-7)), 1.0)
    return ew.mul(x, scale)


@op(sample="tensor([4, 5]), (2, 3)")
def unravel_index(indices: TensorLike, shape: Any) -> tuple[Tensor, ...]:
    """Convert indices into a flattened tensor of a shape to one tensor of indices per axis."""
    where = indices if isinstance(indices, Tensor) else wrap(as_array(indices))
    if where.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {where.dtype}")
    where = cast(where, np.dtype(np.int64))
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    after = [int(np.prod(sizes[k + 1 :], dtype=np.int64)) for k in range(len(sizes))]
    return tuple(ew.remainder(ew.floor_divide(where, step), n) for step, n in zip(after, sizes, strict=True))
