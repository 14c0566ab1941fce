"""Where in the user's program an operation was called: each node notes a code object and an instruction in it.

Two references cost next to nothing. The line and the expression are worked out when a message asks for them.
"""

from __future__ import annotations

import os
from types import FrameType
from typing import Any

import numpy as np

from chainrule.errors.words import PACKAGE

_INTERNAL = (PACKAGE, os.path.dirname(os.path.abspath(np.__file__)) + os.sep)
USER_FILES: set[str] = set()  # the files of the user's that were met
_INTERNAL_FILES: set[str] = set()  # those of this package and NumPy


def note_frame(node: Any, frame: FrameType | None) -> None:
    """Note in ``node`` the innermost frame of the user's, from ``frame`` outward."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file in USER_FILES:
            node.code = frame.f_code
            node.lasti = frame.f_lasti
            return
        if file in _INTERNAL_FILES:
            frame = frame.f_back
        else:
            (_INTERNAL_FILES if file.startswith(_INTERNAL) else USER_FILES).add(file)
    node.code, node.lasti = None, 0
