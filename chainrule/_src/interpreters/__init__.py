"""The array-likes of transformations: dual numbers, batches, traced values, Jacobian values.

``transforms``, ``jacobians`` and ``compiling`` open a level and wrap the arguments of a function in the array-like of the level.
``tape.dispatch`` calls the handler of the array-like for each operation on it.
"""
