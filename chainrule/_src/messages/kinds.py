"""Exception types that chainrule defines.

The modules of ``messages`` create the exceptions, and ``chainrule`` exports the types that users catch.
"""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError as _NumpyLinAlgError


class LinAlgError(RuntimeError, _NumpyLinAlgError):
    """A matrix has no decomposition or inverse of the requested kind.

    ``except`` clauses for NumPy's LinAlgError and for PyTorch's (a RuntimeError) both catch it.
    """

    __module__ = "chainrule.linalg"


class CheckpointError(RuntimeError):
    """A checkpointed function ran other operations when it was recomputed for the backward pass."""

    __module__ = "chainrule.utils.checkpoint"


class TorchFile(ValueError):
    """A file is in PyTorch's own format, which only PyTorch reads."""

    __module__ = "chainrule.serialization"


class NoForwardMode(NotImplementedError):
    """An operation has no JVP rule; it may have a VJP rule."""

    __module__ = "chainrule.autograd.forward_ad"


class NanFound(RuntimeError):
    """The RuntimeError of anomaly mode. Code that tries several strategies does not catch it."""

    def __reduce__(self) -> tuple[object, ...]:
        return RuntimeError, self.args


NanFound.__name__ = NanFound.__qualname__ = "RuntimeError"
NanFound.__module__ = "builtins"


class GradcheckError(RuntimeError):
    """``gradcheck`` or ``gradgradcheck`` failed. ``mismatch`` has the numbers, if the failure is a difference of numbers."""

    __module__ = "chainrule.autograd.gradcheck"

    def __init__(self, text: str = "", mismatch: Any = None) -> None:
        super().__init__(text)
        self.mismatch = mismatch  # a transforms.grad_checks.Mismatch
