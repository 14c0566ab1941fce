"""Classes and files do not share names, but for those that the glossary gives a reason for."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "chainrule"
PAGE = (ROOT / "docs" / "author" / "glossary.md").read_text(encoding="utf-8")


def test_no_two_classes_share_a_name_without_a_reason() -> None:
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ClassDef):
                found[statement.name].add(path.relative_to(PACKAGE).as_posix())
    rows = re.findall(r"^\| `(\w+)` \| (`.*`) \| \S.*\|$", PAGE, re.MULTILINE)
    listed = {name: set(re.findall(r"`([^`]+)`", places)) for name, places in rows}
    assert {name: places for name, places in found.items() if len(places) > 1} == listed


def test_no_two_files_share_a_name_without_a_reason() -> None:
    found = Counter(path.stem for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__"))
    table = PAGE.split("Files share a name where")[1]
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"\|([^|]*)\|$", table, re.MULTILINE)))
    assert sorted(name for name, count in found.items() if count > 1) == sorted(listed)
