"""Kullback–Leibler divergences between distributions.

``chainrule.distributions`` exports ``kl_divergence`` and ``register_kl``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from chainrule import linalg
from chainrule._src.ops.elementwise import where
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions.bernoulli import Bernoulli
from chainrule.distributions.categorical import Categorical
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.exponential import Exponential
from chainrule.distributions.independent import Independent
from chainrule.distributions.laplace import Laplace
from chainrule.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from chainrule.distributions.multivariate_normal import MultivariateNormal
from chainrule.distributions.normal import Normal
from chainrule.distributions.one_hot_categorical import OneHotCategorical
from chainrule.distributions.poisson import Poisson
from chainrule.distributions.transformed_distribution import TransformedDistribution
from chainrule.distributions.uniform import Uniform
from chainrule.distributions.utils import _sum_rightmost

KLFormula = Callable[[Any, Any], Tensor]
_FORMULAS: dict[tuple[type, type], KLFormula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[KLFormula], KLFormula]:
    """Decorate a formula ``f(p, q)`` for two classes of distributions and their subclasses.

    Raises:
        TypeError: an argument is not a class. (As in PyTorch, it need not be a subclass of Distribution.)
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):
            raise TypeError(f"Expected type_p and type_q to be Distribution subclasses but got {kind}")

    def register(formula: KLFormula) -> KLFormula:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the expectation of ``p.log_prob(x) - q.log_prob(x)`` for x from p, for each pair of the batches.

    Raises:
        NotImplementedError: there is no formula for these classes.

    >>> import chainrule as torch
    >>> D = torch.distributions
    >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in _FORMULAS:
                return _FORMULAS[a, b](p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}: register one with "
        "register_kl, or estimate it by the mean of p.log_prob(x) - q.log_prob(x) over x = p.sample((n,))"
    )


@register_kl(Normal, Normal)
def _normals(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _laplaces(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Uniform, Uniform)
def _uniforms(p: Uniform, q: Uniform) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, found)


@register_kl(Exponential, Exponential)
def _exponentials(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Poisson, Poisson)
def _poissons(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p: Bernoulli, q: Bernoulli) -> Tensor:
    one = where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, p.probs.xlogy(p.probs / q.probs)))
    rest, others = 1 - p.probs, 1 - q.probs
    return one + where(rest == 0, 0.0, where(others == 0, math.inf, rest.xlogy(rest / others)))


@register_kl(Categorical, Categorical)
def _categoricals(p: Categorical, q: Categorical) -> Tensor:
    terms = where(q.probs == 0, math.inf, p.probs * (p.logits - q.logits))
    return where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(MultivariateNormal, MultivariateNormal)
def _vectors(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between vectors of different lengths: {p.event_shape} and {q.event_shape}")
    factor = q._unbroadcasted_scale_tril
    spread = linalg.solve_triangular(factor, p._unbroadcasted_scale_tril, upper=False).pow(2).sum((-2, -1))
    distance = linalg.solve_triangular(factor, (q.loc - p.loc).unsqueeze(-1), upper=False).pow(2).sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (spread + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _vectors_of_low_rank(p: Any, q: Any) -> Tensor:
    return _vectors(*(MultivariateNormal(d.loc, scale_tril=d.scale_tril, validate_args=False) for d in (p, q)))


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_vectors(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categoricals(p._categorical, q._categorical)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "KL-divergence of transformed distributions with different transforms or event shapes"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), len(p.event_shape) - len(p.base_dist.event_shape))


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL-divergence of Independents with different numbers of axes in an event")
    return p._sum_event_axes(kl_divergence(p.base_dist, q.base_dist))
