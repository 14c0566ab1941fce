"""The base classes of distributions: SciPy's signatures, location and scale, the support's ends, frozen parameters.

A subclass declares a distribution in its standard form, by formulas in NumPy and ``scipy.special`` that propagate nan. The
formulas are only evaluated at finite points of the support; points outside are replaced by a point inside, so that their
values and derivatives never reach the result. The other methods follow from ``_logpdf`` and ``_cdf``, unless a subclass has
a more accurate formula.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from chainrule._src.api.array import Array, array_of
from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, IntoArray, Params, Seed, ShapeLike, TensorLike
from chainrule._src.ops.incomplete import log_of_share
from chainrule._src.ops.random import Generator, _drawn
from chainrule._src.ops.scipy_special import NAMES
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.protocol import ArrayLike, strip_derivatives
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule.stats.operands import (
    array_like,
    as_scalar,
    choose,
    concrete_values,
    known_true,
    operands,
    without_derivatives,
)
from chainrule.stats.primitives import functions, scipy_stats_method

#: Differentiable special functions: SciPy's, and those of ``stats.primitives``.
sc: Any = SimpleNamespace(**(NAMES | functions))
inf, nan = np.inf, np.nan
DEFAULTS = {"loc": 0, "scale": 1}


# -- random numbers ----------------------------------------------------------------------------------------------------


def draw(name: str, parameters: Any, size: Any, random_state: Seed, *others: Any) -> AnyArray | None:
    """Draw numbers from one of SciPy's distributions, with the shape that the parameters (and others) broadcast to.

    Raises:
        ValueError: a parameter is out of its range, or does not broadcast to ``size``.
        RuntimeError: a parameter is batched by ``vmap``.
    """
    values = [concrete_values(x) for x in parameters]
    trace_hooks.register_generator(None)  # raises: this program cannot be recorded
    if any(value is None for value in values):
        raise RuntimeError(
            f"{name}.rvs inside vmap would draw with parameters that differ between the examples: draw outside of it, or use "
            f"{name}.ppf of uniform numbers"
        )
    least = np.broadcast_shapes(*(np.shape(x) for x in (*parameters, *others)))
    shape = least if size is None else tuple(np.atleast_1d(size).tolist())
    fits = len(least) <= len(shape) and all(n in (1, m) for n, m in zip(least[::-1], shape[::-1], strict=False))
    if not fits:
        raise ValueError(f"{name}.rvs: size={size} does not match the parameters, which broadcast to {least}")
    rvs, state = scipy_stats_method(name, "rvs"), random_state_of(random_state)
    drawn = _drawn(shape, lambda shape: np.asarray(rvs(*values, size=shape, random_state=state)))
    return array_of(wrap(drawn)) if isinstance(drawn, ArrayLike) else drawn


def random_state_of(x: object) -> Any:
    """Return a seed or generator in a form that SciPy accepts."""
    return x._rng if isinstance(x, Generator) else x


# -- distributions -----------------------------------------------------------------------------------------------------


class NamedDistribution:
    """The base of distributions: ``repr``, and the error for missing methods. The class name is SciPy's name."""

    name: str

    def __repr__(self) -> str:
        return f"<chainrule.stats.{self.name}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        own = sorted(m for m in dir(type(self)) if not m.startswith("_") and callable(getattr(type(self), m)))
        raise AttributeError(
            f"chainrule.stats.{self.name} has no {name!r}; it has {', '.join(own)}. "
            f"scipy.stats.{self.name} may have it, for plain arrays"
        )


#: A formula of a point in standard form and the shape parameters.
StandardFormula: TypeAlias = Callable[..., Any]


def _no_formula(method: str) -> AnyFunction:
    """Return a formula that raises NotImplementedError, for a method without one."""

    def formula(self: RandomVariable, *args: object) -> Any:
        raise NotImplementedError(
            f"chainrule.stats.{self.name} has no {method}: there is no formula that is differentiable in all parameters. "
            f"scipy.stats.{self.name}.{method} computes it for plain arrays"
        )

    return formula


class RandomVariable(NamedDistribution):
    """A differentiable version of one of SciPy's distributions; the base of :class:`Continuous` and :class:`Discrete`."""

    #: The ends of the support in standard form, whether the formulas hold at the lower end, and a point inside.
    low: Any = -inf
    high: Any = inf
    closed = True
    inner = 0.5
    #: The method whose signature names the shape parameters, and the location parameters.
    _density = "_logpdf"
    _located: tuple[str, ...] = ("loc", "scale")

    def __init__(self) -> None:
        self.name = type(self).__name__
        self.shapes = tuple(inspect.signature(getattr(self, self._density)).parameters)[1:]
        kind, none = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
        names = (*self.shapes, *self._located)
        parameters = [inspect.Parameter(name, kind, default=DEFAULTS.get(name, none)) for name in names]
        self.__signature__ = inspect.Signature(parameters)

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """Return the frozen distribution: ``norm(loc, scale).logpdf(x)``."""
        self._bound("", args, kwds)
        return Frozen(self, args, kwds)

    # Properties that a distribution may override, besides its formulas.

    #: Whether the shape parameters are in their domain; by default, positive.
    _valid: StandardFormula = lambda self, *shapes: _all(*(shape > 0 for shape in shapes))
    #: The ends of the support, and a point inside.
    _ends: StandardFormula = lambda self, *shapes: (self.low, self.high)
    _inner: StandardFormula = lambda self, *shapes: self.inner

    _cdf: StandardFormula = _no_formula("cdf")
    _sf: StandardFormula = lambda self, x, *shapes: 1 - self._cdf(x, *shapes)
    _logcdf: StandardFormula = lambda self, x, *shapes: log_of_share(self._cdf(x, *shapes), self._sf(x, *shapes))
    _logsf: StandardFormula = lambda self, x, *shapes: log_of_share(self._sf(x, *shapes), self._cdf(x, *shapes))
    _mean: StandardFormula = _no_formula("mean")
    _var: StandardFormula = _no_formula("var")

    # Arguments

    def _bound(self, method: str, args: tuple[IntoArray, ...], kwds: Params, also: tuple[str, ...] = ()) -> Params:
        """Return the arguments by name, with SciPy's defaults."""
        names = (*self.shapes, *self._located, *also)
        signature = f"{self.name}{'.' * bool(method)}{method}({', '.join(names)})"
        if len(args) > len(names):
            raise TypeError(f"{signature} got {len(args)} parameters")
        bound = dict(zip(names, args, strict=False))
        for name, value in kwds.items():
            if name not in names:
                raise TypeError(f"{signature} has no parameter {name!r}")
            if name in bound:
                raise TypeError(f"{signature} got {name!r} twice")
            bound[name] = value
        missing = [name for name in self.shapes if name not in bound]
        if missing:
            raise TypeError(f"{signature} needs {' and '.join(missing)}")
        return DEFAULTS | bound

    def _parameters(
        self, method: str, x: IntoArray, args: tuple[IntoArray, ...], kwds: Params
    ) -> tuple[AnyArray, list[AnyArray], AnyArray, AnyArray]:
        """Return x, the shapes, loc and scale as arrays; x is nan at invalid parameters."""
        bound = self._bound(method, args, kwds)
        point, loc, scale, *shapes = operands(
            f"{self.name}.{method}", [x, bound["loc"], bound["scale"], *(bound[name] for name in self.shapes)]
        )
        valid = self._valid(*shapes) & (scale > 0)
        if not known_true(valid):
            point, scale = np.where(valid, point, nan), np.where(valid, scale, nan)
            shapes = [np.where(valid, shape, nan) for shape in shapes]
        return point, shapes, loc, scale

    def _standard_point(
        self, method: str, x: IntoArray, args: tuple[IntoArray, ...], kwds: Params
    ) -> tuple[Any, list[Any], Any, Any, Any]:
        """Return the standardized point (moved inside the support), the shapes, the scale, and masks of x below and above."""
        point, shapes, loc, scale = self._parameters(method, x, args, kwds)
        y = self._standard(method, point, loc, scale)
        low, high = self._ends(*shapes)
        inside = ((y >= low) if self.closed else (y > low)) & (y <= high) & np.isfinite(y)
        if known_true(inside):
            return y, shapes, scale, None, None
        below = ~inside & (y <= low)
        above = ~inside & (y > low)
        return choose(below | above, self._inner(*shapes), y), shapes, scale, below, above

    def _standard(self, method: str, x: AnyArray, loc: AnyArray, scale: AnyArray) -> AnyArray:
        return (x - loc) / scale

    def _check_domain(self, valid: AnyArray) -> None:
        if known_true(~np.all(valid)):
            raise ValueError(f"{self.name}.rvs: a parameter is out of its range")

    # Methods of both kinds

    def cdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of at most x."""
        y, shapes, _, below, above = self._standard_point("cdf", x, args, kwds)
        return _fill_outside(self._cdf(y, *shapes), below, 0, above, 1)

    def logcdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of at most x."""
        y, shapes, _, below, above = self._standard_point("logcdf", x, args, kwds)
        return _fill_outside(self._logcdf(y, *shapes), below, -inf, above, 0)

    def sf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of more than x, 1 − cdf."""
        y, shapes, _, below, above = self._standard_point("sf", x, args, kwds)
        return _fill_outside(self._sf(y, *shapes), below, 1, above, 0)

    def logsf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of more than x."""
        y, shapes, _, below, above = self._standard_point("logsf", x, args, kwds)
        return _fill_outside(self._logsf(y, *shapes), below, 0, above, -inf)

    def mean(self, *args: Any, **kwds: Any) -> TensorLike:
        """Return the mean."""
        _, shapes, loc, scale = self._parameters("mean", 0.0, args, kwds)
        return as_scalar(loc + scale * self._mean(*shapes))

    def var(self, *args: Any, **kwds: Any) -> TensorLike:
        """Return the variance."""
        _, shapes, _, scale = self._parameters("var", 0.0, args, kwds)
        return as_scalar(np.square(scale) * self._var(*shapes))

    def std(self, *args: IntoArray, **kwds: IntoArray) -> TensorLike:
        """Return the standard deviation."""
        return np.sqrt(self.var(*args, **kwds))


def _all(*conditions: IntoArray) -> AnyArray | bool:
    """Combine conditions by elementwise and."""
    out: Any = np.True_
    for condition in conditions:
        out = out & condition
    return out


def _fill_outside(out: object, below: object, left: float, above: object, right: float) -> TensorLike:
    """Replace a result below and above the support by constants."""
    return as_scalar(out if below is None else choose(below, left, choose(above, right, out)))


class Continuous(RandomVariable):
    """A continuous distribution. Subclasses define ``_logpdf(x, *shapes)`` and, if there are formulas, ``_cdf``, ``_ppf``, …"""

    _logpdf: StandardFormula = _no_formula("logpdf")
    _ppf: StandardFormula = _no_formula("ppf")
    _isf: StandardFormula = lambda self, q, *shapes: self._ppf(1 - q, *shapes)
    _entropy: StandardFormula = _no_formula("entropy")
    #: Drawn numbers as a differentiable function of the shape parameters.
    _reparameterized: StandardFormula = _no_formula("derivative of rvs by its shape parameters")

    def logpdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the density; −inf outside of the support."""
        y, shapes, scale, below, above = self._standard_point("logpdf", x, args, kwds)
        return _fill_outside(self._logpdf(y, *shapes) - np.log(scale), below, -inf, above, -inf)

    def pdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the density; 0 outside of the support."""
        y, shapes, scale, below, above = self._standard_point("pdf", x, args, kwds)
        return _fill_outside(np.exp(self._logpdf(y, *shapes)) / scale, below, 0, above, 0)

    def ppf(self, q: object, *args: object, **kwds: object) -> TensorLike:
        """Return the quantile of q, the inverse of the cdf."""
        return self._quantile("ppf", self._ppf, q, args, kwds)

    def isf(self, q: IntoArray, *args: object, **kwds: object) -> TensorLike:
        """Return the upper quantile of q, the inverse of the sf."""
        return self._quantile("isf", self._isf, q, args, kwds)

    def _quantile(self, method: str, inverse: Any, q: Any, args: Any, kwds: dict[str, Any]) -> Any:
        q, shapes, loc, scale = self._parameters(method, q, args, kwds)
        share = (q >= 0) & (q <= 1)
        with np.errstate(divide="ignore"):  # the quantiles of 0 and 1 may be infinite
            out = inverse(choose(~share & ~np.isnan(q), 0.5, q), *shapes) * scale + loc
        return as_scalar(choose(~share, nan, out))

    def median(self, *args: IntoArray, **kwds: IntoArray) -> Any:
        """Return the median."""
        return self.ppf(0.5, *args, **kwds)

    def entropy(self, *args: Any, **kwds: Any) -> Any:
        """Return the differential entropy, in nats."""
        _, shapes, _, scale = self._parameters("entropy", 0.0, args, kwds)
        return as_scalar(self._entropy(*shapes) + np.log(scale))

    def rvs(self, *args: Any, random_state: Seed = None, **kwds: Any) -> Any:
        """Draw random numbers, differentiable with respect to all parameters. The numbers for a seed are SciPy's.

        ``size`` is the shape of the result, by default that of the parameters. ``random_state`` is a seed, a NumPy
        generator or a ``chainrule.Generator``.
        """
        bound = self._bound("rvs", args, kwds, ("size",))
        size = bound.pop("size", None)
        loc, scale, *shapes = operands(
            f"{self.name}.rvs", [bound["loc"], bound["scale"], *(bound[name] for name in self.shapes)]
        )
        self._check_domain(self._valid(*shapes) & (scale >= 0))
        drawn = draw(self.name, shapes, size, random_state, loc, scale)
        if isinstance(drawn, np.ndarray):
            drawn = drawn.astype(dtype_of(loc), copy=False)
        if not without_derivatives(*shapes):
            drawn = self._reparameterized(drawn, *shapes)
        return as_scalar(drawn * scale + loc)


class Symmetric(Continuous):
    """A continuous distribution that is symmetric about loc. Its upper tail is the mirror image of the lower one."""

    _sf: StandardFormula = lambda self, x, *shapes: self._cdf(-x, *shapes)
    _logsf: StandardFormula = lambda self, x, *shapes: self._logcdf(-x, *shapes)
    _isf: StandardFormula = lambda self, q, *shapes: -self._ppf(q, *shapes)


class Discrete(RandomVariable):
    """A distribution of integers. Subclasses define ``_logpmf(k, *shapes)``. k and loc are not differentiable."""

    low = 0.0
    inner = 1.0
    _density = "_logpmf"
    _located = ("loc",)

    _logpmf: StandardFormula = _no_formula("logpmf")

    def _standard(self, method: str, x: AnyArray, loc: AnyArray, scale: AnyArray) -> AnyArray:
        y = strip_derivatives(x) - strip_derivatives(loc)
        return y if method == "logpmf" else np.floor(y)

    def logpmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of k; −inf for other values than integers of the support."""
        y, shapes, _, below, above = self._standard_point("logpmf", k, args, kwds)
        whole = np.floor(y) == y
        out = _fill_outside(self._logpmf(y, *shapes), below, -inf, above, -inf)
        return as_scalar(choose(~whole & ~np.isnan(y), -inf, out))

    def pmf(self, k: IntoArray, *args: object, **kwds: object) -> AnyArray:
        """Return the probability of k."""
        return np.exp(self.logpmf(k, *args, **kwds))

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> AnyArray:
        """Return the least k with cdf(k) ≥ q. Not differentiable."""
        return self._step("ppf", q, args, kwds)

    def isf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return the least k with sf(k) ≤ q. Not differentiable."""
        return self._step("isf", q, args, kwds)

    def _step(self, method: str, q: TensorLike, args: tuple[IntoArray, ...], kwds: Params) -> Any:
        bound = self._bound(method, args, kwds)
        parameters_given = operands(f"{self.name}.{method}", [q, *(bound[name] for name in (*self.shapes, "loc"))])
        return as_scalar(sc.steps(*np.broadcast_arrays(*parameters_given), name=self.name, method=method))

    def rvs(self, *args: Any, random_state: Seed = None, **kwds: Any) -> Any:
        """Draw random integers; those for a ``random_state`` are SciPy's. Not differentiable."""
        bound = self._bound("rvs", args, kwds, ("size",))
        size = bound.pop("size", None)
        parameters_given = [array_like(bound[name]) for name in (*self.shapes, "loc")]  # integers stay integers
        self._check_domain(self._valid(*parameters_given[:-1]))
        drawn = draw(self.name, parameters_given, size, random_state)
        types = [type(x) for x in parameters_given if isinstance(x, (Tensor, Array))]
        if not isinstance(drawn, np.ndarray) or not types:
            return as_scalar(drawn)
        return wrap(drawn) if Tensor in types else array_of(wrap(drawn))


class Frozen:
    """A distribution with fixed parameters; its methods take only the other arguments."""

    def __init__(self, dist: Any, args: tuple[IntoArray, ...], kwds: Params) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    def __repr__(self) -> str:
        parameters_given = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwds.items())]
        return f"chainrule.stats.{self.dist.name}({', '.join(parameters_given)})"

    def rvs(self, size: ShapeLike | None = None, random_state: Seed = None) -> AnyArray:
        """Draw random numbers of the shape ``size``, by default that of the parameters."""
        parameters_given = {} if size is None else {"size": size}
        return self.dist.rvs(*self.args, **self.kwds, **parameters_given, random_state=random_state)

    def __getattr__(self, name: str) -> AnyFunction:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self.dist, name)

        def call(*args: IntoArray, **kwds: IntoArray) -> AnyArray:
            if name not in _OF_POINTS:
                return method(*self.args, *args, **self.kwds, **kwds)
            first = next((key for key in ("x", "k", "q") if key in kwds), None)
            points = [kwds.pop(first)] if first and not args else args
            return method(*points, *self.args, **self.kwds, **kwds)

        call.__name__, call.__doc__ = name, method.__doc__
        return call


_OF_POINTS = frozenset({"pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"})
