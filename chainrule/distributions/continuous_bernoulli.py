"""The continuous Bernoulli distribution. ``chainrule.distributions`` exports ``ContinuousBernoulli``."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from chainrule._src.ops.elementwise import where
from chainrule._src.ops.shaping import broadcast_tensors
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.probs_or_logits import ProbsOrLogits
from chainrule.distributions.utils import clamp_probs, uniform_like
from chainrule.nn import functional as F


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """The distribution on [0, 1] with a density proportional to p^x (1 − p)^(1 − x) (Loaiza-Ganem and Cunningham, 2019).

    Args:
        probs: p, in (0, 1); or
        logits: log(p / (1 − p)).
        lims: the interval about 0.5 in which Taylor series replace formulas that are 0/0 at 0.5.
    """

    has_enumerate_support = False
    has_rsample = True
    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._lims = lims
        super().__init__(probs, logits, 0, validate_args)

    def _normalize(self, given: Tensor) -> Tensor:
        return clamp_probs(given) if self._name == "probs" else given

    def _choose(self, formula: Any, series: Any) -> Tensor:
        """Return a formula of p, or a series of p − 0.5 near 0."""
        p = self.probs
        far = (p <= self._lims[0]) | (p > self._lims[1])
        return where(far, formula(where(far, p, self._lims[0])), series(where(far, 0.0, p - 0.5)))

    def _log_norm(self) -> Tensor:
        """Return the logarithm of the normalizing factor of the density."""
        return self._choose(
            lambda p: ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log(),
            lambda x: math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x**2) * x**2,
        )

    @property
    def mean(self) -> Tensor:
        """Return the expectation."""
        return self._choose(
            lambda p: p / (2 * p - 1) + 1 / ((-p).log1p() - p.log()),
            lambda x: 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x,
        )

    @property
    def variance(self) -> Tensor:
        """Return the variance."""
        return self._choose(
            lambda p: p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2,
            lambda x: 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x**2) * x**2,
        )

    def rsample(self, sample_shape: object = ()) -> Tensor:
        return self.icdf(uniform_like(self.probs, self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_tensors(self.logits, value)
        return self._log_norm() - F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = self._choose(
            lambda p: (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1), lambda x: value + 0 * x
        )
        return where(value <= 0, 0.0, where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        return self._choose(
            lambda p: ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p()),
            lambda x: value + 0 * x,
        )

    def entropy(self) -> Tensor:
        below, above = (-self.probs).log1p(), self.probs.log()
        return self.mean * (below - above) - self._log_norm() - below
