"""Check the site: every page is in the menu, the reference has every public name, and built pages load nothing from the network.

Building needs mkdocs-material (the ``docs`` extra); the other tests do not.
"""

from __future__ import annotations

import html
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from test_synonyms import check_search

import chainrule

ROOT = Path(__file__).parents[2]
MENU = re.findall(r"([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_reference", ROOT / "tools" / "docs" / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(reference: ModuleType) -> dict[str, str]:
    texts: dict[str, str] = reference.pages()
    return texts


def test_every_page_is_in_the_menu(pages: dict[str, str]) -> None:
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    made = {f"reference/{name}.md" for name in pages} | {"changelog.md"}
    shown = {path.stem for path in (ROOT / "docs" / "gallery").glob("*.md")}
    made |= {f"examples/{path.stem}.md" for path in (ROOT / "examples").glob("*.py") if path.stem not in shown}
    assert sorted(MENU) == sorted(written | made)


def test_links_of_the_changelog_stay_among_the_pages(reference: ModuleType) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", reference.changelog())
    pages = [link.partition("#")[0] for link in links if not link.startswith("http")]
    assert "guide/gpu.md" in pages and set(pages) <= set(MENU)


@pytest.mark.parametrize(
    "module", ["", ".autograd", ".autograd.graph", ".autograd.functional", ".autograd.forward_ad", ".func", ".linalg",
               ".nn", ".nn.functional", ".nn.init", ".nn.utils", ".optim", ".distributions",
               ".special", ".testing", ".utils.checkpoint", ".tree", ".primitive"],
)  # fmt: skip
def test_the_reference_has_every_public_name(pages: dict[str, str], module: str) -> None:
    text = "\n".join(pages.values())
    for name in importlib.import_module(f"chainrule{module}").__all__:
        thing = getattr(importlib.import_module(f"chainrule{module}"), name)
        if name != "Tensor" and not isinstance(thing, (ModuleType, float)) and thing is not chainrule.dtype:
            assert f"`{name}`" in text, f"chainrule{module}.{name}"


def test_docstrings_become_markdown(pages: dict[str, str]) -> None:
    page = pages["func"]
    assert "- `argnums`: the positions of" in page and "```pycon\n>>> import numpy" in page
    assert "## `hvp` <small>Hessian-vector product</small> { #hvp }" in page, "by the words that people search for"
    assert page.index("## `grad`") < page.index("## `hvp`") < page.index("## `debug_unwrap`"), "by use"
    assert not re.search(r":(func|class|mod|meth):", page)
    assert "0x" not in "".join(pages.values()), "an address of an object is of one run only"


def test_names_that_the_pages_put_first_or_call_otherwise_are_there(reference: ModuleType) -> None:
    entries = {page: found for page, (_, _, found) in reference._entries().items()}
    for page, words in reference.FIRST.items():
        assert set(words.split()) <= {name for _, name, _ in entries[page]}, page
    known = {f"{prefix}.{name}".removeprefix("chainrule.") for found in entries.values() for prefix, name, _ in found}
    assert set(reference.CALLED) <= known
    assert {page for names in reference.PARTS.values() for page in names} == {*entries, "rules"}


def test_no_page_of_the_reference_is_a_wall(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        assert len(text) < 60_000, name


def resources(page: str) -> list[str]:
    """Return what a page loads: scripts, styles, images and frames, but not links."""
    found = []
    for tag, text in re.findall(r"<(script|img|iframe|source|video|link)\s([^>]*)>", page):
        named = {name: html.unescape(value) for name, value in re.findall(r'([\w-]+)="([^"]*)"', text)}
        if tag != "link":
            found.append(named.get("src", ""))
        elif named.get("rel") not in ("canonical", "next", "prev"):
            found.append(named["href"])
    return [target for target in found if target]


#: A site with one page of each kind, which takes a quarter of the time to build.
PART = f"""
INHERIT: {ROOT}/mkdocs.yml
docs_dir: {ROOT}/docs
hooks: [{ROOT}/tools/docs/hooks.py]
exclude_docs: |
  *.md
  !/index.md
  !/questions/gradient.md
  !/guide/scan.md
  !/gallery/kalman.md
  !/reference/func.md
"""


@pytest.mark.parametrize("pages", ["some", pytest.param("all", marks=pytest.mark.slow)])
def test_it_builds_and_loads_nothing_from_elsewhere(tmp_path: Path, pages: str) -> None:
    pytest.importorskip("material", reason="mkdocs-material (the docs extra) is not installed")
    (tmp_path / "part.yml").write_text(PART, encoding="utf-8")
    chosen = ["--strict"] if pages == "all" else ["--config-file", str(tmp_path / "part.yml")]
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site), *chosen]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    built_pages = list(site.rglob("*.html"))
    assert len(built_pages) > (40 if pages == "all" else 6) and any("gradient-2" in page.name for page in built_pages)
    for page in built_pages:
        found = resources(page.read_text(encoding="utf-8"))
        for target in found:
            assert not re.match(r"(https?:)?//", target), f"{page.name} loads {target}"
            path = (page.parent / target.split("?")[0].split("#")[0]).resolve()
            assert target.startswith(("data:", "/")) or path.exists(), f"{page.name} loads {target}"
    if pages == "all":
        check_search(site)
    for sheet in site.rglob("*.css"):
        text = re.sub(r"sourceMappingURL=\S+", "", sheet.read_text(encoding="utf-8"))
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", text), sheet.name
