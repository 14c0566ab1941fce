"""Import the modules that declare operations of the top-level namespace, except the deferred ones (``ops.deferred``).

``chainrule`` imports this module.
"""

from chainrule._src.ops import (  # noqa: F401
    array,
    creation,
    einsum,
    elementwise,
    joining,
    lazy,
    matrices,
    methods,
    numpy_functions,
    numpy_moves,
    numpy_reductions,
    ordering,
    products,
    queries,
    reductions,
    shaping,
    splitting,
)
