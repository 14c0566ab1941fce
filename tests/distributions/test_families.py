"""``torch.distributions``: values equal SciPy's, gradients equal differences, draws have the moments of the formulas."""

import math

import pytest
from scipy import stats

from behaviour import torch

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
]
DISCRETE = [
    (lambda: D.Poisson(t(1.5, 4.0)), stats.poisson([1.5, 4]), [0.0, 3.0]),
    (lambda: D.Bernoulli(t(0.2, 1.0)), stats.bernoulli([0.2, 1]), [0.0, 1.0]),
    (
        lambda: D.Bernoulli(logits=t(0.2, -3.0)),
        stats.bernoulli([1 / (1 + math.exp(-0.2)), 1 / (1 + math.exp(3))]),
        [0.0, 1.0],
    ),
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


@pytest.mark.parametrize(("make", "theirs", "at"), CONTINUOUS)
def test_distribution_functions(make, theirs, at):
    d = make()
    close(d.cdf(t(*at)), theirs.cdf(at))
    close(d.icdf(t(0.2, 0.7)), theirs.ppf([0.2, 0.7]))
    close(d.entropy(), theirs.entropy())


def families():
    return [
        *[make() for make, *_ in CONTINUOUS + DISCRETE],
        D.Categorical(torch.stack([t(1, 2, 1), t(0, 1, 3)])),
        D.Categorical(logits=torch.stack([t(1, 2, 3), t(0, 1, 1)])),
        D.MultivariateNormal(t(1.0, -1.0), matrix()),
        D.MultivariateNormal(torch.zeros(2, 2, dtype=torch.float64), precision_matrix=matrix()),
        D.MultivariateNormal(t(1.0, -1.0), scale_tril=matrix([[1, 0], [0.5, 2]])),
        D.Independent(D.Normal(t(1.0, 2.0), 1.0), 1),
    ]


@pytest.mark.parametrize("d", families(), ids=lambda d: type(d).__name__)
def test_draws(d):
    torch.manual_seed(0)
    drawn = d.sample((4000,))
    assert drawn.shape == (4000, *d.batch_shape, *d.event_shape) and not drawn.requires_grad
    assert d.sample((2, 3)).shape == (2, 3, *d.batch_shape, *d.event_shape)
    if isinstance(d, D.Categorical):
        assert ((drawn[..., None] == torch.arange(3)).double().mean(0) - d.probs).abs().max() < 0.03
        assert d.entropy().shape == d.batch_shape
    else:
        scale = d.stddev.max()
        assert (drawn.mean(0) - d.mean).abs().max() < 0.08 * scale and (
            drawn.var(0) - d.variance
        ).abs().max() < 0.15 * scale**2
    assert d.log_prob(drawn).shape == (4000, *d.batch_shape)
    if not isinstance(d, D.Poisson):
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
    return [
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
        D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))


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
    ("make", "message"),
    [
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
