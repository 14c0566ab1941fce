"""Primitives: how an op is declared, and how its kind of Jacobian derives the missing rules."""
