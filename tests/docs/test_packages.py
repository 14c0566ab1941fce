"""Check the packages of chainrule/_src: no import cycles, no missing docstrings, and a diagram that agrees with the imports."""

from __future__ import annotations

import collections
import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("packages", ROOT / "tools" / "packages.py")
assert SPEC is not None and SPEC.loader is not None
packages = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(packages)

#: Cycles that include imports in functions, and the reason for each.
LATER: dict[frozenset[str], str] = {}
#: Packages that import from a higher-level package at first use, and the reason for each.
UP = {("compiling", "explaining"): "the display of a compiled function in a notebook"}


@pytest.mark.parametrize(
    "kinds, allowed",
    [(["loading"], {}), (["loading", "calling"], LATER), (["loading", "calling", "typing"], LATER)],
    ids=["when loaded", "in functions", "in annotations"],
)
def test_no_import_cycles(kinds: list[str], allowed: dict[frozenset[str], str]) -> None:
    assert {frozenset(cycle) for cycle in packages.cycles(packages.imports(*kinds))} == set(allowed)


def test_cycles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}
    assert packages.cycles(edges) == [{"b", "c"}]


def test_imports_of_every_kind_are_read() -> None:
    loading, calling, typing = (packages.imports(kind) for kind in ("loading", "calling", "typing"))
    assert "chainrule._src.tape.node" in loading["chainrule._src.tape.engine"]
    assert "chainrule._src.ops.sparse" in calling["chainrule._src.ops.array"]
    assert "chainrule._src.rules.primitive" in typing["chainrule._src.tape.node"]


def test_the_diagram_is_current() -> None:
    assert packages.DIAGRAM.read_text(encoding="utf-8") == packages.diagram(), "python tools/packages.py"


def test_the_diagram_has_a_dot_for_each_import() -> None:
    shapes = ElementTree.fromstring(packages.diagram()).iter()
    found = collections.Counter(shape.tag.removeprefix("{http://www.w3.org/2000/svg}") for shape in shapes)
    assert set(found) == {"svg", "title", "rect", "text", "circle"}, "browsers ignore unknown elements"
    assert found["circle"] == sum(map(len, packages.uses().values()))


def test_imports_from_higher_levels_have_a_reason() -> None:
    assert packages.upward_imports() == set(UP)


def test_every_package_is_described() -> None:
    guide = (ROOT / "chainrule" / "README.md").read_text(encoding="utf-8")
    for package in packages.package_order():
        assert packages._about(package), package
        assert f"`{package}" in guide, package


def test_every_c_file_is_described() -> None:
    guide = (ROOT / "chainrule" / "README.md").read_text(encoding="utf-8")
    files = {path.name for path in (ROOT / "chainrule" / "_src" / "native").glob("*.[ch]")}
    assert len(files) > 20
    assert set(re.findall(r"`(\w+\.[ch])`", guide)) == files


def test_paths_in_the_guide_exist() -> None:
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
