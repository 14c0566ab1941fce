"""Samples are SciPy's numbers, and have the derivatives of the quantile function at their probability."""

import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule import func, stats
from tests.stats.cases import ALL, CONTINUOUS, SCIPYS
from tests.stats.test_multivariate import ALPHA, MATRIX, MEAN

scipy_stats = pytest.importorskip("scipy.stats")

STATES = [lambda: 5, lambda: np.random.default_rng(5), lambda: np.random.RandomState(5)]


@pytest.mark.parametrize("name", SCIPYS)
def test_numbers(name):
    ours, theirs = getattr(stats, name), getattr(scipy_stats, name)
    place = {"loc": 3, "scale": 2.0} if name in CONTINUOUS else {"loc": 3}
    for state in STATES:
        for size in ({}, {"size": 4}, {"size": (2, 3)}):
            drawn = ours.rvs(*ALL[name], **place, **size, random_state=state())
            expected = theirs.rvs(*ALL[name], **place, **size, random_state=state())
            assert np.shape(drawn) == np.shape(expected)
            np.testing.assert_allclose(drawn, expected, rtol=1e-14)
    assert ours.rvs(*ALL[name], loc=np.arange(3), random_state=0).shape == (3,)
    frozen = ours(*ALL[name], **place).rvs(2, random_state=0)
    np.testing.assert_allclose(frozen, ours.rvs(*ALL[name], **place, size=2, random_state=0), rtol=1e-15)


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if CONTINUOUS[name] and name != "vonmises"])
def test_derivatives_by_shape_parameters(name):
    distribution, shapes = getattr(stats, name), np.array(CONTINUOUS[name])
    place = {"loc": 0.5, "scale": 2.0}

    def sample(v):
        return distribution.rvs(*v, **place, size=6, random_state=3)

    drawn = sample(shapes)
    share = distribution.cdf(drawn, *shapes, **place)

    def quantile(v):
        return distribution.ppf(share, *v, **place)

    np.testing.assert_allclose(func.jacrev(sample)(shapes), func.jacrev(quantile)(shapes), rtol=1e-7)
    second = func.hessian(lambda v: sample(v).sum())(shapes)
    np.testing.assert_allclose(second, func.hessian(lambda v: quantile(v).sum())(shapes), rtol=1e-5)
    np.testing.assert_allclose(func.value_and_grad(lambda v: sample(v).sum())(shapes)[0], drawn.sum(), rtol=1e-13)


def test_small_shapes():
    """Gamma variables with tiny shape are themselves tiny, and their derivatives finite."""
    drawn, slope = func.value_and_grad(lambda a: np.log(stats.gamma.rvs(a, size=500, random_state=0)).mean())(0.02)
    assert np.isclose(drawn, -50, rtol=0.1) and np.isclose(slope, 1 / 0.02**2, rtol=0.1)  # log x is about log(u) / a


def test_location_and_scale():
    m, s = cr.tensor(1.0, requires_grad=True), cr.tensor(2.0, requires_grad=True)
    x = stats.norm.rvs(m, s, size=(50,), random_state=1)
    assert isinstance(x, cr.Tensor) and x.dtype == cr.float32
    x.sum().backward()
    noise = scipy_stats.norm.rvs(size=50, random_state=1)
    assert m.grad == 50 and np.isclose(s.grad, noise.sum(), rtol=1e-5)


def test_generators():
    g = cr.Generator().manual_seed(3)
    first = stats.gamma.rvs(2.0, size=2, random_state=g)
    assert not np.array_equal(first, stats.gamma.rvs(2.0, size=2, random_state=g))
    assert np.array_equal(first, stats.gamma.rvs(2.0, size=2, random_state=cr.Generator().manual_seed(3)))
    np.random.seed(4)
    first = stats.expon.rvs(size=3)
    np.random.seed(4)
    assert np.array_equal(first, scipy_stats.expon.rvs(size=3))


def test_vectors():
    for state in STATES:
        for size in (1, 4, (2, 3)):
            for name, given in (("multivariate_normal", (MEAN, MATRIX)), ("dirichlet", (ALPHA,))):
                ours = getattr(stats, name).rvs(*given, size=size, random_state=state())
                theirs = getattr(scipy_stats, name).rvs(*given, size=size, random_state=state())
                assert np.shape(ours) == np.shape(theirs)
                np.testing.assert_allclose(ours, theirs, rtol=1e-13)

    def total(mean, cov):
        return stats.multivariate_normal.rvs(mean, cov, size=4, random_state=0).sum()

    value, slope = func.value_and_grad(total)(MEAN, MATRIX)
    assert np.isclose(value, total(MEAN, MATRIX), rtol=1e-13) and np.allclose(slope, 4)


def test_vectors_have_the_derivatives_of_their_moments():
    n = 20_000
    spread = func.grad(
        lambda c: np.sum((stats.multivariate_normal.rvs(MEAN, c, size=n, random_state=0) - MEAN) ** 2) / n
    )
    np.testing.assert_allclose(spread(MATRIX), np.eye(3), atol=0.05)  # of the trace
    shares = func.jacrev(lambda a: stats.dirichlet.rvs(a, size=n, random_state=0).mean(0))
    np.testing.assert_allclose(shares(ALPHA), func.jacrev(stats.dirichlet.mean)(ALPHA), atol=0.005)


def test_discrete_numbers_keep_their_face():
    assert isinstance(stats.poisson.rvs(cr.tensor(3.0), size=2, random_state=0), cr.Tensor)
    assert stats.poisson.rvs(3.0, size=2, random_state=0).dtype == np.int64


def test_inside_transformations():
    noise = func.vmap(lambda m: stats.norm.rvs(m, random_state=0), randomness="different")(np.zeros(3))
    assert len(set(noise.tolist())) == 3
    with pytest.raises(RuntimeError, match="randomness"):
        func.vmap(lambda m: stats.norm.rvs(m, random_state=0))(np.zeros(3))
    with pytest.raises(RuntimeError, match=r"gamma\.rvs inside vmap .* gamma\.ppf of uniform numbers"):
        func.vmap(lambda a: stats.gamma.rvs(a, random_state=0), randomness="different")(np.ones(3))
    tangent = func.jvp(lambda a: stats.gamma.rvs(a, size=2, random_state=0), (np.array(2.0),), (np.array(1.0),))[1]
    np.testing.assert_allclose(tangent, func.jacrev(lambda a: stats.gamma.rvs(a, size=2, random_state=0))(2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # compile warns that it runs the function eagerly
        compiled = cr.compile(lambda m: stats.norm.rvs(m, size=2))
        assert not np.array_equal(compiled(np.array(1.0)), compiled(np.array(1.0)))
    with pytest.raises(NotImplementedError, match="vonmises has no derivative of rvs"):
        func.grad(lambda k: stats.vonmises.rvs(k, random_state=0))(2.0)
