"""Probability distributions with differentiable parameters, sampling and divergences, as in ``torch.distributions``.

``chainrule.stats`` has more distributions, with SciPy's names; most of the formulas here are theirs, so distributions
with special functions need SciPy.

>>> import chainrule as torch
>>> policy = torch.distributions.Categorical(logits=torch.tensor([0.0, 0.0]))
>>> policy.log_prob(torch.tensor(1))
tensor(-0.6931)
"""

from importlib.util import find_spec as _find

from chainrule._src.api.public_modules import show
from chainrule.distributions import constraints, transforms, utils
from chainrule.distributions.bernoulli import Bernoulli
from chainrule.distributions.categorical import Categorical
from chainrule.distributions.constraint_registry import biject_to, transform_to
from chainrule.distributions.continuous_bernoulli import ContinuousBernoulli
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.exponential import Exponential
from chainrule.distributions.independent import Independent
from chainrule.distributions.kl import kl_divergence, register_kl
from chainrule.distributions.laplace import Laplace
from chainrule.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from chainrule.distributions.mixture_same_family import MixtureSameFamily
from chainrule.distributions.multivariate_normal import MultivariateNormal
from chainrule.distributions.normal import Normal
from chainrule.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from chainrule.distributions.poisson import Poisson
from chainrule.distributions.transformed_distribution import (
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    TransformedDistribution,
)
from chainrule.distributions.transforms import *  # noqa: F403
from chainrule.distributions.uniform import Uniform

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet",
    "Distribution", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal",
    "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal",
    "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart",
    "biject_to", "constraints", "kl_divergence", "register_kl", "transform_to", "transforms", "utils",
]  # fmt: skip
__all__ += transforms.__all__

if _find("scipy") is not None:
    from chainrule.distributions.counts import Binomial, Geometric, Multinomial, NegativeBinomial
    from chainrule.distributions.dirichlet import Dirichlet, LKJCholesky
    from chainrule.distributions.from_stats import (
        Beta,
        Cauchy,
        Chi2,
        FisherSnedecor,
        Gamma,
        Gumbel,
        HalfCauchy,
        HalfNormal,
        InverseGamma,
        Pareto,
        StudentT,
        VonMises,
        Weibull,
    )
    from chainrule.distributions.wishart import Wishart

# without SciPy, these names raise at first use
show(globals(), {name: f"{__name__}.from_stats" for name in __all__ if name not in globals()})
