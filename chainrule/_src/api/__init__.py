"""From rows to what users call: declarations, functions, Array, tensors from data."""
