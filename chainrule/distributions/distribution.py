"""The base class of distributions: batch and event shapes, validation of parameters and values, and sampling.

A subclass declares constraints for its parameters and values (``arg_constraints``, ``support``). It implements ``log_prob``,
and ``rsample`` if samples are differentiable functions of the parameters, else ``sample``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.arrays.size import Size
from chainrule._src.tape.tensor import Tensor
from chainrule.distributions.constraints import Constraint, is_dependent
from chainrule.distributions.utils import lazy_property

_PACKAGE = __name__.rpartition(".")[0]


class Distribution:
    """The base class of distributions.

    Args:
        batch_shape: the shape of the batch of distributions, that of the parameters.
        event_shape: the shape of one sample of one distribution.
        validate_args: whether to validate parameters and values (default: see ``set_default_validate_args``).

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
        """Set whether distributions validate parameters and values by default."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args(): value must be True or False, not {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                lazy = isinstance(getattr(type(self), name, None), lazy_property) and name not in vars(self)
                if lazy or is_dependent(constraint):
                    continue  # parameters that were not given are computed from another one
                value = getattr(self, name)
                if not bool(constraint.check(value).all()):
                    raise ValueError(
                        f"Expected parameter {name} (Tensor of shape {tuple(value.shape)}) of distribution {self!r} to satisfy the "
                        f"constraint {constraint!r}, but found invalid values:\n{value}"
                    )
        super().__init__()  # the other base of a subclass, such as nn.Module

    @property
    def batch_shape(self) -> Size:
        """Return the shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """Return the shape of one sample."""
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
        """Draw samples of the shape (``sample_shape``..., batch..., event...), without derivatives."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: object = ()) -> Tensor:
        """Draw samples that are differentiable with respect to the parameters.

        Raises:
            NotImplementedError: the distribution has no differentiable samples.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.rsample: samples are not differentiable in the parameters: call sample()"
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density or probability at a value, summed over the event axes."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the cumulative probability of a value."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the inverse of ``cdf``."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def entropy(self) -> Tensor:
        """Return the expectation of ``-log_prob`` for each distribution of the batch."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution, along a new first axis."""
        raise NotImplementedError(f"{type(self).__name__} has no enumerable support")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return the distribution expanded to a batch shape.

        Raises:
            NotImplementedError: the class defines its own ``__init__``, but not ``expand``.
        """
        new, n = self._copy(batch_shape, _instance), len(self._batch_shape)
        for name in {name for cls in type(self).__mro__ for name in getattr(cls, "arg_constraints", ())}:
            x = vars(self).get(name)
            if isinstance(x, Tensor):
                vars(new)[name] = x.expand((*batch_shape, *x.shape[n:]))
        return new

    def _copy(self, batch_shape: Any, _instance: Any) -> Any:
        """Return a copy with another batch shape, whose parameters :meth:`expand` expands."""
        defines = (cls for cls in type(self).__mro__ if "expand" in vars(cls) or cls.__module__.startswith(_PACKAGE))
        new = self._get_checked_instance(next(defines), _instance)
        vars(new).update(vars(self))
        new._batch_shape = Size(batch_shape)
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return the instance to fill in :meth:`expand`: the given one, or a new one of the same class."""
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define "
                "a custom .expand() method"
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: object) -> None:
        """Check a value before its probability is computed.

        Raises:
            ValueError: the value is not a tensor, has an incompatible shape, or is outside of the support.
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
