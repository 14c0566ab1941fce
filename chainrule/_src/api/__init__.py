"""The public API of primitives: declarations, functions, ``Array``, tensors from data."""
