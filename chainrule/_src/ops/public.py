"""Import the modules that declare operations of the top-level namespace, except the deferred ones (``ops.deferred``).

``chainrule`` imports this module.
"""

from chainrule._src.ops import (  # noqa: F401
    array,
    creation,
    elementwise,
    lazy,
    methods,
    products,
    reductions,
    shaping,
)
