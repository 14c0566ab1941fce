"""Array-likes that stand for data: dual numbers, batches, recordings, Jacobians."""
