"""The allocator's settings; and, under PyTorch's names, backends that are not there, whose switches may be set."""

from types import SimpleNamespace as _Switches


def _absent() -> bool:
    """Whether PyTorch's backend of this name is there: no."""
    return False


cudnn = _Switches(is_available=_absent, enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
cuda = _Switches(is_built=_absent, matmul=_Switches(allow_tf32=False))
mps = _Switches(is_available=_absent, is_built=_absent)
mkl = mkldnn = openmp = _Switches(is_available=_absent)
