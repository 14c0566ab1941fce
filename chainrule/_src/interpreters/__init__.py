"""The array-likes of transformations: dual numbers, batches, traced values, Jacobian values."""
