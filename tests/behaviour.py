"""Select the library under test: chainrule, or PyTorch for the same tests.

Test modules that import ``torch`` from here test behaviour that PyTorch documents. They run with chainrule, and with
PyTorch if ``CHAINRULE_ORACLE=1`` is set (``make oracle``), which confirms that the tests describe PyTorch correctly.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest

ORACLE = os.environ.get("CHAINRULE_ORACLE", "") not in ("", "0")
OURS = not ORACLE

if ORACLE:
    import torch
else:
    import chainrule as torch

__all__ = ["ORACLE", "OURS", "differs", "leaf", "torch"]


def differs(why: str) -> Callable[[Any], Any]:
    """Mark a test of behaviour that differs from PyTorch or does not exist there."""
    return pytest.mark.skipif(ORACLE, reason=f"PyTorch differs: {why}")


def leaf(*values: float, dtype: Any = torch.float64) -> Any:
    """Return a vector that requires grad, in double precision."""
    return torch.tensor(values, dtype=dtype, requires_grad=True)
