"""Skip the tests without the extension, with the reason for its absence."""

from __future__ import annotations

import pytest

from chainrule._src import native


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if native.AVAILABLE:
        return
    skip = pytest.mark.skip(reason=f"chainrule._src.native: {native.why_not}")
    for item in items:
        if "/tests/native/" in item.path.as_posix() and item.path.name != "test_without.py":
            item.add_marker(skip)
