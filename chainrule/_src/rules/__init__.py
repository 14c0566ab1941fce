"""Primitives: declarations, and the rules that each kind of Jacobian derives."""
