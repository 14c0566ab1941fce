"""The base class of exponential families. ``chainrule.distributions`` exports ``ExponentialFamily``."""

from __future__ import annotations

from typing import Any

from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.backward import grad
from chainrule.distributions.distribution import Distribution


class ExponentialFamily(Distribution):
    """The base of distributions with a density exp(θ · t(x) − F(θ) + k(x)).

    A subclass defines the natural parameters θ (``_natural_params``), the log normalizer F (``_log_normalizer``) and the
    expectation of k (``_mean_carrier_measure``), unless it implements ``entropy``.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} has no _natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _mean_carrier_measure")

    def entropy(self) -> Tensor:
        """Return F(θ) − θ · ∇F(θ) − E k(x) (Nielsen and Nock 2010)."""
        given = self._natural_params
        params = [p if p.requires_grad else p.detach().requires_grad_() for p in given]
        normalizer = self._log_normalizer(*params)
        entropy = normalizer - self._mean_carrier_measure
        for p, g in zip(params, grad(normalizer.sum(), params, create_graph=True), strict=True):
            entropy = entropy - (p * g).reshape((*self.batch_shape, -1)).sum(-1)
        return entropy if any(p.requires_grad for p in given) else entropy.detach()
