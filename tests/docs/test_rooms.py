"""The subpackages: no import cycles, docstrings for all, and an up-to-date diagram."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("rooms", ROOT / "tools" / "rooms.py")
assert SPEC is not None and SPEC.loader is not None
rooms = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(rooms)

#: Cycles through imports in functions, with reasons.
LATER: dict[frozenset[str], str] = {}
#: Subpackages that import from a higher one on first use, with reasons.
UP = {("compiling", "explaining"): "what a notebook shows of a compiled function"}
#: Cycles of annotations only, which do not exist at run time.
TYPES = {
    frozenset(
        f"chainrule._src.tape.{name}" for name in ("copying", "node", "tensor", "versions")
    ): "a Leaf has a Tensor",
    frozenset(
        f"chainrule._src.jacobians.{name}" for name in ("result", "solve")
    ): "a Jacobian's method is written beside it",
    frozenset(
        f"chainrule._src.interpreters.{name}" for name in ("known_arrays", "recorder", "traced")
    ): "a Traced says who records it",
} | {
    frozenset(
        f"chainrule._src.explaining.{name}" for name in names.split()
    ): "what is shown, and who shows it, say each other's types"
    for names in (
        "exports graph picture",
        "rules steps structure",
        "jacobian_page jacobian_terms jacobian_text",
        "check contributions explanation folds jacobian lessons page text to_dict",
    )
}


@pytest.mark.parametrize(
    "kinds, allowed",
    [(["loading"], {}), (["loading", "calling"], LATER), (["loading", "calling", "typing"], LATER | TYPES)],
    ids=["when loaded", "in functions", "in annotations"],
)
def test_no_circle_of_files(kinds: list[str], allowed: dict[frozenset[str], str]) -> None:
    assert {frozenset(circle) for circle in rooms.circles(rooms.imports(*kinds))} == set(allowed)


def test_circles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}
    assert rooms.circles(edges) == [{"b", "c"}]


def test_imports_of_every_kind_are_read() -> None:
    loading, calling, typing = (rooms.imports(kind) for kind in ("loading", "calling", "typing"))
    assert "chainrule._src.tape.node" in loading["chainrule._src.tape.engine"]
    assert "chainrule._src.ops.sparse" in calling["chainrule._src.ops.array"]
    assert "chainrule._src.tape.tensor" in typing["chainrule._src.tape.node"]


def test_the_picture_is_current() -> None:
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.picture(), "python tools/rooms.py"


def test_what_points_up_is_loaded_by_name_and_has_a_reason() -> None:
    assert rooms.upward() == set(UP)


def test_every_room_is_described() -> None:
    guide = (ROOT / "chainrule" / "README.md").read_text(encoding="utf-8")
    for room in rooms.floors():
        assert rooms._about(room), room
        assert f"`{room}" in guide, room


def test_what_the_guide_names_is_there() -> None:
    guide = (ROOT / "chainrule" / "README.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:_src|tape|data)/[\w/*]+(?:\.\w+)?)`", guide)
    assert len(paths) > 15
    for path in paths:
        full = path.replace("data/", "_src/explaining/data/", 1).replace("tape/", "_src/tape/", 1)
        assert any((ROOT / "chainrule").glob(full)), path
    named = re.findall(r"`(_?[A-Z][A-Z_]+)` (?:in|of) `(_src/[\w/]+\.py)`", guide)
    assert len(named) > 1
    for name, path in named:
        assert f"\n{name}" in (ROOT / "chainrule" / path).read_text(encoding="utf-8"), (name, path)
