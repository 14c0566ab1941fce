"""Sparse matrices with a fixed sparsity pattern and differentiable entries.

A :class:`SparseArray` holds a vector of entries (an array, an ``Array`` or a ``Tensor``) and a sparsity pattern. Derivatives
with respect to the entries have the same pattern. :func:`like` takes the pattern of one of SciPy's matrices. :func:`csr`,
:func:`coo` and SciPy's names (``csr_array``, ``coo_matrix`` ...) take SciPy's arguments. (Constant matrices do not need this
package: ``A @ u`` is differentiable for SciPy's matrices.)

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

from chainrule._src.api.public_modules import show
from chainrule.sparse.arrays import SparseArray, SparseMatrix, coo, csr, like
from chainrule.sparse.constructors import (
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

show(globals())
