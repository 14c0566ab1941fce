"""PyTorch's and NumPy's functions: they check their arguments and apply primitives."""
