"""Budgets of lines: more than a budget is refused, and no option raises one."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("size", Path(__file__).parents[2] / "tools" / "size.py")
assert SPEC is not None and SPEC.loader is not None
size = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(size)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a room of 100 lines, one of its tests, and a page for the table."""
    for path, count in (("chainrule/_src/api/a.py", 100), ("tests/core/t.py", 10)):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("x = 1\n" * count)
    (tmp_path / "page.md").write_text("<!-- size -->\n\n| all | 100 | 10 |\n\n<!-- /size -->\n")
    for name, path in (("ROOT", tmp_path), ("PAGE", tmp_path / "page.md"), ("BUDGETS", tmp_path / "size.json")):
        monkeypatch.setattr(size, name, path)
    return tmp_path


@pytest.mark.parametrize(
    "budgets, wrong, after",
    [
        ({"_src/api/": 100}, False, {"_src/api/": 100}),
        ({"_src/api/": 500, "gone/": 7}, False, {"_src/api/": 102}),
        ({"_src/api/": 99}, True, {"_src/api/": 99}),
        ({}, True, {}),
    ],
)
def test_budgets_are_held_and_never_raised(
    house: Path, budgets: dict[str, int], wrong: bool, after: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    (house / "size.json").write_text(json.dumps(budgets))
    page = (house / "page.md").read_text()
    for option in ("--check", "--write"):
        assert size.main(option) == wrong
        said = capsys.readouterr().out
        assert ("_src/api/: 100 lines" in said and "let the commit say what the lines bought" in said) == wrong
    assert json.loads((house / "size.json").read_text()) == after
    assert ((house / "page.md").read_text() == page) == wrong
