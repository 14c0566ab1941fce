"""Budgets of lines, and of what says nothing to a type checker: more is refused, and no option raises one."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("size", Path(__file__).parents[2] / "tools" / "size.py")
assert SPEC is not None and SPEC.loader is not None
size = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(size)


_UNTYPED = "from typing import Any\nx: Any = lambda y: y  # type: ignore[misc]\n"
_TYPES = {"Any": {"_src/api/": 1}, "type: ignore": {"_src/api/": 1}}


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a room of 100 lines, two of them without types; one of its tests, and a page for the table."""
    for path, text in (("chainrule/_src/api/a.py", "x = 1\n" * 98 + _UNTYPED), ("tests/core/t.py", "x = 1\n" * 10)):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "page.md").write_text("<!-- size -->\n\n| all | 100 | 10 |\n\n<!-- /size -->\n")
    monkeypatch.setattr(size, "ROOT", tmp_path)
    for name, file in (("PAGE", "page.md"), ("BUDGETS", "size.json"), ("TYPES", "types.json")):
        monkeypatch.setattr(size, name, tmp_path / file)
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
    (house / "types.json").write_text(json.dumps(_TYPES))
    page = (house / "page.md").read_text()
    for option in ("--check", "--write"):
        assert size.main(option) == wrong
        said = capsys.readouterr().out
        assert ("_src/api/: 100 lines" in said and "let the commit say what the lines bought" in said) == wrong
    assert json.loads((house / "size.json").read_text()) == after
    assert ((house / "page.md").read_text() == page) == wrong


@pytest.mark.parametrize(
    "types, said",
    [
        ({"Any": {"_src/api/": 0}}, "_src/api/: 1 Any, and 0 is its budget: say what goes in and out"),
        ({"type: ignore": {}}, "_src/api/: 1 type: ignore, and 0 is its budget: mend the types"),
        ({"Any": {"_src/api/": 8}, "type: ignore": {"_src/api/": 8, "gone/": 1}}, ""),
    ],
)
def test_types_have_budgets_with_nothing_to_spare(
    house: Path, types: dict[str, dict[str, int]], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (house / "size.json").write_text('{"_src/api/": 100}')
    (house / "types.json").write_text(json.dumps(_TYPES | types))
    assert size.main("--write") == bool(said)
    assert said in capsys.readouterr().out
    assert json.loads((house / "types.json").read_text()) == (_TYPES | types if said else _TYPES)
