"""What distributions share: shapes of batch and event, checks of parameters and values, and draws.

A family declares what its parameters and values may be (``arg_constraints``, ``support``) and has formulas: ``log_prob``, and
``rsample`` where a draw is a function of the parameters that has a derivative, else ``sample``.
"""

from __future__ import annotations

from numbers import Number
from typing import Any, ClassVar

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.arrays.dtypes import default_dtype
from chainrule._src.arrays.size import Size
from chainrule._src.ops import creation
from chainrule._src.ops.shaping import broadcast_tensors
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions.constraints import Constraint


class Distribution:
    """A family with given parameters.

    Args:
        batch_shape: the shape of the parameters: how many distributions these are.
        event_shape: the shape of one draw of one of them.
        validate_args: whether parameters and values are looked at (``set_default_validate_args`` says so otherwise).

    Raises:
        ValueError: a parameter is out of its range.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    support: Constraint
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions look at parameters and values, unless ``validate_args`` says so."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args(): value is True or False, not {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                value = self.__dict__.get(name)
                if value is not None and not bool(constraint.check(value).all()):
                    raise ValueError(
                        f"Expected parameter {name} (Tensor of shape {tuple(value.shape)}) of distribution {self!r} to satisfy the "
                        f"constraint {constraint!r}, but found invalid values:\n{value}"
                    )

    def __getattr__(self, name: str) -> Any:
        """Return a parameter in its other form (probabilities, or their logits), computed where it is first asked for."""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def batch_shape(self) -> Size:
        """How many distributions these are."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """Return the shape of one draw."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """Return the expectation."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Tensor:
        """Return the most probable value."""
        raise NotImplementedError(f"{type(self).__name__} has no mode")

    @property
    def variance(self) -> Tensor:
        """Return the expectation of the squared distance from the mean."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """Return the square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: object = ()) -> Tensor:
        """Draws of the shape (``sample_shape``..., batch..., event...), without a derivative."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: object = ()) -> Tensor:
        """Draws that are functions of the parameters, with derivatives by them.

        Raises:
            NotImplementedError: of this family there are none.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.rsample: draws are no smooth function of its parameters: sample"
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density or probability at a value, summed over the axes of one event."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of at most the value."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Where ``cdf`` has the value."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def entropy(self) -> Tensor:
        """Return the expectation of ``-log_prob``, of each distribution of the batch."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values that a discrete variable has, along a new first axis."""
        raise NotImplementedError(f"{type(self).__name__} has no list of values")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def expand(self, batch_shape: Any) -> Distribution:
        """Return the same distributions, as many as the batch shape says."""
        names = [name for name in self.arg_constraints if name in self.__dict__]
        n = len(self._batch_shape)
        own = {name: getattr(self, name) for name in names}
        wide = {name: x.expand((*batch_shape, *x.shape[n:])) for name, x in own.items()}
        return self._kept(type(self)(**wide, validate_args=False))

    def _kept(self, other: Distribution) -> Distribution:
        """Return another distribution, which looks at values if this one does."""
        other._validate_args = self._validate_args
        return other

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: object) -> None:
        """Check a value that a formula is asked for.

        Raises:
            ValueError: it is no tensor, does not fit the shapes, or lies outside of the support.
        """
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError(
                f"The value argument to log_prob must be a Tensor, not {type(value).__name__}: torch.tensor(value)"
            )
        start = value.ndim - len(self._event_shape)
        if start < 0 or tuple(value.shape[start:]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        own = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(own), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {own}.")
        if not bool(self.support.check(value).all()):
            raise ValueError(
                f"Expected value argument (Tensor of shape {tuple(value.shape)}) to be within the support ({self.support!r}) of the "
                f"distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        parts = [name for name in self.arg_constraints if name in self.__dict__]
        shown = [(name, getattr(self, name)) for name in parts]
        return f"{type(self).__name__}({', '.join(f'{n}: {x if x.numel() == 1 else x.size()}' for n, x in shown)})"


def together(*values: object) -> list[Tensor]:
    """Parameters, as tensors of one shape; numbers in the dtype of the tensors among them.

    Raises:
        ValueError: one is neither a number nor a tensor.
    """
    for x in values:
        if not isinstance(x, (Tensor, Number)):
            raise ValueError(f"Input arguments must all be instances of Number or Tensor, not {type(x).__name__}")
    kind = next((x.dtype for x in values if isinstance(x, Tensor)), default_dtype())
    return list(broadcast_tensors(*(x if isinstance(x, Tensor) else creation.tensor(x, dtype=kind) for x in values)))
