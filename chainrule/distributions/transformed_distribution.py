"""``TransformedDistribution``: the distribution of a transformed value.

Inputs are a base distribution and a list of ``transforms``; ``LogNormal`` and others inherit from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.ops import creation
from chainrule._src.ops.elementwise import where
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.independent import Independent
from chainrule.distributions.normal import Normal
from chainrule.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
    Transform,
)  # fmt: skip
from chainrule.distributions.uniform import Uniform
from chainrule.distributions.utils import _sum_rightmost, broadcast_all


class TransformedDistribution(Distribution):
    """The distribution of transforms applied to samples of a distribution.

    Args:
        base_distribution: the distribution of the values that are transformed.
        transforms: a transform, or a list of transforms that are applied in order.

    Raises:
        ValueError: a value of the base distribution has fewer axes than the domain of the transforms.

    >>> import chainrule as torch
    >>> D = torch.distributions
    >>> d = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.transforms.ExpTransform()])
    >>> d.log_prob(torch.tensor(2.0)) == D.LogNormal(0.0, 1.0).log_prob(torch.tensor(2.0))
    tensor(True)
    """

    arg_constraints: ClassVar = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        transform, base = ComposeTransform(self.transforms), base_distribution
        shape, own = base.batch_shape + base.event_shape, len(base.event_shape)
        if len(shape) < transform.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {transform.domain.event_dim}, but got {tuple(shape)}"
            )
        after = transform.forward_shape(shape)
        before = transform.inverse_shape(after)
        if tuple(before) != tuple(shape):
            base = base.expand(before[: len(before) - own])
        more = transform.domain.event_dim - own
        self.base_dist = Independent(base, more) if more > 0 else base
        event = max(transform.codomain.event_dim, own + transform.codomain.event_dim - transform.domain.event_dim)
        cut = len(after) - event
        super().__init__(after[:cut], after[cut:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._copy(batch_shape, _instance)
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self.event_shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Return whether samples of the base distribution are differentiable."""
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> constraints.Constraint:
        """Return the codomain of the transforms."""
        if not self.transforms:
            return self.base_dist.support
        support: constraints.Constraint = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def sample(self, sample_shape: object = ()) -> Tensor:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: object = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        count, total, y = len(self.event_shape), value.new_zeros(()), value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            count += transform.domain.event_dim - transform.codomain.event_dim
            total = total - _sum_rightmost(transform.log_abs_det_jacobian(x, y), count - transform.domain.event_dim)
            y = x
        return total + _sum_rightmost(self.base_dist.log_prob(y), count - len(self.base_dist.event_shape))

    def _reversed_if_decreasing(self, share: Tensor) -> Tensor:
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return share if isinstance(sign, int) and sign == 1 else sign * (share - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """Return the cumulative probability, for monotonic transforms."""
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self.base_dist._validate_args:
            self.base_dist._validate_sample(value)
        return self._reversed_if_decreasing(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """Return the inverse of ``cdf``, for monotonic transforms."""
        return self._forward(self.base_dist.icdf(self._reversed_if_decreasing(value)))


class LogNormal(TransformedDistribution):
    """The distribution of exp(x), where x is normal.

    Args:
        loc, scale: mean and standard deviation of x.
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Any:
        """Return the mean of the logarithm."""
        return self.base_dist.loc  # type: ignore[attr-defined]

    @property
    def scale(self) -> Any:
        """Return the standard deviation of the logarithm."""
        return self.base_dist.scale  # type: ignore[attr-defined]

    @property
    def mean(self) -> Tensor:
        """Return exp(loc + scale² / 2)."""
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        """Return exp(loc − scale²)."""
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        """Return (exp(scale²) − 1) · exp(2 loc + scale²)."""
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """The distribution of n + 1 proportions that a stick-breaking transform makes of n normal variables.

    Args:
        loc, scale: means and standard deviations of the normal variables.
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        super().__init__(base if base.batch_shape else base.expand((1,)), StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Any:
        """Return the means of the normal variables."""
        return self.base_dist.base_dist.loc  # type: ignore[attr-defined]

    @property
    def scale(self) -> Any:
        """Return the standard deviations of the normal variables."""
        return self.base_dist.base_dist.scale  # type: ignore[attr-defined]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution on (0, 1), whose cdf is 1 − (1 − x^a)^b.

    Args:
        concentration1, concentration0: a and b.
    """

    arg_constraints: ClassVar = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        a, b = self.concentration1, self.concentration0
        base = Uniform(creation.zeros_like(b), creation.ones_like(b), validate_args)
        inverse_cdf = [PowerTransform(b.reciprocal()), AffineTransform(1.0, -1.0), PowerTransform(a.reciprocal())]
        super().__init__(base, inverse_cdf, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._copy(batch_shape, _instance)
        a, b = (x.expand(batch_shape) for x in (self.concentration1, self.concentration0))
        Kumaraswamy.__init__(new, a, b, False)
        new._validate_args = self._validate_args
        return new

    def _moment(self, n: int) -> Tensor:
        first = 1 + n / self.concentration1
        b = self.concentration0
        return b * (first.lgamma() + b.lgamma() - (first + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        """Return the expectation."""
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """Return the maximum of the density; nan where a parameter is below 1."""
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1)
        return where(inside, ((a - 1) / where(inside, a * b - 1, 1.0)).pow(a.reciprocal()), math.nan)

    @property
    def variance(self) -> Tensor:
        """Return the variance."""
        return self._moment(2) - self._moment(1).pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * ((b + 1).digamma() + np.euler_gamma) - a.log() - b.log()
