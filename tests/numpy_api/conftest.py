"""Skip cases of functions that NumPy added after 2.0 if the installed version lacks them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

#: additions to NumPy's functions: a pattern of calls, and the first version that supports it
LATER = [
    (r"np\.clip\(\w+,(min|max)=", (2, 1)),
    (r"np\.trim_zeros\((x|.*axis=|.*'x')", (2, 2)),
]
VERSION = tuple(int(part) for part in np.__version__.split(".")[:2])


def missing(case: str) -> str:
    """Return the missing requirement of a case, or ''."""
    for name in re.findall(r"\bnp\.((?:linalg\.|fft\.)?[a-z]\w*)\(", case):
        module, _, function = name.rpartition(".")
        if not hasattr(getattr(np, module) if module else np, function):
            return f"np.{name}"
    late = [version for pattern, version in LATER if version > VERSION and re.search(pattern, case)]
    return f"what NumPy can do since {'.'.join(map(str, late[0]))}" if late else ""


@pytest.fixture(autouse=True)
def _in_this_numpy(request: Any) -> None:
    for value in getattr(getattr(request.node, "callspec", None), "params", {}).values():
        if isinstance(value, str) and missing(value):
            pytest.skip(f"NumPy {np.__version__} lacks {missing(value)}")
