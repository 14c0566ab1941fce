"""The base of symmetric location-scale distributions.

``Normal``, ``Laplace`` and classes of ``from_stats`` inherit from it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from chainrule._src.tape.tensor import Tensor
from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.utils import broadcast_all


class LocationScale(Distribution):
    """The base of distributions that are symmetric about a location ``loc``, with a ``scale``."""

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """Return the expectation."""
        return self.loc

    mode = mean
