"""SciPy's distributions with derivatives, under SciPy's names: by the point, by loc and scale, and by the shape parameters."""

from chainrule.stats import continuous, discrete, multivariate

norm, t, laplace, logistic = continuous.norm(), continuous.t(), continuous.laplace(), continuous.logistic()
cauchy, gumbel_r, uniform, beta = continuous.cauchy(), continuous.gumbel_r(), continuous.uniform(), continuous.beta()
gamma, chi2, invgamma, expon = continuous.gamma(), continuous.chi2(), continuous.invgamma(), continuous.expon()
weibull_min, lognorm, halfnorm = continuous.weibull_min(), continuous.lognorm(), continuous.halfnorm()
pareto, f = continuous.pareto(), continuous.f()
poisson, bernoulli = discrete.poisson(), discrete.bernoulli()
multivariate_normal, multivariate_t = multivariate.multivariate_normal(), multivariate.multivariate_t()
dirichlet, multinomial, wishart = multivariate.dirichlet(), multivariate.multinomial(), multivariate.wishart()
