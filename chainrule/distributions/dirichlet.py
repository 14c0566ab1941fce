"""The Dirichlet distribution, and the LKJ distribution of correlation matrices.

``chainrule.distributions`` exports ``Dirichlet`` and ``LKJCholesky``.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from chainrule import linalg
from chainrule._src.api.grad_mode import no_grad
from chainrule._src.ops import creation, joining, random
from chainrule._src.ops.elementwise import where
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.from_stats import Beta, drawn_numbers
from chainrule.distributions.kl import kl_divergence, register_kl
from chainrule.distributions.utils import broadcast_all, uniform_like
from chainrule.nn import functional as F
from chainrule.stats.base import sc


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution of vectors of proportions.

    Args:
        concentration: the exponents of the proportions, plus 1: ``(batch..., n)``.

    >>> import chainrule as torch
    >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    def rsample(self, sample_shape: object = ()) -> Tensor:
        """Draw gamma variables divided by their sum, with derivatives in the concentrations.

        A gamma variable of shape a is one of shape a + 1 times u^(1/a), for a uniform u. Its logarithm does not underflow.
        """
        shape = self._extended_shape(sample_shape)
        a = self.concentration.expand(shape) + 1
        drawn = drawn_numbers("Dirichlet.rsample", lambda rng, a: rng.standard_gamma(a), a)
        logs = sc.gamma_sample(a, drawn).log() + uniform_like(a, shape).log() / self.concentration
        return logs.softmax(-1).clamp(min=_tiny(a))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        return (a - 1).xlogy(value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    @property
    def mean(self) -> Tensor:
        """Return the concentrations divided by their sum."""
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        """Return the maximum of the density; a one-hot vector where all concentrations are below 1."""
        above = (self.concentration - 1).clamp(min=0.0)
        corner = (self.concentration < 1).all(-1, keepdim=True)
        total = where(corner, 1.0, above.sum(-1, keepdim=True))
        first = F.one_hot(creation.zeros_like(corner[..., 0], dtype="int64"), above.shape[-1]).to(above.dtype)
        return where(corner, first, above / total)

    @property
    def variance(self) -> Tensor:
        """Return the variance of each proportion."""
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        a, n = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        inside = (n - total) * total.digamma() + ((a - 1.0) * a.digamma()).sum(-1)
        return a.lgamma().sum(-1) - total.lgamma() - inside


class LKJCholesky(Distribution):
    """The distribution of lower Cholesky factors of correlation matrices with a density det(C)^(η − 1).

    Samples come from the onion method (Lewandowski, Kurowicka and Joe 2009).

    Args:
        dim: the number of rows.
        concentration: η; for 1 correlation matrices are uniform.
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: object = ()) -> Tensor:
        eta, n = self.concentration, self.dim
        with no_grad():
            rows = creation.arange(1, n, dtype=eta.dtype)
            # the squared length of each row left of the diagonal, and its direction
            radii = Beta(rows / 2, (eta + 0.5 * (n - 1)).unsqueeze(-1) - rows / 2).sample(sample_shape)
            radii = joining.cat([radii.new_zeros((*radii.shape[:-1], 1)), radii], -1).unsqueeze(-1)
            directions = random.randn_like(eta.new_zeros(self._extended_shape(sample_shape))).tril(-1)
            lengths = linalg.vector_norm(directions, dim=-1, keepdim=True).clamp(min=_tiny(eta))
            left = radii.sqrt() * directions / lengths
            return left + (1 - left.square().sum(-1)).clamp(min=_tiny(eta)).sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        eta, n = self.concentration, self.dim
        powers = 2 * (eta - 1).unsqueeze(-1) + n - creation.arange(2, n + 1, dtype=eta.dtype)
        density = (powers * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        alpha = eta + 0.5 * (n - 1)
        pi = 0.5 * (n - 1) * math.log(math.pi)
        return density - pi - (alpha - 0.5).mvlgamma(n - 1) + alpha.lgamma() * (n - 1)


def _tiny(x: Tensor) -> float:
    return float(np.finfo(x.dtype.dtype).tiny)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlets(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    difference = ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1)) - a.lgamma() + b.lgamma()).sum(-1)
    return total.lgamma() - b.sum(-1).lgamma() + difference


@register_kl(Beta, Beta)
def _kl_betas(p: Beta, q: Beta) -> Tensor:
    pairs = (Dirichlet(joining.stack([d.concentration1, d.concentration0], -1), validate_args=False) for d in (p, q))
    return kl_divergence(*pairs)
