"""NumPy's own inner loops, called without Python in between.

The extension is there if a compiler was when the package was built; if not, ``AVAILABLE`` is False and ``why_not`` says
why. It does three things: it runs the plans of ``compile`` (``Runner``), shares large ufuncs among threads (``SharedUfunc``), and does
ordinary eager operations and backward passes (``tape.eager`` connects it).
"""

from typing import Any

from chainrule._src.native import extension
from chainrule._src.native.extension import (
    AVAILABLE,
    OWN,
    Runner,
    SharedUfunc,
    execute,
    first_broken,
    get_threads,
    loop,
    orders,
    set_threads,
    use_lapack,
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
    "loops",
    "orders",
    "refuse",
    "set_threads",
    "use_lapack",
    "why_not",
]


def loops() -> Any:
    """The extension itself, for eager operations; None where it is not available."""
    return extension.LOOPS


def refuse(reason: str) -> None:
    """Say why eager operations do without the extension, though it is there."""
    global why_not
    why_not = reason
