"""The ``Library`` of pydata/sparse: operations it refuses, and its own implementations. Loaded with the first such array.

``libraries`` imports this module.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sparse

from chainrule._src.arrays.library import Library


def _is_refusal(error: Exception) -> bool:
    """Return whether an error means a refusal. For dense results and mixed fill values, sparse raises errors of bad arguments."""
    message = str(error)
    if type(error).__module__.startswith("numba"):
        return True
    return isinstance(error, ValueError) and any(words in message for words in ("dense", "fill", "SparseArray"))


def _sum(x: Any, **options: object) -> Any:
    """Compute ``np.sum``: without elements it is 0 for any fill value."""
    return sparse.sum(x, **options) if x.size else sparse.COO.from_numpy(np.sum(np.zeros(x.shape, x.dtype), **options))


LIBRARY = Library(
    "sparse",
    lambda x: np.asarray(x.todense()),
    "{x}.todense()",
    by_keyword=True,
    refuses=_is_refusal,
    elementwise=sparse.elemwise,
    own={np.sum: _sum},
)
