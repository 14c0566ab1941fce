"""Differentiable distributions with the names of ``scipy.stats``.

Methods are differentiable with respect to the point, loc, scale and the shape parameters.

>>> import numpy as np
>>> import chainrule as cr
>>> from chainrule import stats
>>> x = np.array([0.5, 1.0, 4.0])
>>> float(stats.gamma.logpdf(x, 2.0, scale=3.0).sum())
-7.7318...
>>> float(cr.grad(lambda a: stats.gamma.logpdf(x, a, scale=3.0).sum())(2.0))
-3.8710...
"""

from importlib.util import find_spec as _find

from chainrule._src.api.public_modules import show
from chainrule._src.messages import errors as _errors

if _find("scipy") is None:
    raise _errors.needs_scipy("chainrule.stats")

from chainrule.stats import discrete, interval, line, multivariate, positive

beta = interval.beta()
cauchy = line.cauchy()
chi2 = positive.chi2()
expon = positive.expon()
f = positive.f()
gamma = positive.gamma()
gumbel_r = line.gumbel_r()
halfcauchy = positive.halfcauchy()
halfnorm = positive.halfnorm()
halft = positive.halft()
invgamma = positive.invgamma()
laplace = line.laplace()
logistic = line.logistic()
lognorm = positive.lognorm()
norm = line.norm()
pareto = positive.pareto()
skewnorm = line.skewnorm()
t = line.t()
truncnorm = interval.truncnorm()
uniform = interval.uniform()
vonmises = line.vonmises()
weibull_min = positive.weibull_min()

bernoulli = discrete.bernoulli()
binom = discrete.binom()
geom = discrete.geom()
nbinom = discrete.nbinom()
poisson = discrete.poisson()

dirichlet = multivariate.dirichlet()
multinomial = multivariate.multinomial()
multivariate_normal = multivariate.multivariate_normal()
multivariate_t = multivariate.multivariate_t()
wishart = multivariate.wishart()

__all__ = [
    "bernoulli", "beta", "binom", "cauchy", "chi2", "dirichlet", "expon", "f", "gamma", "geom", "gumbel_r",
    "halfcauchy", "halfnorm", "halft", "invgamma", "laplace", "logistic", "lognorm", "multinomial", "multivariate_normal",
    "multivariate_t", "nbinom", "norm",
    "pareto", "poisson", "skewnorm", "t", "truncnorm", "uniform", "vonmises", "weibull_min", "wishart",
]  # fmt: skip

show(globals())
