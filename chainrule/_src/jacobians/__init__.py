"""Structured Jacobians: with the entries that exist, at the cost of those entries."""
