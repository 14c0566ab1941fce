"""Every Python block of README.md and docs/ is run, page by page.

The blocks of a page share one namespace, in order, as a reader would type them. Blocks with ``>>>`` are compared with
the output they show (``...`` stands for anything); plain blocks just have to run.
"""

from __future__ import annotations

import doctest
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import chainrule
from chainrule.core.primitive import TABLE

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def python_blocks(page: Path) -> list[tuple[str, int]]:
    """The page's Python blocks, with the lines they start at."""
    text = page.read_text(encoding="utf-8")
    return [(match[1], text.count("\n", 0, match.start(1)) + 1) for match in BLOCK.finditer(text)]


def run(source: str, page: Path, line: int, names: dict[str, object]) -> None:
    if ">>>" not in source:
        exec(compile("\n" * (line - 1) + source, str(page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(source, names, page.name, str(page), line - 1)
    test.globs = names  # a doctest works on a copy; the next block needs what this one defined
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert result.failed == 0, "".join(report)


@pytest.fixture
def table() -> Iterator[None]:
    """Pages add rows to the table; other tests must not meet them."""
    rows = dict(TABLE)
    yield
    TABLE.clear()
    TABLE.update(rows)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.name)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chainrule.manual_seed(0)
    names: dict[str, object] = {"__name__": "__docs__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source, line in python_blocks(page):
            run(source, page, line, names)


def test_links_lead_somewhere() -> None:
    """Every relative link to a page of ours."""
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            assert path.exists(), f"{page.name} links to {target}"
