"""``torch.distributions``: values equal SciPy's, gradients equal differences, draws have the moments of the formulas."""

import math

import pytest
from scipy import stats

from behaviour import OURS, differs, torch

D = torch.distributions
COVARIANCE = [[2.0, 0.5], [0.5, 1.0]]


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


def matrix(rows=COVARIANCE):
    return torch.tensor(rows, dtype=torch.float64)


#: a distribution, SciPy's equivalent, and sample values
CONTINUOUS = [
    (lambda: D.Normal(t(0.0, 1.0), 1.5), stats.norm([0, 1], 1.5), [0.3, -1.2]),
    (lambda: D.Laplace(t(0.0, 1.0), 0.5), stats.laplace([0, 1], 0.5), [0.3, 1.2]),
    (lambda: D.Uniform(t(0.0, -2.0), t(1.0, 2.0)), stats.uniform([0, -2], [1, 4]), [0.3, -1.2]),
    (lambda: D.Exponential(t(1.0, 2.0)), stats.expon(0, [1, 0.5]), [0.3, 1.2]),
    (lambda: D.Gamma(t(0.5, 3.0), t(2.0, 0.5)), stats.gamma([0.5, 3], scale=[0.5, 2]), [0.3, 4.0]),
    (lambda: D.Chi2(t(1.0, 3.0)), stats.chi2([1, 3]), [0.3, 4.0]),
    (lambda: D.Beta(t(0.5, 3.0), t(1.5, 2.0)), stats.beta([0.5, 3], [1.5, 2]), [0.3, 0.9]),
    (lambda: D.StudentT(t(5.0, 7.0), t(0.0, 1.0), 2.0), stats.t([5, 7], [0, 1], 2), [0.3, -2.0]),
    (lambda: D.FisherSnedecor(t(1.0, 3.0), t(9.0, 12.0)), stats.f([1, 3], [9, 12]), [0.3, 2.0]),
    (lambda: D.InverseGamma(t(5.0, 7.0), t(2.0, 0.5)), stats.invgamma([5, 7], scale=[2, 0.5]), [0.3, 0.2]),
    (lambda: D.Weibull(t(0.5, 2.0), t(1.5, 3.0)), stats.weibull_min([1.5, 3], scale=[0.5, 2]), [0.3, 2.0]),
    (lambda: D.Pareto(t(0.5, 2.0), t(5.0, 7.0)), stats.pareto([5, 7], scale=[0.5, 2]), [0.7, 2.5]),
    (lambda: D.Gumbel(t(0.0, 1.0), 2.0), stats.gumbel_r([0, 1], 2), [0.3, -2.0]),
    (lambda: D.HalfNormal(t(0.5, 2.0)), stats.halfnorm(0, [0.5, 2]), [0.3, 2.0]),
    (lambda: D.LogNormal(t(0.0, 1.0), 0.5), stats.lognorm(0.5, scale=[1, math.e]), [0.3, 2.0]),
]
#: distributions without a mean or variance
HEAVY = [
    (lambda: D.Cauchy(t(0.0, 1.0), 2.0), stats.cauchy([0, 1], 2), [0.3, -2.0]),
    (lambda: D.HalfCauchy(t(0.5, 2.0)), stats.halfcauchy(0, [0.5, 2]), [0.3, 2.0]),
]
DISCRETE = [
    (lambda: D.Poisson(t(1.5, 4.0)), stats.poisson([1.5, 4]), [0.0, 3.0]),
    (lambda: D.Bernoulli(t(0.2, 1.0)), stats.bernoulli([0.2, 1]), [0.0, 1.0]),
    (
        lambda: D.Bernoulli(logits=t(0.2, -3.0)),
        stats.bernoulli([1 / (1 + math.exp(-0.2)), 1 / (1 + math.exp(3))]),
        [0.0, 1.0],
    ),
    (lambda: D.Binomial(t(4, 3), t(0.2, 0.9)), stats.binom([4, 3], [0.2, 0.9]), [0.0, 2.0]),
    (lambda: D.NegativeBinomial(t(4, 2.5), t(0.2, 0.9)), stats.nbinom([4, 2.5], [0.8, 0.1]), [0.0, 2.0]),
    (lambda: D.Geometric(t(0.2, 1.0)), stats.geom([0.2, 1], -1), [3.0, 0.0]),
]


def close(x, expected):
    torch.testing.assert_close(
        x, torch.as_tensor(expected, dtype=torch.float64), check_dtype=False, rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize(("make", "theirs", "at"), CONTINUOUS + DISCRETE)
def test_values(make, theirs, at):
    d = make()
    close(d.log_prob(t(*at)), (theirs.logpdf if (make, theirs, at) in CONTINUOUS else theirs.logpmf)(at))
    close(d.mean, theirs.mean())
    close(d.variance, theirs.var())
    close(d.stddev, theirs.std())
    assert d.expand((3, 2)).log_prob(t(*at)).shape == (3, 2) and d.batch_shape == (2,) and d.event_shape == ()


def here(method, *args):
    """Call a method; return None for one that only chainrule has."""
    try:
        return method(*args)
    except NotImplementedError:
        if OURS:
            raise


@pytest.mark.parametrize(("make", "theirs", "at"), CONTINUOUS + HEAVY)
def test_distribution_functions(make, theirs, at):
    d = make()
    close(d.log_prob(t(*at)), theirs.logpdf(at))
    expected = [(d.cdf, (t(*at),), theirs.cdf(at)), (d.icdf, (t(0.2, 0.7),), theirs.ppf([0.2, 0.7]))]
    for method, args, value in [*expected, (d.entropy, (), theirs.entropy())]:
        found = here(method, *args)
        if found is not None:
            close(found, value)


@pytest.mark.parametrize(
    ("make", "moments"),
    [
        (lambda: D.Cauchy(t(1.0), 2.0), (math.nan, 1, math.inf)),
        (lambda: D.HalfCauchy(t(1.0)), (math.inf, 0, math.inf)),
        (lambda: D.StudentT(t(0.5, 1.5, 4.0)), ([math.nan, 0, 0], [0, 0, 0], [math.nan, math.inf, 2])),
        (lambda: D.FisherSnedecor(t(1.0, 3.0), t(2.0, 6.0)), ([math.nan, 1.5], [math.nan, 0.25], [math.nan, 5.25])),
        (lambda: D.Pareto(1.0, t(1.0, 2.0)), ([math.inf, 2], [1, 1], [math.inf, math.inf])),
        (lambda: D.InverseGamma(t(1.0, 2.0), 1.0), ([math.inf, 1], [1 / 2, 1 / 3], [math.inf, math.inf])),
        (lambda: D.Gamma(t(0.5, 3.0), 2.0), ([0.25, 1.5], [0, 1], [0.125, 0.75])),
        (lambda: D.Weibull(2.0, t(1.0, 2.0)), ([2, math.pi**0.5], [0, 2**0.5], [4, 4 - math.pi])),
        (
            lambda: D.Beta(t(2.0, 0.5, 0.5), t(3.0, 2.0, 0.5)),
            ([0.4, 0.2, 0.5], [1 / 3, 0, 1], [0.04, 0.16 / 3.5, 0.125]),
        ),
        (lambda: D.LogNormal(0.0, t(1.0)), (math.e**0.5, math.exp(-1), (math.e - 1) * math.e)),
        (lambda: D.Binomial(t(4, 1), t(0.5, 1.0)), ([2, 1], [2, 1], [1, 0])),
        (lambda: D.NegativeBinomial(t(4, 0.5), t(0.5, 0.5)), ([4, 0.5], [3, 0], [8, 1])),
        (lambda: D.VonMises(t(1.0), 1e-9), (1, 1, 1)),
        (
            lambda: D.Dirichlet(torch.stack([t(2, 3), t(0.5, 0.5)])),
            ([[0.4, 0.6], [0.5, 0.5]], [[1 / 3, 2 / 3], [1, 0]], [[0.04] * 2, [0.125] * 2]),
        ),
        (lambda: D.OneHotCategorical(t(1, 3)), ([0.25, 0.75], [0, 1], [3 / 16] * 2)),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_mean_mode_and_variance(make, moments):
    d = make()
    for found, expected in zip((d.mean, d.mode, d.variance), moments, strict=True):
        expected = torch.as_tensor(expected, dtype=torch.float64)
        torch.testing.assert_close(found.reshape(expected.shape), expected, equal_nan=True, check_dtype=False)


def families():
    return [
        *[make() for make, *_ in CONTINUOUS + DISCRETE],
        D.Categorical(torch.stack([t(1, 2, 1), t(0, 1, 3)])),
        D.Categorical(logits=torch.stack([t(1, 2, 3), t(0, 1, 1)])),
        D.MultivariateNormal(t(1.0, -1.0), matrix()),
        D.MultivariateNormal(torch.zeros(2, 2, dtype=torch.float64), precision_matrix=matrix()),
        D.MultivariateNormal(t(1.0, -1.0), scale_tril=matrix([[1, 0], [0.5, 2]])),
        D.Independent(D.Normal(t(1.0, 2.0), 1.0), 1),
        D.Dirichlet(torch.stack([t(1, 2, 1), t(0.5, 1, 3)])),
        D.LowRankMultivariateNormal(t(1.0, -1.0), matrix([[1], [0.5]]), t(0.5, 2)),
        D.Multinomial(3, torch.stack([t(1, 2, 1), t(0, 1, 3)])),
        D.OneHotCategorical(logits=t(1, 2, 3)),
        D.OneHotCategoricalStraightThrough(t(1, 2, 3)),
        D.RelaxedOneHotCategorical(t(0.7)[0], t(1, 2, 3)),
        D.RelaxedBernoulli(t(0.7)[0], t(0.2, 0.5)),
        D.VonMises(t(0.5, -1), t(2.0, 0.5)),
        D.LKJCholesky(3, t(0.5, 2.0)),
        D.ContinuousBernoulli(t(0.2, 0.5, 0.9)),
        D.Kumaraswamy(t(0.5, 2.0), t(1.5, 3.0)),
        D.LogisticNormal(t(0.0, 1.0), 0.5),
        D.Wishart(t(3.0, 6.0), matrix()),
        D.MixtureSameFamily(D.Categorical(t(1, 3)), D.Normal(t(0.0, 3.0), 1.0)),
        D.MixtureSameFamily(D.Categorical(t(1, 3)), D.MultivariateNormal(matrix([[0, 1], [3, 1]]), matrix())),
        D.TransformedDistribution(D.Normal(t(0.0, 1.0), 1.0), [D.AffineTransform(1.0, -2.0), D.SigmoidTransform()]),
    ]


#: attributes that a family does not have
WITHOUT = {
    "entropy": (
        D.Binomial,  # of several counts
        D.Poisson,
        D.NegativeBinomial,
        D.RelaxedOneHotCategorical,
        D.RelaxedBernoulli,
        D.VonMises,
        D.LKJCholesky,
        D.LogisticNormal,
        D.MixtureSameFamily,
    ),
    "mean": (
        D.Categorical,
        D.RelaxedOneHotCategorical,
        D.RelaxedBernoulli,
        D.VonMises,
        D.LKJCholesky,
        D.LogisticNormal,
    ),
}


@pytest.mark.parametrize("d", families(), ids=lambda d: type(d).__name__)
def test_draws(d):
    torch.manual_seed(0)
    drawn = d.sample((4000,))
    assert drawn.shape == (4000, *d.batch_shape, *d.event_shape) and not drawn.requires_grad
    assert d.sample((2, 3)).shape == (2, 3, *d.batch_shape, *d.event_shape)
    plain = type(d) is D.TransformedDistribution
    if isinstance(d, D.Categorical):
        assert ((drawn[..., None] == torch.arange(3)).double().mean(0) - d.probs).abs().max() < 0.03
        assert d.entropy().shape == d.batch_shape
    elif not isinstance(d, WITHOUT["mean"]) and not plain:
        scale = d.stddev.max()
        assert (drawn.mean(0) - d.mean).abs().max() < 0.08 * scale and (
            drawn.var(0) - d.variance
        ).abs().max() < 0.15 * scale**2
    assert d.log_prob(drawn).shape == (4000, *d.batch_shape)
    if not isinstance(d, WITHOUT["entropy"]) and not plain and (OURS or not isinstance(d, D.FisherSnedecor)):
        away = (-d.log_prob(drawn).mean(0) - d.entropy()).abs().max()
        assert away < 0.1
    if not d.has_rsample:
        with pytest.raises(NotImplementedError):
            d.rsample()


def test_vectors_of_normal_numbers():
    theirs = stats.multivariate_normal([1, -1], COVARIANCE)
    precise = matrix([[4 / 7, -2 / 7], [-2 / 7, 8 / 7]])
    for d in (
        D.MultivariateNormal(t(1.0, -1.0), matrix()),
        D.MultivariateNormal(t(1.0, -1.0), precision_matrix=precise),
        D.MultivariateNormal(t(1.0, -1.0), scale_tril=torch.linalg.cholesky(matrix())),
    ):
        close(d.log_prob(matrix([[0, 1], [2, 2]])), theirs.logpdf([[0, 1], [2, 2]]))
        close(d.entropy(), theirs.entropy())
        close(d.covariance_matrix, COVARIANCE)
        close(d.precision_matrix, precise)
        close(d.scale_tril @ d.scale_tril.mT, COVARIANCE)


def pairs():
    normal = D.Normal
    low_rank = D.LowRankMultivariateNormal(t(1.0, -1.0), matrix([[1], [0.5]]), t(0.5, 2))
    return [
        (D.Gamma(t(2.0), 1.5), D.Gamma(t(3.0), 2.0)),
        (D.Beta(t(2.0), 1.5), D.Beta(t(3.0), 2.0)),
        (D.Dirichlet(t(2.0, 1.5)), D.Dirichlet(t(3.0, 2.0))),
        (D.HalfNormal(t(1.0)), D.HalfNormal(t(2.0))),
        (D.Cauchy(t(0.0), 1.0), D.Cauchy(t(1.0), 2.0)),
        (D.Binomial(3, t(0.3)), D.Binomial(3, t(0.5))),
        (D.Geometric(t(0.3)), D.Geometric(t(0.5))),
        (D.OneHotCategorical(t(0.2, 0.8)), D.OneHotCategorical(t(1, 1))),
        (D.LogNormal(t(0.0), 1.0), D.LogNormal(t(1.0), 2.0)),
        (low_rank, D.LowRankMultivariateNormal(t(0.0, 0.0), matrix([[1], [1]]), t(1, 1))),
        (low_rank, D.MultivariateNormal(t(0.0, 0.0), matrix())),
        (D.MultivariateNormal(t(0.0, 0.0), matrix()), low_rank),
        (normal(t(0.0), 1.0), normal(t(1.0), 2.0)),
        (D.Laplace(t(0.0), 2.0), D.Laplace(t(1.0), 3.0)),
        (D.Uniform(t(0.0), 1.0), D.Uniform(t(-1.0), 2.0)),
        (D.Exponential(t(2.0)), D.Exponential(t(3.0))),
        (D.Poisson(t(2.0)), D.Poisson(t(3.0))),
        (D.Bernoulli(t(0.3)), D.Bernoulli(logits=t(0.5))),
        (D.Categorical(t(0.2, 0.8, 0)), D.Categorical(t(1, 1, 1))),
        (D.MultivariateNormal(t(0, 1), matrix()), D.MultivariateNormal(t(1, 1), 2 * matrix())),
        (D.Independent(normal(t(0, 1), 1.0), 1), D.Independent(normal(t(1, 1), 2.0), 1)),
    ]


@pytest.mark.parametrize(("p", "q"), pairs(), ids=lambda d: type(d).__name__)
def test_divergences_are_expectations(p, q):
    torch.manual_seed(1)
    x = p.sample((20_000,))
    estimate = (p.log_prob(x) - q.log_prob(x)).mean(0)
    assert (D.kl_divergence(p, q) - estimate).abs().max() < 0.03
    assert D.kl_divergence(p, p).abs().max() < 1e-12


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_divergences_at_the_edge():
    p, q = D.Bernoulli(t(0.0, 1.0, 0.3)), D.Bernoulli(t(0.2, 0.5, 0.0))
    close(D.kl_divergence(p, q), [-math.log(0.8), math.log(2), math.inf])
    assert D.kl_divergence(D.Uniform(0.0, 1.0), D.Uniform(0.5, 2.0)) == math.inf
    assert D.kl_divergence(D.Categorical(t(1, 1)), D.Categorical(t(1, 0))) == math.inf
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Categorical(t(1, 1)))


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: D.Normal(a, b).log_prob(t(0.3, 1.0)),
        lambda a, b: D.Normal(a, b).cdf(t(0.3, 1.0)),
        lambda a, b: D.Laplace(a, b).log_prob(t(0.3, 2.0)),
        lambda a, b: D.Uniform(a, b + 5).log_prob(t(3.0, 2.0)),
        lambda a, b: D.Exponential(b).log_prob(t(0.3, 2.0)),
        lambda a, b: D.Poisson(b).log_prob(t(0.0, 2.0)),
        lambda a, b: D.Bernoulli(logits=a).log_prob(t(0.0, 1.0)),
        lambda a, b: D.Bernoulli(a / 4).log_prob(t(0.0, 1.0)),
        lambda a, b: D.Categorical(logits=a).log_prob(torch.tensor([0, 1])),
        lambda a, b: D.Categorical(b).log_prob(torch.tensor([0, 1])),
        lambda a, b: D.Categorical(logits=a).entropy(),
        lambda a, b: D.MultivariateNormal(a, torch.diag(b) + 1).log_prob(t(0.3, 1.0)),
        lambda a, b: D.kl_divergence(D.Normal(a, b), D.Normal(0.0, 1.0)),
        lambda a, b: D.Gamma(b, a).log_prob(t(0.3, 2.0)),
        lambda a, b: D.Beta(b, a).log_prob(t(0.3, 0.9)),
        lambda a, b: D.StudentT(b, a, b).log_prob(t(0.3, 2.0)),
        lambda a, b: D.Dirichlet(b).log_prob(t(0.3, 0.7)),
        lambda a, b: D.LKJCholesky(2, b).log_prob(matrix([[1, 0], [0.6, 0.8]])),
        lambda a, b: D.VonMises(a, b).log_prob(t(0.3, 2.0)),
        lambda a, b: D.Binomial(3, a / 4).log_prob(t(0.0, 2.0)),
        lambda a, b: D.NegativeBinomial(b, a / 4).log_prob(t(0.0, 2.0)),
        lambda a, b: D.Geometric(a / 4).log_prob(t(0.0, 2.0)),
        lambda a, b: D.Multinomial(3, b).log_prob(t(1.0, 2.0)),
        lambda a, b: D.RelaxedOneHotCategorical(b[1], b).log_prob(t(0.3, 0.7)),
        lambda a, b: D.RelaxedBernoulli(b[1], a / 4).log_prob(t(0.3, 0.7)),
        lambda a, b: D.LowRankMultivariateNormal(a, b[:, None], b).log_prob(t(0.3, 0.7)),
        lambda a, b: D.LowRankMultivariateNormal(a, b[:, None], b).precision_matrix,
        lambda a, b: D.ContinuousBernoulli(logits=a).log_prob(t(0.3, 0.7)),
        lambda a, b: D.ContinuousBernoulli(a / 4).icdf(t(0.3, 0.7)),
        lambda a, b: D.Kumaraswamy(a, b).log_prob(t(0.3, 0.7)),
        lambda a, b: D.LogisticNormal(a, b).log_prob(t(0.3, 0.2, 0.5)),
        lambda a, b: D.Wishart(b + 2, torch.diag(b) + 0.5).log_prob(matrix()),
        lambda a, b: D.Wishart(b + 2, torch.diag(b) + 0.5).entropy(),
        lambda a, b: D.MixtureSameFamily(D.Categorical(b), D.Normal(a, b)).log_prob(t(0.3)[0]),
        lambda a, b: D.kl_divergence(D.Beta(a, b), D.Beta(b, a)),
        lambda a, b: D.kl_divergence(D.Gamma(a, b), D.Gamma(b, a)),
        lambda a, b: D.kl_divergence(D.MultivariateNormal(a, torch.diag(b)), D.MultivariateNormal(b, matrix())),
    ],
)
def test_gradients(f):
    a, b = t(0.5, 1.5).requires_grad_(), t(1.0, 2.0).requires_grad_()
    D.Distribution.set_default_validate_args(False)  # finite differences leave the support
    try:
        assert torch.autograd.gradcheck(f, (a, b))
    finally:
        D.Distribution.set_default_validate_args(True)


@pytest.mark.parametrize(
    "make",
    [
        lambda m, s: D.Normal(m, s),
        lambda m, s: D.Laplace(m, s),
        lambda m, s: D.Uniform(m - s, m + s),
        lambda m, s: D.Independent(D.Normal(m, s), 1),
        lambda m, s: D.MultivariateNormal(m, torch.diag(s**2)),
        lambda m, s: D.Gumbel(m, s),
        lambda m, s: D.Cauchy(m, s),
        lambda m, s: D.StudentT(3.0, m, s),
        lambda m, s: D.TransformedDistribution(D.Normal(torch.zeros_like(m), 1.0), D.AffineTransform(m, s)),
    ],
)
def test_draws_have_derivatives(make):
    """A draw is m + s times a number that does not depend on them."""
    torch.manual_seed(2)
    m, s = t(0.0, 3.0).requires_grad_(), t(1.0, 2.0).requires_grad_()
    x = make(m, s).rsample()
    by_m, by_s = torch.autograd.grad(x.sum(), (m, s))
    close(by_m, [1.0, 1.0])
    close(by_s, ((x - m) / s).detach())


@pytest.mark.parametrize(
    "make",
    [
        D.Gamma,
        D.Beta,
        D.FisherSnedecor,
        D.InverseGamma,
        D.Weibull,
        lambda a, b: D.Pareto(b, a),
        lambda a, b: D.StudentT(a, 0.5, b),
    ],
)
@differs("some distributions have no cdf")
def test_draws_move_with_their_probability(make):
    """The cumulative probability of a draw does not depend on the parameters, so its total derivative is 0."""
    torch.manual_seed(2)
    a, b = t(0.7, 3.0).requires_grad_(), t(1.0, 2.0).requires_grad_()
    d = make(a, b)
    x = d.rsample((20,))
    weights = torch.linspace(1, 2, 40, dtype=torch.float64).view(20, 2)
    by_x = torch.autograd.grad((d.cdf(x) * weights).sum(), (a, b), retain_graph=True)
    partial = torch.autograd.grad((d.cdf(x.detach()) * weights).sum(), (a, b))
    assert all(float(direct.abs().min()) > 0.01 for direct in partial)
    close(torch.stack(by_x), torch.zeros(2, 2))


def test_draws_of_proportions_have_derivatives():
    """The derivative of the mean of draws is that of the mean, also for concentrations whose gamma variables underflow."""
    torch.manual_seed(0)
    a = t(0.01, 0.02, 0.03).requires_grad_()
    drawn = D.Dirichlet(a).rsample((20_000,))
    assert torch.isfinite(drawn).all() and abs(drawn[:, 0].mean().item() - 1 / 6) < 0.02
    (found,) = torch.autograd.grad(drawn[:, 0].mean(), a)
    (expected,) = torch.autograd.grad(a[0] / a.sum(), a)
    assert (found - expected).abs().max() < 0.3 * expected.abs().max()


def test_straight_through_draws_have_the_derivative_of_the_probabilities():
    p = t(0.2, 0.8).requires_grad_()
    drawn = D.OneHotCategoricalStraightThrough(p).rsample()
    assert sorted(drawn.detach().round().tolist()) == [0, 1]
    (found,) = torch.autograd.grad((drawn * t(1, 3)).sum(), p)
    close(found, [-1.6, 0.4])


def test_low_temperatures_are_discrete():
    torch.manual_seed(0)
    drawn = D.RelaxedOneHotCategorical(t(0.01)[0], t(1, 3)).sample((2000,))
    assert (drawn.max(-1)[0] > 0.99).double().mean() > 0.95 and abs(float(drawn[:, 0].mean()) - 0.25) < 0.03


def test_angles():
    torch.manual_seed(0)
    d = D.VonMises(t(3.0, -1.0), t(2.0, 0.5))
    drawn = d.sample((4000,))
    assert drawn.abs().max() <= math.pi and (1 - (drawn - d.mean).cos().mean(0) - d.variance).abs().max() < 0.05
    angles = torch.linspace(-math.pi, math.pi, 2001, dtype=torch.float64)[:, None]
    close(torch.trapezoid(d.log_prob(angles).exp(), angles[:, 0], dim=0), [1.0, 1.0])


def test_correlation_matrices():
    """In two dimensions the correlation is 2 x - 1, where x has the beta distribution with both parameters eta."""
    d = D.LKJCholesky(2, 1.5)
    for r in (-0.5, 0.0, 0.7):
        factor = matrix([[1, 0], [r, (1 - r * r) ** 0.5]])
        close(d.log_prob(factor), math.log(stats.beta.pdf((r + 1) / 2, 1.5, 1.5) / 2))


@differs("its samples of more than two dimensions do not have the density of log_prob")
def test_draws_of_correlation_matrices():
    """Each correlation is 2 x - 1, where x has the beta distribution with both parameters eta + (dim - 2) / 2."""
    torch.manual_seed(0)
    factors = D.LKJCholesky(3, t(1.0)).sample((4000,)).squeeze(1)
    products = factors @ factors.mT
    close(products.diagonal(dim1=-2, dim2=-1), torch.ones(4000, 3))
    for i, j in ((1, 0), (2, 0), (2, 1)):
        assert stats.kstest(((products[:, i, j] + 1) / 2).numpy(), stats.beta(1.5, 1.5).cdf).pvalue > 1e-3


def test_low_rank_normals():
    W, d = matrix([[1, 2], [0.5, 0], [1, 1]]), t(0.5, 1, 2)
    found = D.LowRankMultivariateNormal(t(1, 2, 3), W, d)
    same = D.MultivariateNormal(t(1, 2, 3), W @ W.mT + torch.diag(d))
    for name in ("covariance_matrix", "precision_matrix", "scale_tril", "variance"):
        close(getattr(found, name), getattr(same, name))
    close(found.log_prob(matrix([[0, 1, 2], [3, 2, 1]])), same.log_prob(matrix([[0, 1, 2], [3, 2, 1]])))
    close(found.entropy(), same.entropy())


@pytest.mark.parametrize(
    "d",
    [
        D.ContinuousBernoulli(t(0.2, 0.4999, 0.5, 0.9)),
        D.ContinuousBernoulli(logits=t(0.0, 3.0)),
        D.Kumaraswamy(t(2.0, 1.5), t(3.0, 1.2)),
        D.MixtureSameFamily(D.Categorical(matrix([[1, 3], [1, 1]])), D.Beta(matrix([[2, 3], [1, 2]]), 1.5)),
    ],
    ids=lambda d: type(d).__name__,
)
def test_densities_on_an_interval(d):
    """The density is the derivative of the cdf, and its integrals are the moments."""
    x = torch.linspace(1e-6, 1 - 1e-6, 100_001, dtype=torch.float64)[:, None].expand(-1, *d.batch_shape)
    density, flat = d.log_prob(x).exp(), x[:, 0]
    moments = [torch.trapezoid(density * value, flat, dim=0) for value in (x * 0 + 1, x, (x - d.mean) ** 2)]
    for found, expected in zip((x[0] * 0 + 1, d.mean, d.variance), moments, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    total = here(d.cdf, x[60_000])
    if total is not None:
        torch.testing.assert_close(total, torch.trapezoid(density[:60_001], flat[:60_001], dim=0), rtol=1e-4, atol=1e-5)
    if not isinstance(d, D.MixtureSameFamily):
        torch.testing.assert_close(d.icdf(d.cdf(x[30_000])), x[30_000])
        torch.testing.assert_close(
            d.entropy(), torch.trapezoid(-density * density.log(), flat, dim=0), rtol=1e-4, atol=1e-5
        )


@differs("the mode of Kumaraswamy is always nan")
def test_the_mode_of_kumaraswamy():
    d = D.Kumaraswamy(t(2.0, 0.5), t(3.0, 2.0))
    assert abs(d.mode[0].item() - 0.2**0.5) < 1e-12 and d.mode[1].isnan()
    x = torch.tensor([0.2**0.5 - 1e-3, 0.2**0.5, 0.2**0.5 + 1e-3], dtype=torch.float64)
    assert D.Kumaraswamy(t(2.0), t(3.0)).log_prob(x).argmax() == 1


def test_wishart_matrices():
    theirs = stats.wishart(4.5, COVARIANCE)
    x = matrix([[1, 0.2], [0.2, 3]])
    precision = torch.linalg.inv(matrix())
    for d in (
        D.Wishart(t(4.5)[0], matrix()),
        D.Wishart(4.5, precision_matrix=precision),
        D.Wishart(t(4.5)[0], scale_tril=torch.linalg.cholesky(matrix())),
    ):
        close(d.log_prob(x), theirs.logpdf(x.numpy()))
        close(d.mean, theirs.mean())
        close(d.mode, theirs.mode())
        close(d.variance, theirs.var())
        close(d.entropy(), theirs.entropy())
    assert d.expand((3,)).log_prob(x).shape == (3,)


def test_mixtures_refuse_other_shapes():
    normal = D.Normal(t(0, 1), 1.0)
    for make, message in (
        (lambda: D.MixtureSameFamily(normal, normal), "Mixture distribution needs to be"),
        (lambda: D.MixtureSameFamily(D.Categorical(t(1, 1)), 3), "Component distribution need"),
        (lambda: D.MixtureSameFamily(D.Categorical(t(1, 1, 1)), normal), "does not equal"),
        (
            lambda: D.MixtureSameFamily(D.Categorical(torch.ones(2, 2)), D.Normal(torch.zeros(3, 2), 1.0)),
            "not compatible",
        ),
        (lambda: D.Wishart(0.5, matrix()), "ndim - 1"),
        (lambda: D.Wishart(3.0), "Exactly one of"),
    ):
        with pytest.raises((ValueError, AssertionError), match=message):
            make()


def test_formulas_of_divergences_are_registered():
    class Own:
        pass

    @D.register_kl(Own, D.Normal)
    def formula(p, q):
        return 3

    assert D.kl_divergence(Own(), D.Normal(0.0, 1.0)) == 3
    with pytest.raises(TypeError):
        D.register_kl(3, Own)


def test_exponential_families():
    class Rayleigh(D.ExponentialFamily):
        """With the natural parameter -1 / (2 sigma**2), whose log normalizer is log(sigma**2) = -log(-2 theta)."""

        def __init__(self, sigma):
            self.sigma = sigma
            super().__init__(sigma.shape, validate_args=False)

        @property
        def _natural_params(self):
            return (-0.5 / self.sigma**2,)

        def _log_normalizer(self, theta):
            return -(-2 * theta).log()

        @property
        def _mean_carrier_measure(self):  # the expectation of log x
            return (self.sigma.log() + (math.log(2) - 0.5772156649015329) / 2).detach()

    sigma = t(0.5, 2.0)
    close(Rayleigh(sigma).entropy(), stats.rayleigh(0, [0.5, 2]).entropy())
    assert isinstance(D.Normal(0.0, 1.0), D.ExponentialFamily) and issubclass(D.Wishart, D.ExponentialFamily)
    assert (not issubclass(D.Laplace, D.ExponentialFamily) and not Rayleigh(sigma).entropy().requires_grad) or not OURS


def test_counts_of_classes():
    d = D.Multinomial(4, t(0, 1, 3))
    theirs = stats.multinomial(4, [0, 0.25, 0.75])
    close(d.log_prob(matrix([[0, 1, 3], [0, 0, 4]])), theirs.logpmf([[0, 1, 3], [0, 0, 4]]))
    assert abs(float(d.entropy()) - theirs.entropy()) < 1e-6
    assert d.sample((50,)).sum(-1).tolist() == [4] * 50
    with pytest.raises(NotImplementedError, match="inhomogeneous"):
        D.Multinomial(t(1, 2), t(1, 1))
    close(D.Binomial(3, t(0.3)).entropy(), [stats.binom(3, 0.3).entropy()])
    with pytest.raises(NotImplementedError, match="Inhomogeneous total count"):
        D.Binomial(t(1, 2), 0.5).enumerate_support()
    with pytest.raises(NotImplementedError, match="total_count"):
        D.kl_divergence(D.Binomial(1, t(0.5)), D.Binomial(2, t(0.5)))
    assert D.kl_divergence(D.Binomial(2, t(0.5)), D.Binomial(1, t(0.5))) == math.inf


def test_a_certain_success_has_a_derivative():
    p = t(1.0).requires_grad_()
    D.Geometric(p).log_prob(t(0.0)).sum().backward()
    assert p.grad.tolist() == [1]


@pytest.mark.parametrize("d", families(), ids=lambda d: type(d).__name__)
def test_expanded(d):
    batch = (4, *d.batch_shape)
    wide = d.expand(batch)
    assert wide.batch_shape == batch and wide.event_shape == d.event_shape and type(wide) is type(d)
    torch.manual_seed(0)
    x = wide.sample()
    assert x.shape == (*batch, *d.event_shape)
    close(wide.log_prob(x), d.log_prob(x))


@pytest.mark.parametrize(("half", "whole"), [(D.HalfNormal, D.Normal), (D.HalfCauchy, D.Cauchy)])
def test_halves_are_transformed_distributions(half, whole):
    d = half(t(0.5, 2.0))
    assert isinstance(d, D.TransformedDistribution) and type(d.base_dist) is whole and d.scale is d.base_dist.scale
    assert isinstance(d.transforms[0], D.AbsTransform) and d.expand((3, 2)).scale.shape == (3, 2)


def test_the_event_shape_may_be_overridden():
    class Reshaped(D.MultivariateNormal):
        @property
        def event_shape(self):
            return torch.Size((1, 2))

    d = Reshaped(t(1, 2), matrix())
    assert d.scale_tril.shape == (2, 2) and d.variance.shape == (2,) and d.log_prob(t(1, 2)).shape == ()


def test_subclasses():
    class Shifted(D.Normal):
        def __init__(self, shift):
            super().__init__(shift, 1.0)

    class Same(D.Normal):
        pass

    assert type(Same(t(0.0), 1.0).expand((2,))) is Same
    with pytest.raises(NotImplementedError, match="must also define"):
        Shifted(t(0.0)).expand((2,))

    class Layer(D.MultivariateNormal, torch.nn.Module):
        def __init__(self):
            torch.nn.Module.__init__(self)
            D.MultivariateNormal.__init__(self, t(0, 0), scale_tril=matrix([[1, 0], [1, 1]]), validate_args=False)
            self.weight = torch.nn.Parameter(torch.ones(1))

        @property
        def covariance_matrix(self):
            return super().covariance_matrix * 2

    layer = Layer()
    assert layer.weight.item() == 1 and [name for name, _ in layer.named_parameters()] == ["weight"]
    if OURS:  # PyTorch's lazy property writes to the overriding one
        assert layer.covariance_matrix.tolist() == [[2, 2], [2, 4]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: D.Chi2(t(-1.0)), "Expected parameter"),
        (lambda: D.Gamma(1.0, 0.0), "Expected parameter rate"),
        (lambda: D.Binomial(-1, 0.5), "Expected parameter total_count"),
        (lambda: D.Geometric(0.0), "Expected parameter probs"),
        (lambda: D.Dirichlet(torch.tensor(1.0)), "at least one-dimensional"),
        (lambda: D.LKJCholesky(1), "greater than or equal to 2"),
        (lambda: D.LowRankMultivariateNormal(t(0, 0), matrix([[1]]), t(1, 1)), "cov_factor must be"),
        (lambda: D.LowRankMultivariateNormal(t(0, 0), matrix([[1], [1]]), t(1)), "cov_diag must be"),
        (lambda: D.OneHotCategorical(t(1, 1)).log_prob(t(1, 1)), "within the support"),
        (lambda: D.Pareto(1.0, 1.0).log_prob(torch.tensor(0.5)), "within the support"),
        (lambda: D.Normal(0.0, -1.0), "Expected parameter scale .*GreaterThan"),
        (lambda: D.Normal(t(0.0, math.nan), 1.0), "Expected parameter loc"),
        (lambda: D.Uniform(1.0, 0.0), "low"),
        (lambda: D.Bernoulli(1.5), "Expected parameter probs"),
        (lambda: D.Bernoulli(), "not both"),
        (lambda: D.Categorical(torch.tensor(1.0)), "at least one-dimensional"),
        (lambda: D.Categorical(t(-1.0, 2.0)), "Expected parameter probs"),
        (lambda: D.MultivariateNormal(t(0, 0), matrix([[1, 2], [2, 1]])), "PositiveDefinite"),
        (lambda: D.MultivariateNormal(t(0, 0)), "Exactly one of"),
        (lambda: D.Poisson(-1.0), "Expected parameter rate"),
        (lambda: D.Normal("a", 1), "instances of Number"),
        (lambda: D.Normal(0.0, 1.0).log_prob(1.0), "must be a Tensor"),
        (lambda: D.Bernoulli(0.5).log_prob(torch.tensor(0.5)), r"within the support \(Boolean"),
        (lambda: D.Uniform(0.0, 1.0).log_prob(torch.tensor(2.0)), "within the support"),
        (lambda: D.Categorical(t(1, 1)).log_prob(torch.tensor(2)), "within the support"),
        (lambda: D.Normal(t(0, 1), 1.0).log_prob(t(1, 2, 3)), "not broadcastable"),
        (lambda: D.Normal(t(0, 1), 1.0).expand((4, 2)).log_prob(torch.zeros(3, 2)), "not broadcastable"),
        (lambda: D.MultivariateNormal(t(0, 0), matrix()).log_prob(t(1, 2, 3)), "event_shape"),
        (lambda: D.Independent(D.Normal(0.0, 1.0), 1), "reinterpreted_batch_ndims"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_is_not_looked_at():
    assert D.Uniform(0.0, 1.0, validate_args=False).log_prob(torch.tensor(2.0)) == -math.inf
    assert D.Bernoulli(t(0.2, 0.5)).enumerate_support().tolist() == [[0, 0], [1, 1]]
    assert D.Categorical(t(1, 1, 1)).enumerate_support().tolist() == [0, 1, 2]
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"


def test_a_policy_learns():
    """The gradient of an expected reward, by the log probabilities of draws."""
    torch.manual_seed(0)
    logits = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([logits], lr=0.5)
    for _ in range(60):
        policy = D.Categorical(logits=logits)
        actions = policy.sample((32,))
        optimizer.zero_grad()
        (-policy.log_prob(actions) * (actions == 2).float()).mean().backward()
        optimizer.step()
    assert D.Categorical(logits=logits).probs[2] > 0.9
