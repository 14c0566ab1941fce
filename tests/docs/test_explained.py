"""Check that explanations on the site are live pages in frames, also on the home page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
MARKER = re.compile(r"^<!-- explained: .+? \| .+ -->$", re.MULTILINE)


def test_every_section_of_the_examples_has_a_live_explanation() -> None:
    page = (DOCS / "explained" / "index.md").read_text(encoding="utf-8")
    sections = page.split("\n## ")[1:]
    assert len(sections) >= 7
    assert all(len(MARKER.findall(section)) == 1 for section in sections)
    assert "![" not in page


def test_the_home_page_starts_with_a_live_explanation() -> None:
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    marker = MARKER.search(page)
    assert marker is not None
    before = page[: marker.start()].splitlines()
    assert len(before) < 16 and "![" not in page, "the explanation is on the first screen"


def test_frames_of_all_kinds_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build a page with an explanation, a Jacobian and a compiled function."""
    pytest.importorskip("mkdocs", reason="mkdocs-material (the docs extra) is not installed")
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import File, Files
    from mkdocs.structure.pages import Page

    monkeypatch.syspath_prepend(str(DOCS.parent / "tools" / "docs"))
    import hooks

    text = (
        "```python\nimport numpy as np\nimport chainrule as cr\nf = cr.compile(np.sin)\ny = f(np.ones(2))\n```\n\n"
        "<!-- explained: cr.explain(np.sum)(np.ones(2)) | A sum -->\n\n"
        "<!-- explained: cr.explain(cr.jacobian(np.sin, np.ones(3), layout='structured')) | A Jacobian -->\n\n"
        "<!-- explained: f | A plan -->\n"
    )
    config = MkDocsConfig()
    config.load_dict({"site_name": "test", "docs_dir": str(tmp_path), "site_dir": str(tmp_path.parent / "site")})
    assert config.validate() == ([], [])
    config.plugins._current_plugin = "test"  # as during a build
    for uri, prefix in (("page.md", ""), ("folder/page.md", "folder/")):
        file = File(uri, config.docs_dir, config.site_dir, use_directory_urls=False)
        files = Files([file])
        written = hooks.on_page_markdown(text, Page(None, file, config), config, files)
        assert re.findall(r'<iframe class="explained" src="([^"]+)" title="([^"]+)"', written) == [
            ("page-1.html", "A sum"),
            ("page-2.html", "A Jacobian"),
            ("page-3.html", "A plan"),
        ]
        made = {found.src_uri: found.content_string for found in files if found is not file}
        assert sorted(made) == [f"{prefix}page-{number}.html" for number in (1, 2, 3)]
        assert all("framed" in content and "Content-Security-Policy" in content for content in made.values())
        assert written.count('<p class="alone">') == 2, "the display of a plan has no longer page"
