"""Data: dtypes, promotion, sizes, devices, printing, arrays of other libraries, trees.

The modules depend on NumPy only, and on no tensor. ``libraries`` returns the ``Library`` of an array type, which describes the differences
of Dask, CuPy, pydata/sparse or unyt from NumPy. Each of these has a module that is imported with its first array.
"""
