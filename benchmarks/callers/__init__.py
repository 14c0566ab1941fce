"""One module per way to call a gradient. Each offers `VERSION` and `WORKS`, as the modules of `peers` do."""
