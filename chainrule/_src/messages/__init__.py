"""Error messages and warnings, and the user's source lines and variable names in them."""
