"""Log densities and their derivatives compared with torch.distributions, and samples with its implicit gradients."""

import numpy as np
import pytest

import chainrule as cr
from chainrule import stats

gamma_quantile_by_a = pytest.importorskip("chainrule._src.ops.incomplete").gamma_quantile_by_a
torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

X = np.array([0.3, 0.8])
#: chainrule's and PyTorch's function of the point and the parameters, and the parameters
PAIRS = {
    "norm": (stats.norm.logpdf, lambda x, m, s: torch.distributions.Normal(m, s).log_prob(x), (0.2, 1.3)),
    "laplace": (stats.laplace.logpdf, lambda x, m, s: torch.distributions.Laplace(m, s).log_prob(x), (0.2, 1.3)),
    "cauchy": (stats.cauchy.logpdf, lambda x, m, s: torch.distributions.Cauchy(m, s).log_prob(x), (0.2, 1.3)),
    "gumbel_r": (stats.gumbel_r.logpdf, lambda x, m, s: torch.distributions.Gumbel(m, s).log_prob(x), (0.2, 1.3)),
    "t": (stats.t.logpdf, lambda x, v, m, s: torch.distributions.StudentT(v, m, s).log_prob(x), (3.3, 0.2, 1.3)),
    "beta": (stats.beta.logpdf, lambda x, a, b: torch.distributions.Beta(a, b).log_prob(x), (2.5, 0.7)),
    "gamma": (
        lambda x, a, r: stats.gamma.logpdf(x, a, scale=1 / r),
        lambda x, a, r: torch.distributions.Gamma(a, r).log_prob(x),
        (2.5, 0.7),
    ),
    "chi2": (stats.chi2.logpdf, lambda x, v: torch.distributions.Chi2(v).log_prob(x), (2.5,)),
    "expon": (
        lambda x, r: stats.expon.logpdf(x, scale=1 / r),
        lambda x, r: torch.distributions.Exponential(r).log_prob(x),
        (2.5,),
    ),
    "f": (stats.f.logpdf, lambda x, n, d: torch.distributions.FisherSnedecor(n, d).log_prob(x), (2.5, 4.7)),
    "lognorm": (
        lambda x, m, s: stats.lognorm.logpdf(x, s, scale=np.exp(m)),
        lambda x, m, s: torch.distributions.LogNormal(m, s).log_prob(x),
        (0.2, 1.3),
    ),
    "weibull_min": (
        lambda x, s, c: stats.weibull_min.logpdf(x, c, scale=s),
        lambda x, s, c: torch.distributions.Weibull(s, c).log_prob(x),
        (1.3, 1.7),
    ),
    "pareto": (
        lambda x, s, b: stats.pareto.logpdf(x, b, scale=s),
        lambda x, s, b: torch.distributions.Pareto(s, b).log_prob(x),
        (0.2, 1.7),
    ),
    "halfnorm": (
        lambda x, s: stats.halfnorm.logpdf(x, scale=s),
        lambda x, s: torch.distributions.HalfNormal(s).log_prob(x),
        (1.3,),
    ),
    "vonmises": (
        lambda x, m, k: stats.vonmises.logpdf(x, k, m),
        lambda x, m, k: torch.distributions.VonMises(m, k).log_prob(x),
        (0.2, 1.7),
    ),
    "invgamma": (
        lambda x, a, s: stats.invgamma.logpdf(x, a, scale=s),
        lambda x, a, s: torch.distributions.InverseGamma(a, s).log_prob(x),
        (2.2, 1.7),
    ),
    "norm.cdf": (stats.norm.cdf, lambda x, m, s: torch.distributions.Normal(m, s).cdf(x), (0.2, 1.3)),
    "laplace.cdf": (stats.laplace.cdf, lambda x, m, s: torch.distributions.Laplace(m, s).cdf(x), (0.2, 1.3)),
    "norm.ppf": (stats.norm.ppf, lambda x, m, s: torch.distributions.Normal(m, s).icdf(x), (0.2, 1.3)),
    "cauchy.ppf": (stats.cauchy.ppf, lambda x, m, s: torch.distributions.Cauchy(m, s).icdf(x), (0.2, 1.3)),
}
COUNTS = {
    "poisson": (stats.poisson.logpmf, lambda k, r: torch.distributions.Poisson(r).log_prob(k), (2.5,)),
    "bernoulli": (stats.bernoulli.logpmf, lambda k, p: torch.distributions.Bernoulli(p).log_prob(k), (0.3,)),
    "binom": (
        lambda k, p: stats.binom.logpmf(k, 5, p),
        lambda k, p: torch.distributions.Binomial(5, p).log_prob(k),
        (0.3,),
    ),
    "geom": (
        lambda k, p: stats.geom.logpmf(k + 1, p),
        lambda k, p: torch.distributions.Geometric(p).log_prob(k),
        (0.3,),
    ),
    "nbinom": (
        lambda k, n, p: stats.nbinom.logpmf(k, n, 1 - p),
        lambda k, n, p: torch.distributions.NegativeBinomial(n, p).log_prob(k),
        (2.3, 0.3),
    ),
}


def results(library, function, arrays):
    """Return a function's value, and its derivatives with respect to the differentiable arguments."""
    given = [library.tensor(x, dtype=library.float64, requires_grad=True) for x in arrays]
    y = function(*given)
    y.sum().backward()
    return [
        y.detach().numpy(),
        *(np.zeros_like(x) if t.grad is None else t.grad.numpy() for t, x in zip(given, arrays)),
    ]


@pytest.mark.parametrize("name", [*PAIRS, *COUNTS])
def test_values_and_gradients(name):
    ours, theirs, parameters = (PAIRS | COUNTS)[name]
    arrays = [X if name in PAIRS else np.array([0.0, 1.0]), *(np.array(p) for p in parameters)]
    pairs = list(zip(results(cr, ours, arrays), results(torch, theirs, arrays), strict=True))
    if name in COUNTS:
        del pairs[1]  # a count has no derivative here
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_vectors():
    rng = np.random.default_rng(0)
    root, mean, x = rng.standard_normal((3, 3)), rng.standard_normal(3), rng.standard_normal((4, 3))
    ours = results(cr, stats.multivariate_normal.logpdf, [x, mean, root @ root.T + np.eye(3)])
    theirs = results(
        torch,
        lambda x, m, c: torch.distributions.MultivariateNormal(m, c).log_prob(x),
        [x, mean, root @ root.T + np.eye(3)],
    )
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    shares, alpha = np.array([0.2, 0.3, 0.5]), np.array([1.5, 0.7, 3.0])
    ours = results(cr, lambda a: stats.dirichlet.logpdf(shares, a), [alpha])
    theirs = results(torch, lambda a: torch.distributions.Dirichlet(a).log_prob(torch.tensor(shares)), [alpha])
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9)


def test_implicit_derivatives_of_samples():
    """PyTorch's are approximations with four digits."""
    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(-3, 5, 2000))
    x = np.maximum(rng.standard_gamma(a), 1e-30)
    theirs = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(x)).numpy()
    np.testing.assert_allclose(gamma_quantile_by_a(a, x), theirs, rtol=2e-3)
