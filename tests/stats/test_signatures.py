"""SciPy's signatures, frozen distributions, and errors."""

import subprocess
import sys

import numpy as np
import pytest

import chainrule as cr
from chainrule import func, stats
from tests.stats.cases import ALL, CONTINUOUS, DISCRETE, OWN, SCIPYS

scipy_stats = pytest.importorskip("scipy.stats")


@pytest.mark.parametrize("name", SCIPYS)
def test_moments(name):
    ours, theirs = getattr(stats, name), getattr(scipy_stats, name)
    assert ", ".join(ours.shapes) == (theirs.shapes or "")
    place = {"loc": 1.5, "scale": 2.0} if name in CONTINUOUS else {"loc": 2}
    methods = ["mean", "var", "std"] + ["median", "entropy"] * (name in CONTINUOUS)
    for method in methods:
        if (name, method) in (("skewnorm", "entropy"), ("vonmises", "var"), ("vonmises", "std")):
            with pytest.raises(NotImplementedError, match=rf"chainrule\.stats\.{name} has no"):
                getattr(ours, method)(*ALL[name], **place)
        else:
            expected = getattr(theirs, method)(*ALL[name], **place)
            np.testing.assert_allclose(getattr(ours, method)(*ALL[name], **place), expected, rtol=1e-9, err_msg=method)
    shapes = np.array(ALL[name], float)
    if shapes.size and name != "vonmises":
        assert np.all(np.isfinite(func.grad(lambda v: ours.mean(*v, **place) + ours.std(*v, **place))(shapes)))


@pytest.mark.parametrize("name", ["t", "pareto", "invgamma", "f"])
def test_moments_that_do_not_exist(name):
    ours, theirs = getattr(stats, name), getattr(scipy_stats, name)
    for shape in (0.5, 1.5, 3.0, 4.5, -1.0):
        shapes = (shape,) * len(ours.shapes)
        for method in ("mean", "var"):
            expected = getattr(theirs, method)(*shapes)
            np.testing.assert_allclose(
                getattr(ours, method)(*shapes), expected, rtol=1e-12, err_msg=f"{method} {shape}"
            )


@pytest.mark.parametrize("name", DISCRETE)
def test_quantiles_of_whole_numbers(name):
    q = np.array([0.05, 0.3, 0.5, 0.9, 1.2, np.nan])
    for method in ("ppf", "isf"):
        ours = getattr(getattr(stats, name), method)(q, *DISCRETE[name], loc=1)
        np.testing.assert_array_equal(ours, getattr(getattr(scipy_stats, name), method)(q, *DISCRETE[name], loc=1))
    parameters = np.array(DISCRETE[name], float)
    assert not func.grad(lambda v: getattr(stats, name).ppf(0.3, *v) * 1.0)(parameters).any()


@pytest.mark.parametrize("name", DISCRETE)
@pytest.mark.parametrize("method", ["logpmf", "pmf", "cdf", "logcdf", "sf", "logsf"])
def test_derivatives_by_parameters_of_discrete_distributions(name, method):
    call, v = getattr(getattr(stats, name), method), np.array(DISCRETE[name], float)
    k = np.array([0, 0, 1]) if name == "bernoulli" else np.array([1, 2, 6])
    free = [i for i in range(v.size) if (name, i) != ("binom", 0)]

    def f(p):
        return call(k, *[p[free.index(i)] if i in free else v[i] for i in range(v.size)])[:2].sum()

    p, step = v[free], 1e-4
    e = np.eye(p.size) * step
    differences = [(8 * (f(p + d) - f(p - d)) - (f(p + 2 * d) - f(p - 2 * d))) / (12 * step) for d in e]
    with np.errstate(invalid="ignore"):  # log 0 is among them
        np.testing.assert_allclose(func.grad(f)(p), differences, rtol=1e-7, atol=1e-9)
    assert not func.grad(lambda x: call(x, *v).sum())(k.astype(float)).any()  # k has no derivative


def test_arguments():
    expected = scipy_stats.gamma.logpdf(1.5, 2.0, 0.5, 3.0)
    for value in (
        stats.gamma.logpdf(1.5, 2.0, 0.5, 3.0),
        stats.gamma.logpdf(1.5, a=2.0, loc=0.5, scale=3.0),
        stats.gamma.logpdf(x=1.5, scale=3.0, loc=0.5, a=2.0),
        stats.gamma(2.0, scale=3.0, loc=0.5).logpdf(1.5),
        stats.gamma(2.0, 0.5, 3.0).logpdf(x=1.5),
        stats.gamma.logpdf([1.5], 2, 0.5, 3)[0],
    ):
        assert np.isclose(value, expected, rtol=1e-14)
    x = np.linspace(0.1, 1, 3)
    assert stats.beta.pdf(x[:, None], x, 2.0, scale=np.ones((2, 1, 1))).shape == (2, 3, 3)
    assert stats.norm.pdf(np.zeros((0, 2)), np.ones(2)).shape == (0, 2)
    assert repr(stats.gamma(2.0, scale=3.0)) == "chainrule.stats.gamma(2.0, scale=3.0)"
    assert repr(stats.norm) == "<chainrule.stats.norm>"
    assert np.isclose(stats.poisson(2.0).pmf(k=3), scipy_stats.poisson.pmf(3, 2.0))
    assert np.isclose(stats.norm(1.0).isf(q=0.2), scipy_stats.norm.isf(0.2, 1.0))


def test_arrays_of_several_kinds():
    t = cr.tensor([1.0, 2.0], requires_grad=True)
    assert stats.norm.logpdf(t, 0, 1).dtype == cr.float32
    assert stats.poisson.logpmf(cr.tensor([1, 2]), t).dtype == cr.float32
    assert stats.norm.pdf(np.float32([1, 2])).dtype == np.float32
    assert stats.norm.pdf(np.array([1, 2])).dtype == np.float64
    elements = func.grad(lambda v: stats.norm.logpdf([v[0], v[1], 3.0]).sum())(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(elements, [-1, -2])
    assert isinstance(func.vmap(lambda v: stats.norm.cdf(v))(t), cr.Tensor)


@pytest.mark.parametrize("name, method", [("norm", "logcdf"), ("gamma", "logpdf"), ("gamma", "cdf"), ("t", "logsf")])
def test_arrays_of_dask_stay_lazy(name, method):
    dask = pytest.importorskip("dask.array")
    x, shapes = np.linspace(0.2, 3, 40), CONTINUOUS[name]
    scale = cr.tensor(1.5, dtype=cr.float64, requires_grad=True)
    y = getattr(getattr(stats, name), method)(cr.as_tensor(dask.from_array(x, 10)), *shapes, scale=scale)
    y.sum().backward()
    expected = func.value_and_grad(lambda s: getattr(getattr(stats, name), method)(x, *shapes, scale=s).sum())(1.5)
    assert not isinstance(y._raw, np.ndarray) and not isinstance(scale.grad._raw, np.ndarray)
    np.testing.assert_allclose([y.detach().sum().numpy(), scale.grad.numpy()], expected, rtol=1e-12)


def test_a_program_with_invalid_parameters_can_be_compiled():
    compiled = cr.compile(lambda x, s: stats.gamma.logpdf(x, 2.0, scale=s))
    for x, s in ((np.array([1.0, -1.0]), 2.0), (np.array([-1.0, 3.0]), 2.0), (np.array([1.0, 1.0]), -2.0)):
        np.testing.assert_allclose(compiled(x, np.array(s)), scipy_stats.gamma.logpdf(x, 2.0, scale=s), rtol=1e-14)


@pytest.mark.parametrize("call, error, says", [
    (lambda: stats.gamma.logpdf(1.0), TypeError, r"gamma\.logpdf\(a, loc, scale\) needs a"),
    (lambda: stats.norm.logpdf(1, 2, 3, 4), TypeError, "got 3 parameters"),
    (lambda: stats.norm.logpdf(1, mu=3), TypeError, "has no parameter 'mu'"),
    (lambda: stats.norm.logpdf(1, 2, loc=3), TypeError, "got 'loc' twice"),
    (lambda: stats.poisson.logpmf(1, 2.0, scale=3), TypeError, "has no parameter 'scale'"),
    (lambda: stats.norm(1, 2, 3), TypeError, r"norm\(loc, scale\) got 3 parameters"),
    (lambda: stats.norm.logpdf(np.array([1j])), TypeError, "real numbers, not for an array of complex128"),
    (lambda: stats.gamma.logpdf(np.ma.array([1.0, -1.0], mask=[0, 1]), 2.0), TypeError, "masked"),
    (lambda: stats.norm.fit([1.0]), AttributeError, r"has no 'fit'; it has cdf, entropy.*scipy\.stats\.norm may have it"),
    (lambda: stats.bernoulli.logpmf(1, 0.3, logits=2.0), TypeError, "got 'logits' twice"),
    (lambda: stats.bernoulli(p=0.3, logits=2.0), TypeError, "has no parameter 'p'"),
    (lambda: stats.geom.logpmf(1, logits=2.0), TypeError, "has no parameter 'logits'"),
    (lambda: stats.gamma.rvs(-1.0), ValueError, "out of its range"),
    (lambda: stats.gamma.rvs(1.0, size=3, loc=np.ones(2)), ValueError, "size=3 does not match"),
    (lambda: func.grad(lambda k: stats.vonmises.cdf(1.0, k))(2.0), NotImplementedError, "vonmises_cdf .*kappa"),
])  # fmt: skip
def test_bad_input(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_without_scipy():
    program = (
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *args: None if name == 'scipy' else found(name, *args)\n"
        "import chainrule as cr\n"
        "try: cr.stats\n"
        "except ImportError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "chainrule.stats" in said and "pip install chainrule[scipy]" in said


def test_every_distribution_is_scipys():
    for name in stats.__all__:
        assert hasattr(scipy_stats, name) is (name not in OWN)
        distribution = getattr(stats, name)
        assert distribution.name == name and type(distribution).__doc__


@pytest.mark.parametrize("parameter", ["x", "loc"])
def test_scipys_own_names_what_keeps_the_derivative(parameter):
    given = {"x": 0.5, "loc": 1.0}
    with pytest.raises(RuntimeError, match=r"chainrule\.stats\.norm\.logpdf keeps the derivative"):
        cr.grad(lambda v: scipy_stats.norm.logpdf(**{**given, parameter: v}))(1.0)
