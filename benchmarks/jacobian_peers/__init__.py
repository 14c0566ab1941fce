"""One module per library that computes Jacobians. Each offers ``VERSION`` and ``WORKS``, as the modules of ``peers`` do."""
