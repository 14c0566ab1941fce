"""A module for each way to call a gradient, with `VERSION` and `WORKS`, like the modules of `peers`."""
