"""The page of operators is up to date."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

TOOL = Path(__file__).parent.parent.parent / "tools" / "operators.py"


def test_the_page_of_operators_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("operators", TOOL)
    assert spec is not None and spec.loader is not None
    operators = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(operators)

    def without_numpy(text: str) -> list[str]:
        """Remove NumPy's names, which depend on its version."""
        return [re.sub(r", `np\.[\w.]+`", "", line) for line in text.splitlines()]

    for made, written in zip(without_numpy(operators.page()), without_numpy(operators.PAGE.read_text()), strict=True):
        assert made == written, "run python tools/operators.py"
