"""The public API made from primitives: declarations, user functions, ``Array``, tensors from data."""
