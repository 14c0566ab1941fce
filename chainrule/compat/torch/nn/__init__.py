"""Submodules of ``torch.nn`` that programs import by their location in PyTorch."""
