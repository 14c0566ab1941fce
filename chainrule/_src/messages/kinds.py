"""Error types of our own."""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError as _NumpyLinAlgError


class LinAlgError(RuntimeError, _NumpyLinAlgError):
    """A matrix that has no such decomposition or inverse; NumPy's error of that name and PyTorch's at once."""

    __module__ = "chainrule.linalg"


class CheckpointError(RuntimeError):
    """A checkpointed function did something else when it was run again for the backward pass."""

    __module__ = "chainrule.utils.checkpoint"


class TorchFile(ValueError):
    """A file of PyTorch's own format, which only PyTorch reads."""

    __module__ = "chainrule.serialization"


class NoForwardMode(NotImplementedError):
    """An operation that has no tangents; it may well have gradients."""

    __module__ = "chainrule.autograd.forward_ad"


class NanFound(RuntimeError):
    """The RuntimeError of anomaly mode. No other strategy is tried after it."""

    def __reduce__(self) -> tuple[object, ...]:
        return RuntimeError, self.args


NanFound.__name__ = NanFound.__qualname__ = "RuntimeError"
NanFound.__module__ = "builtins"


class GradcheckError(RuntimeError):
    """Raised by ``gradcheck`` and ``gradgradcheck``. ``mismatch`` has the numbers, where the reason is in them."""

    __module__ = "chainrule.autograd.gradcheck"

    def __init__(self, text: str = "", mismatch: Any = None) -> None:
        super().__init__(text)
        self.mismatch = mismatch  # a transforms.grad_checks.Mismatch
