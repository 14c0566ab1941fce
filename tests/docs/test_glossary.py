"""Classes, type names, and files have distinct names, except for those explained in the glossary."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "chainrule"
PAGE = (ROOT / "docs" / "author" / "glossary.md").read_text(encoding="utf-8")


def names_of_types(text: str) -> list[str]:
    """Return the classes of a file, and its assignments to names in CapWords style."""
    found = []
    for statement in ast.parse(text).body:
        match statement:
            case ast.ClassDef(name):
                found.append(name)
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                if re.fullmatch(r"_?[A-Z]\w*[a-z]\w*", name):
                    found.append(name)
    return found


def test_names_of_types_are_found() -> None:
    text = (
        "ndarray = x.ndarray\nSIZE = 3\nPlace = tuple[int, str]\nIndex: TypeAlias = int\nclass Step:\n    Inner = int"
    )
    assert names_of_types(text) == ["Place", "Index", "Step"]


def test_no_two_types_share_a_name_without_a_reason() -> None:
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for name in names_of_types(path.read_text(encoding="utf-8")):
            found[name].add(path.relative_to(PACKAGE).as_posix())
    rows = re.findall(r"^\| `(\w+)` \| (`.*`) \| \S.*\|$", PAGE, re.MULTILINE)
    listed = {name: set(re.findall(r"`([^`]+)`", places)) for name, places in rows}
    assert {name: places for name, places in found.items() if len(places) > 1} == listed


def test_no_two_files_share_a_name_without_a_reason() -> None:
    found = Counter(path.stem for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__"))
    table = PAGE.split("Files share a name where")[1]
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"\|([^|]*)\|$", table, re.MULTILINE)))
    assert sorted(name for name, count in found.items() if count > 1) == sorted(listed)
