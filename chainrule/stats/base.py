"""What distributions share: SciPy's signatures, location and scale, the edges of the support, frozen parameters.

A distribution is declared once, in its standard form, by formulas in NumPy and ``scipy.special`` that carry nan through. They
are only evaluated at finite points of the support: elsewhere a point inside stands in, so that neither a value nor a
derivative of what is not chosen can be seen. From ``_logpdf`` and ``_cdf`` the other methods follow, unless a distribution
has a better formula.
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
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.protocol import ArrayLike, detached
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule.stats.operands import array_like, certain, choose, finished, operands, plain, values_of
from chainrule.stats.rows import functions, in_scipy_stats

#: SciPy's special functions, and ours beside them, of whatever carries derivatives.
sc: Any = SimpleNamespace(**(NAMES | functions))
inf, nan = np.inf, np.nan
DEFAULTS = {"loc": 0, "scale": 1}


# -- random numbers ----------------------------------------------------------------------------------------------------


def draw(name: str, parameters: Any, size: Any, random_state: Seed, *others: Any) -> AnyArray | None:
    """Numbers that SciPy draws from one of its distributions, of the size that parameters (and others) ask for.

    Raises:
        ValueError: a parameter is out of its range, or ``size`` is none that the parameters broadcast to.
        RuntimeError: a parameter has no one value to draw with, or the numbers are drawn inside ``vmap``.
    """
    values = [values_of(x) for x in parameters]
    if LOCAL.recorder is not None:
        LOCAL.recorder.drawing_from(None)  # which says that this program cannot be recorded
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
    rvs, state = in_scipy_stats(name, "rvs"), random_state_of(random_state)
    drawn = _drawn(shape, lambda shape: np.asarray(rvs(*values, size=shape, random_state=state)))
    return array_of(wrap(drawn)) if isinstance(drawn, ArrayLike) else drawn


def random_state_of(x: object) -> Any:
    """Return a seed or a generator, as SciPy takes it."""
    return x._rng if isinstance(x, Generator) else x


# -- distributions -----------------------------------------------------------------------------------------------------


class Named:
    """A distribution by SciPy's name, which is its class's: how it prints, and what it says of methods that it lacks."""

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


#: what a distribution computes of a point of its standard form, and of its shape parameters
StandardFormula: TypeAlias = Callable[..., Any]


def _missing(method: str) -> AnyFunction:
    """Return the formula of a distribution that has none."""

    def formula(self: RandomVariable, *args: object) -> Any:
        raise NotImplementedError(
            f"chainrule.stats.{self.name} has no {method}: no formula for it has derivatives by all parameters. "
            f"scipy.stats.{self.name}.{method} computes it for plain arrays"
        )

    return formula


class RandomVariable(Named):
    """A distribution of SciPy's with gradients by the point and by all parameters. See the modules of its two kinds."""

    #: the ends of the support in the standard form, whether the formulas hold at the lower one, and a point inside
    low: Any = -inf
    high: Any = inf
    closed = True
    inner = 0.5
    #: what is looked up for the names of the shape parameters, and whether there is a scale
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
        """Return the distribution with its parameters fixed: ``norm(loc, scale).logpdf(x)``."""
        self._bound("", args, kwds)
        return Frozen(self, args, kwds)

    # What a distribution may say of itself, beside its formulas.

    #: whether the shape parameters are in their domain: by default, positive
    _valid: StandardFormula = lambda self, *shapes: _all(*(shape > 0 for shape in shapes))
    #: the ends of the support, and a point of it
    _ends: StandardFormula = lambda self, *shapes: (self.low, self.high)
    _inner: StandardFormula = lambda self, *shapes: self.inner

    _cdf: StandardFormula = _missing("cdf")
    _sf: StandardFormula = lambda self, x, *shapes: 1 - self._cdf(x, *shapes)
    _logcdf: StandardFormula = lambda self, x, *shapes: log_of_share(self._cdf(x, *shapes), self._sf(x, *shapes))
    _logsf: StandardFormula = lambda self, x, *shapes: log_of_share(self._sf(x, *shapes), self._cdf(x, *shapes))
    _mean: StandardFormula = _missing("mean")
    _var: StandardFormula = _missing("var")

    # Arguments

    def _bound(self, method: str, args: tuple[IntoArray, ...], kwds: Params, also: tuple[str, ...] = ()) -> Params:
        """Arguments by their names, with SciPy's defaults."""
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
        """Return x, the shapes, loc and scale as arrays; x is nan where a parameter is invalid."""
        bound = self._bound(method, args, kwds)
        point, loc, scale, *shapes = operands(
            f"{self.name}.{method}", [x, bound["loc"], bound["scale"], *(bound[name] for name in self.shapes)]
        )
        valid = self._valid(*shapes) & (scale > 0)
        if not certain(valid):
            point, scale = np.where(valid, point, nan), np.where(valid, scale, nan)
            shapes = [np.where(valid, shape, nan) for shape in shapes]
        return point, shapes, loc, scale

    def _at(
        self, method: str, x: IntoArray, args: tuple[IntoArray, ...], kwds: Params
    ) -> tuple[Any, list[Any], Any, Any, Any]:
        """Return a point of the standard form, made one inside where x is not; shapes, scale; where x is below, and above."""
        point, shapes, loc, scale = self._parameters(method, x, args, kwds)
        y = self._standard(method, point, loc, scale)
        low, high = self._ends(*shapes)
        inside = ((y >= low) if self.closed else (y > low)) & (y <= high) & np.isfinite(y)
        if certain(inside):
            return y, shapes, scale, None, None
        below = ~inside & (y <= low)
        above = ~inside & (y > low)
        return choose(below | above, self._inner(*shapes), y), shapes, scale, below, above

    def _standard(self, method: str, x: AnyArray, loc: AnyArray, scale: AnyArray) -> AnyArray:
        return (x - loc) / scale

    def _check_domain(self, valid: AnyArray) -> None:
        if certain(~np.all(valid)):
            raise ValueError(f"{self.name}.rvs: a parameter is out of its range")

    # What both kinds have

    def cdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of at most x."""
        y, shapes, _, below, above = self._at("cdf", x, args, kwds)
        return _with_ends(self._cdf(y, *shapes), below, 0, above, 1)

    def logcdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of at most x."""
        y, shapes, _, below, above = self._at("logcdf", x, args, kwds)
        return _with_ends(self._logcdf(y, *shapes), below, -inf, above, 0)

    def sf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of more than x, 1 − cdf."""
        y, shapes, _, below, above = self._at("sf", x, args, kwds)
        return _with_ends(self._sf(y, *shapes), below, 1, above, 0)

    def logsf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of more than x."""
        y, shapes, _, below, above = self._at("logsf", x, args, kwds)
        return _with_ends(self._logsf(y, *shapes), below, 0, above, -inf)

    def mean(self, *args: Any, **kwds: Any) -> TensorLike:
        """Return the mean."""
        _, shapes, loc, scale = self._parameters("mean", 0.0, args, kwds)
        return finished(loc + scale * self._mean(*shapes))

    def var(self, *args: Any, **kwds: Any) -> TensorLike:
        """Return the variance."""
        _, shapes, _, scale = self._parameters("var", 0.0, args, kwds)
        return finished(np.square(scale) * self._var(*shapes))

    def std(self, *args: IntoArray, **kwds: IntoArray) -> TensorLike:
        """Return the standard deviation."""
        return np.sqrt(self.var(*args, **kwds))


def _all(*conditions: IntoArray) -> AnyArray | bool:
    """Return whether all conditions hold, element by element."""
    out: Any = np.True_
    for condition in conditions:
        out = out & condition
    return out


def _with_ends(out: object, below: object, left: float, above: object, right: float) -> TensorLike:
    """Return a result with what it is below and above the support."""
    return finished(out if below is None else choose(below, left, choose(above, right, out)))


class Continuous(RandomVariable):
    """A continuous distribution: a subclass gives ``_logpdf(x, *shapes)``, and what it has of ``_cdf``, ``_ppf``, …"""

    _logpdf: StandardFormula = _missing("logpdf")
    _ppf: StandardFormula = _missing("ppf")
    _isf: StandardFormula = lambda self, q, *shapes: self._ppf(1 - q, *shapes)
    _entropy: StandardFormula = _missing("entropy")
    #: drawn numbers as functions of the shape parameters
    _resampled: StandardFormula = _missing("derivative of rvs by its shape parameters")

    def logpdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the density; −inf outside of the support."""
        y, shapes, scale, below, above = self._at("logpdf", x, args, kwds)
        return _with_ends(self._logpdf(y, *shapes) - np.log(scale), below, -inf, above, -inf)

    def pdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the density; 0 outside of the support."""
        y, shapes, scale, below, above = self._at("pdf", x, args, kwds)
        return _with_ends(np.exp(self._logpdf(y, *shapes)) / scale, below, 0, above, 0)

    def ppf(self, q: object, *args: object, **kwds: object) -> TensorLike:
        """Return the point below which the share q lies: the inverse of the cdf."""
        return self._quantile("ppf", self._ppf, q, args, kwds)

    def isf(self, q: IntoArray, *args: object, **kwds: object) -> TensorLike:
        """Return the point above which the share q lies: the inverse of the sf."""
        return self._quantile("isf", self._isf, q, args, kwds)

    def _quantile(self, method: str, inverse: Any, q: Any, args: Any, kwds: dict[str, Any]) -> Any:
        q, shapes, loc, scale = self._parameters(method, q, args, kwds)
        share = (q >= 0) & (q <= 1)
        with np.errstate(divide="ignore"):  # 0 and 1 have the ends of the support, which may be infinite
            out = inverse(choose(~share & ~np.isnan(q), 0.5, q), *shapes) * scale + loc
        return finished(choose(~share, nan, out))

    def median(self, *args: IntoArray, **kwds: IntoArray) -> Any:
        """Return the median."""
        return self.ppf(0.5, *args, **kwds)

    def entropy(self, *args: Any, **kwds: Any) -> Any:
        """Return the differential entropy, in nats."""
        _, shapes, _, scale = self._parameters("entropy", 0.0, args, kwds)
        return finished(self._entropy(*shapes) + np.log(scale))

    def rvs(self, *args: Any, random_state: Seed = None, **kwds: Any) -> Any:
        """Random numbers, which are SciPy's for a ``random_state``, and have derivatives by all parameters.

        ``size`` is the shape of the result; without it, that of the parameters. ``random_state`` is a seed, a generator of
        NumPy's or a ``chainrule.Generator``.
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
        if not plain(*shapes):
            drawn = self._resampled(drawn, *shapes)
        return finished(drawn * scale + loc)


class Discrete(RandomVariable):
    """A distribution of whole numbers: a subclass gives ``_logpmf(k, *shapes)``. There is no derivative by k and by loc."""

    low = 0.0
    inner = 1.0
    _density = "_logpmf"
    _located = ("loc",)

    _logpmf: StandardFormula = _missing("logpmf")

    def _standard(self, method: str, x: AnyArray, loc: AnyArray, scale: AnyArray) -> AnyArray:
        y = detached(x) - detached(loc)
        return y if method == "logpmf" else np.floor(y)

    def logpmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of k; −inf for what is not a whole number of the support."""
        y, shapes, _, below, above = self._at("logpmf", k, args, kwds)
        whole = np.floor(y) == y
        out = _with_ends(self._logpmf(y, *shapes), below, -inf, above, -inf)
        return finished(choose(~whole & ~np.isnan(y), -inf, out))

    def pmf(self, k: IntoArray, *args: object, **kwds: object) -> AnyArray:
        """Return the probability of k."""
        return np.exp(self.logpmf(k, *args, **kwds))

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> AnyArray:
        """Return the least k of which the cdf is at least q. There are no derivatives."""
        return self._step("ppf", q, args, kwds)

    def isf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return the least k of which the sf is at most q. There are no derivatives."""
        return self._step("isf", q, args, kwds)

    def _step(self, method: str, q: TensorLike, args: tuple[IntoArray, ...], kwds: Params) -> Any:
        bound = self._bound(method, args, kwds)
        given = operands(f"{self.name}.{method}", [q, *(bound[name] for name in (*self.shapes, "loc"))])
        return finished(sc.steps(*np.broadcast_arrays(*given), name=self.name, method=method))

    def rvs(self, *args: Any, random_state: Seed = None, **kwds: Any) -> Any:
        """Random whole numbers, SciPy's for a ``random_state``. There are no derivatives."""
        bound = self._bound("rvs", args, kwds, ("size",))
        size = bound.pop("size", None)
        given = [array_like(bound[name]) for name in (*self.shapes, "loc")]  # whole numbers are to stay such
        self._check_domain(self._valid(*given[:-1]))
        drawn = draw(self.name, given, size, random_state)
        faces = [type(x) for x in given if isinstance(x, (Tensor, Array))]
        if not isinstance(drawn, np.ndarray) or not faces:
            return finished(drawn)
        return wrap(drawn) if Tensor in faces else array_of(wrap(drawn))


class Frozen:
    """A distribution whose parameters are fixed: its methods without them."""

    def __init__(self, dist: Any, args: tuple[IntoArray, ...], kwds: Params) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    def __repr__(self) -> str:
        given = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwds.items())]
        return f"chainrule.stats.{self.dist.name}({', '.join(given)})"

    def rvs(self, size: ShapeLike | None = None, random_state: Seed = None) -> AnyArray:
        """Random numbers, of the parameters' shape or of ``size``."""
        given = {} if size is None else {"size": size}
        return self.dist.rvs(*self.args, **self.kwds, **given, random_state=random_state)

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
