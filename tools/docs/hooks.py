"""MkDocs hooks that generate the reference, the changelog, the examples, explanations, and MathML.

MkDocs calls these functions (see ``hooks`` in mkdocs.yml). Everything is generated from the repository, offline.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]  # use the code of this checkout

import blocks  # noqa: E402
import reference  # noqa: E402

# In a frame, an explanation shows only its answer and its graph, and reports its height to the enclosing page.
FRAMED_STYLE = """
.framed { overflow: hidden; }
.framed :is(.skip, header, footer, #steps, #whole, #values) { display: none; }
"""
FRAMED_SCRIPT = """
if (window.self !== window.top) {
  document.documentElement.classList.add("framed");
  const height = () => document.body.getBoundingClientRect().height;
  const tell = () => parent.postMessage({ explained: height() }, "*");
  addEventListener("message", tell);
  new ResizeObserver(tell).observe(document.body);
  tell();
  for (const link of document.links) link.target = "_top";  // links to the steps open the full page
}
"""
# A page around the display of an object that a notebook shows.
NOTEBOOK = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>chainrule</title>'
    """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">"""
    "<body style='margin:1rem'>{}</body></html>"
)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
GALLERY = {path.stem for path in (ROOT / "docs" / "gallery").glob("*.md")}  # the examples with a page in the gallery


def on_config(config: Any) -> Any:
    """Set the site's description and register the ``math`` blocks."""
    import chainrule

    config.site_description = f"chainrule {chainrule.__version__}: gradients for NumPy programs"
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", [])
    fences.append({"name": "math", "class": "math", "format": math})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""

    def add(path: str, content: str) -> None:
        files.append(File.generated(config, path, content=content))

    for name, text in reference.pages().items():
        add(f"reference/{name}.md", text)
    add("changelog.md", reference.changelog())
    for path in EXAMPLES:
        if path.stem not in GALLERY:
            add(f"examples/{path.stem}.md", f"# {path.name}\n\n{_script(path.stem)}\n")
    return files


def _script(name: str) -> str:
    """Return the source of an example as a code block."""
    return f"```python\n{(ROOT / 'examples' / f'{name}.py').read_text(encoding='utf-8')}```"


def _example(link: re.Match[str]) -> str:
    """Return the link to an example's page on the site, in the gallery or with its code only."""
    return f"]({link[1].removeprefix('../')}{'gallery' if link[2] in GALLERY else 'examples'}/{link[2]}.md)"


#: Search weights by the start of a page's path.
BOOST = {
    "reference/func": 2,
    "reference/autograd": 2,
    "reference/checkpoint": 2,
    "reference/tensor.": 2,
    "guide/": 2,
    "questions/": 2,
    "gallery/": 2,
    "synonyms": 3,
}
BOOST |= {"reference/rules": 0.3, "adr/": 0.3, "changelog": 0.2, "performance": 0.5, "compat": 0.5}


#: Pages with wide contents, and the sidebars that they do not have.
WIDE = {
    "index.md": ["navigation", "toc"],
    "explained/index.md": ["toc"],
    "operators.md": ["toc"],
    "performance.md": ["toc"],
}


def on_page_markdown(text: str, page: Any, config: Any, files: Any) -> str:
    """Redirect links to example files to their pages, and replace the markers."""
    for start, boost in BOOST.items():
        if page.file.src_uri.startswith(start):
            page.meta.setdefault("search", {})["boost"] = boost
    if page.file.src_uri in WIDE:
        page.meta["hide"] = WIDE[page.file.src_uri]
    text = re.sub(r"\]\(((?:\.\./)+)examples/(\w+)\.py\)", _example, text)
    text = re.sub(r"<!-- script: (\w+) -->", lambda m: _script(m[1]), text)
    if "<!-- picture: " in text or "<!-- explained: " in text:
        text = _with_explanations(text, page, config, files)
    return text


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Remove the backslash of ``\\|`` in the code of tables, which GitHub needs and Markdown's tables keep."""
    return re.sub(r"<code>[^<]*</code>", lambda code: code[0].replace("\\|", "|"), html)


def _with_explanations(text: str, page: Any, config: Any, files: Any) -> str:
    with blocks.surroundings():
        _, found = blocks.run(text, Path(page.file.src_uri).name)
    made = [block for block in found if block.kind in ("picture", "explained")]
    for number, block in reversed(list(enumerate(made, 1))):
        content = _picture(block) if block.kind == "picture" else _frame(block, number, page, config, files)
        text = text[: block.at.start] + content + text[block.at.stop :]
    return text


def _picture(block: blocks.Block) -> str:
    """Return the SVG as inline HTML, so that it has the page's colours."""
    svg = re.sub(r"\n\s*\n", "\n", block.value.to_svg().strip())  # a blank line would end the HTML block
    return f'<div class="picture" markdown="0">\n{svg}\n</div>'


def _frame(block: blocks.Block, number: int, page: Any, config: Any, files: Any) -> str:
    """Generate the page of an explanation, and return a frame that shows its main part."""
    name = f"{Path(page.file.src_uri).stem}-{number}.html"
    folder = os.path.dirname(page.file.src_uri)
    whole = hasattr(block.value, "to_html")
    content = block.value.to_html() if whole else NOTEBOOK.format(block.value._repr_html_())
    files.append(File.generated(config, os.path.join(folder, name), content=_framed(content)))
    title = html.escape(block.title or "The steps, with their numbers")
    frame = f'<iframe class="explained" src="{name}" title="{title}" scrolling="no"></iframe>\n'
    link = f'<a href="{name}">The whole explanation: its steps one by one, the Jacobians, all values</a>'
    return frame + f'\n<p class="alone">{link}</p>' * whole


def _framed(content: str) -> str:
    """Add the frame style and script to an explanation's page, and allow the script in its content security policy."""
    digest = base64.b64encode(hashlib.sha256(FRAMED_SCRIPT.encode()).digest()).decode()
    if "script-src " in content:
        content = content.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    else:
        content = content.replace("default-src 'none';", f"default-src 'none'; script-src 'sha256-{digest}';", 1)
    added = f"<style>{FRAMED_STYLE}</style>\n<script>{FRAMED_SCRIPT}</script>\n"
    return content.replace("</body>", f"{added}</body>", 1)


def math(source: str, language: str, css_class: str, options: Any, md: Any, **_: Any) -> str:
    """Convert a ``math`` block (LaTeX fractions, sums, letters and indices) to MathML, which needs no script."""
    lines = [
        f'<math display="block">{_row(iter(_TOKENS.findall(line)))}</math>' for line in source.strip().splitlines()
    ]
    return f'<div class="math">{"".join(lines)}</div>'


_TOKENS = re.compile(r"\\(?:[a-z]+|,)|\S")
_COMMANDS = {
    r"\partial": "<mi>∂</mi>",
    r"\delta": "<mi>δ</mi>",
    r"\sum": "<mo>∑</mo>",
    r"\,": '<mspace width="0.167em"/>',
}


def _row(tokens: Iterator[str]) -> str:
    """Convert the tokens up to a closing brace."""
    found: list[str] = []
    for token in tokens:
        if token == "}":
            break
        if token == "_":
            base, below = found.pop(), _one(next(tokens), tokens)
            tag = "munder" if "∑" in base else "msub"
            found.append(f"<{tag}>{base}{below}</{tag}>")
        else:
            found.append(_one(token, tokens))
    return "".join(found)


def _one(token: str, tokens: Iterator[str]) -> str:
    if token == "{":
        return f"<mrow>{_row(tokens)}</mrow>"
    if token == r"\frac":
        top, bottom = _one(next(tokens), tokens), _one(next(tokens), tokens)
        return f"<mfrac>{top}{bottom}</mfrac>"
    if token.startswith("\\"):
        return _COMMANDS[token]
    return f"<mi>{token}</mi>" if token.isalpha() else f"<mo>{html.escape(token)}</mo>"
