"""The screenshots of explanations: each program of tools/explained.py has its own, on a page, and they are small."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "explained"


def test_every_program_has_its_pictures() -> None:
    tree = ast.parse((ROOT / "tools" / "explained.py").read_text(encoding="utf-8"))
    (programs,) = [node.value for node in tree.body if isinstance(node, ast.AnnAssign) and node.target.id == "PROGRAMS"]
    expected = {f"{name.id}-{screen}.webp" for name in programs.elts for screen in ("wide", "narrow")}
    assert {path.name for path in FOLDER.glob("*.webp")} == expected
    page = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert all(f"({name})" in page for name in expected)
    assert sum(path.stat().st_size for path in FOLDER.glob("*.webp")) < 1_500_000
