"""The multivariate normal distribution whose covariance is a matrix of low rank plus a diagonal.

``chainrule.distributions`` exports ``LowRankMultivariateNormal``.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from chainrule import linalg
from chainrule._src.messages import errors
from chainrule._src.ops import creation, random
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import lazy_property


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution with covariance W Wᵀ + diag(d).

    Solving costs n·r², by the matrix inversion lemma and the matrix determinant lemma.

    Args:
        loc: the mean ``(batch..., n)``.
        cov_factor: W, ``(batch..., n, r)``.
        cov_diag: d, ``(batch..., n)``.
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise errors.scalar_loc()
        n = loc.shape[-1]
        if cov_factor.dim() < 2 or cov_factor.shape[-2] != n:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {n} x m, not {tuple(cov_factor.shape)}"
            )
        if cov_diag.shape[-1:] != (n,):
            raise ValueError(f"cov_diag must be a batch of vectors with shape {(n,)}, not {tuple(cov_diag.shape)}")
        batch = np.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand((*batch, n)), cov_diag.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        super().__init__(batch, (n,), validate_args)

    @property
    def _scaled_factor(self) -> Tensor:
        """Return diag(d)⁻¹ W."""
        return self.cov_factor / self.cov_diag.unsqueeze(-1)

    @property
    def _capacitance_tril(self) -> Tensor:
        """Return the Cholesky factor of I + Wᵀ diag(d)⁻¹ W."""
        inner = self.cov_factor.mT @ self._scaled_factor
        return linalg.cholesky(inner + creation.eye(inner.shape[-1], dtype=inner.dtype))

    @property
    def mean(self) -> Tensor:
        """Return the expectation."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """Return the diagonal of the covariance."""
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Return the covariance."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @lazy_property
    def scale_tril(self) -> Any:
        """Return the lower Cholesky factor of the covariance."""
        return linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Any:
        """Return the inverse of the covariance."""
        half = linalg.solve_triangular(self._capacitance_tril, self._scaled_factor.mT, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - half.mT @ half

    def rsample(self, sample_shape: object = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        common = random.randn_like(self.loc.new_zeros((*shape[:-1], self.cov_factor.shape[-1])))
        own = random.randn_like(self.loc.expand(shape))
        return self.loc + (self.cov_factor @ common.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * own

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        deviation = (value - self.loc).unsqueeze(-1)
        inner = linalg.solve_triangular(self._capacitance_tril, self._scaled_factor.mT @ deviation, upper=False)
        distance = (deviation.squeeze(-1).pow(2) / self.cov_diag).sum(-1) - inner.pow(2).sum((-2, -1))
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def _half_log_det(self) -> Tensor:
        return self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + 0.5 * self.cov_diag.log().sum(-1)

    def entropy(self) -> Tensor:
        return 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            vars(new).pop(name, None)  # computed again at the batch shape
        return new
