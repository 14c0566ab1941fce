"""pydata/sparse's arrays: what they refuse, and what they compute in their own way. Loaded when the first one arrives."""

from __future__ import annotations

from typing import Any

import numpy as np
import sparse

from chainrule._src.arrays.library import Library


def _refuses(error: Exception) -> bool:
    """What would be dense, or of two fill values, it refuses with the exceptions of bad arguments."""
    said = str(error)
    if type(error).__module__.startswith("numba"):
        return True
    return isinstance(error, ValueError) and any(words in said for words in ("dense", "fill", "SparseArray"))


def _sum(x: Any, **options: object) -> Any:
    """``np.sum``: of no elements it is 0, whatever the fill value."""
    return sparse.sum(x, **options) if x.size else sparse.COO.from_numpy(np.sum(np.zeros(x.shape, x.dtype), **options))


LIBRARY = Library(
    "sparse",
    lambda x: np.asarray(x.todense()),
    "{x}.todense()",
    by_keyword=True,
    refuses=_refuses,
    elementwise=sparse.elemwise,
    own={np.sum: _sum},
)
