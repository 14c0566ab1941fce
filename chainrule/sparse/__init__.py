"""Sparse matrices whose places are fixed, and whose entries can be differentiated.

A :class:`SparseArray` holds a vector of entries, an array, an ``Array`` or a ``Tensor``, and where they are. Derivatives with
respect to entries are at these places alone. :func:`like` takes the places of a matrix of SciPy's, :func:`csr` and :func:`coo`
take them as SciPy does, and so do its own names (``csr_array``, ``coo_matrix`` ...). (Constant matrices need none of this:
``A @ u`` is differentiable for SciPy's own.)

>>> import numpy as np
>>> import scipy.sparse
>>> import chainrule as cr
>>> A = scipy.sparse.csr_array([[2., 0., 1.], [0., 3., 0.], [1., 0., 4.]])
>>> energy = lambda data, u: u @ (cr.sparse.like(A, data) @ u)
>>> cr.grad(energy)(A.data, np.array([1., 2., 3.]))                # u uᵀ, where A has entries
array([1., 3., 4., 3., 9.])
>>> cr.grad(lambda data: np.sum(cr.sparse.like(A, data).solve(np.ones(3))))(A.data).round(3)
array([-0.184, -0.061, -0.111, -0.061, -0.02 ])
"""

from chainrule.sparse.arrays import SparseArray, SparseMatrix, coo, csr, like
from chainrule.sparse.making import (
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    diags,
    diags_array,
    eye_array,
)

__all__ = [
    "SparseArray",
    "SparseMatrix",
    "coo",
    "coo_array",
    "coo_matrix",
    "csc_array",
    "csc_matrix",
    "csr",
    "csr_array",
    "csr_matrix",
    "diags",
    "diags_array",
    "eye_array",
    "like",
]
