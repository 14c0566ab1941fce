"""What the transformations of functions and the Jacobians of tensors share: traces of one call, rows and columns."""
