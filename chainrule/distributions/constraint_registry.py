"""Registries of transforms from unconstrained values: ``biject_to`` and ``transform_to``.

>>> import chainrule as torch
>>> D = torch.distributions
>>> D.transform_to(D.constraints.positive)(torch.tensor([-1.0, 0.0]))
tensor([0.3679, 1.0000])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints as c
from chainrule.distributions import transforms as t

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A map from constraints to transforms whose codomain they are."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], t.Transform]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], t.Transform] | None = None) -> Any:
        """Register a factory, called with the constraint, for a class of constraints; without one, return a decorator.

        Raises:
            TypeError: ``constraint`` is neither a constraint nor a class of constraints.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, c.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, c.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: c.Constraint) -> t.Transform:
        """Return a transform onto a constraint.

        Raises:
            NotImplementedError: no transform is registered for the class of the constraint.
        """
        if type(constraint) not in self._registry:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints: register a transform for this class"
            )
        return self._registry[type(constraint)](constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(constraint: Any, factory: Callable[[Any], t.Transform]) -> None:
    biject_to.register(constraint, factory)
    transform_to.register(constraint, factory)


def _interval(constraint: Any) -> t.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if not isinstance(low, Tensor) and not isinstance(high, Tensor) and (low, high) == (0, 1):
        return t.SigmoidTransform()
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


def _above(constraint: Any) -> t.Transform:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.lower_bound, 1)])


_both(c.real, lambda constraint: t.identity_transform)
_both(c.positive, lambda constraint: t.ExpTransform() if constraint is c.positive else _above(constraint))
_both(c.nonnegative, lambda constraint: t.ExpTransform() if constraint is c.nonnegative else _above(constraint))
_both(c.less_than, lambda constraint: t.ComposeTransform([
    t.ExpTransform(), t.AffineTransform(constraint.upper_bound, -1)
]))  # fmt: skip
_both(c.interval, _interval)
_both(c.half_open_interval, _interval)
biject_to.register(c.simplex, lambda constraint: t.StickBreakingTransform())
transform_to.register(c.simplex, lambda constraint: t.SoftmaxTransform())
_both(c.lower_cholesky, lambda constraint: t.LowerCholeskyTransform())
_both(c.positive_definite, lambda constraint: t.PositiveDefiniteTransform())
_both(c.positive_semidefinite, lambda constraint: t.PositiveDefiniteTransform())
_both(c.corr_cholesky, lambda constraint: t.CorrCholeskyTransform())


def _register_combinations(onto: ConstraintRegistry) -> None:
    """Register the transforms onto combinations of constraints."""
    onto.register(c.independent, lambda constraint: t.IndependentTransform(
        onto(constraint.base_constraint), constraint.reinterpreted_batch_ndims
    ))  # fmt: skip
    onto.register(c.cat, lambda constraint: t.CatTransform(
        [onto(each) for each in constraint.cseq], constraint.dim, constraint.lengths
    ))  # fmt: skip
    onto.register(
        c.stack, lambda constraint: t.StackTransform([onto(each) for each in constraint.cseq], constraint.dim)
    )


_register_combinations(biject_to)
_register_combinations(transform_to)
