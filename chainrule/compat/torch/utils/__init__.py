"""Private submodules of ``torch.utils`` that programs import."""
