"""PyTorch's and NumPy's functions: they check arguments and apply primitives."""
