"""The settings of the allocator, and placeholders for PyTorch's backends, whose settings have no effect."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from chainrule._src.api.public_modules import show

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]


def _absent() -> bool:
    """Return whether the PyTorch backend is available: always False."""
    return False


def _flags(**_options: Any) -> Any:
    """Return a context manager for backend settings; it has no effect."""
    return nullcontext()


cudnn = SimpleNamespace(
    is_available=_absent, enabled=False, benchmark=False, deterministic=True, allow_tf32=False, flags=_flags
)
cuda = SimpleNamespace(is_built=_absent, matmul=SimpleNamespace(allow_tf32=False))
mps = SimpleNamespace(is_available=_absent, is_built=_absent)
mkl = mkldnn = openmp = SimpleNamespace(is_available=_absent)

show(globals())
