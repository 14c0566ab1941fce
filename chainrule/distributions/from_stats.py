"""Distributions whose formulas are those of ``chainrule.stats``, with PyTorch's names and parameters.

``chainrule.distributions`` exports these classes.

A class declares the distribution in ``_stats``, and its shape parameters, location and scale in ``_arguments``. Samples are
quantiles of uniform numbers, or numbers drawn by NumPy (``_draw``) with implicit derivatives in the shape parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from chainrule import special, stats
from chainrule._src.api.grad_mode import no_grad
from chainrule._src.ops import creation
from chainrule._src.ops.elementwise import where
from chainrule._src.ops.random import _drawn_from, _rng
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.kl import register_kl
from chainrule.distributions.location_scale import LocationScale
from chainrule.distributions.normal import Normal
from chainrule.distributions.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import AbsTransform
from chainrule.distributions.utils import broadcast_all, uniform_like


def drawn_numbers(name: str, draw: Callable[..., Any], *parameters: Tensor) -> Any:
    """Draw numbers with NumPy's generator from broadcast parameters; return an array in their dtype.

    Numbers that are rounded to 0 are replaced by the dtype's smallest normal number.
    """

    def numbers(*arrays: Any) -> Any:
        drawn = np.asarray(draw(_rng(None), *arrays), arrays[0].dtype)
        return np.where(drawn == 0, np.finfo(drawn.dtype).tiny, drawn)

    return _drawn_from(name, numbers, *parameters)


class FromStats(Distribution):
    """The base of distributions with formulas from ``chainrule.stats``."""

    has_rsample = True
    _stats: ClassVar[Any]
    #: draws numbers of the standard form: a function of NumPy's generator and the shape parameters
    _draw: ClassVar[Callable[..., Any] | None] = None

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # the parameters, which _set_parameters assigns

    def _set_parameters(self, validate_args: bool | None, **parameters: Any) -> None:
        values = broadcast_all(*parameters.values())
        for name, value in zip(parameters, values, strict=True):
            setattr(self, name, value)
        super().__init__(values[0].shape, validate_args=validate_args)

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the methods of ``_stats``: shape parameters, loc and scale."""
        raise NotImplementedError

    def rsample(self, sample_shape: object = ()) -> Tensor:
        shape, arguments = self._extended_shape(sample_shape), self._arguments()
        draw = type(self)._draw
        if draw is None:
            return self._stats.ppf(uniform_like(next(iter(arguments.values())), shape), **arguments)
        loc, scale = (arguments.pop(name, default) for name, default in (("loc", 0.0), ("scale", 1.0)))
        shapes = [x.expand(shape) for x in arguments.values()]
        drawn = drawn_numbers(f"{type(self).__name__}.rsample", draw, *shapes)
        return loc + self._stats._reparameterized(drawn, *shapes) * scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._stats.logpdf(value, **self._arguments())

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._stats.cdf(value, **self._arguments())

    def icdf(self, value: Tensor) -> Tensor:
        return self._stats.ppf(value, **self._arguments())

    def entropy(self) -> Tensor:
        return self._stats.entropy(**self._arguments())

    @property
    def mean(self) -> Tensor:
        """Return the expectation."""
        return self._stats.mean(**self._arguments())

    @property
    def variance(self) -> Tensor:
        """Return the expectation of the squared distance from the mean."""
        return self._stats.var(**self._arguments())


class Gamma(FromStats, ExponentialFamily):
    """The gamma distribution.

    Args:
        concentration: the shape parameter α.
        rate: the inverse scale β.

    >>> import chainrule as torch
    >>> a = torch.tensor(3.0, requires_grad=True)
    >>> torch.distributions.Gamma(a, 2.0).log_prob(torch.tensor(1.0)).backward()
    >>> a.grad
    tensor(-0.2296)
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    _stats = stats.gamma
    _draw = lambda rng, a: rng.standard_gamma(a)  # noqa: E731

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._set_parameters(validate_args, concentration=concentration, rate=rate)

    def _arguments(self) -> dict[str, Any]:
        return {"a": self.concentration, "scale": 1 / self.rate}

    @property
    def mode(self) -> Tensor:
        """Return (α − 1) / β, or 0 for α < 1."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)


class Chi2(Gamma):
    """The χ² distribution with ``df`` degrees of freedom."""

    arg_constraints: ClassVar = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args)

    @property
    def df(self) -> Tensor:
        """Return the degrees of freedom."""
        return self.concentration * 2


class Beta(FromStats, ExponentialFamily):
    """The beta distribution on [0, 1].

    Args:
        concentration1: the exponent of x, plus 1.
        concentration0: the exponent of 1 − x, plus 1.
    """

    arg_constraints: ClassVar = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    _stats = stats.beta
    _draw = lambda rng, a, b: _inside_unit(rng.beta(a, b), a.dtype)  # noqa: E731

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._set_parameters(validate_args, concentration1=concentration1, concentration0=concentration0)

    def _arguments(self) -> dict[str, Any]:
        return {"a": self.concentration1, "b": self.concentration0}

    @property
    def mode(self) -> Tensor:
        """Return the maximum of the density between 0 and 1; nan where both concentrations are 1."""
        above = (self.concentration1 - 1).clamp(min=0)
        inside = above / (above + (self.concentration0 - 1).clamp(min=0))
        return where((self.concentration1 < 1) & (self.concentration0 < 1), 1.0, inside)


def _inside_unit(x: Any, dtype: Any) -> Any:
    """Replace numbers that are rounded to 1 by the largest number below."""
    return np.minimum(x, 1 - np.finfo(dtype).epsneg)


class StudentT(FromStats):
    """Student's t distribution with ``df`` degrees of freedom, shifted by ``loc`` and scaled."""

    arg_constraints: ClassVar = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    _stats = stats.t
    _draw = lambda rng, df: rng.standard_t(df)  # noqa: E731

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self._set_parameters(validate_args, df=df, loc=loc, scale=scale)

    def _arguments(self) -> dict[str, Any]:
        return {"df": self.df, "loc": self.loc, "scale": self.scale}

    @property
    def mean(self) -> Tensor:
        """Return ``loc``, or nan for df ≤ 1."""
        return where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        """Return ``loc``."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Return scale² · df / (df − 2); inf for df ≤ 2 and nan for df ≤ 1."""
        rest = where(self.df > 2, self.df - 2, 1.0)
        return where(self.df > 2, self.scale.pow(2) * self.df / rest, where(self.df > 1, math.inf, math.nan))


class FisherSnedecor(FromStats):
    """The F distribution with ``df1`` and ``df2`` degrees of freedom."""

    arg_constraints: ClassVar = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    _stats = stats.f
    _draw = lambda rng, dfn, dfd: rng.f(dfn, dfd)  # noqa: E731

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self._set_parameters(validate_args, df1=df1, df2=df2)

    def _arguments(self) -> dict[str, Any]:
        return {"dfn": self.df1, "dfd": self.df2}

    @property
    def mean(self) -> Tensor:
        """Return df2 / (df2 − 2), or nan for df2 ≤ 2."""
        return where(self.df2 > 2, super().mean, math.nan)

    @property
    def mode(self) -> Tensor:
        """Return the maximum of the density; nan for df1 ≤ 2."""
        inside = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return where(self.df1 > 2, inside, math.nan)

    @property
    def variance(self) -> Tensor:
        """Return the variance; nan for df2 ≤ 4."""
        return where(self.df2 > 4, super().variance, math.nan)


class InverseGamma(FromStats):
    """The distribution of 1 / x, where x has the gamma distribution with ``concentration`` and ``rate``."""

    arg_constraints: ClassVar = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    _stats = stats.invgamma
    _draw = lambda rng, a: 1 / rng.standard_gamma(a)  # noqa: E731

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._set_parameters(validate_args, concentration=concentration, rate=rate)

    def _arguments(self) -> dict[str, Any]:
        return {"a": self.concentration, "scale": self.rate}

    @property
    def mode(self) -> Tensor:
        """Return rate / (concentration + 1)."""
        return self.rate / (self.concentration + 1)


class Weibull(FromStats):
    """The Weibull distribution: of scale · e^(1 / concentration), where e has the exponential distribution."""

    arg_constraints: ClassVar = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _stats = stats.weibull_min

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set_parameters(validate_args, scale=scale, concentration=concentration)

    def _arguments(self) -> dict[str, Any]:
        return {"c": self.concentration, "scale": self.scale}

    @property
    def mode(self) -> Tensor:
        """Return the maximum of the density; nan for concentrations below 1."""
        return self.scale * ((self.concentration - 1) / self.concentration).pow(self.concentration.reciprocal())


class Pareto(FromStats):
    """The Pareto distribution on [scale, ∞), whose density is proportional to x^(−alpha − 1)."""

    arg_constraints: ClassVar = {"scale": constraints.positive, "alpha": constraints.positive}
    _stats = stats.pareto

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self._set_parameters(validate_args, scale=scale, alpha=alpha)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Return the numbers from ``scale``."""
        return constraints.greater_than_eq(self.scale)

    def _arguments(self) -> dict[str, Any]:
        return {"b": self.alpha, "scale": self.scale}

    @property
    def mode(self) -> Tensor:
        """Return ``scale``."""
        return self.scale


class _Located(FromStats, LocationScale):
    """The base of distributions without shape parameters."""

    def _arguments(self) -> dict[str, Any]:
        return {"loc": self.loc, "scale": self.scale}


class Gumbel(_Located):
    """The Gumbel distribution of maxima."""

    _stats = stats.gumbel_r
    mean = FromStats.mean


class Cauchy(_Located):
    """The Cauchy distribution."""

    _stats = stats.cauchy

    @property
    def mean(self) -> Tensor:
        """Return nan: there is no expectation."""
        return self.loc.detach() * 0 + math.nan

    @property
    def variance(self) -> Tensor:
        """Return inf."""
        return self.loc.detach() * 0 + math.inf


class _Half(FromStats, TransformedDistribution):
    """The base of distributions of ``|x|``, where x is symmetric about 0."""

    arg_constraints: ClassVar = {"scale": constraints.positive}
    support = constraints.nonnegative
    _base: ClassVar[Any]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        TransformedDistribution.__init__(self, self._base(0.0, scale, validate_args), AbsTransform(), validate_args)

    @property
    def scale(self) -> Any:
        """Return the scale of x."""
        return self.base_dist.scale  # type: ignore[attr-defined]

    def _arguments(self) -> dict[str, Any]:
        return {"scale": self.scale}

    @property
    def mode(self) -> Tensor:
        """Return 0."""
        return creation.zeros_like(self.scale)


class HalfNormal(_Half):
    """The distribution of ``|x|``, where x is normal with mean 0 and standard deviation ``scale``."""

    _stats, _base = stats.halfnorm, Normal


class HalfCauchy(_Half):
    """The distribution of ``|x|``, where x has the Cauchy distribution about 0."""

    _stats, _base = stats.halfcauchy, Cauchy


class VonMises(Distribution):
    """The von Mises distribution of angles about ``loc``, in radians."""

    arg_constraints: ClassVar = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """Return the mean direction."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """Return the circular variance, 1 − I₁(concentration) / I₀(concentration)."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

    def sample(self, sample_shape: object = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            loc, concentration = self.loc.expand(shape), self.concentration.expand(shape)
            return wrapped(_drawn_from("VonMises.sample", _von_mises, loc, concentration))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        normalizer = math.log(2 * math.pi) + special.i0e(self.concentration).log()
        return self.concentration * ((value - self.loc).cos() - 1) - normalizer


def _von_mises(loc: Any, concentration: Any) -> Any:
    """Draw angles in [−π, π)."""
    drawn = loc + _rng(None).vonmises(0.0, concentration)
    return np.asarray((drawn + math.pi) % (2 * math.pi) - math.pi, loc.dtype)


def wrapped(numbers: Any) -> Tensor:
    """Return drawn numbers as a tensor."""
    return numbers if isinstance(numbers, Tensor) else wrap(numbers)


@register_kl(Gamma, Gamma)
def _kl_gammas(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    rates = b * (p.rate / q.rate).log() + (q.rate - p.rate) * (a / p.rate)
    return rates + b.lgamma() - a.lgamma() + (a - b) * a.digamma()


@register_kl(HalfNormal, HalfNormal)
def _kl_half_normals(p: HalfNormal, q: HalfNormal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio - 1 - ratio.log())


@register_kl(Cauchy, Cauchy)
def _kl_cauchys(p: Cauchy, q: Cauchy) -> Tensor:
    """F. Chyzak and F. Nielsen (2019), "A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions"."""
    return (((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)) / (4 * p.scale * q.scale)).log()
