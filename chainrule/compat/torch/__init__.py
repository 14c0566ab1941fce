"""PyTorch's private modules, and stubs of unsupported ones, which programs can import after ``install("torch")``."""
