"""Import all modules that declare operations of the top-level namespace."""

from chainrule._src.ops import (  # noqa: F401
    array,
    calculus,
    creation,
    dlpack,
    einsum,
    elementwise,
    floats,
    gathering,
    joining,
    lazy,
    matrices,
    memory,
    methods,
    numpy_functions,
    numpy_moves,
    numpy_reductions,
    ordering,
    polynomials,
    products,
    queries,
    reductions,
    scattering,
    searching,
    shaping,
    special,
    splitting,
    statistics,
)
from chainrule._src.ops.linalg import decompositions, factors, norms, solving  # noqa: F401
from chainrule._src.ops.linalg import numpy_functions as linalg_face  # noqa: F401
