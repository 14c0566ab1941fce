"""NumPy's own inner loops, called without Python in between.

The extension is there if a compiler was when the package was built; if not, ``AVAILABLE`` is False and ``why_not`` says
why. Importing this package loads it: only what is about to use it should.
"""

from chainrule.native.extension import (
    AVAILABLE,
    OWN,
    Runner,
    SharedUfunc,
    execute,
    first_broken,
    get_threads,
    loop,
    set_threads,
    why_not,
)

__all__ = [
    "AVAILABLE",
    "OWN",
    "Runner",
    "SharedUfunc",
    "execute",
    "first_broken",
    "get_threads",
    "loop",
    "set_threads",
    "why_not",
]
