"""docs/compat.md states for every public name of PyTorch's modules whether it exists; this test checks the statements."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "compat.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (torch[\w.]*) → (chainrule[\w.]*)$\n(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(\w+)` \| (yes|different|not) \|(.*)\|$", re.MULTILINE)
ROWS = [
    (theirs, ours, name, verdict, why)
    for theirs, ours, body in SECTION.findall(PAGE)
    for name, verdict, why in ROW.findall(body)
]


def test_the_page_was_read():
    assert len({ours for _, ours, *_ in ROWS}) == 10 and len(ROWS) > 80


@pytest.mark.parametrize(("theirs", "ours", "name", "verdict", "why"), ROWS)
def test_row(theirs, ours, name, verdict, why):
    module = importlib.import_module(ours)
    assert hasattr(module, name) == (verdict != "not")
    assert why.strip() or verdict == "yes", "a difference needs its reason"


@pytest.mark.oracle
@pytest.mark.parametrize("theirs", sorted({theirs for theirs, *_ in ROWS}))
def test_no_public_name_is_left_out(theirs):
    pytest.importorskip("torch")
    names = getattr(importlib.import_module(theirs), "__all__", None)
    if names is not None:
        assert set(names) <= {name for module, _, name, *_ in ROWS if module == theirs}
