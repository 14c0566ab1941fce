"""What tensors are made of, in PyTorch's words: dtypes and promotion, sizes, devices, and how values are printed."""
