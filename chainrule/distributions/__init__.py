"""Probability distributions with differentiable parameters, sampling and divergences, as in ``torch.distributions``.

``chainrule.stats`` has more distributions, with SciPy's names.

>>> import chainrule as torch
>>> policy = torch.distributions.Categorical(logits=torch.tensor([0.0, 0.0]))
>>> policy.log_prob(torch.tensor(1))
tensor(-0.6931)
"""

from chainrule._src.api.public_modules import show
from chainrule.distributions import constraints
from chainrule.distributions.bernoulli import Bernoulli
from chainrule.distributions.categorical import Categorical
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.exponential import Exponential
from chainrule.distributions.independent import Independent
from chainrule.distributions.kl import kl_divergence, register_kl
from chainrule.distributions.laplace import Laplace
from chainrule.distributions.multivariate_normal import MultivariateNormal
from chainrule.distributions.normal import Normal
from chainrule.distributions.poisson import Poisson
from chainrule.distributions.uniform import Uniform

__all__ = [
    "Bernoulli", "Categorical", "Distribution", "Exponential", "Independent", "Laplace", "MultivariateNormal", "Normal",
    "Poisson", "Uniform", "constraints", "kl_divergence", "register_kl",
]  # fmt: skip

show(globals())
