"""A module for each library that computes Jacobians, with ``VERSION`` and ``WORKS``, like the modules of ``peers``."""
