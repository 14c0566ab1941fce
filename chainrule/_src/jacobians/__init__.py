"""Structured Jacobians: compute only the entries that can be nonzero."""
