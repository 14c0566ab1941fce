"""Error types of our own."""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError as _NumpyLinAlgError


class LinAlgError(RuntimeError, _NumpyLinAlgError):
    """A matrix that has no such decomposition or inverse; NumPy's error of that name and PyTorch's at once."""


class CheckpointError(RuntimeError):
    """A checkpointed function did something else when it was run again for the backward pass."""


class TorchFile(ValueError):
    """A file of PyTorch's own format, which only PyTorch reads."""


class NoForwardMode(NotImplementedError):
    """An operation that has no tangents; it may well have gradients."""


class GradcheckError(RuntimeError):
    """Raised by ``gradcheck`` and ``gradgradcheck``. ``mismatch`` has the numbers, where the reason is in them."""

    mismatch: Any = None  # a transforms.grad_checks.Mismatch
