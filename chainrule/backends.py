"""The settings of the allocator, and placeholders for PyTorch's backends, whose settings have no effect."""

from contextlib import nullcontext as _nullcontext
from types import SimpleNamespace as _Switches
from typing import Any as _Any


def _absent() -> bool:
    """Return whether the PyTorch backend is available: always False."""
    return False


def _flags(**_options: _Any) -> _Any:
    """Return a context manager for backend settings; it has no effect."""
    return _nullcontext()


cudnn = _Switches(
    is_available=_absent, enabled=False, benchmark=False, deterministic=True, allow_tf32=False, flags=_flags
)
cuda = _Switches(is_built=_absent, matmul=_Switches(allow_tf32=False))
mps = _Switches(is_available=_absent, is_built=_absent)
mkl = mkldnn = openmp = _Switches(is_available=_absent)
