"""Differentiable transforms of values with log determinants of their Jacobians, as in ``torch.distributions.transforms``.

A subclass declares ``domain`` and ``codomain``, and implements ``_call``, ``_inverse`` and ``log_abs_det_jacobian``.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import linalg
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.size import Size
from chainrule._src.ops import creation, joining
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.constraints import Constraint
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import _sum_rightmost, broadcast_all
from chainrule.nn import functional as F

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class Transform:
    """The base of transforms.

    Args:
        cache_size: 1 to keep the last input and output, so that the inverse of an output is exactly its input.
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size, self._inv = cache_size, None
        self._cached_x_y: tuple[Any, Any] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_inv": None}

    @property
    def event_dim(self) -> int:
        """Return the number of trailing axes of one value."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim: they differ")
        return int(self.domain.event_dim)

    @property
    def inv(self) -> Transform:
        """Return the inverse transform."""
        found = None if self._inv is None else self._inv()
        if found is None:
            found = _InverseTransform(self)
            self._inv = weakref.ref(found)  # type: ignore[assignment]
        return found

    @property
    def sign(self) -> Any:
        """Return the sign of the derivative of a monotonic transform."""
        raise NotImplementedError(f"{type(self).__name__} has no sign: it is not a monotonic function of numbers")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with another cache size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        """Return the transformed value."""
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward transform")

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return log |det dy/dx| at an input and its output."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the output for the shape of an input."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of the input for the shape of an output."""
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform  # type: ignore[assignment]
        self.domain, self.codomain, self.bijective = transform.codomain, transform.domain, transform.bijective

    @property
    def inv(self) -> Any:
        return self._inv

    @property
    def sign(self) -> Any:
        return self.inv.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    def __call__(self, x: Any) -> Any:
        return self.inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self.inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self.inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


class ComposeTransform(Transform):
    """Apply transforms one after another."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        self.parts = [part.with_cache(cache_size) if cache_size else part for part in parts]
        super().__init__(cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @property
    def domain(self) -> Constraint:
        """Return the domain of the first part, with the axes that later parts need."""
        return self._end([(part.domain, part.codomain) for part in self.parts])

    @property
    def codomain(self) -> Constraint:
        """Return the codomain of the last part, with the axes that earlier parts produce."""
        return self._end([(part.codomain, part.domain) for part in reversed(self.parts)])

    def _end(self, ends: list[tuple[Any, Any]]) -> Any:
        """Return the first of the near ends, with the event axes that follow from the other parts."""
        if not ends:
            return constraints.real
        found, count = ends[0][0], ends[-1][1].event_dim
        for near, far in reversed(ends):
            count = max(count + near.event_dim - far.event_dim, near.event_dim)
        return constraints.independent(found, count - found.event_dim) if count > found.event_dim else found

    @property
    def bijective(self) -> bool:
        """Return whether all parts are bijective."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Transform:
        found: Any = None if self._inv is None else self._inv()
        if found is None:
            found = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv, found._inv = weakref.ref(found), weakref.ref(self)  # type: ignore[assignment]
        return found

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return creation.zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        total: Any = 0
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, points, [*points[1:], y], strict=True):
            term = part.log_abs_det_jacobian(before, after)
            total = total + _sum_rightmost(term, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


#: The transform without parts.
identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch axes are part of one value: their log determinants are summed."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @property
    def domain(self) -> Constraint:
        """Return the domain of the base transform with more axes."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Constraint:
        """Return the codomain of the base transform with more axes."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        """Return whether the base transform is bijective."""
        return bool(self.base_transform.bijective)

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        if x.dim() < self.domain.event_dim:
            raise ValueError(f"Too few dimensions on input: {x.dim()}, expected at least {self.domain.event_dim}")
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        if y.dim() < self.codomain.event_dim:
            raise ValueError(f"Too few dimensions on input: {y.dim()}, expected at least {self.codomain.event_dim}")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Reshape values from ``in_shape`` to ``out_shape``."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Any) -> Any:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Any) -> Any:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _replace_event(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _replace_event(shape, self.out_shape, self.in_shape)


def _replace_event(shape: Any, own: Any, other: Any) -> Any:
    """Return a shape with its last axes, which must be ``own``, replaced."""
    if len(shape) < len(own):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(own)
    if tuple(shape[cut:]) != tuple(own):
        raise ValueError(f"Shape mismatch: expected {tuple(shape[cut:])} but got {tuple(own)}")
    return Size((*shape[:cut], *other))


# -- functions of numbers ----------------------------------------------------------------------------------------------


class _Elementwise(Transform):
    """The base of increasing functions of numbers; instances of one class are equal."""

    domain: Any = constraints.real
    codomain: Any = constraints.real
    bijective: Any = True
    sign: Any = 1

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__


class ExpTransform(_Elementwise):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(_Elementwise):
    """y = x^exponent, of positive numbers."""

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return Size(np.broadcast_shapes(shape, self.exponent.shape))

    inverse_shape = forward_shape


class SigmoidTransform(_Elementwise):
    """y = 1 / (1 + exp(−x)), and its inverse at numbers between the dtype's smallest and 1 − eps."""

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        info = np.finfo(x.dtype.dtype)
        return x.sigmoid().clamp(min=float(info.tiny), max=1.0 - float(info.eps))

    def _inverse(self, y: Any) -> Any:
        info = np.finfo(y.dtype.dtype)
        y = y.clamp(min=float(info.tiny), max=1.0 - float(info.eps))
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Elementwise):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return F.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x)


class TanhTransform(_Elementwise):
    """y = tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))  # accurate for large x, as 1 - tanh(x)**2 is not


class AbsTransform(_Elementwise):
    """y = |x|, which is not invertible; ``inv`` returns the positive number."""

    codomain = constraints.positive
    bijective = False

    @property
    def sign(self) -> Any:
        return Transform.sign.fget(self)  # type: ignore[attr-defined]

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """y = loc + scale · x.

    Args:
        loc, scale: numbers or tensors.
        event_dim: the number of trailing axes of one value.
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim
        self.domain = self.codomain = (
            constraints.independent(constraints.real, event_dim) if event_dim else constraints.real
        )

    @property
    def event_dim(self) -> int:
        return self._event_dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(x is y or bool(np.all(np.asarray(_plain(x)) == np.asarray(_plain(y)))) for x, y in pairs)

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else int(self.scale > 0) - int(self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        scale = self.scale
        each = scale.abs().log() if isinstance(scale, Tensor) else creation.full_like(x, math.log(abs(scale)))
        n = self._event_dim
        return (
            each.expand(np.broadcast_shapes(x.shape, each.shape)).sum(tuple(range(-n, 0)))
            if n
            else each.expand(x.shape)
        )

    def forward_shape(self, shape: Any) -> Any:
        return Size(np.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ())))

    inverse_shape = forward_shape


def _plain(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


class CumulativeDistributionTransform(_Elementwise):
    """y = cdf(x) of a distribution of numbers."""

    codomain = constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    __eq__ = Transform.__eq__
    __hash__ = object.__hash__

    @property
    def domain(self) -> Any:
        """Return the support of the distribution."""
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> Transform:
        same = self._cache_size == cache_size
        return self if same else CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)


# -- vectors -----------------------------------------------------------------------------------------------------------


class SoftmaxTransform(Transform):
    """y = softmax(x) along the last axis, which is not bijective; ``inv`` returns log y."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.softmax(-1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        return _vector(shape)

    inverse_shape = forward_shape


def _vector(shape: Any, change: int = 0) -> Any:
    """Return a shape with the length of its last axis changed."""
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return Size((*shape[:-1], shape[-1] + change))


class StickBreakingTransform(Transform):
    """Map vectors of n numbers to n + 1 proportions: each sigmoid breaks a part off the rest of a stick."""

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = object.__hash__

    def _breaks(self, x: Any) -> Any:
        return x - creation.arange(x.shape[-1], 0, -1, dtype=x.dtype).log()

    def _call(self, x: Any) -> Any:
        part = SigmoidTransform()._call(self._breaks(x))
        one = x.new_ones((*x.shape[:-1], 1))
        return joining.cat([part, one], -1) * joining.cat([one, (1 - part).cumprod(-1)], -1)

    def _inverse(self, y: Any) -> Any:
        head = y[..., :-1]
        rest = (1 - head.cumsum(-1)).clamp(min=float(np.finfo(y.dtype.dtype).tiny))
        offset = creation.arange(head.shape[-1], 0, -1, dtype=y.dtype).log()
        return head.log() - rest.log() + offset

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = self._breaks(x)
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return _vector(shape, 1)

    def inverse_shape(self, shape: Any) -> Any:
        return _vector(shape, -1)


# -- matrices ----------------------------------------------------------------------------------------------------------


class LowerCholeskyTransform(Transform):
    """Map square matrices to lower triangular ones with a positive diagonal, exp of the given one."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Map square matrices to positive definite ones, L Lᵀ for L of :class:`LowerCholeskyTransform`."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Map vectors of n·(n − 1)/2 numbers to Cholesky factors of n × n correlation matrices.

    The tanh of each number is a canonical partial correlation (Lewandowski, Kurowicka and Joe 2009).
    """

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x: Any) -> Any:
        eps = float(np.finfo(x.dtype.dtype).eps)
        r = _lower(x.tanh().clamp(min=-1 + eps, max=1 - eps), -1)
        r = r + creation.eye(r.shape[-1], dtype=x.dtype)
        rest = (1 - r.pow(2)).tril(-1) + creation.ones_like(r).triu(0)
        left = rest.sqrt().cumprod(-1)
        return r * joining.cat([left.new_ones((*left.shape[:-1], 1)), left[..., :-1]], -1)

    def _inverse(self, y: Any) -> Any:
        tiny = float(np.finfo(y.dtype.dtype).tiny)
        rest = (1 - (y * y).cumsum(-1)).clamp(min=tiny)
        before = joining.cat([rest.new_ones((*rest.shape[:-1], 1)), rest[..., :-1]], -1)
        r = _below(y, -1) / _below(before, -1).sqrt()
        return (r.log1p() - (-r).log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        rest = 1 - (y * y).cumsum(-1)
        by_factor = 0.5 * _below(rest, -2).log().sum(-1)
        by_tanh = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return by_factor + by_tanh

    def forward_shape(self, shape: Any) -> Any:
        _vector(shape)
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


def _below(matrix: Any, diag: int) -> Any:
    """Return the elements on and below a diagonal, as a vector in row order."""
    rows, columns = np.tril_indices(matrix.shape[-1], diag)
    return matrix[..., rows, columns]


def _lower(vector: Any, diag: int) -> Any:
    """Return the square matrix with the given elements on and below a diagonal, in row order."""
    n = round((0.25 + 2 * vector.shape[-1]) ** 0.5 - 0.5) - diag
    rows, columns = np.tril_indices(n, diag)
    matrix = vector.new_zeros((*vector.shape[:-1], n, n))
    matrix[..., rows, columns] = vector
    return matrix


# -- parts of an axis --------------------------------------------------------------------------------------------------


class CatTransform(Transform):
    """Apply transforms to consecutive parts of an axis.

    Args:
        tseq: the transforms.
        dim: the axis.
        lengths: the lengths of the parts, by default 1.
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim, self.lengths = dim, [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(f"{type(self).__name__}: {len(self.transforms)} transforms need as many lengths")

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """Return the length of the axis."""
        return sum(self.lengths)

    @property
    def domain(self) -> Constraint:
        """Return the domains of the parts."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Constraint:
        """Return the codomains of the parts."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    @property
    def bijective(self) -> bool:
        """Return whether all transforms are bijective."""
        return all(t.bijective for t in self.transforms)

    def with_cache(self, cache_size: int = 1) -> Transform:
        same = self._cache_size == cache_size
        return self if same else type(self)(self.transforms, self.dim, self.lengths, cache_size)

    def _split(self, x: Any) -> Any:
        if not -x.dim() <= self.dim < x.dim() or x.shape[self.dim] != self.length:
            raise ValueError(
                f"{type(self).__name__}: axis {self.dim} of {tuple(x.shape)} must have the length {self.length}"
            )
        return x.split(self.lengths, self.dim)

    def _join(self, parts: list[Any]) -> Any:
        return joining.cat(parts, self.dim)

    def _call(self, x: Any) -> Any:
        return self._join([t(part) for t, part in zip(self.transforms, self._split(x), strict=True)])

    def _inverse(self, y: Any) -> Any:
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._split(y), strict=True)])

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        terms = []
        for t, part, image in zip(self.transforms, self._split(x), self._split(y), strict=True):
            terms.append(_sum_rightmost(t.log_abs_det_jacobian(part, image), self.event_dim - t.domain.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        return self._joined_terms(terms, dim + self.event_dim)

    def _joined_terms(self, terms: list[Any], dim: int) -> Any:
        """Join log determinants along the axis, or add them if the axis is part of one value."""
        return joining.cat(terms, dim) if dim < 0 else sum(terms)


class StackTransform(CatTransform):
    """Apply transforms to the elements of an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, None, cache_size)

    @property
    def domain(self) -> Constraint:
        """Return the domains of the elements."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Constraint:
        """Return the codomains of the elements."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _split(self, x: Any) -> Any:
        return [part.squeeze(self.dim) for part in super()._split(x)]

    def _join(self, parts: list[Any]) -> Any:
        return joining.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        pairs = zip(self.transforms, self._split(x), self._split(y), strict=True)
        return self._join([t.log_abs_det_jacobian(part, image) for t, part, image in pairs])


show(globals())
