"""``Independent``: reinterpret batch axes as event axes. ``chainrule.distributions`` exports it."""

from __future__ import annotations

from typing import Any

from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import _sum_rightmost


class Independent(Distribution):
    """A distribution whose last batch axes are reinterpreted as event axes: ``log_prob`` sums over them.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: the number of batch axes to reinterpret.
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        n, shape = reinterpreted_batch_ndims, base_distribution.batch_shape
        if n > len(shape):
            raise ValueError(
                f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {n} vs {len(shape)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        batch_ndim = len(shape) - n
        super().__init__(shape[:batch_ndim], (*shape[batch_ndim:], *base_distribution.event_shape), validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Return whether samples are differentiable."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Return False if an axis is reinterpreted: there are too many combinations of values."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property()
    def support(self) -> constraints.Constraint:
        """Return the support of the base distribution, for values with the reinterpreted axes."""
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    @property
    def mean(self) -> Tensor:
        """Return the expectations."""
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        """Return the most probable values."""
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        """Return the variances."""
        return self.base_dist.variance

    def sample(self, sample_shape: object = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: object = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._sum_event_axes(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self._sum_event_axes(self.base_dist.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented: enumerate base_dist")
        return self.base_dist.enumerate_support(expand)

    def _sum_event_axes(self, x: Tensor) -> Tensor:
        return _sum_rightmost(x, self.reinterpreted_batch_ndims)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._copy(batch_shape, _instance)
        new.base_dist = self.base_dist.expand((*batch_shape, *self.event_shape[: self.reinterpreted_batch_ndims]))
        return new

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
