"""Python's own ``isinstance``, ``type``, ``tuple``, ``list`` and ``dict``: containers of Arrays are containers.

``isinstance`` and ``type`` answer for the value that an Array stands for.
"""

from __future__ import annotations

import builtins
from builtins import dict, list, tuple
from typing import Any

from chainrule.compat.autograd.tracing import getval
from chainrule.compat.autograd.extend import notrace_primitive

__all__ = ["DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]

DictBox = dict
SequenceBox = tuple


def isinstance(x: Any, classes: Any) -> bool:
    return builtins.isinstance(x, classes) or builtins.isinstance(getval(x), classes)


type = notrace_primitive(builtins.type)
