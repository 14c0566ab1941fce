"""Cases of functions that NumPy got after 2.0 are left out where it has not got them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

#: what NumPy's functions learned later: a pattern of calls, and the first version with it
LATER = [
    (r"np\.clip\(\w+,(min|max)=", (2, 1)),
    (r"np\.trim_zeros\((x|.*axis=|.*'x')", (2, 2)),
]
VERSION = tuple(int(part) for part in np.__version__.split(".")[:2])


def missing(case: str) -> str:
    """What NumPy lacks for a case; '' if nothing."""
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
