"""Run every Python block of README.md and docs/, page by page, with ``tools/docs/blocks.py``."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import chainrule as cr
from chainrule._src.compiling import policy
from chainrule.explaining import Explanation

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("docs_blocks", ROOT / "tools" / "docs" / "blocks.py")
assert _SPEC is not None and _SPEC.loader is not None
blocks = importlib.util.module_from_spec(_SPEC)
sys.modules["docs_blocks"] = blocks
_SPEC.loader.exec_module(blocks)

PAGES = blocks.pages()
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
WITH_CODE = [page for page in PAGES if blocks.blocks(TEXTS[page])]
OTHERS = sorted(
    {(page, blocks.library(block)) for page in PAGES for block in blocks.blocks(TEXTS[page]) if block.kind == "other"}
)


def short(value: object) -> str:
    return value.name if isinstance(value, Path) else str(value)


@pytest.mark.parametrize("document", WITH_CODE, ids=short)
def test_page(document: Path) -> None:
    if "<!-- native -->" in TEXTS[document] and cr.compile.executor != "native":
        pytest.skip("it shows plans of the extension, which is not there")
    with blocks.surroundings():
        _, found = blocks.run(TEXTS[document], document.name)
    for block in found:
        if block.kind == "picture":
            assert block.value.to_svg().startswith("<svg")
        elif block.kind == "explained":
            if isinstance(block.value, Explanation):
                assert block.value.check(), block.source
            made = block.value.to_html() if hasattr(block.value, "to_html") else block.value._repr_html_()
            assert made.lstrip().lower().startswith(("<!doctype html>", "<div"))


def test_counts_of_traces_do_not_depend_on_the_speed_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the page about compile with traces that use up the budget of every function."""
    record = policy.TraceBudget.record_trace

    def slow(budget: policy.TraceBudget, seconds: float, kind: int | None) -> None:
        record(budget, seconds if budget.max_slowdown is None else 10.0, kind)

    monkeypatch.setattr(policy.TraceBudget, "record_trace", slow)
    page = ROOT / "docs" / "guide" / "compile.md"
    shows_counts, solvers, _ = TEXTS[page].partition("## With SciPy")
    assert solvers
    with blocks.surroundings():
        blocks.run(shows_counts, page.name)


@pytest.mark.parametrize(("document", "library"), OTHERS, ids=short)
def test_code_for_another_library(document: Path, library: str) -> None:
    pytest.importorskip(
        {"autograd": "autograd.numpy"}.get(library, library)
    )  # tests/autograd is also importable as autograd
    if library in blocks.ENVIRONMENTS:
        command = [sys.executable, blocks.__file__, f"--other={library}", str(document)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        return
    with blocks.surroundings():
        blocks.run(TEXTS[document], document.name, other=library)


def test_every_python_block_is_found() -> None:
    """Check that the runner finds every fence, because no test would check a block that it misses."""
    for page, text in TEXTS.items():
        fences = len(re.findall(r"^\s*```\{?\.?(?:python|py|pycon)", text, re.MULTILINE))
        assert fences == sum(block.kind not in ("picture", "explained") for block in blocks.blocks(text)), page.name


def test_what_a_page_shows_is_compared() -> None:
    page = "```python\nprint(1)\n```\n\n```text\n2\n```\n"
    with pytest.raises(blocks.Mismatch, match="prints"):
        blocks.run(page, "page.md")
    assert blocks.run(page, "page.md", update=True)[0] == page.replace("2", "1")
    with pytest.raises(blocks.Mismatch):
        blocks.run("```python\n>>> 1 + 1\n3\n```\n", "page.md")
    with pytest.raises(ZeroDivisionError):
        blocks.run("```python\n1 / 0\n```\n", "page.md")


def test_links_lead_somewhere() -> None:
    """Check every relative link."""
    for page, text in TEXTS.items():
        text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
            path = (page.parent / target).resolve()
            assert path.exists() or "reference/" in target, f"{page.name} links to {target}"
