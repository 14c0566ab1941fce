"""Error messages and warnings, and the user's source lines and variable names in them.

All other packages call ``errors``, which contains every message by name: ``raise errors.matmul_shapes("matmul", x,
y)``. The messages are functions that return an exception. They are in modules by subject, which are imported at the
first use of one of their messages. Three modules read the user's program: ``source_locations`` finds the line,
``reading`` the expression, and ``names`` the variable of a value. They raise nothing: a message without a name is
better than another error.
"""
