"""The Wishart distribution. ``chainrule.distributions`` exports ``Wishart``."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from chainrule import linalg
from chainrule._src.ops import creation, random
from chainrule._src.ops.elementwise import where
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.from_stats import Chi2
from chainrule.distributions.multivariate_normal import MultivariateNormal


class Wishart(ExponentialFamily):
    """The Wishart distribution: of the sum of x xᵀ over ``df`` normal vectors x with mean 0.

    Args:
        df: the degrees of freedom, a number or tensor greater than n − 1.
        covariance_matrix: the covariance of x ``(batch..., n, n)``; or
        precision_matrix: its inverse; or
        scale_tril: its lower Cholesky factor.
    """

    arg_constraints: ClassVar = {
        "df": constraints.greater_than(0),
        **{name: c for name, c in MultivariateNormal.arg_constraints.items() if name != "loc"},
    }
    support = constraints.positive_definite
    has_rsample = True
    scale_tril = MultivariateNormal.scale_tril
    covariance_matrix = MultivariateNormal.covariance_matrix
    precision_matrix = MultivariateNormal.precision_matrix

    def __init__(
        self, df: Any, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        matrices = [x for x in (covariance_matrix, precision_matrix, scale_tril) if x is not None]
        if len(matrices) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        matrix = matrices[0]
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        n, batch = matrix.shape[-1], np.broadcast_shapes(matrix.shape[:-2], getattr(df, "shape", ()))
        self.df = creation.as_tensor(df, dtype=matrix.dtype).expand(batch)
        if bool((self.df <= n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        normal = MultivariateNormal(
            matrix.new_zeros(n), covariance_matrix, precision_matrix, scale_tril, validate_args=validate_args
        )
        self._unbroadcasted_scale_tril = normal._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
            if name in vars(normal):
                vars(self)[name] = vars(normal)[name].expand((*batch, n, n))
        super().__init__(batch, (n, n), validate_args)

    def _full(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape))

    @property
    def _degrees(self) -> Tensor:
        """Return df as matrices of one element."""
        return self.df.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        """Return df times the covariance."""
        return self._degrees * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """Return (df − n − 1) times the covariance; nan where this is not positive."""
        factor = self._degrees - self._event_shape[0] - 1
        return where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """Return the variance of each element."""
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self._degrees * (covariance.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: object = ()) -> Tensor:
        """Draw matrices by Bartlett's decomposition."""
        n = self._event_shape[0]
        below = random.randn_like(self._degrees.new_zeros(self._extended_shape(sample_shape))).tril(-1)
        degrees = self.df.unsqueeze(-1) - creation.arange(n, dtype=self.df.dtype)
        diagonal = Chi2(degrees, validate_args=False).rsample(sample_shape).sqrt()
        factor = self._unbroadcasted_scale_tril @ (below + diagonal.diag_embed())
        return factor @ factor.mT

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def _log_norm(self) -> Tensor:
        n = self._event_shape[0]
        return self.df * (0.5 * n * math.log(2) + self._half_log_det()) + (self.df / 2).mvlgamma(n)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, factor = self._event_shape[0], self._unbroadcasted_scale_tril
        half = linalg.solve_triangular(factor, linalg.cholesky(value), upper=False)
        log_det = linalg.slogdet(value)[1]
        return (self.df - n - 1) / 2 * log_det - half.pow(2).sum((-2, -1)) / 2 - self._log_norm()

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        degrees = self.df.unsqueeze(-1) - creation.arange(n, dtype=self.df.dtype)
        log_det = (degrees / 2).digamma().sum(-1) + n * math.log(2) + 2 * self._half_log_det()
        return self._log_norm() - (self.df - n - 1) / 2 * log_det + self.df * n / 2
