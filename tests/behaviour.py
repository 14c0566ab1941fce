"""Behaviour that PyTorch documents: its tests are written once and run against both libraries.

A test module that takes its ``torch`` from here gets chainrule. With ``CHAINRULE_ORACLE=1`` (``make oracle`` runs those
modules so) it gets the real one, which keeps the tests from encoding a misunderstanding of ours.
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
    """Mark a test of what PyTorch does differently, or does not have."""
    return pytest.mark.skipif(ORACLE, reason=f"PyTorch differs: {why}")


def leaf(*values: float, dtype: Any = torch.float64) -> Any:
    """A vector that requires grad, in double precision."""
    return torch.tensor(values, dtype=dtype, requires_grad=True)
