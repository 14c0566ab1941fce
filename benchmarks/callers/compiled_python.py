"""Ourselves: the same plan, walked by Python."""
