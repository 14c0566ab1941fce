"""Data: dtypes, promotion, sizes, devices, printing, arrays of other libraries, trees.

The modules depend on NumPy only, and on no tensor. ``libraries`` finds the ``Library`` of an array type, which
describes how Dask, CuPy, pydata/sparse or unyt differ from NumPy; each of these has a module that is imported with
its first array.
"""
