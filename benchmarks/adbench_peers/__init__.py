"""A module for each way to differentiate the programs of `adbench_programs`, with `VERSION` and `WORKS`."""
