"""Structured Jacobians: the entries that exist, at the cost of those entries."""
