"""The allocator's settings; and, under PyTorch's names, backends that are not there, whose switches may be set."""

from contextlib import nullcontext as _nullcontext
from types import SimpleNamespace as _Switches
from typing import Any as _Any


def _absent() -> bool:
    """Return whether PyTorch's backend of this name is there: no."""
    return False


def _flags(**_options: _Any) -> _Any:
    """Return a block in which the backend has other settings, which change nothing here."""
    return _nullcontext()


cudnn = _Switches(
    is_available=_absent, enabled=False, benchmark=False, deterministic=True, allow_tf32=False, flags=_flags
)
cuda = _Switches(is_built=_absent, matmul=_Switches(allow_tf32=False))
mps = _Switches(is_available=_absent, is_built=_absent)
mkl = mkldnn = openmp = _Switches(is_available=_absent)
