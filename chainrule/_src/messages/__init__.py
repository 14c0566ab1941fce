"""Error messages and warnings, and the source locations and variable names in the user's program that they quote."""
