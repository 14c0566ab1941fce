"""Every row for linear algebra through all checks of rulecheck."""

from __future__ import annotations

import pytest

import chainrule.linalg  # noqa: F401
from chainrule.core.primitive import Primitive
from chainrule.table import linalg
from chainrule.testing import rulecheck

ROWS = [row for row in vars(linalg).values() if isinstance(row, Primitive)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row):
    rulecheck(row)
