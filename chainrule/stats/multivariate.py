"""SciPy's distributions of vectors and matrices. Parameters are checked if their values are concrete.

``chainrule.stats`` exports an instance of each class.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, IntoArray, Seed, TensorLike
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.levels import STACK
from chainrule.stats.base import Frozen, NamedDistribution, inf, random_state_of, sc
from chainrule.stats.densities import LOG_2, LOG_2PI, LOG_PI
from chainrule.stats.operands import as_scalar, choose, concrete_values, known_true, operands, without_derivatives
from chainrule.stats.primitives import scipy_stats_method


class Multivariate(NamedDistribution):
    """The base of distributions of vectors or matrices. Methods take the parameters; a call with them freezes them."""

    _density = "logpdf"

    def __init__(self) -> None:
        self.name = type(self).__name__
        signature = inspect.signature(getattr(self, self._density))
        self.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """Return the frozen distribution."""
        return Frozen(self, args, kwds)


class ContinuousMultivariate(Multivariate):
    """A multivariate distribution with a density, exp of its ``logpdf``."""

    def pdf(self, x: IntoArray, *args: object, **kwds: object) -> Any:
        """Return the density at x."""
        return np.exp(self.logpdf(x, *args, **kwds))

    def logpdf(self, x: IntoArray, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the density at x."""
        raise NotImplementedError


class DiscreteMultivariate(Multivariate):
    """A multivariate distribution with a probability mass function, exp of its ``logpmf``."""

    _density = "logpmf"

    def pmf(self, x: IntoArray, *args: object, **kwds: object) -> Any:
        """Return the probability of x."""
        return np.exp(self.logpmf(x, *args, **kwds))

    def logpmf(self, x: IntoArray, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of x."""
        raise NotImplementedError


def _sampling_values(name: str, *parameters: Any) -> list[Any]:
    """Return the parameters' concrete values, for sampling with SciPy; raise inside ``vmap``."""
    trace_hooks.register_generator(None)
    values = [concrete_values(x) for x in parameters]
    if any(value is None for value in values) or any(level.size is not None for level in STACK.levels):
        raise RuntimeError(f"{name}.rvs cannot draw inside vmap: draw outside of it")
    return values


def _generator(random_state: Seed) -> Any:
    """Return SciPy's generator for a ``random_state``: NumPy's global one, a seeded one, or the given one."""
    if random_state is None:
        return np.random.mtrand._rand
    given = random_state_of(random_state)
    return np.random.RandomState(given) if isinstance(given, (int, np.integer)) else given


# -- elliptical distributions ------------------------------------------------------------------------------------------


def _located(name: str, x: Any, loc: Any, shape: Any) -> tuple[Any, Any]:
    """Return x − loc with the components along the last axis, and the matrix, interpreted as in SciPy."""
    shape = 1.0 if shape is None else shape
    if not hasattr(shape, "shape") and not isinstance(shape, (int, float, list, tuple)):
        raise TypeError(f"{name} takes its matrix as an array, not as {type(shape).__name__}: pass the array")
    x, shape, *location = operands(name, [x, shape] if loc is None else [x, shape, loc])
    if loc is None:
        dim = shape.shape[0] if np.ndim(shape) == 2 else 1
        loc = np.zeros(dim, x.dtype)
    else:
        loc = np.reshape(location[0], (1,)) if np.ndim(location[0]) == 0 else location[0]
        if np.ndim(loc) != 1:
            raise ValueError(f"{name}: the location must be a vector, not an array of shape {tuple(loc.shape)}")
        dim = loc.shape[0]
    if dim == 1 and np.size(shape) == 1:
        shape = np.reshape(shape, (1, 1))
    elif np.ndim(shape) < 2:
        shape = shape * np.eye(dim, dtype=shape.dtype)
    if shape.shape != (dim, dim):
        raise ValueError(
            f"{name}: a location of {dim} components needs a matrix of shape ({dim}, {dim}), not {tuple(shape.shape)}"
        )
    if dim == 1 and np.ndim(x) == 1:
        x = np.reshape(x, (-1, 1))
    return x - loc, _symmetric(name, shape)


def _symmetric(name: str, matrix: Any) -> AnyArray:
    """Check and symmetrize a matrix, so that its gradient is symmetric. (NumPy's factorizations read one triangle.)"""
    transposed = np.swapaxes(matrix, -1, -2)
    values = concrete_values(matrix - transposed)
    if values is not None and np.any(np.abs(values) > 1e-4 * np.max(np.abs(concrete_values(matrix)))):
        raise ValueError(f"{name}: the matrix must be symmetric")
    return 0.5 * (matrix + transposed)


def _factor(name: str, matrix: AnyArray) -> AnyArray | None:
    """Return the lower Cholesky factor of a positive definite matrix."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(f"{name}: the matrix must be symmetric and positive definite") from None


def _log_determinant(factor: Any) -> TensorLike:
    """Return log det of a matrix from its triangular factor."""
    return 2 * np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)


def _squared_distance(factor: Any, x: Any) -> AnyArray:
    """Return xᵀ (factor · factorᵀ)⁻¹ x along the last axis."""
    columns = np.transpose(np.reshape(x, (-1, factor.shape[-1])))
    return np.reshape(np.sum(np.square(np.linalg.solve(factor, columns)), axis=0), x.shape[:-1])


def _pseudoinverse(name: str, matrix: AnyArray) -> tuple[Any, Any, int]:
    """Return a root of the pseudoinverse, the log pseudodeterminant and the rank, with SciPy's tolerance for 0."""
    concrete = concrete_values(matrix)
    if concrete is None or getattr(matrix, "requires_grad", False):
        raise NotImplementedError(
            f"{name} with allow_singular=True is not differentiable in the matrix: pass a plain array"
        )
    values, vectors = np.linalg.eigh(concrete)
    small = 1e6 * np.finfo(np.float64).eps * np.max(np.abs(values))
    if np.min(values) < -small:
        raise ValueError(f"{name}: the matrix must be symmetric and positive semidefinite")
    nonzero = values > small
    return vectors[:, nonzero] / np.sqrt(values[nonzero]), np.sum(np.log(values[nonzero])), int(np.sum(nonzero))


class multivariate_normal(ContinuousMultivariate):
    """The multivariate normal distribution; vectors are along the last axis. cov is a matrix, its diagonal, or a number."""

    def logpdf(self, x: IntoArray, mean: IntoArray | None = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """Return the logarithm of the density at x, differentiable in x, the mean and the covariance.

        Raises:
            numpy.linalg.LinAlgError: cov is not positive definite. With ``allow_singular``, cov may be a singular plain
                array; the density is then on the subspace that it spans.
        """
        deviation, cov = _located("multivariate_normal.logpdf", x, mean, cov)
        if allow_singular:
            root, log_determinant, rank = _pseudoinverse("multivariate_normal.logpdf", cov)
            distance = np.sum(np.square(deviation @ root), axis=-1)
        else:
            factor, rank = _factor("multivariate_normal.logpdf", cov), cov.shape[-1]
            log_determinant, distance = _log_determinant(factor), _squared_distance(factor, deviation)
        return as_scalar(-0.5 * (rank * LOG_2PI + log_determinant + distance))

    def rvs(self, mean: IntoArray | None = None, cov: Any = 1, size: Any = 1, random_state: Any = None) -> Any:
        """Draw random vectors, differentiable in the mean and the covariance; those for a ``random_state`` are SciPy's.

        Raises:
            numpy.linalg.LinAlgError: cov is not positive definite.
            RuntimeError: called inside ``vmap``.
        """
        deviation, cov = _located("multivariate_normal.rvs", 0.0, mean, cov)
        mean = -deviation
        centre, matrix = _sampling_values("multivariate_normal", mean, cov)
        rvs = scipy_stats_method("multivariate_normal", "rvs")
        drawn = np.asarray(rvs(centre, matrix, size=size, random_state=random_state_of(random_state)), cov.dtype)
        if without_derivatives(mean, cov):
            return as_scalar(drawn)
        rows = np.reshape(drawn, (-1, centre.size)) - centre
        noise = np.linalg.solve(np.linalg.cholesky(matrix), rows.T)
        return np.reshape(np.transpose(_factor("multivariate_normal.rvs", cov) @ noise) + mean, drawn.shape)

    def entropy(self, mean: IntoArray | None = None, cov: Any = 1) -> Any:
        """Return the differential entropy, in nats."""
        deviation, cov = _located("multivariate_normal.entropy", 0.0, mean, cov)
        log_determinant = _log_determinant(_factor("multivariate_normal.entropy", cov))
        return as_scalar(0.5 * (deviation.shape[-1] * (LOG_2PI + 1) + log_determinant))


class multivariate_t(ContinuousMultivariate):
    """The multivariate Student's t distribution with a matrix ``shape``; vectors are along the last axis."""

    def logpdf(self, x: IntoArray, loc: IntoArray | None = None, shape: Any = 1, df: Any = 1) -> Any:
        """Return the logarithm of the density at x, differentiable in x and all parameters."""
        (df,) = operands("multivariate_t.logpdf", [df])
        if np.size(df) != 1 or known_true(~(df > 0)):
            raise ValueError(f"multivariate_t.logpdf: df must be one positive number, not {df}")
        deviation, shape = _located("multivariate_t.logpdf", x, loc, shape)
        if known_true(df == inf):
            return multivariate_normal().logpdf(deviation, None, shape)
        factor, dim = _factor("multivariate_t.logpdf", shape), shape.shape[-1]
        half = 0.5 * (df + dim)
        scale = sc.gammaln(half) - sc.gammaln(0.5 * df) - 0.5 * dim * np.log(math.pi * df)
        tail = half * np.log1p(_squared_distance(factor, deviation) / df)
        return as_scalar(scale - 0.5 * _log_determinant(factor) - tail)


# -- distributions of proportions --------------------------------------------------------------------------------------


class dirichlet(ContinuousMultivariate):
    """The Dirichlet distribution of vectors of proportions, along the first axis as in SciPy."""

    def logpdf(self, x: Any, alpha: Any) -> TensorLike | None:
        """Return the logarithm of the density at x. The last component of x may be omitted, as the sum is 1.

        Raises:
            ValueError: the elements of x are not proportions, or alpha is not positive.
        """
        x, alpha = operands("dirichlet.logpdf", [x, alpha])
        self._check(alpha)
        if x.shape[:1] == (alpha.shape[0] - 1,):
            x = np.concatenate([x, 1 - np.sum(x, axis=0, keepdims=True)])
        self._check_shares(x, alpha)
        return as_scalar(np.sum(sc.xlogy(alpha - 1, np.transpose(x)), axis=-1) - self._log_normaliser(alpha))

    def rvs(self, alpha: Any, size: Any = 1, random_state: Any = None) -> Any:
        """Draw random vectors of proportions, along the last axis as in SciPy, differentiable in alpha.

        They are gamma variables divided by their sum, with implicit derivatives in alpha. The vectors for a
        ``random_state`` are SciPy's, except for a ``numpy.random.Generator`` with all alpha < 0.1 (NumPy uses another method).

        Raises:
            RuntimeError: called inside ``vmap``.
        """
        (alpha,) = operands("dirichlet.rvs", [alpha])
        self._check(alpha)
        shape = () if size is None else tuple(np.atleast_1d(size).tolist())
        (concrete,) = _sampling_values("dirichlet", alpha)
        drawn = np.asarray(_generator(random_state).standard_gamma(concrete, (*shape, concrete.size)), alpha.dtype)
        weights = drawn if without_derivatives(alpha) else sc.gamma_sample(alpha, drawn)
        return weights / np.sum(weights, axis=-1, keepdims=True)

    def entropy(self, alpha: AnyArray) -> Any:
        """Return the differential entropy, in nats."""
        (alpha,) = operands("dirichlet.entropy", [alpha])
        self._check(alpha)
        total = np.sum(alpha, axis=-1)
        inside = (total - alpha.shape[0]) * sc.psi(total) - np.sum((alpha - 1) * sc.psi(alpha), axis=-1)
        return as_scalar(self._log_normaliser(alpha) + inside)

    def mean(self, alpha: Any) -> AnyArray:
        """Return the mean of each proportion."""
        (alpha,) = operands("dirichlet.mean", [alpha])
        self._check(alpha)
        return alpha / np.sum(alpha)

    def var(self, alpha: AnyArray) -> AnyArray:
        """Return the variance of each proportion."""
        (alpha,) = operands("dirichlet.var", [alpha])
        self._check(alpha)
        total = np.sum(alpha)
        return alpha * (total - alpha) / (np.square(total) * (total + 1))

    def _log_normaliser(self, alpha: AnyArray) -> AnyArray:
        return np.sum(sc.gammaln(alpha), axis=-1) - sc.gammaln(np.sum(alpha, axis=-1))

    def _check(self, alpha: AnyArray) -> None:
        if np.ndim(alpha) != 1:
            raise ValueError(f"dirichlet: alpha must be a vector, not an array of shape {np.shape(alpha)}")
        if known_true(~np.all(alpha > 0)):
            raise ValueError("dirichlet: all elements of alpha must be greater than 0")

    def _check_shares(self, x: Any, alpha: Any) -> None:
        if x.shape[:1] != alpha.shape or np.ndim(x) > 2:
            raise ValueError(
                f"dirichlet: the first axis of x must have the length of alpha, or one less; the shapes are "
                f"{x.shape} and {alpha.shape}"
            )
        concrete, powers = concrete_values(x), concrete_values(alpha)
        if concrete is None or powers is None:
            return
        if concrete.size and (concrete.min() < 0 or concrete.max() > 1):
            raise ValueError("dirichlet: each element of x must be between 0 and 1")
        if np.any((concrete.T == 0) & (powers < 1)):
            raise ValueError("dirichlet: an element of x with alpha less than 1 is 0, where the density is infinite")
        if np.any(np.abs(concrete.sum(0) - 1) > (1e-9 if concrete.dtype == np.float64 else 1e-5)):
            raise ValueError(f"dirichlet: the elements of x must add up to 1, not to {concrete.sum(0)}")


class multinomial(DiscreteMultivariate):
    """The multinomial distribution: the counts (last axis) of outcomes with probabilities p in n trials."""

    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """Return the logarithm of the probability of the counts x; −inf if x are not counts with the sum n.

        x and n are not differentiable.

        Raises:
            ValueError: the probabilities do not add up to 1.
        """
        x, n, p = operands("multinomial.logpmf", [x, n, p])
        total = concrete_values(p)
        if total is not None and np.any(np.abs(total.sum(-1) - 1) > 1e-9):
            raise ValueError(f"multinomial: the probabilities must add up to 1, not to {total.sum(-1)}")
        possible = np.all((x >= 0) & (np.floor(x) == x), axis=-1) & (np.sum(x, axis=-1) == n)
        counts = choose(~(x >= 0), 0, np.floor(x))
        out = sc.gammaln(np.floor(n) + 1) + np.sum(sc.xlogy(counts, p) - sc.gammaln(counts + 1), axis=-1)
        valid = np.all((p >= 0) & (p <= 1), axis=-1) & (n >= 0)
        return as_scalar(choose(~valid, np.nan, choose(~possible, -inf, out)))


# -- distributions of matrices -----------------------------------------------------------------------------------------


class wishart(ContinuousMultivariate):
    """The Wishart distribution of positive definite matrices."""

    def logpdf(self, x: Any, df: Any, scale: Any) -> Any:
        """Return the logarithm of the density at the matrix x; several matrices are stacked along the last axis, as in SciPy.

        Raises:
            numpy.linalg.LinAlgError: x or scale is not positive definite.
            ValueError: df is not greater than the number of rows less 1.
        """
        x, df, scale = operands("wishart.logpdf", [x, df, scale])
        scale = scale * np.eye(1) if np.ndim(scale) == 0 else scale
        dim = scale.shape[-1]
        x = np.reshape(x, (1, 1, *x.shape)) if np.ndim(x) < 2 and dim == 1 else x
        matrices = np.moveaxis(x, -1, 0) if np.ndim(x) == 3 else x
        if scale.shape != (dim, dim) or matrices.shape[-2:] != (dim, dim):
            raise ValueError(
                f"wishart: x and scale must be square matrices of one size, not of shapes {x.shape} and {scale.shape}"
            )
        if known_true(~(df > dim - 1)):
            raise ValueError(f"wishart: df must be greater than {dim - 1}, the number of rows less 1")
        scale, matrices = _symmetric("wishart.logpdf", scale), _symmetric("wishart.logpdf", matrices)
        factor = _factor("wishart.logpdf", scale)
        log_determinant = _log_determinant(_factor("wishart.logpdf", matrices))
        trace = np.trace(np.linalg.solve(scale, matrices), axis1=-2, axis2=-1)
        normaliser = 0.5 * df * (dim * LOG_2 + _log_determinant(factor)) + _log_multigamma(0.5 * df, dim)
        return as_scalar(0.5 * (df - dim - 1) * log_determinant - 0.5 * trace - normaliser)


def _log_multigamma(a: AnyArray, dim: int) -> Any:
    """Return the logarithm of the multivariate gamma function (DLMF 35.3.4)."""
    return 0.25 * dim * (dim - 1) * LOG_PI + sum(sc.gammaln(a - 0.5 * j) for j in range(dim))
