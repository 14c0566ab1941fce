"""SciPy's distributions with derivatives, under SciPy's names: by the point, by loc and scale, and by the shape parameters.

>>> import numpy as np
>>> import chainrule as cr
>>> from chainrule import stats
>>> x = np.array([0.5, 1.0, 4.0])
>>> float(stats.gamma.logpdf(x, 2.0, scale=3.0).sum())
-7.7318...
>>> float(cr.grad(lambda a: stats.gamma.logpdf(x, a, scale=3.0).sum())(2.0))
-3.8710...
"""

from chainrule.stats import continuous, discrete, multivariate

beta = continuous.beta()
cauchy = continuous.cauchy()
chi2 = continuous.chi2()
expon = continuous.expon()
f = continuous.f()
gamma = continuous.gamma()
gumbel_r = continuous.gumbel_r()
halfnorm = continuous.halfnorm()
invgamma = continuous.invgamma()
laplace = continuous.laplace()
logistic = continuous.logistic()
lognorm = continuous.lognorm()
norm = continuous.norm()
pareto = continuous.pareto()
skewnorm = continuous.skewnorm()
t = continuous.t()
truncnorm = continuous.truncnorm()
uniform = continuous.uniform()
vonmises = continuous.vonmises()
weibull_min = continuous.weibull_min()

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
    "bernoulli", "beta", "binom", "cauchy", "chi2", "dirichlet", "expon", "f", "gamma", "geom", "gumbel_r", "halfnorm",
    "invgamma", "laplace", "logistic", "lognorm", "multinomial", "multivariate_normal", "multivariate_t", "nbinom", "norm",
    "pareto", "poisson", "skewnorm", "t", "truncnorm", "uniform", "vonmises", "weibull_min", "wishart",
]  # fmt: skip
