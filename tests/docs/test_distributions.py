"""The guide's table of distributions is up to date."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("scipy")

TOOL = Path(__file__).parents[2] / "tools" / "docs" / "distributions.py"


def test_table() -> None:
    spec = importlib.util.spec_from_file_location("docs_distributions", TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.page() == tool.PAGE.read_text(encoding="utf-8"), "run: python tools/docs/distributions.py"
    assert tool.table().count("\n") > 30
