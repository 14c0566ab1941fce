"""Python's own ``isinstance``, ``type``, ``tuple``, ``list`` and ``dict``: containers of Arrays are containers.

``isinstance`` and ``type`` answer for the value that an Array stands for.
"""

from __future__ import annotations

import builtins
from typing import Any

from chainrule.compat.autograd.extend import notrace_primitive
from chainrule.compat.autograd.tracing import getval

__all__ = ["DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]

dict, list, tuple = builtins.dict, builtins.list, builtins.tuple
DictBox = dict
SequenceBox = tuple


def isinstance(x: Any, classes: Any) -> bool:
    return builtins.isinstance(getval(x), classes)


type = notrace_primitive(builtins.type)
