"""``torch.version``: the PyTorch release whose API chainrule follows, without CUDA, ROCm or XPU."""

from chainrule.compat.torch.torch_version import TorchVersion

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__ = TorchVersion("2.13.0")
debug = False
cuda = hip = xpu = None
git_version = "Unknown"
